"""Words: the one analysis that every lexical leg uses, at put and at search.

A text becomes *terms*. Words are runs of letters, digits and their marks, case and accents folded, those in ASCII
stemmed as English (Snowball). Scripts written without blanks (Chinese, Japanese, Thai, ...), and Korean, whose nouns
carry their particles, give their characters and pairs of characters. Function words ("the", "who") and symbols ("?",
"+", emoji) are *weak*: they are indexed, but do not count as length, and a query uses them only if it has nothing
else. Every visible text has a term, so that any text can be found by itself.

A term is kept as a 56-bit hash of its stem, so that an index is arrays of integers and holds no readable text. Its
lowest bit says whether it is weak.
"""

import re
import threading
import unicodedata
from array import array
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
import snowballstemmer
from numpy.typing import NDArray

__all__ = ["ANALYSIS", "Terms", "analyse", "is_blank", "query_terms", "stems", "unpack"]

ANALYSIS = "words-1"
"""Names this analysis in a store; it changes whenever the same text would give other terms."""

_COUNT_BITS = 8
_MAX_COUNT = 255
_WEAK = 1

_PIECED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"  # Thai, Lao, Burmese, Khmer
    "\u1100-\u11ff\uac00-\ud7a3"  # Korean
    "\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003fffd"
)
_INDIC = "\u0900-\u0963\u0966-\u0dff"  # their vowel signs are marks, which \\w leaves out
_RUN = re.compile(rf"[{_PIECED}]+|(?:[^\W_{_PIECED}]|[{_INDIC}])+")
_IS_PIECED = re.compile(f"[{_PIECED}]")
_SYMBOL = re.compile(rf"[^\w\s{_PIECED}{_INDIC}]|_")

_ASCII = re.compile(r"[a-z0-9]+|[!-/:-@\[-`{-~]")  # the same for a text without anything else

_POINTS = "\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u064b-\u065f\u0670\u06d6-\u06dc"  # Hebrew, Arabic
_OPTIONAL_MARKS = re.compile(
    rf"(?<=\w)[\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff{_POINTS}\u0640]+"
)  # after a letter; on its own, an accent is a symbol
# Sorting marks is quadratic in CPython. As in Unicode's stream-safe text, a joiner after 30 of them bounds it; two
# half-width letters decompose into marks.
_MARKS_IN_A_ROW = re.compile(r"(?:[^\w\s]|[\uff9e\uff9f]){30}")
_BARRED = str.maketrans({"ı": "i", "ł": "l", "ø": "o", "đ": "d", "ħ": "h", "ŧ": "t", "æ": "ae", "œ": "oe"})
_LONGEST_STEMMED = 64
_MOST_KNOWN = 1 << 16

_INVISIBLE = frozenset(("Zs", "Zl", "Zp", "Cc", "Cf", "Cs"))
_IGNORED = re.compile(  # invisible too, whatever Unicode calls it; inside a word, it does not part it
    "[\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200d\u2060\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0"
    "\U000e0100-\U000e01ef]"
)

_STOP_WORDS = frozenset(
    """
    a about above after again against ain all am an and any are aren as at be because been before being below
    between both but by can cannot could couldn d did didn do does doesn doing don down during each few for from
    further had hadn has hasn have haven having he her here hers herself him himself his how i if in into is isn it
    its itself just ll m me mightn more most mustn my myself needn no nor not now o of off on once only or other our
    ours ourselves out over own re s same shan she should shouldn so some such t than that the their theirs them
    themselves then there these they this those through to too under until up us ve very was wasn we were weren what
    when where which while who whom whose why will with won would wouldn you your yours yourself yourselves
    """.split()
)


@dataclass(frozen=True, slots=True)
class Terms:
    """The terms of one text.

    Attributes:
        packed: uint64, one a distinct term: its 56-bit hash above its count (1..255).
        length: How many words the text has, weak ones left out.
    """

    packed: NDArray[np.uint64]
    length: int


def is_blank(text: str) -> bool:
    """Tell whether there is nothing visible in ``text``: only blanks, controls and zero-width characters."""
    return not any(map(_is_visible, text))


def analyse(text: str) -> Terms:
    """Return the terms of a text that is to be found by its words."""
    counts = Counter(_terms(text))
    length = sum([count for term, count in counts.items() if not term & _WEAK])
    packed = [(term << _COUNT_BITS) | (min(_MAX_COUNT, count)) for term, count in counts.items()]
    return Terms(np.frombuffer(array("Q", packed), np.uint64), length)


def query_terms(text: str) -> NDArray[np.uint64]:
    """Return the distinct term hashes that a query asks for, in order of first appearance.

    Weak words are left out, unless the query has no others. Empty for a blank query.
    """
    terms = list(dict.fromkeys(_terms(text)))
    return np.array([term for term in terms if not term & _WEAK] or terms, dtype=np.uint64)


def stems(text: str) -> set[str]:
    """Return the stems that a query with this text would look for."""
    words = set(_words(text))
    return {_stem(word) for word in words if not _is_weak(word)} or {_stem(word) for word in words}


def unpack(packed: NDArray[np.uint64]) -> tuple[NDArray[np.uint64], NDArray[np.uint8]]:
    """Split packed terms into hashes and counts, both as long as ``packed``."""
    return packed >> np.uint64(_COUNT_BITS), (packed & np.uint64(_MAX_COUNT)).astype(np.uint8)


def _is_visible(char: str) -> bool:
    return unicodedata.category(char) not in _INVISIBLE and not _IGNORED.match(char)


def _terms(text: str) -> Iterator[int]:
    """Return the hash of each word and symbol of a text."""
    return map(_known_terms.__getitem__, _words(text))


class _KnownTerms(dict[str, int]):
    """The hashes of words that were met, by word."""

    def __missing__(self, word: str) -> int:
        stem = blake2b(_stem(word).encode("utf-8", "surrogatepass"), digest_size=7)
        number = int.from_bytes(stem.digest(), "big")
        term = number | _WEAK if _is_weak(word) else number & ~_WEAK
        if len(self) >= _MOST_KNOWN:
            self.clear()
        if len(word) <= _LONGEST_STEMMED:
            self[word] = term
        return term


_known_terms = _KnownTerms()


def _words(text: str) -> list[str]:
    """Return the words and visible symbols of a text, folded, not stemmed."""
    if text.isascii():
        return _ASCII.findall(text.lower())
    folded = _fold(text)
    words: list[str] = []
    for run in _RUN.findall(folded):
        if _IS_PIECED.match(run):
            words.extend(run)
            words.extend(run[i : i + 2] for i in range(len(run) - 1))
        else:
            words.append(run)
    return words + [symbol for symbol in _SYMBOL.findall(folded) if _is_visible(symbol)]


def _fold(text: str) -> str:
    bounded = _MARKS_IN_A_ROW.sub("\\g<0>\u034f", _IGNORED.sub("", text))
    decomposed = unicodedata.normalize("NFKD", bounded).casefold()
    return unicodedata.normalize("NFC", _OPTIONAL_MARKS.sub("", decomposed)).translate(_BARRED)


def _is_weak(word: str) -> bool:
    return word in _STOP_WORDS or _SYMBOL.match(word) is not None


_stemmer = snowballstemmer.EnglishStemmer()  # the pure Python one: the same stems on every machine
_stemmer_in_use = threading.Lock()


def _stem(word: str) -> str:
    if len(word) > _LONGEST_STEMMED or not (word.isascii() and word.isalpha()):
        return word
    with _stemmer_in_use:
        return str(_stemmer.stemWord(word))
