"""The default backend keeps the contract in a file, whatever its budget of memory, and without a file."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from teffmem import SQLiteVectorStore, VectorStore
from teffmem.testing import DurableContract, OrderedContract, RankedContract, VectorStoreContract
from teffmem.testing.durable import Reopen


class TestSQLite(VectorStoreContract, OrderedContract, RankedContract, DurableContract):
    """All that `SQLiteVectorStore` promises."""

    @pytest.fixture
    async def store(self, tmp_path: Path) -> AsyncIterator[SQLiteVectorStore]:
        store = SQLiteVectorStore(tmp_path / "memory.db")
        yield store
        await store.aclose()

    @pytest.fixture
    async def reopen(self, tmp_path: Path) -> AsyncIterator[Reopen]:
        opened: list[VectorStore] = []

        async def reopen(store: VectorStore) -> VectorStore:
            await store.aclose()
            opened.append(SQLiteVectorStore(tmp_path / "memory.db"))
            return opened[-1]

        yield reopen
        for store in opened:
            await store.aclose()


class TestSQLiteWithoutBudget(VectorStoreContract, RankedContract):
    """The same where every scope is larger than the memory it may take, and is searched through the file."""

    @pytest.fixture
    async def store(self, tmp_path: Path) -> AsyncIterator[SQLiteVectorStore]:
        store = SQLiteVectorStore(tmp_path / "memory.db", budget=0)
        yield store
        await store.aclose()
