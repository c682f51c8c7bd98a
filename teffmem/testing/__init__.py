"""For those who write a backend, and for tests that need neither time nor a model.

A backend's test file inherits the contract classes of what it promises, and provides their fixtures:

    class TestMyStore(VectorStoreContract, OrderedContract):
        @pytest.fixture
        async def store(self):
            store = MyVectorStore(...)
            yield store
            await store.aclose()

``store`` is a fresh, empty store; `DurableContract` also asks for ``reopen``. The tests are async methods, so pytest
needs pytest-asyncio in its "auto" mode; ``pytest.register_assert_rewrite("teffmem.testing")`` in a conftest.py, before
the first import, makes failures tell the values. Nothing here imports pytest.
"""

from teffmem.testing.durable import DurableContract
from teffmem.testing.fakes import FakeClock, FakeEmbedder
from teffmem.testing.ordered import OrderedContract
from teffmem.testing.ranked import RankedContract
from teffmem.testing.vectorstore import VectorStoreContract

__all__ = [
    "DurableContract",
    "FakeClock",
    "FakeEmbedder",
    "OrderedContract",
    "RankedContract",
    "VectorStoreContract",
]
