"""What does a large file cost at its opening, and in memory?

The file of a million items is opened and searched once in a namespace that nobody asked for before (the operating
system may have it cached; nothing here can empty that). Then 10,000 namespaces are searched in turn under the default
budget, and at last all of them as one scope that is larger than the budget.
"""

import argparse
import gc
import sqlite3
import statistics
import time
from pathlib import Path

import psutil

from benchmarks.files import users_file
from benchmarks.measure import Figure, Report, timing_of
from benchmarks.workload import DIM, SCOPE, Batch, TableEmbedder, queries
from teffmem import MemoryStore

__all__ = ["run"]

_BUDGET_MB = 256.0
_MOST_SCOPES = 10_000


async def run(options: argparse.Namespace) -> Report:
    """Measure with the largest of ``options.sizes``."""
    report = Report("growth")
    count = max(options.sizes)
    path = await users_file(options.cache, count)
    asked = queries(200)
    await _opening(report, path, count, asked, options.runs)
    await _memory(report, path, count, asked)
    return report


async def _opening(report: Report, path: Path, count: int, asked: Batch, runs: int) -> None:
    opened, searched, raw = [], [], []
    for number in range(runs):
        raw.append(_raw_open(path))
        begun = time.perf_counter()
        async with MemoryStore.open(path, embedder=TableEmbedder(asked)) as memory:
            opened.append(time.perf_counter() - begun)
            namespace = ("users", f"u{(number + 1) * (count // SCOPE) // (runs + 1):05}")
            begun = time.perf_counter()
            await memory.search(namespace, query=asked.texts[number], k=10)
            searched.append(time.perf_counter() - begun)
    timings = {"ours": timing_of(opened), "raw": timing_of(raw)}
    median = statistics.median(opened) * 1e3
    report.add(Figure(f"open: file of {count:,}", median, "ms", at_most=50, timings=timings))
    first = statistics.median(searched) * 1e3
    report.add(Figure("first scoped search after it", first, "ms", at_most=20, timings={"ours": timing_of(searched)}))


def _raw_open(path: Path) -> float:
    begun = time.perf_counter()
    connection = sqlite3.connect(path)
    connection.execute("SELECT name FROM sqlite_master").fetchall()
    seconds = time.perf_counter() - begun
    connection.close()
    return seconds


async def _memory(report: Report, path: Path, count: int, asked: Batch) -> None:
    async with MemoryStore.open(path, embedder=TableEmbedder(asked)) as memory:
        await memory.search(("users", "u00000"), query=asked.texts[0], k=10)
        before = _resident()
        peak = before
        scopes = min(_MOST_SCOPES, count // SCOPE)
        for number in range(scopes):
            await memory.search(("users", f"u{number:05}"), query=asked.texts[number % len(asked.texts)], k=10)
            peak = max(peak, _resident()) if number % 50 == 0 else peak
        grown = max(peak, _resident()) - before
        limit = 1.25 * _BUDGET_MB
        report.add(Figure(f"memory: {scopes:,} scopes searched in turn", grown, "MB", at_most=limit))
        begun = time.perf_counter()
        found = await memory.search(("users",), query=asked.texts[0], k=10)
        seconds, grown = time.perf_counter() - begun, _resident() - before
        note = f"{seconds:.1f} s; {count * DIM * 4 / 1e6:,.0f} MB of vectors; RSS grown by {grown:.0f} MB"
        report.add(Figure(f"a scope of {count:,} answers", len(found), "items", at_least=10, note=note))


def _resident() -> float:
    gc.collect()
    return float(psutil.Process().memory_info().rss) / 1e6
