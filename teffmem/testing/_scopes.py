"""Selections: which records a question is about."""

from typing import Any

import numpy as np

from teffmem.filters import parse
from teffmem.namespace import encode, starts_with
from teffmem.protocols import VectorStore
from teffmem.testing._drafts import HOME, NAMESPACES, NOW, condition, draft, found, here, many, names, put, vector_of

__all__ = ["ScopeContract"]


class ScopeContract:
    """Scope and filter are exact, by whole segments, in every question."""

    async def test_a1_a_scope_is_a_subtree_of_whole_segments(self, store: VectorStore) -> None:
        """A1, A9: counting and searching a namespace finds it and what is below it, never a namesake."""
        await put(store, *(draft("k", f"tea number{i}", at) for i, at in enumerate(NAMESPACES)))
        tops = [*NAMESPACES, ("users", "u"), ("user",), ("users", "u1", "w"), ("nobody",), ("users", "a_"), ("a",)]
        for top in tops:
            below = {(at, "k") for at in NAMESPACES if starts_with(at, top)}
            own = {(at, "k") for at in NAMESPACES if at == top}
            assert await store.count(here(top)) == len(below), top
            assert await store.count(here(top, recursive=False)) == len(own), top
            assert set(names(await found(store, here(top), "tea"))) == below, top
            assert set(names(await found(store, here(top, recursive=False), "tea"))) == own, top
            assert await store.namespaces(top, NOW) == sorted((at for at, _ in below), key=encode), top

    async def test_namespaces_come_in_code_point_order(self, store: VectorStore) -> None:
        """`namespaces` orders by code point, and has none that holds nothing of its own, or only what expired."""
        spaces = [("b",), ("\uffff",), ("a", "z"), ("a b",), ("\U00010000",), ("B",)]
        await put(store, *(draft("k", at=at) for at in spaces), draft("k", at=("old", "x"), ttl=1.0))
        assert await store.namespaces((), NOW + 1) == sorted(spaces)
        await store.delete(("a", "z"), ["k"], NOW)
        assert ("a", "z") not in await store.namespaces((), NOW)
        assert await store.namespaces(("a",), NOW) == []

    async def test_a_filter_narrows_a_scope(self, store: VectorStore) -> None:
        """B5, B13: the same filter decides in counting and in searching, by JSON's types."""
        fields: list[dict[str, Any]] = [{"n": n} for n in (9, 10, 10.0, 100, "10", True, None, 0)] + [{}]
        drafts = [draft(f"k{i}", value={"text": "tea"} | field) for i, field in enumerate(fields)]
        await put(store, *drafts, draft("k", at=("users", "u2"), value={"text": "tea", "n": 10}))
        wanted = {
            "k1 k2": {"n": 10},
            "k1 k2 k3": {"n": {"$gte": 10}},
            "k4": {"n": "10"},
            "k5": {"n": True},
            "k6": {"n": None},
            "k0 k4": {"n": ["10", 9]},
            "k8": {"n": {"$exists": False}},
            "": {"n": []},
            "k7": {"n": 0},
        }
        for keys, asked in wanted.items():
            selection = here(condition=parse(asked))
            assert await store.count(selection) == len(keys.split()), asked
            assert sorted(key for _, key in names(await found(store, selection, "tea"))) == keys.split(), asked

    async def test_a13_a_filter_cannot_widen_a_scope(self, store: VectorStore) -> None:
        """A13, B9: whatever a filter names, nothing outside the namespace is found."""
        await put(store, *many(10, "tea", ("users", "a")), *many(10, "tea", ("users", "b")))
        hostile: list[dict[str, object]] = [
            {"namespace": ["users", "b"]},
            {"scope": 1},
            {"a') = 'x' OR 1=1 --": "y"},
            {"text": "x' OR '1'='1"},
            {".$.text": "x"},
            {'a"]': 1},
            {"$or": [{"namespace": "b"}, {"text": {"$exists": True}}]},
        ]
        for asked in hostile:
            seen = await found(store, here(("users", "a"), condition=parse(asked)), "tea")
            assert {at for at, _ in names(seen)} <= {("users", "a")}, asked
            assert len(seen) == (10 if "$or" in asked else 0), asked
        assert await store.count(here(())) == 20

    async def test_d5_scope_and_filter_come_before_k(self, store: VectorStore) -> None:
        """D5: a crowd that is nearer, elsewhere or filtered out, takes no place of what is selected."""
        await put(store, *many(5000, "green tea", ("big",)))
        texts = [f"green bus number{i}" for i in range(20)]
        await put(
            store,
            *(
                draft(f"k{i}", at=("small",), value={"text": t, "n": i % 4}, vector=vector_of(t))
                for i, t in enumerate(texts)
            ),
        )
        exact = [float(vector_of(text) @ vector_of("green tea")) for text in texts]
        for selection, expected in (
            (here(("small",)), sorted(exact, reverse=True)[:10]),
            (here(("small",), condition=condition(n=1)), sorted(exact[1::4], reverse=True)),
            (here((), condition=condition(n=2)), sorted(exact[2::4], reverse=True)),
        ):
            matches = await found(store, selection, limit=10)
            assert np.allclose([match.score for match in matches], expected, atol=1e-3)
            assert {match.record.namespace for match in matches} == {("small",)}

    async def test_delete_all_removes_a_subtree(self, store: VectorStore) -> None:
        """`delete_all` removes a namespace, what is below it and what has expired there; nothing beside it."""
        others = [("users",), ("users", "u10"), ("users", "U1")]
        await put(store, *(draft("k", "tea", at) for at in (*others, HOME, (*HOME, "work"), (*HOME, "a", "b"))))
        await put(store, draft("old", "tea", (*HOME, "work"), ttl=1.0))
        assert await store.delete_all(here(now=NOW + 1)) == 3
        assert await store.namespaces((), NOW) == sorted(others)
        assert await store.cleanup((), NOW + 1) == 0
        assert await store.delete_all(here()) == 0
        assert await store.delete_all(here(())) == 3
        assert await store.count(here(())) == 0

    async def test_delete_all_by_filter(self, store: VectorStore) -> None:
        """With a filter, or without what is below, the selected go, and the expired under the same top."""
        for key, at in (("a", HOME), ("b", HOME), ("a", (*HOME, "work")), ("a", ("users", "u2"))):
            await put(store, draft(key, at=at, value={"text": "tea", "n": key}))
        await put(store, draft("old", at=(*HOME, "work"), value={"text": "tea", "n": "b"}, ttl=1.0))
        assert await store.delete_all(here(now=NOW + 1, condition=condition(n="a"), recursive=False)) == 1
        assert await store.cleanup((), NOW + 1) == 0
        assert await store.delete_all(here(condition=condition(n="a"))) == 1
        left = await found(store, here(()), "tea")
        assert sorted(names(left)) == [(HOME, "b"), (("users", "u2"), "a")]

    async def test_c11_a_deletion_knows_no_page(self, store: VectorStore) -> None:
        """C11: 1,250 records go in one call, by cleanup and by deletion."""
        await put(store, *many(1250, "tea", HOME, ttl=1.0), *many(1260, "tea", (*HOME, "work")))
        assert await store.cleanup((), NOW + 1) == 1250
        assert await store.count(here(now=NOW + 1)) == 1260
        assert await store.delete_all(here(now=NOW + 1)) == 1260
        assert await store.count(here(())) == 0

    async def test_a_namespace_begins_anew(self, store: VectorStore) -> None:
        """What is put where all was deleted is found, and what was deleted is not, searched between or not."""
        for turn in range(3):
            await put(store, draft(f"k{turn}", "green tea"), draft(f"j{turn}", "black coffee"))
            assert {key for _, key in names(await found(store, here()))} == {f"k{turn}", f"j{turn}"}
            await store.delete_all(here(("users",)))
            assert await found(store, here()) == []
