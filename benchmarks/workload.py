"""What is stored and asked: texts and vectors made from a seed, the same on every machine, and a table of them.

Texts have 20 to 40 words whose frequencies follow Zipf's law, English function words first, as in real text. Vectors
have `DIM` numbers, unit length and topics, so that neighbours differ as they do for a sentence embedder. Nothing here
needs teffmem: the rivals' environment runs it too.
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["BATCH", "DIM", "SCOPE", "Batch", "Item", "TableEmbedder", "batches", "items", "queries"]

DIM = 384
SCOPE = 100
"""Items in the namespace of one user."""
BATCH = 10_000

_SEED = 20_240_311
_VOCABULARY = 20_000
_TOPICS = 500
_FUNCTION_WORDS = """
    the of and to a in is that it was for on with as he be at by his had not are but from or have an they which one
    you were her all she there would their we him been has when who will more no if out so said what up its about
    into than them can only other new some could time these two may then do first any my now such like our over
""".split()

Vectors = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Batch:
    """Texts and, row by row, their vectors (float32, unit length)."""

    texts: list[str]
    vectors: Vectors


@dataclass(frozen=True, slots=True)
class Item:
    """One memory of the workload; every 20 items of a namespace are one thread."""

    namespace: tuple[str, ...]
    key: str
    text: str
    vector: Vectors
    thread: str

    def arguments(self) -> dict[str, object]:
        """Return it as `MemoryStore.put_many` takes it."""
        return {"namespace": self.namespace, "key": self.key, "value": {"text": self.text}, "thread": self.thread}


class TableEmbedder:
    """Looks vectors up that were made beforehand, so that embedding costs next to nothing.

    Attributes:
        calls: How often a vector, or a batch of them, was asked for.
    """

    dim = DIM
    fingerprint = f"benchmark-table/{DIM}/unit"
    similarity_range = (0.0, 0.5)

    def __init__(self, *known: Batch) -> None:
        self.calls = 0
        self._vectors: dict[str, Vectors] = {}
        for batch in known:
            self.learn(batch)

    def learn(self, batch: Batch) -> None:
        """Add the vectors of a batch."""
        self._vectors.update(zip(batch.texts, batch.vectors, strict=True))

    def forget(self) -> None:
        """Drop every vector."""
        self._vectors.clear()

    async def embed(self, text: str) -> Vectors:
        """Return the vector of a known text; KeyError for any other."""
        self.calls += 1
        return self._vectors[text]

    async def embed_many(self, texts: Sequence[str]) -> list[Vectors]:
        """Return the vectors of known texts, in their order."""
        self.calls += 1
        return [self._vectors[text] for text in texts]


def batches(count: int, *, first: int = 0) -> Iterator[Batch]:
    """Yield ``count`` items by batches of `BATCH` (the last may be smaller), beginning with batch ``first``."""
    for number, start in enumerate(range(0, count, BATCH), first):
        yield _batch(number, min(BATCH, count - start), words=(20, 40))


def queries(count: int) -> Batch:
    """Return questions of 5 to 12 words with their vectors."""
    return _batch(10**6, count, words=(5, 12))


def items(batch: Batch, namespace: tuple[str, ...] | None = None, *, start: int = 0) -> list[Item]:
    """Return a batch as items.

    Args:
        batch: Their texts and vectors.
        namespace: Where all of them go; None for one namespace of `SCOPE` items after the other.
        start: The number of the first.
    """
    numbered = enumerate(zip(batch.texts, batch.vectors, strict=True), start)
    return [
        Item(namespace or ("users", f"u{n // SCOPE:05}"), f"k{n:07}", text, vector, f"t{n // 20:06}")
        for n, (text, vector) in numbered
    ]


def _batch(number: int, size: int, words: tuple[int, int]) -> Batch:
    rng = np.random.default_rng([_SEED, number])
    return Batch(_texts(rng, size, words), _unit(_vectors(rng, size)))


def _texts(rng: np.random.Generator, size: int, words: tuple[int, int]) -> list[str]:
    lengths = rng.integers(words[0], words[1] + 1, size)
    ends = np.cumsum(lengths)
    drawn = [_WORDS[rank] for rank in np.searchsorted(_FREQUENCIES, rng.random(int(ends[-1]))).tolist()]
    return [" ".join(drawn[end - length : end]) for end, length in zip(ends.tolist(), lengths.tolist(), strict=True)]


def _vectors(rng: np.random.Generator, size: int) -> Vectors:
    noise = rng.standard_normal((size, DIM), dtype=np.float32)
    return noise + np.float32(0.8) * _CENTRES[rng.integers(0, _TOPICS, size)]


def _unit(vectors: Vectors) -> Vectors:
    unit: Vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return unit


def _vocabulary() -> list[str]:
    chance = random.Random(_SEED)
    words = dict.fromkeys(_FUNCTION_WORDS)
    while len(words) < _VOCABULARY:
        syllables = chance.choice((1, 2, 2, 2, 3, 3, 4))
        words["".join(chance.choice("bcdfghklmnprstvwz") + chance.choice("aeiou") for _ in range(syllables)) + "n"] = (
            None
        )
    return list(words)


def _zipf() -> NDArray[np.float64]:
    weights = 1 / (np.arange(_VOCABULARY) + 2.7)
    cumulated: NDArray[np.float64] = np.cumsum(weights / weights.sum())
    cumulated[-1] = 1.0
    return cumulated


_WORDS = _vocabulary()
_FREQUENCIES = _zipf()
_CENTRES = np.random.default_rng(_SEED).standard_normal((_TOPICS, DIM), dtype=np.float32)
