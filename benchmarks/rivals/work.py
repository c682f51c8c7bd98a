"""The work that every memory does, run by the Python of its own environment; prints one JSON line.

``python -m benchmarks.rivals.work <adapter> <items> <folder>`` stores, searches and puts;
with ``--reopen`` it opens what is in the folder and times that and the first search.
"""

import argparse
import asyncio
import importlib
import json
import random
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np

from benchmarks.measure import timing_of
from benchmarks.rivals.rival import Rival
from benchmarks.workload import Batch, Item, TableEmbedder, batches, items, queries

__all__ = ["main"]

_K = 10
_SEARCHES, _PUTS = 200, 100
_SECONDS = 30.0  # a slow memory is asked less often


def main() -> None:
    """Run what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("adapter")
    parser.add_argument("count", type=int)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--reopen", action="store_true")
    options = parser.parse_args()
    rival: Rival = importlib.import_module(f"benchmarks.rivals.{options.adapter}").Adapter()
    action = _reopen if options.reopen else _work
    print(json.dumps(asyncio.run(action(rival, options.count, options.folder))))


async def _work(rival: Rival, count: int, folder: Path) -> dict[str, object]:
    stored, questions, embedder = _workload(count)
    await rival.open(folder, embedder)
    begun = time.perf_counter()
    await rival.put_many(stored)
    loaded = time.perf_counter() - begun
    answers: list[list[str]] = []

    async def search(number: int) -> None:
        answers.append(await rival.search(questions[number], _K))

    async def put(number: int) -> None:
        await rival.put(replace(stored[number], key=f"single {number}"))

    await rival.search(questions[0], _K)
    searches = await _times(search, _SEARCHES)
    right = _share_right(stored, questions, answers)
    puts = await _times(put, _PUTS)
    await rival.close()
    return {
        "put_many_per_second": count / loaded,
        "search": asdict(timing_of(searches)),
        "searches": len(searches),
        "right": right,
        "put": asdict(timing_of(puts)),
        "megabytes": _megabytes(folder),
        "durable": rival.durable,
        "remark": rival.remark,
        "versions": {package: _version(package) for package in rival.packages},
    }


async def _reopen(rival: Rival, count: int, folder: Path) -> dict[str, object]:
    _, questions, embedder = _workload(count)
    begun = time.perf_counter()
    await rival.open(folder, embedder)
    found = await rival.search(questions[1], _K)
    seconds = time.perf_counter() - begun
    await rival.close()
    return {"reopen_ms": seconds * 1e3, "found": len(found)}


async def _times(operation: Callable[[int], Awaitable[None]], most: int) -> list[float]:
    """Return the durations of up to ``most`` calls, in seconds; fewer (but five) once `_SECONDS` are over."""
    seconds: list[float] = []
    end = time.perf_counter() + _SECONDS
    while len(seconds) < most and (len(seconds) < 5 or time.perf_counter() < end):
        begun = time.perf_counter()
        await operation(len(seconds))
        seconds.append(time.perf_counter() - begun)
    return seconds


def _workload(count: int) -> tuple[list[Item], list[Item], TableEmbedder]:
    """Return the items in namespaces of `SCOPE`, questions that each ask one of these, and the table of both."""
    made = list(batches(count))
    batch = Batch([t for b in made for t in b.texts], np.concatenate([b.vectors for b in made]))
    asked = queries(_SEARCHES)
    chance = random.Random(count)
    stored = items(batch)
    users = [stored[chance.randrange(count)].namespace for _ in asked.texts]
    pairs = zip(asked.texts, asked.vectors, users, strict=True)
    questions = [Item(namespace, "", text, vector, "") for text, vector, namespace in pairs]
    return stored, questions, TableEmbedder(batch, asked)


def _share_right(stored: Sequence[Item], questions: Sequence[Item], answers: Sequence[Sequence[str]]) -> float:
    """Return the share of the exact nearest ten, within the namespace, that the answers hold."""
    scopes: dict[tuple[str, ...], list[Item]] = {}
    for item in stored:
        scopes.setdefault(item.namespace, []).append(item)
    shares = [
        len(set(answer) & _nearest(scopes[question.namespace], question)) / _K
        for question, answer in zip(questions, answers, strict=False)
    ]
    return sum(shares) / len(shares)


def _nearest(scope: Sequence[Item], question: Item) -> set[str]:
    cosines = np.stack([item.vector for item in scope]) @ question.vector
    return {scope[place].key for place in np.argsort(-cosines)[:_K]}


def _megabytes(folder: Path) -> float:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) / 1e6


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "source tree"


if __name__ == "__main__":
    main()
