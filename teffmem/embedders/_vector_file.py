"""A bounded file of vectors by key, shared by any number of processes. Synchronous: for one thread at a time."""

import logging
import os
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import count
from pathlib import Path

import numpy as np

from teffmem._files import make_file
from teffmem.errors import StoreError
from teffmem.items import Vector

__all__ = ["VectorFile"]

logger = logging.getLogger("teffmem")

_APPLICATION_ID = 0x7465666D  # "tefm": tells a cache from somebody's database
_VERSION = 1
_BROKEN = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
_KEYS_A_QUERY = 500  # well under SQLite's bound of parameters, whichever way it was built
_SECONDS_FOR_A_LOCK = 1.0  # asking the embedder again is no dearer than a longer wait
_TABLE = "CREATE TABLE vectors (key BLOB PRIMARY KEY, vector BLOB NOT NULL, used INTEGER NOT NULL)"
_NEXT_USE = "(SELECT coalesce(max(used), 0) + 1 FROM vectors)"


class VectorFile:
    """Keeps vectors by key on disk, those used last.

    It is a cache: a fault of the file (locked, full, not writable) is logged once and costs time, never an answer. A
    file that is broken is put aside under another name, and begun anew.
    """

    def __init__(self, path: str, max_items: int) -> None:
        self._path = path
        self._max_items = max_items
        self._connection: sqlite3.Connection | None = None
        self._process = 0
        self._reported: set[str] = set()

    def read(self, keys: Sequence[bytes]) -> dict[bytes, Vector]:
        """Return the vectors of those keys that are there, and count them as used.

        Raises:
            StoreError: The file is no cache, or one of a later version; it is left as it is.
        """
        found: dict[bytes, Vector] = {}
        try:
            found = self._read(keys)
            self._count_as_used(list(found))
        except (sqlite3.Error, OSError) as error:
            self._recover(error)
        return found

    def write(self, vectors: Mapping[bytes, Vector]) -> None:
        """Keep vectors, and let go of those used longest ago beyond the bound. Raises as `read` does."""
        try:
            self._write(vectors)
        except (sqlite3.Error, OSError) as error:
            self._recover(error)

    def close(self) -> None:
        """Close the file; a later call opens it again."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _read(self, keys: Sequence[bytes]) -> dict[bytes, Vector]:
        connection = self._open()
        found: dict[bytes, Vector] = {}
        for start in range(0, len(keys), _KEYS_A_QUERY):
            part = keys[start : start + _KEYS_A_QUERY]
            rows = connection.execute(f"SELECT key, vector FROM vectors WHERE key IN ({_marks(part)})", part)  # noqa: S608
            vectors = {key: np.frombuffer(blob, dtype="<f4").astype(np.float32) for key, blob in rows}
            found.update((key, vector) for key, vector in vectors.items() if vector.size and np.isfinite(vector).all())
        return found

    def _count_as_used(self, keys: Sequence[bytes]) -> None:
        for start in range(0, len(keys), _KEYS_A_QUERY):
            part = keys[start : start + _KEYS_A_QUERY]
            statement = f"UPDATE vectors SET used = {_NEXT_USE} WHERE key IN ({_marks(part)})"  # noqa: S608
            self._open().execute(statement, part)

    def _write(self, vectors: Mapping[bytes, Vector]) -> None:
        connection = self._open()
        connection.execute("BEGIN IMMEDIATE")
        try:
            (use,) = connection.execute(f"SELECT {_NEXT_USE}").fetchone()
            connection.executemany(
                "INSERT OR REPLACE INTO vectors VALUES (?, ?, ?)",
                ((key, vector.astype("<f4").tobytes(), use) for key, vector in vectors.items()),
            )
            (held,) = connection.execute("SELECT count(*) FROM vectors").fetchone()
            if held > self._max_items:
                connection.execute(
                    "DELETE FROM vectors WHERE key IN (SELECT key FROM vectors ORDER BY used LIMIT ?)",
                    (held - self._max_items,),
                )
            connection.execute("COMMIT")
        except BaseException:
            connection.rollback()
            raise

    def _open(self) -> sqlite3.Connection:
        if self._connection is None or self._process != os.getpid():  # a connection does not survive a fork
            make_file(self._path)
            connection = sqlite3.connect(
                self._path, timeout=_SECONDS_FOR_A_LOCK, isolation_level=None, check_same_thread=False
            )
            try:
                _prepare(connection, self._path)
            except BaseException:
                connection.close()
                raise
            self._connection, self._process = connection, os.getpid()
        return self._connection

    def _recover(self, error: sqlite3.Error | OSError) -> None:
        """Log a fault, the first time that it happens; put a broken file aside."""
        self.close()
        kind = getattr(error, "sqlite_errorname", None) or type(error).__name__
        broken = getattr(error, "sqlite_errorcode", 0) & 0xFF in _BROKEN
        if broken:
            self._put_aside()
        if kind not in self._reported:
            self._reported.add(kind)
            done = "it was put aside and begun anew" if broken else "embedding goes on without it"
            logger.warning("the embedding cache %s failed (%s): %s", self._path, kind, done)

    def _put_aside(self) -> None:
        """Rename the file and its logs; whatever it was, nothing is deleted."""
        free = next(name for n in count(1) if not os.path.lexists(name := f"{self._path}.broken{n}"))
        for end in ("", "-wal", "-shm", "-journal"):
            with suppress(OSError):
                Path(self._path + end).replace(free + end)


def _prepare(connection: sqlite3.Connection, path: str) -> None:
    """Make the table in an empty file.

    Raises:
        StoreError: The file is no cache, or one of a later version.
    """
    if not _is_cache(connection, path):
        _create(connection, path)
    connection.execute("PRAGMA synchronous = NORMAL")
    with suppress(sqlite3.OperationalError):  # refused while others open the file; it helps, but is not needed
        connection.execute("PRAGMA journal_mode = WAL")


def _create(connection: sqlite3.Connection, path: str) -> None:
    connection.execute("BEGIN IMMEDIATE")
    try:
        if not _is_cache(connection, path):  # made by another process meanwhile
            connection.execute(_TABLE)
            connection.execute("CREATE INDEX vectors_by_use ON vectors (used)")
            connection.execute(f"PRAGMA user_version = {_VERSION}")
            connection.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
        connection.execute("COMMIT")
    except BaseException:
        connection.rollback()
        raise


def _is_cache(connection: sqlite3.Connection, path: str) -> bool:
    """Tell whether the file is made already; False if it is empty."""
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if application == _APPLICATION_ID and version > _VERSION:
        raise StoreError(f"the embedding cache {path!r} was made by a later version of teffmem; use another path")
    if application != _APPLICATION_ID and tables:
        raise StoreError(f"{path!r} is a database of something else than an embedding cache; use another path")
    return bool(application == _APPLICATION_ID)


def _marks(keys: Sequence[bytes]) -> str:
    return ", ".join("?" * len(keys))
