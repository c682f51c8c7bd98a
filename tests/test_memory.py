"""MemoryStore: putting, reading, changing and removing, over both core backends."""

from datetime import timedelta
from typing import Any

import pytest

from teffmem import KEEP, MemoryItem, MemoryStore, ProviderError
from teffmem.testing import FakeClock, FakeEmbedder
from tests.fakes import embedded
from tests.memories import OpenMemory

NS = ("users", "u1")


def keys(items: list[MemoryItem]) -> list[str]:
    return [item.key for item in items]


async def test_put_answers_the_item_as_it_is_stored(open_memory: OpenMemory) -> None:
    """A put returns what get returns: value, namespace, key, and the times of the injected clock."""
    clock = FakeClock(1000.0)
    memory = open_memory(clock=clock, ttl=60)
    put = await memory.put(["users", "u1"], "tea", {"text": "likes tea", "n": 1}, thread="chat")
    assert put == MemoryItem("tea", {"text": "likes tea", "n": 1}, NS, 1000.0, 1000.0, 1060.0, thread="chat")
    assert await memory.get(NS, "tea") == put


async def test_a_bare_string_is_a_namespace_of_one_segment(memory: MemoryStore) -> None:
    """``"users"`` and ``("users",)`` are the same namespace in every method."""
    await memory.put("users", "k", {"text": "likes tea"})
    assert (await memory.get(("users",), "k")) == (await memory.get("users", "k"))
    assert [await memory.list("users"), await memory.count("users"), await memory.delete("users", "k")] == [["k"], 1, 1]


async def test_the_root_holds_memories_of_its_own(memory: MemoryStore) -> None:
    """``()`` can be put to and got from; searching and listing there cover everything."""
    await memory.put((), "k", {"text": "likes tea"})
    await memory.put(NS, "k2", {"text": "likes tea"})
    assert (await memory.get((), "k2"), (await memory.get((), "k") or KEEP) != KEEP) == (None, True)
    assert await memory.list(()) == ["k2", "k"]
    assert await memory.list((), recursive=False) == ["k"]
    assert sorted(keys(await memory.search((), query="tea"))) == ["k", "k2"]


async def test_overwriting_replaces_all_but_the_first_time(open_memory: OpenMemory) -> None:
    """A second put replaces value, text, vector and expiry together; created_at stays."""
    clock = FakeClock(1000.0)
    memory = open_memory(clock=clock)
    await memory.put(NS, "k", {"text": "likes tea", "old": 1}, ttl=50)
    clock.advance(10)
    item = await memory.put(NS, "k", {"text": "plays chess"})
    assert (item.value, item.created_at, item.updated_at, item.expires_at) == (
        {"text": "plays chess"},
        1000.0,
        1010.0,
        None,
    )
    assert await memory.search(NS, query="tea", mode="lexical") == []
    (found,) = await memory.search(NS, query="plays chess", mode="semantic")
    assert found.score == pytest.approx(1, abs=1e-3)


async def test_the_thread_is_kept_changed_or_taken_away(memory: MemoryStore) -> None:
    """Overwriting without ``thread`` keeps it, a name changes it, None takes it away; `KEEP` says keep aloud."""
    value = {"text": "likes tea"}
    seen = [(await memory.put(NS, "k", value, **options)).thread for options in _threads(None, "a", "b")]
    assert seen == ["a", "a", "a", "b", None, None]
    assert (await memory.get_many(NS, ["k"]))[0] == await memory.get(NS, "k")


def _threads(none: None, first: str, second: str) -> list[dict[str, Any]]:
    return [{"thread": first}, {}, {"thread": KEEP}, {"thread": second}, {"thread": none}, {}]


async def test_text_is_indexed_instead_of_the_values_own(open_memory: OpenMemory) -> None:
    """With ``text=`` that is what the embedder sees and searches find; the value needs no text, and is unchanged."""
    embedder = FakeEmbedder()
    memory = open_memory(embedder)
    item = await memory.put(NS, "k", {"n": 1}, text="likes tea")
    await memory.put(NS, "k2", {"text": "plays chess"}, text="eats rice")
    assert (item.value, embedded(embedder)) == ({"n": 1}, ["likes tea", "eats rice"])
    assert keys(await memory.search(NS, query="tea", mode="lexical")) == ["k"]
    assert keys(await memory.search(NS, query="chess", mode="lexical")) == []


async def test_an_unindexed_item_is_stored_without_an_embedding(open_memory: OpenMemory) -> None:
    """``index=False`` calls no embedder; get, filters and newest-first find the item, searches do not."""
    embedder = FakeEmbedder()
    memory = open_memory(embedder)
    await memory.put(NS, "k", {"n": 1}, index=False)
    await memory.put(NS, "k2", {"text": "likes tea"}, index=False)
    assert embedder.calls == []
    assert keys(await memory.items(NS, filter={"n": 1})) == ["k"]
    assert keys(await memory.search(NS)) == ["k2", "k"]
    assert await memory.search(NS, query="likes tea") == []


async def test_an_item_that_is_unindexed_later_is_found_no_more(memory: MemoryStore) -> None:
    """Overwriting with ``index=False`` takes the words and the vector away."""
    await memory.put(NS, "k", {"text": "likes tea"})
    assert keys(await memory.search(NS, query="tea")) == ["k"]
    await memory.put(NS, "k", {"text": "likes tea"}, index=False)
    assert await memory.search(NS, query="tea") == []


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"index": 1}, TypeError),
        ({"index": None}, TypeError),
        ({"text": ""}, ValueError),
        ({"text": " \u200b"}, ValueError),
        ({"text": 5}, TypeError),
        ({"text": "\ud800"}, ValueError),
        ({"thread": ""}, ValueError),
        ({"thread": 5}, TypeError),
        ({"thread": "a\x00"}, ValueError),
    ],
)
async def test_an_argument_that_cannot_be_is_refused(
    open_memory: OpenMemory, options: dict[str, Any], error: type[Exception]
) -> None:
    """A wrong option of put raises before the embedder runs, and what was there stays."""
    embedder = FakeEmbedder()
    memory = open_memory(embedder)
    before = await memory.put(NS, "k", {"text": "likes tea"})
    with pytest.raises(error):
        await memory.put(NS, "k", {"text": "new"}, **options)
    assert (await memory.get(NS, "k"), embedded(embedder)) == (before, ["likes tea"])


@pytest.mark.parametrize(("key", "error"), [("", ValueError), ("a\x00", ValueError), (5, TypeError), (None, TypeError)])
async def test_a_key_is_checked_alike_everywhere(memory: MemoryStore, key: Any, error: type[Exception]) -> None:
    """What put refuses as a key, get, get_many, delete, delete_many, update and put_many refuse too."""
    value = {"text": "likes tea"}
    calls = [
        memory.put(NS, key, value),
        memory.put_many([(NS, key, value)]),
        memory.get(NS, key),
        memory.get_many(NS, [key]),
        memory.update(NS, key, value),
        memory.delete(NS, key),
        memory.delete_many(NS, [key]),
    ]
    for call in calls:
        with pytest.raises(error, match="key"):
            await call
    assert await memory.count() == 0


async def test_put_many_takes_tuples_and_dicts(open_memory: OpenMemory) -> None:
    """Items are tuples, or dicts with put's argument names; answers come in the order given."""
    memory = open_memory(clock=FakeClock(1000.0), ttl=5)
    put = await memory.put_many(
        [
            (NS, "a", {"text": "likes tea"}),
            {"namespace": "users", "key": "b", "value": {"n": 1}, "text": "own", "ttl": None, "thread": "t"},
            {"namespace": NS, "key": "c", "value": {}, "index": False, "ttl": timedelta(seconds=9)},
        ]
    )
    assert [(item.namespace, item.key, item.expires_at, item.thread) for item in put] == [
        (NS, "a", 1005.0, None),
        (("users",), "b", None, "t"),
        (NS, "c", 1009.0, None),
    ]
    assert put == [*await memory.get_many(NS, ["a"]), await memory.get("users", "b"), await memory.get(NS, "c")]
    assert await memory.list(()) == ["c", "b", "a"]


async def test_the_last_of_a_key_that_comes_twice_wins(open_memory: OpenMemory) -> None:
    """A key that put_many gets twice is stored once, as the last; both answers are that item."""
    embedder = FakeEmbedder()
    memory = open_memory(embedder)
    first, other, last = await memory.put_many(
        [(NS, "k", {"text": "old"}), (NS, "o", {"text": "other"}), (NS, "k", {"text": "new"})]
    )
    assert (first, last.value, other.key) == (last, {"text": "new"}, "o")
    assert sorted(embedded(embedder)) == ["new", "other"]
    assert await memory.count() == 2


async def test_put_many_takes_any_iterable_and_nothing(memory: MemoryStore) -> None:
    """A generator will do; of no items nothing comes."""
    put = await memory.put_many((NS, f"k{i}", {"text": f"fact {i}"}) for i in range(3))
    assert (keys(put), await memory.put_many([])) == (["k0", "k1", "k2"], [])


@pytest.mark.parametrize(
    ("item", "error"),
    [
        ((NS, "b", {"text": ""}), ValueError),
        ((NS, "b", {"text": "t", "x": {1}}), TypeError),
        ((NS, "b"), TypeError),
        ("abc", TypeError),
        ({"namespace": NS, "key": "b"}, ValueError),
        ({"namespace": NS, "key": "b", "value": {"text": "t"}, "tll": 1}, ValueError),
        ({"namespace": NS, "key": "b", "value": {"text": "t"}, "ttl": 0}, ValueError),
    ],
)
async def test_put_many_checks_everything_first(open_memory: OpenMemory, item: Any, error: type[Exception]) -> None:
    """One item that cannot be stored keeps all from being embedded or stored."""
    embedder = FakeEmbedder()
    memory = open_memory(embedder)
    with pytest.raises(error):
        await memory.put_many([(NS, "a", {"text": "likes tea"}), item])
    assert (await memory.count(), embedder.calls) == (0, [])


async def test_put_many_embeds_all_before_the_first_write(open_memory: OpenMemory) -> None:
    """Where one text cannot be embedded nothing is written; the call can be repeated."""
    embedder = FakeEmbedder(failing=["fact 7"])
    memory = open_memory(embedder)
    items = [(NS, f"k{i}", {"text": f"fact {i}"}) for i in range(10)]
    with pytest.raises(ProviderError):
        await memory.put_many(items)
    assert await memory.count() == 0
    embedder.failing = []
    assert len(await memory.put_many(items)) == await memory.count() == 10


async def test_get_many_answers_in_the_order_asked(memory: MemoryStore) -> None:
    """Each key has its answer, None where there is none, twice where it is asked twice; [] gives []."""
    a = await memory.put(NS, "a", {"text": "likes tea"})
    b = await memory.put(NS, "b", {"text": "plays chess"})
    assert await memory.get_many(NS, ["b", "x", "a", "b"]) == [b, None, a, b]
    assert await memory.get_many(NS, ("a",)) == [a]
    assert await memory.get_many(NS, []) == []
    assert await memory.get_many(("users",), ["a"]) == [None]


@pytest.mark.parametrize("wrong", ["abc", b"abc", None, 5, {"a": 1}])
async def test_keys_are_a_list(memory: MemoryStore, wrong: Any) -> None:
    """A bare string, which would be taken apart into letters, and whatever else is no list, is a TypeError."""
    await memory.put(NS, "a", {"text": "likes tea"})
    with pytest.raises(TypeError, match="keys"):
        await memory.get_many(NS, wrong)
    with pytest.raises(TypeError, match="keys"):
        await memory.delete_many(NS, wrong)
    assert await memory.count() == 1


async def test_update_merges_and_keeps_what_it_does_not_change(open_memory: OpenMemory) -> None:
    """An update keeps creation, expiry, thread and text, and embeds nothing unless the text changed."""
    clock, embedder = FakeClock(1000.0), FakeEmbedder()
    memory = open_memory(embedder, clock=clock)
    await memory.put(NS, "k", {"text": "likes tea", "n": 1, "gone": None}, ttl=100, thread="chat")
    clock.advance(10)
    item = await memory.update(NS, "k", {"n": 2, "new": [1]})
    assert item == MemoryItem(
        "k", {"text": "likes tea", "n": 2, "gone": None, "new": [1]}, NS, 1000.0, 1010.0, 1100.0, thread="chat"
    )
    assert (await memory.get(NS, "k"), embedded(embedder)) == (item, ["likes tea"])
    assert keys(await memory.search(NS, query="tea", mode="semantic")) == ["k"]


async def test_update_embeds_a_text_that_changed(open_memory: OpenMemory) -> None:
    """A new text is embedded once and found by its words and meaning; the old one is not."""
    embedder = FakeEmbedder()
    memory = open_memory(embedder)
    await memory.put(NS, "k", {"text": "likes tea"})
    await memory.update(NS, "k", {"text": "plays chess"})
    assert embedded(embedder) == ["likes tea", "plays chess"]
    assert await memory.search(NS, query="tea", mode="lexical") == []
    (found,) = await memory.search(NS, query="plays chess")
    assert found.scores["semantic"] == pytest.approx(1, abs=1e-3)


async def test_update_leaves_a_text_of_its_own(open_memory: OpenMemory) -> None:
    """An item put with ``text=`` stays indexed under that text whatever its value's text becomes."""
    embedder = FakeEmbedder()
    memory = open_memory(embedder)
    await memory.put(NS, "k", {"text": "likes tea"}, text="eats rice")
    item = await memory.update(NS, "k", {"text": "plays chess"})
    assert (item and item.value, embedded(embedder)) == ({"text": "plays chess"}, ["eats rice"])
    assert keys(await memory.search(NS, query="rice", mode="lexical")) == ["k"]
    assert await memory.search(NS, query="chess", mode="lexical") == []


async def test_update_leaves_an_unindexed_item_unindexed(open_memory: OpenMemory) -> None:
    """An item put with ``index=False`` can be updated with or without a text, and is never embedded."""
    embedder = FakeEmbedder()
    memory = open_memory(embedder)
    await memory.put(NS, "k", {"n": 1}, index=False)
    item = await memory.update(NS, "k", {"text": "likes tea"})
    assert (item and item.value, embedder.calls) == ({"n": 1, "text": "likes tea"}, [])
    assert await memory.search(NS, query="likes tea") == []


async def test_update_of_what_is_not_there_is_none(open_memory: OpenMemory) -> None:
    """Updating a missing or expired item returns None and makes nothing."""
    clock = FakeClock()
    memory = open_memory(clock=clock)
    await memory.put(NS, "k", {"text": "likes tea"}, ttl=1)
    clock.advance(1)
    assert [await memory.update(NS, "k", {"n": 1}), await memory.update(NS, "x", {"n": 1})] == [None, None]
    assert await memory.count() == 0


@pytest.mark.parametrize(("changes", "error"), [({"x": {1}}, TypeError), ([], TypeError), ({"text": " "}, ValueError)])
async def test_an_update_that_cannot_be_changes_nothing(
    memory: MemoryStore, changes: Any, error: type[Exception]
) -> None:
    """A change that is no JSON, or leaves no text, raises, and the item is as before."""
    before = await memory.put(NS, "k", {"text": "likes tea"})
    with pytest.raises(error):
        await memory.update(NS, "k", changes)
    assert await memory.get(NS, "k") == before


async def test_update_shares_nothing_with_the_caller(memory: MemoryStore) -> None:
    """A change is copied: what the caller does to it later does not reach the store."""
    tags = ["a"]
    await memory.put(NS, "k", {"text": "likes tea"})
    await memory.update(NS, "k", {"tags": tags})
    tags.append("b")
    item = await memory.get(NS, "k")
    assert item is not None
    assert item.value["tags"] == ["a"]


async def test_delete_tells_whether_there_was_something(memory: MemoryStore) -> None:
    """True once, then False; only exactly this namespace's key goes."""
    await memory.put(NS, "k", {"text": "likes tea"})
    await memory.put((*NS, "work"), "k", {"text": "plays chess"})
    assert [await memory.delete("users", "k"), await memory.delete(NS, "k"), await memory.delete(NS, "k")] == [
        False,
        True,
        False,
    ]
    assert [item.namespace for item in await memory.items(())] == [(*NS, "work")]
    assert await memory.search(NS, query="tea", mode="lexical") == []


async def test_delete_many_counts_what_went(memory: MemoryStore) -> None:
    """A key that is not there, or comes twice, counts for nothing more; [] removes nothing."""
    await memory.put_many([(NS, key, {"text": "likes tea"}) for key in "abc"])
    assert [await memory.delete_many(NS, keys) for keys in ([], ["a", "x", "a", "b"], ["a"])] == [0, 2, 0]
    assert await memory.list(NS) == ["c"]


async def test_delete_namespace_removes_a_subtree(memory: MemoryStore) -> None:
    """The namespace and everything below go; siblings and what is above stay; a dry run only counts."""
    for namespace in (("users",), NS, (*NS, "work"), ("users", "u10"), ()):
        await memory.put(namespace, "k", {"text": "likes tea"})
    assert [await memory.delete_namespace(NS, dry_run=True), await memory.count()] == [2, 5]
    assert [await memory.delete_namespace(NS), await memory.count(), await memory.delete_namespace(NS)] == [2, 3, 0]
    assert await memory.list_namespaces() == [(), ("users",), ("users", "u10")]


async def test_the_root_is_removed_only_on_an_explicit_word(memory: MemoryStore) -> None:
    """``delete_namespace(())`` is a ValueError unless ``everything=True``; a dry run of it counts."""
    await memory.put(NS, "k", {"text": "likes tea"})
    for root in ((), list[str]()):
        with pytest.raises(ValueError, match="everything=True"):
            await memory.delete_namespace(root)
    assert [await memory.delete_namespace((), dry_run=True), await memory.count()] == [1, 1]
    assert [await memory.delete_namespace((), everything=True), await memory.count()] == [1, 0]


async def test_a_deletion_counts_what_was_alive(open_memory: OpenMemory) -> None:
    """What had expired goes too, and is not counted; cleanup afterwards finds nothing."""
    clock = FakeClock()
    memory = open_memory(clock=clock)
    await memory.put(NS, "dead", {"text": "likes tea"}, ttl=1)
    await memory.put(NS, "dead2", {"text": "likes tea"}, ttl=1)
    await memory.put(NS, "alive", {"text": "likes tea"})
    clock.advance(1)
    assert [await memory.delete(NS, "dead"), await memory.delete_namespace(NS), await memory.cleanup()] == [False, 1, 0]


async def test_list_gives_keys_newest_first(memory: MemoryStore) -> None:
    """The newest write comes first, an overwritten key moves to the front, limit and offset cut that order."""
    for key in "abcd":
        await memory.put(NS, key, {"text": "likes tea"})
    await memory.put((*NS, "work"), "a", {"text": "likes tea"})
    await memory.put(NS, "b", {"text": "plays chess"})
    assert await memory.list(NS) == ["b", "a", "d", "c", "a"]
    assert await memory.list(NS, recursive=False) == ["b", "d", "c", "a"]
    assert [await memory.list(NS, 2), await memory.list(NS, 2, 3), await memory.list(NS, offset=9)] == [
        ["b", "a"],
        ["c", "a"],
        [],
    ]


async def test_items_are_whole_and_newest_first(memory: MemoryStore) -> None:
    """``items`` gives what get gives, without a score, below the namespace too, filtered before it is cut."""
    put = [await memory.put((*NS, "w"), f"k{i}", {"text": f"fact {i}", "even": i % 2 == 0}) for i in range(6)]
    assert await memory.items(NS) == put[::-1]
    assert keys(await memory.items(NS, filter={"even": True}, limit=2, offset=1)) == ["k2", "k0"]
    assert {item.score for item in await memory.items(NS)} == {None}


async def test_iter_items_yields_everything_oldest_first(memory: MemoryStore) -> None:
    """An iteration visits each item once, over many pages, filtered, and leaves out what is removed on the way."""
    await memory.put_many([(NS, f"k{i:04}", {"text": f"fact {i}", "n": i}) for i in range(1203)])
    seen = [item.key async for item in memory.iter_items(NS)]
    assert seen == [f"k{i:04}" for i in range(1203)]
    assert [item.value["n"] async for item in memory.iter_items(filter={"n": {"$gte": 1200}})] == [1200, 1201, 1202]
    assert [item.key async for item in memory.iter_items(("nobody",))] == []
    few: list[str] = []
    async for item in memory.iter_items(NS):
        if not few:
            await memory.delete(NS, "k1100")
        few.append(item.key)
    assert len(few) == 1202


async def test_namespaces_are_those_that_hold_something_alive(open_memory: OpenMemory) -> None:
    """Only namespaces with a live item of their own are listed, in code point order."""
    clock = FakeClock()
    memory = open_memory(clock=clock)
    for namespace in (("b",), ("a", "z"), ("a", "é"), ("a",), ("B",)):
        await memory.put(namespace, "k", {"text": "likes tea"})
    await memory.put(("dead",), "k", {"text": "likes tea"}, ttl=1)
    await memory.put(("emptied",), "k", {"text": "likes tea"})
    await memory.delete(("emptied",), "k")
    clock.advance(1)
    assert await memory.list_namespaces() == [("B",), ("a",), ("a", "z"), ("a", "é"), ("b",)]


async def test_namespaces_are_chosen_by_pattern(memory: MemoryStore) -> None:
    """Prefix and suffix are matched by whole segments, ``"*"`` is exactly one; depth cuts, each once; then the page."""
    for namespace in (
        ("users", "u1", "work"),
        ("users", "u1", "home"),
        ("users", "u2", "work"),
        ("teams", "t", "work"),
    ):
        await memory.put(namespace, "k", {"text": "likes tea"})
    work = [("teams", "t", "work"), ("users", "u1", "work"), ("users", "u2", "work")]
    assert await memory.list_namespaces("users") == [("users", "u1", "home"), *work[1:]]
    assert await memory.list_namespaces(suffix="work") == work
    assert await memory.list_namespaces(("*", "u1")) == [("users", "u1", "home"), ("users", "u1", "work")]
    assert await memory.list_namespaces(("users", "*", "work")) == work[1:]
    assert await memory.list_namespaces(suffix=("*", "work")) == work
    assert await memory.list_namespaces(("users", "*", "*", "*")) == []
    assert await memory.list_namespaces("u*") == []
    assert await memory.list_namespaces(max_depth=1) == [("teams",), ("users",)]
    assert await memory.list_namespaces(max_depth=2) == [("teams", "t"), ("users", "u1"), ("users", "u2")]
    assert await memory.list_namespaces(suffix="work", max_depth=1) == [("teams",), ("users",)]
    assert await memory.list_namespaces(limit=2, offset=1) == [("users", "u1", "home"), ("users", "u1", "work")]


async def test_count_covers_the_subtree_and_filters(open_memory: OpenMemory) -> None:
    """``count()`` is everything alive; with a namespace, what is there and below; with a filter, what meets it."""
    clock = FakeClock()
    memory = open_memory(clock=clock)
    await memory.put(NS, "a", {"text": "likes tea", "n": 1})
    await memory.put((*NS, "work"), "b", {"text": "plays chess", "n": 2})
    await memory.put(("users", "u10"), "c", {"text": "eats rice", "n": 1})
    await memory.put(NS, "d", {"text": "likes tea", "n": 1}, ttl=1)
    clock.advance(2)
    counts = [await memory.count(), await memory.count(NS), await memory.count(filter={"n": 1})]
    assert [*counts, await memory.count(NS, {"n": 1}), await memory.count(("nobody",))] == [3, 2, 2, 1, 0]


@pytest.mark.parametrize(
    ("number", "error"),
    [(-1, ValueError), (True, TypeError), (2.0, TypeError), ("5", TypeError), (None, TypeError), ([1], TypeError)],
)
async def test_numbers_of_things_are_checked_alike(memory: MemoryStore, number: Any, error: type[Exception]) -> None:
    """k, limit and offset are whole numbers from 0 in every method; the message names which one."""
    for call in (
        memory.search(NS, k=number),
        memory.search(NS, query="tea", k=number),
        memory.items(NS, limit=number),
        memory.list(NS, number),
        memory.list_namespaces(limit=number),
    ):
        with pytest.raises(error, match=r"(k|limit) is"):
            await call
    for call in (
        memory.search(NS, query="tea", offset=number),
        memory.items(NS, offset=number),
        memory.list(NS, offset=number),
        memory.list_namespaces(offset=number),
    ):
        with pytest.raises(error, match="offset is"):
            await call


async def test_no_number_is_too_large(memory: MemoryStore) -> None:
    """A k, limit or offset beyond any machine's integers gives what there is."""
    await memory.put(NS, "k", {"text": "likes tea"})
    huge = 10**30
    assert keys(await memory.search(NS, query="tea", k=huge)) == keys(await memory.search(NS, k=huge)) == ["k"]
    assert [await memory.list(NS, huge), await memory.items(NS, offset=huge)] == [["k"], []]
    assert await memory.search(NS, query="tea", k=huge, offset=huge) == []
    assert await memory.list_namespaces(limit=huge) == [NS]


@pytest.mark.parametrize("namespace", [5, None, {"a"}, ("a", 5), ("a", ""), ("a\x00",), ("\ud800",), ""])
async def test_a_namespace_is_checked_alike_everywhere(memory: MemoryStore, namespace: Any) -> None:
    """What one method refuses as a namespace every method refuses."""

    async def iterate() -> None:
        async for _ in memory.iter_items(namespace):
            pass

    calls = [
        memory.put(namespace, "k", {"text": "t"}),
        memory.put_many([(namespace, "k", {"text": "t"})]),
        memory.get(namespace, "k"),
        memory.get_many(namespace, []),
        memory.update(namespace, "k", {}),
        memory.search(namespace),
        memory.items(namespace),
        iterate(),
        memory.list(namespace),
        memory.list_namespaces(namespace),
        memory.count(namespace),
        memory.delete(namespace, "k"),
        memory.delete_many(namespace, []),
        memory.delete_namespace(namespace),
        memory.cleanup(namespace=namespace),
    ]
    for call in calls:
        with pytest.raises((TypeError, ValueError), match="namespace"):
            await call
    for method in (memory.scoped, lambda namespace: memory.export(namespace=namespace)):
        with pytest.raises((TypeError, ValueError), match="namespace"):
            method(namespace)
    assert await memory.count() == 0
