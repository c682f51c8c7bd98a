"""The event loop stays free: nothing a MemoryStore does holds it for 50 ms, whatever the amount."""

import asyncio
import gc
import json
import time
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from pathlib import Path

import numpy as np
import pytest

from teffmem import MemoryStore
from teffmem.items import Vector
from tests.memories import OpenMemory

LONGEST = 0.05
DIM = 384


class Gaps:
    """The longest time for which a ticker on the loop did not come to run, beyond its own pause."""

    def __init__(self) -> None:
        self.longest = 0.0

    async def watch(self) -> None:
        last = time.perf_counter()
        while True:
            await asyncio.sleep(0.001)
            now = time.perf_counter()
            self.longest = max(self.longest, now - last - 0.001)
            last = now


@asynccontextmanager
async def ticking() -> AsyncIterator[Gaps]:
    gaps = Gaps()
    gc.collect()  # what earlier tests left must not be collected here
    task = asyncio.create_task(gaps.watch())
    await asyncio.sleep(0.01)
    gaps.longest = 0.0
    try:
        yield gaps
    finally:
        task.cancel()


async def free(call: Awaitable[object]) -> float:
    """Run a call; return the longest gap it made."""
    async with ticking() as gaps:
        await call
    return gaps.longest


class Instant:
    """An embedder that takes no time, so that all there is to see is the memory's own work."""

    dim = DIM
    fingerprint = "instant"
    similarity_range = (0.1, 0.6)

    def __init__(self) -> None:
        self._pool = np.random.default_rng(0).normal(size=(50_000, DIM)).astype(np.float32)
        self._next = 0

    async def embed(self, text: str) -> Vector:
        return (await self.embed_many([text]))[0]

    async def embed_many(self, texts: list[str]) -> list[Vector]:
        at = self._next % (len(self._pool) - len(texts))
        self._next += len(texts)
        return list(self._pool[at : at + len(texts)])


WORDS = [f"word{i}" for i in range(2000)]


def text(i: int) -> str:
    return " ".join(WORDS[(i * 7 + j * j) % 2000] for j in range(20))


def puts(count: int) -> list[tuple[tuple[str, ...], str, dict[str, object]]]:
    return [(("users", f"u{i % 4}"), f"k{i}", {"text": text(i), "tags": ["a", "b"], "n": i}) for i in range(count)]


@pytest.fixture
def memory(open_memory: OpenMemory) -> MemoryStore:
    return open_memory(Instant())


async def test_put_many_of_two_thousand_leaves_the_loop_free(memory: MemoryStore) -> None:
    """Checking, drafting and answering two thousand items holds the loop for less than 50 ms at a time."""
    await memory.count()
    assert await free(memory.put_many(puts(2000))) < LONGEST


async def test_import_and_export_leave_the_loop_free(memory: MemoryStore, tmp_path: Path) -> None:
    """Three thousand lines, some of them long, go in and out without holding the loop for 50 ms."""
    path = tmp_path / "lines"
    lines = (
        {"namespace": ["users"], "key": f"k{i}", "value": {"text": text(i) * (20 if i % 10 == 0 else 1)}}
        for i in range(3000)
    )
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert await free(memory.import_(path)) < LONGEST
    assert await free(_export(memory, tmp_path / "out")) < LONGEST


async def _export(memory: MemoryStore, path: Path) -> None:
    assert await memory.export(path) == 3000


async def test_searches_over_twenty_thousand_leave_the_loop_free(memory: MemoryStore) -> None:
    """The first search, which brings the scope into memory, and any other, whole listings too, stay below 50 ms."""
    everything = puts(20_000)
    for start in range(0, 20_000, 1000):
        await memory.put_many(everything[start : start + 1000])
    gaps = {
        "first search": await free(memory.search((), query=text(5))),
        "search": await free(memory.search((), query=text(6))),
        "semantic": await free(memory.search((), query=text(7), mode="semantic")),
        "importance": await free(memory.search((), query=text(8), importance=0.5)),
        "filtered": await free(memory.search((), query=text(9), filter={"n": {"$lt": 50}})),
        "large k": await free(memory.search((), query=text(9), k=5000)),
        "items": await free(memory.items((), limit=5000)),
        "list": await free(memory.list((), limit=20_000)),
        "count": await free(memory.count(filter={"n": 3})),
        "cleanup": await free(memory.cleanup(max_age=3600)),
        "delete": await free(memory.delete_namespace(("users", "u1"))),
        "search again": await free(memory.search((), query=text(5))),
    }
    assert {name: gap for name, gap in gaps.items() if gap >= LONGEST} == {}
