"""LanceDB, asynchronous and embedded: one table, where a namespace is an indexed column, filtered before the search."""

from collections.abc import Sequence
from pathlib import Path

import lancedb
import pyarrow as pa
from lancedb.index import BTree

from benchmarks.workload import DIM, Item, TableEmbedder

__all__ = ["Adapter"]

_SCHEMA = pa.schema(
    [
        pa.field("id", pa.string()),
        pa.field("namespace", pa.string()),
        pa.field("key", pa.string()),
        pa.field("text", pa.string()),
        pa.field("vector", pa.list_(pa.float32(), DIM)),
    ]
)


class Adapter:
    """LanceDB's asynchronous client."""

    packages = ("lancedb", "pyarrow", "numpy")
    durable = "process"
    remark = "exact scan under a filter on an indexed column; each put is a new version of the table"

    async def open(self, folder: Path, embedder: TableEmbedder) -> None:
        self._embedder = embedder
        self._connection = await lancedb.connect_async(folder / "lance")
        self._table = await self._connection.create_table("memory", schema=_SCHEMA, exist_ok=True)

    async def put_many(self, items: Sequence[Item]) -> None:
        await self._upsert(items)
        await self._table.create_index("namespace", config=BTree())
        await self._table.create_index("id", config=BTree())

    async def put(self, item: Item) -> None:
        await self._upsert([item])

    async def search(self, question: Item, k: int) -> list[str]:
        vector = await self._embedder.embed(question.text)
        query = self._table.query().nearest_to(vector).distance_type("cosine")
        query = query.where(f"namespace = '{_path(question)}'").select(["key", "text", "_distance"])
        rows = await query.limit(k).to_list()
        return [row["key"] for row in rows]

    async def close(self) -> None:
        self._table.close()
        self._connection.close()

    async def _upsert(self, items: Sequence[Item]) -> None:
        rows = [
            {"id": f"{_path(i)}/{i.key}", "namespace": _path(i), "key": i.key, "text": i.text, "vector": i.vector}
            for i in items
        ]
        merge = self._table.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
        await merge.execute(pa.Table.from_pylist(rows, schema=_SCHEMA))


def _path(item: Item) -> str:
    return "/".join(item.namespace)
