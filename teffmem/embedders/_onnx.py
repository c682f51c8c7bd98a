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

_VARINT, _LENGTH = 0, 2  # wire types
_FIXED_SIZES = {1: 8, 5: 4}  # bytes, by wire type


def read_tensors(model: bytes) -> dict[str, NDArray[Any]]:
    """Return the float32 and int8 initialisers of a model by name, as views of its bytes.

    Initialisers of other types, and those that do not keep their data as raw bytes, are left out.
    """
    tensors: dict[str, NDArray[Any]] = {}
    for field, graph in _fields(memoryview(model)):
        if field == _MODEL_GRAPH:
            for inner, tensor in _fields(graph):
                if inner == _GRAPH_INITIALIZER:
                    tensors.update(_named_array(tensor))
    return tensors


def _named_array(tensor: memoryview) -> dict[str, NDArray[Any]]:
    """Return the array of a tensor under its name; nothing if it is of another kind."""
    shape: list[int] = []
    fields: dict[int, memoryview] = {}
    for field, value in _fields(tensor):
        if field == _TENSOR_DIMS:  # one field a dimension, or one with all of them
            shape.extend(_integers(value))
        fields[field] = value
    [kind] = _integers(fields[_TENSOR_TYPE])
    dtype = _DTYPES.get(kind)
    if dtype is None or _TENSOR_RAW not in fields:
        return {}
    name = bytes(fields[_TENSOR_NAME]).decode("utf-8")
    return {name: np.frombuffer(fields[_TENSOR_RAW], dtype).reshape(shape)}


def _fields(message: memoryview) -> Iterator[tuple[int, memoryview]]:
    """Yield the number of each field, and the bytes of its value: those of the varint if it is one."""
    at = 0
    while at < len(message):
        key, at = _varint(message, at)
        start, end = _extent(key & 7, message, at)
        yield key >> 3, message[start:end]
        at = end


def _extent(wire_type: int, message: memoryview, at: int) -> tuple[int, int]:
    """Return where a value starts and ends."""
    if wire_type == _VARINT:
        return at, _varint(message, at)[1]
    if wire_type == _LENGTH:
        length, start = _varint(message, at)
        return start, start + length
    if wire_type in _FIXED_SIZES:
        return at, at + _FIXED_SIZES[wire_type]
    raise ValueError(f"not an ONNX file: wire type {wire_type} at byte {at}")


def _integers(value: memoryview) -> Iterator[int]:
    """Yield the varints that follow each other in a value."""
    at = 0
    while at < len(value):
        number, at = _varint(value, at)
        yield number


def _varint(message: memoryview, at: int) -> tuple[int, int]:
    """Return the number that starts at a byte, seven bits a byte, lowest first, and where it ends."""
    number = shift = 0
    while True:
        byte = message[at]
        number |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return number, at
