"""How long does a search take, beside the least that it could take?

* by file size: a namespace of 100 items in files of 1,000 to 1,000,000; the floor is a thread hop, the product with
  the top ten, and ten rows fetched by id and decoded;
* by scope size: fusing words and meaning beside meaning alone;
* one scope of 100,000, exact, beside the fastest raw scan.
"""

import argparse
import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from benchmarks.files import SCOPES, PlainTable, scope_batches, scopes_file, users_file
from benchmarks.measure import Figure, Operation, Report, Runs, Timing, interleave
from benchmarks.scans import K, Scan, scans, top
from benchmarks.workload import BATCH, SCOPE, Batch, TableEmbedder, batches, queries
from teffmem import MemoryStore

__all__ = ["run"]

_USERS = 10
_REST = 0.03  # seconds; threads of numpy and simsimd go on spinning for a while after a product
_QUERIES = 200
_HYBRID_AT_MOST = {100: 3.0, 1_000: 3.0, 10_000: 5.0, 100_000: 3.0}
_ROUNDS = {100: 200, 1_000: 200, 10_000: 60, 100_000: 20}

Vectors = NDArray[np.float32]
Mode = Literal["semantic", "hybrid"]
_MODES: tuple[Mode, ...] = ("semantic", "hybrid")


async def run(options: argparse.Namespace) -> Report:
    """Measure; ``options.sizes`` are the file sizes, ``options.runs`` the runs, ``options.cache`` the cache folder."""
    report = Report("latency")
    asked = queries(_QUERIES)
    await _by_file_size(report, options, asked)
    await _by_scope_size(report, options, asked)
    await _exact(report, options, asked)
    return report


async def _by_file_size(report: Report, options: argparse.Namespace, asked: Batch) -> None:
    operations: dict[str, dict[str, Operation]] = {"semantic": {}, "newest": {}, "list": {}}
    async with AsyncExitStack() as stack:
        hop = stack.enter_context(ThreadPoolExecutor(1))
        for count in options.sizes:
            path = await users_file(options.cache, count)
            memory = await stack.enter_async_context(MemoryStore.open(path, embedder=TableEmbedder(asked)))
            table = PlainTable.of_users(options.cache, count)
            stack.callback(table.close)
            for kind, pair in _pairs(memory, table, _Users(count), asked, hop).items():
                operations[kind] |= {f"ours {count}": pair[0], f"raw {count}": pair[1]}
        for kind, pairs in operations.items():
            _report_sizes(
                report, kind, await interleave(pairs, rounds=200, runs=options.runs, warm_up=30), options.sizes
            )


class _Users:
    """Ten users spread over a file: their numbers, and their vectors as the file holds them."""

    def __init__(self, count: int) -> None:
        users = count // SCOPE
        self.numbers = [user * users // _USERS for user in range(_USERS)]
        self.vectors = [self._vectors(number, count) for number in self.numbers]

    @staticmethod
    def _vectors(user: int, count: int) -> Vectors:
        batch, within = divmod(user * SCOPE, BATCH)
        (content,) = batches(min(BATCH, count - batch * BATCH), first=batch)
        return content.vectors[within : within + SCOPE].copy()


def _pairs(
    memory: MemoryStore, table: PlainTable, users: _Users, asked: Batch, hop: ThreadPoolExecutor
) -> dict[str, tuple[Operation, Operation]]:
    """Return, for each kind of question, our operation and the raw one."""
    names = [f"u{number:05}" for number in users.numbers]

    def nearest(number: int) -> object:
        user = number % _USERS
        found = top(users.vectors[user] @ asked.vectors[number % _QUERIES])
        return table.fetch((found + users.numbers[user] * SCOPE).tolist())

    def newest(number: int) -> object:
        return table.newest(names[number % _USERS], K)

    async def semantic(number: int) -> object:
        namespace = ("users", names[number % _USERS])
        return await memory.search(namespace, query=asked.texts[number % _QUERIES], k=K, mode="semantic")

    async def without_query(number: int) -> object:
        return await memory.search(("users", names[number % _USERS]), k=K)

    async def listed(number: int) -> object:
        return await memory.list(("users", names[number % _USERS]), limit=K)

    return {
        "semantic": (semantic, _hopping(hop, nearest)),
        "newest": (without_query, _hopping(hop, newest)),
        "list": (listed, _hopping(hop, newest)),
    }


def _hopping(hop: ThreadPoolExecutor, function: Callable[[int], object]) -> Operation:
    async def operation(number: int) -> object:
        return await asyncio.get_running_loop().run_in_executor(hop, function, number)

    return operation


def _report_sizes(report: Report, kind: str, runs: Runs, sizes: Sequence[int]) -> None:
    for count in sizes:
        ours, raw = f"ours {count}", f"raw {count}"
        report.add(
            Figure(
                f"{kind}: 100 items of {count:,}, of the floor",
                runs.ratio(ours, raw),
                at_most=2.5 if kind == "semantic" else None,
                timings={"ours": runs.timing(ours), "raw": runs.timing(raw)},
            )
        )
    grown = runs.ratio(f"ours {sizes[-1]}", f"ours {sizes[0]}")
    report.add(Figure(f"{kind}: file of {sizes[-1]:,}, of {sizes[0]:,}", grown, at_most=1.3))


async def _by_scope_size(report: Report, options: argparse.Namespace, asked: Batch) -> None:
    path = await scopes_file(options.cache)
    async with MemoryStore.open(path, embedder=TableEmbedder(asked)) as memory:
        for size in SCOPES:
            operations: dict[str, Operation] = {mode: _scope_search(memory, size, mode, asked) for mode in _MODES}
            runs = await interleave(operations, rounds=_ROUNDS[size], runs=options.runs)
            timings: dict[str, Timing] = {mode: runs.timing(mode) for mode in _MODES}
            ratio, limit = runs.ratio("hybrid", "semantic"), _HYBRID_AT_MOST[size]
            report.add(Figure(f"hybrid: scope of {size:,}, of semantic", ratio, at_most=limit, timings=timings))


def _scope_search(memory: MemoryStore, size: int, mode: Mode, asked: Batch) -> Operation:
    async def operation(number: int) -> object:
        return await memory.search(("scopes", str(size)), query=asked.texts[number % _QUERIES], k=K, mode=mode)

    return operation


async def _exact(report: Report, options: argparse.Namespace, asked: Batch) -> None:
    matrix = np.concatenate([batch.vectors for batch in scope_batches(SCOPES[-1])])
    raw = dict(scans(matrix, asked.vectors))
    path = await scopes_file(options.cache)
    async with MemoryStore.open(path, embedder=TableEmbedder(asked)) as memory:
        ours = _scope_search(memory, SCOPES[-1], "semantic", asked)
        operations = {"ours": ours} | {name: _scanning(scan, asked) for name, scan in raw.items()}
        runs = await interleave(operations, rounds=_ROUNDS[SCOPES[-1]], runs=options.runs, rest=_REST)
        same = [await _is_exact(memory, matrix, asked, number) for number in range(_QUERIES)]
    best = runs.best(list(raw))
    timings = {name: runs.timing(name) for name in operations}
    name = f"semantic: scope of {len(matrix):,}, of the best scan"
    report.add(Figure(name, runs.ratio("ours", best), at_most=1.5, timings=timings, note=f"best: {best}"))
    share = sum(same) / len(same)
    report.add(Figure("semantic: answers with the exact top ten", share, "share", at_least=1.0))


def _scanning(scan: Scan, asked: Batch) -> Operation:
    async def operation(number: int) -> object:
        return scan(asked.vectors[number % _QUERIES])

    return operation


async def _is_exact(memory: MemoryStore, matrix: Vectors, asked: Batch, number: int) -> bool:
    namespace = ("scopes", str(len(matrix)))
    found = await memory.search(namespace, query=asked.texts[number], k=K, mode="semantic")
    expected = top(matrix @ asked.vectors[number])
    return {match.key for match in found} == {f"k{place:07}" for place in expected.tolist()}
