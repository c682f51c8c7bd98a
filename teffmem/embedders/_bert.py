"""A BERT encoder in numpy: token ids -> one vector a text.

The network of Devlin et al. 2019 with the sizes of all-MiniLM-L6-v2: 6 layers, 12 heads of 32, width 384. The texts of
a batch lie one below the other in one matrix, so that the large products see no padding; attention, which must not
cross texts, runs on groups of texts of equal length.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["POSITIONS", "WIDTH", "Encoder"]

Floats = NDArray[np.float32]
Tensors = Mapping[str, NDArray[Any]]

POSITIONS = 512
"""The longest text the network can take, in tokens."""

WIDTH = 384
_LAYERS = 6
_HEADS, _HEAD_WIDTH = 12, 32
_MATRICES_A_LAYER = 6  # query, key, value, attention output, up, down
_EPSILON = np.float32(1e-12)


@dataclass(frozen=True, slots=True)
class _Dense:
    weight: Floats  # (in, out)
    bias: Floats

    def __call__(self, rows: Floats) -> Floats:
        out: Floats = rows @ self.weight
        out += self.bias
        return out


@dataclass(frozen=True, slots=True)
class _LayerNorm:
    gain: Floats
    bias: Floats

    def __call__(self, rows: Floats) -> Floats:
        out: Floats = rows - rows.mean(-1, keepdims=True)
        out *= 1 / np.sqrt((out * out).mean(-1, keepdims=True) + _EPSILON)
        out *= self.gain
        out += self.bias
        return out


@dataclass(frozen=True, slots=True)
class _Layer:
    query_key_value: _Dense
    attention_output: _Dense
    attention_norm: _LayerNorm
    up: _Dense
    down: _Dense
    output_norm: _LayerNorm

    def __call__(self, rows: Floats, groups: Sequence[NDArray[np.intp]]) -> Floats:
        attended = _attend(self.query_key_value(rows), groups)
        rows = self.attention_norm(rows + self.attention_output(attended))
        return self.output_norm(rows + self.down(_gelu(self.up(rows))))


class Encoder:
    """The network, read from the tensors of the ONNX file; holds no state between calls."""

    def __init__(self, tensors: Tensors) -> None:
        """Take the weights; matrices are int8 with a scale, and become float32 but for the large word table."""
        embeddings = "inner.embeddings"
        self._words = tensors[f"{embeddings}.word_embeddings.weight_q"]
        self._word_scales = tensors[f"{embeddings}.word_embeddings.weight_scale"]
        positions = _dequantised(tensors, f"{embeddings}.position_embeddings.weight")
        self._positions = positions + tensors[f"{embeddings}.token_type_embeddings.weight"][0]
        self._norm = _norm(tensors, f"{embeddings}.LayerNorm")
        self._layers = list(_layers(tensors))

    def __call__(self, batch: Sequence[Sequence[int]]) -> Floats:
        """Return the mean of the last layer over the tokens of each text, (texts, WIDTH); no text may be empty."""
        lengths = [len(ids) for ids in batch]
        starts = np.cumsum([0, *lengths[:-1]])
        groups = list(_rows_by_length(lengths, starts))
        rows = self._embed(np.concatenate([np.asarray(ids) for ids in batch]), lengths)
        for layer in self._layers:
            rows = layer(rows, groups)
        sums: Floats = np.add.reduceat(rows, starts, axis=0)
        return sums / np.asarray(lengths, np.float32)[:, None]

    def _embed(self, ids: NDArray[np.int_], lengths: Sequence[int]) -> Floats:
        places = np.concatenate([self._positions[:length] for length in lengths])
        return self._norm(self._words[ids] * self._word_scales[ids] + places)


def _rows_by_length(lengths: Sequence[int], starts: NDArray[np.int_]) -> Iterator[NDArray[np.intp]]:
    """Yield, for each length that occurs, the rows of its texts: (texts, length)."""
    texts: dict[int, list[int]] = defaultdict(list)
    for text, length in enumerate(lengths):
        texts[length].append(text)
    for length, members in texts.items():
        yield starts[members][:, None] + np.arange(length)


def _attend(query_key_value: Floats, groups: Sequence[NDArray[np.intp]]) -> Floats:
    """Return what each token takes from the tokens of its own text, (rows, WIDTH)."""
    out = np.empty((len(query_key_value), WIDTH), np.float32)
    for rows in groups:
        heads = query_key_value[rows].reshape(*rows.shape, 3, _HEADS, _HEAD_WIDTH)
        query, key, value = heads.transpose(2, 0, 3, 1, 4)  # each (texts, heads, length, head width)
        mixed = _softmax(query @ key.swapaxes(-1, -2)) @ value
        out[rows] = mixed.swapaxes(1, 2).reshape(*rows.shape, WIDTH)
    return out


def _softmax(scores: Floats) -> Floats:
    """Return attention weights, which add up to 1 over the last axis; works in the array it is given."""
    scores *= np.float32(_HEAD_WIDTH**-0.5)
    scores -= scores.max(-1, keepdims=True)
    np.exp(scores, out=scores)
    scores /= scores.sum(-1, keepdims=True)
    return scores


def _gelu(rows: Floats) -> Floats:
    """Return x (1 + erf(x / sqrt 2)) / 2, with erf from Abramowitz and Stegun 7.1.26 (off by at most 1.5e-7)."""
    z = np.abs(rows)
    z *= np.float32(0.5**0.5)
    t = 1 / (1 + np.float32(0.3275911) * z)
    tail = np.full_like(t, 1.061405429)
    for coefficient in (-1.453152027, 1.421413741, -0.284496736, 0.254829592):
        tail *= t
        tail += np.float32(coefficient)
    tail *= t
    np.square(z, out=z)
    np.negative(z, out=z)
    tail *= np.exp(z, out=z)
    erf = np.copysign(np.subtract(1, tail, out=tail), rows, out=tail)
    erf += 1
    erf *= rows
    erf *= np.float32(0.5)
    return erf


def _layers(tensors: Tensors) -> Iterator[_Layer]:
    # The matrices lost their names in the export: val_<n>, whose numbers follow the order of the network.
    numbers = sorted(int(name[4:-2]) for name in tensors if name.startswith("val_") and name.endswith("_q"))
    for place in range(_LAYERS):
        mine = numbers[_MATRICES_A_LAYER * place : _MATRICES_A_LAYER * (place + 1)]
        yield _layer(tensors, f"inner.encoder.layer.{place}", [_dequantised(tensors, f"val_{n}") for n in mine])


def _layer(tensors: Tensors, name: str, matrices: Sequence[Floats]) -> _Layer:
    query, key, value, attention_output, up, down = matrices
    biases = [tensors[f"{name}.attention.self.{part}.bias"] for part in ("query", "key", "value")]
    return _Layer(
        query_key_value=_Dense(np.concatenate([query, key, value], axis=1), np.concatenate(biases)),
        attention_output=_Dense(attention_output, tensors[f"{name}.attention.output.dense.bias"]),
        attention_norm=_norm(tensors, f"{name}.attention.output.LayerNorm"),
        up=_Dense(up, tensors[f"{name}.intermediate.dense.bias"]),
        down=_Dense(down, tensors[f"{name}.output.dense.bias"]),
        output_norm=_norm(tensors, f"{name}.output.LayerNorm"),
    )


def _norm(tensors: Tensors, name: str) -> _LayerNorm:
    return _LayerNorm(tensors[f"{name}.weight"], tensors[f"{name}.bias"])


def _dequantised(tensors: Tensors, name: str) -> Floats:
    matrix: Floats = tensors[f"{name}_q"].astype(np.float32) * tensors[f"{name}_scale"]
    return matrix
