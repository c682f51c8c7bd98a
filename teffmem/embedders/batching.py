"""Many small requests for vectors, made into few large ones."""

import asyncio
from collections.abc import Sequence
from itertools import islice
from typing import Any

from teffmem.embedders._bounded import each
from teffmem.embedders._lifted import complete
from teffmem.errors import ProviderError
from teffmem.items import Vector

__all__ = ["BatchingEmbedder"]

_ALONE_AT_ONCE = 8
_BLAMED_ON_TEXT = frozenset({200, 400, 413, 422})  # statuses that one text of a batch can cause for all


class BatchingEmbedder:
    """Coalesces concurrent `embed` calls of another embedder, and checks what that answers.

    Texts that are asked for in one turn of the event loop, or while a call is under way, go together into the next
    call, equal texts once. Batches run one after the other; `embed_many` and `embed_query` go straight through. When
    a batch fails, and not because the provider is away or busy, each of its texts is tried once alone, so that only
    the faulty one's caller sees an error.
    """

    def __init__(self, embedder: Any, *, max_batch: int = 256) -> None:
        """Wrap an embedder; it stays its owner's to close.

        Args:
            embedder: An embedder, or whatever `complete` makes one of.
            max_batch: Texts a call.

        Raises:
            TypeError: It is no embedder.
            ValueError: max_batch is below 1.
        """
        if max_batch < 1:
            raise ValueError(f"max_batch is a whole number from 1, not {max_batch!r}")
        self._given = embedder
        self._inner = complete(embedder)
        self._max_batch = max_batch
        self._dim: int | None = None
        self._queue: _Queue | None = None
        self._closed = False

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._given!r}, max_batch={self._max_batch})"

    @property
    def dim(self) -> int | None:
        """Length of each vector; None if the embedder does not say and has not answered yet."""
        return self._inner.dim or self._dim

    @property
    def fingerprint(self) -> str | None:
        """That of the embedder."""
        return self._inner.fingerprint

    @property
    def similarity_range(self) -> tuple[float, float] | None:
        """That of the embedder."""
        return self._inner.similarity_range

    async def embed(self, text: str) -> Vector:
        """Return the vector of a text: float32, finite, ``dim`` long; the caller's own.

        Raises:
            ValueError: The embedder answered another number of vectors, or one of another length, or not finite.
            ProviderError: A provider did, or failed; or this embedder is closed. Any other error of the embedder's
                passes through.
        """
        self._check_open()
        queue = self._queue_here()
        future = queue.put(text)
        if queue.task is None:
            queue.task = queue.loop.create_task(self._serve(queue))
        try:
            return await future
        except asyncio.CancelledError:
            if not queue.is_wanted() and queue.task is not None:
                self._queue = None  # whoever comes next gets a queue of its own
                queue.task.cancel()
            raise

    async def embed_many(self, texts: Sequence[str]) -> list[Vector]:
        """Return one vector a text, in the order of the texts, by one call with each text once. Raises as `embed`."""
        self._check_open()
        once = list(dict.fromkeys(texts))
        if not once:
            return []
        vectors = dict(zip(once, self._as_long_as_ever(await self._inner.embed_many(once)), strict=True))
        return [vectors[text].copy() for text in texts]

    async def embed_query(self, text: str) -> Vector | None:
        """Return the vector of a question; None if the model can make nothing of it. Raises as `embed`."""
        self._check_open()
        vector = await self._inner.embed_query(text)
        return None if vector is None else self._as_long_as_ever([vector])[0]

    async def aclose(self) -> None:
        """Wait for batches under way. The embedder is left open. May be called again."""
        self._closed = True
        queue = self._queue
        if queue is not None and queue.task is not None and queue.loop is asyncio.get_running_loop():
            await asyncio.wait([queue.task])
        if self._inner is not self._given:  # the wrapper that was made here, with its threads
            await self._inner.aclose()

    def _check_open(self) -> None:
        if self._closed:
            raise ProviderError("this embedder is closed")

    def _queue_here(self) -> "_Queue":
        """Return the running loop's queue; one of a loop that has ended is gone with it."""
        loop = asyncio.get_running_loop()
        if self._queue is None or self._queue.loop is not loop:
            self._queue = _Queue(loop)
        return self._queue

    async def _serve(self, queue: "_Queue") -> None:
        try:
            await asyncio.sleep(0)  # let everybody who runs in this turn of the loop ask first
            while batch := queue.next_batch(self._max_batch):
                texts = list(batch)
                for text, outcome in zip(texts, await self._outcomes(texts), strict=True):
                    for future in batch[text]:
                        _settle(future, outcome)
        finally:
            queue.task = None
            queue.cancel()

    async def _outcomes(self, texts: list[str]) -> list[Vector | Exception]:
        """Return what became of each text: its vector, or the error its callers are to see."""
        try:
            return list(await self._embedded(texts))
        except Exception as error:  # noqa: BLE001 - it is raised again, by each caller's future
            if len(texts) == 1 or not _may_be_one_text(error):
                return [error] * len(texts)
        outage: list[Exception] = []

        async def alone(text: str) -> Vector | Exception:
            if outage:
                return outage[0]
            try:
                return (await self._embedded([text]))[0]
            except Exception as error:  # noqa: BLE001 - as above
                if not _may_be_one_text(error):
                    outage.append(error)
                return error

        return await each(alone, texts, _ALONE_AT_ONCE)

    async def _embedded(self, texts: list[str]) -> Sequence[Vector]:
        answer: Sequence[Vector] = (
            [await self._inner.embed(texts[0])] if len(texts) == 1 else await self._inner.embed_many(texts)
        )
        return self._as_long_as_ever(answer)

    def _as_long_as_ever(self, vectors: Sequence[Vector]) -> Sequence[Vector]:
        """Learn the dimension from the first answer, and refuse another; all else `complete` has checked."""
        dim = self.dim or vectors[0].size
        for vector in vectors:
            if vector.size != dim:
                raise ValueError(f"expected vectors of dimension {dim}, got {vector.size}")
        self._dim = dim
        return vectors


class _Queue:
    """Who waits for which text on one event loop, and the task that serves them."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.task: asyncio.Task[None] | None = None
        self._waiting: dict[str, list[asyncio.Future[Vector]]] = {}
        self._served: dict[str, list[asyncio.Future[Vector]]] = {}

    def put(self, text: str) -> asyncio.Future[Vector]:
        """Return a future of the text's vector."""
        future: asyncio.Future[Vector] = self.loop.create_future()
        self._waiting.setdefault(text, []).append(future)
        return future

    def next_batch(self, size: int) -> dict[str, list[asyncio.Future[Vector]]]:
        """Take up to ``size`` texts that somebody still waits for, first come first; {} if there are none."""
        self._waiting = {text: who for text, who in self._waiting.items() if not all(one.done() for one in who)}
        self._served = {text: self._waiting.pop(text) for text in list(islice(self._waiting, size))}
        return self._served

    def is_wanted(self) -> bool:
        """Tell whether anybody still waits for anything."""
        return any(not one.done() for who in (*self._served.values(), *self._waiting.values()) for one in who)

    def cancel(self) -> None:
        """Cancel everybody who still waits."""
        for who in (*self._served.values(), *self._waiting.values()):
            for one in who:
                one.cancel()


def _settle(future: asyncio.Future[Vector], outcome: Vector | Exception) -> None:
    if future.done():
        return
    if isinstance(outcome, Exception):
        future.set_exception(outcome)
        future.exception()  # mark it as seen: its caller may be cancelled in this very turn
    else:
        future.set_result(outcome.copy())


def _may_be_one_text(error: Exception) -> bool:
    """Tell whether a batch's failure may be the fault of one of its texts, rather than of the embedder."""
    if isinstance(error, ProviderError):
        return error.status in _BLAMED_ON_TEXT
    return not isinstance(error, OSError | ImportError)
