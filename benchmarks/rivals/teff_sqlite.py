"""teff's own memory package over its SQLite vector store, the memory that this one grew out of."""

from collections.abc import Sequence
from pathlib import Path

from teff.memory import MemoryStore
from teff.rag.stores.sqlite import SQLiteVectorStore

from benchmarks.workload import DIM, Item, TableEmbedder

__all__ = ["Adapter"]


class _ListEmbedder:
    """The table, giving lists of floats as teff's own embedder does."""

    def __init__(self, table: TableEmbedder) -> None:
        self._table = table

    async def embed(self, text: str) -> list[float]:
        vector: list[float] = (await self._table.embed(text)).tolist()
        return vector


class Adapter:
    """teff's memory."""

    packages = ("teff",)
    durable = "power"
    remark = "no batch put, so a commit each; reads the whole file at every search"

    async def open(self, folder: Path, embedder: TableEmbedder) -> None:
        self._store = SQLiteVectorStore(str(folder / "teff.db"), dim=DIM)
        self._memory = MemoryStore(self._store, _ListEmbedder(embedder))

    async def put_many(self, items: Sequence[Item]) -> None:
        for item in items:
            await self.put(item)

    async def put(self, item: Item) -> None:
        await self._memory.put(item.namespace, item.key, {"text": item.text})

    async def search(self, question: Item, k: int) -> list[str]:
        found = await self._memory.search(question.namespace, query=question.text, k=k)
        return [match.key for match in found]

    async def close(self) -> None:
        self._store.close()
