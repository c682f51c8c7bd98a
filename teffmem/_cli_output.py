"""How the command line shows things to a person: in rows that nothing stored can fake.

Control characters, line separators and marks that turn the direction of writing are shown as escapes, so a memory
cannot begin a line, colour a terminal or hide a part of itself.
"""

import json
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any

from teffmem.items import MemoryItem
from teffmem.namespace import Namespace

__all__ = [
    "as_json",
    "clip",
    "details",
    "found",
    "item_json",
    "listed",
    "name",
    "one_line",
    "pairs",
    "path",
]

_HARMFUL = frozenset(("Cc", "Cf", "Cs", "Zl", "Zp"))
_JOINERS = "\u200c\u200d"  # Persian and emoji need them
_BARE = re.compile(r"[\w.@:+-]+")
_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t", "\x1b": "\\e"}


def one_line(text: str) -> str:
    """Return a text as one line that a terminal shows as it is."""
    return text if text.isascii() and text.isprintable() else "".join(map(_shown, text))


def name(text: str) -> str:
    """Return a segment or key: bare if it is a plain word, else in quotes."""
    return text if _BARE.fullmatch(text) else one_line(json.dumps(text, ensure_ascii=False))


def path(namespace: Namespace) -> str:
    """Return a namespace as segments between slashes; no two look the same."""
    return "/".join(map(name, namespace)) or "(root)"


def as_json(value: object) -> str:
    """Return a JSON document in one line."""
    return json.dumps(value, ensure_ascii=False)


def item_json(item: MemoryItem) -> dict[str, Any]:
    """Return an item as what JSON can hold."""
    return asdict(item)


def found(items: Sequence[MemoryItem], *, explain: bool) -> Iterator[str]:
    """Yield a row for each item that a search found, and the parts of its score under it."""
    scores = ["-" if item.score is None else f"{item.score:.3f}" for item in items]
    rows = _table([(score, path(item.namespace), name(item.key)) for score, item in zip(scores, items, strict=True)])
    for row, item in zip(rows, items, strict=True):
        yield f"{row}  {_text(item)}"
        if explain:
            yield "    " + "  ".join(f"{part} {number:.3f}" for part, number in sorted(item.scores.items()))


def listed(items: Sequence[MemoryItem]) -> Iterator[str]:
    """Yield a row for each item: when it was last put, where it is, its text."""
    rows = _table([(_when(item.updated_at), path(item.namespace), name(item.key)) for item in items])
    for row, item in zip(rows, items, strict=True):
        yield f"{row}  {_text(item)}"


def details(item: MemoryItem) -> Iterator[str]:
    """Yield all there is to an item, its text last, indented."""
    facts = {
        "namespace": path(item.namespace),
        "key": name(item.key),
        "created": _when(item.created_at),
        "updated": _when(item.updated_at),
        "expires": "never" if item.expires_at is None else _when(item.expires_at),
    }
    if item.thread is not None:
        facts["thread"] = name(item.thread)
    yield from pairs(facts)
    for field, value in item.value.items():
        if field != "text":
            yield f"{name(field)} = {one_line(as_json(value))}"
    text = item.value.get("text", "")
    for line in (text if isinstance(text, str) else as_json(text)).split("\n"):
        yield f"    {one_line(line)}".rstrip()


def pairs(facts: Mapping[str, object]) -> Iterator[str]:
    """Yield a row for each fact: its name, what it is."""
    yield from _table([(about, _fact(fact)) for about, fact in facts.items()])


def clip(line: str, columns: int) -> str:
    """Return as much of a line as fits into so many columns of a terminal."""
    if _width(line) <= columns:
        return line
    while _width(line) >= columns:
        line = line[: columns - 1] if len(line) >= columns else line[:-1]
    return f"{line}…"


def _shown(char: str) -> str:
    if unicodedata.category(char) not in _HARMFUL or char in _JOINERS:
        return char
    if char in _SHORT:
        return _SHORT[char]
    number = ord(char)
    return f"\\x{number:02x}" if number <= 0xFF else f"\\u{number:04x}" if number <= 0xFFFF else f"\\U{number:08x}"


def _fact(fact: object) -> str:
    if isinstance(fact, bool):
        return "yes" if fact else "no"
    return "-" if fact is None else one_line(str(fact))


def _text(item: MemoryItem) -> str:
    text = item.value.get("text")
    return one_line(text if isinstance(text, str) else as_json(item.value))


def _when(moment: float) -> str:
    try:
        return datetime.fromtimestamp(moment).astimezone().strftime("%Y-%m-%d %H:%M")
    except (OverflowError, ValueError, OSError):  # further off than a calendar reaches
        return f"{moment:g}"


def _table(rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    """Yield rows with their columns aligned."""
    widths = [max(map(_width, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = [cell + " " * (width - _width(cell)) for cell, width in zip(row, widths, strict=True)]
        yield "  ".join(cells).rstrip()


def _width(text: str) -> int:
    """Return how many columns a terminal gives a text."""
    if text.isascii():
        return len(text)
    return sum(0 if unicodedata.category(c) in ("Mn", "Me", "Cf") else 1 + (_is_wide(c)) for c in text)


def _is_wide(char: str) -> bool:
    return unicodedata.east_asian_width(char) in ("W", "F")
