"""Expiry: what has expired is not there."""

from teffmem.protocols import VectorStore
from teffmem.testing._drafts import HOME, NOW, draft, facts, found, here, many, names, one, put

__all__ = ["LifetimeContract"]


class LifetimeContract:
    """Expiry is exact, by the caller's clock, in every question."""

    async def test_c5_gone_at_the_very_moment(self, store: VectorStore) -> None:
        """C5: a record is there until just before it expires, and from then on nowhere but in `cleanup`."""
        await put(store, draft("k", ttl=60.0), draft("other", "green bus", at=("users", "u2")))
        await found(store, here(()))  # an index in memory knows the record by now
        for now, live in ((NOW + 59.999, 1), (NOW + 60, 0), (NOW + 61, 0)):
            assert len([r for r in await store.get(HOME, ["k"], now) if r]) == live
            assert await store.count(here(now=now)) == live
            assert len(await found(store, here(now=now))) == live
            assert len(await found(store, here((), now))) == live + 1
            assert await store.namespaces(HOME, now) == [HOME][:live]
        assert await store.delete(HOME, ["k"], NOW + 60) == 0

    async def test_c5_cleanup_counts_the_expired_once(self, store: VectorStore) -> None:
        """`cleanup` removes what has expired under its namespace, says how many, and finds none the next time."""
        await put(store, draft("a", ttl=1.0), draft("b", ttl=2.0), draft("c"), draft("a", at=("else",), ttl=1.0))
        assert await store.cleanup(HOME, NOW + 0.999) == 0
        assert await store.cleanup(HOME, NOW + 1) == 1
        assert await store.cleanup(HOME, NOW + 1) == 0
        assert await store.cleanup((), NOW + 2) == 2
        assert names(await found(store, here((), NOW))) == [(HOME, "c")]

    async def test_c9_cleanup_by_age(self, store: VectorStore) -> None:
        """C9: with ``older_than``, what was updated before that moment goes as well; what was updated at it stays."""
        for age in (0, 5, 10):
            await store.upsert([draft(f"k{age}", now=NOW - age, created_at=1.0)], NOW - age)
        await put(store, draft("expired", ttl=1.0), draft("kept", at=("else",), now=NOW - 10))
        assert await store.cleanup(HOME, NOW + 1, older_than=NOW - 5) == 2
        assert sorted(key for _, key in names(await found(store, here(())))) == ["k0", "k5", "kept"]
        assert await store.cleanup((), NOW, older_than=NOW - 9) == 1

    async def test_expired_records_crowd_out_nothing(self, store: VectorStore) -> None:
        """A thousand nearer records that have expired leave all k places to the live."""
        await put(store, *many(1000, "green tea", HOME, ttl=1.0), *many(10, "green bus", (*HOME, "work")))
        seen = await found(store, here(now=NOW + 1), limit=10)
        assert {at for at, _ in names(seen)} == {(*HOME, "work")}
        assert len(seen) == 10

    async def test_a_write_over_an_expired_record_makes_a_new_one(self, store: VectorStore) -> None:
        """Nothing of the expired one remains: neither its first time, nor its place, nor its thread."""
        (first,) = await put(store, draft("k", "green tea", thread="t", ttl=1.0))
        await found(store, here())
        (second,) = await put(store, draft("k", "black coffee", now=NOW + 1))
        assert (second.created_at, second.thread, second.expires_at) == (NOW + 1, None, None)
        assert second.place == second.stamp > first.stamp
        assert await store.upsert([draft("j", ttl=1.0)], NOW) != [None]
        newer = draft("j", "late", now=NOW - 5, only_if_newer=True)
        assert await store.upsert([newer], NOW + 1) != [None]
        (match,) = await found(store, here(now=NOW + 1), "black coffee", limit=1)
        assert abs(match.score - 1) < 1e-3
        assert await store.count(here(now=NOW + 1)) == 2

    async def test_touch_prolongs(self, store: VectorStore) -> None:
        """`touch` lets records live another ttl, each its own, and changes nothing else."""
        a, b, c = await put(store, draft("a", ttl=10.0), draft("b", ttl=20.0), draft("c"))
        await found(store, here())
        await store.touch([a, b, c], NOW + 5)
        touched = await store.get(HOME, ["a", "b", "c"], NOW + 5)
        assert [record and record.expires_at for record in touched] == [NOW + 15, NOW + 25, None]
        for before, after in zip((a, b, c), touched, strict=True):
            assert after is not None
            assert (after.stamp, after.updated_at, after.created_at) == (before.stamp, NOW, NOW)
        assert sorted(key for _, key in names(await found(store, here(now=NOW + 14)))) == ["a", "b", "c"]
        assert sorted(key for _, key in names(await found(store, here(now=NOW + 15)))) == ["b", "c"]
        assert await store.cleanup((), NOW + 15) == 1

    async def test_touch_leaves_what_was_rewritten(self, store: VectorStore) -> None:
        """A record that was rewritten or deleted since it was read keeps its own expiry, or stays away."""
        a, b = await put(store, draft("a", ttl=10.0), draft("b", ttl=10.0))
        (rewritten,) = await put(store, draft("a", "new", ttl=3.0))
        await store.delete(HOME, ["b"], NOW)
        await store.touch([a, b], NOW + 1)
        await store.touch([], NOW + 1)
        assert facts(await one(store, "a")) == facts(rewritten)
        assert await one(store, "b") is None

    async def test_an_unindexed_record_expires_too(self, store: VectorStore) -> None:
        """Expiry asks for no vector."""
        await put(store, draft("k", indexed=False, ttl=1.0))
        assert await store.count(here(now=NOW + 1)) == 0
        assert await store.cleanup(HOME, NOW + 1) == 1
