"""What may come out of an embedder: the one check of count, shape, dimension and finiteness."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from teffmem.items import Vector

__all__ = ["checked_vectors"]


def checked_vectors(vectors: Any, count: int, dim: int | None) -> list[Vector]:
    """Return an embedder's answer as float32 vectors, one a text, in the same order; its own arrays are copied.

    Args:
        vectors: A sequence of vectors (lists or arrays of numbers), or one array with a row a text.
        count: How many texts it answers.
        dim: How long each vector is to be; None: as long as the first.

    Raises:
        ValueError: Another count, a vector that is no row of numbers, of another length, or with NaN or infinity in it.
    """
    try:
        rows = list(vectors)
    except TypeError:
        raise ValueError(f"expected {count} vectors, got {_described(vectors)}") from None
    if len(rows) != count:
        raise ValueError(f"expected {count} vectors for {count} texts, got {len(rows)}")
    matrix = _matrix(rows)
    if matrix is not None and dim in (None, matrix.shape[1]):
        return list(matrix)
    checked: list[Vector] = []
    for place, row in enumerate(rows):
        vector = _row(row, place)
        dim = vector.size if dim is None else dim
        if vector.size != dim:
            raise ValueError(f"expected vectors of dimension {dim}, got {vector.size} for text {place} of {count}")
        if not np.isfinite(vector).all():
            raise ValueError(f"the vector for text {place} of {count} holds NaN or infinity; expected finite numbers")
        checked.append(vector)
    return checked


def _matrix(rows: list[Any]) -> NDArray[np.float32] | None:
    """Return a copy of the rows if they are what they should be, all of one length and finite."""
    if not rows or any(type(row) is not np.ndarray or row.dtype != np.float32 for row in rows):
        return None
    try:
        matrix = np.array(rows)
    except ValueError:
        return None
    return matrix if matrix.ndim == 2 and matrix.size and np.isfinite(matrix).all() else None


def _row(row: Any, place: int) -> Vector:
    try:
        with np.errstate(over="ignore"):  # a number beyond float32 becomes infinity, which is refused by name
            vector = np.array(row, dtype=np.float32)
    except (TypeError, ValueError, OverflowError):
        # No cause: numpy's message would repeat what the embedder answered.
        raise ValueError(f"expected a row of numbers for text {place}, got {_described(row)}") from None
    if vector.ndim != 1 or vector.size == 0:
        raise ValueError(f"expected a row of numbers for text {place}, got an array of shape {vector.shape}")
    return vector


def _described(answer: object) -> str:
    length = f" of length {len(answer)}" if isinstance(answer, str | bytes | Sequence) else ""
    return f"{type(answer).__name__}{length}"
