"""The raw floor of an exact search over a large scope: the ways to scan all vectors, each with its top ten.

Both a partition of all scores and a partition of block maxima choose the top, since neither is cheaper everywhere.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import simsimd
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

from benchmarks.measure import cores_available

__all__ = ["K", "Scan", "scans", "top", "top_by_blocks"]

K = 10
_BLOCK = 100
_CANDIDATES = (10, 20, 50, 100, 200, 400)

Vectors = NDArray[np.float32]
Scan = Callable[[Vectors], NDArray[np.intp]]
"""Takes a query, returns the row numbers of the `K` greatest cosines, greatest first."""
Top = Callable[[NDArray[np.generic], int], NDArray[np.intp]]


def top(scores: NDArray[np.generic], k: int = K) -> NDArray[np.intp]:
    """Return the places of the ``k`` greatest scores, greatest first."""
    chosen = np.argpartition(scores, scores.size - k)[-k:]
    return chosen[np.argsort(scores[chosen])[::-1]]


def top_by_blocks(scores: NDArray[np.generic], k: int = K) -> NDArray[np.intp]:
    """Return the same as `top`, reading only the blocks with the greatest maxima closely."""
    if scores.size % _BLOCK or scores.size < k * _BLOCK:
        return top(scores, k)
    blocks = scores.reshape(-1, _BLOCK)
    best = top(blocks.max(axis=1), k)
    within = top(blocks[best].ravel(), k)
    return best[within // _BLOCK] * _BLOCK + within % _BLOCK


def scans(matrix: Vectors, queries: Vectors) -> Iterator[tuple[str, Scan]]:
    """Yield every variant by name, with one thread and with all cores.

    Args:
        matrix: Unit vectors, one a row.
        queries: Those that will be asked; the int8 variants get as many candidates as make all of these right.
    """
    pool = ThreadPoolExecutor(cores_available())
    halves = matrix.astype(np.float16)
    scale = np.float32(127 / np.abs(matrix).max())
    bytes_ = _quantised(matrix, scale)
    for name, choose in (("", top), (", blocks", top_by_blocks)):
        for threads in sorted({1, cores_available()}):
            label = f"{threads} thread{'s'[: threads > 1]}{name}"
            yield f"numpy float32, {label}", _float32(matrix, threads, choose, pool)
            yield f"simsimd f16, {label}", _float16(halves, threads, choose)
            scan = _enough_candidates(matrix, bytes_, scale, threads, choose, queries)
            yield f"simsimd int8 rescored, {label}", scan


def _float32(matrix: Vectors, threads: int, choose: Top, pool: ThreadPoolExecutor) -> Scan:
    """Multiply by parts, one a thread; the library's own threads are held to one, which costs 10 microseconds."""
    blas = ThreadpoolController()
    parts = np.array_split(matrix, threads)

    def scan(query: Vectors) -> NDArray[np.intp]:
        with blas.limit(limits=1, user_api="blas"):
            scores = [matrix @ query] if threads == 1 else list(pool.map(lambda part: part @ query, parts))
        return choose(scores[0] if threads == 1 else np.concatenate(scores), K)

    return scan


def _float16(halves: NDArray[np.float16], threads: int, choose: Top) -> Scan:
    def scan(query: Vectors) -> NDArray[np.intp]:
        return choose(_dot(query.astype(np.float16), halves, threads), K)

    return scan


def _int8(
    matrix: Vectors, bytes_: NDArray[np.int8], scale: np.float32, threads: int, choose: Top, candidates: int
) -> Scan:
    def scan(query: Vectors) -> NDArray[np.intp]:
        near = choose(_dot(_quantised(query, scale), bytes_, threads), candidates)
        return near[top(matrix[near] @ query)] if candidates > K else near

    return scan


def _enough_candidates(
    matrix: Vectors, bytes_: NDArray[np.int8], scale: np.float32, threads: int, choose: Top, queries: Vectors
) -> Scan:
    right = [set(top(matrix @ query).tolist()) for query in queries]
    for candidates in _CANDIDATES:
        scan = _int8(matrix, bytes_, scale, threads, choose, candidates)
        if all(set(scan(query).tolist()) == expected for query, expected in zip(queries, right, strict=True)):
            return scan
    raise RuntimeError(f"int8 misses the exact top {K} even with {_CANDIDATES[-1]} candidates; quantise otherwise")


def _quantised(vectors: Vectors, scale: np.float32) -> NDArray[np.int8]:
    rounded: NDArray[np.int8] = np.clip(np.rint(vectors * scale), -127, 127).astype(np.int8)
    return rounded


def _dot(query: NDArray[np.generic], matrix: NDArray[np.generic], threads: int) -> NDArray[np.float64]:
    products: NDArray[np.float64] = np.asarray(simsimd.cdist(query[None], matrix, metric="dot", threads=threads))[0]
    return products
