"""The backend without a file keeps the contract."""

from collections.abc import AsyncIterator

import pytest

from teffmem import InMemoryVectorStore
from teffmem.testing import OrderedContract, RankedContract, VectorStoreContract


class TestInMemory(VectorStoreContract, OrderedContract, RankedContract):
    """All that `InMemoryVectorStore` promises."""

    @pytest.fixture
    async def store(self) -> AsyncIterator[InMemoryVectorStore]:
        store = InMemoryVectorStore()
        yield store
        await store.aclose()


class TestInMemoryWithoutBudget(VectorStoreContract, RankedContract):
    """The same where no index may stay in memory."""

    @pytest.fixture
    async def store(self) -> AsyncIterator[InMemoryVectorStore]:
        store = InMemoryVectorStore(budget=0)
        yield store
        await store.aclose()
