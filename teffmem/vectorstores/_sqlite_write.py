"""Writing to a SQLite store: functions for the inside of one transaction."""

import json
import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Self

from teffmem.items import Draft, Record
from teffmem.namespace import Namespace, decode, encode, lineage
from teffmem.text import analyse
from teffmem.vectorstores._scope import thread_number

__all__ = ["Doomed", "Prepared", "Transaction"]

Doomed = tuple[int, int, int]
"""Of a record that is to go: its id, its scope's id, its stamp."""


@dataclass(frozen=True, slots=True, eq=False)
class Prepared:
    """A draft with all that can be worked out before the transaction begins."""

    draft: Draft
    value: str
    length: int
    terms: bytes
    vector: bytes | None

    @classmethod
    def of(cls, draft: Draft) -> Self:
        """Analyse the draft's words and encode its value and vector."""
        text = (draft.text if draft.text is not None else draft.value["text"]) if draft.indexed else ""
        terms = analyse(text)
        vector = None if draft.vector is None else draft.vector.tobytes()
        return cls(draft, json.dumps(draft.value, ensure_ascii=False), terms.length, terms.packed.tobytes(), vector)


class Transaction:
    """What one transaction does, and notes of it for the indexes: which scopes changed, and when."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        (self._stamp,) = connection.execute("SELECT changed FROM scopes WHERE path = x''").fetchone()
        self._lineages: dict[Namespace, list[int]] = {}
        self._changed: dict[int, int] = {}
        self._shrunk: dict[int, int] = {}

    def put(self, prepared: Sequence[Prepared], now: float) -> list[Record | None]:
        """Write drafts, each (namespace, key) once."""
        records: list[Record | None] = []
        items: list[tuple[object, ...]] = []
        searchable: list[tuple[object, ...]] = []
        unindexed: list[tuple[int]] = []
        listed: list[tuple[int, int, int]] = []
        unlisted: list[tuple[int, int]] = []
        (last_id,) = self._connection.execute("SELECT coalesce(max(id), 0) FROM items").fetchone()
        for one in prepared:
            draft = one.draft
            scopes = self._lineage(draft.namespace)
            found = self._previous(draft, scopes[-1])
            stamp = self._next(now)
            record = draft.over(found[1] if found else None, stamp=stamp, now=now)
            records.append(record)
            if record is None:
                continue
            if found is not None:
                id_, previous = found
                unlisted.extend((scope, previous.stamp) for scope in scopes)
            else:
                id_ = last_id = last_id + 1
            items.append(_item_row(id_, scopes[-1], one.value, record))
            listed.extend((scope, stamp, id_) for scope in scopes)
            if record.indexed:
                searchable.append((id_, thread_number(record), one.length, one.terms, one.vector))
            else:
                unindexed.append((id_,))
            self._changed.update(dict.fromkeys(scopes, stamp))
        execute = self._connection.executemany
        execute("DELETE FROM listing WHERE scope = ? AND stamp = ?", unlisted)
        execute(_PUT_ITEM, items)
        execute("INSERT INTO listing VALUES (?, ?, ?)", listed)
        execute("REPLACE INTO searchable VALUES (?, ?, ?, ?, ?)", searchable)
        execute("DELETE FROM searchable WHERE item = ?", unindexed)
        return records

    def remove(self, doomed: Iterable[Doomed], now: float) -> None:
        """Remove records, and the scopes that hold nothing afterwards."""
        doomed = list(doomed)
        if not doomed:
            return
        stamp = self._next(now)
        own = {scope for _, scope, _ in doomed}
        lineages = {scope: self._lineage(self._namespace(scope)) for scope in own}
        listed = [(scope, of) for _, own_scope, of in doomed for scope in lineages[own_scope]]
        ids = [(id_,) for id_, _, _ in doomed]
        execute = self._connection.executemany
        execute("DELETE FROM listing WHERE scope = ? AND stamp = ?", listed)
        execute("DELETE FROM searchable WHERE item = ?", ids)
        execute("DELETE FROM items WHERE id = ?", ids)
        for scope in {scope for line in lineages.values() for scope in line}:
            self._changed[scope] = self._shrunk[scope] = stamp
            if scope != self._lineage(())[0] and not self._holds(scope):
                self._connection.execute("DELETE FROM scopes WHERE id = ?", (scope,))
                self._lineages.clear()

    def finish(self) -> None:
        """Note in each scope what happened to it; to be called once, before the commit."""
        execute = self._connection.executemany
        execute("UPDATE scopes SET changed = ? WHERE id = ?", ((stamp, scope) for scope, stamp in self._changed.items()))
        execute("UPDATE scopes SET shrunk = ? WHERE id = ?", ((stamp, scope) for scope, stamp in self._shrunk.items()))

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
        return self._connection.execute("SELECT 1 FROM listing WHERE scope = ? LIMIT 1", (scope,)).fetchone() is not None

    def _previous(self, draft: Draft, scope: int) -> tuple[int, Record] | None:
        """Return the record that a draft goes over, without its value, and its id."""
        row = self._connection.execute(_PREVIOUS, (scope, draft.key)).fetchone()
        if row is None:
            return None
        id_, thread, stamp, place, created_at, updated_at, expires_at = row
        return id_, Record(
            namespace=draft.namespace,
            key=draft.key,
            value={},
            text=None,
            indexed=False,
            thread=thread,
            stamp=stamp,
            place=place,
            created_at=created_at,
            updated_at=updated_at,
            ttl=None,
            expires_at=expires_at,
        )


_PREVIOUS = """
SELECT id, thread, stamp, place, created_at, updated_at, expires_at FROM items WHERE scope = ? AND key = ?
"""

_PUT_ITEM = "REPLACE INTO items VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"


def _item_row(id_: int, scope: int, value: str, record: Record) -> tuple[object, ...]:
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
