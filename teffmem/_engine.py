"""What a MemoryStore and its scoped views share: the backend, the embedder, the clock, the order of writes."""

import asyncio
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from teffmem._ordering import WriteOrder
from teffmem.embedders.batching import BatchingEmbedder
from teffmem.errors import EmbedderMismatchError, StoreError, UnsupportedError
from teffmem.items import Record, Vector
from teffmem.protocols import Ordered, Ranked, VectorStore

__all__ = ["Engine"]

R = TypeVar("R", bound=Record | None)

_UNIT = 1e-6  # how far the square of a length may be from 1
_BATCH = 256  # texts embedded at a time, so that no answer takes long to look through

_WORDS_ALONE = "none"  # the fingerprint of a store without an embedder


class Engine:
    """One open memory.

    Attributes:
        store: The backend.
        given_embedder: The embedder as it was given; None for words alone.
        ttl: Seconds that a memory lives if its put does not say; None for ever.
        refresh_on_read: Whether reading lets a memory live for another ttl.
        order: Who writes after whom.
        ranked: The backend, if it has a lexical leg; else None.
    """

    def __init__(
        self, store: VectorStore, embedder: Any, *, ttl: float | None, refresh_on_read: bool, clock: Callable[[], float]
    ) -> None:
        self.store = store
        self.given_embedder = embedder
        self.ttl = ttl
        self.refresh_on_read = refresh_on_read
        self.order = WriteOrder()
        self.ranked = store if isinstance(store, Ranked) else None
        self._ordered = store if isinstance(store, Ordered) else None
        self.owns_embedder = False
        self._embedder = None if embedder is None else BatchingEmbedder(embedder)
        self._clock = clock
        self._stored: str | None = None
        self._claiming = asyncio.Lock()
        self._is_ours = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._in_flight = 0
        self._idle = asyncio.Event()
        self._closed = False

    @property
    def similarity_range(self) -> tuple[float, float] | None:
        """The embedder's own, or None."""
        return None if self._embedder is None else self._embedder.similarity_range

    def now(self) -> float:
        """Return the moment, in Unix seconds."""
        return float(self._clock())

    def ordered(self) -> Ordered:
        """Return the backend, if it walks its records in order."""
        if self._ordered is None:
            raise UnsupportedError(f"{type(self.store).__name__} keeps no order, so it cannot list newest first")
        return self._ordered

    @contextmanager
    def call(self) -> Iterator[None]:
        """Surround a call: refuse it after the end or from another event loop, and keep `aclose` waiting for it."""
        loop = asyncio.get_running_loop()
        if self._closed:
            raise StoreError("this memory is closed; open it again with MemoryStore.open")
        if self._loop not in (None, loop):
            raise StoreError("this memory is open in another event loop; close it there, or open another one here")
        self._loop = loop
        self._in_flight += 1
        try:
            yield
        finally:
            self._in_flight -= 1
            if not self._in_flight:
                self._idle.set()

    async def embed(self, texts: Sequence[str | None]) -> list[Vector | None]:
        """Return the vector of each text that is to be stored, of unit length; None where words alone are kept.

        Args:
            texts: None for a memory that is not indexed, which has no vector.

        Raises:
            EmbedderMismatchError: The store belongs to another embedder.
        """
        self._compare()
        if len(texts) == 1 and texts[0] is not None and self._embedder is not None:
            vectors: list[Vector | None] = [_unit(await self._embedder.embed(texts[0]))]  # concurrent ones coalesce
            await self._claim()  # only now: a store is an embedder's once it has vectors to keep
            return vectors
        some = [text for text in texts if text is not None]
        if not some:
            await self._check()
            return [None for _ in texts]
        made = iter(await self._embed_many(some))
        await self._claim()
        return [None if text is None else next(made) for text in texts]

    async def _embed_many(self, texts: list[str]) -> list[Vector | None]:
        """Embed piece by piece, letting the event loop go on in between."""
        vectors: list[Vector | None] = []
        if self._embedder is None:
            return [None for _ in texts]
        for start in range(0, len(texts), _BATCH):
            await asyncio.sleep(0)  # an embedder that has every answer at hand would never
            vectors += map(_unit, await self._embedder.embed_many(texts[start : start + _BATCH]))
        return vectors

    async def embed_query(self, text: str) -> Vector | None:
        """Return the vector of a question, of unit length; None if there is no embedder, or it can make nothing of it.

        Raises:
            EmbedderMismatchError: The store belongs to another embedder.
        """
        await self._check()
        if self._embedder is None:
            return None
        vector = await self._embedder.embed_query(text)
        if vector is None:
            return None
        await self._check()  # an embedder may be known by its answer alone
        return _unit(vector)

    async def touch(self, records: Sequence[R], now: float) -> list[R]:
        """Let records that were read live for another ttl, if the memory was opened so; return them as they are."""
        if not self.refresh_on_read:
            return list(records)
        mortal = [record for record in records if record is not None and record.ttl is not None]
        await self.store.touch(mortal, now)
        return [
            record if record is None or record.ttl is None else replace(record, expires_at=now + record.ttl)
            for record in records
        ]

    async def aclose(self) -> None:
        """Wait for calls in flight, then close the backend, and the embedder if it was made here."""
        self._closed = True
        while self._in_flight:
            self._idle.clear()
            await self._idle.wait()
        if self._embedder is not None:
            await self._embedder.aclose()
            close = getattr(self.given_embedder, "aclose", None)
            if self.owns_embedder and close is not None:
                await close()
        await self.store.aclose()

    def _fingerprint(self) -> str | None:
        if self._embedder is None:
            return _WORDS_ALONE
        dim = self._embedder.dim
        return self._embedder.fingerprint or (None if dim is None else f"dim={dim}")

    async def _check(self) -> None:
        """Refuse a store that belongs to another embedder, as far as this one is known."""
        if self._stored is None:
            self._stored = await self.store.fingerprint()
        self._compare()

    async def _claim(self) -> None:
        """Make the store this embedder's, or refuse another's."""
        if self._is_ours:
            return
        fingerprint = self._fingerprint()
        if self._stored is None and fingerprint is not None:
            async with self._claiming:
                self._stored = self._stored or await self.store.claim(fingerprint)
        self._compare()

    def _compare(self) -> None:
        if self._is_ours or self._stored is None:
            return
        given = self._fingerprint()
        if given is not None and self._stored != given:
            raise EmbedderMismatchError(self._stored, given)
        self._is_ours = given is not None


def _unit(vector: Vector) -> Vector:
    """Return a vector at length 1; zeros stay zeros."""
    exact = vector.astype(np.float64)
    square = float(exact @ exact)
    if square == 0 or abs(square - 1) < _UNIT:
        return vector
    return (exact / math.sqrt(square)).astype(np.float32)
