"""MemoryStore: how it is opened, viewed and closed, and whose vectors it takes."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from teffmem import (
    EmbedderMismatchError,
    InMemoryVectorStore,
    MemoryStore,
    ScopedMemory,
    SQLiteVectorStore,
    StoreError,
    embedder_from_config,
    memory_from_config,
    store_from_config,
)
from teffmem.testing import FakeClock, FakeEmbedder
from tests.fakes import GatedEmbedder
from tests.memories import OpenMemory

NS = ("users", "u1")
TEA = {"text": "likes tea"}


class Closable(FakeEmbedder):
    """An embedder that counts how often it is closed."""

    closed = 0

    async def aclose(self) -> None:
        self.closed += 1


@pytest.mark.parametrize("kind", ["text", "path", "dict", "url"])
async def test_open_takes_a_path_a_dict_or_a_url(tmp_path: Path, kind: str) -> None:
    """Each way of naming a SQLite file opens the same one, and makes its folders."""
    path = tmp_path / "new" / "memory.db"
    locations: dict[str, Any] = {
        "text": str(path),
        "path": path,
        "dict": {"type": "sqlite", "path": str(path)},
        "url": f"sqlite:///{path}",
    }
    async with MemoryStore.open(locations[kind], embedder=None) as memory:
        assert isinstance(memory.store, SQLiteVectorStore)
        await memory.put(NS, "k", TEA)
    async with MemoryStore.open(path, embedder=None) as memory:
        assert await memory.count() == 1


async def test_open_can_be_awaited(tmp_path: Path) -> None:
    """``await MemoryStore.open()`` gives a memory to close oneself; what is wrong with the file shows there."""
    memory = await MemoryStore.open(tmp_path / "memory.db", embedder=None)
    await memory.aclose()
    with pytest.raises(StoreError):
        await MemoryStore.open(tmp_path, embedder=None)
    with pytest.raises(StoreError):
        async with MemoryStore.open(tmp_path, embedder=None):
            pytest.fail("a folder was opened")


async def test_open_in_memory() -> None:
    """``memory://`` and its dict are the backend without a file."""
    async with (
        MemoryStore.open("memory://", embedder=None) as one,
        MemoryStore.open({"type": "in_memory"}, embedder=None) as other,
    ):
        await one.put(NS, "k", TEA)
        assert isinstance(one.store, InMemoryVectorStore)
        assert await other.count() == 0


async def test_open_passes_its_options_on(tmp_path: Path) -> None:
    """ttl, refresh_on_read, clock and embedder reach the memory."""
    embedder, clock = FakeEmbedder(), FakeClock(1000.0)
    options: dict[str, Any] = {"embedder": embedder, "ttl": 10, "refresh_on_read": True, "clock": clock}
    async with MemoryStore.open(tmp_path / "memory.db", **options) as memory:
        assert memory.embedder is embedder
        assert (await memory.put(NS, "k", TEA)).expires_at == 1010.0
        clock.advance(5)
        item = await memory.get(NS, "k")
        assert item is not None
        assert item.expires_at == 1015.0


async def test_a_memory_closes_its_backend_and_not_the_embedder(open_memory: OpenMemory) -> None:
    """aclose closes the backend; the embedder, which was given, is left open; twice is fine."""
    embedder = Closable()
    memory = open_memory(embedder)
    await memory.put(NS, "k", TEA)
    await memory.aclose()
    await memory.aclose()
    assert embedder.closed == 0
    with pytest.raises(StoreError, match="closed"):
        await memory.store.count(None)  # type: ignore[arg-type] # the refusal comes before the selection is looked at


async def test_an_error_inside_async_with_passes_and_closes(tmp_path: Path) -> None:
    """The error comes through; the file can be opened anew with what was acknowledged."""
    memory = await MemoryStore.open(tmp_path / "memory.db", embedder=None)
    await memory.put(NS, "k", TEA)
    with pytest.raises(KeyError):
        async with memory:
            raise KeyError
    with pytest.raises(StoreError, match="closed"):
        await memory.count()
    async with MemoryStore.open(tmp_path / "memory.db", embedder=None) as again:
        assert await again.list(()) == ["k"]


async def test_use_after_close_is_a_clear_error(memory: MemoryStore, tmp_path: Path) -> None:
    """Every method of a closed memory, and of its views, raises StoreError."""
    await memory.put(NS, "k", TEA)
    view = memory.scoped(NS)
    await memory.aclose()

    async def iterate() -> None:
        async for _ in memory.iter_items(NS):
            pass

    async def export() -> None:
        async for _ in memory.export():
            pass

    (tmp_path / "lines").write_text("")
    for call in (
        memory.put(NS, "k", TEA),
        memory.put_many([(NS, "k", TEA)]),
        memory.get(NS, "k"),
        memory.get_many(NS, []),
        memory.update(NS, "k", {}),
        memory.search(NS, query="tea"),
        memory.search(NS),
        memory.search(NS, k=0),
        memory.items(NS),
        iterate(),
        memory.list(NS),
        memory.list_namespaces(),
        memory.count(),
        memory.delete(NS, "k"),
        memory.delete_many(NS, []),
        memory.delete_namespace(NS),
        memory.cleanup(),
        export(),
        memory.import_(tmp_path / "lines"),
        view.get((), "k"),
    ):
        with pytest.raises(StoreError, match="closed"):
            await call


async def test_a_view_shows_its_namespace_as_the_top(memory: MemoryStore) -> None:
    """What a view puts and reads is under its namespace, and named relative to it."""
    view = memory.scoped(NS)
    put = await view.put((), "k", TEA)
    deeper = await view.put("work", "k2", {"text": "plays chess"})
    assert (put.namespace, deeper.namespace) == ((), ("work",))
    assert [item.namespace for item in await memory.items(())] == [(*NS, "work"), NS]
    assert [await view.get((), "k"), await view.get("work", "k2")] == [put, deeper]
    assert [item.namespace for item in await view.search((), query="chess", mode="lexical")] == [("work",)]
    assert await view.list_namespaces() == [(), ("work",)]
    assert await view.list_namespaces(suffix="work") == [("work",)]
    assert [item.namespace async for item in view.iter_items()] == [(), ("work",)]
    assert [await view.count(), await view.list((), recursive=False)] == [2, ["k"]]


async def test_nothing_outside_a_view_can_be_addressed(open_memory: OpenMemory) -> None:
    """Whatever a view is asked, it neither reads nor changes a sibling, a parent or the root."""
    clock = FakeClock()
    memory = open_memory(clock=clock)
    outside = [(), ("users",), ("users", "u10"), ("users", "u2", "work"), ("*",)]
    for namespace in outside:
        await memory.put(namespace, "k", {"text": "likes tea", "ns": list(namespace)}, ttl=100)
    before = await memory.items(())
    view = memory.scoped(NS)
    for namespace in (*outside, ("..", "u2"), ("..",), ("/",)):
        assert await view.get(namespace, "k") is None
        assert [await view.delete(namespace, "k"), await view.update(namespace, "k", {"x": 1})] == [False, None]
        assert await view.search(namespace, query="likes tea") == await view.items(namespace) == []
        assert [await view.list(namespace), await view.count(namespace), await view.list_namespaces(namespace)] == [
            [],
            0,
            [],
        ]
    assert await view.search((), filter={"$or": [{"ns": ["users"]}, {}]}) == []
    assert [line async for line in view.export()] == []
    assert await view.delete_namespace((), everything=True) == 0
    clock.advance(50)
    assert await view.cleanup(max_age=1) == 0
    assert await memory.items(()) == before


async def test_a_view_refuses_to_clear_its_top_by_omission(memory: MemoryStore) -> None:
    """``delete_namespace(())`` needs ``everything=True`` in a view as well, and clears nothing else."""
    view = memory.scoped(NS)
    await view.put("work", "k", TEA)
    await memory.put(("users", "u2"), "k", TEA)
    with pytest.raises(ValueError, match="everything=True"):
        await view.delete_namespace(())
    assert [await view.delete_namespace((), dry_run=True), await view.delete_namespace((), everything=True)] == [1, 1]
    assert await memory.list_namespaces() == [("users", "u2")]


async def test_views_nest(memory: MemoryStore) -> None:
    """A view of a view is under both; a view of ``()`` shows the same as what it is a view of."""
    view = memory.scoped("users").scoped(["u1"]).scoped(())
    await view.put("work", "k", TEA)
    assert await memory.list_namespaces() == [(*NS, "work")]
    assert [await memory.scoped(()).count(), await view.count(), await memory.scoped("u1").count()] == [1, 1, 0]


async def test_closing_a_view_does_nothing(memory: MemoryStore) -> None:
    """A view has no ``store``, and its aclose and ``async with`` leave the memory open."""
    async with memory.scoped(NS) as view:
        await view.put((), "k", TEA)
    await view.aclose()
    assert isinstance(view, ScopedMemory)
    assert not hasattr(view, "store")
    assert await view.count() == await memory.count() == 1


async def test_writes_through_views_keep_their_order(open_memory: OpenMemory) -> None:
    """A view's deletion comes after a put through the memory that still waits for its embedding."""
    embedder = GatedEmbedder()
    memory = open_memory(embedder)
    put = asyncio.create_task(memory.put(NS, "k", TEA))
    await asyncio.sleep(0)
    deleted = asyncio.create_task(memory.scoped("users").delete("u1", "k"))
    await asyncio.sleep(0.01)
    embedder.open("likes tea")
    assert [await deleted, (await put).key, await memory.count()] == [True, "k", 0]


async def test_d11_another_embedder_reads_and_deletes_but_neither_puts_nor_searches(open_memory: OpenMemory) -> None:
    """A store filled at 32 dimensions and opened at 16 names both, writes nothing, and does what needs no vector."""
    clock = FakeClock()
    old = open_memory(clock=clock)
    await old.put(NS, "k", TEA)
    await old.put(NS, "k2", {"text": "plays chess"})
    await old.put(NS, "dead", TEA, ttl=1)
    clock.advance(1)
    wrong = FakeEmbedder(16)
    memory = open_memory(wrong, over=old.store, clock=clock)
    for call in (
        memory.put(NS, "new", TEA),
        memory.put(NS, "new", TEA, index=False),
        memory.put_many([(NS, "new", TEA)]),
        memory.search(NS, query="tea"),
        memory.search(NS, query="tea", mode="semantic"),
        memory.search(NS, query="tea", mode="hybrid"),
        memory.update(NS, "k", {"text": "eats rice"}),
    ):
        with pytest.raises(EmbedderMismatchError, match=r"32.*16"):
            await call
    assert len(wrong.calls) <= 1  # what is known is not asked for again
    assert [await memory.count(), await memory.list(NS)] == [2, ["k2", "k"]]
    assert [item.key for item in await memory.search(NS, query="tea", mode="lexical")] == ["k"]
    assert [item.key for item in await memory.search(NS)] == ["k2", "k"]
    assert await memory.get(NS, "new") is None
    assert [await memory.cleanup(), await memory.delete(NS, "k"), await memory.count()] == [1, True, 1]


async def test_having_no_embedder_is_a_fingerprint_too(open_memory: OpenMemory) -> None:
    """A store of words takes no vectors, and a store with vectors takes no words alone."""
    words = open_memory(None)
    await words.put(NS, "k", TEA)
    meaning = open_memory(over=words.store)
    with pytest.raises(EmbedderMismatchError):
        await meaning.put(NS, "k2", TEA)
    with pytest.raises(EmbedderMismatchError):
        await meaning.search(NS, query="tea")
    other = open_memory()
    await other.put(NS, "k", TEA)
    wordless = open_memory(None, over=other.store)
    with pytest.raises(EmbedderMismatchError):
        await wordless.put(NS, "k2", TEA)
    assert [item.key for item in await wordless.search(NS, query="tea", mode="lexical")] == ["k"]


async def test_an_embedder_without_a_name_is_compared_by_dimension(open_memory: OpenMemory) -> None:
    """Plain functions of equal length share a store; one of another length is refused once it has answered."""
    memory = open_memory(lambda text: [1.0, 0.0])
    await memory.put(NS, "k", TEA)
    same = open_memory(lambda text: [0.0, 1.0], over=memory.store)
    await same.put(NS, "k2", TEA)
    longer = open_memory(lambda text: [0.0, 1.0, 0.0], over=memory.store)
    with pytest.raises(EmbedderMismatchError, match=r"2.*3"):
        await longer.put(NS, "k3", TEA)
    with pytest.raises(EmbedderMismatchError, match=r"2.*3"):
        await longer.search(NS, query="tea")
    assert await memory.list(NS) == ["k2", "k"]


async def test_looking_into_an_empty_store_binds_it_to_no_embedder(open_memory: OpenMemory) -> None:
    """Only what is stored makes a store an embedder's: neither a search nor a put that failed does."""
    first = open_memory(None)
    assert await first.search(NS, query="tea") == []
    failing = open_memory(FakeEmbedder(16, failing=["likes tea"]), over=first.store)
    with pytest.raises(RuntimeError):
        await failing.put(NS, "k", TEA)
    memory = open_memory(over=first.store)
    await memory.put(NS, "k", TEA)
    assert [item.key for item in await memory.search(NS, query="tea", mode="semantic")] == ["k"]
    with pytest.raises(EmbedderMismatchError):
        await first.search(NS, query="tea")


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"type": "duckdb"}, "in_memory, sqlite"),
        ({"path": "x.db"}, "in_memory, sqlite"),
        ({"type": "sqlite", "file": "x.db"}, "path"),
        ({"type": "in_memory", "path": "x.db"}, "dim"),
        ("postgres://host/db", "sqlite://"),
    ],
)
def test_an_unknown_store_lists_those_that_are_known(config: Any, said: str) -> None:
    """Unknown types, options and schemes are ValueErrors that say what there is."""
    with pytest.raises(ValueError, match=said):
        store_from_config(config)


@pytest.mark.parametrize("config", [None, 5, ["sqlite"]])
def test_a_store_is_a_dict_a_url_or_a_path(config: Any) -> None:
    """Anything else is a TypeError."""
    with pytest.raises(TypeError, match="dict, a URL or a path"):
        store_from_config(config)


def test_an_unknown_embedder_option_lists_those_that_are_known() -> None:
    """Unknown options are ValueErrors that say what there is; so is an embedder without a provider."""
    with pytest.raises(ValueError, match="minilm"):
        embedder_from_config({"model": "x"})
    with pytest.raises(ValueError, match="has no option"):
        embedder_from_config({"provider": "minilm", "batch": 5})
    with pytest.raises(TypeError, match="dict"):
        embedder_from_config("minilm")  # type: ignore[arg-type]


async def test_memory_from_config_builds_the_whole(tmp_path: Path) -> None:
    """Store, embedder and ttl come from the dict; ``default_ttl`` serves where the dict has none."""
    config = {"store": {"type": "sqlite", "path": str(tmp_path / "m.db")}, "embedder": None, "ttl": 10}
    async with memory_from_config(config) as memory:
        item = await memory.put(NS, "k", TEA)
        assert item.expires_at == pytest.approx(item.created_at + 10)
    async with memory_from_config({"store": "memory://", "embedder": None}, default_ttl=20) as memory:
        item = await memory.put(NS, "k", TEA)
        assert item.expires_at == pytest.approx(item.created_at + 20)
    async with memory_from_config({"store": "memory://", "embedder": None, "ttl": None}, default_ttl=20) as memory:
        assert (await memory.put(NS, "k", TEA)).expires_at is None


@pytest.mark.parametrize(("config", "said"), [({"store": "memory://", "k": 5}, "ttl"), ({"embedder": None}, "store")])
def test_an_unknown_name_in_a_memorys_config_is_refused(config: Any, said: str) -> None:
    """The message lists the names that are known, or says which one is missing."""
    with pytest.raises(ValueError, match=said):
        memory_from_config(config)


@pytest.mark.parametrize("ttl", [0, -1, float("nan"), float("inf"), 10**400])
def test_c1_a_stores_ttl_follows_the_rule_of_an_items(ttl: Any) -> None:
    """A ttl of 0 or less, or not finite, is a ValueError when the memory is made."""
    with pytest.raises(ValueError, match="ttl"):
        MemoryStore(InMemoryVectorStore(), None, ttl=ttl)
    with pytest.raises(ValueError, match="ttl"):
        MemoryStore.open("memory://", embedder=None, ttl=ttl)
