"""Reading from a SQLite store: functions for the inside of one read transaction."""

import json
import logging
import sqlite3
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from teffmem.errors import StoreError
from teffmem.filters import match
from teffmem.items import Record
from teffmem.namespace import Namespace, decode, encode
from teffmem.protocols import Selection
from teffmem.vectorstores._scope import NEVER, Rows
from teffmem.vectorstores._search import Floats, Ids
from teffmem.vectorstores._sqlite_filter import narrowing
from teffmem.vectorstores._vectors import LARGE

__all__ = ["Scope", "Source", "count", "find_scope", "get", "live_namespaces", "read", "read_one", "selected"]

logger = logging.getLogger("teffmem")

_decode = json.JSONDecoder().raw_decode

Scope = tuple[int, int, int]
"""A scope's id, and the stamps of its last write and its last deletion."""

Row = tuple[Any, ...]

_BYTES_BESIDE_VECTOR = 400  # of a record in an index, about: its words and its places
_PIECE = 2000  # rows fetched at a time

_RECORD = """
SELECT items.id, scopes.path, items.key, items.value, items.text, items.indexed, items.thread, items.stamp,
       items.place, items.created_at, items.updated_at, items.ttl, items.expires_at
FROM items JOIN scopes ON scopes.id = items.scope
"""


def find_scope(connection: sqlite3.Connection, namespace: Namespace) -> Scope | None:
    """Return the scope of a namespace; None if nothing lives in or below it."""
    row: Scope | None = connection.execute(
        "SELECT id, changed, shrunk FROM scopes WHERE path = ?", (encode(namespace),)
    ).fetchone()
    return row


def get(connection: sqlite3.Connection, namespace: Namespace, keys: Iterable[str], now: float) -> list[Record | None]:
    """Return the live record of each key."""
    scope = find_scope(connection, namespace)
    if scope is None:
        return [None for _ in keys]
    query = f"{_RECORD} WHERE items.scope = ? AND items.key = ? AND {_LIVE}"
    rows = [connection.execute(query, (scope[0], key, now)).fetchone() for key in keys]
    return [None if row is None else _read_named(row) for row in rows]


_LIVE = "(items.expires_at IS NULL OR items.expires_at > ?)"


def selected(
    connection: sqlite3.Connection, selection: Selection, *, newest_first: bool, after: int = 0
) -> Iterator[tuple[int, Record]]:
    """Yield what is selected with its ids, in the order of stamps, reading no more than is asked for."""
    scope = find_scope(connection, selection.namespace)
    if scope is None:
        return
    order = "DESC" if newest_first else "ASC"
    own = "" if selection.recursive else "AND items.scope = listing.scope"
    fitting, parameters = narrowing(selection.condition)
    rows = connection.execute(
        f"{_RECORD} JOIN listing ON listing.item = items.id "
        f"WHERE listing.scope = ? AND listing.stamp > ? AND {_LIVE} {own} AND {fitting} "
        f"ORDER BY listing.stamp {order}",
        (scope[0], after, selection.now, *parameters),
    )
    for row in rows:
        record = read_one(row)
        if record is not None and match(selection.condition, record.value):
            yield row[0], record


def count(connection: sqlite3.Connection, selection: Selection) -> int:
    """Count what is selected."""
    if selection.condition is not None or not selection.recursive:
        return sum(1 for _ in selected(connection, selection, newest_first=False))
    scope = find_scope(connection, selection.namespace)
    if scope is None:
        return 0
    if selection.namespace:
        counted = (
            f"SELECT count(*) FROM listing JOIN items ON items.id = listing.item WHERE listing.scope = ? AND {_LIVE}"
        )
        (live,) = connection.execute(counted, (scope[0], selection.now)).fetchone()
    else:
        (live,) = connection.execute(f"SELECT count(*) FROM items WHERE {_LIVE}", (selection.now,)).fetchone()
    return int(live)


def live_namespaces(connection: sqlite3.Connection, top: Namespace, now: float) -> list[Namespace]:
    """Return the namespaces at and below ``top`` that hold a live record of their own."""
    path = encode(top)
    rows = connection.execute(
        "SELECT path FROM scopes WHERE path >= ? AND path < ? "
        f"AND EXISTS (SELECT 1 FROM items WHERE items.scope = scopes.id AND {_LIVE}) ORDER BY path",
        (path, path + b"\xff", now),
    )
    return [decode(path) for (path,) in rows]


class Source:
    """A scope's truth, as `ScopeSource` asks for it."""

    def __init__(self, connection: sqlite3.Connection, scope: Scope, selection: Selection) -> None:
        self._connection = connection
        self._scope, self.changed, self.shrunk = scope
        self._selection = selection

    def size(self) -> int:
        """Return how many bytes an index of the scope would take, about."""
        (count,) = self._connection.execute("SELECT count(*) FROM listing WHERE scope = ?", (self._scope,)).fetchone()
        row = self._connection.execute("SELECT coalesce(length(vector), 0) FROM searchable LIMIT 1").fetchone()
        vector = row[0] if row else 0
        return int(count) * (_BYTES_BESIDE_VECTOR + (vector if count < LARGE else vector // 4))

    def present(self) -> Ids:
        return self._ids("SELECT item FROM listing WHERE scope = ?", self._scope)

    def written_since(self, stamp: int) -> Ids:
        return self._ids("SELECT item FROM listing WHERE scope = ? AND stamp > ?", self._scope, stamp)

    def rows_since(self, stamp: int) -> Iterator[Rows]:
        cursor = self._connection.execute(_INDEX_ROWS, (self._scope, stamp))
        while rows := cursor.fetchmany(_PIECE):
            yield _as_rows(rows)

    def expiries(self, ids: Ids) -> NDArray[np.float64]:
        found = dict(
            self._connection.execute(
                "SELECT id, coalesce(expires_at, 9e999) FROM items WHERE id IN (SELECT value FROM json_each(?))",
                (_json(ids),),
            ).fetchall()
        )
        return np.array([found.get(id_, -NEVER) for id_ in ids.tolist()], np.float64)

    def records(self, ids: Ids) -> dict[int, Record]:
        fitting, parameters = narrowing(self._selection.condition)
        query = f"{_RECORD} WHERE items.id IN (SELECT value FROM json_each(?)) AND {_LIVE} AND {fitting}"
        found: dict[int, Record] = {}
        for row in self._connection.execute(query, (_json(ids), self._selection.now, *parameters)).fetchall():
            record = read_one(row)
            if record is not None and self._admits(record):
                found[row[0]] = record
        return found

    def vectors(self, ids: Ids) -> Floats:
        query = "SELECT item, vector FROM searchable WHERE item IN (SELECT value FROM json_each(?))"
        found: dict[int, bytes] = dict(self._connection.execute(query, (_json(ids),)).fetchall())
        return _as_vectors([found[id_] for id_ in ids.tolist()])

    def all_vectors(self) -> Iterator[tuple[Ids, Floats]]:
        cursor = self._connection.execute(
            "SELECT searchable.item, searchable.vector FROM listing JOIN searchable ON searchable.item = listing.item "
            "WHERE listing.scope = ?",
            (self._scope,),
        )
        while rows := cursor.fetchmany(_PIECE):
            ids, vectors = zip(*rows, strict=True)
            yield np.array(ids, np.int64), _as_vectors(vectors)

    def numbers(self, field: str) -> dict[int, float]:
        cursor = self._connection.execute(
            "SELECT listing.item, min(max(field.atom, 0), 1) FROM listing JOIN items ON items.id = listing.item, "
            "json_each(CASE WHEN json_valid(items.value) THEN items.value END) AS field "
            "WHERE listing.scope = ? AND field.key = ? AND field.type IN ('integer', 'real')",
            (self._scope, field),
        )
        return dict(cursor.fetchall())

    def _ids(self, query: str, *parameters: int) -> Ids:
        rows = self._connection.execute(query, parameters).fetchall()
        return np.fromiter((id_ for (id_,) in rows), np.int64, len(rows))

    def _admits(self, record: Record) -> bool:
        selection = self._selection
        here = selection.recursive or record.namespace == selection.namespace
        return here and match(selection.condition, record.value)


_INDEX_ROWS = """
SELECT items.id, coalesce(items.expires_at, 9e999), items.updated_at, searchable.thread, items.place,
       searchable.length, searchable.terms, searchable.vector
FROM listing JOIN items ON items.id = listing.item JOIN searchable ON searchable.item = listing.item
WHERE listing.scope = ? AND listing.stamp > ? ORDER BY listing.stamp
"""


def read(row: Row) -> Record:
    """Return the record that a row of the tables holds."""
    _, path, key, value, text, indexed, *columns = row
    return Record(_namespace(path), key, _decode(value)[0], text, bool(indexed), *columns)


def read_one(row: Row) -> Record | None:
    """Return the record of a row among many; None for one that is damaged, which is logged by its id and key."""
    try:
        return read(row)
    except ValueError as error:
        logger.warning("item %d of this store is damaged and was left out: %s", row[0], type(error).__name__)
        return None


def _read_named(row: Row) -> Record:
    """Return the record of a row that was asked for by its key.

    Raises:
        StoreError: It is damaged; the message has its id and key.
    """
    try:
        return read(row)
    except ValueError:
        damaged = f"item {row[0]} of this store, {row[2]!r}, is damaged; put it anew or delete it"
        raise StoreError(damaged) from None  # the cause would carry the text


@lru_cache(maxsize=4096)
def _namespace(path: bytes) -> Namespace:
    return decode(path)


def _json(ids: Ids) -> str:
    return f"[{','.join(map(str, ids.tolist()))}]"


def _as_rows(rows: list[tuple[int, float, float, int, int, int, bytes, bytes | None]]) -> Rows:
    ids, expires, updated, threads, places, lengths, terms, vectors = zip(*rows, strict=True)
    return Rows(
        ids=np.array(ids, np.int64),
        expires=np.array(expires, np.float64),
        updated=np.array(updated, np.float64),
        threads=np.array(threads, np.int64),
        places=np.array(places, np.int64),
        lengths=np.array(lengths, np.float32),
        sizes=np.array([len(packed) // 8 for packed in terms], np.int64),
        terms=np.frombuffer(b"".join(terms), np.uint64),
        vectors=None if vectors[0] is None else _as_vectors(vectors),
    )


def _as_vectors(vectors: Iterable[bytes]) -> Floats:
    vectors = list(vectors)
    return np.frombuffer(b"".join(vectors), np.float32).reshape(len(vectors), -1)
