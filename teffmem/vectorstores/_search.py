"""Searching one scope through its index: bring it up to date, rank it, walk down the ranking.

A backend that can hold a scope's index in memory answers the questions of `ScopeSource`; the rest is here.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from teffmem.items import Match, Record, Vector
from teffmem.ranking import Evidence, Query, Ranking, diversify, rank, restrict, weigh
from teffmem.vectorstores._scope import Rows, ScopeIndex
from teffmem.vectorstores._vectors import cosines

__all__ = ["ScopeSource", "refresh", "search"]

_POOL = 200  # how many of the best are ordered for diversity

Ids = NDArray[np.int64]
Floats = NDArray[np.float32]


class ScopeSource(Protocol):
    """The truth about one scope, as it stands at one moment."""

    changed: int
    """Stamp of the last write or deletion in the scope."""
    shrunk: int
    """Stamp of the last deletion."""

    def present(self) -> Ids:
        """Return the ids of all records in the scope."""
        ...

    def written_since(self, stamp: int) -> Ids:
        """Return the ids of all records with a later stamp, indexed or not."""
        ...

    def rows_since(self, stamp: int) -> Iterator[Rows]:
        """Yield the indexed records with a later stamp, in the order of their stamps."""
        ...

    def expiries(self, ids: Ids) -> NDArray[np.float64]:
        """Return when these records expire, in Unix seconds; `NEVER` for never."""
        ...

    def records(self, ids: Ids) -> dict[int, Record]:
        """Return those of these records that are selected: live, and meeting the filter."""
        ...

    def vectors(self, ids: Ids) -> Floats:
        """Return the vectors of these records, float32 (m, dim)."""
        ...

    def all_vectors(self) -> Iterator[tuple[Ids, Floats]]:
        """Yield the ids and vectors of all indexed records, piece by piece."""
        ...

    def numbers(self, field: str) -> dict[int, float]:
        """Return a field of the records' values by id, where it is a number, clipped to 0..1."""
        ...


def refresh(index: ScopeIndex, source: ScopeSource, now: float) -> None:
    """Bring an index up to date with its scope, and take out what has expired."""
    if source.changed > index.seen:
        if source.shrunk > index.seen and len(index):
            index.remove(np.setdiff1d(index.ids, source.present()))
        if len(index):
            index.remove(source.written_since(index.seen))
        index.add(source.rows_since(index.seen))
        index.seen = source.changed
    if index.earliest_expiry <= now:
        due = index.expires <= now
        index.expires[due] = source.expiries(index.ids[due])  # a refresh on read may have moved it
        index.remove(index.ids[index.expires <= now])


def search(index: ScopeIndex, query: Query, source: ScopeSource, *, now: float, limit: int, offset: int) -> list[Match]:
    """Return the selected matches of a query, best first."""
    if not len(index) or not limit or (query.mode == "semantic" and not index.has_vectors):
        return []
    scope = _Scope(index, query, source)
    ranking = scope.ranking(now)
    found = list(islice(scope.walk(ranking, offset + limit), offset, offset + limit))
    rows = np.array([row for row, _ in found], np.intp)
    parts, totals = ranking.scores(rows), ranking.total[rows].tolist()
    return [Match(record, total, part) for (_, record), total, part in zip(found, totals, parts, strict=True)]


class _Scope:
    """One query over one scope."""

    def __init__(self, index: ScopeIndex, query: Query, source: ScopeSource) -> None:
        self._index = index
        self._query = query
        self._source = source

    def ranking(self, now: float) -> Ranking:
        query = self._query
        evidence = self._evidence()
        if evidence.cosines is not None and query.mode == "hybrid" and query.similarity_range is None:
            query = replace(query, similarity_range=self._index.similarity_range(self._source.vectors))
        ranking = rank(evidence, query)
        if query.min_similarity is not None and ranking.tolerance:
            doubtful = np.abs(ranking.parts["semantic"] - query.min_similarity) <= ranking.tolerance
            self._correct(ranking, np.flatnonzero(doubtful))
        restrict(ranking, query)
        if query.recency or query.importance:
            weigh(ranking, query, now - self._index.updated, self._importances())
        return ranking

    def walk(self, ranking: Ranking, wanted: int) -> Iterator[tuple[int, Record]]:
        """Yield rows and their records, best first, looking up a page at a time."""
        done, count = 0, max(wanted, _POOL) if self._query.diversity else wanted
        while True:
            rows = ranking.candidates(count)
            if ranking.tolerance:
                self._correct(ranking, rows)
            rows = ranking.ordered(rows)[done:count]
            if self._query.diversity and not done and len(rows):
                rows = self._diverse(ranking, rows)
            records = self._source.records(self._index.ids[rows])
            for row, id_ in zip(rows.tolist(), self._index.ids[rows].tolist(), strict=True):
                if id_ in records:
                    yield row, records[id_]
            if count >= len(self._index):
                return
            done, count = count, count * 4 + 64

    def _evidence(self) -> Evidence:
        evidence = self._index.evidence(self._query)
        if self._query.vector is not None and self._index.has_vectors and not self._index.holds_vectors:
            return replace(evidence, cosines=self._streamed(self._query.vector))
        return evidence

    def _streamed(self, vector: Vector) -> Floats:
        """Return the cosines of vectors that memory does not hold."""
        pieces = [(ids, cosines(vectors, vector)) for ids, vectors in self._source.all_vectors()]
        ids = np.concatenate([piece[0] for piece in pieces])
        found = np.concatenate([piece[1] for piece in pieces])
        order = np.argsort(ids)
        return found[order[np.searchsorted(ids, self._index.ids, sorter=order)]]

    def _correct(self, ranking: Ranking, rows: NDArray[np.intp]) -> None:
        if len(rows) and self._query.vector is not None:
            ranking.correct(rows, cosines(self._source.vectors(self._index.ids[rows]), self._query.vector))

    def _diverse(self, ranking: Ranking, rows: NDArray[np.intp]) -> NDArray[np.intp]:
        pool, rest = rows[:_POOL], rows[_POOL:]
        order = diversify(ranking.total[pool], self._source.vectors(self._index.ids[pool]), self._query.diversity)
        return np.concatenate((pool[order], rest))

    def _importances(self) -> Floats | None:
        if not self._query.importance:
            return None
        numbers = self._source.numbers(self._query.importance_field)
        return np.array([numbers.get(id_, 0.5) for id_ in self._index.ids.tolist()], np.float32)
