"""A clock that stands still, and an embedder that is no model."""

import asyncio
from collections.abc import Collection, Sequence
from functools import lru_cache
from hashlib import blake2b

import numpy as np

from teffmem.errors import ProviderError
from teffmem.items import Vector
from teffmem.text import stems

__all__ = ["FakeClock", "FakeEmbedder"]


class FakeClock:
    """A clock that moves only when told to; called, it returns Unix seconds.

    Args:
        now: Where it stands.
    """

    def __init__(self, now: float = 1_800_000_000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now

    def advance(self, seconds: float) -> None:
        """Move on by ``seconds``."""
        self.now += seconds


class FakeEmbedder:
    """An embedder whose vectors depend on nothing but the text's words: texts that share words are near.

    Each stem has a direction of its own, the same on every machine; a text's vector is their sum, of unit length.

    Args:
        dim: Length of the vectors, up to 64.
        delay: Seconds that each call takes.
        failing: Texts for which a call raises `ProviderError`.
    """

    similarity_range = (0.2, 0.8)

    def __init__(self, dim: int = 32, *, delay: float = 0.0, failing: Collection[str] = ()) -> None:
        self.dim = dim
        self.fingerprint = f"fake, {dim} numbers, unit length"
        self.delay = delay
        self.failing = failing
        self.calls: list[list[str]] = []
        """The texts of each call, in order."""

    def vector(self, text: str) -> Vector:
        """Return the vector of a text, float32, at once and without a trace in ``calls``."""
        total = sum((_direction(stem, self.dim) for stem in sorted(stems(text))), np.zeros(self.dim))
        length = float(np.linalg.norm(total))
        vector: Vector = (total / length if length else total).astype(np.float32)
        return vector

    async def embed(self, text: str) -> Vector:
        """Return the vector of a text."""
        return (await self.embed_many([text]))[0]

    async def embed_many(self, texts: Sequence[str]) -> list[Vector]:
        """Return the vector of each text."""
        self.calls.append(list(texts))
        await asyncio.sleep(self.delay)
        if any(text in self.failing for text in texts):
            raise ProviderError("this text was to fail")
        return [self.vector(text) for text in texts]


@lru_cache(maxsize=4096)
def _direction(stem: str, dim: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    numbers = np.frombuffer(blake2b(stem.encode("utf-8", "surrogatepass")).digest(), np.uint8)[:dim].astype(np.float64)
    return np.asarray((numbers - 127.5) / np.linalg.norm(numbers - 127.5), np.float64)
