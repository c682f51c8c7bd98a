"""LangGraph's `InMemoryStore` with a vector index: Python dicts, gone with the process."""

from collections.abc import Sequence
from pathlib import Path

from langgraph.store.base import PutOp
from langgraph.store.memory import InMemoryStore

from benchmarks.workload import DIM, Item, TableEmbedder

__all__ = ["Adapter"]


class Adapter:
    """LangGraph's store for development."""

    packages = ("langgraph", "langgraph-checkpoint", "numpy")
    durable = "nothing"
    remark = "nothing is kept: no file, so no reopening"

    async def open(self, folder: Path, embedder: TableEmbedder) -> None:
        async def embed(texts: Sequence[str]) -> list[list[float]]:
            return [vector.tolist() for vector in await embedder.embed_many(texts)]

        self._store = InMemoryStore(index={"dims": DIM, "embed": embed, "fields": ["text"]})

    async def put_many(self, items: Sequence[Item]) -> None:
        await self._store.abatch([PutOp(item.namespace, item.key, {"text": item.text}) for item in items])

    async def put(self, item: Item) -> None:
        await self._store.aput(item.namespace, item.key, {"text": item.text})

    async def search(self, question: Item, k: int) -> list[str]:
        found = await self._store.asearch(question.namespace, query=question.text, limit=k)
        return [match.key for match in found]

    async def close(self) -> None:
        self._store = InMemoryStore()
