"""Long-term memory for AI agents: facts under namespaces, found by meaning and by words, on the user's own machine."""

from teffmem.config import embedder_from_config, store_from_config
from teffmem.embedders._lifted import FunctionEmbedder
from teffmem.embedders.minilm import MiniLMEmbedder
from teffmem.embedders.openai_compatible import OpenAICompatibleEmbedder
from teffmem.errors import (
    EmbedderMismatchError,
    FilterError,
    MissingExtraError,
    PartialWriteError,
    ProviderError,
    RateLimitError,
    StoreError,
    TeffmemError,
    UnsupportedError,
)
from teffmem.items import KEEP, Match, MemoryItem, Record
from teffmem.memory import MemoryStore, ScopedMemory, memory_from_config
from teffmem.protocols import Embedder, VectorStore
from teffmem.vectorstores.in_memory import InMemoryVectorStore
from teffmem.vectorstores.sqlite import SQLiteVectorStore

__all__ = [
    "KEEP",
    "Embedder",
    "EmbedderMismatchError",
    "FilterError",
    "FunctionEmbedder",
    "InMemoryVectorStore",
    "Match",
    "MemoryItem",
    "MemoryStore",
    "MiniLMEmbedder",
    "MissingExtraError",
    "OpenAICompatibleEmbedder",
    "PartialWriteError",
    "ProviderError",
    "RateLimitError",
    "Record",
    "SQLiteVectorStore",
    "ScopedMemory",
    "StoreError",
    "TeffmemError",
    "UnsupportedError",
    "VectorStore",
    "embedder_from_config",
    "memory_from_config",
    "store_from_config",
]
