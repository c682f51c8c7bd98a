"""The default backend keeps the contract without a file."""

from collections.abc import AsyncIterator

import pytest

from teffmem import SQLiteVectorStore
from teffmem.testing import OrderedContract, RankedContract, VectorStoreContract


class TestSQLiteInMemory(VectorStoreContract, OrderedContract, RankedContract):
    """All that `SQLiteVectorStore(":memory:")` promises."""

    @pytest.fixture
    async def store(self) -> AsyncIterator[SQLiteVectorStore]:
        store = SQLiteVectorStore(":memory:")
        yield store
        await store.aclose()
