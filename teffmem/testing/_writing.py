"""Writing, reading by name, removing by name."""

import copy
import json
from dataclasses import replace

import numpy as np

from teffmem.items import KEEP
from teffmem.protocols import VectorStore
from teffmem.testing._drafts import HOME, KEYS, NAMESPACES, NOW, VALUES, draft, facts, found, here, names, one, put

__all__ = ["WritingContract"]


class WritingContract:
    """A record is known by namespace and key, and comes back as it was written."""

    async def test_a_write_answers_with_the_record_that_is_there(self, store: VectorStore) -> None:
        """`upsert` returns, in the order of the drafts, the records that `get` returns from then on."""
        drafts = [draft("a", thread="t", ttl=60.0), draft("b", text="other", indexed=False), draft("c", now=NOW)]
        written = await store.upsert(drafts, NOW)
        assert [facts(record) for record in written] == [facts(await one(store, key)) for key in "abc"]
        a, b, _ = [record for record in written if record is not None]
        assert (a.thread, a.ttl, a.expires_at, a.created_at, a.updated_at) == ("t", 60.0, NOW + 60, NOW, NOW)
        assert (b.indexed, b.thread, b.ttl, b.expires_at) == (False, None, None, None)
        assert a.place == a.stamp

    async def test_an_empty_batch_writes_nothing(self, store: VectorStore) -> None:
        """No drafts make no records."""
        assert await store.upsert([], NOW) == []
        assert await store.count(here(())) == 0

    async def test_an_overwrite_replaces_all_but_where_a_record_came_from(self, store: VectorStore) -> None:
        """All is the new draft's, vector and expiry too; ``created_at``, place and, unless given, thread stay."""
        (first,) = await put(store, draft("k", "green tea", thread="t", ttl=60.0))
        new = replace(draft("k", "black coffee", now=NOW + 5, thread=KEEP), value={"n": 1}, text="black coffee")
        (second,) = await put(store, new)
        assert facts(second) == facts(await one(store, "k", now=NOW + 5))
        assert (second.created_at, second.place, second.thread) == (first.created_at, first.place, "t")
        assert (second.updated_at, second.ttl, second.expires_at) == (NOW + 5, None, None)
        assert (second.value, second.text) == ({"n": 1}, "black coffee")
        assert second.stamp > first.stamp
        (match,) = await found(store, here(now=NOW + 5), "black coffee")
        assert abs(match.score - 1) < 1e-3
        assert await store.count(here(now=NOW + 100)) == 1

    async def test_a_thread_is_kept_taken_away_or_changed(self, store: VectorStore) -> None:
        """`KEEP` leaves a record in its thread, None takes it out, a name puts it into another."""
        given = ("t", KEEP, "u", None, KEEP, "v")
        assert [(await put(store, draft("k", thread=thread)))[0].thread for thread in given] == [
            "t",
            "t",
            "u",
            None,
            None,
            "v",
        ]

    async def test_given_times_and_place_are_kept(self, store: VectorStore) -> None:
        """A draft that names them has its own times and place, over what is there too."""
        for key in ("new", "old", "old"):
            given = draft(key, created_at=5.5, place=-7, expires_at=NOW + 0.5, ttl=60.0, now=NOW - 10)
            (record,) = await store.upsert([given], NOW)
            assert record is not None
            times = (record.created_at, record.updated_at, record.expires_at, record.ttl, record.place)
            assert times == (5.5, NOW - 10, NOW + 0.5, 60.0, -7)
            assert facts(record) == facts(await one(store, key))

    async def test_compare_and_put(self, store: VectorStore) -> None:
        """`only_over` writes over the live record with that stamp, and nothing else."""
        assert await store.upsert([draft("k", only_over=1)], NOW) == [None]
        assert await one(store, "k") is None
        (first,) = await put(store, draft("k", "first", ttl=60.0))
        (second,) = await put(store, draft("k", "second", only_over=first.stamp, ttl=60.0))
        assert await store.upsert([draft("k", "third", only_over=first.stamp)], NOW) == [None]
        assert facts(await one(store, "k")) == facts(second)
        assert await store.upsert([draft("k", now=NOW + 60, only_over=second.stamp)], NOW + 60) == [None]

    async def test_only_if_newer(self, store: VectorStore) -> None:
        """`only_if_newer` writes unless a live record was updated at the draft's moment or later."""
        await put(store, draft("k", "first", ttl=60.0))
        for now, key, is_written in (
            (NOW - 1, "k", False),
            (NOW, "k", False),
            (NOW - 1, "j", True),
            (NOW + 1, "k", True),
        ):
            (record,) = await store.upsert([draft(key, f"at {now}", now=now, only_if_newer=True)], NOW)
            assert (record is not None) == is_written, (now, key)
        kept = await one(store, "k")
        assert kept is not None
        assert kept.value == {"text": f"at {NOW + 1}"}

    async def test_a_refused_draft_leaves_the_rest_of_the_batch(self, store: VectorStore) -> None:
        """A draft whose condition does not hold is None in the answer; the others are written."""
        a, no, b = await store.upsert([draft("a"), draft("no", only_over=1), draft("b")], NOW)
        assert no is None
        assert [facts(one) for one in await store.get(HOME, ["a", "no", "b"], NOW)] == [facts(a), None, facts(b)]

    async def test_the_index_is_kept_where_the_text_is_the_same(self, store: VectorStore) -> None:
        """G11: `same_text` changes the value and nothing of how the record is found."""
        first, _ = await put(store, draft("k", "green tea", thread="t"), draft("other", "black coffee"))
        changed = {"text": "green tea", "seen": 1}
        new = draft("k", value=changed, vector=None, same_text=True, only_over=first.stamp)
        await put(store, new)
        matches = await found(store, here())
        assert names(matches) == [(HOME, "k"), (HOME, "other")]
        assert abs(matches[0].score - 1) < 1e-3
        assert matches[0].record.value == changed
        assert matches[0].record.thread == "t"

    async def test_stamps_only_grow(self, store: VectorStore) -> None:
        """Each write has a greater stamp than any before, within a batch, and when the clock stands or goes back."""
        stamps = []
        for now in (NOW, NOW, NOW - 1000, NOW + 1, 0.0):
            batch = [draft(key, now=now) for key in "abc"]
            stamps += [record.stamp for record in await put(store, *batch)]
            await store.delete(HOME, ["b"], now)
        assert stamps == sorted(set(stamps))

    async def test_p3_get_answers_key_by_key(self, store: VectorStore) -> None:
        """`get` keeps the order asked for, repeats what is asked twice, and has None for what is not there."""
        await put(store, draft("a"), draft("b"))
        got = await store.get(HOME, ["b", "no", "a", "b"], NOW)
        assert [record and record.key for record in got] == ["b", None, "a", "b"]
        assert await store.get(HOME, [], NOW) == []
        assert await store.get(("nobody",), ["a"], NOW) == [None]

    async def test_p3_delete_counts_what_went(self, store: VectorStore) -> None:
        """`delete` counts live records, each once; no keys remove nothing."""
        await put(store, draft("a"), draft("b"), draft("c"), draft("gone", ttl=1.0))
        assert await store.delete(HOME, [], NOW) == 0
        assert await store.delete(HOME, ["no"], NOW) == 0
        assert await store.delete(("nobody",), ["a"], NOW) == 0
        assert await store.delete(HOME, ["a", "a", "no", "b", "gone"], NOW + 1) == 2
        assert await store.delete(HOME, ["a"], NOW) == 0
        assert names(await found(store, here())) == [(HOME, "c")]

    async def test_a15_a_key_in_parent_and_child(self, store: VectorStore) -> None:
        """The same key above and below is two records; deleting one leaves the other."""
        child = (*HOME, "work")
        await put(store, draft("k", "tea above"), draft("k", "tea below", child))
        assert await store.delete(HOME, ["k"], NOW) == 1
        assert await one(store, "k") is None
        below = await one(store, "k", child)
        assert below is not None
        assert below.value == {"text": "tea below"}

    async def test_a3_every_namespace_and_key_is_its_own(self, store: VectorStore) -> None:
        """A3, A5, A9, A11, P1: no two of many awkward names are taken for each other, in reading or in deleting."""
        pairs = [(at, key) for at in NAMESPACES for key in (KEYS if at in (HOME, (), ("a", "b")) else KEYS[:6])]
        await put(store, *(draft(key, f"item{i} tea", at) for i, (at, key) in enumerate(pairs)))
        assert await store.count(here(())) == len(pairs)
        for i, (at, key) in enumerate(pairs):
            record = await one(store, key, at)
            assert record is not None, (at, key)
            assert (record.namespace, record.key, record.value) == (at, key, {"text": f"item{i} tea"})
        for done, (at, key) in enumerate(pairs, 1):
            assert await store.delete(at, [key], NOW) == 1, (at, key)
            assert await store.count(here(())) == len(pairs) - done, (at, key)

    async def test_a11_a_crafted_key_deletes_nothing(self, store: VectorStore) -> None:
        """A key that looks like a condition is only a key."""
        await put(store, *(draft(f"k{i}") for i in range(10)))
        for key in ("x' OR '1'='1", "%", "k_", "*", "k?", "') OR 1=1 --", '" OR ""="'):
            assert await store.delete(HOME, [key], NOW) == 0, key
        assert await store.count(here()) == 10

    async def test_b3_values_of_every_shape_come_back(self, store: VectorStore) -> None:
        """B1, B3, E1, E3: whatever JSON was put is what `get` and a search show, after other writes too."""
        for i, value in enumerate(VALUES):
            await put(store, draft(f"k{i}", value=value))
        await put(store, draft("k0", value={"text": "changed"}))
        await put(store, draft("k0", value=VALUES[0]))
        got = await store.get(HOME, [f"k{i}" for i in range(len(VALUES))], NOW)
        assert [json.dumps(record.value) for record in got if record] == [json.dumps(value) for value in VALUES]
        seen = {match.record.key: json.dumps(match.record.value) for match in await found(store, here())}
        assert seen == {f"k{i}": json.dumps(value) for i, value in enumerate(VALUES)}

    async def test_b15_nothing_is_shared(self, store: VectorStore) -> None:
        """What a caller does to what it gave or got is its own affair; and its own objects stay as they are."""
        value = {"text": "green tea", "tags": ["a"], "deep": {"n": [1]}}
        before = copy.deepcopy(value)
        wanted = draft("k", value=value)
        vector = np.array(wanted.vector)
        (written,) = await put(store, wanted)
        assert value == before
        for spoilt in (value, written.value, *(match.record.value for match in await found(store, here()))):
            spoilt["tags"] = "spoilt"
            spoilt["deep"]["n"].append(2)
            record = await one(store, "k")
            assert record is not None
            assert record.value == before
        assert wanted.vector is not None
        wanted.vector[:] = 0
        (match,) = await store.similar(here(), vector, 1)
        assert abs(match.score - 1) < 1e-3
