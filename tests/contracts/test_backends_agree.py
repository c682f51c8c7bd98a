"""Whatever happened, the backends give the same answers."""

from pathlib import Path
from random import Random

import numpy as np
import pytest

from teffmem import InMemoryVectorStore, MemoryItem, MemoryStore, SQLiteVectorStore, VectorStore
from teffmem.testing import FakeClock, FakeEmbedder

WORDS = "green tea black coffee cup kettle milk sugar morning the of 茶 café user likes cold hot never".split()
SPACES = [("u",), ("u", "a"), ("u", "a", "x"), ("u", "ab"), ("v",), ()]


def seen(items: list[MemoryItem]) -> list[tuple[object, ...]]:
    return [(i.namespace, i.key, i.value, i.created_at, i.updated_at, i.expires_at, i.thread) for i in items]


async def change(chance: Random, clock: FakeClock, memories: list[MemoryStore]) -> None:
    """Do the same thing to each memory, and compare what it answers."""
    at, key = chance.choice(SPACES), f"k{chance.randrange(25)}"
    text = " ".join(chance.choices(WORDS, k=chance.randrange(1, 7)))
    value = {"text": text, "n": chance.randrange(3), "importance": chance.random()}
    ttl, index, thread = chance.choice([None, 3, 30]), chance.random() < 0.9, chance.choice([None, "t1", "t2", "t2"])
    what = chance.random()
    answers: list[object] = []
    for memory in memories:
        if what < 0.6:
            item = await memory.put(at, key, value, ttl=ttl, index=index, thread=thread)
            answers.append(seen([item]))
        elif what < 0.7:
            updated = await memory.update(at, key, {"text": text})
            answers.append(updated and seen([updated]))
        elif what < 0.85:
            answers.append(await memory.delete(at, key))
        elif what < 0.9:
            answers.append(await memory.cleanup(namespace=at))
        elif what < 0.91:
            answers.append(await memory.delete_namespace(at, everything=True))
    if what >= 0.91:
        clock.advance(chance.choice([0.5, 2, 20]))
    assert answers[1:] == answers[:1] * len(answers[1:])


@pytest.mark.parametrize("seed", range(3))
async def test_the_backends_answer_alike(seed: int, tmp_path: Path) -> None:
    """After the same random life, every search finds the same items in the same order, its scores within 1e-6."""
    chance, clock = Random(seed), FakeClock()
    stores: list[VectorStore] = [
        InMemoryVectorStore(),
        SQLiteVectorStore(tmp_path / "a.db"),
        SQLiteVectorStore(tmp_path / "b.db", budget=0),
    ]
    memories = [MemoryStore(store, FakeEmbedder(), clock=clock) for store in stores]
    for _ in range(60):
        for _ in range(4):
            await change(chance, clock, memories)
        options = {
            "query": " ".join(chance.choices(WORDS, k=3)),
            "mode": chance.choice(["auto", "semantic", "lexical"]),
            "k": chance.choice([1, 5, 100]),
            "offset": chance.choice([0, 0, 2]),
            "filter": chance.choice([None, None, {"n": 1}, {"n": {"$ne": 1}}]),
            "recency": chance.choice([0, 0.5]),
            "importance": chance.choice([0, 0.5]),
            "diversity": chance.choice([0, 0, 0.3]),
            "explain": True,
        }
        if options["mode"] != "lexical":
            options["min_similarity"] = chance.choice([None, None, 0.31])
        at = chance.choice(SPACES)
        expected, *others = [await memory.search(at, **options) for memory in memories]  # type: ignore[arg-type]
        for found in others:
            assert seen(found) == seen(expected)
            for one, other in zip(expected, found, strict=True):
                assert one.scores.keys() == other.scores.keys()
                assert np.allclose([*one.scores.values()], [*other.scores.values()], atol=1e-6)
                assert one.score == pytest.approx(other.score, abs=1e-6)
    for memory in memories:
        await memory.aclose()
