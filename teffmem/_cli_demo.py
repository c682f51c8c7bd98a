"""What `teffmem demo` shows: ten facts and a chat are remembered, then asked for in every way there is."""

import tempfile
import time
from collections.abc import AsyncIterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

from teffmem._cli_output import name, one_line, path
from teffmem.memory import MemoryStore

__all__ = ["CHAT", "FACTS", "QUESTIONS_BY_MEANING", "demo"]

ANA, BEN = ("users", "ana"), ("users", "ben")

FACTS = (
    (ANA, "pet", "Ana has a dog called Rex."),
    (ANA, "job", "Ana works night shifts as a nurse."),
    (ANA, "food", "Ana is allergic to peanuts."),
    (ANA, "home", "Ana moved to Lisbon in March."),
    (ANA, "car", "Her insurance policy is number KX-4471."),
    (ANA, "hobby", "On Sundays Ana climbs with her brother Luis."),
    (BEN, "pet", "Ben keeps three cats."),
    (BEN, "job", "Ben teaches physics at a secondary school."),
    (BEN, "drink", "Ben never drinks coffee after noon."),
    (BEN, "trip", "Ben is saving for a journey to Japan."),
)

CHAT = (
    ("plan", "Ana: The concert on Friday is sold out, sadly."),
    ("offer", "Ben: My sister cannot go. You can have her ticket!"),
    ("answer", "Ana: Wonderful, I will pay you back with dinner."),
)

QUESTIONS_BY_MEANING = (
    (ANA, "Which animal lives with her?"),
    (ANA, "Which foods are dangerous for her?"),
    (BEN, "Where would he like to travel?"),
)

_EXAMPLE = """\
import asyncio
from teffmem import MemoryStore

async def main():
    async with MemoryStore.open("./memory.db") as memory:
        await memory.put(("users", "ana"), "pet", {"text": "Ana has a dog called Rex."})
        for item in await memory.search(("users", "ana"), query="Which animal lives with her?", k=1):
            print(item.value["text"])

asyncio.run(main())"""


class _Clock:
    """A clock that can be put forward, so that nobody has to wait."""

    def __init__(self) -> None:
        self.ahead = 0.0

    def __call__(self) -> float:
        return time.time() + self.ahead


async def demo(embedder: Mapping[str, Any] | None) -> AsyncIterator[str]:
    """Yield the lines of the demo, run in a file that is gone afterwards.

    Args:
        embedder: Config of an embedder; None for words alone.
    """
    clock = _Clock()
    with tempfile.TemporaryDirectory(prefix="teffmem-demo-") as folder:
        async with MemoryStore.open(Path(folder) / "demo.db", embedder=embedder, clock=clock) as memory:
            parts = [_remember(memory), _ask_by_words(memory), _keep_apart(memory), _expire(memory, clock)]
            if embedder is not None:
                parts.insert(1, _ask_by_meaning(memory))
            for part in parts:
                async for line in part:
                    yield line
    yield "The same from Python, to paste into a file:"
    yield ""
    for line in _EXAMPLE.splitlines():
        yield f"    {line}".rstrip()


async def _remember(memory: MemoryStore) -> AsyncIterator[str]:
    await memory.put_many([(namespace, key, {"text": text}) for namespace, key, text in FACTS])
    turns = [{"namespace": "chat", "key": key, "value": {"text": text}, "thread": "friday"} for key, text in CHAT]
    await memory.put_many(turns)
    yield f"Remembered {len(FACTS)} facts about two people, and a chat of {len(CHAT)} turns. Some of them:"
    yield ""
    for namespace, key, text in (*FACTS[:2], *FACTS[6:8]):
        yield f"    {path(namespace)}  {name(key)}: {one_line(text)}"
    yield ""


async def _ask_by_meaning(memory: MemoryStore) -> AsyncIterator[str]:
    yield "By meaning. Question and answer share no word:"
    yield ""
    for namespace, question in QUESTIONS_BY_MEANING:
        async for line in _answers(memory, namespace, question):
            yield line


async def _ask_by_words(memory: MemoryStore) -> AsyncIterator[str]:
    yield "By words. Numbers and names are found as they are written:"
    yield ""
    async for line in _answers(memory, ANA, "KX-4471"):
        yield line
    yield "In a chat, the turns beside a hit count too:"
    yield ""
    async for line in _answers(memory, ("chat",), "What about the concert?", k=2):
        yield line


async def _keep_apart(memory: MemoryStore) -> AsyncIterator[str]:
    yield "A namespace answers for itself and what is below it, never for its neighbours:"
    yield ""
    for namespace in (BEN, ("users",)):
        async for line in _answers(memory, namespace, "dog or cats", k=3, mode="lexical"):
            yield line


async def _expire(memory: MemoryStore, clock: _Clock) -> AsyncIterator[str]:
    parking = {"text": "Ana's car is parked on level 3."}
    await memory.put(ANA, "parking", parking, ttl=timedelta(hours=12))
    yield "A memory that is put with a time to live is gone when it is over:"
    yield ""
    yield f"    put with ttl of 12 hours:  {parking['text']}"
    for when, ahead in (("now", 0.0), ("tomorrow", 86_400.0)):
        clock.ahead = ahead
        item = await memory.get(ANA, "parking")
        yield f"    {when}:  {'gone' if item is None else item.value['text']}"
    yield ""


async def _answers(
    memory: MemoryStore, namespace: tuple[str, ...], question: str, *, k: int = 1, mode: Any = "auto"
) -> AsyncIterator[str]:
    """Yield a question and the best answers to it."""
    yield f"    {path(namespace)} ? {question}"
    for item in await memory.search(namespace, query=question, k=k, mode=mode):
        yield f"        {item.score:.2f}  {one_line(item.value['text'])}"
    yield ""
