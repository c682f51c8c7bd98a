"""Writing to a SQLite store: functions for the inside of one transaction."""

import json
import sqlite3
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Self

from teffmem.items import Draft, Record
from teffmem.namespace import Namespace, decode, encode, lineage
from teffmem.text import analyse
from teffmem.vectorstores._scope import thread_number

__all__ = ["Doomed", "Prepared", "Transaction"]

_Standing = dict[str, tuple[int, Record | None]]
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode

Doomed = tuple[int, int, int]
"""Of a record that is to go: its id, its scope's id, its stamp."""


@dataclass(slots=True, eq=False)
class Prepared:
    """A draft with all that can be worked out before the transaction begins; ``now`` is the moment of the call."""

    draft: Draft
    now: float
    value: str
    length: int
    terms: bytes
    vector: bytes | None

    @classmethod
    def of(cls, draft: Draft, now: float) -> Self:
        """Analyse the draft's words and encode its value and vector."""
        is_analysed = draft.indexed and not draft.same_text
        terms = analyse((draft.value["text"] if draft.text is None else draft.text) if is_analysed else "")
        vector = None if draft.vector is None else draft.vector.tobytes()
        return cls(draft, now, _encode(draft.value), terms.length, terms.packed.tobytes(), vector)


@dataclass(frozen=True, slots=True, eq=False)
class _Changes:
    """Rows that a batch of drafts writes to and takes from the tables."""

    items: list[tuple[object, ...]] = field(default_factory=list)
    searchable: list[tuple[object, ...]] = field(default_factory=list)
    unsearchable: list[tuple[int]] = field(default_factory=list)
    listed: list[tuple[int, int, int]] = field(default_factory=list)
    unlisted: list[tuple[int, int]] = field(default_factory=list)

    def write(self, connection: sqlite3.Connection) -> None:
        connection.executemany("DELETE FROM listing WHERE scope = ? AND stamp = ?", self.unlisted)
        connection.executemany("REPLACE INTO items VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", self.items)
        connection.executemany("INSERT INTO listing VALUES (?, ?, ?)", self.listed)
        connection.executemany("DELETE FROM searchable WHERE item = ?", self.unsearchable)
        connection.executemany("REPLACE INTO searchable VALUES (?, ?, ?, ?, ?)", self.searchable)


class Transaction:
    """What one transaction does, and notes of it for the indexes: which scopes changed, and when.

    Rows of puts that follow each other are gathered, and written before anything else looks at the tables.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._root: int
        self._stamp: int
        self._root, self._stamp = connection.execute("SELECT id, changed FROM scopes WHERE path = x''").fetchone()
        (self._last_id,) = connection.execute("SELECT coalesce(max(id), 0) FROM items").fetchone()
        self._changes = _Changes()
        self._unwritten: set[tuple[Namespace, str]] = set()
        self._lineages: dict[Namespace, list[int]] = {}
        self._changed: dict[int, int] = {}
        self._shrunk: dict[int, int] = {}

    @property
    def connection(self) -> sqlite3.Connection:
        """The connection, everything that was put written."""
        if self._unwritten:
            self._changes.write(self._connection)
            self._changes = _Changes()
            self._unwritten.clear()
        return self._connection

    def put(self, prepared: Sequence[Prepared]) -> list[Record | None]:
        """Write drafts, in order."""
        keys: dict[Namespace, list[str]] = defaultdict(list)
        for one in prepared:
            keys[one.draft.namespace].append(one.draft.key)
        connection = self.connection
        standing = {namespace: self._standing(connection, namespace, of) for namespace, of in keys.items()}
        return [self._put(one, standing[one.draft.namespace]) for one in prepared]

    def _put(self, prepared: Prepared, standing: _Standing) -> Record | None:
        draft = prepared.draft
        name = (draft.namespace, draft.key)
        if name in self._unwritten:
            standing |= self._standing(self.connection, draft.namespace, [draft.key])
        changes = self._changes
        scopes = self._lineage(draft.namespace)
        id_, previous = standing.get(draft.key, (0, None))
        stamp = self._next(prepared.now)
        record = draft.over(previous, stamp=stamp, now=prepared.now)
        if record is None:
            return None
        if previous is None:
            id_ = self._last_id = self._last_id + 1
        else:
            changes.unlisted.extend([(scope, previous.stamp) for scope in scopes])
        changes.items.append(_item_row(id_, scopes[-1], prepared.value, record))
        changes.listed.extend([(scope, stamp, id_) for scope in scopes])
        if not record.indexed:
            changes.unsearchable.append((id_,))
        elif not draft.same_text:
            thread = thread_number(record)
            changes.searchable.append((id_, thread, prepared.length, prepared.terms, prepared.vector))
        self._unwritten.add(name)
        for scope in scopes:
            self._changed[scope] = stamp
        return record

    def remove(self, doomed: Sequence[Doomed], now: float) -> None:
        """Remove records, and the scopes that hold nothing afterwards."""
        if not doomed:
            return
        stamp = self._next(now)
        lineages = {scope: self._lineage(self._namespace(scope)) for scope in {scope for _, scope, _ in doomed}}
        connection = self.connection
        listed = [(scope, listed_at) for _, own, listed_at in doomed for scope in lineages[own]]
        ids = [(id_,) for id_, _, _ in doomed]
        connection.executemany("DELETE FROM listing WHERE scope = ? AND stamp = ?", listed)
        connection.executemany("DELETE FROM searchable WHERE item = ?", ids)
        connection.executemany("DELETE FROM items WHERE id = ?", ids)
        touched = {scope for line in lineages.values() for scope in line}
        self._changed.update(dict.fromkeys(touched, stamp))
        self._shrunk.update(dict.fromkeys(touched, stamp))
        empty = [scope for scope in touched if scope != self._root and not self._holds(scope)]
        connection.executemany("DELETE FROM scopes WHERE id = ?", ((scope,) for scope in empty))
        self._lineages.clear()

    def finish(self) -> None:
        """Note in each scope what happened to it; to be called once, before the commit."""
        for column, stamps in (("changed", self._changed), ("shrunk", self._shrunk)):
            rows = [(stamp, scope) for scope, stamp in stamps.items()]
            self.connection.executemany(f"UPDATE scopes SET {column} = ? WHERE id = ?", rows)

    def _next(self, now: float) -> int:
        self._stamp = max(self._stamp + 1, int(now * 1e6))
        return self._stamp

    def _lineage(self, namespace: Namespace) -> list[int]:
        """Return the ids of the scopes from the root down to a namespace, making those that are missing."""
        if namespace not in self._lineages:
            self._lineages[namespace] = [self._scope(encode(above)) for above in lineage(namespace)]
        return self._lineages[namespace]

    def _scope(self, path: bytes) -> int:
        row = self._connection.execute("SELECT id FROM scopes WHERE path = ?", (path,)).fetchone()
        if row is None:
            row = self._connection.execute("INSERT INTO scopes (path) VALUES (?) RETURNING id", (path,)).fetchone()
        return int(row[0])

    def _namespace(self, scope: int) -> Namespace:
        (path,) = self._connection.execute("SELECT path FROM scopes WHERE id = ?", (scope,)).fetchone()
        return decode(path)

    def _holds(self, scope: int) -> bool:
        found = self._connection.execute("SELECT 1 FROM listing WHERE scope = ? LIMIT 1", (scope,)).fetchone()
        return found is not None

    def _standing(self, connection: sqlite3.Connection, namespace: Namespace, keys: list[str]) -> _Standing:
        """Return the records, without their values, that stand under these keys, live or expired."""
        scope = self._lineage(namespace)[-1]
        if len(keys) == 1:
            found = connection.execute(f"{_STANDING} AND key = ?", (scope, keys[0]))
        else:
            among = f"{_STANDING} AND key IN (SELECT value FROM json_each(?))"
            found = connection.execute(among, (scope, json.dumps(keys)))
        return {key: (id_, Record(namespace, key, {}, None, False, *columns)) for id_, key, *columns in found}


_STANDING = """
SELECT id, key, thread, stamp, place, created_at, updated_at, ttl, expires_at FROM items WHERE scope = ?
"""


def _item_row(id_: int, scope: int, value: str, record: Record) -> tuple[object, ...]:
    """Return the columns of ``items``, in their order."""
    return (
        id_,
        scope,
        record.key,
        value,
        record.text,
        record.indexed,
        record.thread,
        record.stamp,
        record.place,
        record.created_at,
        record.updated_at,
        record.ttl,
        record.expires_at,
    )
