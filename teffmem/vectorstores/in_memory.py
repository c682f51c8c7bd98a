"""Memories in this process's memory: the backend to read first. Everything is gone when it closes.

A record is held once, and listed under every scope it belongs to: its namespace and each one above. A dict keeps the
order in which keys were inserted, and a write moves a record to the end, so that every list is in the order of
stamps. Searches go through an index of the scope (`ScopeIndex`), made when it is first searched.
"""

import asyncio
import json
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from teffmem.errors import StoreError
from teffmem.filters import match
from teffmem.items import Draft, Match, Record, Vector
from teffmem.namespace import Namespace, encode, lineage
from teffmem.protocols import Selection
from teffmem.ranking import Query
from teffmem.vectorstores._cache import IndexCache
from teffmem.vectorstores._scope import NEVER, IndexRow, Rows, as_rows, semantic_query
from teffmem.vectorstores._search import Floats, Ids, refresh, search

__all__ = ["InMemoryVectorStore"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True, eq=False)
class _Entry:
    """A record as it is held: ``record.value`` is empty, the value waits as JSON so that nothing is shared."""

    id: int
    record: Record
    value: str
    row: IndexRow | None


@dataclass(slots=True, eq=False)
class _Scope:
    """What is listed under one namespace and those below it, oldest stamp first."""

    entries: dict[int, _Entry]
    changed: int = 0
    shrunk: int = 0


class InMemoryVectorStore:
    """A vector store without a file.

    Args:
        dim: Length of the vectors, checked at every write; None takes what comes.
        budget: Bytes that indexes of searched scopes may take.
    """

    def __init__(self, dim: int | None = None, *, budget: int = 256_000_000) -> None:
        self._dim = dim
        self._ids: dict[tuple[Namespace, str], int] = {}
        self._scopes: dict[Namespace, _Scope] = {(): _Scope({})}
        self._indexes: IndexCache[Namespace] = IndexCache(budget)
        self._next_id = 1
        self._fingerprint: str | None = None
        self._worker: ThreadPoolExecutor | None = None
        self._closed = False

    async def upsert(self, drafts: Sequence[Draft], now: float) -> list[Record | None]:
        """Write drafts; see `VectorStore.upsert`."""
        return await self._run(lambda: [self._put(draft, now) for draft in self._checked(drafts)])

    async def get(self, namespace: Namespace, keys: Sequence[str], now: float) -> list[Record | None]:
        """Return live records by key; see `VectorStore.get`."""
        return await self._run(lambda: [self._live(namespace, key, now) for key in keys])

    async def delete(self, namespace: Namespace, keys: Sequence[str], now: float) -> int:
        """Remove records by key; see `VectorStore.delete`."""

        def delete() -> int:
            entries = [self._entry(namespace, key) for key in dict.fromkeys(keys)]
            return self._remove([entry for entry in entries if entry is not None], now)

        return await self._run(delete)

    async def delete_all(self, selection: Selection) -> int:
        """Remove what is selected; see `VectorStore.delete_all`."""

        def delete_all() -> int:
            doomed = [
                entry
                for entry in self._listed(selection.namespace)
                if not entry.record.is_live(selection.now) or _is_selected(entry, selection)
            ]
            return self._remove(doomed, selection.now)

        return await self._run(delete_all)

    async def cleanup(self, namespace: Namespace, now: float, *, older_than: float | None = None) -> int:
        """Remove what has expired or is too old; see `VectorStore.cleanup`."""

        def cleanup() -> int:
            doomed = [
                entry
                for entry in self._listed(namespace)
                if not entry.record.is_live(now) or (older_than is not None and entry.record.updated_at < older_than)
            ]
            self._remove(doomed, now)
            return len(doomed)

        return await self._run(cleanup)

    async def touch(self, records: Sequence[Record], now: float) -> None:
        """Let records live for another ttl; see `VectorStore.touch`."""

        def touch() -> None:
            for record in records:
                entry = self._entry(record.namespace, record.key)
                if entry is not None and entry.record.stamp == record.stamp and entry.record.ttl is not None:
                    touched = replace(entry.record, expires_at=now + entry.record.ttl)
                    for scope in lineage(record.namespace):
                        self._scopes[scope].entries[entry.id] = replace(entry, record=touched)

        await self._run(touch)

    async def similar(self, selection: Selection, vector: Vector, limit: int, *, offset: int = 0) -> list[Match]:
        """Return the nearest records; see `VectorStore.similar`."""
        return await self.rank(selection, semantic_query(vector), limit, offset=offset)

    async def rank(self, selection: Selection, query: Query, limit: int, *, offset: int = 0) -> list[Match]:
        """Return the best matches; see `Ranked.rank`."""

        def rank() -> list[Match]:
            scope = self._scopes.get(selection.namespace)
            if scope is None:
                return []
            held = self._indexes.take(selection.namespace)
            source = _Source(scope, selection)
            refresh(held.index, source, selection.now)
            self._indexes.measure(selection.namespace, held)
            return search(held.index, query, source, now=selection.now, limit=limit, offset=offset)

        return await self._run(rank)

    async def newest(self, selection: Selection, limit: int, *, offset: int = 0) -> list[Record]:
        """Return records, newest first; see `Ordered.newest`."""

        def newest() -> list[Record]:
            entries = reversed(self._scope(selection.namespace).entries.values())
            selected = (entry for entry in entries if _is_selected(entry, selection))
            return [_record(entry) for _, entry in zip(range(offset + limit), selected, strict=False)][offset:]

        return await self._run(newest)

    async def oldest(self, selection: Selection, limit: int, *, after: int = 0) -> list[Record]:
        """Return records, oldest first; see `Ordered.oldest`."""

        def oldest() -> list[Record]:
            entries = self._listed(selection.namespace)
            selected = (entry for entry in entries if entry.record.stamp > after and _is_selected(entry, selection))
            return [_record(entry) for _, entry in zip(range(limit), selected, strict=False)]

        return await self._run(oldest)

    async def count(self, selection: Selection) -> int:
        """Count what is selected; see `VectorStore.count`."""
        return await self._run(
            lambda: sum(_is_selected(entry, selection) for entry in self._listed(selection.namespace))
        )

    async def namespaces(self, top: Namespace, now: float) -> list[Namespace]:
        """Return the namespaces that hold something; see `VectorStore.namespaces`."""

        def namespaces() -> list[Namespace]:
            live = {entry.record.namespace for entry in self._listed(top) if entry.record.is_live(now)}
            return sorted(live, key=encode)

        return await self._run(namespaces)

    async def fingerprint(self) -> str | None:
        """Return the fingerprint in force; see `VectorStore.fingerprint`."""
        return await self._run(lambda: self._fingerprint)

    async def claim(self, fingerprint: str) -> str:
        """Return the fingerprint in force; see `VectorStore.claim`."""

        def claim() -> str:
            if self._fingerprint is None:
                self._fingerprint = fingerprint
            return self._fingerprint

        return await self._run(claim)

    async def aclose(self) -> None:
        """Wait for calls in flight and forget everything."""
        self._closed = True
        if self._worker is not None:
            await asyncio.to_thread(self._worker.shutdown)
        self._ids.clear()
        self._scopes.clear()
        self._indexes.clear()

    async def _run(self, work: Callable[[], T]) -> T:
        """Do one piece of work at a time, in the order of the calls, off the event loop."""
        if self._closed:
            raise StoreError("this store is closed; open a new one")
        if self._worker is None:
            self._worker = ThreadPoolExecutor(1, thread_name_prefix="teffmem-in-memory")
        return await asyncio.get_running_loop().run_in_executor(self._worker, work)

    def _checked(self, drafts: Sequence[Draft]) -> Sequence[Draft]:
        for draft in drafts:
            if self._dim is not None and draft.vector is not None and len(draft.vector) != self._dim:
                raise ValueError(f"a vector of {len(draft.vector)} numbers in a store of dim={self._dim}")
        return drafts

    def _put(self, draft: Draft, now: float) -> Record | None:
        entry = self._entry(draft.namespace, draft.key)
        stamp = max(self._scopes[()].changed + 1, int(now * 1e6))
        record = draft.over(entry.record if entry else None, stamp=stamp, now=now)
        if record is None:
            return None
        text = record.indexed_text
        id_ = entry.id if entry else self._next_id
        self._next_id = max(self._next_id, id_ + 1)
        self._ids[record.namespace, record.key] = id_
        if draft.same_text and entry is not None:
            row = entry.row
        else:
            row = None if text is None else IndexRow.of(record, text)
        held = replace(record, value={}, vector=_own(record.vector))
        new = _Entry(id_, held, json.dumps(record.value), row)
        for namespace in lineage(record.namespace):
            scope = self._scopes.setdefault(namespace, _Scope({}))
            scope.entries.pop(id_, None)
            scope.entries[id_] = new
            scope.changed = stamp
        return record

    def _remove(self, entries: list[_Entry], now: float) -> int:
        """Remove entries; return how many were live."""
        stamp = max(self._scopes[()].changed + 1, int(now * 1e6))
        for entry in entries:
            del self._ids[entry.record.namespace, entry.record.key]
            for namespace in lineage(entry.record.namespace):
                scope = self._scopes[namespace]
                del scope.entries[entry.id]
                scope.changed = scope.shrunk = stamp
                if not scope.entries and namespace:
                    del self._scopes[namespace]
                    self._indexes.drop(namespace)
        return sum(entry.record.is_live(now) for entry in entries)

    def _scope(self, namespace: Namespace) -> _Scope:
        return self._scopes.get(namespace) or _Scope({})

    def _listed(self, namespace: Namespace) -> list[_Entry]:
        return list(self._scope(namespace).entries.values())

    def _entry(self, namespace: Namespace, key: str) -> _Entry | None:
        id_ = self._ids.get((namespace, key))
        return None if id_ is None else self._scopes[namespace].entries[id_]

    def _live(self, namespace: Namespace, key: str, now: float) -> Record | None:
        entry = self._entry(namespace, key)
        return _record(entry) if entry is not None and entry.record.is_live(now) else None


class _Source:
    """A scope's truth, as `ScopeSource` asks for it."""

    def __init__(self, scope: _Scope, selection: Selection) -> None:
        self.changed = scope.changed
        self.shrunk = scope.shrunk
        self._entries = scope.entries
        self._selection = selection

    def present(self) -> Ids:
        return np.fromiter(self._entries, np.int64, len(self._entries))

    def written_since(self, stamp: int) -> Ids:
        return np.array([entry.id for entry in self._later(stamp)], np.int64)

    def rows_since(self, stamp: int) -> Iterator[Rows]:
        later = [(entry, entry.row) for entry in reversed(list(self._later(stamp)))]
        indexed = [(entry, row) for entry, row in later if row is not None]
        if indexed:
            yield as_rows([(entry.id, entry.record, row) for entry, row in indexed])

    def expiries(self, ids: Ids) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        moments = [self._entries[id_].record.expires_at for id_ in ids.tolist()]
        return np.array([NEVER if moment is None else moment for moment in moments], np.float64)

    def records(self, ids: Ids) -> dict[int, Record]:
        entries = [self._entries[id_] for id_ in ids.tolist()]
        return {entry.id: _record(entry) for entry in entries if _is_selected(entry, self._selection)}

    def vectors(self, ids: Ids) -> Floats:
        return np.stack([_vector(self._entries[id_]) for id_ in ids.tolist()])

    def all_vectors(self) -> Iterator[tuple[Ids, Floats]]:
        ids = np.array([entry.id for entry in self._entries.values() if entry.row is not None], np.int64)
        yield ids, self.vectors(ids)

    def numbers(self, field: str) -> dict[int, float]:
        fields = {id_: json.loads(entry.value).get(field) for id_, entry in self._entries.items()}
        numbers = {id_: n for id_, n in fields.items() if isinstance(n, int | float) and not isinstance(n, bool)}
        return {id_: float(min(max(n, 0), 1)) for id_, n in numbers.items()}

    def _later(self, stamp: int) -> Iterator[_Entry]:
        """Yield the entries with a later stamp, newest first."""
        for entry in reversed(self._entries.values()):
            if entry.record.stamp <= stamp:
                return
            yield entry


def _record(entry: _Entry) -> Record:
    return replace(entry.record, value=json.loads(entry.value))


def _own(vector: Vector | None) -> Vector | None:
    """Return a copy that nobody can change, so that it can be shown to callers."""
    if vector is None or not vector.flags.writeable:
        return vector
    copy = vector.copy()
    copy.setflags(write=False)
    return copy


def _vector(entry: _Entry) -> Vector:
    if entry.record.vector is None:
        raise StoreError("an indexed record has no vector")
    return entry.record.vector


def _is_selected(entry: _Entry, selection: Selection) -> bool:
    record = entry.record
    if not record.is_live(selection.now):
        return False
    if not selection.recursive and record.namespace != selection.namespace:
        return False
    return selection.condition is None or match(selection.condition, json.loads(entry.value))
