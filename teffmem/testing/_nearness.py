"""Similarity: the nearest records, by cosine."""

import math
import random
from dataclasses import dataclass, field

import numpy as np

from teffmem.items import Match, Record, Vector
from teffmem.namespace import Namespace, starts_with
from teffmem.protocols import Selection, VectorStore
from teffmem.testing._drafts import DIM, HOME, condition, draft, found, here, many, names, put, unit, vector_of

__all__ = ["NearnessContract"]

TOLERANCE = 1e-3


@dataclass
class _Model:
    """What was written, and the nearest of it by plain arithmetic."""

    records: dict[tuple[Namespace, str], tuple[Record, Vector]] = field(default_factory=dict)

    def nearest(self, selection: Selection, vector: Vector) -> list[tuple[float, int]]:
        """Return the cosine and stamp of each record that is selected, nearest first, ties newest first."""
        scored = [
            (float(np.dot(own.astype(np.float64), vector.astype(np.float64))), record.stamp)
            for record, own in self.records.values()
            if starts_with(record.namespace, selection.namespace) and record.is_live(selection.now)
        ]
        return sorted(scored, reverse=True)


def agree(matches: list[Match], expected: list[tuple[float, int]]) -> None:
    """Compare matches with what plain arithmetic says: the same records in the same order, up to rounding."""
    by_stamp = {stamp: cosine for cosine, stamp in expected}
    assert len({match.record.stamp for match in matches}) == len(matches)
    for match, (cosine, _) in zip(matches, expected, strict=False):
        assert abs(match.score - by_stamp[match.record.stamp]) < TOLERANCE
        assert abs(match.score - cosine) < TOLERANCE
        assert abs(match.scores["semantic"] - match.score) < 1e-6
    assert_ordered(matches)


def assert_ordered(matches: list[Match]) -> None:
    """Check that scores fall, and that of equal ones the newest comes first."""
    keys = [(-match.score, -match.record.stamp) for match in matches]
    assert keys == sorted(keys)


class NearnessContract:
    """`similar` is exact: the cosine of unit vectors, nearest first."""

    async def test_d7_the_score_is_the_cosine(self, store: VectorStore) -> None:
        """D7: nearest first, in [-1, 1], from 1 for the same direction to -1 for the opposite."""
        for key, numbers in {"same": (1, 0), "near": (0.8, 0.6), "across": (0, 1), "opposite": (-1, 0)}.items():
            await put(store, draft(key, vector=unit(*numbers)))
        matches = await store.similar(here(), unit(1), 10)
        assert [match.record.key for match in matches] == ["same", "near", "across", "opposite"]
        assert np.allclose([match.score for match in matches], [1, 0.8, 0, -1], atol=TOLERANCE)

    async def test_cosines_are_those_of_plain_arithmetic(self, store: VectorStore) -> None:
        """Over random scopes, after puts, overwrites and deletions, every answer is that of a loop over all records."""
        chance = random.Random(7)
        spaces = [HOME, (*HOME, "work"), ("users", "u10"), ()]
        model = _Model()
        for _ in range(12):
            batch = {}
            for _ in range(chance.randrange(1, 40)):
                name = (chance.choice(spaces), f"k{chance.randrange(60)}")
                batch[name] = unit(*(chance.gauss(0, 1) for _ in range(DIM)))
            drafts = [draft(key, at=at, vector=vector) for (at, key), vector in batch.items()]
            for record, vector in zip(await put(store, *drafts), batch.values(), strict=True):
                model.records[record.namespace, record.key] = (record, vector)
            at, key = chance.choice(list(model.records))
            del model.records[at, key]
            assert await store.delete(at, [key], drafts[0].now) == 1
            for top in (*spaces, ("users",)):
                query = unit(*(chance.gauss(0, 1) for _ in range(DIM)))
                for limit in (1, 7, 1000):
                    expected = model.nearest(here(top), query)
                    matches = await store.similar(here(top), query, limit)
                    assert len(matches) == min(limit, len(expected))
                    agree(matches, expected)

    async def test_d9_a_zero_vector_is_near_to_nothing(self, store: VectorStore) -> None:
        """D9: zeros have cosine 0 with everything, on either side, and no score is NaN."""
        await put(store, draft("zero", vector=unit()), draft("near", vector=unit(1)), draft("far", vector=unit(-1)))
        matches = await store.similar(here(), unit(1), 10)
        assert [(match.record.key, round(match.score, 3)) for match in matches] == [
            ("near", 1),
            ("zero", 0),
            ("far", -1),
        ]
        matches = await store.similar(here(), unit(), 10)
        assert [match.record.key for match in matches] == ["far", "near", "zero"]
        assert [match.score for match in matches] == [0, 0, 0]

    async def test_d17_equal_scores_come_newest_first(self, store: VectorStore) -> None:
        """D17: equal texts are all found, the newest first, the same on every call; one less leaves the rest."""
        await put(store, *(draft(f"k{i}", "green tea", (*HOME, f"s{i % 3}")) for i in range(50)))
        await put(store, draft("k7", "green tea", (*HOME, "s1")))
        order = [f"k{i}" for i in (7, *(i for i in reversed(range(50)) if i != 7))]
        for limit in (1, 10, 50):
            for _ in range(2):
                assert [key for _, key in names(await found(store, here(), limit=limit))] == order[:limit]
        await store.delete((*HOME, "s1"), ["k7"], 0)
        assert [key for _, key in names(await found(store, here()))] == order[1:]

    async def test_d3_more_than_there_is(self, store: VectorStore) -> None:
        """D1, D3: k of 0 finds nothing, a k beyond the data finds what there is, an empty store finds nothing."""
        assert await found(store, here()) == []
        assert await found(store, here(())) == []
        await put(store, *many(3, "tea", HOME))
        assert [len(await found(store, here(), limit=k)) for k in (0, 1, 3, 4, 1000)] == [0, 1, 3, 3, 3]
        assert await store.similar(here(), vector_of("tea"), 5, offset=3) == []

    async def test_pages_make_up_the_whole_list(self, store: VectorStore) -> None:
        """Pages by offset, whatever their size, are the one long list cut up; with a filter too."""
        drafts = [draft(f"k{i}", f"tea {i % 11}", value={"text": "tea", "odd": i % 2 == 1}) for i in range(157)]
        await put(store, *drafts)
        vector = vector_of("tea 3")
        for selection in (here(), here(condition=condition(odd=True))):
            whole = await store.similar(selection, vector, 1000)
            for size in (1, 10, 64):
                pages: list[Match] = []
                for offset in range(0, len(whole) + size, size):
                    pages += await store.similar(selection, vector, size, offset=offset)
                assert [(*name, match.score) for name, match in zip(names(pages), pages, strict=True)] == [
                    (*name, match.score) for name, match in zip(names(whole), whole, strict=True)
                ]

    async def test_what_has_no_vector_is_not_found(self, store: VectorStore) -> None:
        """An unindexed record is read and counted, never near; put again with a vector it is, and the other way."""
        await put(store, draft("plain", indexed=False), draft("indexed"))
        assert names(await found(store, here())) == [(HOME, "indexed")]
        assert await store.count(here()) == 2
        await put(store, draft("plain"), draft("indexed", indexed=False))
        assert names(await found(store, here())) == [(HOME, "plain")]

    async def test_a_store_of_words_has_nothing_near(self, store: VectorStore) -> None:
        """Where records are indexed by words alone, `similar` finds nothing."""
        await put(store, draft("a", vector=None), draft("b", vector=None))
        assert await found(store, here()) == []

    async def test_d15_the_last_of_many_is_found(self, store: VectorStore) -> None:
        """D15: in 3,000 records, the one that was put last is as near as its text is."""
        await put(store, *many(2999, "green tea", HOME))
        await put(store, draft("last", "an entirely different subject"))
        (best,) = await found(store, here(), "an entirely different subject", limit=1)
        assert best.record.key == "last"
        assert math.isclose(best.score, 1, abs_tol=TOLERANCE)
