"""Embedders for tests that need more than `teffmem.testing` has."""

import asyncio
from collections.abc import Callable

from teffmem.items import Vector
from teffmem.testing import FakeEmbedder


def embedded(embedder: FakeEmbedder) -> list[str]:
    """Return all texts that were embedded, in order."""
    return [text for call in embedder.calls for text in call]


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

    def open_all(self) -> None:
        """Answer everybody who waits."""
        self.open(*self._gates)

    async def embed(self, text: str) -> Vector:
        self.asked.append(text)
        await self._gate(text).wait()
        return self._vector(text)

    def _gate(self, text: str) -> asyncio.Event:
        return self._gates.setdefault(text, asyncio.Event())
