"""Embeds text with any model of the sentence-transformers library, on the processor or an accelerator."""

from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from teffmem.embedders._threaded import ThreadedEmbedder, Workers, encodable
from teffmem.errors import MissingExtraError
from teffmem.items import Vector

_absent: ImportError | None = None
try:
    from sentence_transformers import SentenceTransformer
except ImportError as error:
    _absent = error

__all__ = ["SentenceTransformersEmbedder"]


class SentenceTransformersEmbedder(ThreadedEmbedder[Any, str]):
    """Embeds text with a SentenceTransformer, scaled to unit length.

    Importing this module imports torch, which takes seconds.

    Attributes:
        fingerprint: Names the model and the prompt of documents; None for a model object that was given no name.
        similarity_range: As given: cosines of unrelated and of clearly related texts, or None.
    """

    def __init__(
        self,
        model: "str | Path | SentenceTransformer",
        *,
        query_prompt: str | None = None,
        document_prompt: str | None = None,
        device: str | None = None,
        batch_size: int = 32,
        fingerprint: str | None = None,
        similarity_range: tuple[float, float] | None = None,
    ) -> None:
        """Prepare; a name or path is loaded at first use.

        Args:
            model: A name on the Hugging Face hub (downloaded unless it is in its cache), a folder, or a loaded model,
                which nothing else may use meanwhile.
            query_prompt: What to put before each question; None takes the model's own, if it has one.
            document_prompt: What to put before each text that is stored; None takes the model's own.
            device: Such as "cpu", "cuda" or "mps"; None lets the library, or the loaded model, decide.
            batch_size: Texts that are computed at once.
            fingerprint: Names what makes the vectors, so that a store knows its own; None takes ``model`` if it is a
                name or a path.
            similarity_range: Cosines of unrelated and of clearly related texts in this model; None has them estimated.

        Raises:
            MissingExtraError: The extra ``sentence-transformers`` is not installed.
        """
        if _absent is not None:
            raise MissingExtraError("SentenceTransformersEmbedder", "sentence-transformers") from _absent
        # One worker: the tokenisers of Hugging Face refuse a second thread while one is at work.
        super().__init__(Workers(1), batch=batch_size)
        self._source = model
        self._query_prompt = query_prompt
        self._document_prompt = document_prompt
        self._device = device
        named = isinstance(model, str | Path)
        self.fingerprint = fingerprint or (_fingerprint(str(model), document_prompt) if named else None)
        self.similarity_range = similarity_range
        self._loaded = None if named else model

    @property
    def dim(self) -> int | None:
        """Length of the vectors; None until the model is loaded."""
        dim: int | None = None if self._loaded is None else self._loaded.get_embedding_dimension()
        return dim

    async def embed_query(self, text: str) -> Vector:
        """Return the vector of a question."""
        return await self._workers.run(self._embed_one, text, self._encode_query)

    def _load(self) -> Any:
        return SentenceTransformer(str(self._source), device=self._device)

    def _read(self, _: Any, text: str) -> str:
        return encodable(text)

    def _encode(self, model: Any, inputs: list[str]) -> NDArray[Any]:
        return self._rows(model.encode_document, inputs, self._document_prompt)

    def _encode_query(self, model: Any, inputs: list[str]) -> NDArray[Any]:
        return self._rows(model.encode_query, inputs, self._query_prompt)

    def _rows(self, encode: Any, inputs: list[str], prompt: str | None) -> NDArray[Any]:
        rows: NDArray[Any] = encode(
            inputs, prompt=prompt, batch_size=len(inputs), show_progress_bar=False, device=self._device
        )
        return rows


def _fingerprint(model: str, document_prompt: str | None) -> str:
    """Return a name for the vectors of stored texts; the prompt of questions does not change those."""
    prompt = "" if document_prompt is None else f":{document_prompt!r}"
    return f"sentence-transformers:{model}{prompt}:unit"
