"""Plain functions and half embedders, made whole."""

import asyncio
import threading
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from teffmem.embedders._lifted import FunctionEmbedder, LiftedEmbedder, complete
from teffmem.embedders._vectors import checked_vectors
from teffmem.items import Vector


def lengths(text: str) -> list[float]:
    """Return a vector of the text's length."""
    return [float(len(text)), 1.0]


async def test_a_sync_function_becomes_an_embedder() -> None:
    """Vectors are float32, in the order of the texts, for one and many, and questions are texts."""
    embedder = FunctionEmbedder(lengths, fingerprint="lengths:2", similarity_range=(0.1, 0.9))
    one = await embedder.embed("abc")
    assert (one.tolist(), one.dtype) == ([3.0, 1.0], np.dtype(np.float32))
    assert [v.tolist() for v in await embedder.embed_many(["a", "bb", ""])] == [[1.0, 1.0], [2.0, 1.0], [0.0, 1.0]]
    question = await embedder.embed_query("abc")
    assert question is not None
    assert question.tolist() == [3.0, 1.0]
    assert await embedder.embed_many([]) == []
    assert (embedder.dim, embedder.fingerprint, embedder.similarity_range) == (2, "lengths:2", (0.1, 0.9))
    await embedder.aclose()
    await embedder.aclose()


async def test_f1_a_blocking_function_does_not_stop_the_loop() -> None:
    """While a function sleeps 200 ms, a ticker of 10 ms never stands still for 100 ms."""

    def slow(text: str) -> list[float]:
        time.sleep(0.2)
        return lengths(text)

    gaps: list[float] = []

    async def tick() -> None:
        last = time.monotonic()
        while True:
            await asyncio.sleep(0.01)
            gaps.append(time.monotonic() - last)
            last = time.monotonic()

    ticker = asyncio.create_task(tick())
    embedder = FunctionEmbedder(slow)
    assert (await embedder.embed("abc")).tolist() == [3.0, 1.0]
    assert [v.tolist() for v in await embedder.embed_many(["a", "bb"])] == [[1.0, 1.0], [2.0, 1.0]]
    ticker.cancel()
    assert max(gaps) < 0.1


async def test_a_sync_function_is_never_called_twice_at_a_time() -> None:
    """Few models are safe for threads, so calls queue up, unless more threads are asked for."""
    under_way = 0
    most = 0
    lock = threading.Lock()

    def counting(text: str) -> list[float]:
        nonlocal under_way, most
        with lock:
            under_way += 1
            most = max(most, under_way)
        time.sleep(0.01)
        with lock:
            under_way -= 1
        return lengths(text)

    embedder = FunctionEmbedder(counting)
    await asyncio.gather(*(embedder.embed("x" * n) for n in range(4)), embedder.embed_many(["a", "b"]))
    assert most == 1
    await FunctionEmbedder(counting, at_once=4).embed_many(["x" * n for n in range(12)])
    assert 1 < most <= 4


async def test_an_async_function_is_awaited_with_a_bound() -> None:
    """Coroutine functions, objects with an async call and lambdas that return a coroutine all work, 8 at a time."""
    under_way = 0
    most = 0

    async def remote(text: str) -> tuple[float, float]:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        await asyncio.sleep(0.001)
        under_way -= 1
        return (float(len(text)), 1.0)

    class Callable:
        async def __call__(self, text: str) -> list[float]:
            return lengths(text)

    texts = ["x" * n for n in range(30)]
    expected = [[float(n), 1.0] for n in range(30)]
    assert [v.tolist() for v in await FunctionEmbedder(remote).embed_many(texts)] == expected
    assert most == 8
    assert [v.tolist() for v in await FunctionEmbedder(Callable()).embed_many(texts)] == expected
    assert (await FunctionEmbedder(lambda text: remote(text)).embed("abc")).tolist() == [3.0, 1.0]


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (None, "expected a row of numbers"),
        (0.5, r"an array of shape \(\)"),
        ([], r"an array of shape \(0,\)"),
        ([[1.0, 2.0]], r"an array of shape \(1, 2\)"),
        ("secret", "expected a row of numbers for text 0, got str of length 6"),
        (["secret"], "expected a row of numbers for text 0, got list of length 1"),
        ([1.0, float("nan")], "NaN or infinity"),
        ([1.0, 1e39], "NaN or infinity"),
        ([10**400], "expected a row of numbers"),
        ([1.0, 2.0, 3.0], "expected vectors of dimension 2, got 3"),
    ],
)
async def test_a_function_that_answers_no_vector_is_found_out(answer: Any, message: str) -> None:
    """What is no finite row of numbers of the right length is a ValueError that does not repeat it."""
    embedder = FunctionEmbedder(lambda _text: answer, dim=2)
    with pytest.raises(ValueError, match=message) as caught:
        await embedder.embed("text")
    assert "secret" not in str(caught.value)


async def test_the_dimension_may_not_change() -> None:
    """A function whose vectors change their length is refused, with both lengths."""
    embedder = FunctionEmbedder(lambda text: [1.0] * len(text))
    await embedder.embed("abc")
    with pytest.raises(ValueError, match="expected vectors of dimension 3, got 2"):
        await embedder.embed("ab")
    with pytest.raises(ValueError, match="dimension 3, got 4"):
        await embedder.embed_many(["abc", "abcd"])


async def test_a_functions_own_error_passes_through() -> None:
    """What the function raises arrives as it is; StopIteration, which no future can carry, as a RuntimeError."""

    def failing(text: str) -> list[float]:
        raise KeyError(len(text))

    with pytest.raises(KeyError, match="4"):
        await FunctionEmbedder(failing).embed("text")
    empty: list[list[float]] = []
    with pytest.raises(RuntimeError, match="StopIteration"):
        await FunctionEmbedder(lambda _text: next(iter(empty))).embed("text")


async def test_one_failure_ends_embed_many() -> None:
    """The first failing text cancels the rest, is raised itself, and leaves no task behind."""
    begun: list[str] = []

    async def remote(text: str) -> list[float]:
        begun.append(text)
        if text == "bad":
            raise LookupError("no vector")
        await asyncio.sleep(60)
        return lengths(text)

    with pytest.raises(LookupError, match="no vector"):
        await FunctionEmbedder(remote).embed_many(["bad", *["good"] * 20])
    assert len(begun) <= 9
    assert asyncio.all_tasks() == {asyncio.current_task()}


class OnlyEmbed:
    """An embedder as small as can be."""

    async def embed(self, text: str) -> list[float]:
        """Return a vector."""
        return lengths(text)


class Whole:
    """An embedder with everything, written without async."""

    dim = 2
    fingerprint = "whole:2"
    similarity_range = (0.2, 0.8)

    def __init__(self) -> None:
        self.batches: list[Sequence[str]] = []

    def embed(self, text: str) -> list[float]:
        """Return a vector."""
        return lengths(text)

    def embed_many(self, texts: Sequence[str]) -> Vector:
        """Return a row a text."""
        self.batches.append(texts)
        return np.array([lengths(text) for text in texts], dtype=np.float32)

    def embed_query(self, text: str) -> list[float] | None:
        """Return a vector, but of questions only."""
        return [-1.0, 1.0] if text.endswith("?") else None


async def test_an_object_with_embed_alone_is_completed() -> None:
    """It gains embed_many and embed_query; what is not known of it is None."""
    embedder = complete(OnlyEmbed())
    assert [v.tolist() for v in await embedder.embed_many(["a", "bb"])] == [[1.0, 1.0], [2.0, 1.0]]
    question = await embedder.embed_query("abc")
    assert question is not None
    assert question.tolist() == [3.0, 1.0]
    assert (embedder.dim, embedder.fingerprint, embedder.similarity_range) == (None, None, None)
    assert complete(embedder) is embedder


async def test_what_an_object_has_is_used() -> None:
    """Its own embed_many is called once with all texts, its embed_query may say None, its attributes pass through."""
    whole = Whole()
    embedder = complete(whole)
    assert [v.tolist() for v in await embedder.embed_many(["a", "bb"])] == [[1.0, 1.0], [2.0, 1.0]]
    assert whole.batches == [["a", "bb"]]
    question = await embedder.embed_query("who?")
    assert question is not None
    assert question.tolist() == [-1.0, 1.0]
    assert await embedder.embed_query("no question") is None
    assert (embedder.dim, embedder.fingerprint, embedder.similarity_range) == (2, "whole:2", (0.2, 0.8))


@pytest.mark.parametrize("count", [0, 4, 6])
async def test_h1_a_wrong_number_of_vectors_is_an_error(count: int) -> None:
    """An embed_many that answers too few or too many is refused, naming both numbers."""
    whole = Whole()
    whole.embed_many = lambda texts: np.ones((count, 2), dtype=np.float32)  # type: ignore[method-assign] # a bad one
    with pytest.raises(ValueError, match=f"expected 5 vectors for 5 texts, got {count}"):
        await complete(whole).embed_many(list("abcde"))


def test_what_is_no_embedder_is_refused() -> None:
    """Neither a function nor an object with embed: the message says what would do."""
    for wrong in (None, 5, "minilm", object()):
        with pytest.raises(TypeError, match=r"has embed\(text\), sync or async, or is itself a function"):
            complete(wrong)
    with pytest.raises(TypeError, match="got object"):
        LiftedEmbedder(object())


def test_one_embedder_serves_one_event_loop_after_another() -> None:
    """asyncio.run three times with the same embedder works each time."""
    embedder = FunctionEmbedder(lengths)
    assert [asyncio.run(embedder.embed("abc")).tolist() for _ in range(3)] == [[3.0, 1.0]] * 3


def test_checked_vectors_are_copies() -> None:
    """A checked vector shares nothing with what the embedder keeps."""
    kept = np.ones((2, 3), dtype=np.float32)
    checked = checked_vectors(kept, 2, 3)
    kept[:] = 7.0
    assert [v.tolist() for v in checked] == [[1.0] * 3] * 2
