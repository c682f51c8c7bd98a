"""What every vector store promises, put together from its parts."""

from teffmem.testing._lifetimes import LifetimeContract
from teffmem.testing._nearness import NearnessContract
from teffmem.testing._scopes import ScopeContract
from teffmem.testing._serving import ServingContract
from teffmem.testing._writing import WritingContract

__all__ = ["VectorStoreContract"]


class VectorStoreContract(WritingContract, ScopeContract, LifetimeContract, NearnessContract, ServingContract):
    """The contract of `VectorStore`. A subclass provides the fixture ``store``: a fresh, empty store a test."""
