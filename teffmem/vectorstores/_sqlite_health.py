"""What can be said of a SQLite store's file without changing it, or opening it as a store."""

import os
import sqlite3
from dataclasses import dataclass
from pathlib import Path

from teffmem.errors import StoreError
from teffmem.vectorstores._sqlite_connection import connect_read_only
from teffmem.vectorstores._sqlite_schema import SCHEMA_VERSION, check_header

__all__ = ["FileHealth", "examine", "faults", "is_writable"]

_WORST = 10  # faults; a broken file can have millions


@dataclass(frozen=True, slots=True)
class FileHealth:
    """A file as it is found.

    Attributes:
        size: Bytes, the write-ahead log included.
        schema_version: The file's own.
        known_version: The latest that this teffmem can read.
        fingerprint: That of the embedder its vectors come from; None before the first put.
    """

    size: int
    schema_version: int
    known_version: int
    fingerprint: str | None


def examine(path: str) -> FileHealth:
    """Look at a file.

    Raises:
        StoreError: It is no file of teffmem's, or of a later version.
        OSError: It cannot be read.
    """
    size = Path(path).stat().st_size
    log = Path(f"{path}-wal")
    try:
        connection = connect_read_only(path)
        try:
            check_header(connection)
            (version,) = connection.execute("PRAGMA user_version").fetchone()
            query = "SELECT value FROM meta WHERE name = 'fingerprint'"
            row = connection.execute(query).fetchone() if version else None
        finally:
            connection.close()
    except sqlite3.Error as error:
        raise StoreError(f"the store {path!r} cannot be read: {error}") from error
    size += log.stat().st_size if log.exists() else 0
    return FileHealth(size, version, SCHEMA_VERSION, None if row is None else str(row[0]))


def faults(path: str) -> list[str]:
    """Read the whole file, and return what SQLite finds broken in it; [] if nothing is."""
    try:
        connection = connect_read_only(path)
        try:
            rows = connection.execute(f"PRAGMA integrity_check({_WORST})").fetchall()
        finally:
            connection.close()
    except sqlite3.Error as error:
        return [str(error)]
    return [str(row[0]) for row in rows if row[0] != "ok"]


def is_writable(path: str) -> bool:
    """Tell whether the file, or the first folder above it that is there, can be written by this user."""
    file = Path(path).absolute()
    if file.exists():
        return os.access(file, os.W_OK) and os.access(file.parent, os.W_OK)
    above = next(folder for folder in file.parents if folder.exists())
    return above.is_dir() and os.access(above, os.W_OK)
