"""Memories to test with: both core backends, closed when the test ends."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any, Protocol

from teffmem import InMemoryVectorStore, MemoryStore, SQLiteVectorStore, VectorStore
from teffmem.testing import FakeEmbedder

BACKENDS = ("in_memory", "sqlite")
NOT_GIVEN: Any = object()


class OpenMemory(Protocol):
    """Opens another memory, empty or over a given backend; without an embedder in mind, over a `FakeEmbedder`."""

    def __call__(
        self,
        embedder: Any = NOT_GIVEN,
        *,
        over: VectorStore | None = None,
        ttl: float | timedelta | None = None,
        refresh_on_read: bool = False,
        clock: Callable[[], float] | None = None,
    ) -> MemoryStore: ...


@dataclass
class Opener:
    """Makes memories over one kind of backend, and closes them."""

    backend: str
    folder: Path
    opened: list[MemoryStore] = field(default_factory=list)

    def __call__(self, embedder: Any = NOT_GIVEN, *, over: VectorStore | None = None, **options: Any) -> MemoryStore:
        chosen = FakeEmbedder() if embedder is NOT_GIVEN else embedder
        options = {name: option for name, option in options.items() if option is not None}
        memory = MemoryStore(over or self.store(), chosen, **options)
        self.opened.append(memory)
        return memory

    def store(self) -> VectorStore:
        if self.backend == "in_memory":
            return InMemoryVectorStore()
        return SQLiteVectorStore(self.folder / f"{len(self.opened)}.db")

    async def aclose(self) -> None:
        for memory in reversed(self.opened):
            await memory.aclose()
