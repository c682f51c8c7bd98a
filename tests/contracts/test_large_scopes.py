"""Scopes so large that their vectors are kept as int8, or not at all, answer as small ones do."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import numpy as np
import pytest

from teffmem import InMemoryVectorStore, Match, SQLiteVectorStore
from teffmem.filters import parse
from teffmem.items import Draft
from teffmem.protocols import Selection
from teffmem.ranking import Query
from teffmem.testing import VectorStoreContract
from teffmem.vectorstores import _vectors

DIM = 32
NOW = 1_800_000_000.0
Store = InMemoryVectorStore | SQLiteVectorStore
Vectors = np.ndarray[tuple[int, int], np.dtype[np.float32]]
NO_TERMS = np.empty(0, np.uint64)


@pytest.fixture
async def make(tmp_path: Path) -> AsyncIterator[Callable[..., Store]]:
    """What makes a store of either kind, closed in the end."""
    made: list[Store] = []

    def make(kind: str, budget: int) -> Store:
        path = tmp_path / f"{len(made)}.db"
        made.append(SQLiteVectorStore(path, budget=budget) if kind == "sqlite" else InMemoryVectorStore(budget=budget))
        return made[-1]

    yield make
    for store in made:
        await store.aclose()


def random_units(count: int, seed: int) -> Vectors:
    vectors = np.random.default_rng(seed).standard_normal((count, DIM))
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1)[:, None], np.float32)


async def fill(store: Store, vectors: Vectors) -> None:
    drafts = [
        Draft(("big", f"n{i % 3}"), f"k{i}", {"text": "tea", "n": i % 50}, NOW, vector=vector)
        for i, vector in enumerate(vectors)
    ]
    for start in range(0, len(drafts), 5000):
        await store.upsert(drafts[start : start + 5000], NOW)


def best(vectors: Vectors, query: Vectors, k: int) -> list[str]:
    """Return the keys of the nearest, by numpy; of equal ones the later."""
    exact = vectors.astype(np.float64) @ query.astype(np.float64)
    return [f"k{i}" for i in np.lexsort((-np.arange(len(exact)), -exact))[:k]]


def keys(matches: list[Match]) -> list[str]:
    return [match.record.key for match in matches]


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
@pytest.mark.parametrize("budget", [256_000_000, 300_000], ids=["held", "streamed"])
async def test_a_scope_of_20000_is_exact(make: Callable[..., Store], kind: str, budget: int) -> None:
    """The nearest of 20,500 are numpy's, in numpy's order, with its cosines; page by page, filtered, and with ties."""
    vectors = random_units(20_500, 1)
    vectors[100:130] = vectors[7]
    store = make(kind, budget)
    await fill(store, vectors)
    for query in (*random_units(4, 2), vectors[7]):
        for k in (1, 10, 300):
            matches = await store.similar(Selection((), NOW), query, k)
            assert keys(matches) == best(vectors, query, k)
            exact = [float(vectors[int(key[1:])] @ query) for key in keys(matches)]
            assert np.allclose([match.score for match in matches], exact, atol=1e-5)
        assert keys(await store.similar(Selection((), NOW), query, 20, offset=280)) == keys(matches)[280:]
        filtered = await store.similar(Selection((), NOW, parse({"n": 7})), query, 10)
        assert keys(filtered) == [f"k{7 + 50 * int(key[1:])}" for key in best(vectors[7::50], query, 10)]
    least = matches[4].score
    asked = Query("semantic", NO_TERMS, query, min_similarity=least - 1e-6)
    assert (
        keys(await store.rank(Selection((), NOW), asked, 100))
        == keys(matches)[: sum(m.score >= least for m in matches)]
    )


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
async def test_a_large_scope_follows_changes(
    make: Callable[..., Store], kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Writes, overwrites and deletions between searches of an int8 scope leave its answers exact."""
    monkeypatch.setattr(_vectors, "LARGE", 300)
    store = make(kind, 256_000_000)
    vectors = random_units(1200, 3)
    present: dict[str, int] = {}
    for turn in range(12):
        added = range(turn * 100, turn * 100 + 100)
        drafts = [Draft(("big",), f"k{i % 700}", {"text": "tea"}, NOW, vector=vectors[i]) for i in added]
        await store.upsert(drafts, NOW)
        for i in added:
            present.pop(f"k{i % 700}", None)
            present[f"k{i % 700}"] = i
        gone = [f"k{i}" for i in range(turn, 700, 37)]
        assert await store.delete(("big",), gone, NOW) == sum(present.pop(key, None) is not None for key in gone)
        rows = list(present.values())
        query = random_units(1, 100 + turn)[0]
        exact = [list(present)[int(key[1:])] for key in best(vectors[rows], query, 25)]
        assert keys(await store.similar(Selection(("big",), NOW), query, 25)) == exact


class TestQuantised(VectorStoreContract):
    """The contract where even small scopes are kept as int8."""

    @pytest.fixture
    async def store(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[SQLiteVectorStore]:
        monkeypatch.setattr(_vectors, "LARGE", 2)
        store = SQLiteVectorStore(tmp_path / "memory.db")
        yield store
        await store.aclose()
