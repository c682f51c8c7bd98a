"""teffmem: `MemoryStore` over its SQLite file, searching by meaning alone as the others do."""

from collections.abc import Sequence
from pathlib import Path

from benchmarks.workload import Item, TableEmbedder
from teffmem import MemoryStore

__all__ = ["Adapter"]


class Adapter:
    """The memory that this project is."""

    packages = ("teffmem", "numpy", "simsimd")
    durable = "power"
    remark = "search by meaning alone; its default fuses words too"

    async def open(self, folder: Path, embedder: TableEmbedder) -> None:
        self._memory = await MemoryStore.open(folder / "memory.db", embedder=embedder)

    async def put_many(self, items: Sequence[Item]) -> None:
        await self._memory.put_many([item.arguments() for item in items])

    async def put(self, item: Item) -> None:
        await self._memory.put(item.namespace, item.key, {"text": item.text}, thread=item.thread)

    async def search(self, question: Item, k: int) -> list[str]:
        found = await self._memory.search(question.namespace, query=question.text, k=k, mode="semantic")
        return [match.key for match in found]

    async def close(self) -> None:
        await self._memory.aclose()
