"""What every embedder that runs on this machine promises; a test class inherits it and supplies the fixture."""

import asyncio
import time
from collections.abc import Awaitable
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
import pytest

from teffmem.embedders._threaded import ThreadedEmbedder

HOSTILE = [
    "",
    "   ",
    "\n",
    "\0",
    "a\0b",
    "\ud800",
    "half \udc00 a pair",
    "🎉👩‍👩‍👧",
    "我喜欢喝茶。",
    "J’adore le thé glacé",
    "word " * 20_000,
    "x" * 100_000,
]


class LocalEmbedderContract:
    """The promises. ``texts`` are some that the model knows words of, each unlike the others."""

    texts: ClassVar[list[str]] = ["the dog sleeps", "a green tea", "we walk in the hills", "rain", "she reads books"]
    busy_texts: ClassVar[int] = 200
    """How many texts are embedded while a ticker watches the loop."""

    @pytest.fixture(scope="class")
    @classmethod
    def embedder(cls) -> ThreadedEmbedder[Any, Any]:
        """Return the embedder that is tested, the same for all tests of a class."""
        raise NotImplementedError

    async def test_answers_come_in_the_order_of_the_texts(self, embedder: ThreadedEmbedder[Any, Any]) -> None:
        """A batch gives one vector a text, each the same as that text gives alone (1e-6), duplicates too."""
        texts = [*reversed(self.texts), self.texts[1], "tea " * 100, *self.texts]
        vectors = await embedder.embed_many(texts)
        alone = [await embedder.embed(text) for text in texts]
        np.testing.assert_allclose(np.stack(vectors), np.stack(alone), rtol=0, atol=1e-6)

    async def test_nothing_gives_nothing(self, embedder: ThreadedEmbedder[Any, Any]) -> None:
        """No texts, no vectors."""
        assert await embedder.embed_many([]) == []

    async def test_vectors_are_unit_float32(self, embedder: ThreadedEmbedder[Any, Any]) -> None:
        """Vectors are flat float32 arrays, ``dim`` long, of length 1, and share no memory."""
        vectors = await embedder.embed_many(self.texts)
        assert {(vector.dtype, vector.shape) for vector in vectors} == {(np.dtype(np.float32), (embedder.dim,))}
        np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
        assert [vector.base for vector in vectors] == [None] * len(vectors)

    async def test_the_same_text_gives_the_same_bits(self, embedder: ThreadedEmbedder[Any, Any]) -> None:
        """Repeating a call changes nothing."""
        first, second = await embedder.embed_many(self.texts), await embedder.embed_many(self.texts)
        np.testing.assert_array_equal(np.stack(first), np.stack(second))

    async def test_unlike_texts_get_unlike_vectors(self, embedder: ThreadedEmbedder[Any, Any]) -> None:
        """A text is nearest to itself."""
        vectors = np.stack(await embedder.embed_many(self.texts))
        assert list((vectors @ vectors.T).argmax(axis=1)) == list(range(len(self.texts)))

    @pytest.mark.parametrize("text", HOSTILE, ids=lambda text: ascii(text[:12]))
    async def test_any_text_has_a_vector(self, embedder: ThreadedEmbedder[Any, Any], text: str) -> None:
        """Blank, foreign, broken and huge texts give a finite vector, of unit length or zero."""
        vector = await embedder.embed(text)
        assert vector.shape == (embedder.dim,)
        length = float(np.linalg.norm(vector))
        assert length == pytest.approx(1, abs=1e-5) or length == 0

    async def test_calls_at_once_do_not_mix(self, embedder: ThreadedEmbedder[Any, Any]) -> None:
        """Concurrent calls each get their own texts' vectors."""
        expected = np.stack(await embedder.embed_many(self.texts))
        singles = [embedder.embed(text) for text in self.texts for _ in range(4)]
        batches = [embedder.embed_many(self.texts) for _ in range(4)]
        single_answers, batch_answers = await asyncio.gather(asyncio.gather(*singles), asyncio.gather(*batches))
        np.testing.assert_allclose(np.stack(single_answers), np.repeat(expected, 4, axis=0), rtol=0, atol=1e-6)
        for answer in batch_answers:
            np.testing.assert_allclose(np.stack(answer), expected, rtol=0, atol=1e-6)

    async def test_f1_the_loop_stays_free(self, embedder: ThreadedEmbedder[Any, Any]) -> None:
        """While many texts are embedded, no other task waits 100 ms for the loop."""
        await embedder.embed(self.texts[0])
        texts = [f"{self.texts[place % len(self.texts)]} {place}" for place in range(self.busy_texts)]
        assert await _longest_gap(embedder.embed_many(texts)) < 0.1

    async def test_f9_any_loop_may_use_it(self, embedder: ThreadedEmbedder[Any, Any]) -> None:
        """One embedder serves event loops of several threads."""
        expected = await embedder.embed(self.texts[0])
        other = await asyncio.to_thread(asyncio.run, embedder.embed(self.texts[0]))
        np.testing.assert_allclose(other, expected, rtol=0, atol=1e-6)

    async def test_a_cancelled_call_leaves_others_unharmed(self, embedder: ThreadedEmbedder[Any, Any]) -> None:
        """Cancellation reaches the caller, and the next call is answered rightly."""
        expected = await embedder.embed(self.texts[0])
        call = asyncio.create_task(embedder.embed_many(self.texts * 20))
        await asyncio.sleep(0.01)
        call.cancel()
        answers = await asyncio.gather(call, return_exceptions=True)
        assert isinstance(answers[0], asyncio.CancelledError | list)
        np.testing.assert_allclose(await embedder.embed(self.texts[0]), expected, rtol=0, atol=1e-6)


async def _longest_gap(work: Awaitable[object]) -> float:
    """Return the longest time, in seconds, for which a task that sleeps 5 ms did not get its turn meanwhile."""
    turns = [time.perf_counter()]

    async def tick() -> None:
        while True:
            await asyncio.sleep(0.005)
            turns.append(time.perf_counter())

    ticker = asyncio.create_task(tick())
    await work
    turns.append(time.perf_counter())
    ticker.cancel()
    await asyncio.gather(ticker, return_exceptions=True)
    return max(later - earlier for earlier, later in pairwise(turns))
