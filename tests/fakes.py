"""A clock that stands still, and embedders that are no models."""

import asyncio
from collections.abc import Callable, Collection, Sequence
from functools import lru_cache
from hashlib import blake2b

import numpy as np

from teffmem.errors import ProviderError
from teffmem.items import Vector
from teffmem.text import stems


class FakeClock:
    """A clock that moves only when told to; called, it returns Unix seconds."""

    def __init__(self, now: float = 1_800_000_000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now

    def advance(self, seconds: float) -> None:
        self.now += seconds


class FakeEmbedder:
    """An embedder of bags of words: each stem has a direction of its own; a text is the sum of its stems."""

    similarity_range = (0.2, 0.8)

    def __init__(self, dim: int = 32, *, delay: float = 0.0, failing: Collection[str] = ()) -> None:
        self.dim = dim
        self.fingerprint = f"fake, {dim} numbers, unit length"
        self.delay = delay
        self.failing = failing
        self.calls: list[list[str]] = []

    @property
    def texts(self) -> list[str]:
        """All texts that were embedded, in order."""
        return [text for call in self.calls for text in call]

    def vector(self, text: str) -> Vector:
        total = sum((_direction(stem, self.dim) for stem in sorted(stems(text))), np.zeros(self.dim))
        length = float(np.linalg.norm(total))
        vector: Vector = (total / length if length else total).astype(np.float32)
        return vector

    async def embed(self, text: str) -> Vector:
        return (await self.embed_many([text]))[0]

    async def embed_many(self, texts: Sequence[str]) -> list[Vector]:
        self.calls.append(list(texts))
        await asyncio.sleep(self.delay)
        if any(text in self.failing for text in texts):
            raise ProviderError("this text was to fail")
        return [self.vector(text) for text in texts]


class TableEmbedder:
    """An embedder that looks its vectors up."""

    def __init__(self, table: dict[str, list[float]]) -> None:
        self.table = table
        self.dim = len(next(iter(table.values())))
        self.fingerprint = f"a table, {self.dim} numbers"

    async def embed(self, text: str) -> list[float]:
        return self.table[text]


class GatedEmbedder:
    """An embedder of one text at a time that answers each only when its gate is opened.

    It says neither its dimension nor its fingerprint, so that nothing stands between a put and its embedding.
    """

    def __init__(self, vector: Callable[[str], Vector] | None = None) -> None:
        self._vector = vector or FakeEmbedder().vector
        self._gates: dict[str, asyncio.Event] = {}
        self.asked: list[str] = []

    def open(self, *texts: str) -> None:
        """Let these texts be answered, now or when they are asked for."""
        for text in texts:
            self._gate(text).set()

    async def embed(self, text: str) -> Vector:
        self.asked.append(text)
        await self._gate(text).wait()
        return self._vector(text)

    def _gate(self, text: str) -> asyncio.Event:
        return self._gates.setdefault(text, asyncio.Event())


@lru_cache(maxsize=4096)
def _direction(stem: str, dim: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    numbers = np.frombuffer(blake2b(stem.encode("utf-8", "surrogatepass")).digest(), np.uint8)[:dim].astype(np.float64)
    return np.asarray((numbers - 127.5) / np.linalg.norm(numbers - 127.5), np.float64)
