"""The vectors of one scope in memory, and their cosines with a question.

A small scope keeps float32. A large one keeps int8, a quarter of the memory to read for each question, and says
how far its cosines may be off, so that whoever orders by them can look up the few that matter.
"""

import os
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
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

_PIECE = 10_000  # rows that are multiplied at a time
_WORTH_A_HELPER = 25_000  # rows for which another thread is asked
_MOST_HELPERS = min(4, os.cpu_count() or 1) - 1  # with these, memory delivers what it can
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
    starts = iter(range(0, len(rows), _PIECE))

    def multiply() -> None:
        for start in starts:  # whoever is free takes the next piece, so that nobody waits for a thread that is late
            piece = rows[start : start + _PIECE]
            products[start : start + len(piece)] = np.asarray(simsimd.cdist(query[None], piece, "dot"))[0]

    helpers = min(_MOST_HELPERS, len(rows) // _WORTH_A_HELPER)
    helping = [_helpers(os.getpid()).submit(multiply) for _ in range(helpers)]
    multiply()
    for helper in helping:
        if not helper.cancel():
            helper.result()
    return products


@lru_cache(maxsize=1)
def _helpers(process: int) -> ThreadPoolExecutor:  # noqa: ARG001 - threads do not outlive a fork: each process has its own
    return ThreadPoolExecutor(_MOST_HELPERS or 1, thread_name_prefix="teffmem-scan")
