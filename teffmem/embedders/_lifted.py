"""Making an `Embedder` of what people have: a plain function, or an object that can only embed one text."""

import inspect
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol

from teffmem.embedders._bounded import each
from teffmem.embedders._threaded import Workers
from teffmem.embedders._vectors import checked_vectors
from teffmem.items import Vector
from teffmem.protocols import Embedder

__all__ = ["CompleteEmbedder", "FunctionEmbedder", "LiftedEmbedder", "complete"]

_ASYNC_CALLS_AT_ONCE = 8
_NO_VECTOR_FUNCTION = "an embedder has embed(text), sync or async, or is itself a function from a text to its vector"


class CompleteEmbedder(Embedder, Protocol):
    """An `Embedder` with everything that is optional there; what is not known is None."""

    @property
    def dim(self) -> int | None:
        """Length of each vector."""
        ...

    @property
    def fingerprint(self) -> str | None:
        """Name of the vectors: model, dimension, normalisation."""
        ...

    @property
    def similarity_range(self) -> tuple[float, float] | None:
        """Cosines between which meaning counts, see `ranking.Query`."""
        ...

    async def embed_query(self, text: str) -> Vector | None:
        """Return the vector of a question; None if the model can make nothing of it."""
        ...

    async def aclose(self) -> None:
        """Let go of everything that was opened here."""
        ...


class LiftedEmbedder:
    """Gives an object that has at least ``embed`` the rest of the protocol.

    What the object has is used: ``embed_many``, ``embed_query``, ``dim``, ``fingerprint``, ``similarity_range``.
    Without ``embed_many``, texts are embedded one by one; without ``embed_query``, a question as a text is.
    Methods that are not async run in a thread, so that they do not stop the event loop, and never two at a time.
    """

    def __init__(self, embedder: Any, *, at_once: int | None = None) -> None:
        """Wrap an object; it stays its owner's to close.

        Args:
            embedder: Has ``embed(text)``.
            at_once: How many threads sync methods may use (1 by default, as few models say whether they bear
                more), and how many async calls one ``embed_many`` makes at a time if the object has none (8).

        Raises:
            TypeError: The object has no ``embed``.
        """
        if not callable(getattr(embedder, "embed", None)):
            raise TypeError(f"{_NO_VECTOR_FUNCTION}; got {type(embedder).__name__}")
        self._inner = embedder
        self._workers = Workers(at_once or 1)
        self._embed = _call(embedder.embed, self._workers)
        self._embed_many = _optional_call(embedder, "embed_many", self._workers)
        self._embed_query = _optional_call(embedder, "embed_query", self._workers)
        self._at_once = at_once or _ASYNC_CALLS_AT_ONCE

    def __repr__(self) -> str:
        return f"{type(self).__name__}({type(self._inner).__name__})"

    @property
    def dim(self) -> int | None:
        """Length of each vector; None if not known."""
        dim: int | None = getattr(self._inner, "dim", None)
        return dim

    @property
    def fingerprint(self) -> str | None:
        """Name of the vectors; None if they have none."""
        name: str | None = getattr(self._inner, "fingerprint", None)
        return name

    @property
    def similarity_range(self) -> tuple[float, float] | None:
        """Cosines between which meaning counts; None if not known."""
        bounds: tuple[float, float] | None = getattr(self._inner, "similarity_range", None)
        return bounds

    async def embed(self, text: str) -> Vector:
        """Return the vector of a text: float32, finite, ``dim`` long.

        Raises:
            ValueError: What was answered is no such vector. What the object itself raises passes through.
        """
        return checked_vectors([await self._embed(text)], 1, self.dim)[0]

    async def embed_many(self, texts: Sequence[str]) -> list[Vector]:
        """Return one vector a text, in the order of the texts; all or nothing. Raises as `embed` does."""
        if not texts:
            return []
        if self._embed_many is None:
            answer: Any = await each(self._embed, texts, self._at_once)
        else:
            answer = await self._embed_many(list(texts))
        return checked_vectors(answer, len(texts), self.dim)

    async def embed_query(self, text: str) -> Vector | None:
        """Return the vector of a question, or None if the object's own ``embed_query`` does."""
        if self._embed_query is None:
            return await self.embed(text)
        vector = await self._embed_query(text)
        return None if vector is None else checked_vectors([vector], 1, self.dim)[0]

    async def aclose(self) -> None:
        """Wait for threads under way and end them; the wrapped object is left open. May be called again."""
        await self._workers.aclose()


class FunctionEmbedder(LiftedEmbedder):
    """Makes an embedder of a function from one text to its vector (a list or array of numbers), sync or async.

    A sync function runs in a thread, and is never called by two threads at once unless ``at_once`` says so.
    """

    def __init__(
        self,
        function: Callable[[str], Any],
        *,
        dim: int | None = None,
        fingerprint: str | None = None,
        similarity_range: tuple[float, float] | None = None,
        at_once: int | None = None,
    ) -> None:
        """Wrap a function.

        Args:
            function: Called with one text.
            dim: Length that each vector must have; None: whatever the function gives, as long as it stays the same.
            fingerprint: Name of the vectors; change it whenever the function would give others.
            similarity_range: Cosines between which meaning counts.
            at_once: How many calls may be under way for one ``embed_many``: 1 for a sync function, 8 for an async one.

        Raises:
            TypeError: It cannot be called.
        """
        if not callable(function):
            raise TypeError(f"{_NO_VECTOR_FUNCTION}; got {type(function).__name__}")
        super().__init__(_OfFunction(function), at_once=at_once)
        self._dim = dim
        self._fingerprint = fingerprint
        self._range = similarity_range

    @property
    def dim(self) -> int | None:
        """Length of each vector; None before the first, if it was not given."""
        return self._dim

    @property
    def fingerprint(self) -> str | None:
        """Name of the vectors, as given."""
        return self._fingerprint

    @property
    def similarity_range(self) -> tuple[float, float] | None:
        """Cosines between which meaning counts, as given."""
        return self._range

    async def embed(self, text: str) -> Vector:
        """Return the vector of a text: float32, finite, as long as all before. Raises as `LiftedEmbedder.embed`."""
        vector = await super().embed(text)
        return self._as_long_as_ever([vector])[0]

    async def embed_many(self, texts: Sequence[str]) -> list[Vector]:
        """Return one vector a text, in the order of the texts. Raises as `embed` does."""
        return self._as_long_as_ever(await super().embed_many(texts))

    def _as_long_as_ever(self, vectors: list[Vector]) -> list[Vector]:
        """Learn the dimension from the first vectors; refuse others, which came while none was known."""
        for vector in vectors:
            if self._dim not in (None, vector.size):
                raise ValueError(f"expected vectors of dimension {self._dim}, got {vector.size}")
            self._dim = vector.size
        return vectors


def complete(embedder: Any) -> CompleteEmbedder:
    """Return an embedder with everything optional there: the given one if it has it all, else a wrapper.

    Args:
        embedder: Any object with ``embed(text)``, or a function from a text to its vector, each sync or async.

    Raises:
        TypeError: It is neither.
    """
    if isinstance(embedder, LiftedEmbedder):
        return embedder
    if callable(getattr(embedder, "embed", None)):
        return LiftedEmbedder(embedder)
    return FunctionEmbedder(embedder)


class _OfFunction:
    def __init__(self, function: Callable[[str], Any]) -> None:
        self.embed = function


def _call(function: Any, workers: Workers) -> Callable[[Any], Awaitable[Any]]:
    """Return a function or method as an async one: itself if it is, else run in a thread."""
    if inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__):
        as_it_is: Callable[[Any], Awaitable[Any]] = function
        return as_it_is

    async def off_the_loop(argument: Any) -> Any:
        answer = await workers.run(_without_stop_iteration, function, argument)
        return await answer if isinstance(answer, Awaitable) else answer

    return off_the_loop


def _optional_call(embedder: Any, name: str, workers: Workers) -> Callable[[Any], Awaitable[Any]] | None:
    function = getattr(embedder, name, None)
    return _call(function, workers) if callable(function) else None


def _without_stop_iteration(function: Callable[[Any], Any], argument: Any) -> Any:
    try:
        return function(argument)
    except StopIteration as error:  # a future cannot carry it, and its awaiter would wait for ever
        raise RuntimeError("the embedding function raised StopIteration") from error
