"""What a store promises that outlives its process."""

from collections.abc import Awaitable, Callable

from teffmem.protocols import VectorStore
from teffmem.testing._drafts import HOME, KEYS, NAMESPACES, NOW, VALUES, draft, facts, found, here, names, one, put

__all__ = ["DurableContract", "Reopen"]

Reopen = Callable[[VectorStore], Awaitable[VectorStore]]
"""Closes a store and returns another one over the same data."""


class DurableContract:
    """What was answered is there after reopening. A subclass provides the fixtures ``store`` and ``reopen``.

    ``reopen`` is an async function of a store, `Reopen`: it closes it and returns a new one over the same data.
    """

    async def test_g1_records_outlive_the_store(self, store: VectorStore, reopen: Reopen) -> None:
        """Every record is as it was, under its name, and can be deleted by it (P1)."""
        names_ = [(at, key) for at in NAMESPACES for key in KEYS[:8]]
        values = [VALUES[i % len(VALUES)] for i in range(len(names_))]
        drafts = [draft(key, at=at, value=value, thread="t") for (at, key), value in zip(names_, values, strict=True)]
        before = [facts(record) for record in await put(store, *drafts)]
        store = await reopen(store)
        assert [facts(await one(store, key, at)) for at, key in names_] == before
        assert await store.delete(HOME, ["note::2026::plan"], NOW) == 1
        store = await reopen(store)
        assert await store.count(here(())) == len(names_) - 1

    async def test_answers_stay_the_same(self, store: VectorStore, reopen: Reopen) -> None:
        """A search gives the same records in the same order with the same scores, ties included."""
        await put(store, *(draft(f"k{i}", f"green tea {i % 3}") for i in range(30)))
        await put(store, draft("k4", "green tea 1"))
        before = await found(store, here())
        after = await found(store := await reopen(store), here())
        assert names(after) == names(before)
        assert [match.score for match in after] == [match.score for match in before]
        await put(store, draft("new", "green tea 1"))
        assert len(await found(store, here())) == 31

    async def test_expiry_outlives_the_store(self, store: VectorStore, reopen: Reopen) -> None:
        """Wall clock decides, whatever was closed meanwhile."""
        await put(store, draft("a", ttl=10.0), draft("b", ttl=20.0), draft("c"))
        store = await reopen(store)
        assert sorted(key for _, key in names(await found(store, here(now=NOW + 10)))) == ["b", "c"]
        assert await store.cleanup((), NOW + 10) == 1

    async def test_stamps_grow_over_a_reopening(self, store: VectorStore, reopen: Reopen) -> None:
        """A stamp is greater than all before it, also when the newest record is gone and the clock went back."""
        *_, last = await put(store, draft("a"), draft("b"))
        await store.delete(HOME, ["b"], NOW)
        store = await reopen(store)
        (record,) = await put(store, draft("c", now=NOW - 1000))
        assert record.stamp > last.stamp

    async def test_the_fingerprint_outlives_the_store(self, store: VectorStore, reopen: Reopen) -> None:
        """A store belongs to the embedder that filled it."""
        assert await store.claim("model 1") == "model 1"
        store = await reopen(store)
        assert await store.claim("model 2") == "model 1"
