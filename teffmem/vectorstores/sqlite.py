"""Memories in one SQLite file: the default backend.

The truth is rows; several processes may share the file (write-ahead log). A search costs what its scope holds, not what
the file holds: the scope's words and vectors are brought into memory when they are first asked for, within a
budget, and brought up to date by the stamps that the scope's row carries, whoever wrote. Everything a call reads
is read in one transaction. Writes that arrive together share one commit, which is on the disk before they return.
"""

import asyncio
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby, islice
from pathlib import Path
from typing import Any, TypeVar

from teffmem._files import make_file
from teffmem.errors import StoreError
from teffmem.items import Draft, Match, Record, Vector
from teffmem.namespace import Namespace, encode
from teffmem.protocols import Selection
from teffmem.ranking import Query
from teffmem.vectorstores import _sqlite_read as reading
from teffmem.vectorstores._cache import IndexCache
from teffmem.vectorstores._scope import ScopeIndex, semantic_query
from teffmem.vectorstores._search import refresh, search
from teffmem.vectorstores._sqlite_connection import Connection, is_memory, open_connection
from teffmem.vectorstores._sqlite_schema import is_refusal, prepare_file
from teffmem.vectorstores._sqlite_write import Prepared, Transaction

__all__ = ["SQLiteVectorStore"]

P = TypeVar("P")
T = TypeVar("T")

_READERS = 2
_FINGERPRINT = "SELECT value FROM meta WHERE name = 'fingerprint'"
_DOOMED = "SELECT items.id, items.scope, items.stamp, items.expires_at IS NULL OR items.expires_at > ? FROM items"
_DOOMED_IN_SCOPE = f"{_DOOMED} JOIN listing ON listing.item = items.id WHERE listing.scope = ?"
_TOUCH = """
UPDATE items SET expires_at = ? WHERE scope = (SELECT id FROM scopes WHERE path = ?) AND key = ? AND stamp = ?
"""


@dataclass(slots=True, eq=False)
class _Write:
    """One write that waits for its transaction.

    Attributes:
        prepare: What can be done before the transaction begins.
        apply: What is done inside; gets what ``prepare`` returned.
        outcome: Its result, once committed.
    """

    prepare: Callable[[], Any]
    apply: Callable[[Transaction, Any], Any]
    outcome: asyncio.Future[Any] = field(default_factory=lambda: asyncio.get_running_loop().create_future())


class SQLiteVectorStore:
    """A vector store in one file.

    Args:
        path: The file; made with its folders if missing, for the owner alone. ``~`` is expanded. ":memory:" is a
            database of its own that goes with the store.
        dim: Length of the vectors, checked at every write; None takes what comes.
        budget: Bytes that indexes of searched scopes may take in memory. A scope that is larger is searched through
            its file, which takes longer.
    """

    def __init__(self, path: str | Path = "./memory.db", dim: int | None = None, *, budget: int = 256_000_000) -> None:
        self._path = str(path) if is_memory(str(path)) else str(Path(path).expanduser())
        self._dim = dim
        self._budget = budget
        self._indexes: IndexCache[Namespace] = IndexCache(budget)
        self._writer: Connection | None = None
        self._readers: list[Connection] = []
        self._waiting: list[_Write] = []
        self._drain: asyncio.Task[None] | None = None
        self._opening = asyncio.Lock()
        self._closed = False
        self._read_only = False

    @property
    def path(self) -> str:
        """The file, or ":memory:"."""
        return self._path

    async def upsert(self, drafts: Sequence[Draft], now: float) -> list[Record | None]:
        """Write drafts in one transaction; see `VectorStore.upsert`."""
        for draft in drafts:
            if self._dim is not None and draft.vector is not None and len(draft.vector) != self._dim:
                raise ValueError(f"a vector of {len(draft.vector)} numbers in a store of dim={self._dim}")
        return await self._write(lambda: [Prepared.of(draft, now) for draft in drafts], Transaction.put)

    async def get(self, namespace: Namespace, keys: Sequence[str], now: float) -> list[Record | None]:
        """Return live records by key; see `VectorStore.get`."""
        return await self._read(lambda connection: reading.get(connection, namespace, keys, now))

    async def delete(self, namespace: Namespace, keys: Sequence[str], now: float) -> int:
        """Remove records by key; see `VectorStore.delete`."""

        def delete(transaction: Transaction, _: None) -> int:
            connection = transaction.connection
            scope = reading.find_scope(connection, namespace)
            if scope is None:
                return 0
            query = f"{_DOOMED} WHERE scope = ? AND key = ?"
            found = [connection.execute(query, (now, scope[0], key)).fetchone() for key in dict.fromkeys(keys)]
            return _remove(transaction, [row for row in found if row is not None], now)

        return await self._write(_nothing, delete)

    async def delete_all(self, selection: Selection) -> int:
        """Remove what is selected; see `VectorStore.delete_all`."""

        def delete_all(transaction: Transaction, _: None) -> int:
            connection = transaction.connection
            scope = reading.find_scope(connection, selection.namespace)
            if scope is None:
                return 0
            rows = connection.execute(_DOOMED_IN_SCOPE, (selection.now, scope[0])).fetchall()
            if selection.condition is not None or not selection.recursive:
                chosen = {id_ for id_, _ in reading.selected(connection, selection, newest_first=False)}
                rows = [row for row in rows if row[0] in chosen or not row[3]]
            return _remove(transaction, rows, selection.now)

        return await self._write(_nothing, delete_all)

    async def cleanup(self, namespace: Namespace, now: float, *, older_than: float | None = None) -> int:
        """Remove what has expired or is too old; see `VectorStore.cleanup`."""

        def cleanup(transaction: Transaction, _: None) -> int:
            connection = transaction.connection
            scope = reading.find_scope(connection, namespace)
            if scope is None:
                return 0
            if older_than is None and not namespace:
                rows = connection.execute(f"{_DOOMED} WHERE expires_at <= ?", (now, now)).fetchall()
            else:
                past = "-9e999" if older_than is None else repr(float(older_than))
                query = f"{_DOOMED_IN_SCOPE} AND (items.expires_at <= ? OR items.updated_at < {past})"
                rows = connection.execute(query, (now, scope[0], now)).fetchall()
            _remove(transaction, rows, now)
            return len(rows)

        return await self._write(_nothing, cleanup)

    async def touch(self, records: Sequence[Record], now: float) -> None:
        """Let records live for another ttl; see `VectorStore.touch`."""
        rows = [(now + r.ttl, encode(r.namespace), r.key, r.stamp) for r in records if r.ttl is not None]

        def touch(transaction: Transaction, _: None) -> None:
            transaction.connection.executemany(_TOUCH, rows)

        if rows:
            await self._write(_nothing, touch)

    async def similar(self, selection: Selection, vector: Vector, limit: int, *, offset: int = 0) -> list[Match]:
        """Return the nearest records; see `VectorStore.similar`."""
        return await self.rank(selection, semantic_query(vector), limit, offset=offset)

    async def rank(self, selection: Selection, query: Query, limit: int, *, offset: int = 0) -> list[Match]:
        """Return the best matches; see `Ranked.rank`."""

        def rank(connection: sqlite3.Connection) -> list[Match]:
            held = self._indexes.take(selection.namespace)
            with held.lock:  # taken before the first read, so that what is read is never behind the index
                scope = reading.find_scope(connection, selection.namespace)
                if scope is None:
                    return []
                source = reading.Source(connection, scope, selection)
                if held.owner != scope[0]:
                    held.index = ScopeIndex(holds_vectors=source.size() <= self._budget)
                elif held.index.nbytes > self._budget:
                    held.index.release_vectors()
                held.owner = None  # until it is up to date: a refresh that fails leaves an index to begin anew
                refresh(held.index, source, selection.now)
                held.owner = scope[0]
                self._indexes.measure(selection.namespace, held)
                return search(held.index, query, source, now=selection.now, limit=limit, offset=offset)

        return await self._read(rank)

    async def newest(self, selection: Selection, limit: int, *, offset: int = 0) -> list[Record]:
        """Return records, newest first; see `Ordered.newest`."""

        def newest(connection: sqlite3.Connection) -> list[Record]:
            found = reading.selected(connection, selection, newest_first=True)
            return [record for _, record in islice(found, offset, offset + limit)]

        return await self._read(newest) if limit else []

    async def oldest(self, selection: Selection, limit: int, *, after: int = 0) -> list[Record]:
        """Return records, oldest first; see `Ordered.oldest`."""

        def oldest(connection: sqlite3.Connection) -> list[Record]:
            found = reading.selected(connection, selection, newest_first=False, after=after)
            return [record for _, record in islice(found, limit)]

        return await self._read(oldest)

    async def count(self, selection: Selection) -> int:
        """Count what is selected; see `VectorStore.count`."""
        return await self._read(lambda connection: reading.count(connection, selection))

    async def namespaces(self, top: Namespace, now: float) -> list[Namespace]:
        """Return the namespaces that hold something; see `VectorStore.namespaces`."""
        return await self._read(lambda connection: reading.live_namespaces(connection, top, now))

    async def fingerprint(self) -> str | None:
        """Return the fingerprint in force; see `VectorStore.fingerprint`."""
        found = await self._read(lambda connection: connection.execute(_FINGERPRINT).fetchone())
        return None if found is None else str(found[0])

    async def claim(self, fingerprint: str) -> str:
        """Return the fingerprint in force; see `VectorStore.claim`."""
        if (found := await self.fingerprint()) is not None:
            return found

        def claim(transaction: Transaction, _: None) -> str:
            transaction.connection.execute("INSERT OR IGNORE INTO meta VALUES ('fingerprint', ?)", (fingerprint,))
            return str(transaction.connection.execute(_FINGERPRINT).fetchone()[0])

        return await self._write(_nothing, claim)

    async def aclose(self) -> None:
        """Wait for calls in flight and close the file."""
        self._closed = True
        async with self._opening:
            if self._drain is not None:
                await asyncio.wait([self._drain])
            connections = [*self._readers, *([self._writer] if self._writer else [])]
            for connection in connections:
                await connection.close()
            self._readers, self._writer = [], None
            self._indexes.clear()

    async def _read(self, function: Callable[[sqlite3.Connection], T]) -> T:
        """Run a function in a read transaction of whichever connection is least busy."""
        await self._ready()

        def read(connection: sqlite3.Connection) -> T:
            connection.execute("BEGIN")
            try:
                return function(connection)
            finally:
                connection.execute("COMMIT")

        with _driver_errors(self._path):
            return await min(self._readers, key=lambda reader: reader.waiting).run(read)

    async def _write(self, prepare: Callable[[], P], apply: Callable[[Transaction, P], T]) -> T:
        """Run a function in the next write transaction, with whatever else waits for it."""
        await self._ready()
        if self._read_only:
            raise StoreError(f"{self._path!r} cannot be written; give it another path, or the right to write")
        write = _Write(prepare, apply)
        self._waiting.append(write)
        if self._drain is None or self._drain.done():
            self._drain = asyncio.create_task(self._commit_waiting())
        result: T = await write.outcome
        return result

    async def _commit_waiting(self) -> None:
        """Commit batch after batch until nothing waits."""
        while self._waiting and self._writer is not None:
            batch = [write for write in self._waiting if not write.outcome.cancelled()]
            self._waiting = []
            outcomes = await self._writer.run(partial(_commit, batch=batch))
            for write, outcome in zip(batch, outcomes, strict=True):
                if isinstance(outcome, Exception) and not write.outcome.cancelled():
                    write.outcome.set_exception(_as_ours(outcome, self._path))
                elif not write.outcome.cancelled():
                    write.outcome.set_result(outcome)

    async def _ready(self) -> None:
        """Open the file, once."""
        if self._closed:
            raise StoreError(f"the store {self._path!r} is closed; open a new one")
        if self._writer is not None:
            return
        async with self._opening:
            if self._writer is None:
                with _driver_errors(self._path):
                    self._writer, self._read_only = await _open_writer(self._path)
                    self._readers = await _open_readers(self._path, self._writer, read_only=self._read_only)


def _nothing() -> None:
    """Prepare nothing."""


def _remove(transaction: Transaction, rows: list[tuple[int, int, int, int]], now: float) -> int:
    """Remove records given by id, scope, stamp and whether they are live; return how many were."""
    transaction.remove([row[:3] for row in rows], now)
    return sum(row[3] for row in rows)


def _commit(connection: sqlite3.Connection, batch: list[_Write]) -> list[Any]:
    """Run writes in one transaction; return each one's result, or the exception that kept it from being done.

    If one of them fails, nothing of that transaction remains, and each is run again in its own.
    """
    try:
        prepared = [write.prepare() for write in batch]
        connection.execute("BEGIN IMMEDIATE")
        transaction = Transaction(connection)
        outcomes = _apply(transaction, batch, prepared)
        transaction.finish()
        connection.execute("COMMIT")
    except Exception as error:  # noqa: BLE001 - handed to whoever asked for the write
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        if len(batch) == 1:
            return [error]
        return [outcome for write in batch for outcome in _commit(connection, [write])]
    return outcomes


def _apply(transaction: Transaction, batch: list[_Write], prepared: list[Any]) -> list[Any]:
    """Apply writes in order; puts that follow each other as one, which looks up once what they go over."""
    outcomes: list[Any] = []
    for is_put, run in groupby(zip(batch, prepared, strict=True), lambda pair: pair[0].apply is Transaction.put):
        writes = list(run)
        if is_put:
            records = iter(transaction.put([one for _, of in writes for one in of]))
            outcomes += [list(islice(records, len(of))) for _, of in writes]
        else:
            outcomes += [write.apply(transaction, of) for write, of in writes]
    return outcomes


@contextmanager
def _driver_errors(path: str) -> Iterator[None]:
    """Turn the driver's errors into ours."""
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        raise _as_ours(error, path) from error


def _as_ours(error: Exception, path: str) -> Exception:
    """Return a driver's error as ours, with its cause; any other as it is."""
    if isinstance(error, sqlite3.Error):
        ours = StoreError(f"the store {path!r} failed: {error}")
    elif isinstance(error, OSError):
        ours = StoreError(f"the store {path!r} cannot be opened: {error.strerror}")
    else:
        return error
    ours.__cause__ = error
    return ours


async def _open_writer(path: str) -> tuple[Connection, bool]:
    """Connect for writing, or for reading alone where that is all one can do; tell which."""
    if not is_memory(path):
        await asyncio.to_thread(make_file, path)
    connection = await open_connection(path)
    try:
        await connection.run(prepare_file)
    except sqlite3.OperationalError as error:
        await connection.close()
        if not is_refusal(error):
            raise
        return await open_connection(path, read_only=True), True
    except BaseException:
        await connection.close()
        raise
    return connection, False


async def _open_readers(path: str, writer: Connection, *, read_only: bool) -> list[Connection]:
    if is_memory(path) or read_only:
        return [writer]
    return [await open_connection(path) for _ in range(_READERS)]
