"""The order of writes: what touches one memory happens in the order of the calls, whatever waits in between."""

import asyncio
import json
from collections.abc import Awaitable, Iterator
from pathlib import Path
from typing import Any

import pytest

from teffmem import MemoryStore, StoreError
from teffmem._ordering import WriteOrder
from teffmem.testing import FakeClock
from tests.fakes import GatedEmbedder
from tests.memories import OpenMemory

NS = ("users", "u1")


@pytest.fixture
def embedder() -> Iterator[GatedEmbedder]:
    embedder = GatedEmbedder()
    yield embedder
    embedder.open_all()


@pytest.fixture
def memory(open_memory: OpenMemory, embedder: GatedEmbedder) -> MemoryStore:
    return open_memory(embedder)


def fact(text: str) -> dict[str, Any]:
    return {"text": text}


async def begun(*calls: Awaitable[Any]) -> list[asyncio.Task[Any]]:
    """Start calls one after the other, each up to where it waits for something else."""
    tasks = []
    for call in calls:
        tasks.append(asyncio.ensure_future(call))
        await asyncio.sleep(0.005)
    return tasks


async def test_after_a_delete_answers_nothing_put_before_appears(memory: MemoryStore, embedder: GatedEmbedder) -> None:
    """A delete made while a put waits for its embedding waits for the put, removes it and says so."""
    put, deleted = await begun(memory.put(NS, "k", fact("slow")), memory.delete(NS, "k"))
    assert not deleted.done()
    embedder.open("slow")
    assert [await deleted, (await put).value, await memory.get(NS, "k"), await memory.count()] == [
        True,
        fact("slow"),
        None,
        0,
    ]


@pytest.mark.parametrize("at", [(), "users", NS])
async def test_clearing_a_subtree_takes_what_was_on_its_way_there(
    memory: MemoryStore, embedder: GatedEmbedder, at: Any
) -> None:
    """delete_namespace of any namespace above waits for the puts made before it, and removes them."""
    first, second, cleared, after = await begun(
        memory.put(NS, "a", fact("slow")),
        memory.put_many([((*NS, "work"), "b", fact("slower"))]),
        memory.delete_namespace(at, everything=True),
        memory.put(NS, "c", fact("after")),
    )
    embedder.open("after")
    await asyncio.sleep(0.01)
    assert not cleared.done()
    embedder.open("slow", "slower")
    assert [await cleared, await memory.list(())] in ([2, ["c"]], [2, []])
    await asyncio.gather(first, second, after)
    assert await memory.list(()) == ["c"]


async def test_a_cleanup_comes_after_the_puts_before_it(open_memory: OpenMemory, embedder: GatedEmbedder) -> None:
    """cleanup by age takes what was put before it and has aged, and not what is put after it."""
    clock = FakeClock()
    memory = open_memory(embedder, clock=clock)
    embedder.open("old")
    await memory.put(NS, "old", fact("old"))
    clock.advance(100)
    slow, cleaned, again = await begun(
        memory.put(NS, "old", fact("slow")), memory.cleanup(max_age=50), memory.put(NS, "new", fact("new"))
    )
    embedder.open("new", "slow")
    assert [await cleaned, (await slow).updated_at, (await again).key] == [0, clock.now, "new"]
    assert sorted(await memory.list(NS)) == ["new", "old"]


async def test_an_import_comes_after_the_puts_before_it(
    memory: MemoryStore, embedder: GatedEmbedder, tmp_path: Path
) -> None:
    """Of a put on its way and an import made after it, the import's line is the later write; a put after it wins."""
    path = tmp_path / "lines.jsonl"
    line = {"namespace": list(NS), "key": "k", "value": fact("imported"), "updated_at": 9e9}
    path.write_text(json.dumps(line))
    put, imported, late = await begun(
        memory.put(NS, "k", fact("slow")), memory.import_(path), memory.put(NS, "k", fact("late"))
    )
    embedder.open("late", "imported")
    await asyncio.sleep(0.05)
    assert [put.done(), imported.done(), late.done()] == [False, False, False]
    embedder.open("slow")
    assert [(await put).value, (await imported).written, (await late).value] == [fact("slow"), 1, fact("late")]
    assert [item.value for item in await memory.items(())] == [fact("late")]


async def test_puts_of_one_key_are_written_in_the_order_of_the_calls(
    memory: MemoryStore, embedder: GatedEmbedder
) -> None:
    """The last call wins although its embedding came first; each answer is its own item."""
    texts = ["first", "second", "third"]
    puts = await begun(*(memory.put(NS, "k", fact(text)) for text in texts))
    for text in reversed(texts):
        embedder.open(text)
        await asyncio.sleep(0.005)
    items = await asyncio.gather(*puts)
    assert [item.value["text"] for item in items] == texts
    assert await memory.get(NS, "k") == items[-1]
    assert len({item.created_at for item in items}) == 1


async def test_an_update_changes_what_was_put_before_it(memory: MemoryStore, embedder: GatedEmbedder) -> None:
    """An update waits for the put before it and merges into that; the delete after both takes the result."""
    put, updated, deleted = await begun(
        memory.put(NS, "k", fact("slow")), memory.update(NS, "k", {"n": 1}), memory.delete_many(NS, ["k"])
    )
    embedder.open("slow")
    item = await updated
    assert item is not None
    assert [item.value, (await put).value, await deleted] == [fact("slow") | {"n": 1}, fact("slow"), 1]


async def test_what_does_not_overlap_waits_for_nothing(memory: MemoryStore, embedder: GatedEmbedder) -> None:
    """Other keys, other subtrees and every read go on while a put waits; reads show what is committed."""
    embedder.open("old")
    await memory.put(NS, "k", fact("old"))
    (put,) = await begun(memory.put(NS, "k", fact("slow")))
    async with asyncio.timeout(5):
        await memory.put(NS, "other", fact("quick"), index=False)
        await memory.put((*NS, "work"), "k", fact("quick"), index=False)
        assert await memory.delete_namespace((*NS, "work")) == 1
        assert await memory.delete_namespace(("users", "u10")) == 0
        item = await memory.get(NS, "k")
        assert item is not None
        assert item.value == fact("old")
        assert len(await memory.search(NS)) == await memory.count() == 2
    assert not put.done()
    embedder.open("slow")
    await put


async def test_a_cancelled_put_is_not_done_and_harms_nobody(memory: MemoryStore, embedder: GatedEmbedder) -> None:
    """Cancelling a put that waits for its embedding stores nothing; those before and after it go on."""
    embedder.open("last")
    first, middle, last = await begun(*(memory.put(NS, "k", fact(text)) for text in ("first", "middle", "last")))
    middle.cancel()
    await asyncio.sleep(0.005)
    assert [middle.cancelled(), last.done()] == [True, False]
    embedder.open("first")
    assert [(await first).value, (await last).value] == [fact("first"), fact("last")]
    assert [item.value for item in await memory.items(())] == [fact("last")]


async def test_a_chain_with_a_cancelled_middle_keeps_its_order(memory: MemoryStore, embedder: GatedEmbedder) -> None:
    """Where the waiting delete between two puts is cancelled, what comes after still comes after what was before."""
    embedder.open("new")
    old, deleted, cleared, new = await begun(
        memory.put(NS, "k", fact("old")),
        memory.delete(NS, "k"),
        memory.delete_namespace("users"),
        memory.put(NS, "k", fact("new")),
    )
    deleted.cancel()
    cleared.cancel()
    await asyncio.sleep(0.01)
    assert not new.done()
    embedder.open("old")
    assert [(await old).value, (await new).value] == [fact("old"), fact("new")]
    assert [item.value for item in await memory.items(())] == [fact("new")]


async def test_a_put_whose_embedding_fails_makes_room(open_memory: OpenMemory) -> None:
    """Whoever waits behind a put that fails goes on, and finds the key as it was before."""

    async def embed(text: str) -> list[float]:
        await asyncio.sleep(0.01)
        if text == "bad":
            raise RuntimeError("no vector")
        return [1.0, 0.0]

    memory = open_memory(embed)
    good = await memory.put(NS, "k", fact("good"))
    results = await asyncio.gather(
        memory.put(NS, "k", fact("bad")), memory.get(NS, "k"), memory.delete(NS, "k"), return_exceptions=True
    )
    assert [type(results[0]), *results[1:], await memory.count()] == [RuntimeError, good, True, 0]


async def test_any_mixture_of_writes_ends_as_if_made_one_by_one(open_memory: OpenMemory) -> None:
    """Eighty puts, deletes and clearings begun at once, embedded at different speeds, leave what a plain dict would."""

    async def embed(text: str) -> list[float]:
        await asyncio.sleep(int(text) % 7 / 500)
        return [1.0, float(text)]

    memory = open_memory(embed)
    model: dict[tuple[str, str], str] = {}
    calls: list[Awaitable[Any]] = []
    for i in range(80):
        namespace, key = f"n{i % 3}", f"k{i % 5}"
        match i % 8:
            case 3:
                model.pop((namespace, key), None)
                calls.append(memory.delete(namespace, key))
            case 6:
                model = {name: text for name, text in model.items() if name[0] != namespace}
                calls.append(memory.delete_namespace(namespace))
            case _:
                model[namespace, key] = str(i)
                calls.append(memory.put(namespace, key, fact(str(i))))
    await asyncio.gather(*calls)
    found = {(item.namespace[0], item.key): item.value["text"] for item in await memory.items(())}
    assert found == model


async def test_closing_waits_for_work_in_flight(memory: MemoryStore, embedder: GatedEmbedder) -> None:
    """aclose lets a put that had begun be stored, and refuses what comes after; closing twice at once is fine."""
    put, closed, again = await begun(memory.put(NS, "k", fact("slow")), memory.aclose(), memory.aclose())
    assert [closed.done(), again.done()] == [False, False]
    with pytest.raises(StoreError, match="closed"):
        await memory.put(NS, "k2", fact("late"))
    embedder.open("slow")
    item = await put
    await asyncio.gather(closed, again)
    assert item.value == fact("slow")


async def test_a_put_that_closing_waited_for_is_on_the_disk(tmp_path: Path, embedder: GatedEmbedder) -> None:
    """What was acknowledged while the memory was closing is there when the file is opened again."""
    memory = await MemoryStore.open(tmp_path / "memory.db", embedder=embedder)
    put, closed = await begun(memory.put(NS, "k", fact("slow")), memory.aclose())
    embedder.open("slow")
    await asyncio.gather(put, closed)
    async with MemoryStore.open(tmp_path / "memory.db", embedder=embedder) as again:
        assert await again.list(()) == ["k"]


async def test_a_cancelled_close_can_be_repeated(memory: MemoryStore, embedder: GatedEmbedder) -> None:
    """Cancelling aclose while it waits leaves the put in flight unharmed, and the next aclose finishes."""
    put, closed = await begun(memory.put(NS, "k", fact("slow")), memory.aclose())
    closed.cancel()
    await asyncio.sleep(0)
    embedder.open("slow")
    assert (await put).key == "k"
    await memory.aclose()


def test_f9_another_event_loop_is_a_clear_error_at_once() -> None:
    """A memory that is open in one loop refuses another with StoreError, and can be closed from there."""
    memory = MemoryStore.open("memory://", embedder=None).memory
    asyncio.run(memory.put(NS, "k", fact("likes tea")))
    with pytest.raises(StoreError, match="event loop"):
        asyncio.run(memory.get(NS, "k"))
    asyncio.run(memory.aclose())


async def test_the_order_keeps_nothing_of_writes_that_are_over() -> None:
    """When all turns have left, whether they arrived or not, the order is empty."""
    order = WriteOrder()
    with order.names([(NS, "a"), (NS, "b")]) as first:
        with order.tree(("users",)), order.names([(NS, "a")]), order.tree(()):
            pass
        await first.arrive()
    await asyncio.sleep(0)
    assert [value for value in vars(order).values() if value] == []


async def test_waiting_in_line_costs_no_more_than_the_line_is_long() -> None:
    """Thirty thousand turns for one name, half of them given up, leave one after the other within the test's time."""
    order = WriteOrder()
    turns = [order.names([(NS, "k")]) for _ in range(30_000)]
    for turn in turns[1::2]:
        with turn:
            pass
    for turn in turns[::2]:
        with turn:
            await turn.arrive()
    with order.tree(()) as last:
        await last.arrive()
    assert [value for value in vars(order).values() if value] == []
