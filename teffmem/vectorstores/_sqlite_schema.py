"""The tables of a SQLite store, and how a file comes by them.

scopes      every namespace that something lives in or below; ``changed`` and ``shrunk`` are the stamps of the last
            write and the last deletion there: an index in memory compares them with what it has seen
items       the truth: one row a record
searchable  what searches of an indexed record need: its words and its vector
listing     every record under each scope it belongs to, by stamp: newest first, in whatever scope, is a walk
meta        the embedder's fingerprint, the analysis that made the words
"""

import sqlite3
import time

from teffmem.errors import StoreError
from teffmem.text import ANALYSIS

__all__ = ["SCHEMA_VERSION", "check_header", "is_refusal", "prepare_file"]

SCHEMA_VERSION = 1
_APPLICATION_ID = 0x7EFF3E3  # tells the file from other SQLite databases

_SCHEMA = """
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE scopes (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    path BLOB NOT NULL UNIQUE,
    changed INTEGER NOT NULL DEFAULT 0,
    shrunk INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE items (
    id INTEGER PRIMARY KEY,
    scope INTEGER NOT NULL REFERENCES scopes (id),
    key TEXT NOT NULL,
    value TEXT NOT NULL,
    text TEXT,
    indexed INTEGER NOT NULL,
    thread TEXT,
    stamp INTEGER NOT NULL,
    place INTEGER NOT NULL,
    created_at REAL NOT NULL,
    updated_at REAL NOT NULL,
    ttl REAL,
    expires_at REAL,
    UNIQUE (scope, key)
);
CREATE INDEX items_by_expiry ON items (expires_at) WHERE expires_at IS NOT NULL;
CREATE TABLE searchable (
    item INTEGER PRIMARY KEY REFERENCES items (id),
    thread INTEGER NOT NULL,
    length INTEGER NOT NULL,
    terms BLOB NOT NULL,
    vector BLOB
);
CREATE TABLE listing (
    scope INTEGER NOT NULL REFERENCES scopes (id),
    stamp INTEGER NOT NULL,
    item INTEGER NOT NULL REFERENCES items (id),
    PRIMARY KEY (scope, stamp)
) WITHOUT ROWID;
"""


def prepare_file(connection: sqlite3.Connection) -> None:
    """Set a connection up for writing, and make the tables in a new file.

    Raises:
        StoreError: The file is something else, or was written by a later version of teffmem.
    """
    check_header(connection)
    _use_write_ahead_log(connection)
    connection.execute("PRAGMA synchronous = FULL")
    if not _is_made(connection):
        connection.execute("BEGIN IMMEDIATE")
        try:
            if not _is_made(connection):  # by another process, meanwhile
                _create(connection)
            connection.execute("COMMIT")
        except BaseException:
            connection.execute("ROLLBACK")
            raise


def is_refusal(error: sqlite3.OperationalError) -> bool:
    """Tell whether an error says that the file cannot be written."""
    return "readonly" in str(error) or "unable to open" in str(error)


def _use_write_ahead_log(connection: sqlite3.Connection) -> None:
    """Switch a new file to its write-ahead log, which SQLite refuses at once while another process does the same."""
    for pause in (0.01, 0.05, 0.2, 1.0, 5.0):
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if "locked" not in str(error):
                raise
            time.sleep(pause)
        else:
            return
    connection.execute("PRAGMA journal_mode = WAL")


def _is_made(connection: sqlite3.Connection) -> bool:
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    return bool(version == SCHEMA_VERSION)


def check_header(connection: sqlite3.Connection) -> None:
    """Refuse a file that is not ours, before anything in it changes."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if application != _APPLICATION_ID and (tables or version):
        raise StoreError("the file is a SQLite database, but not one of teffmem's; name another path")
    if version > SCHEMA_VERSION:
        raise StoreError(
            f"the file has schema version {version}, this teffmem knows up to {SCHEMA_VERSION}: upgrade teffmem; "
            "the file is unchanged"
        )


def _create(connection: sqlite3.Connection) -> None:
    for statement in _SCHEMA.split(";\n"):
        connection.execute(statement)
    connection.execute("INSERT INTO meta VALUES ('analysis', ?)", (ANALYSIS,))
    connection.execute("INSERT INTO scopes (path) VALUES (x'')")
    connection.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
