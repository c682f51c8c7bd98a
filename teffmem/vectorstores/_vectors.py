"""The vectors of one scope in memory, and their cosines with a question.

A small scope keeps float32. A large one keeps int8, a quarter of the memory to read for each question, and says
how far its cosines may be off, so that whoever orders by them can look up the few that matter.
"""

import os
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Generic, TypeVar

import numpy as np
import simsimd
from numpy.typing import NDArray

from teffmem.items import Vector

__all__ = ["LARGE", "ScopeVectors", "cosines"]

Floats = NDArray[np.float32]
Steps = NDArray[np.int8]
Number = TypeVar("Number", np.float32, np.int8)

LARGE = 20_000
"""From this many rows on, vectors are kept as int8."""

_LEAST_SHARE = 25_000  # rows that are worth a thread's beginning
_MOST_SHARES = min(4, os.cpu_count() or 1)  # threads that use up what memory can deliver
_STEPS = 127


def cosines(vectors: Floats, query: Vector) -> Floats:
    """Return the dot products of unit vectors (n, dim) with a query (dim,): float32 (n,).

    Equal rows have equal results wherever they stand, which a matrix product does not promise.
    """
    return _dot(vectors, query)


class ScopeVectors:
    """Unit vectors of ``dim`` numbers, in the order they were added."""

    def __init__(self, dim: int) -> None:
        self._exact: _Rows[np.float32] | None = _Rows(np.empty((0, dim), np.float32))
        self._steps: _Rows[np.int8] = _Rows(np.empty((0, dim), np.int8))
        self._scales: Floats = np.empty(0, np.float32)
        self._error = 0.0

    @property
    def nbytes(self) -> int:
        """Bytes of memory held."""
        return (self._exact.nbytes if self._exact else 0) + self._steps.nbytes + self._scales.nbytes

    def add(self, vectors: Floats) -> None:
        """Append vectors, float32 (m, dim)."""
        if self._exact is not None:
            self._exact.add(vectors)
            if self._exact.count < LARGE:
                return
            vectors, self._exact = self._exact.all(), None
        steps, scales, error = _quantise(vectors)
        self._steps.add(steps)
        self._scales = np.concatenate((self._scales, scales))
        self._error = max(self._error, error)

    def keep(self, rows: NDArray[np.bool_]) -> None:
        """Leave out the vectors whose place in ``rows`` is False."""
        if self._exact is not None:
            self._exact.keep(rows)
        else:
            self._steps.keep(rows)
            self._scales = self._scales[rows]

    def cosines(self, query: Vector) -> tuple[Floats, float]:
        """Return the cosines with a unit vector, float32 (n,), and how far they may be from the exact ones."""
        if self._exact is not None:
            return _dot(self._exact.all(), query), 0.0
        steps, scale, error = _quantise(query[None])
        # |q.x - q'.x'| <= |q||x - x'| + |q - q'||x'|, and |x'| <= |x| + |x - x'|
        tolerance = self._error + error * (1 + self._error) + 1e-6
        return _dot(self._steps.all(), steps[0]) * (self._scales * scale), tolerance


class _Rows(Generic[Number]):
    """A two-dimensional array that grows at its end without being copied each time."""

    def __init__(self, none: NDArray[Number]) -> None:
        self._room: NDArray[Number] = none
        self.count = 0

    @property
    def nbytes(self) -> int:
        return int(self._room.nbytes)

    def all(self) -> NDArray[Number]:
        rows: NDArray[Number] = self._room[: self.count]
        return rows

    def add(self, rows: NDArray[Number]) -> None:
        needed = self.count + len(rows)
        if needed > len(self._room):
            size = needed if not self.count else max(needed, self.count + self.count // 8 + 8)
            room: NDArray[Number] = np.empty((size, self._room.shape[1]), self._room.dtype)
            room[: self.count] = self.all()
            self._room = room
        self._room[self.count : needed] = rows
        self.count = needed

    def keep(self, rows: NDArray[np.bool_]) -> None:
        self._room = self.all()[rows]
        self.count = len(self._room)


def _quantise(vectors: Floats) -> tuple[Steps, Floats, float]:
    """Return int8 steps, the size of a step in each row, and the largest distance from an original."""
    scales = np.abs(vectors).max(axis=1, initial=1e-12) / np.float32(_STEPS)
    steps = np.rint(vectors / scales[:, None]).astype(np.int8)
    error = np.linalg.norm(vectors - steps * scales[:, None], axis=1).max(initial=0.0)
    return steps, scales, float(error)


def _dot(rows: NDArray[Number], query: NDArray[Number]) -> Floats:
    """Return the product of each row with a query, float32 (n,); many rows are shared out over the processors."""
    products = np.empty(len(rows), np.float32)

    def multiply(start: int, end: int) -> None:
        products[start:end] = np.asarray(simsimd.cdist(query[None], rows[start:end], "dot"))[0]

    shares = min(_MOST_SHARES, len(rows) // _LEAST_SHARE)
    if shares < 2:
        if len(rows):
            multiply(0, len(rows))
        return products
    bounds = np.linspace(0, len(rows), shares + 1).astype(int).tolist()
    with ThreadPoolExecutor(shares - 1) as others:  # made anew each time: little beside the scan, and safe after a fork
        rest = [others.submit(multiply, start, end) for start, end in pairwise(bounds[1:])]
        multiply(*bounds[:2])
    for share in rest:
        share.result()
    return products
