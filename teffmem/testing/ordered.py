"""What a store promises that walks its records in order."""

import asyncio
import random

from teffmem.errors import StoreError
from teffmem.items import Record
from teffmem.testing._drafts import HOME, NOW, OrderedStore, condition, draft, facts, here, many, names, one, put

__all__ = ["OrderedContract"]


def _keys(records: list[Record]) -> list[str]:
    return [record.key for record in records]


async def walked(store: OrderedStore, size: int) -> list[Record]:
    """Return all records of `HOME`, oldest first, a page at a time."""
    seen: list[Record] = []
    while page := await store.oldest(here(), size, after=seen[-1].stamp if seen else 0):
        assert len(page) <= size
        seen += page
    return seen


class OrderedContract:
    """The contract of `Ordered`. A subclass provides the fixture ``store``."""

    async def test_newest_first(self, store: OrderedStore) -> None:
        """A write, of something new or over something, makes a record the newest; reading and deleting do not."""
        await put(store, draft("a"), draft("b"), draft("c", at=(*HOME, "work")), draft("x", at=("else",)))
        await put(store, draft("a", "again"))
        assert _keys(await store.newest(here(), 10)) == ["a", "c", "b"]
        await store.touch([record for record in [await one(store, "b")] if record], NOW)
        await store.delete(HOME, ["a"], NOW)
        assert _keys(await store.newest(here(), 10)) == ["c", "b"]
        assert _keys(await store.newest(here(()), 10)) == ["x", "c", "b"]
        assert _keys(await store.newest(here(recursive=False), 10)) == ["b"]

    async def test_order_is_of_writes_not_of_clocks(self, store: OrderedStore) -> None:
        """When the clock stands or goes back, the later write is still the newer; given times do not move a record."""
        for key, now in (("a", NOW), ("b", NOW), ("c", NOW - 1000), ("d", 5.0)):
            await put(store, draft(key, now=now, created_at=1.0, place=3))
        assert _keys(await store.newest(here(), 10)) == ["d", "c", "b", "a"]
        assert _keys(await store.oldest(here(), 10)) == ["a", "b", "c", "d"]

    async def test_records_are_whole(self, store: OrderedStore) -> None:
        """Both walks return what `get` returns, unindexed records included."""
        await put(store, draft("a", thread="t", ttl=5.0), draft("b", indexed=False))
        for records in (await store.newest(here(), 10), await store.oldest(here(), 10)):
            assert [facts(record) for record in records] == [facts(await one(store, record.key)) for record in records]
            assert len(records) == 2

    async def test_limits(self, store: OrderedStore) -> None:
        """D1, D3: 0 gives nothing, more than there is gives what there is, an empty store nothing."""
        assert await store.newest(here(), 5) == []
        assert await store.oldest(here(()), 5) == []
        await put(store, *many(3, "tea", HOME))
        assert [len(await store.newest(here(), limit)) for limit in (0, 1, 3, 9)] == [0, 1, 3, 3]
        assert [len(await store.oldest(here(), limit)) for limit in (0, 1, 3, 9)] == [0, 1, 3, 3]
        assert await store.newest(here(), 5, offset=3) == []

    async def test_filter_and_expiry_come_before_the_limit(self, store: OrderedStore) -> None:
        """D15: newer records that are not selected take no place."""
        await put(store, *(draft(f"k{i}", value={"text": "tea", "n": i % 10}) for i in range(200)))
        await put(store, *many(100, "tea", (*HOME, "old"), ttl=1.0))
        selection = here(now=NOW + 1, condition=condition(n=3))
        assert _keys(await store.newest(selection, 5)) == ["k193", "k183", "k173", "k163", "k153"]
        assert _keys(await store.newest(selection, 5, offset=18)) == ["k13", "k3"]
        assert _keys(await store.oldest(selection, 3)) == ["k3", "k13", "k23"]
        assert _keys(await store.newest(here(now=NOW + 1), 1)) == ["k199"]

    async def test_pages_make_up_the_whole_list(self, store: OrderedStore) -> None:
        """Pages by offset, whatever their size, are the one long list cut up."""
        await put(store, *many(43, "tea", HOME))
        whole = _keys(await store.newest(here(), 1000))
        for size in (1, 7, 43):
            pages = [_keys(await store.newest(here(), size, offset=at)) for at in range(0, 43, size)]
            assert sum(pages, []) == whole  # noqa: RUF017

    async def test_a_walk_visits_everything(self, store: OrderedStore) -> None:
        """`oldest`, page after page, visits each record once, in the order of the stamps."""
        await put(store, *many(101, "tea", HOME))
        for size in (1, 10, 500):
            seen = await walked(store, size)
            assert _keys(seen) == [f"k{i}" for i in range(101)]
            assert [record.stamp for record in seen] == sorted(record.stamp for record in seen)

    async def test_a_walk_stands_changes(self, store: OrderedStore) -> None:
        """What stays through a walk is visited, what is rewritten comes again, what is deleted ahead of it does not."""
        chance = random.Random(3)
        await put(store, *many(60, "tea", HOME))
        deleted, rewritten = set[str](), set[str]()
        seen: list[Record] = []
        while page := await store.oldest(here(), 7, after=seen[-1].stamp if seen else 0):
            seen += page
            visited = set(_keys(seen))
            for key in (f"k{chance.randrange(60)}" for _ in range(2)):
                if chance.random() < 0.5 and key not in visited:
                    deleted |= {key} if await store.delete(HOME, [key], NOW) else set()
                elif key not in deleted and len(rewritten) < 20:
                    await put(store, draft(key, "tea again"))
                    rewritten.add(key)
        assert set(_keys(seen)) == {f"k{i}" for i in range(60)} - deleted
        last = {record.key: record.value["text"] for record in seen}
        assert {key for key, text in last.items() if text == "tea again"} == rewritten - deleted

    async def test_walks_while_others_write(self, store: OrderedStore) -> None:
        """A walk among writers visits all that was there before it began."""
        await put(store, *many(200, "tea", HOME))

        async def write(task: int) -> None:
            for i in range(20):
                await put(store, draft(f"new{task}-{i}"))

        writing = asyncio.gather(*(write(task) for task in range(4)))
        seen = await walked(store, 20)
        await writing
        assert {f"k{i}" for i in range(200)} <= set(_keys(seen))
        assert len(await store.newest(here(), 1000)) == 280
        assert len(set(names(await store.newest(here(), 1000)))) == 280

    async def test_a_closed_store_walks_no_more(self, store: OrderedStore) -> None:
        """After `aclose` both walks raise `StoreError`."""
        await put(store, draft("k"))
        await store.aclose()
        for walk in (store.newest, store.oldest):
            try:
                await walk(here(), 1)
            except StoreError:
                continue
            raise AssertionError(f"{walk.__name__} was answered by a closed store")
