"""What one searched scope holds in memory: words, vectors and threads as arrays, ready to be ranked.

Rows stand in the order of their stamps. A record that changes leaves its row and gets a new one at the end, so
that bringing an index up to date is: take out what went or changed, append what is new.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Self

import numpy as np
from numpy.typing import NDArray

from teffmem.items import Record, Vector
from teffmem.namespace import encode
from teffmem.ranking import Evidence, Postings, Query, Threads
from teffmem.text import analyse, unpack
from teffmem.vectorstores._vectors import ScopeVectors

__all__ = [
    "NEVER",
    "IndexRow",
    "Rows",
    "ScopeIndex",
    "as_rows",
    "estimated_range",
    "semantic_query",
    "thread_number",
]

NEVER = float("inf")
"""The expiry of what does not expire, as the index keeps it."""

_OVERHEAD = 4096  # bytes of an index beside its arrays' contents, about
_SAMPLE = 256


@dataclass(frozen=True, slots=True, eq=False)
class IndexRow:
    """What an index keeps of one indexed record.

    Attributes:
        thread: A number that no other thread of any namespace has; 0 for none.
        length: Words in the text.
        terms: uint64: the text's terms, packed as `text.analyse` gives them.
    """

    thread: int
    length: int
    terms: NDArray[np.uint64]

    @classmethod
    def of(cls, record: Record, text: str) -> Self:
        """Return the row of a record that is indexed under ``text``."""
        terms = analyse(text)
        return cls(thread_number(record), terms.length, terms.packed)


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Records to be added to an index, as columns in the order of their stamps.

    Attributes:
        ids: int64 (m,): the store's own number of each record.
        expires: float64 (m,): Unix seconds, or `NEVER`.
        updated: float64 (m,): Unix seconds.
        threads: int64 (m,): see `IndexRow`.
        places: int64 (m,): order within a thread.
        lengths: float32 (m,): words.
        sizes: int (m,): how many terms each has.
        terms: uint64 (sum of sizes,): all their packed terms.
        vectors: float32 (m, dim); None if words alone are indexed.
    """

    ids: NDArray[np.int64]
    expires: NDArray[np.float64]
    updated: NDArray[np.float64]
    threads: NDArray[np.int64]
    places: NDArray[np.int64]
    lengths: NDArray[np.float32]
    sizes: NDArray[np.int64]
    terms: NDArray[np.uint64]
    vectors: NDArray[np.float32] | None


def as_rows(records: Sequence[tuple[int, Record, IndexRow]]) -> Rows:
    """Return records with their ids and index rows as columns."""
    vectors = [record.vector for _, record, _ in records if record.vector is not None]
    return Rows(
        ids=np.array([id_ for id_, _, _ in records], np.int64),
        expires=np.array([NEVER if r.expires_at is None else r.expires_at for _, r, _ in records], np.float64),
        updated=np.array([record.updated_at for _, record, _ in records], np.float64),
        threads=np.array([row.thread for _, _, row in records], np.int64),
        places=np.array([record.place for _, record, _ in records], np.int64),
        lengths=np.array([row.length for _, _, row in records], np.float32),
        sizes=np.array([len(row.terms) for _, _, row in records], np.int64),
        terms=np.concatenate([row.terms for _, _, row in records]),
        vectors=np.stack(vectors) if vectors else None,
    )


def semantic_query(vector: Vector) -> Query:
    """Return the query that orders by cosine alone."""
    return Query(mode="semantic", terms=np.empty(0, np.uint64), vector=vector)


def _joined(pieces: list[Rows]) -> Rows:
    """Return pieces without vectors as one."""
    names = ("ids", "expires", "updated", "threads", "places", "lengths", "sizes", "terms")
    return Rows(**{name: np.concatenate([getattr(piece, name) for piece in pieces]) for name in names}, vectors=None)


class ScopeIndex:
    """The index of one scope. Not safe for several threads at once."""

    def __init__(self, *, holds_vectors: bool = True) -> None:
        self.seen = 0
        """Stamp of the last change that the index knows of."""
        self.ids: NDArray[np.int64] = np.empty(0, np.int64)
        self.expires: NDArray[np.float64] = np.empty(0, np.float64)
        self.updated: NDArray[np.float64] = np.empty(0, np.float64)
        self.holds_vectors = holds_vectors
        """Whether the vectors are to be kept here."""
        self.has_vectors = False
        """Whether the records have vectors, kept here or not."""
        self._thread_ids: NDArray[np.int64] = np.empty(0, np.int64)
        self._places: NDArray[np.int64] = np.empty(0, np.int64)
        self._lengths: NDArray[np.float32] = np.empty(0, np.float32)
        self._terms: NDArray[np.uint64] = np.empty(0, np.uint64)  # sorted; _rows says whose
        self._rows: NDArray[np.int32] = np.empty(0, np.int32)
        self._vectors: ScopeVectors | None = None
        self._threads: Threads | None = None
        self._range: tuple[float, float] | None = None

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def nbytes(self) -> int:
        """Bytes of memory held, about."""
        columns = (self.ids, self.expires, self.updated, self._thread_ids, self._places, self._lengths)
        threads = 28 * len(self.ids)
        held = sum(column.nbytes for column in (*columns, self._terms, self._rows)) + threads + _OVERHEAD
        return held + (self._vectors.nbytes if self._vectors else 0)

    @property
    def earliest_expiry(self) -> float:
        """Unix seconds at which the next record is due; `NEVER` if none is."""
        return float(self.expires.min(initial=NEVER))

    def remove(self, ids: NDArray[np.int64]) -> None:
        """Take out the rows of these records; those that have none are passed over."""
        kept = ~np.isin(self.ids, ids)
        if kept.all():
            return
        renumbered = (np.cumsum(kept) - 1).astype(np.int32)
        standing = kept[self._rows]
        self._terms, self._rows = self._terms[standing], renumbered[self._rows[standing]]
        self.ids, self.expires, self.updated = self.ids[kept], self.expires[kept], self.updated[kept]
        self._thread_ids, self._places = self._thread_ids[kept], self._places[kept]
        self._lengths = self._lengths[kept]
        if self._vectors is not None:
            self._vectors.keep(kept)
        self._threads = self._range = None

    def add(self, pieces: Iterable[Rows]) -> None:
        """Append records that have no row yet, in pieces of which only one is held with its vectors at a time."""
        columns: list[Rows] = []
        for piece in pieces:
            self.has_vectors = self.has_vectors or piece.vectors is not None
            if piece.vectors is not None and self.holds_vectors:
                self._vectors = self._vectors or ScopeVectors(piece.vectors.shape[1])
                self._vectors.add(piece.vectors)
            columns.append(replace(piece, vectors=None))
        if columns:
            self._append(columns[0] if len(columns) == 1 else _joined(columns))

    def _append(self, rows: Rows) -> None:
        first = len(self.ids)
        numbers = np.repeat(np.arange(first, first + len(rows.ids), dtype=np.int32), rows.sizes)
        order = np.argsort(rows.terms, kind="stable")
        terms, numbers = rows.terms[order], numbers[order]
        at = np.searchsorted(self._terms, terms)
        self._terms, self._rows = np.insert(self._terms, at, terms), np.insert(self._rows, at, numbers)
        self.ids = np.concatenate((self.ids, rows.ids))
        self.expires = np.concatenate((self.expires, rows.expires))
        self.updated = np.concatenate((self.updated, rows.updated))
        self._thread_ids = np.concatenate((self._thread_ids, rows.threads))
        self._places = np.concatenate((self._places, rows.places))
        self._lengths = np.concatenate((self._lengths, rows.lengths))
        self._threads = self._range = None

    def evidence(self, query: Query) -> Evidence:
        """Return what the scope has to say about a query; cosines only if the vectors are held here."""
        cosines, tolerance = None, 0.0
        if query.vector is not None and self._vectors is not None:
            cosines, tolerance = self._vectors.cosines(query.vector)
        if query.mode == "semantic":
            return Evidence(_NONE, _NO_POSTINGS, _NO_FLOATS, _NO_THREADS, cosines, tolerance)
        found, postings = self._find(query.terms)
        return Evidence(found, postings, self._lengths, self._linked(), cosines, tolerance)

    def similarity_range(self, vectors: Callable[[NDArray[np.int64]], NDArray[np.float32]]) -> tuple[float, float]:
        """Return a guess of the cosines of unrelated and of matching texts, made once for what is held now.

        Args:
            vectors: Returns the vectors of some records, given by their ids.
        """
        if self._range is None:
            some = np.unique(np.linspace(0, len(self.ids) - 1, _SAMPLE).astype(np.intp))
            self._range = estimated_range(vectors(self.ids[some]))
        return self._range

    def release_vectors(self) -> None:
        """Let go of the vectors, the greater part of the memory; from here on cosines come from elsewhere."""
        self.holds_vectors, self._vectors = False, None

    def _find(self, terms: NDArray[np.uint64]) -> tuple[NDArray[np.int64], Postings]:
        """Return how many rows hold each term, and which."""
        starts = np.searchsorted(self._terms, terms << np.uint64(8))
        ends = np.searchsorted(self._terms, (terms + np.uint64(1)) << np.uint64(8))
        found = ends - starts
        places = [slice(start, end) for start, end in zip(starts.tolist(), ends.tolist(), strict=True)]
        packed = np.concatenate([self._terms[place] for place in places] or [self._terms[:0]])
        rows = np.concatenate([self._rows[place] for place in places] or [self._rows[:0]])
        numbers = np.repeat(np.arange(len(terms)), found)
        return found, Postings(numbers, rows.astype(np.int64), unpack(packed)[1].astype(np.float32))

    def _linked(self) -> Threads:
        if self._threads is None:
            self._threads = _link(self._thread_ids, self._places, self._lengths)
        return self._threads


_NO_ROWS = np.empty((2, 0), np.int32)
_NO_FLOATS = np.empty(0, np.float32)
_NONE = np.empty(0, np.int64)
_NO_POSTINGS = Postings(_NONE, _NONE, _NO_FLOATS)
_NO_THREADS = Threads(_NO_ROWS[0], _NO_ROWS, _NO_ROWS, _NO_FLOATS, _NO_FLOATS, linked=False)


def _link(thread_ids: NDArray[np.int64], places: NDArray[np.int64], lengths: NDArray[np.float32]) -> Threads:
    """Find out who stands beside whom: records of one thread, in the order of their places."""
    n = len(thread_ids)
    rows = np.arange(n, dtype=np.int32)
    in_thread = thread_ids != 0
    if not in_thread.any():
        alone = np.stack((rows, rows))
        return Threads(rows, alone, alone, lengths, lengths, linked=False)
    own = np.where(in_thread, thread_ids, rows - np.int64(n))  # a thread of its own: numbers below 0
    order = np.lexsort((places, own))
    own = own[order]
    starts = np.concatenate(([True], own[1:] != own[:-1]))
    of = np.empty(n, np.int32)
    of[order] = np.cumsum(starts) - 1

    def beside(distance: int) -> NDArray[np.int32]:
        wanted = np.arange(n) + distance
        there = np.clip(wanted, 0, n - 1)
        neighbour = np.empty(n, np.int32)
        neighbour[order] = np.where((there == wanted) & (own[there] == own), order[there], order)
        return neighbour

    near = np.stack((beside(-1), beside(1)))
    windows = lengths + sum(np.where(neighbour == rows, 0, lengths[neighbour]) for neighbour in near)
    by_thread = np.bincount(of, lengths).astype(np.float32)
    return Threads(of, near, np.stack((beside(-2), beside(2))), windows.astype(np.float32), by_thread, linked=True)


def thread_number(record: Record) -> int:
    """Return the number of a record's thread: a 63-bit hash of it and the namespace, 0 for none."""
    if record.thread is None:
        return 0
    path = encode(record.namespace) + b"\xff" + record.thread.encode()
    return int.from_bytes(blake2b(path, digest_size=8).digest(), "big") >> 1 or 1


def estimated_range(vectors: NDArray[np.float32]) -> tuple[float, float]:
    """Guess the cosines of unrelated and of matching texts from how stored vectors lie to each other.

    Most pairs of memories are unrelated, so the low end is 1.5 standard deviations below the mean of their
    cosines and the high end 2 above: about (.2, .68) for MiniLM's vectors of chat turns, where (0, .5) measures best.
    """
    if len(vectors) < 3:
        return (0.0, 1.0)
    pairs = (vectors @ vectors.T)[np.triu_indices(len(vectors), 1)]
    mean, spread = float(pairs.mean()), float(pairs.std())
    low = mean - 1.5 * spread
    return low, max(mean + 2 * spread, low + 0.05)
