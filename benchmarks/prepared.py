"""The rows that a store wrote, to be inserted again by SQLite alone into the same tables: the floor of writing.

Nothing here knows the schema; it reads the statements and rows of a finished file.
"""

import sqlite3
from dataclasses import dataclass
from pathlib import Path

__all__ = ["PreparedRows"]

_MADE = """
SELECT type, name, sql FROM sqlite_master
WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%' ORDER BY type = 'table' DESC
"""


@dataclass(frozen=True, slots=True)
class PreparedRows:
    """A file's statements, and its rows by table."""

    statements: list[str]
    rows: dict[str, list[tuple[object, ...]]]

    @classmethod
    def of(cls, path: Path) -> "PreparedRows":
        """Read what a closed store wrote."""
        connection = sqlite3.connect(path)
        made = connection.execute(_MADE).fetchall()
        tables = [name for kind, name, _ in made if kind == "table"]
        rows = {name: connection.execute(f"SELECT * FROM {name}").fetchall() for name in tables}  # noqa: S608
        connection.close()
        return cls([sql for *_, sql in made], rows)

    def file(self, path: Path) -> sqlite3.Connection:
        """Return a connection to a new file with the same tables, as durable as ours (WAL, synchronous = FULL)."""
        connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        for statement in self.statements:
            connection.execute(statement)
        return connection

    def insert(self, connection: sqlite3.Connection) -> None:
        """Insert every row in one transaction, which is on the disk when this returns."""
        connection.execute("BEGIN IMMEDIATE")
        for table, rows in self.rows.items():
            if rows:
                marks = ",".join("?" * len(rows[0]))
                connection.executemany(f"INSERT INTO {table} VALUES ({marks})", rows)  # noqa: S608
        connection.execute("COMMIT")
