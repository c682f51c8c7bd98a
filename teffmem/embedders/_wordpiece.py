"""BERT's uncased WordPiece tokeniser: text -> token ids.

The algorithm is that of Devlin et al. 2019 (the ``BasicTokenizer`` and ``WordpieceTokenizer`` of the published code):
clean, strip accents, lower, split at blanks and punctuation, then take the longest known piece again and again.
"""

import unicodedata
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache

__all__ = ["CLS", "SEP", "UNKNOWN", "WordPiece"]

UNKNOWN, CLS, SEP = 100, 101, 102
"""Ids of ``[UNK]``, ``[CLS]`` and ``[SEP]`` in the vocabulary."""

_LONGEST_WORD = 100  # letters; BERT calls a longer word unknown
_LETTERS_A_TOKEN = 40  # no text needs more of its letters to fill the tokens that are read
_REMEMBERED_WORDS = 50_000
_CJK = ((0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xF900, 0xFAFF), (0x20000, 0x2FA1F))


class WordPiece:
    """Splits texts into pieces of a fixed vocabulary. May be shared by threads."""

    def __init__(self, vocabulary: Iterable[str]) -> None:
        """Number the pieces in their order; a piece that continues a word starts with ``##``."""
        self._ids = {piece: place for place, piece in enumerate(vocabulary)}
        self._pieces = lru_cache(maxsize=_REMEMBERED_WORDS)(self._split)
        self._cleaned = _Replacements(_clean)
        self._parted = _Replacements(_part)

    def encode(self, text: str, limit: int) -> list[int]:
        """Return at most ``limit`` ids, between CLS and SEP; what comes after is cut off."""
        ids = [CLS]
        for word in self._words(text[: limit * _LETTERS_A_TOKEN]):
            ids.extend(self._pieces(word))
            if len(ids) >= limit - 1:
                break
        return [*ids[: limit - 1], SEP]

    def _words(self, text: str) -> Sequence[str]:
        """Return the words and punctuation marks of a text, lowered and without accents."""
        decomposed = unicodedata.normalize("NFD", text.translate(self._cleaned))
        return decomposed.lower().translate(self._parted).split()

    def _split(self, word: str) -> tuple[int, ...]:
        """Return the ids of the pieces of a word; UNKNOWN alone if it is too long or a part is not covered."""
        if len(word) > _LONGEST_WORD:
            return (UNKNOWN,)
        ids: list[int] = []
        start = 0
        while start < len(word):
            found = self._longest_piece(word, start)
            if found is None:
                return (UNKNOWN,)
            piece, start = found
            ids.append(piece)
        return tuple(ids)

    def _longest_piece(self, word: str, start: int) -> tuple[int, int] | None:
        """Return the id of the longest piece that starts there, and where it ends."""
        prefix = "##" if start else ""
        for end in range(len(word), start, -1):
            piece = self._ids.get(prefix + word[start:end])
            if piece is not None:
                return piece, end
        return None


class _Replacements(dict[int, str]):
    """A table for `str.translate` that applies a rule to each character once, when it first meets it."""

    def __init__(self, rule: Callable[[str], str]) -> None:
        super().__init__()
        self._rule = rule

    def __missing__(self, code: int) -> str:
        self[code] = replacement = self._rule(chr(code))
        return replacement


def _clean(character: str) -> str:
    """Return a blank for any blank, nothing for a control, and a CJK character as a word of its own."""
    category = unicodedata.category(character)
    if character in "\0\t\n\r\ufffd" or category == "Zs":
        return " "
    if category.startswith("C"):
        return ""
    if any(first <= ord(character) <= last for first, last in _CJK):
        return f" {character} "
    return character


def _part(character: str) -> str:
    """Return nothing for an accent, and a punctuation mark as a word of its own."""
    category = unicodedata.category(character)
    if category == "Mn":
        return ""
    if category.startswith("P") or (character.isascii() and category.startswith("S")):
        return f" {character} "
    return character
