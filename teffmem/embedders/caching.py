"""Remembering the vectors of texts that were embedded before."""

import json
import os
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from types import TracebackType
from typing import Any, Literal, Self

from teffmem.embedders._lifted import complete
from teffmem.embedders._threaded import Workers
from teffmem.embedders._vector_file import VectorFile
from teffmem.embedders._vectors import checked_vectors
from teffmem.errors import ProviderError
from teffmem.items import Vector

__all__ = ["CachingEmbedder"]

_Kind = Literal["document", "query"]
_NO_NAME = (
    "a cache needs to know whose vectors it holds, and {} has no fingerprint: give it one that changes whenever its "
    "vectors would"
)


class CachingEmbedder:
    """Asks another embedder only for what it was not asked for before.

    The vectors used last are kept in memory, and in a file if a path is given, which any number of processes may
    share. Both are keyed by a hash of fingerprint, purpose (a question or not) and text: neither holds readable text.
    An embedder that learns its fingerprint from its first answer is asked for everything until then; tell it its
    ``dim`` to spare that.
    """

    def __init__(
        self,
        embedder: Any,
        path: str | os.PathLike[str] | None = None,
        *,
        max_items: int = 10_000,
        close_inner: bool = False,
    ) -> None:
        """Wrap an embedder; the file is opened at the first call.

        Args:
            embedder: An embedder with a fingerprint, or whatever `complete` makes one of.
            path: Cache file, made with its folders if missing, for its owner alone (0600, 0700); None: memory only.
            max_items: How many vectors are kept, in memory and in the file. One takes 4 bytes a dimension.
            close_inner: Whether `aclose` closes the embedder too.

        Raises:
            ValueError: The embedder has no fingerprint, or max_items is below 1.
            TypeError: It is no embedder.
        """
        if max_items < 1:
            raise ValueError(f"max_items is a whole number from 1, not {max_items!r}")
        self._inner = complete(embedder)
        if not hasattr(embedder, "fingerprint"):
            raise ValueError(_NO_NAME.format(type(embedder).__name__))
        self._given = embedder
        self._max_items = max_items
        self._close_inner = close_inner
        self._memory: OrderedDict[bytes, Vector] = OrderedDict()
        self._file = None if path is None else VectorFile(os.fspath(path), max_items)
        self._worker = Workers(1)
        self._closed = False

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._given!r})"

    @property
    def dim(self) -> int | None:
        """That of the embedder."""
        return self._inner.dim

    @property
    def fingerprint(self) -> str | None:
        """That of the embedder."""
        return self._inner.fingerprint

    @property
    def similarity_range(self) -> tuple[float, float] | None:
        """That of the embedder."""
        return self._inner.similarity_range

    async def embed(self, text: str) -> Vector:
        """Return the vector of a text that is to be stored; the caller's own.

        Raises:
            ValueError: The embedder has no fingerprint even after answering, or answered no finite vector.
            StoreError: The file at the path is something else than a cache, or of a later version.
            ProviderError: This embedder is closed. What the embedder raises passes through.
        """
        return (await self.embed_many([text]))[0]

    async def embed_many(self, texts: Sequence[str]) -> list[Vector]:
        """Return one vector a text, in the order of the texts; one call asks for what is missing. Raises as `embed`."""
        once = list(dict.fromkeys(texts))
        vectors = await self._recalled(once, "document")
        missing = [text for text in once if text not in vectors]
        if missing:
            answer = (
                [await self._inner.embed(missing[0])] if len(missing) == 1 else await self._inner.embed_many(missing)
            )
            new = dict(zip(missing, checked_vectors(answer, len(missing), self.dim), strict=True))
            await self._keep(new, "document")
            vectors.update(new)
        return [vectors[text].copy() for text in texts]

    async def embed_query(self, text: str) -> Vector | None:
        """Return the vector of a question; None, which is not kept, if the model can make nothing of it."""
        vector = (await self._recalled([text], "query")).get(text)
        if vector is None:
            answer = await self._inner.embed_query(text)
            if answer is None:
                return None
            (vector,) = checked_vectors([answer], 1, self.dim)
            await self._keep({text: vector}, "query")
        return vector.copy()

    async def aclose(self) -> None:
        """Wait for the file's work and close it, and the embedder if that was asked for. May be called again."""
        self._closed = True
        if self._file is not None:
            await self._worker.run(self._file.close)
        await self._worker.aclose()
        if self._inner is not self._given:  # the wrapper that was made here, with its threads
            await self._inner.aclose()
        if self._close_inner and hasattr(self._given, "aclose"):
            await self._given.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def _recalled(self, texts: Iterable[str], kind: _Kind) -> dict[str, Vector]:
        """Return the vectors of those texts that are known, and count them as used."""
        if self._closed:
            raise ProviderError("this embedder is closed")
        name = self.fingerprint
        if name is None:
            return {}
        keys = {text: _key(name, kind, text) for text in texts}
        known = {key: self._memory[key] for key in keys.values() if key in self._memory}
        unknown = [key for key in keys.values() if key not in known]
        if unknown and self._file is not None:
            known.update(await self._worker.run(self._file.read, unknown))
        self._remember(known)
        found = {text: known[key] for text, key in keys.items() if key in known}
        return {text: vector for text, vector in found.items() if self.dim in (None, vector.size)}

    async def _keep(self, vectors: Mapping[str, Vector], kind: _Kind) -> None:
        name = self.fingerprint
        if name is None:
            raise ValueError(_NO_NAME.format(type(self._given).__name__))
        by_key = {_key(name, kind, text): vector for text, vector in vectors.items()}
        self._remember(by_key)
        if self._file is not None and not self._closed:
            await self._worker.run(self._file.write, by_key)

    def _remember(self, vectors: Mapping[bytes, Vector]) -> None:
        """Put vectors at the fresh end of memory, and let the stalest go."""
        for key, vector in vectors.items():
            self._memory[key] = vector
            self._memory.move_to_end(key)
        while len(self._memory) > self._max_items:
            self._memory.popitem(last=False)


def _key(name: str, kind: _Kind, text: str) -> bytes:
    return blake2b(json.dumps([name, kind, text]).encode(), digest_size=20).digest()
