"""Failures seen elsewhere, one a test: names, values, time, searches. CASES' letters; both core backends."""

import asyncio
import random
import uuid
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from teffmem import MemoryItem, MemoryStore, SQLiteVectorStore
from teffmem.testing import FakeClock, FakeEmbedder
from tests.fakes import TableEmbedder, embedded
from tests.memories import OpenMemory

NS = ("users", "u1")


def keys(items: list[MemoryItem]) -> list[str]:
    return [item.key for item in items]


def fact(text: str, **fields: Any) -> dict[str, Any]:
    return {"text": text, **fields}


@pytest.mark.parametrize(("own", "sibling"), [(NS, ("users", "u10")), (("tenant", "acme"), ("tenant", "acme-corp"))])
async def test_a1_a_sibling_with_the_same_first_letters_stays_out(
    memory: MemoryStore, own: tuple[str, ...], sibling: tuple[str, ...]
) -> None:
    """Search with a query, without, list and count see a namespace, not one whose name merely begins alike."""
    await memory.put(own, "a", fact("likes tea"))
    await memory.put(sibling, "b", fact("likes coffee"))
    for namespace, key in ((own, "a"), (sibling, "b")):
        assert keys(await memory.search(namespace, query="likes drinks")) == [key]
        assert keys(await memory.search(namespace)) == await memory.list(namespace) == [key]
        assert await memory.count(namespace) == 1


async def test_a3_separators_do_not_join_two_names(memory: MemoryStore) -> None:
    """Names that are equal once joined are three items, each found, named and deleted as itself."""
    names = [(("team", "a::b"), "c"), (("team", "a"), "b::c"), (("team",), "a::b::c")]
    for i, (namespace, key) in enumerate(names):
        await memory.put(namespace, key, fact("likes tea", n=i))
    for i, (namespace, key) in enumerate(names):
        item = await memory.get(namespace, key)
        assert item is not None
        assert item.value["n"] == i
    found = await memory.search("team", query="tea")
    assert sorted((item.namespace, item.key) for item in found) == sorted(names)
    assert [await memory.delete(*names[1]), await memory.count()] == [True, 2]
    assert await memory.get(*names[1]) is None


async def test_a5_a_key_with_separators_comes_back_whole(memory: MemoryStore) -> None:
    """What list gives is the key that was put, and deletes it."""
    await memory.put(NS, "note::2026::plan", fact("t"))
    (key,) = await memory.list(NS)
    (item,) = await memory.search(NS, query="t")
    assert (key, item.key, item.namespace) == ("note::2026::plan", "note::2026::plan", NS)
    assert [await memory.delete(NS, key), await memory.get(NS, key)] == [True, None]


@pytest.mark.parametrize("segment", [7, uuid.UUID(int=7), True, None, 1.5, b"u1"])
async def test_a7_a_segment_that_is_no_string_is_refused_by_every_method(memory: MemoryStore, segment: Any) -> None:
    """TypeError naming the segment and the namespace, whichever method it is passed to."""
    for call in (
        memory.put(("users", segment), "k", fact("t")),
        memory.get(("users", segment), "k"),
        memory.search(("users", segment)),
        memory.list(("users", segment)),
        memory.delete(("users", segment), "k"),
    ):
        with pytest.raises(TypeError, match="users"):
            await call


async def test_a9_wildcards_are_letters(memory: MemoryStore) -> None:
    """Names that hold ``_``, ``%``, ``?`` or brackets match themselves; names that would match others find nothing."""
    names = ["a_c", "abc", "50%", "50x"]
    for name in names:
        await memory.put(("users", name), name, fact("likes tea"))
    for name in names:
        assert keys(await memory.search(("users", name), query="tea")) == await memory.list(("users", name)) == [name]
    for pattern in ("%", "a?c", "[a]bc", "*", "a%", "____"):
        assert await memory.search(("users", pattern), query="tea") == await memory.items(("users", pattern)) == []


async def test_a11_quotes_neither_break_nor_widen_anything(memory: MemoryStore) -> None:
    """An apostrophe round-trips; a key made to match everything deletes nothing."""
    await memory.put_many([(NS, f"k{i}", fact(f"fact {i}")) for i in range(10)])
    await memory.put(NS, "o'brien's note", fact("quoted"))
    await memory.put(("users", "d'arc"), "k", fact("quoted"))
    for key in ("x' OR '1'='1", '" OR ""="', "'; DROP TABLE items; --", "k0' --"):
        assert await memory.delete(NS, key) is False
        assert await memory.delete_many(NS, [key]) == 0
    assert await memory.count() == 12
    assert keys(await memory.search(("users", "d'arc"), query="quoted")) == ["k"]
    assert [await memory.delete(NS, "o'brien's note"), await memory.count()] == [True, 11]


@pytest.mark.parametrize(
    "widening",
    [
        {"namespace": ["users", "b"]},
        {"$or": [{"namespace": ["users", "b"]}, {}]},
        {"$or": [{"scope": 1}, {}]},
        {"scope": {"$exists": False}},
        {"path": {"$ne": "x"}},
        {"$not": {"key": "nothing"}},
    ],
)
async def test_a13_a_filter_cannot_widen_the_scope(memory: MemoryStore, widening: dict[str, Any]) -> None:
    """Whatever fields a filter names, nothing outside the namespace comes back, with a query or without."""
    await memory.put(("users", "a"), "mine", fact("likes tea"))
    await memory.put(("users", "b"), "other", fact("likes tea", namespace=["users", "b"], scope=1))
    for query in ("tea", None):
        found = await memory.search(("users", "a"), query=query, filter=widening)
        assert set(keys(found)) <= {"mine"}
    assert await memory.count(("users", "a"), widening) <= 1


async def test_a15_one_key_in_parent_and_child(memory: MemoryStore) -> None:
    """The same key above and below is two items; list shows it twice, or once without what is below."""
    below = (*NS, "work")
    await memory.put(NS, "k", fact("likes tea", at="above"))
    await memory.put(below, "k", fact("likes tea", at="below"))
    found = {item.namespace: item.value["at"] for item in await memory.search(NS, query="tea")}
    assert found == {NS: "above", below: "below"}
    assert [await memory.list(NS), await memory.list(NS, recursive=False)] == [["k", "k"], ["k"]]
    assert [await memory.delete(NS, "k"), keys(await memory.items(NS))] == [True, ["k"]]
    assert (await memory.items(NS))[0].namespace == below


async def test_a17_many_scopes_at_once_do_not_mix(open_memory: OpenMemory) -> None:
    """Fifty namespaces written and searched together hold exactly their own items."""
    chance = random.Random(17)
    vector = FakeEmbedder().vector

    async def embed(text: str) -> Any:
        await asyncio.sleep(chance.random() / 100)
        return vector(text)

    memory = open_memory(embed)

    async def one(owner: int) -> None:
        for i in range(20):
            await memory.put(("users", f"u{owner}"), f"k{i}", fact(f"fact {i} of {owner}", owner=owner))
            if i % 7 == 0:
                found = await memory.search(("users", f"u{owner}"), query=f"fact {i}")
                assert {item.namespace for item in found} == {("users", f"u{owner}")}

    await asyncio.gather(*(one(owner) for owner in range(50)))
    assert await memory.count() == 1000
    for owner in range(50):
        items = await memory.items(("users", f"u{owner}"))
        assert sorted(keys(items)) == sorted(f"k{i}" for i in range(20))
        assert {item.value["owner"] for item in items} == {owner}


async def test_b1_no_name_of_a_field_is_reserved(open_memory: OpenMemory) -> None:
    """Fields named like internal ones come back as put, and neither expire nor move the item."""
    clock = FakeClock()
    memory = open_memory(clock=clock)
    names = "namespace key value score scores created_at thread stamp place ttl vector indexed id scope"
    value = fact("t", updated_at="yesterday", expires_at=1, **dict.fromkeys(names.split(), 1))
    put = await memory.put(NS, "k", value)
    assert (put.value, put.expires_at, put.updated_at) == (value, None, clock.now)
    assert [await memory.cleanup(), await memory.get(NS, "k")] == [0, put]
    assert (await memory.search(NS, query="t"))[0].value == value


async def test_b3_null_zero_and_empty_are_kept(memory: MemoryStore) -> None:
    """None, 0, False, "" and empty containers come back as they were put."""
    value = fact("t", source=None, n=0, s="", no=False, none=[], nothing={})
    await memory.put(NS, "k", value)
    for item in (await memory.get(NS, "k"), *await memory.items(NS)):
        assert item is not None
        assert item.value == value
        assert {name: type(of) for name, of in item.value.items()} == {name: type(of) for name, of in value.items()}


async def test_b5_numbers_are_compared_as_numbers_in_a_search(memory: MemoryStore) -> None:
    """10 equals 10 and 10.0 alone; a range holds numbers only, and mixed types raise nothing."""
    numbers: list[Any] = [9, 10, 100, "10", None, 10.0, True]
    await memory.put_many([(NS, f"k{i}", fact("likes tea", n=n)) for i, n in enumerate(numbers)])
    await memory.put(NS, "missing", fact("likes tea"))
    for query in ("tea", None):
        found = [
            sorted(keys(await memory.search(NS, query=query, filter={"n": condition}, k=20)))
            for condition in (10, {"$gte": 10}, {"$lt": "11"}, {"$ne": 10})
        ]
        assert found == [["k1", "k5"], ["k1", "k2", "k5"], ["k3"], ["k0", "k2", "k3", "k4", "k6", "missing"]]


@pytest.mark.parametrize("wrong", [{"a": {"$foo": 1}}, {"$nor": [{"a": 1}]}, {"$and": {"a": 1}}, {"a": {"$in": "b"}}])
async def test_b7_a_condition_is_never_dropped(memory: MemoryStore, wrong: dict[str, Any]) -> None:
    """What a filter cannot mean is a ValueError from every method that takes one."""
    await memory.put(NS, "k", fact("likes tea", a=1))
    for call in (
        memory.search(NS, query="tea", filter=wrong),
        memory.search(NS, filter=wrong),
        memory.items(NS, filter=wrong),
        memory.count(NS, wrong),
    ):
        with pytest.raises(ValueError, match=r"filter|\$"):
            await call
    assert await memory.search(NS, filter={"a": 1, "$or": []}) == []


@pytest.mark.parametrize(
    "crafted",
    [{"a') = 'x' OR 1=1 --": "y"}, {"a": "x' OR '1'='1"}, {"$.text": "x"}, {'a"]': 1}, {"importance": "' --"}],
)
async def test_b9_a_crafted_filter_finds_nothing(memory: MemoryStore, crafted: dict[str, Any]) -> None:
    """No quoting in a field's name or value reaches the engine: nothing is found, or it is refused, nothing is lost."""
    await memory.put_many([((f"u{i % 2}",), f"k{i}", fact("likes tea", a=i)) for i in range(20)])
    for query in ("tea", None):
        if next(iter(crafted)).startswith("$"):
            with pytest.raises(ValueError, match="filter"):
                await memory.search("u0", query=query, filter=crafted)
        else:
            assert await memory.search("u0", query=query, filter=crafted) == []
    field = next(iter(crafted))
    weighed = await memory.search("u0", query="tea", importance=1.0, importance_field=field, k=20)
    assert {item.namespace for item in weighed} == {("u0",)}
    assert await memory.count() == 20


async def test_b11_an_empty_filter_and_an_empty_choice_differ(memory: MemoryStore) -> None:
    """``{}`` and ``{"$and": []}`` are no filter; ``[]`` and an empty ``$or`` match nothing; a text is never split."""
    await memory.put(NS, "k", fact("likes tea", tag="news"))
    await memory.put(NS, "k2", fact("likes tea", tag="n"))
    empty: list[dict[str, Any] | None] = [None, {}, {"$and": []}, {"tag": []}, {"tag": {"$in": []}}, {"$or": []}]
    for query in ("tea", None):
        counts = [len(await memory.search(NS, query=query, filter=given)) for given in [*empty, {"tag": "news"}]]
        assert counts == [2, 2, 2, 0, 0, 0, 1]


async def test_b13_missing_null_and_falsy_differ_in_a_search(memory: MemoryStore) -> None:
    """None matches a stored null alone, and 0 a stored 0."""
    values: dict[str, dict[str, Any]] = {
        "a": {"source": "a"},
        "null": {"source": None},
        "missing": {},
        "zero": {"n": 0},
    }
    for key, value in values.items():
        await memory.put(NS, key, fact("likes tea", **value))
    choices: list[tuple[dict[str, Any], list[str]]] = [
        ({"source": None}, ["null"]),
        ({"source": [None, "a"]}, ["a", "null"]),
        ({"n": 0}, ["zero"]),
        ({"source": {"$exists": False}}, ["missing", "zero"]),
    ]
    for given, expected in choices:
        for query in ("tea", None):
            assert sorted(keys(await memory.search(NS, query=query, filter=given))) == expected


async def test_b15_callers_objects_are_neither_changed_nor_shared(memory: MemoryStore) -> None:
    """Neither a value, a filter nor an answer is connected with what is stored."""
    value = fact("likes tea", tags=["a"])
    put = await memory.put(NS, "k", value)
    (many,) = await memory.put_many([{"namespace": NS, "key": "k2", "value": value}])
    assert value == fact("likes tea", tags=["a"])
    value["tags"].append("z")
    given = {"tags": ["a"]}
    (found, *_) = await memory.search(NS, query="tea", filter=given)
    assert given == {"tags": ["a"]}
    got = await memory.get(NS, "k")
    assert got is not None
    for item in (put, many, found, got, *await memory.items(NS)):
        item.value["text"] = "!"
        item.value["tags"].append("y")
    again = [item.value for item in await memory.items(NS)]
    assert again == [fact("likes tea", tags=["a"])] * 2


def _holding_itself() -> dict[str, Any]:
    value: dict[str, Any] = {}
    value["self"] = value
    return value


@pytest.mark.parametrize(
    "part",
    [
        {1},
        b"x",
        datetime(2026, 1, 1, tzinfo=UTC),
        Decimal(1),
        object(),
        float("nan"),
        float("inf"),
        (1, 2),
        {1: 2},
        "\ud800",
        np.float32(1),
        _holding_itself(),
    ],
    ids=lambda part: type(part).__name__,
)
async def test_b17_what_json_does_not_have_changes_nothing(memory: MemoryStore, part: Any) -> None:
    """A value that cannot be stored raises before the embedder runs; the old one stays, and the next put works."""
    before = await memory.put(NS, "k", fact("ok"))
    for value in (fact("t", x=part), fact("t", x=[{"y": part}])):
        with pytest.raises((TypeError, ValueError)):
            await memory.put(NS, "k", value)
        with pytest.raises((TypeError, ValueError)):
            await memory.put_many([(NS, "k3", fact("t")), (NS, "k", value)])
    assert embedded(memory.embedder) == ["ok"]
    await memory.put(NS, "k2", fact("ok"))
    assert [await memory.get(NS, "k"), await memory.count()] == [before, 2]


@pytest.mark.parametrize("ttl", [0, 0.0, -1, float("nan"), float("inf"), 10**400, timedelta(0), timedelta(-1)])
async def test_c1_no_lifetime_is_no_immortality(memory: MemoryStore, ttl: Any) -> None:
    """A ttl that is not above 0 and finite is a ValueError, and nothing is stored."""
    for call in (
        memory.put(NS, "k", fact("t"), ttl=ttl),
        memory.put_many([{"namespace": NS, "key": "k", "value": fact("t"), "ttl": ttl}]),
    ):
        with pytest.raises(ValueError, match="ttl"):
            await call
    assert await memory.count() == 0


@pytest.mark.parametrize("ttl", ["1", Decimal(1), np.float32(1), [1], True])
async def test_c3_a_lifetime_of_another_type_is_refused(memory: MemoryStore, ttl: Any) -> None:
    """Never stored without expiry: a TypeError."""
    with pytest.raises(TypeError, match="ttl"):
        await memory.put(NS, "k", fact("t"), ttl=ttl)
    assert await memory.count() == 0


@pytest.mark.parametrize("ttl", [1, 1.0, timedelta(seconds=1)])
async def test_c3_seconds_and_timedelta_are_honoured(open_memory: OpenMemory, ttl: Any) -> None:
    """Each form of one second ends after one second, not before."""
    clock = FakeClock()
    memory = open_memory(clock=clock)
    await memory.put(NS, "k", fact("t"), ttl=ttl)
    clock.advance(0.999)
    assert await memory.count() == 1
    clock.advance(0.001)
    assert await memory.count() == 0


async def test_c5_the_expired_is_gone_everywhere_at_once(open_memory: OpenMemory) -> None:
    """Without any cleanup no method shows it, it takes nobody's place, and cleanup then removes it once."""
    clock = FakeClock()
    memory = open_memory(clock=clock)
    await memory.put_many([{"namespace": NS, "key": f"d{i}", "value": fact("likes tea"), "ttl": 1} for i in range(20)])
    await memory.put(NS, "alive", fact("likes green tea and rice"))
    assert len(await memory.search(NS, query="likes tea", k=30)) == 21
    clock.advance(2)
    assert [await memory.get(NS, "d0"), await memory.get_many(NS, ["d1"])] == [None, [None]]
    for mode in ("auto", "semantic", "lexical"):
        assert keys(await memory.search(NS, query="likes tea", k=1, mode=mode)) == ["alive"]
    assert keys(await memory.search(NS, k=1)) == await memory.list(NS, 1) == ["alive"]
    assert [item.key async for item in memory.iter_items(NS)] == ["alive"]
    assert [line async for line in memory.export()][1:] == []
    assert [await memory.count(NS), await memory.delete(NS, "d0"), await memory.update(NS, "d1", {"n": 1})] == [
        1,
        False,
        None,
    ]
    assert [await memory.cleanup(), await memory.cleanup(), await memory.count()] == [19, 0, 1]


async def test_c5_a_put_over_the_expired_is_a_new_item(open_memory: OpenMemory) -> None:
    """It begins anew: its own created_at, no thread, no expiry of the old one's."""
    clock = FakeClock(1000.0)
    memory = open_memory(clock=clock)
    await memory.put(NS, "k", fact("old"), ttl=1, thread="chat")
    clock.advance(1)
    item = await memory.put(NS, "k", fact("new"))
    assert (item.created_at, item.thread, item.expires_at) == (1001.0, None, None)
    assert [await memory.cleanup(), await memory.get(NS, "k")] == [0, item]


async def test_c7_default_own_and_no_lifetime(open_memory: OpenMemory) -> None:
    """Left out is the store's, a number its own, None for ever; left out again, the store's again."""
    clock = FakeClock()
    memory = open_memory(clock=clock, ttl=10)
    await memory.put(NS, "k1", fact("t"))
    await memory.put(NS, "k2", fact("t"), ttl=None)
    await memory.put(NS, "k3", fact("t"), ttl=100)
    clock.advance(11)
    assert sorted(await memory.list(NS)) == ["k2", "k3"]
    clock.advance(90)
    assert await memory.list(NS) == ["k2"]
    await memory.put(NS, "k2", fact("t"))
    clock.advance(10)
    assert await memory.list(NS) == []


async def test_c9_cleanup_by_age(open_memory: OpenMemory) -> None:
    """Older than max_age goes, exactly that old stays; 0 and less are refused; None takes the expired alone."""
    clock = FakeClock()
    memory = open_memory(clock=clock)
    for key in ("ten", "five", "zero"):
        await memory.put(("a",) if key == "ten" else ("b",), key, fact("t"))
        clock.advance(5)
    clock.advance(-5)
    await memory.put("b", "dead", fact("t"), ttl=1)
    clock.advance(0.5)
    clock.advance(-0.5)
    for age in (0, -1, float("nan"), timedelta(0)):
        with pytest.raises(ValueError, match="max_age"):
            await memory.cleanup(max_age=age)
    with pytest.raises(TypeError, match="max_age"):
        await memory.cleanup(max_age="5")  # type: ignore[arg-type]
    assert await memory.cleanup() == 0
    assert [await memory.cleanup(max_age=5, namespace="b"), await memory.count()] == [0, 4]
    assert [await memory.cleanup(max_age=timedelta(seconds=5)), sorted(await memory.list(()))] == [
        1,
        ["dead", "five", "zero"],
    ]
    clock.advance(1)
    assert [await memory.cleanup(namespace="a"), await memory.cleanup(), await memory.count()] == [0, 1, 2]


async def test_c11_cleanup_stops_at_no_page(open_memory: OpenMemory) -> None:
    """One call removes all that expired, and says how many."""
    clock = FakeClock()
    memory = open_memory(None, clock=clock)
    await memory.put_many([{"namespace": NS, "key": f"d{i}", "value": fact("t"), "ttl": 1} for i in range(1250)])
    await memory.put_many([(NS, f"k{i}", fact("t")) for i in range(10)])
    clock.advance(1)
    assert [await memory.cleanup(), await memory.count(), await memory.cleanup()] == [1250, 10, 0]


async def test_c13_a_cleanup_that_fails_removes_nothing_and_can_be_repeated(open_memory: OpenMemory) -> None:
    """On SQLite, where one row refuses to go, the error comes out, all rows stay, and a second call finishes."""
    clock = FakeClock()
    memory = open_memory(None, clock=clock)
    if not isinstance(memory.store, SQLiteVectorStore):
        pytest.skip("nothing in memory can refuse a deletion")
    await memory.put_many([{"namespace": NS, "key": f"d{i}", "value": fact("t"), "ttl": 1} for i in range(50)])
    clock.advance(1)
    await memory.store._write(
        lambda: None,
        lambda transaction, _: transaction.connection.execute(
            "CREATE TRIGGER refuse BEFORE DELETE ON items WHEN old.key = 'd7' BEGIN SELECT raise(ABORT, 'no'); END"
        ),
    )
    with pytest.raises(RuntimeError, match="failed"):
        await memory.cleanup()
    await memory.store._write(
        lambda: None, lambda transaction, _: transaction.connection.execute("DROP TRIGGER refuse")
    )
    assert await memory.cleanup() == 50


async def test_d1_none_is_none(memory: MemoryStore) -> None:
    """k or limit 0 gives [] with a query, without, and from list; nothing is embedded for it."""
    await memory.put_many([(NS, f"k{i}", fact("likes tea")) for i in range(5)])
    asked = len(memory.embedder.calls)
    assert await memory.search(NS, k=0) == await memory.search(NS, query="tea", k=0) == []
    assert [await memory.list(NS, limit=0), await memory.items(NS, limit=0)] == [[], []]
    assert await memory.list_namespaces(limit=0) == []
    assert len(memory.embedder.calls) == asked


async def test_d3_a_store_never_written_and_a_k_beyond_it(memory: MemoryStore) -> None:
    """Nothing gives []; three items give three, whatever k, without padding or repeats."""
    for mode in ("auto", "hybrid", "semantic", "lexical"):
        assert await memory.search((), query="tea", mode=mode) == []
    assert [await memory.search(NS), await memory.list(NS), await memory.list_namespaces()] == [[], [], []]
    assert [await memory.count(), await memory.cleanup(), await memory.delete_namespace(NS)] == [0, 0, 0]
    await memory.put_many([(NS, f"k{i}", fact(f"likes tea {i}")) for i in range(3)])
    for k in (50, 1000):
        for query in ("likes tea", None):
            assert sorted(keys(await memory.search(NS, query=query, k=k))) == ["k0", "k1", "k2"]


async def test_d5_a_small_scope_is_not_crowded_out(open_memory: OpenMemory) -> None:
    """Of twenty far items in a small scope ten are found beside five thousand near ones elsewhere, in exact order."""
    generator = np.random.default_rng(5)
    vectors = {f"far {i}": generator.normal(size=8) for i in range(20)} | {"question": np.ones(8)}
    memory = open_memory(lambda text: vectors.get(text, np.ones(8)))
    await memory.put_many([(("big",), f"k{i}", fact(f"near {i}")) for i in range(5000)])
    await memory.put_many([(("small",), f"k{i}", fact(f"far {i}", rare=i % 4 == 0)) for i in range(20)])
    cosines = {f"k{i}": vectors[f"far {i}"].sum() / np.linalg.norm(vectors[f"far {i}"]) for i in range(20)}
    nearest = sorted(cosines, key=lambda key: -cosines[key])
    assert keys(await memory.search("small", query="question", mode="semantic")) == nearest[:10]
    assert len(await memory.search("small", query="question")) == 10
    rare = await memory.search("small", query="question", mode="semantic", filter={"rare": True})
    assert keys(rare) == [key for key in nearest if int(key[1:]) % 4 == 0]
    overall = await memory.search((), query="question", mode="semantic", filter={"rare": True})
    assert keys(overall) == keys(rare)


async def test_d7_a_higher_score_is_nearer(open_memory: OpenMemory) -> None:
    """Semantic scores are the cosines 1, .8, 0, -1 in this order on every backend."""
    table = {"same": [1.0, 0.0], "near": [0.8, 0.6], "across": [0.0, 1.0], "against": [-1.0, 0.0], "q": [1.0, 0.0]}
    memory = open_memory(TableEmbedder(table))
    await memory.put_many([(NS, text, fact(text)) for text in ("against", "near", "same", "across")])
    found = await memory.search(NS, query="q", mode="semantic")
    assert keys(found) == ["same", "near", "across", "against"]
    assert [item.score for item in found] == pytest.approx([1, 0.8, 0, -1], abs=1e-3)


async def test_d9_a_zero_vector_is_like_nothing(open_memory: OpenMemory) -> None:
    """Zeros have similarity 0 to everything, on either side, and never NaN."""
    memory = open_memory(TableEmbedder({"zero": [0.0, 0.0], "one": [1.0, 0.0]}))
    await memory.put(NS, "zero", fact("zero"))
    await memory.put(NS, "one", fact("one"))
    found = await memory.search(NS, query="one", mode="semantic")
    assert [(item.key, item.score) for item in found] == [("one", pytest.approx(1)), ("zero", 0.0)]
    assert [item.score for item in await memory.search(NS, query="zero", mode="semantic")] == [0.0, 0.0]
    assert {np.isfinite(item.score or 0) for item in await memory.search(NS, query="zero")} == {True}


@pytest.mark.parametrize("vector", [[1.0], [1.0, float("nan")], [1.0, float("inf")], [], "ab", None, [[1.0, 0.0]]])
async def test_d9_a_vector_that_is_none_is_refused(open_memory: OpenMemory, vector: Any) -> None:
    """A vector of another length, with NaN or infinity in it, or no vector: ValueError, nothing stored."""
    memory = open_memory(lambda text: [1.0, 0.0] if text == "good" else vector)
    await memory.put(NS, "k", fact("good"))
    for call in (
        memory.put(NS, "k", fact("bad")),
        memory.put_many([(NS, "k2", fact("good")), (NS, "k3", fact("bad"))]),
    ):
        with pytest.raises(ValueError, match=r"vector|numbers"):
            await call
    assert [item.value["text"] for item in await memory.items(NS)] == ["good"]


async def test_d15_the_last_of_many_is_found_first(memory: MemoryStore) -> None:
    """Of three thousand the newest is first by its text, in the newest-first search, and in the list."""
    await memory.put_many([(NS, f"k{i}", fact(f"fact number {i}")) for i in range(3000)])
    await memory.put(NS, "last", fact("a singular hippopotamus"))
    assert keys(await memory.search(NS, query="a singular hippopotamus"))[0] == "last"
    assert keys(await memory.search(NS, k=5))[0] == (await memory.list(NS, limit=5))[0] == "last"


async def test_d17_equal_texts_are_two_items(memory: MemoryStore) -> None:
    """Both are found with equal scores, the newer first, the same every time; deleting one leaves the other."""
    await memory.put(NS, "k1", fact("likes tea"))
    await memory.put(NS, "k2", fact("likes tea"))
    for mode in ("auto", "semantic", "lexical"):
        found = await memory.search(NS, query="likes tea", k=2, mode=mode)
        assert (keys(found), found[0].score) == (["k2", "k1"], found[1].score)
        assert await memory.search(NS, query="likes tea", k=2, mode=mode) == found
    assert await memory.delete(NS, "k1")
    assert keys(await memory.search(NS, query="likes tea", k=2)) == ["k2"]


@pytest.mark.parametrize(
    "query",
    ["a-b", "c++", '"', "NOT", "foo:bar", "(", "*", "_", "O'Brien", "x AND", "%", "NEAR(a b)", str(uuid.UUID(int=77))],
)
async def test_d19_a_query_has_no_syntax(open_memory: OpenMemory, query: str) -> None:
    """Characters that other engines read as operators are looked for as they stand."""
    memory = open_memory(None)
    await memory.put_many([(NS, f"k{i}", fact(f"something else {i}")) for i in range(5)])
    await memory.put(NS, "it", fact(f"said {query} once"))
    for mode in ("auto", "lexical"):
        assert keys(await memory.search(NS, query=query, mode=mode))[0] == "it"


@pytest.mark.parametrize("text", ["我喜欢绿茶", "أحب القهوة", "café ☕️ 👩‍👩‍👧", 'line1\nline2 "q" \\n \\u0041'])
async def test_e1_the_embedder_sees_the_text_itself(memory: MemoryStore, text: str) -> None:
    """Stored, embedded, found and exported as it was put, with no escapes."""
    await memory.put(NS, "k", fact(text))
    await memory.put_many([(NS, "k2", fact(text + "!")), (NS, "k3", fact(text + "?"))])
    assert embedded(memory.embedder) == [text, text + "!", text + "?"]
    (found, *_) = await memory.search(NS, query=text, mode="lexical")
    got = await memory.get(NS, "k")
    assert got is not None
    assert (got.value["text"], found.value["text"][: len(text)]) == (text, text)


@pytest.mark.parametrize("text", ["a\x00b", "\x1b[31mred", "\x7fdel", "a\u2028b", "\ufeffbom", "\u202eright"])
async def test_e3_controls_in_a_text_are_kept(memory: MemoryStore, text: str) -> None:
    """The whole text comes back, NUL and what follows it too; a field's name may hold them as well."""
    value = fact(text, **{"a\x00": "b\x00c"})
    await memory.put(NS, "k", value)
    await memory.put(NS, "own", {"n": 1}, text=text)
    got = await memory.get(NS, "k")
    assert got is not None
    assert got.value == value
    assert keys(await memory.items(NS, filter={"a\x00": "b\x00c"})) == ["k"]
    assert {item.key for item in await memory.search(NS, query=text)} == {"k", "own"}


@pytest.mark.parametrize(
    "value", [{"text": 123}, {"text": ["a"]}, {"text": {"a": 1}}, {"text": None}, {"text": b"x"}, {}, "plain", None, []]
)
async def test_e5_a_text_is_a_string_before_anything_runs(memory: MemoryStore, value: Any) -> None:
    """A value whose text is no string, or that is no object, is refused by name, and reaches no embedder."""
    with pytest.raises((TypeError, ValueError), match=r"text|value"):
        await memory.put(NS, "k", value)
    assert [memory.embedder.calls, await memory.count()] == [[], 0]


@pytest.mark.parametrize(
    "key", ["notes/2026 (v1).md", "1-0", "b07ystb5hx", "ключ 🔑", "0", "a" * 600, " ", "\n", "null", "..", "K", "k"]
)
async def test_p1_any_key_will_do(memory: MemoryStore, key: str) -> None:
    """Put, get, search, list and delete take it as it is, apart from any key that only looks like it."""
    others = [key + " ", key.swapcase() + "x", key[:-1] + "~"]
    await memory.put_many([(NS, other, fact("something else")) for other in others])
    await memory.put(NS, key, fact("likes tea"))
    got = await memory.get(NS, key)
    assert got is not None
    assert (got.key, got.value) == (key, fact("likes tea"))
    assert keys(await memory.search(NS, query="tea", mode="lexical")) == [key]
    assert (await memory.list(NS))[0] == key
    assert [await memory.delete(NS, key), await memory.count()] == [True, 3]


async def test_p3_what_is_not_there_is_none_or_nothing(memory: MemoryStore) -> None:
    """Unknown keys, empty lists and repeated keys are answered in the asked order, and [] never means all."""
    await memory.put_many([(NS, key, fact("likes tea")) for key in "ab"])
    assert [await memory.get(NS, "x"), await memory.delete(NS, "x")] == [None, False]
    assert [await memory.get_many(NS, []), await memory.delete_many(NS, [])] == [[], 0]
    many = await memory.get_many(NS, ["b", "x", "a", "a"])
    assert [item and item.key for item in many] == ["b", None, "a", "a"]
    assert await memory.count() == 2
