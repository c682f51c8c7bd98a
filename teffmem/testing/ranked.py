"""What a store promises that has a lexical leg."""

import asyncio
import random
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from teffmem.items import KEEP, Draft, Match
from teffmem.namespace import Namespace, starts_with
from teffmem.protocols import Selection
from teffmem.ranking import Query
from teffmem.testing._drafts import (
    DIM,
    HOME,
    NAMESPACES,
    NOW,
    RankedStore,
    condition,
    draft,
    here,
    many,
    names,
    put,
    unit,
    vector_of,
)
from teffmem.testing._reference import Document, reference_scores
from teffmem.text import query_terms

__all__ = ["RankedContract"]

TOLERANCE = 1e-3
RANGE = (0.1, 0.7)

_WORDS = (
    "green tea black coffee the user likes morning cold hot cup never kettle milk sugar? 茶を飲む Äpfel c++".split()
)
_SPACES: list[Namespace] = [HOME, (*HOME, "work"), ("users", "u10"), ("users",)]


def ask(text: str, mode: Literal["hybrid", "semantic", "lexical"] = "hybrid", **fields: Any) -> Query:
    """Return a query as a memory would ask it, by words and, unless lexical, by meaning."""
    vector = None if mode == "lexical" else vector_of(text)
    return Query(**{"mode": mode, "terms": query_terms(text), "vector": vector, "similarity_range": RANGE} | fields)


class World:
    """What a random life has written to a store, kept beside it."""

    def __init__(self, store: RankedStore, seed: int, *, has_vectors: bool = True) -> None:
        self.store = store
        self.chance = random.Random(seed)
        self.now = NOW
        self.documents: dict[tuple[Namespace, str], Document] = {}
        self._has_vectors = has_vectors

    def text(self) -> str:
        """Return some words."""
        return " ".join(self.chance.choices(_WORDS, k=self.chance.randrange(1, 9)))

    async def live(self) -> None:
        """Let one thing happen: a batch of writes, an overwrite, a deletion, an expiry, a cleanup."""
        await self.chance.choices(
            [self._write, self._rewrite, self._delete, self._wait, self._clean, self._clear], [6, 3, 2, 1, 1, 0.3]
        )[0]()

    def scope(self, selection: Selection) -> list[Document]:
        """Return the live, indexed documents under a selection's namespace, by stamp."""
        documents = [
            document
            for document in self.documents.values()
            if document.record.indexed
            and document.record.is_live(selection.now)
            and starts_with(document.record.namespace, selection.namespace)
        ]
        return sorted(documents, key=lambda document: document.record.stamp)

    async def check(self, selection: Selection, query: Query, *, limit: int, offset: int = 0) -> list[Match]:
        """Compare an answer with the reference, score by score and part by part."""
        documents = self.scope(selection)
        scores = reference_scores(documents, query, selection.now) if documents else []
        expected = {
            document.record.stamp: parts
            for document, parts in zip(documents, scores, strict=True)
            if parts is not None and _admits(selection, document)
        }
        best = sorted((parts["score"] for parts in expected.values()), reverse=True)[offset : offset + limit]
        matches = await self.store.rank(selection, query, limit, offset=offset)
        assert len(matches) == len(best)
        assert np.allclose([match.score for match in matches], best, atol=TOLERANCE)
        for match in matches:
            parts = expected[match.record.stamp]
            assert abs(match.score - parts["score"]) < TOLERANCE
            for name, part in match.scores.items():
                assert abs(part - parts[name]) < TOLERANCE, name
            assert match.record.value == self.documents[match.record.namespace, match.record.key].record.value
        order = [(-match.score, -match.record.stamp) for match in matches]
        assert order == sorted(order)
        return matches

    async def write(self, *drafts: Draft) -> None:
        """Write drafts to the store and note them here."""
        for record, one in zip(await self.store.upsert(drafts, self.now), drafts, strict=True):
            if record is not None:
                self.documents[record.namespace, record.key] = Document(record, one.vector)

    def _draft(self, at: Namespace, key: str) -> Draft:
        chance = self.chance
        text = self.text()
        value: dict[str, Any] = {"text": text, "n": chance.randrange(3)}
        if chance.random() < 0.7:
            value["importance"] = chance.choice([0, 1, 0.25, 7, -2, True, "high", None])
        return draft(
            key,
            text,
            at,
            value=value,
            now=self.now,
            indexed=chance.random() < 0.9,
            thread=chance.choice([None, "t1", "t1", "t2", "long", "long", KEEP]),
            ttl=chance.choice([None, None, None, 5.0, 50.0]),
            place=chance.choice([None, None, None, chance.randrange(1000)]),
            **{} if self._has_vectors else {"vector": None},
        )

    async def _write(self) -> None:
        batch = {(self.chance.choice(_SPACES), f"k{self.chance.randrange(80)}"): None for _ in range(12)}
        await self.write(*(self._draft(at, key) for at, key in batch))

    async def _rewrite(self) -> None:
        if self.documents:
            await self.write(self._draft(*self.chance.choice(list(self.documents))))

    async def _delete(self) -> None:
        if self.documents:
            at, key = self.chance.choice(list(self.documents))
            was_live = self.documents.pop((at, key)).record.is_live(self.now)
            assert await self.store.delete(at, [key], self.now) == was_live

    async def _wait(self) -> None:
        self.now += self.chance.choice([1.0, 6.0, 60.0])

    async def _clean(self) -> None:
        await self.store.cleanup((), self.now)

    async def _clear(self) -> None:
        top = self.chance.choice(_SPACES)
        self.documents = {name: one for name, one in self.documents.items() if not starts_with(name[0], top)}
        await self.store.delete_all(Selection(top, self.now))


def _admits(selection: Selection, document: Document) -> bool:
    here_ = selection.recursive or document.record.namespace == selection.namespace
    wanted = selection.condition
    return here_ and (wanted is None or document.record.value.get("n") == 1)


class RankedContract:
    """The contract of `Ranked`. A subclass provides the fixture ``store``.

    Answers are compared with the formula at the top of `teffmem.ranking`, worked out one record after another.
    """

    async def test_a_life_of_changes_is_ranked_by_the_formula(self, store: RankedStore) -> None:
        """However a scope came about, by puts, overwrites, expiries and deletions, its scores are the formula's."""
        for seed in range(4):
            await store.delete_all(Selection((), NOW))
            world = World(store, seed)
            for _ in range(40):
                await world.live()
                selection = Selection(world.chance.choice([(), *_SPACES]), world.now)
                await world.check(selection, ask(world.text(), explain=True), limit=world.chance.choice([1, 5, 500]))
                await world.check(selection, ask(world.text(), "lexical"), limit=10)
                await world.check(selection, ask(world.text(), "semantic"), limit=10)

    async def test_options_weigh_as_they_say(self, store: RankedStore) -> None:
        """Recency, importance and thresholds, alone and together, filtered and by pages, are the formula's."""
        world = World(store, 11)
        options: list[dict[str, Any]] = [
            {"recency": 0.7, "recency_half_life": 40.0},
            {"importance": 0.4},
            {"importance": 2.0, "importance_field": "n", "recency": 0.1},
            {"min_similarity": 0.3},
            {"min_coverage": 0.41},
            {"min_similarity": 0.6, "min_coverage": 0.73, "explain": True},
            {"min_similarity": 0.97},
            {"min_coverage": 0.0},
        ]
        for _ in range(12):
            await world.live()
            await world.live()
            for more in options:
                selection = Selection(
                    world.chance.choice([(), *_SPACES]),
                    world.now,
                    condition(n=1) if world.chance.random() < 0.4 else None,
                    recursive=world.chance.random() < 0.7,
                )
                query = ask(world.text(), **more)
                await world.check(selection, query, limit=500)
                await world.check(selection, query, limit=3, offset=world.chance.randrange(4))

    async def test_words_alone_are_ranked_too(self, store: RankedStore) -> None:
        """Without vectors, what shares a word with the question, or stands beside such a turn, is found."""
        world = World(store, 5, has_vectors=False)
        for _ in range(25):
            await world.live()
            selection = Selection(world.chance.choice([(), *_SPACES]), world.now)
            await world.check(selection, ask(world.text(), "lexical", explain=True), limit=500)

    async def test_parts_add_up(self, store: RankedStore) -> None:
        """Under ``explain``, own + context + weighted recency and importance is the score, for every match."""
        await put(store, *(draft(f"k{i}", f"tea {i % 5}", thread=f"t{i % 4}") for i in range(40)))
        query = ask("tea 3", recency=0.3, importance=0.2, explain=True)
        matches = await store.rank(here(now=NOW + 86_400), query, 40)
        assert len(matches) == 40
        for match in matches:
            parts = match.scores
            total = parts["own"] + parts["context"] + 0.3 * parts["recency"] + 0.2 * parts["importance"]
            assert abs(match.score - total) < 1e-5
            assert abs(parts["context"] - parts["neighbours"] - 0.3 * parts["thread"]) < 1e-5

    async def test_threads_belong_to_their_namespace(self, store: RankedStore) -> None:
        """A thread of the same name elsewhere, in the same scope, is another thread."""
        for key, at in (("a", HOME), ("b", (*HOME, "x")), ("c", HOME)):
            text = "kettle" if key == "a" else f"something {key}"
            await put(store, draft(key, text, at, thread="t", vector=None))
        matches = await store.rank(here(), ask("kettle", "lexical"), 10)
        assert [match.record.key for match in matches] == ["a", "c"]

    async def test_other_scopes_leave_no_trace(self, store: RankedStore) -> None:
        """Words and vectors outside the searched scope change no score in it."""
        mine = [draft(f"k{i}", f"tea {i % 7} cup", thread="t") for i in range(20)]
        await put(store, *mine)
        before = await store.rank(here(), ask("a cup of tea 3"), 50)
        await put(store, *(draft("k", f"tea cup {i} 3", at) for i, at in enumerate(NAMESPACES) if at[:2] != HOME))
        after = await store.rank(here(), ask("a cup of tea 3"), 50)
        assert names(after) == names(before)
        assert [match.score for match in after] == [match.score for match in before]

    async def test_the_filter_chooses_and_changes_no_score(self, store: RankedStore) -> None:
        """Statistics are of the scope, taken before the filter."""
        await put(store, *(draft(f"k{i}", value={"text": f"tea {i % 7}", "n": i % 4}) for i in range(80)))
        query = ask("tea 5", similarity_range=None)
        every = {match.record.key: match.score for match in await store.rank(here(), query, 100)}
        chosen = await store.rank(here(condition=condition(n=1)), query, 100)
        assert len(chosen) == 20
        assert {match.record.key: match.score for match in chosen} == {
            m.record.key: every[m.record.key] for m in chosen
        }

    async def test_words_in_a_crowd(self, store: RankedStore) -> None:
        """D5: k is counted within scope and filter, whatever is nearer elsewhere."""
        await put(store, *many(2000, "green tea", ("big",)))
        await put(store, *(draft(f"k{i}", value={"text": "green bus", "n": i % 4}, at=("small",)) for i in range(20)))
        for mode in ("hybrid", "lexical", "semantic"):
            assert len(await store.rank(here(("small",)), ask("green tea", mode), 10)) == 10
            selection = here(("small",), condition=condition(n=2))
            assert [m.record.value["n"] for m in await store.rank(selection, ask("green tea", mode), 10)] == [2] * 5
            selection = here((), condition=condition(n=2))
            assert len(await store.rank(selection, ask("green bus", mode), 10)) == 5

    async def test_d19_query_syntax_is_text(self, store: RankedStore) -> None:
        """D19: marks that engines read as operators are words or nothing, and the text itself is found."""
        texts = ["a-b", "c++", '"', "NOT", "foo:bar", "(", "*", "_", "O'Brien", "x AND", "%", "NEAR(a b)", "^", "{}"]
        texts.append("6f1ed002-ab5d-42ab-8a2a-8b6a6f2ba1a2")
        await put(store, *(draft(f"k{i}", text, vector=None) for i, text in enumerate(texts)))
        for i, text in enumerate(texts):
            matches = await store.rank(here(), ask(text, "lexical"), 20)
            assert f"k{i}" in [match.record.key for match in matches], text

    async def test_pages_make_up_the_whole_list(self, store: RankedStore) -> None:
        """Pages by offset are the one long list cut up, ties included; with diversity too."""
        await put(store, *(draft(f"k{i}", f"tea {i % 9}") for i in range(130)))
        for query in (ask("tea 4"), ask("tea 4", "lexical"), ask("tea 4", diversity=0.4)):
            whole = await store.rank(here(), query, 500)
            assert len({match.record.key for match in whole}) == 130
            for size in (7, 60):
                pages: list[Match] = []
                for offset in range(0, 130, size):
                    pages += await store.rank(here(), query, size, offset=offset)
                assert names(pages) == names(whole)

    async def test_diversity(self, store: RankedStore) -> None:
        """Each match in turn is the best by (1 - d) score / best score - d x its greatest cosine with those before."""
        chance = random.Random(2)
        vectors = {f"k{i}": unit(*(chance.gauss(1, 1) for _ in range(DIM))) for i in range(60)}
        await put(store, *(draft(key, vector=vector) for key, vector in vectors.items()))
        plain = {m.record.key: m.score for m in await store.rank(here(), ask("green tea"), 60)}
        for share in (0.2, 0.9):
            ordered = [m.record.key for m in await store.rank(here(), ask("green tea", diversity=share), 60)]
            assert sorted(ordered) == sorted(plain)
            assert plain[ordered[0]] == max(plain.values())
            for place in range(1, 20):
                taken = np.stack([vectors[key] for key in ordered[:place]])
                worth = {
                    key: (1 - share) * plain[key] / max(plain.values()) - share * float((taken @ vectors[key]).max())
                    for key in ordered[place:]
                }
                assert worth[ordered[place]] > max(worth.values()) - TOLERANCE

    async def test_a_question_of_nothing(self, store: RankedStore) -> None:
        """A query without words or without a vector is no error; k of 0 and an empty scope find nothing."""
        assert await store.rank(here(), ask("tea"), 5) == []
        await put(store, *many(5, "green tea", HOME))
        assert await store.rank(here(), ask("tea"), 0) == []
        assert await store.rank(here(), ask("tea"), 5, offset=5) == []
        assert await store.rank(here(), ask("", "lexical"), 5) == []
        assert await store.rank(here(), ask("unheard", "lexical"), 5) == []
        assert await store.rank(here(), ask("unheard", min_similarity=0.999, diversity=0.5), 5) == []
        assert len(await store.rank(here(), ask(""), 5)) == 5
        assert len(await store.rank(here(), ask("tea", vector=unit()), 5)) == 5

    async def test_a_least_cosine_without_a_cosine(self, store: RankedStore) -> None:
        """Where the question has no vector, nothing reaches a least cosine; what has the words may still pass."""
        await put(store, draft("a", "green tea"), draft("b", "green bus"))
        query = replace(ask("green tea", "lexical"), min_similarity=0.1)
        assert await store.rank(here(), query, 5) == []
        (match,) = await store.rank(here(), replace(query, min_coverage=0.9), 5)
        assert match.record.key == "a"

    async def test_importance_is_clipped(self, store: RankedStore) -> None:
        """A number of any size is clipped to 0..1; what is no number counts as .5."""
        given: list[Any] = [10**400, -(10**400), 1e308, 0.25, True, "1", None, [1], 0]
        drafts = [draft(f"k{i}", value={"text": "green tea", "importance": n}) for i, n in enumerate(given)]
        await put(store, *drafts, draft("k9"))
        matches = await store.rank(here(), ask("green tea", importance=1.0), 20)
        parts = {match.record.key: match.scores["importance"] for match in matches}
        assert [parts[f"k{i}"] for i in range(10)] == [1, 0, 1, 0.25, 0.5, 0.5, 0.5, 0.5, 0, 0.5]

    async def test_many_searches_and_writes_at_once(self, store: RankedStore) -> None:
        """Searches among writers see whole records, each with the score of its own text, and end with the truth."""
        await put(store, *many(100, "tea", HOME))

        async def write(task: int) -> None:
            for i in range(15):
                await put(store, draft(f"new{task}-{i}", f"word{i}", (*HOME, f"w{task}")))

        async def search() -> None:
            for i in range(15):
                for match in await store.rank(here(), ask(f"word{i}", "semantic"), 500):
                    exact = float(vector_of(match.record.value["text"]) @ vector_of(f"word{i}"))
                    assert abs(match.score - exact) < TOLERANCE

        await asyncio.gather(*(write(task) for task in range(4)), *(search() for _ in range(4)))
        assert len(await store.rank(here(), ask("tea"), 1000)) == 160
