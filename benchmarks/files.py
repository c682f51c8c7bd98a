"""The files that are measured, made once and kept under the cache folder, and plain tables with the same content.

A file's name carries a mark of the SQLite schema and the word analysis, so that a change of either makes a new one.
"""

import hashlib
import json
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from benchmarks.workload import Batch, Item, TableEmbedder, batches, items
from teffmem import MemoryStore
from teffmem.text import ANALYSIS

__all__ = ["SCOPES", "PlainTable", "scope_batches", "scopes_file", "users_file"]

SCOPES = (100, 1_000, 10_000, 100_000)

_Content = Callable[[], Iterable[tuple[Batch, list[Item]]]]

_SCOPE_BATCHES = {100: 1_000, 1_000: 1_001, 10_000: 1_002, 100_000: 1_010}  # clear of the batches that users have


async def users_file(cache: Path, count: int) -> Path:
    """Return a file of ``count`` items, in a namespace of 100 for each user."""
    return await _made(cache, f"users-{count}", lambda: _users(count))


async def scopes_file(cache: Path) -> Path:
    """Return a file with one namespace for each size of `SCOPES`: ``("scopes", "100")`` and so on."""
    return await _made(cache, "scopes", _scopes)


def scope_batches(size: int) -> Iterator[Batch]:
    """Yield what the namespace of that size holds."""
    return batches(size, first=_SCOPE_BATCHES[size])


class PlainTable:
    """The values of the same items in a table of three columns and an index: what SQLite alone can do with them."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    @classmethod
    def of_users(cls, cache: Path, count: int) -> "PlainTable":
        """Open the table with the items of `users_file`; make it if it is not there."""
        path = cache / f"plain-{count}.db"
        if not path.exists():
            _make_plain(path, _users(count))
        return cls(sqlite3.connect(path, check_same_thread=False))

    def fetch(self, numbers: list[int]) -> list[object]:
        """Return the decoded values of items by their numbers, in that order."""
        marks = ",".join("?" * len(numbers))
        rows = self._connection.execute(f"SELECT id, value FROM items WHERE id IN ({marks})", numbers)  # noqa: S608 - question marks
        values = {number: json.loads(value) for number, value in rows}
        return [values[number] for number in numbers]

    def newest(self, namespace: str, limit: int) -> list[object]:
        """Return the decoded values of a namespace's last items, last first."""
        query = "SELECT value FROM items WHERE namespace = ? ORDER BY id DESC LIMIT ?"
        return [json.loads(value) for (value,) in self._connection.execute(query, (namespace, limit))]

    def close(self) -> None:
        """Close the file."""
        self._connection.close()


async def _made(cache: Path, name: str, content: _Content) -> Path:
    cache.mkdir(parents=True, exist_ok=True)  # noqa: ASYNC240
    path = cache / f"{name}-{await _mark()}.db"
    if not path.exists():
        unfinished = path.with_suffix(".part")
        for leftover in cache.glob(f"{unfinished.name}*"):  # noqa: ASYNC240
            leftover.unlink()
        await _fill(unfinished, content())
        unfinished.rename(path)
    return path


async def _fill(path: Path, content: Iterable[tuple[Batch, list[Item]]]) -> None:
    embedder = TableEmbedder()
    begun, written = time.monotonic(), 0
    async with MemoryStore.open(path, embedder=embedder) as memory:
        for batch, stored in content:
            embedder.learn(batch)
            await memory.put_many([item.arguments() for item in stored])
            embedder.forget()
            written += len(stored)
            print(f"\r{path.name}: {written:,} items in {time.monotonic() - begun:.0f} s", end="", flush=True)
    print()


async def _mark() -> str:
    """Return eight hex digits of the schema and the word analysis."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "empty.db"
        async with MemoryStore.open(path, embedder=None) as memory:
            await memory.put("mark", "mark", {"text": "mark"})
        connection = sqlite3.connect(path)
        statements = [row[0] or "" for row in connection.execute("SELECT sql FROM sqlite_master ORDER BY name")]
        connection.close()
    return hashlib.sha256("\n".join([ANALYSIS, *statements]).encode()).hexdigest()[:8]


def _users(count: int) -> Iterator[tuple[Batch, list[Item]]]:
    start = 0
    for batch in batches(count):
        yield batch, items(batch, start=start)
        start += len(batch.texts)


def _scopes() -> Iterator[tuple[Batch, list[Item]]]:
    for size in SCOPES:
        start = 0
        for batch in scope_batches(size):
            yield batch, items(batch, ("scopes", str(size)), start=start)
            start += len(batch.texts)


def _make_plain(path: Path, content: Iterable[tuple[Batch, list[Item]]]) -> None:
    unfinished = path.with_suffix(".part")
    unfinished.unlink(missing_ok=True)
    connection = sqlite3.connect(unfinished)
    connection.execute("CREATE TABLE items (id INTEGER PRIMARY KEY, namespace TEXT, value TEXT)")
    connection.execute("CREATE INDEX items_namespace ON items (namespace, id)")
    number = 0
    for _, stored in content:
        rows = [(number + i, item.namespace[-1], json.dumps({"text": item.text})) for i, item in enumerate(stored)]
        connection.executemany("INSERT INTO items VALUES (?, ?, ?)", rows)
        connection.commit()
        number += len(rows)
    connection.close()
    unfinished.rename(path)
