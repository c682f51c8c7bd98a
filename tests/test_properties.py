"""A memory against a dict: whatever is done, in whatever order, both give the same answers."""

import asyncio
import json
import os
import tempfile
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from teffmem import (
    KEEP,
    InMemoryVectorStore,
    MemoryItem,
    MemoryStore,
    Record,
    ScopedMemory,
    SQLiteVectorStore,
    VectorStore,
)
from teffmem.items import DEFAULT
from teffmem.namespace import Namespace, encode, starts_with
from teffmem.ranking import Query
from teffmem.testing import FakeClock, FakeEmbedder
from teffmem.testing._reference import Document, reference_scores
from teffmem.text import query_terms
from tests.strategies import json_values

T = TypeVar("T")
Name = tuple[Namespace, str]

NAMESPACES: list[Namespace] = [
    (),
    ("users",),
    ("users", "u1"),
    ("users", "u1", "work"),
    ("users", "u10"),
    ("users", "u1/work"),
    ("users/u1",),
    ("a::b",),
    ("a", "b"),
    ("users", "%"),
    ("users", "u_"),
    ("users", "*"),
    ("users", "d'arc"),
    ("users", "\u00e9"),
    ("users", "e\u0301"),
    ("users", "\U0010ffff"),
    ("x" * 1000,),
    tuple("abcdefgh"),
]
KEYS = ["k", "K", "a::b", "b", "o'brien", "%", "\u00e9", "e\u0301", "' OR 1=1 --", "k" * 1000]
WORDS = "green tea black coffee cup the of 茶 café c++ not ? never".split()
FILTERS: list[tuple[dict[str, Any] | None, Callable[[dict[str, Any]], bool]]] = [
    (None, lambda value: True),
    ({}, lambda value: True),
    ({"n": 1}, lambda value: value.get("n") == 1 and value.get("n") is not True),
    ({"n": {"$exists": False}}, lambda value: "n" not in value),
    ({"n": {"$ne": 0}}, lambda value: not (value.get("n") == 0 and value.get("n") is not False)),
    ({"n": []}, lambda value: False),
    ({"namespace": "users"}, lambda value: False),
]

namespaces = st.sampled_from(NAMESPACES[:6]) | st.sampled_from(NAMESPACES)  # most of life in a few
keys = st.sampled_from(KEYS)
texts = st.lists(st.sampled_from(WORDS), min_size=1, max_size=5).map(" ".join)
extras = st.fixed_dictionaries(
    {}, optional={"n": st.sampled_from([0, 1, 1.0, True, None, "1"]), "updated_at": json_values, "": json_values}
)
lifetimes = st.sampled_from([DEFAULT, DEFAULT, None, 3, 40.0])
threads = st.sampled_from([KEEP, KEEP, None, "t1", "t2"])
counts = st.sampled_from([0, 1, 2, 5, 100])
offsets = st.sampled_from([0, 0, 0, 1, 3])
filters = st.sampled_from(FILTERS)
depths = st.integers(0, 3)  # how much of a namespace a scoped view takes over

puts = st.fixed_dictionaries(
    {"at": namespaces, "key": keys, "text": texts, "extra": extras, "ttl": lifetimes, "thread": threads},
    optional={"index": st.booleans(), "own_text": texts},
)
searches = st.fixed_dictionaries(
    {
        "at": namespaces,
        "depth": depths,
        "text": texts,
        "mode": st.sampled_from(["auto", "semantic", "lexical"]),
        "k": counts,
        "offset": offsets,
        "keep": filters,
    }
)


@dataclass(frozen=True)
class Held:
    """What the model keeps of a memory: a record, and the vector of its text."""

    record: Record
    text: str | None


def shown(record: Record, top: Namespace = ()) -> tuple[object, ...]:
    """Return what an item should say of a record."""
    value = json.dumps(record.value)
    times = (record.created_at, record.updated_at, record.expires_at)
    return (record.namespace[len(top) :], record.key, value, *times, record.thread)


def said(item: MemoryItem) -> tuple[object, ...]:
    """Return what an item says."""
    times = (item.created_at, item.updated_at, item.expires_at)
    return (item.namespace, item.key, json.dumps(item.value), *times, item.thread)


class Model:
    """The rules of SPEC in the plainest form: a dict, and loops over all of it."""

    def __init__(self, ttl: float | None, *, refresh: bool) -> None:
        self.held: dict[Name, Held] = {}
        self.ttl = ttl
        self.refresh = refresh
        self.clock = FakeClock()
        self.embedder = FakeEmbedder()
        self._stamp = 0

    def live(self, name: Name) -> Held | None:
        held = self.held.get(name)
        if held is None or (held.record.expires_at is not None and held.record.expires_at <= self.clock.now):
            return None
        return held

    def under(self, top: Namespace, keep: Callable[[dict[str, Any]], bool] = lambda value: True) -> list[Record]:
        """Return the live records at and below a namespace, newest first."""
        found = [held.record for name in self.held if starts_with(name[0], top) and (held := self.live(name))]
        return sorted((record for record in found if keep(record.value)), key=lambda record: -record.stamp)

    def put(self, put: dict[str, Any]) -> Record:
        name = (put["at"], put["key"])
        before = self.live(name)
        self._stamp += 1
        ttl = self.ttl if put["ttl"] is DEFAULT else put["ttl"]
        own, index, now = put.get("own_text"), put.get("index", True), self.clock.now
        kept_thread = before.record.thread if before else None
        record = Record(
            namespace=put["at"],
            key=put["key"],
            value={"text": put["text"]} | put["extra"],
            text=own,
            indexed=index,
            thread=kept_thread if put["thread"] is KEEP else put["thread"],
            stamp=self._stamp,
            place=before.record.place if before else self._stamp,
            created_at=before.record.created_at if before else now,
            updated_at=now,
            ttl=ttl,
            expires_at=None if ttl is None else now + ttl,
        )
        self.held[name] = Held(record, (own or put["text"]) if index else None)
        return record

    def update(self, name: Name, changes: dict[str, Any]) -> Record | None:
        before = self.live(name)
        if before is None:
            return None
        self._stamp += 1
        value = before.record.value | changes
        record = replace(before.record, value=value, stamp=self._stamp, updated_at=self.clock.now)
        text = value["text"] if record.indexed and record.text is None else before.text
        self.held[name] = Held(record, text)
        return record

    def delete(self, names: list[Name]) -> int:
        """Remove by name; return how many live ones went."""
        gone = sum(self.live(name) is not None for name in set(names))
        for name in names:
            self.held.pop(name, None)
        return gone

    def clear(self, top: Namespace, doomed: Callable[[Record], bool]) -> int:
        """Remove, under a namespace, what is doomed or has expired; return how many records went."""
        names = [
            name
            for name, held in self.held.items()
            if starts_with(name[0], top) and (self.live(name) is None or doomed(held.record))
        ]
        for name in names:
            del self.held[name]
        return len(names)

    def read(self, record: Record) -> Record:
        """Return a record as it is after having been read."""
        if self.refresh and record.ttl is not None:
            name = (record.namespace, record.key)
            record = replace(record, expires_at=self.clock.now + record.ttl)
            self.held[name] = replace(self.held[name], record=record)
        return record

    def ranked(self, top: Namespace, query: Query, keep: Callable[[dict[str, Any]], bool]) -> dict[Name, float]:
        """Return the score of each match."""
        found = [
            held for record in self.under(top) if (held := self.held[record.namespace, record.key]).text is not None
        ]
        documents = [Document(held.record, self.embedder.vector(held.text or "")) for held in reversed(found)]
        scores = reference_scores(documents, query, self.clock.now) if documents else []
        return {
            (document.record.namespace, document.record.key): parts["score"]
            for document, parts in zip(documents, scores, strict=True)
            if parts is not None and keep(document.record.value)
        }


class MemoryMachine(RuleBasedStateMachine):
    """Does the same to a `MemoryStore` and to a `Model`."""

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.folder = tempfile.TemporaryDirectory()
        self.model = Model(None, refresh=False)
        self.memory: MemoryStore | None = None

    def make_store(self) -> VectorStore:
        raise NotImplementedError

    def run(self, call: Coroutine[Any, Any, T]) -> T:
        return self.runner.run(call)

    @initialize(ttl=st.sampled_from([None, 30.0]), refresh=st.booleans(), some=st.lists(puts, min_size=10, max_size=30))
    def open(self, ttl: float | None, refresh: bool, some: list[dict[str, Any]]) -> None:
        self.model = Model(ttl, refresh=refresh)
        self._open()
        self._put_many(some)

    def _open(self) -> None:
        self.memory = MemoryStore(
            self.make_store(),
            FakeEmbedder(),
            ttl=self.model.ttl,
            refresh_on_read=self.model.refresh,
            clock=self.model.clock,
        )

    def view(self, at: Namespace, depth: int) -> tuple[MemoryStore | ScopedMemory, Namespace, Namespace]:
        """Return the memory or a view of part of a namespace, where the view begins, and the rest of the namespace."""
        assert self.memory is not None
        top = at[:depth]
        return (self.memory.scoped(top) if depth else self.memory), top, at[len(top) :]

    def teardown(self) -> None:
        if self.memory is not None:
            self.run(self.memory.aclose())
        self.runner.close()
        self.folder.cleanup()

    @rule(put=puts, depth=depths)
    def put(self, put: dict[str, Any], depth: int) -> None:
        memory, top, at = self.view(put["at"], depth)
        value = {"text": put["text"]} | put["extra"]
        item = self.run(
            memory.put(
                at,
                put["key"],
                value,
                ttl=put["ttl"],
                text=put.get("own_text"),
                index=put.get("index", True),
                thread=put["thread"],
            )
        )
        assert said(item) == shown(self.model.put(put), top)

    @rule(some=st.lists(puts, max_size=12))
    def put_many(self, some: list[dict[str, Any]]) -> None:
        self._put_many(some)

    def _put_many(self, some: list[dict[str, Any]]) -> None:
        memory, _, _ = self.view((), 0)
        items = [
            {
                "namespace": put["at"],
                "key": put["key"],
                "value": {"text": put["text"]} | put["extra"],
                "ttl": put["ttl"],
                "text": put.get("own_text"),
                "index": put.get("index", True),
                "thread": put["thread"],
            }
            for put in some
        ]
        answered = self.run(memory.put_many(items))
        last = {(put["at"], put["key"]): put for put in some}
        records = {name: self.model.put(put) for name, put in last.items()}
        assert [said(item) for item in answered] == [shown(records[put["at"], put["key"]]) for put in some]

    @rule(at=namespaces, key=keys, depth=depths, changes=extras, text=st.none() | texts)
    def update(self, at: Namespace, key: str, depth: int, changes: dict[str, Any], text: str | None) -> None:
        memory, top, rest = self.view(at, depth)
        changed = changes | ({} if text is None else {"text": text})
        item = self.run(memory.update(rest, key, changed))
        record = self.model.update((at, key), changed)
        assert (item and said(item)) == (record and shown(record, top))

    @rule(at=namespaces, some=st.lists(keys, max_size=3), depth=depths)
    def get_many(self, at: Namespace, some: list[str], depth: int) -> None:
        memory, top, rest = self.view(at, depth)
        items = self.run(memory.get_many(rest, some))
        held = [self.model.live((at, key)) for key in some]
        expected = [one and shown(self.model.read(one.record), top) for one in held]
        assert [item and said(item) for item in items] == expected

    @rule(at=namespaces, key=keys, depth=depths)
    def delete(self, at: Namespace, key: str, depth: int) -> None:
        memory, _, rest = self.view(at, depth)
        assert self.run(memory.delete(rest, key)) == (self.model.delete([(at, key)]) == 1)

    @rule(at=namespaces, some=st.lists(keys, max_size=4))
    def delete_many(self, at: Namespace, some: list[str]) -> None:
        memory, _, _ = self.view((), 0)
        assert self.run(memory.delete_many(at, some)) == self.model.delete([(at, key) for key in some])

    @rule(at=namespaces, depth=depths, dry_run=st.sampled_from([True, True, True, False]))
    def delete_namespace(self, at: Namespace, depth: int, dry_run: bool) -> None:
        memory, _, rest = self.view(at, depth)
        live = len(self.model.under(at))
        assert self.run(memory.delete_namespace(rest, dry_run=dry_run, everything=True)) == live
        if not dry_run:
            self.model.clear(at, lambda record: True)

    @rule(at=namespaces, depth=depths, age=st.sampled_from([None, 1, 5.5, 60]))
    def cleanup(self, at: Namespace, depth: int, age: float | None) -> None:
        memory, _, rest = self.view(at, depth)
        oldest = -1.0 if age is None else self.model.clock.now - age
        gone = self.model.clear(at, lambda record: record.updated_at < oldest)
        assert self.run(memory.cleanup(namespace=rest, max_age=age)) == gone

    @rule(seconds=st.sampled_from([0.5, 1, 3, 10, 40]))
    def wait(self, seconds: float) -> None:
        self.model.clock.advance(seconds)

    @rule(
        at=namespaces,
        depth=depths,
        k=counts,
        offset=offsets,
        keep=filters,
        blank=st.sampled_from([None, "", " \u200b"]),
    )
    def newest(
        self, at: Namespace, depth: int, k: int, offset: int, keep: tuple[Any, Callable[..., bool]], blank: str | None
    ) -> None:
        memory, top, rest = self.view(at, depth)
        items = self.run(memory.search(rest, query=blank, k=k, offset=offset, filter=keep[0]))
        records = self.model.under(at, keep[1])[offset : offset + k]
        assert [said(item) for item in items] == [shown(self.model.read(record), top) for record in records]
        assert [item.score for item in items] == [None] * len(items)

    @rule(put=puts, search=searches)
    def find_what_was_put(self, put: dict[str, Any], search: dict[str, Any]) -> None:
        self._put_many([put])
        self._search(**search | {"at": put["at"], "text": put["text"], "k": 100, "offset": 0})

    @rule(some=st.lists(searches, min_size=1, max_size=5))
    def search(self, some: list[dict[str, Any]]) -> None:
        for one in some:
            self._search(**one)

    def _search(
        self,
        at: Namespace,
        depth: int,
        text: str,
        mode: Any,
        k: int,
        offset: int,
        keep: tuple[Any, Callable[..., bool]],
    ) -> None:
        memory, top, rest = self.view(at, depth)
        items = self.run(memory.search(rest, query=text, mode=mode, k=k, offset=offset, filter=keep[0]))
        vector = None if mode == "lexical" else self.model.embedder.vector(text)
        query = Query("hybrid" if mode == "auto" else mode, query_terms(text), vector, FakeEmbedder.similarity_range)
        scores = self.model.ranked(at, query, keep[1])
        best = sorted(scores.values(), reverse=True)[offset : offset + k]
        assert len(items) == len(best)
        assert np.allclose([item.score or 0 for item in items], best, atol=1e-3)
        order = []
        for item in items:
            held = self.model.held[top + item.namespace, item.key]
            assert item.score == pytest.approx(scores[top + item.namespace, item.key], abs=1e-3)
            assert said(item) == shown(self.model.read(held.record), top)
            order.append((-(item.score or 0), -held.record.stamp))
        assert order == sorted(order)

    @rule(at=namespaces, depth=depths, limit=counts, offset=offsets, recursive=st.booleans())
    def list_keys(self, at: Namespace, depth: int, limit: int, offset: int, recursive: bool) -> None:
        memory, _, rest = self.view(at, depth)
        keys = self.run(memory.list(rest, limit, offset, recursive=recursive))
        records = [record for record in self.model.under(at) if recursive or record.namespace == at]
        assert keys == [record.key for record in records][offset : offset + limit]

    @rule(at=namespaces, depth=depths, max_depth=st.none() | st.integers(0, 3), limit=counts, offset=offsets)
    def list_namespaces(self, at: Namespace, depth: int, max_depth: int | None, limit: int, offset: int) -> None:
        memory, top, rest = self.view(at, depth)
        found = self.run(memory.list_namespaces(rest, max_depth=max_depth, limit=limit, offset=offset))
        literal = [
            record.namespace for record in self.model.under(top) if starts_with(record.namespace, at) or "*" in at
        ]
        fitting = [
            space[len(top) :][:max_depth]
            for space in sorted(set(literal), key=encode)
            if all(w in ("*", s) for w, s in zip(rest, space[len(top) :], strict=False)) and len(space) >= len(at)
        ]
        assert found == [*dict.fromkeys(fitting)][offset : offset + limit]

    @rule(at=namespaces, depth=depths, keep=filters)
    def count(self, at: Namespace, depth: int, keep: tuple[Any, Callable[..., bool]]) -> None:
        memory, _, rest = self.view(at, depth)
        assert self.run(memory.count(rest, keep[0])) == len(self.model.under(at, keep[1]))

    @rule(at=namespaces, depth=depths, keep=filters)
    def walk(self, at: Namespace, depth: int, keep: tuple[Any, Callable[..., bool]]) -> None:
        memory, top, rest = self.view(at, depth)

        async def walked() -> Any:
            return [said(item) async for item in memory.iter_items(rest, filter=keep[0])]

        assert self.run(walked()) == [shown(record, top) for record in reversed(self.model.under(at, keep[1]))]

    @precondition(lambda self: self.is_durable)
    @rule()
    def reopen(self) -> None:
        assert self.memory is not None
        self.run(self.memory.aclose())
        self._open()

    is_durable = False

    @invariant()
    def the_root_holds_everything(self) -> None:
        if self.memory is not None:
            assert self.run(self.memory.list((), 1000)) == [record.key for record in self.model.under(())]


class InMemoryMachine(MemoryMachine):
    def make_store(self) -> VectorStore:
        return InMemoryVectorStore()


class SQLiteMachine(MemoryMachine):
    is_durable = True

    def make_store(self) -> VectorStore:
        return SQLiteVectorStore(Path(self.folder.name) / "memory.db")


LIVES = 150 if os.environ.get("CI") else 20  # of 50 steps each; with those cut short, over 10,000 in CI

TestInMemory = pytest.mark.timeout(600)(InMemoryMachine.TestCase)
TestInMemory.settings = settings(max_examples=LIVES, stateful_step_count=50)
TestSQLite = pytest.mark.timeout(600)(SQLiteMachine.TestCase)
TestSQLite.settings = settings(max_examples=LIVES, stateful_step_count=50)
