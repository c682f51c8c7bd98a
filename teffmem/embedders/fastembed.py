"""Embeds text with a model of Qdrant's fastembed library, which runs them by onnxruntime."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from teffmem.embedders._threaded import ThreadedEmbedder, Workers, encodable
from teffmem.errors import MissingExtraError
from teffmem.items import Vector

_absent: ImportError | None = None
try:
    from fastembed import TextEmbedding
except ImportError as error:
    _absent = error

__all__ = ["FastEmbedEmbedder"]


class FastEmbedEmbedder(ThreadedEmbedder[Any, str]):
    """Embeds text with a model of fastembed, scaled to unit length; questions and passages by its own methods.

    Attributes:
        fingerprint: Names the model.
        similarity_range: As given: cosines of unrelated and of clearly related texts, or None.
    """

    def __init__(
        self,
        model: "str | TextEmbedding" = "BAAI/bge-small-en-v1.5",
        *,
        path: str | Path | None = None,
        cache_dir: str | Path | None = None,
        threads: int | None = None,
        batch_size: int = 32,
        fingerprint: str | None = None,
        similarity_range: tuple[float, float] | None = None,
    ) -> None:
        """Prepare; a model given by name is loaded at first use.

        Args:
            model: A name that fastembed knows, its own or registered with ``TextEmbedding.add_custom_model``, or a
                loaded model, which nothing else may use meanwhile.
            path: A folder with the files of that model; None takes them from the cache, or downloads them.
            cache_dir: Where downloaded models are kept; None lets fastembed decide (a temporary folder).
            threads: Threads of one computation; None lets onnxruntime decide.
            batch_size: Texts that are computed at once.
            fingerprint: Names what makes the vectors; None takes the model's name.
            similarity_range: Cosines of unrelated and of clearly related texts in this model; None has them estimated.

        Raises:
            MissingExtraError: The extra ``fastembed`` is not installed.
            ValueError: fastembed knows no model of that name.
        """
        if _absent is not None:
            raise MissingExtraError("FastEmbedEmbedder", "fastembed") from _absent
        # One worker: the tokenisers of Hugging Face refuse a second thread while one is at work.
        super().__init__(Workers(1), batch=batch_size)
        self._name = model if isinstance(model, str) else model.model_name
        self._path = None if path is None else str(path)
        self._cache_dir = None if cache_dir is None else str(cache_dir)
        self._threads = threads
        self._dim = int(TextEmbedding.get_embedding_size(self._name))
        self.fingerprint = fingerprint or f"fastembed:{self._name}:unit"
        self.similarity_range = similarity_range
        self._loaded = None if isinstance(model, str) else model

    @property
    def dim(self) -> int:
        """Length of the vectors."""
        return self._dim

    async def embed_query(self, text: str) -> Vector:
        """Return the vector of a question."""
        return await self._workers.run(self._embed_one, text, self._encode_query)

    def _load(self) -> Any:
        return TextEmbedding(self._name, self._cache_dir, self._threads, specific_model_path=self._path)

    def _read(self, _: Any, text: str) -> str:
        return encodable(text)

    def _encode(self, model: Any, inputs: list[str]) -> NDArray[Any]:
        return np.stack(list(model.passage_embed(inputs, batch_size=len(inputs))))

    def _encode_query(self, model: Any, inputs: list[str]) -> NDArray[Any]:
        return np.stack(list(model.query_embed(inputs)))
