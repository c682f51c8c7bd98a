"""Reads the weights out of an ONNX file, without the onnx package.

An ONNX file is one protobuf message, and protobuf is a list of numbered fields: a key (number and wire type) followed
by a varint, by eight or four bytes, or by a length and that many bytes. Field numbers are those of ``onnx.proto``.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["read_tensors"]

_MODEL_GRAPH = 7
_GRAPH_INITIALIZER = 5
_TENSOR_DIMS, _TENSOR_TYPE, _TENSOR_NAME, _TENSOR_RAW = 1, 2, 8, 9
_DTYPES: dict[int, type[np.generic]] = {1: np.float32, 3: np.int8}  # little-endian, by TensorProto.DataType

_VARINT, _EIGHT_BYTES, _LENGTH, _FOUR_BYTES = 0, 1, 2, 5


def read_tensors(model: bytes) -> dict[str, NDArray[Any]]:
    """Return the float32 and int8 initialisers of a model by name, as views of its bytes.

    Initialisers of other types, and those that do not keep their data as raw bytes, are left out.
    """
    tensors: dict[str, NDArray[Any]] = {}
    for graph in _messages(memoryview(model), _MODEL_GRAPH):
        for tensor in _messages(graph, _GRAPH_INITIALIZER):
            _collect(tensor, tensors)
    return tensors


def _collect(tensor: memoryview, tensors: dict[str, NDArray[Any]]) -> None:
    shape: list[int] = []
    name, kind, raw = "", 0, memoryview(b"")
    for number, value in _fields(tensor):
        if number == _TENSOR_DIMS:
            shape.extend([value] if isinstance(value, int) else _packed(value))
        elif number == _TENSOR_TYPE and isinstance(value, int):
            kind = value
        elif number == _TENSOR_NAME and isinstance(value, memoryview):
            name = bytes(value).decode("utf-8")
        elif number == _TENSOR_RAW and isinstance(value, memoryview):
            raw = value
    if raw and kind in _DTYPES:
        tensors[name] = np.frombuffer(raw, _DTYPES[kind]).reshape(shape)


def _messages(message: memoryview, wanted: int) -> Iterator[memoryview]:
    for number, value in _fields(message):
        if number == wanted and isinstance(value, memoryview):
            yield value


def _fields(message: memoryview) -> Iterator[tuple[int, int | memoryview]]:
    """Yield the number and value of each field: an int for a varint, else the bytes."""
    at = 0
    while at < len(message):
        key, at = _varint(message, at)
        number, wire_type = key >> 3, key & 7
        if wire_type == _VARINT:
            value, at = _varint(message, at)
            yield number, value
            continue
        size, at = _size(wire_type, message, at)
        yield number, message[at : at + size]
        at += size


def _size(wire_type: int, message: memoryview, at: int) -> tuple[int, int]:
    """Return how many bytes a field takes that is no varint, and where they start."""
    if wire_type == _LENGTH:
        return _varint(message, at)
    if wire_type in (_EIGHT_BYTES, _FOUR_BYTES):
        return (8 if wire_type == _EIGHT_BYTES else 4), at
    raise ValueError(f"not an ONNX file: wire type {wire_type} at byte {at}")


def _packed(numbers: memoryview) -> Iterator[int]:
    at = 0
    while at < len(numbers):
        number, at = _varint(numbers, at)
        yield number


def _varint(message: memoryview, at: int) -> tuple[int, int]:
    """Return the number that starts at a byte, seven bits a byte, lowest first, and where the next field starts."""
    number = shift = 0
    while True:
        byte = message[at]
        number |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return number, at
