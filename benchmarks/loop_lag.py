"""Does the event loop stay free? How late a timer fires while 4 writers and 12 searchers work, beside an idle loop.

A heartbeat sleeps one millisecond again and again; its lag is what it slept beyond. The floor is the same heartbeat
with nothing else to do, measured before each run.
"""

import argparse
import asyncio
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path

from benchmarks.files import scopes_file
from benchmarks.measure import Figure, Report, Runs, Timing, timing_of
from benchmarks.workload import Batch, Item, TableEmbedder, batches, items, queries
from teffmem import MemoryStore

__all__ = ["run"]

_BEAT = 0.001
_SECONDS = 8.0
_WRITERS, _SEARCHERS = 4, 12
_SIZES = (100, 1_000, 10_000)
_FRESH = 900  # the batch that new items come from; none of the files holds it


async def run(options: argparse.Namespace) -> Report:
    """Measure; ``options.runs`` runs on a copy of the file of scopes."""
    report = Report("loop_lag")
    (fresh,) = batches(10_000, first=_FRESH)
    asked = queries(200)
    path = await scopes_file(options.cache)
    lags: dict[str, list[Timing]] = {"ours": [], "idle": []}
    done: Counter[str] = Counter()
    with tempfile.TemporaryDirectory(dir=options.cache) as folder:
        copy = Path(shutil.copy(path, Path(folder) / "scopes.db"))
        async with MemoryStore.open(copy, embedder=TableEmbedder(asked, fresh)) as memory:
            for _ in range(options.runs):
                lags["idle"].append(timing_of(await _beats(_SECONDS / 4)))
                lags["ours"].append(timing_of(await _under_load(memory, asked, items(fresh), done)))
    _report(report, Runs(lags), done, options.runs * _SECONDS)
    return report


async def _under_load(memory: MemoryStore, asked: Batch, fresh: list[Item], done: Counter[str]) -> list[float]:
    async def write(turn: int) -> None:
        item = fresh[turn % len(fresh)]
        await memory.put(("scopes", str(_SIZES[turn % 3])), item.key, {"text": item.text}, thread=item.thread)
        done["puts"] += 1

    async def search(turn: int) -> None:
        await memory.search(("scopes", str(_SIZES[turn % 3])), query=asked.texts[turn % len(asked.texts)], k=10)
        done["searches"] += 1

    for turn in range(3):
        await search(turn)
    work = [asyncio.create_task(_repeat(write, first)) for first in range(_WRITERS)]
    work += [asyncio.create_task(_repeat(search, first)) for first in range(_SEARCHERS)]
    lags = await _beats(_SECONDS)
    for task in work:
        task.cancel()
    await _ended(work)
    return lags


async def _repeat(operation: Callable[[int], Awaitable[None]], turn: int) -> None:
    while True:
        await operation(turn)
        turn += _WRITERS * _SEARCHERS + 1


async def _ended(work: list[asyncio.Task[None]]) -> None:
    """Wait for cancelled tasks; raise what any of them failed with."""
    await asyncio.wait(work)
    for task in work:
        if not task.cancelled():
            task.result()


async def _beats(seconds: float) -> list[float]:
    """Return by how much each sleep of `_BEAT` took longer, in seconds."""
    lags: list[float] = []
    end = time.perf_counter() + seconds
    while (begun := time.perf_counter()) < end:
        await asyncio.sleep(_BEAT)
        lags.append(time.perf_counter() - begun - _BEAT)
    return lags


def _report(report: Report, runs: Runs, done: Counter[str], seconds: float) -> None:
    timings = {"ours": runs.timing("ours"), "idle": runs.timing("idle")}
    note = ", ".join(f"{count / seconds:,.0f} {what}/s" for what, count in sorted(done.items()))
    report.add(Figure("loop lag p50", timings["ours"].p50, "ms", timings=timings, note=note))
    report.add(Figure("loop lag p99", timings["ours"].p99, "ms", at_most=10))
