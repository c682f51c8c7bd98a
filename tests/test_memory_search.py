"""MemoryStore.search: what is found, in which order, and what is refused."""

from datetime import timedelta
from typing import Any

import pytest

from teffmem import FilterError, MemoryItem, MemoryStore, UnsupportedError, VectorStore
from teffmem.items import Vector
from teffmem.testing import FakeClock, FakeEmbedder
from tests.fakes import TableEmbedder
from tests.memories import OpenMemory

NS = ("users", "u1")
FACTS = {"tea": "likes green tea", "chess": "plays chess on Sundays", "rice": "eats rice", "cat": "has a cat named Tom"}


def keys(items: list[MemoryItem]) -> list[str]:
    return [item.key for item in items]


async def filled(memory: MemoryStore, **fields: Any) -> MemoryStore:
    await memory.put_many([(NS, key, {"text": text, **fields}) for key, text in FACTS.items()])
    return memory


class Mute(FakeEmbedder):
    """An embedder that can make nothing of questions."""

    async def embed_query(self, text: str) -> Vector | None:
        return None


class WithoutWords:
    """A backend that has only what every backend must have; it hands everything on to another."""

    def __init__(self, store: VectorStore) -> None:
        self._store = store
        for name in ("upsert", "get", "delete", "delete_all", "cleanup", "touch", "similar", "count", "namespaces"):
            setattr(self, name, getattr(store, name))
        self.fingerprint, self.claim, self.aclose = store.fingerprint, store.claim, store.aclose


async def test_a_question_finds_by_words_and_meaning(memory: MemoryStore) -> None:
    """The best match comes first, its score orders the list, and its parts are named."""
    await filled(memory)
    found = await memory.search(NS, query="who plays chess?")
    assert keys(found)[0] == "chess"
    scores = [item.score for item in found]
    assert None not in scores
    assert scores == sorted(scores, key=lambda score: -(score or 0))
    assert set(found[0].scores) == {"semantic", "coverage", "lexical", "context"}
    assert (found[0].value, found[0].namespace) == ({"text": FACTS["chess"]}, NS)


async def test_each_mode_scores_by_its_own_parts(memory: MemoryStore) -> None:
    """Semantic scores are cosines; lexical finds only what shares a word; hybrid and auto have both parts."""
    await filled(memory)
    semantic = await memory.search(NS, query="plays chess on Sundays", mode="semantic")
    assert len(semantic) == len(FACTS)
    assert semantic[0].score == semantic[0].scores["semantic"] == pytest.approx(1, abs=1e-3)
    assert set(semantic[0].scores) == {"semantic"}
    lexical = await memory.search(NS, query="chess", mode="lexical")
    assert (keys(lexical), set(lexical[0].scores)) == (["chess"], {"coverage", "lexical", "context"})
    assert await memory.search(NS, query="chess", mode="hybrid") == await memory.search(NS, query="chess")


async def test_explain_names_every_part(memory: MemoryStore) -> None:
    """``explain=True`` changes no order and no score, and adds the parts of the formula."""
    await filled(memory)
    plain = await memory.search(NS, query="chess")
    explained = await memory.search(NS, query="chess", explain=True)
    assert [(item.key, item.score) for item in plain] == [(item.key, item.score) for item in explained]
    assert set(explained[0].scores) - set(plain[0].scores) == {"own", "window", "neighbours", "thread"}


async def test_the_turns_beside_a_match_rank_higher(memory: MemoryStore) -> None:
    """A turn next to the one that matches comes before the same text elsewhere."""
    turns = ["hello there", "we adopted a puppy", "what a joy", "see you", "bye now"]
    await memory.put_many(
        [{"namespace": NS, "key": f"a{i}", "value": {"text": text}, "thread": "a"} for i, text in enumerate(turns)]
    )
    await memory.put(NS, "alone", {"text": "what a joy"})
    found = await memory.search(NS, query="puppy adopted")
    assert keys(found)[0] == "a1"
    assert keys(found).index("a2") < keys(found).index("alone")


async def test_without_a_question_the_newest_come_first(memory: MemoryStore) -> None:
    """None asks nothing: newest first, no score, no parts, and the embedder is not called."""
    await filled(memory)
    found = await memory.search(NS, k=3)
    assert keys(found) == ["cat", "rice", "chess"]
    assert [(item.score, item.scores) for item in found] == [(None, {})] * 3


@pytest.mark.parametrize("blank", ["", " ", "\n\t", "\u200b", "\u00a0\u2060"])
async def test_d13_a_blank_query_asks_nothing(open_memory: OpenMemory, blank: str) -> None:
    """Every blank form answers as None does, in every mode, and reaches no embedder."""
    embedder = FakeEmbedder()
    memory = await filled(open_memory(embedder))
    asked = len(embedder.calls)
    newest = await memory.search(NS)
    for mode in ("auto", "hybrid", "semantic", "lexical"):
        assert await memory.search(NS, query=blank, mode=mode) == newest
    assert len(embedder.calls) == asked


@pytest.mark.parametrize("query", [5, b"tea", ["tea"], {"text": "tea"}])
async def test_a_query_is_a_string(memory: MemoryStore, query: Any) -> None:
    """Whatever else is a TypeError that names the type."""
    with pytest.raises(TypeError, match=type(query).__name__):
        await memory.search(NS, query=query)


async def test_offset_leaves_out_the_best(memory: MemoryStore) -> None:
    """Pages of a search put together are the whole search, in each mode."""
    await memory.put_many([(NS, f"k{i}", {"text": f"tea number {i} of {i % 7}"}) for i in range(60)])
    for mode in ("auto", "semantic", "lexical"):
        whole = await memory.search(NS, query="tea number 3", k=60, mode=mode)
        pages = [await memory.search(NS, query="tea number 3", k=7, offset=at, mode=mode) for at in range(0, 70, 7)]
        assert [item for page in pages for item in page] == whole
        assert len(whole) == 60


async def test_thresholds_apply_to_the_absolute_parts(memory: MemoryStore) -> None:
    """One threshold alone must hold; of two, either is enough; scores do not change."""
    await filled(memory)
    everything = await memory.search(NS, query="green tea")
    (near,) = await memory.search(NS, query="green tea", min_similarity=0.5)
    (covered,) = await memory.search(NS, query="green tea", min_coverage=0.9)
    assert near == covered == everything[0]
    assert await memory.search(NS, query="green tea", min_similarity=1.0, min_coverage=1.0) == [near]
    assert await memory.search(NS, query="green coffee", min_coverage=1.0) == []
    assert keys(await memory.search(NS, query="green coffee", min_coverage=0.3)) == ["tea"]
    assert len(await memory.search(NS, query="green tea", min_similarity=-1.0)) == len(FACTS)


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"mode": "lexical", "min_similarity": 0.5}, ValueError),
        ({"mode": "semantic", "min_coverage": 0.5}, ValueError),
        ({"min_similarity": 1.5}, ValueError),
        ({"min_similarity": float("nan")}, ValueError),
        ({"min_coverage": -0.1}, ValueError),
        ({"min_coverage": "0.5"}, TypeError),
        ({"min_similarity": True}, TypeError),
        ({"mode": "fuzzy"}, ValueError),
        ({"mode": None}, ValueError),
        ({"recency": -1}, ValueError),
        ({"recency": float("inf")}, ValueError),
        ({"recency_half_life": 0}, ValueError),
        ({"recency_half_life": None}, TypeError),
        ({"importance": "high"}, TypeError),
        ({"importance_field": 5}, TypeError),
        ({"diversity": 1.1}, ValueError),
        ({"filter": {"n": {"$foo": 1}}}, FilterError),
        ({"filter": ["n"]}, FilterError),
    ],
)
async def test_an_option_without_meaning_is_refused(
    memory: MemoryStore, options: dict[str, Any], error: type[Exception]
) -> None:
    """A threshold on a part that the mode does not compute, a weight out of range, a wrong filter: an error, always."""
    await filled(memory)
    for query in ("tea", None):
        with pytest.raises(error):
            await memory.search(NS, query=query, **options)


async def test_recency_lifts_what_was_put_last(open_memory: OpenMemory) -> None:
    """With a weight, the newer of equals comes first, by ``0.5 ** (age / half-life)``."""
    clock = FakeClock()
    memory = open_memory(clock=clock)
    for key in ("old", "new"):
        await memory.put(NS, key, {"text": "likes tea"})
        clock.advance(10)
    found = await memory.search(NS, query="tea", recency=1.0, recency_half_life=timedelta(seconds=10))
    assert [(item.key, item.scores["recency"]) for item in found] == [("new", 0.5), ("old", 0.25)]
    plain = await memory.search(NS, query="tea")
    gains = [(weighed.score or 0) - (item.score or 0) for weighed, item in zip(found, plain, strict=True)]
    assert gains == pytest.approx([0.5, 0.25], abs=1e-5)


async def test_importance_is_a_number_in_the_value(memory: MemoryStore) -> None:
    """It is clipped to 0..1, and .5 where the field is missing or no number; its name can be chosen."""
    for key, importance in {"low": -5, "high": 7, "odd": "high", "none": None, "third": 0.3, "true": True}.items():
        await memory.put(NS, key, {"text": "likes tea", "importance": importance, "weight": 0.1})
    await memory.put(NS, "missing", {"text": "likes tea"})
    found = {item.key: item.scores["importance"] for item in await memory.search(NS, query="tea", importance=1.0)}
    expected = {"low": 0, "high": 1, "odd": 0.5, "none": 0.5, "third": 0.3, "true": 0.5, "missing": 0.5}
    assert found == pytest.approx(expected)
    other = await memory.search(NS, query="tea", importance=1.0, importance_field="weight")
    assert {item.key: item.scores["importance"] for item in other}["low"] == pytest.approx(0.1)


async def test_diversity_parts_what_resembles(open_memory: OpenMemory) -> None:
    """With diversity the second of two equals gives way to something else; without, it does not."""
    table = {"a": [1.0, 0.0], "b": [0.999, 0.04], "c": [0.7, 0.7], "q": [1.0, 0.0]}
    memory = open_memory(TableEmbedder(table))
    await memory.put_many([(NS, text, {"text": text}) for text in "abc"])
    assert keys(await memory.search(NS, query="q", mode="semantic")) == ["a", "b", "c"]
    assert keys(await memory.search(NS, query="q", mode="semantic", diversity=0.7)) == ["a", "c", "b"]
    assert keys(await memory.search(NS, query="q", mode="semantic", diversity=0.7, k=2)) == ["a", "c"]


async def test_a_filter_applies_before_k(memory: MemoryStore) -> None:
    """Of a thousand better matches none takes a place of those the filter wants."""
    await memory.put_many([(NS, f"k{i}", {"text": "green tea", "n": i}) for i in range(300)])
    await memory.put_many([(NS, f"x{i}", {"text": "something else", "wanted": True}) for i in range(5)])
    found = await memory.search(NS, query="green tea", k=10, filter={"wanted": True})
    assert sorted(keys(found)) == [f"x{i}" for i in range(5)]


async def test_words_alone_answer_without_an_embedder(open_memory: OpenMemory) -> None:
    """With ``embedder=None`` auto, hybrid and lexical search by words, and no part is called semantic."""
    memory = await filled(open_memory(None))
    assert memory.embedder is None
    for mode in ("auto", "hybrid", "lexical"):
        (found,) = await memory.search(NS, query="chess", mode=mode)
        assert (found.key, set(found.scores)) == ("chess", {"coverage", "lexical", "context"})
    assert keys(await memory.search(NS, query="chess", min_coverage=0.5)) == ["chess"]


@pytest.mark.parametrize(
    "options", [{"mode": "semantic"}, {"min_similarity": 0.1}, {"diversity": 0.5}, {"min_similarity": 0, "k": 0}]
)
async def test_what_needs_vectors_is_refused_without_an_embedder(
    open_memory: OpenMemory, options: dict[str, Any]
) -> None:
    """Meaning cannot be had from words: an UnsupportedError, which is a ValueError, with a question or without."""
    memory = await filled(open_memory(None))
    for query in ("chess", None):
        with pytest.raises(UnsupportedError, match="embedder"):
            await memory.search(NS, query=query, **options)


async def test_words_answer_what_the_embedder_can_make_nothing_of(open_memory: OpenMemory) -> None:
    """Where ``embed_query`` returns None words answer, whatever the mode."""
    memory = await filled(open_memory(Mute()))
    for mode in ("auto", "hybrid", "semantic"):
        (found,) = await memory.search(NS, query="chess", mode=mode)
        assert (found.key, "semantic" in found.scores) == ("chess", False)
    assert keys(await memory.search(NS, query="chess", diversity=0.5)) == ["chess"]


async def test_refresh_on_read_lets_live_what_is_read(open_memory: OpenMemory) -> None:
    """Get, search and items set expiry to now and the item's own ttl, as they answer; list and count do not."""
    clock = FakeClock(1000.0)
    memory = open_memory(clock=clock, refresh_on_read=True, ttl=100)
    for key in ("got", "many", "found", "newest", "listed"):
        await memory.put(NS, key, {"text": f"likes {key}"})
    await memory.put(NS, "ever", {"text": "likes it"}, ttl=None)
    clock.advance(60)
    got = await memory.get(NS, "got")
    many = (await memory.get_many(NS, ["many", "ever"]))[0]
    (found,) = await memory.search(NS, query="found", mode="lexical")
    newest = await memory.search(NS, filter={"text": "likes newest"})
    assert [item.expires_at if item else 0 for item in (got, many, found, *newest)] == [1160.0] * 4
    await memory.list(NS)
    assert await memory.count(NS) == 6
    clock.advance(60)
    assert sorted(await memory.list(NS)) == ["ever", "found", "got", "many", "newest"]
    await memory.items(NS)
    clock.advance(60)
    assert len(await memory.search(NS, query="likes", mode="lexical")) == 5


async def test_reading_extends_no_life_by_itself(open_memory: OpenMemory) -> None:
    """Without ``refresh_on_read`` an item goes when its put said, however often it is read."""
    clock = FakeClock()
    memory = open_memory(clock=clock)
    put = await memory.put(NS, "k", {"text": "likes tea"}, ttl=10)
    clock.advance(9)
    assert [await memory.get(NS, "k"), *await memory.items(NS)] == [put, put]
    clock.advance(1)
    assert await memory.get(NS, "k") is None


async def test_a_backend_without_words_answers_by_meaning(open_memory: OpenMemory) -> None:
    """On a backend with no lexical leg "auto" is semantic, with its threshold."""
    full = await filled(open_memory())
    memory = MemoryStore(WithoutWords(full.store), full.embedder)  # type: ignore[arg-type] # methods are set one by one
    found = await memory.search(NS, query="plays chess on Sundays")
    assert found == await full.search(NS, query="plays chess on Sundays", mode="semantic")
    assert keys(await memory.search(NS, query="plays chess on Sundays", min_similarity=0.9)) == ["chess"]


@pytest.mark.parametrize(
    "options",
    [{"mode": "hybrid"}, {"mode": "lexical"}, {"min_coverage": 0.5}, {"recency": 1.0}, {"importance": 1.0}],
)
async def test_what_needs_words_is_refused_by_a_backend_without(
    open_memory: OpenMemory, options: dict[str, Any]
) -> None:
    """A mode, threshold or weight that the backend cannot compute is refused, naming both, before anything is asked."""
    embedder = FakeEmbedder()
    full = open_memory(embedder)
    memory = MemoryStore(WithoutWords(full.store), embedder)  # type: ignore[arg-type] # as above
    for query, k in (("chess", 10), (None, 10), ("chess", 0)):
        with pytest.raises(UnsupportedError, match="WithoutWords"):
            await memory.search(NS, query=query, k=k, **options)
    assert embedder.calls == []
    for call in (memory.list(NS), memory.items(NS)):
        with pytest.raises(UnsupportedError, match="WithoutWords"):
            await call
