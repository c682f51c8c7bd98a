"""What every embedder on this machine has in common: a synchronous model, run off the event loop."""

import asyncio
import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence, Sized
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Generic, ParamSpec, TypeVar

import numpy as np
from numpy.typing import NDArray

from teffmem.items import Vector

__all__ = ["ThreadedEmbedder", "Workers", "encodable"]

Model = TypeVar("Model")
Input = TypeVar("Input", bound=Sized)
Params = ParamSpec("Params")
Result = TypeVar("Result")


class Workers:
    """A bounded pool of threads that starts at first use, and anew in a forked child."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._pool: ThreadPoolExecutor | None = None
        self._process = 0

    async def run(self, work: Callable[Params, Result], *args: Params.args, **kwargs: Params.kwargs) -> Result:
        """Return what ``work`` returns; a call that is cancelled before its turn never runs."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._own_pool(), lambda: work(*args, **kwargs))

    async def aclose(self) -> None:
        """Wait for the work handed in and end the threads; later work starts new ones."""
        pool, self._pool = self._pool, None
        if pool is not None and self._process == os.getpid():
            await asyncio.to_thread(pool.shutdown)

    def _own_pool(self) -> ThreadPoolExecutor:
        if self._pool is None or self._process != os.getpid():
            # The parent's threads do not exist in a forked child: work handed to their pool would wait for ever.
            self._pool = ThreadPoolExecutor(self._count, thread_name_prefix="teffmem-embedder")
            self._process = os.getpid()
        return self._pool


class ThreadedEmbedder(ABC, Generic[Model, Input]):
    """Loads a model at first use and feeds it in batches, one batch a job.

    A call hands in its next batch when the last is done, so that other calls get their turn in between. Every
    vector is float32 and of unit length, or zero where the model makes nothing of a text.
    """

    def __init__(self, workers: Workers, *, batch: int) -> None:
        """Keep what loading needs; ``batch`` bounds the summed `_cost` of a batch (one input may exceed it)."""
        if batch < 1:
            raise ValueError(f"a batch must hold at least 1, not {batch!r}")
        self._workers = workers
        self._batch = batch
        self._loading = threading.Lock()
        self._loaded: Model | None = None

    @property
    @abstractmethod
    def dim(self) -> int | None:
        """Length of the vectors; None until the model is loaded, if only it knows."""

    @abstractmethod
    def _load(self) -> Model:
        """Return the model, ready for use. Called in a worker, once unless it raises."""

    @abstractmethod
    def _read(self, model: Model, text: str) -> Input:
        """Return what the model takes for a text."""

    @abstractmethod
    def _encode(self, model: Model, inputs: list[Input]) -> NDArray[Any]:
        """Return one row for each input, in their order; they are scaled afterwards."""

    def _cost(self, _: Input) -> int:
        """Return how much of a batch an input takes; one each, unless a subclass knows better."""
        return 1

    async def embed(self, text: str) -> Vector:
        """Return the vector of a text that is to be stored."""
        return await self._workers.run(self._embed_one, text, self._encode)

    async def embed_many(self, texts: Sequence[str]) -> list[Vector]:
        """Return one vector a text, in the order of the texts; [] for [], without loading the model."""
        if not texts:
            return []
        inputs = await self._workers.run(self._read_all, texts)
        vectors: dict[int, Vector] = {}
        for places in self._batches(inputs):
            rows = await self._workers.run(self._embed_batch, [inputs[place] for place in places])
            vectors.update(zip(places, rows, strict=True))
        return [vectors[place] for place in range(len(inputs))]

    def _embed_one(self, text: str, encode: Callable[[Model, list[Input]], NDArray[Any]]) -> Vector:
        model = self._model()
        return _unit(encode(model, [self._read(model, text)]))[0]

    def _embed_batch(self, inputs: list[Input]) -> list[Vector]:
        return _unit(self._encode(self._model(), inputs))

    def _read_all(self, texts: Sequence[str]) -> list[Input]:
        model = self._model()
        return [self._read(model, text) for text in texts]

    def _model(self) -> Model:
        with self._loading:
            if self._loaded is None:
                self._loaded = self._load()
            return self._loaded

    def _batches(self, inputs: Sequence[Input]) -> Iterator[list[int]]:
        """Yield the places of each batch, shortest inputs first, so that little is padded or split unevenly."""
        batch: list[int] = []
        room = self._batch
        for place in sorted(range(len(inputs)), key=lambda place: len(inputs[place])):
            cost = self._cost(inputs[place])
            if batch and cost > room:
                yield batch
                batch, room = [], self._batch
            batch.append(place)
            room -= cost
        if batch:
            yield batch


def encodable(text: str) -> str:
    """Return the text with a question mark for each lone surrogate, which tokenisers written in C or Rust refuse."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _unit(rows: NDArray[Any]) -> list[Vector]:
    """Return each row as a float32 array of its own, scaled to length 1; a zero row stays zero."""
    matrix = np.asarray(rows, dtype=np.float32)
    lengths = np.linalg.norm(matrix, axis=1, keepdims=True)
    return [row.copy() for row in matrix / np.where(lengths > 0, lengths, np.float32(1))]
