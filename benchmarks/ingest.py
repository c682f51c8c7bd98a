"""How fast are memories written, beside SQLite inserting the same rows into the same tables?

Embedding is excluded. Each measurement writes into a new file, ours and the raw one in turn; both are durable when they
return. Making the tables, and for ours a first put, which notes the embedder in the file, come before the clock
starts. "With preparation" gives the raw side the work on values, words and vectors too.
"""

import argparse
import asyncio
import json
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from benchmarks.measure import Figure, Report, Runs, Timing, timing_of
from benchmarks.prepared import PreparedRows
from benchmarks.workload import Batch, Item, TableEmbedder, batches, items
from teffmem import MemoryStore
from teffmem.text import analyse

__all__ = ["run"]

_TOGETHER = 64
_MANY = 5_000
_TRIES = 20
_FIRST = "put before the clock starts"
_REPEATS = {_TOGETHER: 20, _MANY: 3}

Writing = Callable[[MemoryStore, Sequence[Item]], Awaitable[object]]


async def run(options: argparse.Namespace) -> Report:
    """Measure; ``options.runs`` is how many runs there are."""
    report = Report("ingest")
    (batch,) = batches(_MANY)
    with tempfile.TemporaryDirectory() as folder:
        place = _Place(Path(folder))
        for name, write, count, limit in (
            ("64 concurrent puts", _gather, _TOGETHER, 0.5),
            ("put_many of 5,000", _put_many, _MANY, 0.4),
            ("import of 5,000", _import_from(place, batch), _MANY, 0.4),
        ):
            runs = await _measure(place, write, batch, count, options.runs)
            _report(report, name, runs, count, limit)
        await _embedding_calls(report, place, batch)
    return report


class _Place:
    """A folder that gives a new path at every call."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._given = 0

    def path(self) -> Path:
        self._given += 1
        return self.folder / f"{self._given}.db"

    def clear(self) -> None:
        for file in self.folder.glob("*.db*"):
            file.unlink()


async def _measure(place: _Place, write: Writing, batch: Batch, count: int, runs: int) -> Runs:
    stored = items(batch)[:count]
    embedder = TableEmbedder(batch, Batch([_FIRST], batch.vectors[:1]))
    prepared = await _prepared(place, embedder, stored)
    collected: dict[str, list[Timing]] = {"ours": [], "raw": [], "raw with preparation": []}
    for _ in range(runs):
        seconds: dict[str, list[float]] = {name: [] for name in collected}
        for _ in range(_REPEATS[count]):
            seconds["ours"].append(await _ours(place, embedder, write, stored))
            raw = _raw(place, prepared)
            seconds["raw"].append(raw)
            seconds["raw with preparation"].append(raw + _preparation(stored))
            place.clear()
        for name, durations in seconds.items():
            collected[name].append(timing_of(durations))
    return Runs(collected)


async def _prepared(place: _Place, embedder: TableEmbedder, stored: Sequence[Item]) -> PreparedRows:
    path = place.path()
    async with MemoryStore.open(path, embedder=embedder) as memory:
        await _put_many(memory, stored)
    return PreparedRows.of(path)


async def _ours(place: _Place, embedder: TableEmbedder, write: Writing, stored: Sequence[Item]) -> float:
    async with MemoryStore.open(place.path(), embedder=embedder) as memory:
        await memory.put("first", "first", {"text": _FIRST})
        begun = time.perf_counter()
        await write(memory, stored)
        return time.perf_counter() - begun


def _raw(place: _Place, prepared: PreparedRows) -> float:
    connection = prepared.file(place.path())
    begun = time.perf_counter()
    prepared.insert(connection)
    seconds = time.perf_counter() - begun
    connection.close()
    return seconds


def _preparation(stored: Sequence[Item]) -> float:
    begun = time.perf_counter()
    for item in stored:
        json.dumps({"text": item.text}, ensure_ascii=False)
        analyse(item.text).packed.tobytes()
        item.vector.tobytes()
    return time.perf_counter() - begun


async def _gather(memory: MemoryStore, stored: Sequence[Item]) -> object:
    return await asyncio.gather(*(memory.put(i.namespace, i.key, {"text": i.text}, thread=i.thread) for i in stored))


async def _put_many(memory: MemoryStore, stored: Sequence[Item]) -> object:
    return await memory.put_many([item.arguments() for item in stored])


def _import_from(place: _Place, batch: Batch) -> Writing:
    path = place.folder / "items.jsonl"
    path.write_text("".join(json.dumps(item.arguments()) + "\n" for item in items(batch)), encoding="utf-8")

    async def import_(memory: MemoryStore, stored: Sequence[Item]) -> object:
        return await memory.import_(path)

    return import_


def _report(report: Report, name: str, runs: Runs, count: int, at_least: float) -> None:
    timings = {operation: runs.timing(operation) for operation in runs.timings}
    note = f"{count / timings['ours'].p50 * 1e3:,.0f} items/s"
    rate = runs.ratio("raw", "ours")
    report.add(Figure(f"{name}, rate of the raw one's", rate, at_least=at_least, timings=timings, note=note))
    report.add(Figure(f"{name}, with preparation", runs.ratio("raw with preparation", "ours")))


async def _embedding_calls(report: Report, place: _Place, batch: Batch) -> None:
    """Report the worst of several tries, each with a new file: how puts meet in the queue is a matter of timing."""
    calls = []
    for _ in range(_TRIES):
        embedder = TableEmbedder(batch)
        async with MemoryStore.open(place.path(), embedder=embedder) as memory:
            await _gather(memory, items(batch)[:100])
        calls.append(embedder.calls)
    note = f"of {_TRIES} tries: {sorted(calls)}"
    report.add(Figure("embedding calls of 100 puts gathered, worst", max(calls), "calls", at_most=2, note=note))
