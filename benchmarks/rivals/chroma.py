"""Chroma, embedded: one persistent collection, where a namespace is a metadata filter.

Its calls block, so a thread runs them, as an asynchronous program must.
"""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import chromadb
import numpy as np
from chromadb.config import Settings

from benchmarks.workload import Item, TableEmbedder

__all__ = ["Adapter"]


class Adapter:
    """Chroma's embedded client."""

    packages = ("chromadb", "numpy")
    durable = "power"
    remark = "approximate index; one collection, filtered by metadata"

    async def open(self, folder: Path, embedder: TableEmbedder) -> None:
        self._embedder = embedder
        await asyncio.to_thread(self._open, folder)

    async def put_many(self, items: Sequence[Item]) -> None:
        await asyncio.to_thread(self._put, items)

    async def put(self, item: Item) -> None:
        await asyncio.to_thread(self._put, [item])

    async def search(self, question: Item, k: int) -> list[str]:
        vector = await self._embedder.embed(question.text)
        found = await asyncio.to_thread(
            self._collection.query, query_embeddings=[vector], n_results=k, where={"namespace": _path(question)}
        )
        return [str(metadata["key"]) for metadata in (found["metadatas"] or [[]])[0]]

    async def close(self) -> None:
        self._client.close()

    def _open(self, folder: Path) -> None:
        self._client = chromadb.PersistentClient(folder / "chroma", Settings(anonymized_telemetry=False))
        self._collection = self._client.get_or_create_collection(
            "memory", configuration={"hnsw": {"space": "cosine"}}, embedding_function=None
        )

    def _put(self, items: Sequence[Item]) -> None:
        most = self._client.get_max_batch_size()
        for start in range(0, len(items), most):
            part = items[start : start + most]
            self._collection.upsert(
                ids=[f"{_path(item)}/{item.key}" for item in part],
                embeddings=np.stack([item.vector for item in part]),
                metadatas=[{"namespace": _path(item), "key": item.key} for item in part],
                documents=[item.text for item in part],
            )


def _path(item: Item) -> str:
    return "/".join(item.namespace)
