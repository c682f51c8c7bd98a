"""One SQLite connection on a thread of its own.

aiosqlite brings the thread, its queue and the way back to the event loop. Its own methods hop to the thread once a
statement; `Connection.run` hops once for a whole function, so that a transaction is plain code which no cancellation
can cut in two: a caller that is cancelled goes, the function runs to its end.
"""

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote

import aiosqlite

__all__ = ["Connection", "connect_read_only", "is_memory", "open_connection"]

T = TypeVar("T")

_WAIT = 60.0  # seconds for another process to finish its write


class Connection(aiosqlite.Connection):
    """An aiosqlite connection that also runs whole functions."""

    def __init__(self, connect: Callable[[], sqlite3.Connection]) -> None:
        super().__init__(connect, iter_chunk_size=64)
        self._thread.daemon = True  # a store that nobody closed must not keep the interpreter from ending
        self.waiting = 0
        """How many functions are queued or running."""

    async def run(self, function: Callable[[sqlite3.Connection], T]) -> T:
        """Run ``function`` in the connection's thread and return what it returns."""
        self.waiting += 1
        try:
            result: T = await self._execute(lambda: function(self._conn))  # type: ignore[no-untyped-call]
        finally:
            self.waiting -= 1
        return result


def is_memory(path: str) -> bool:
    """Tell whether a path stands for a database in memory."""
    return path == ":memory:"


async def open_connection(path: str, *, read_only: bool = False) -> Connection:
    """Connect to a file, or to a new database in memory.

    Args:
        path: A file's path, or ":memory:".
        read_only: Connect to a file that cannot be written.
    """

    def connect() -> sqlite3.Connection:
        connection = connect_read_only(path) if read_only else sqlite3.connect(path, timeout=_WAIT)
        connection.isolation_level = None  # transactions are ours to begin
        return connection

    connection = Connection(connect)
    await connection
    return connection


def connect_read_only(path: str) -> sqlite3.Connection:
    """Connect to a file that is only to be read; where not even locks can be kept beside it, as to one that stays."""
    uri = f"file:{quote(str(Path(path).absolute()))}?mode=ro"
    connection = sqlite3.connect(uri, uri=True, timeout=_WAIT)
    try:
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.DatabaseError as error:
        connection.close()
        if not isinstance(error, sqlite3.OperationalError):
            raise
        connection = sqlite3.connect(f"{uri}&immutable=1", uri=True, timeout=_WAIT)
    return connection
