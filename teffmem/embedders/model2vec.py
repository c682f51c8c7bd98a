"""Embeds text with a static model of model2vec: a table of word vectors, thousands of texts a second."""

from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from teffmem.embedders._threaded import ThreadedEmbedder, Workers, encodable
from teffmem.errors import MissingExtraError

_absent: ImportError | None = None
try:
    from model2vec import StaticModel
except ImportError as error:
    _absent = error

__all__ = ["Model2VecEmbedder"]


class Model2VecEmbedder(ThreadedEmbedder[Any, str]):
    """Embeds text with a model2vec model, scaled to unit length; a text of which it knows no word is zero.

    Attributes:
        fingerprint: Names the model; None for a model object that was given no name.
        similarity_range: As given: cosines of unrelated and of clearly related texts, or None.
    """

    def __init__(
        self,
        model: "str | Path | StaticModel",
        *,
        batch_size: int = 1024,
        fingerprint: str | None = None,
        similarity_range: tuple[float, float] | None = None,
    ) -> None:
        """Prepare; a name or path is loaded at first use.

        Args:
            model: A name on the Hugging Face hub (downloaded unless it is in its cache), a folder, or a loaded model,
                which nothing else may use meanwhile.
            batch_size: Texts that are computed at once.
            fingerprint: Names what makes the vectors, so that a store knows its own; None takes ``model`` if it is a
                name or a path.
            similarity_range: Cosines of unrelated and of clearly related texts in this model; None has them estimated.

        Raises:
            MissingExtraError: The extra ``model2vec`` is not installed.
        """
        if _absent is not None:
            raise MissingExtraError("Model2VecEmbedder", "model2vec") from _absent
        # One worker: a model sets its tokeniser's limit at each call, so two calls at once would disturb each other.
        super().__init__(Workers(1), batch=batch_size)
        self._source = model
        named = isinstance(model, str | Path)
        self.fingerprint = fingerprint or (f"model2vec:{model}:unit" if named else None)
        self.similarity_range = similarity_range
        self._loaded = None if named else model

    @property
    def dim(self) -> int | None:
        """Length of the vectors; None until the model is loaded."""
        return None if self._loaded is None else int(self._loaded.dim)

    def _load(self) -> Any:
        # Its default downloads anew each time, and fails without a network although the model is there.
        return StaticModel.from_pretrained(str(self._source), force_download=False)

    def _read(self, _: Any, text: str) -> str:
        return encodable(text)

    def _encode(self, model: Any, inputs: list[str]) -> NDArray[Any]:
        rows: NDArray[Any] = model.encode(inputs, batch_size=len(inputs), use_multiprocessing=False)
        return rows
