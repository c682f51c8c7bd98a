"""What the contracts write: drafts with vectors, awkward names, and how to compare what comes back."""

import json
from typing import Any, Protocol

import numpy as np

from teffmem.filters import Condition, parse
from teffmem.items import Draft, Match, Record, Vector
from teffmem.namespace import Namespace
from teffmem.protocols import Ordered, Ranked, Selection, VectorStore
from teffmem.testing.fakes import FakeEmbedder

__all__ = [
    "DIM",
    "HOME",
    "KEYS",
    "NAMESPACES",
    "NOW",
    "VALUES",
    "OrderedStore",
    "RankedStore",
    "condition",
    "draft",
    "facts",
    "found",
    "here",
    "many",
    "names",
    "one",
    "put",
    "unit",
    "vector_of",
]

NOW = 1_800_000_000.0
HOME: Namespace = ("users", "u1")
DIM = 32

vector_of = FakeEmbedder(DIM).vector

NAMESPACES: list[Namespace] = [
    (),
    ("users",),
    ("users", "u1"),
    ("users", "u10"),
    ("users", "u1", "work"),
    ("users", "U1"),
    ("users", " u1"),
    ("usersu1",),
    ("users/u1",),
    ("users\x01u1",),
    ("a::b",),
    ("a", "b"),
    ("a:", ":b"),
    ("users", "a_c"),
    ("users", "abc"),
    ("users", "a%"),
    ("users", "%"),
    ("users", "*"),
    ("users", "[a]bc"),
    ("users", "a?c"),
    ("users", "d'arc"),
    ("users", 'say "x"'),
    ("users", "x' OR '1'='1"),
    ("users", "\u00e9"),
    ("users", "e\u0301"),
    ("users", "\U0010ffff"),
    ("users", "\uffff"),
    ("users", "\ue000"),
    ("..", "users"),
    ("\n", "\t"),
    ("x" * 600, "y" * 600),
    tuple("abcdefghijklmnop"),
]
"""Paths that an encoding confuses, a pattern widens, or a comparison folds."""

KEYS = [
    "k",
    "K",
    " k",
    "note::2026::plan",
    "c",
    "b::c",
    "a::b::c",
    "o'brien's note",
    "x' OR '1'='1",
    '"; DROP TABLE items; --',
    "%",
    "_",
    "*",
    "notes/2026 (v1).md",
    "1-0",
    "0",
    "ключ 🔑",
    "\u00e9",
    "e\u0301",
    "\n",
    "a" * 600,
    "null",
]
"""Names of memories that engines stumble over."""

VALUES: list[Any] = [
    {"text": "t", "source": None, "n": 0, "s": "", "no": False, "yes": True},
    {"text": "t", "updated_at": "yesterday", "expires_at": 1, "namespace": ["x"], "key": 7, "id": "i", "vector": []},
    {"text": "t", "numbers": [0, -0.0, 1, 1.0, 1e300, 5e-324, 2**53 + 1, -(2**63) - 1, 10**400]},
    {"text": "t", "deep": {"a": [{"b": [[], {}, [[[{"c": None}]]]]}]}},
    {"text": "t", "": "", " ": " ", "a.b": 1, "$eq": 2, "a'b": 3, 'a"b': 4, "\x00": 5, "é": 6, "e\u0301": 7},
    {"text": "nul \x00 stays, \x1b[31m \x7f \u2028 \ufeff too"},
    {"text": '我喜欢绿茶, أحب القهوة, café ☕️ 👩\u200d👩\u200d👧 \U0010ffff line1\nline2 "q" \\n'},
    {"text": "long " * 20_000},
]
"""Values of every JSON shape."""


class OrderedStore(VectorStore, Ordered, Protocol):
    """A store that also walks its records."""


class RankedStore(VectorStore, Ranked, Protocol):
    """A store that also ranks by words."""


def draft(key: str, text: str = "green tea", at: Namespace = HOME, **fields: Any) -> Draft:
    """Return a draft with a text and the vector of that text, unless ``fields`` says otherwise."""
    vector = vector_of(text) if fields.get("indexed", True) else None
    usual: dict[str, Any] = {"value": {"text": text}, "now": NOW, "vector": vector}
    return Draft(at, key, **usual | fields)


def many(total: int, text: str, at: Namespace, **fields: Any) -> list[Draft]:
    """Return ``total`` drafts whose texts differ in one word."""
    return [draft(f"k{i}", f"{text} number{i}", at, **fields) for i in range(total)]


async def put(store: VectorStore, *drafts: Draft) -> list[Record]:
    """Write drafts in one batch at the moment of the first, and return their records."""
    written = await store.upsert(drafts, drafts[0].now)
    records = [record for record in written if record is not None]
    assert len(records) == len(drafts), "a draft without a condition is written"
    return records


async def one(store: VectorStore, key: str, at: Namespace = HOME, *, now: float = NOW) -> Record | None:
    """Return one live record."""
    (record,) = await store.get(at, [key], now)
    return record


async def found(store: VectorStore, selection: Selection, text: str = "green tea", limit: int = 1000) -> list[Match]:
    """Return what is nearest to a text."""
    return await store.similar(selection, vector_of(text), limit)


def here(at: Namespace = HOME, now: float = NOW, **fields: Any) -> Selection:
    """Return the selection of a namespace and what is below it."""
    return Selection(at, now, **fields)


def condition(**fields: Any) -> Condition | None:
    """Return a filter by equality."""
    return parse(fields)


def names(records: list[Record] | list[Match]) -> list[tuple[Namespace, str]]:
    """Return the namespaces and keys of records or matches, in their order."""
    plain = [one.record if isinstance(one, Match) else one for one in records]
    return [(record.namespace, record.key) for record in plain]


def facts(record: Record | None) -> tuple[Any, ...] | None:
    """Return all that a record says but its vector, so that two can be compared; 1, 1.0 and True differ."""
    if record is None:
        return None
    value = json.dumps(record.value, sort_keys=True)
    placed = (record.namespace, record.key, value, record.text, record.indexed, record.thread)
    return (*placed, record.stamp, record.place, record.created_at, record.updated_at, record.ttl, record.expires_at)


def unit(*numbers: float) -> Vector:
    """Return a vector of these numbers and zeros, of unit length; zeros alone stay zeros."""
    vector = np.zeros(DIM, np.float64)
    vector[: len(numbers)] = numbers
    length = float(np.linalg.norm(vector))
    scaled: Vector = (vector / length if length else vector).astype(np.float32)
    return scaled
