"""Being used by many at once, and being closed."""

import asyncio
from collections.abc import Awaitable, Callable

from teffmem.errors import StoreError
from teffmem.protocols import VectorStore
from teffmem.testing._drafts import HOME, NOW, draft, found, here, many, names, one, put, vector_of

__all__ = ["ServingContract"]


class ServingContract:
    """Any number of tasks may call; after `aclose` none may."""

    async def test_the_first_fingerprint_stays(self, store: VectorStore) -> None:
        """`claim` answers whoever asks with the first fingerprint, also when many ask at once."""
        first, *rest = await asyncio.gather(*(store.claim(f"model {i}") for i in range(5)))
        assert {first, *rest} in [{f"model {i}"} for i in range(5)]
        assert await store.claim("another") == first

    async def test_many_tasks_at_once(self, store: VectorStore) -> None:
        """300 tasks that write, read, search and delete at once leave what they should, and see only their own."""

        async def work(task: int) -> None:
            at = ("tasks", f"t{task % 30}")
            key = f"k{task}"
            await store.upsert([draft(key, f"tea of task{task}", at)], NOW)
            record = await one(store, key, at)
            assert record is not None
            matches = await found(store, here(at), f"tea of task{task}")
            assert matches[0].record.key == key
            assert {match.record.namespace for match in matches} == {at}
            if task % 3 == 0:
                assert await store.delete(at, [key], NOW) == 1

        await asyncio.gather(*(work(task) for task in range(300)))
        assert await store.count(here(("tasks",))) == 200
        assert len(await found(store, here(("tasks",)))) == 200

    async def test_f3_many_writes_of_one_key(self, store: VectorStore) -> None:
        """F3: of 100 writes of a key at once one remains, with the vector of its own value."""
        written = await asyncio.gather(*(store.upsert([draft("k", f"word{i}")], NOW) for i in range(100)))
        stamps = [record.stamp for (record,) in written if record is not None]
        assert len(set(stamps)) == 100
        record = await one(store, "k")
        assert record is not None
        assert record.stamp == max(stamps)
        (match,) = await found(store, here(), record.value["text"])
        assert abs(match.score - 1) < 1e-3

    async def test_of_many_compare_and_puts_one_wins(self, store: VectorStore) -> None:
        """Of 20 drafts over the same stamp at once, one is written."""
        (first,) = await put(store, draft("k"))
        drafts = [draft("k", f"word{i}", only_over=first.stamp) for i in range(20)]
        written = await asyncio.gather(*(store.upsert([one], NOW) for one in drafts))
        assert sum(record is not None for (record,) in written) == 1

    async def test_a_cancelled_call_is_done_or_not(self, store: VectorStore) -> None:
        """F7: cancelling a batch leaves all of it or none, harms nobody else, and the store works on."""
        await put(store, draft("before"))
        for i in range(10):
            at = ("cancelled", f"n{i}")
            task = asyncio.create_task(store.upsert(many(50, "tea", at), NOW))
            other = asyncio.create_task(store.upsert([draft("other", at=("others", f"n{i}"))], NOW))
            for _ in range(i):
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            await other
            await put(store, draft(f"after{i}"))
            assert await store.count(here(at)) in (0, 50)
        assert await store.count(here(("others",))) == 10
        assert await store.count(here()) == 11

    async def test_a_cancelled_search_is_forgotten(self, store: VectorStore) -> None:
        """A search that is cancelled leaves later ones whole."""
        await put(store, *many(500, "green tea", HOME))
        for pauses in range(6):
            task = asyncio.create_task(found(store, here()))
            for _ in range(pauses):
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        assert len(await found(store, here())) == 500

    async def test_what_was_answered_is_seen(self, store: VectorStore) -> None:
        """Every call that begins after a write or deletion has returned sees it."""
        for i in range(50):
            await put(store, draft(f"k{i}", f"word{i}"))
            (match,) = await found(store, here(), f"word{i}", limit=1)
            assert match.record.key == f"k{i}"
            assert await store.count(here()) == 1
            await store.delete(HOME, [f"k{i}"], NOW)
            assert await found(store, here()) == []

    async def test_after_the_end_every_call_is_refused(self, store: VectorStore) -> None:
        """`aclose` may be called again, at once or later; every other call raises `StoreError`."""
        (record,) = await put(store, draft("k", ttl=60.0))
        await asyncio.gather(store.aclose(), store.aclose())
        await store.aclose()
        calls: list[Callable[[], Awaitable[object]]] = [
            lambda: store.upsert([draft("k")], NOW),
            lambda: store.get(HOME, ["k"], NOW),
            lambda: store.delete(HOME, ["k"], NOW),
            lambda: store.delete_all(here()),
            lambda: store.cleanup((), NOW),
            lambda: store.touch([record], NOW),
            lambda: store.similar(here(), vector_of("tea"), 1),
            lambda: store.count(here()),
            lambda: store.namespaces((), NOW),
            lambda: store.claim("model"),
        ]
        for number, call in enumerate(calls):
            try:
                await call()
            except StoreError:
                continue
            raise AssertionError(f"call {number} was answered by a closed store")

    async def test_a_store_that_was_never_used_closes(self, store: VectorStore) -> None:
        """Closing before the first call is fine."""
        await store.aclose()

    async def test_closing_waits_for_calls_in_flight(self, store: VectorStore) -> None:
        """What was asked for before `aclose` is answered, and was done."""
        writes = [asyncio.create_task(store.upsert([draft(f"k{i}")], NOW)) for i in range(20)]
        searches = [asyncio.create_task(found(store, here())) for _ in range(20)]
        await asyncio.sleep(0)
        await store.aclose()
        written = await asyncio.gather(*writes)
        assert [record is not None for (record,) in written] == [True] * 20
        assert all(
            set(names(matches)) <= {(HOME, f"k{i}") for i in range(20)} for matches in await asyncio.gather(*searches)
        )
