"""What the parts promise each other: the embedder, the vector store, and what a vector store may do besides."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from teffmem.filters import Condition
from teffmem.items import Draft, Match, Record, Vector
from teffmem.namespace import Namespace
from teffmem.ranking import Query

__all__ = ["Embedder", "Ordered", "QueryEmbedder", "Ranked", "Selection", "VectorStore"]


class Embedder(Protocol):
    """Turns texts into vectors.

    Optional, and looked for by name: ``dim`` (int), ``fingerprint`` (str: model, dimension, normalisation),
    ``similarity_range`` (the cosines between which meaning counts, see `ranking.Query`), and `QueryEmbedder`.
    """

    async def embed(self, text: str) -> Vector:
        """Return the vector of a text that is to be stored: float32, ``dim`` long."""
        ...

    async def embed_many(self, texts: Sequence[str]) -> Sequence[Vector]:
        """Return one vector a text, in the order of the texts; [] for []."""
        ...


@runtime_checkable
class QueryEmbedder(Protocol):
    """An embedder that treats questions in another way than what is stored."""

    async def embed_query(self, text: str) -> Vector | None:
        """Return the vector of a question; None if the model can make nothing of it, so that words answer."""
        ...


@dataclass(frozen=True, slots=True)
class Selection:
    """The live records that a question is about.

    Attributes:
        namespace: The top: this namespace and everything below it.
        now: Unix seconds; a record that has expired by then is not there.
        condition: A parsed filter that a record's value must meet; None for all.
        recursive: False leaves out what is below the top.
    """

    namespace: Namespace
    now: float
    condition: Condition | None = None
    recursive: bool = True


class VectorStore(Protocol):
    """Keeps records and finds them. This docstring and `teffmem.testing` are the contract.

    * A record is known by (namespace, key). Scope, filter and expiry are exact, and apply before anything is
      counted: a search for ten returns ten if the selection holds ten.
    * An expired record is invisible to every method but `cleanup`, and a write over it makes a new record.
    * `upsert` and the deletions are all or nothing; where a backend cannot, it raises `PartialWriteError`.
      When they return, the change is durable and every later call sees it.
    * Records that are returned are the caller's own: nothing in them is shared with the store.
    * Arguments are valid (`MemoryStore` checks them). A driver's error becomes a `StoreError` with its cause.
    * The constructor does no I/O; the first call sets up, once, however many start together. After `aclose`
      every call raises `StoreError`; `aclose` waits for calls in flight and may be called again.
    """

    async def upsert(self, drafts: Sequence[Draft], now: float) -> list[Record | None]:
        """Write drafts in order, each by `Draft.over` what is there, with a stamp greater than any before.

        No (namespace, key) comes twice in a batch. Either all indexed records of a store have vectors, or none has.

        Returns:
            The record that each draft made; None for one whose condition did not hold.
        """
        ...

    async def get(self, namespace: Namespace, keys: Sequence[str], now: float) -> list[Record | None]:
        """Return the live record of each key, in the order of the keys; None where there is none."""
        ...

    async def delete(self, namespace: Namespace, keys: Sequence[str], now: float) -> int:
        """Remove records of exactly this namespace; return how many live ones went. [] removes nothing."""
        ...

    async def delete_all(self, selection: Selection) -> int:
        """Remove everything that is selected, and what has expired under the same namespace.

        Returns:
            How many live records went.
        """
        ...

    async def cleanup(self, namespace: Namespace, now: float, *, older_than: float | None = None) -> int:
        """Remove what has expired, and what was updated before ``older_than`` (Unix seconds).

        Returns:
            How many records went.
        """
        ...

    async def touch(self, records: Sequence[Record], now: float) -> None:
        """Let records that were just read live for another ``ttl`` from ``now``, unless rewritten meanwhile."""
        ...

    async def similar(self, selection: Selection, vector: Vector, limit: int, *, offset: int = 0) -> list[Match]:
        """Return the nearest records: score is the cosine in [-1, 1], nearest first.

        Ties are broken by the newest stamp, then by namespace and key. A zero vector on either side has cosine 0.
        Records without a vector are not found.
        """
        ...

    async def count(self, selection: Selection) -> int:
        """Return how many records are selected."""
        ...

    async def namespaces(self, top: Namespace, now: float) -> list[Namespace]:
        """Return the namespaces at and below ``top`` that hold a live record of their own, in code point order."""
        ...

    async def fingerprint(self) -> str | None:
        """Return the fingerprint of the embedder this store belongs to; None as long as it has none."""
        ...

    async def claim(self, fingerprint: str) -> str:
        """Return the fingerprint of the embedder this store belongs to; a store without one takes this."""
        ...

    async def aclose(self) -> None:
        """Wait for calls in flight and let go of everything."""
        ...


@runtime_checkable
class Ordered(Protocol):
    """A store that walks its records in the order of their stamps."""

    async def newest(self, selection: Selection, limit: int, *, offset: int = 0) -> list[Record]:
        """Return records, newest stamp first."""
        ...

    async def oldest(self, selection: Selection, limit: int, *, after: int = 0) -> list[Record]:
        """Return the records with the smallest stamps greater than ``after``, oldest first.

        Called again with the last stamp it returned, until it returns nothing, it visits everything that was there
        from first to last call, and what is rewritten meanwhile once more.
        """
        ...


@runtime_checkable
class Ranked(Protocol):
    """A store with a lexical leg, which scores a whole scope by words, meaning and threads."""

    async def rank(self, selection: Selection, query: Query, limit: int, *, offset: int = 0) -> list[Match]:
        """Return the matches of a query, best first, as `ranking.rank` defines them.

        Statistics of words, neighbours and threads are those of every live, indexed record under the selection's
        namespace; the filter only chooses among the results. Ties are broken as in `VectorStore.similar`.
        """
        ...
