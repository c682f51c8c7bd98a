"""`BatchingEmbedder`: few calls, each caller its own answer."""

import asyncio
import threading
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from teffmem.embedders.batching import BatchingEmbedder
from teffmem.errors import ProviderError, RateLimitError
from tests.embedding_server import until


class Recording:
    """An embedder that remembers its calls and can be held up, made to fail, or made to answer badly.

    Attributes:
        calls: The texts of each call.
        gate: Set: calls run through.
        fault: Gives the error of a call with these texts; None for none.
        answer: Makes the answer of the right vectors.
    """

    def __init__(self) -> None:
        self.calls: list[list[str]] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.fault: Callable[[list[str]], Exception | None] = lambda _texts: None
        self.answer: Callable[[list[list[float]]], Any] = lambda vectors: vectors

    async def embed(self, text: str) -> Any:
        """Return a vector of the text's length."""
        return (await self.embed_many([text]))[0]

    async def embed_many(self, texts: Sequence[str]) -> Any:
        """Return a vector a text."""
        self.calls.append(list(texts))
        await self.gate.wait()
        await asyncio.sleep(0)
        fault = self.fault(list(texts))
        if fault is not None:
            raise fault
        return self.answer([[float(len(text)), 1.0] for text in texts])


async def test_calls_of_one_turn_are_one_call() -> None:
    """A gather of 100 makes one inner call, and each caller gets its own text's vector."""
    inner = Recording()
    embedder = BatchingEmbedder(inner)
    vectors = await asyncio.gather(*(embedder.embed("x" * n) for n in range(100)))
    assert [v[0] for v in vectors] == [float(n) for n in range(100)]
    assert len(inner.calls) == 1


async def test_calls_that_arrive_late_share_the_next_call() -> None:
    """What comes while a call is under way goes together afterwards: two calls in all."""
    inner = Recording()
    inner.gate.clear()
    embedder = BatchingEmbedder(inner)
    first = asyncio.create_task(embedder.embed("first"))
    await until(lambda: len(inner.calls) == 1)
    later = [asyncio.create_task(embedder.embed("x" * n)) for n in range(1, 100)]
    await asyncio.sleep(0)
    inner.gate.set()
    assert (await first)[0] == 5.0
    assert [v[0] for v in await asyncio.gather(*later)] == [float(n) for n in range(1, 100)]
    assert [len(call) for call in inner.calls] == [1, 99]


async def test_equal_texts_are_embedded_once_and_vectors_are_not_shared() -> None:
    """Fifty callers with two texts cost one call of two; changing one answer changes no other."""
    inner = Recording()
    embedder = BatchingEmbedder(inner)
    vectors = await asyncio.gather(*(embedder.embed("ab" if n % 2 else "abc") for n in range(50)))
    assert inner.calls == [["abc", "ab"]]
    vectors[0][:] = 0.0
    assert [v[0] for v in vectors] == [0.0, 2.0] + [3.0, 2.0] * 24
    many = await embedder.embed_many(["ab", "abc", "ab"])
    many[0][:] = 0.0
    assert [v[0] for v in many] == [0.0, 3.0, 2.0]
    assert inner.calls[1:] == [["ab", "abc"]]


async def test_batches_are_bounded() -> None:
    """No call has more than max_batch texts."""
    inner = Recording()
    embedder = BatchingEmbedder(inner, max_batch=30)
    await asyncio.gather(*(embedder.embed("x" * n) for n in range(100)))
    assert [len(call) for call in inner.calls] == [30, 30, 30, 10]
    with pytest.raises(ValueError, match="max_batch is a whole number from 1, not 0"):
        BatchingEmbedder(inner, max_batch=0)


async def test_f15_one_failing_text_sinks_nobody_else() -> None:
    """Of 20 texts two fail: 18 callers get vectors, the two their own errors."""
    inner = Recording()
    inner.fault = lambda texts: ValueError(f"{len(texts)} texts") if {"xx", "xxxxx"} & set(texts) else None
    embedder = BatchingEmbedder(inner)
    outcomes = await asyncio.gather(*(embedder.embed("x" * n) for n in range(20)), return_exceptions=True)
    errors = {n: str(o) for n, o in enumerate(outcomes) if isinstance(o, BaseException)}
    assert errors == {2: "1 texts", 5: "1 texts"}
    assert [o[0] for o in outcomes if not isinstance(o, BaseException)] == [
        float(n) for n in range(20) if n not in errors
    ]
    assert sorted(len(call) for call in inner.calls) == [1] * 20 + [20]


@pytest.mark.parametrize(
    "outage",
    [
        RateLimitError("busy", retry_after=3.0),
        ProviderError("silent"),
        ProviderError("down", status=503),
        TimeoutError(),
    ],
)
async def test_an_outage_is_not_asked_again_for_each_text(outage: Exception) -> None:
    """What hits a whole batch (rate limit, time-out, a server that is down) is everyone's error after one call."""
    inner = Recording()
    inner.fault = lambda _texts: outage
    embedder = BatchingEmbedder(inner)
    outcomes = await asyncio.gather(*(embedder.embed("x" * n) for n in range(20)), return_exceptions=True)
    assert outcomes == [outage] * 20
    assert len(inner.calls) == 1
    inner.fault = lambda _texts: None
    assert (await embedder.embed("abc"))[0] == 3.0


async def test_an_outage_amid_single_tries_ends_them() -> None:
    """When the provider goes away while texts are tried alone, the rest of them are not tried."""
    inner = Recording()

    def fault(texts: list[str]) -> Exception | None:
        return ProviderError("too long", status=400) if len(texts) > 1 else RateLimitError("busy")

    inner.fault = fault
    embedder = BatchingEmbedder(inner)
    outcomes = await asyncio.gather(*(embedder.embed("x" * n) for n in range(100)), return_exceptions=True)
    assert {type(outcome) for outcome in outcomes} == {RateLimitError}
    assert len(inner.calls) <= 1 + 8


@pytest.mark.parametrize("count", [0, 4, 6])
async def test_h1_a_wrong_number_of_vectors_never_shifts_them(count: int) -> None:
    """Too few or too many for a batch: each text is asked alone and gets its own; embed_many fails naming both."""
    inner = Recording()
    inner.answer = lambda vectors: vectors if len(vectors) == 1 else (vectors * 2)[:count]
    embedder = BatchingEmbedder(inner)
    vectors = await asyncio.gather(*(embedder.embed("x" * n) for n in range(5)))
    assert [v[0] for v in vectors] == [float(n) for n in range(5)]
    with pytest.raises(ValueError, match=f"expected 5 vectors for 5 texts, got {count}"):
        await embedder.embed_many(["a", "b", "c", "d", "e"])


@pytest.mark.parametrize(
    ("vector", "message"),
    [
        ([1.0], "expected vectors of dimension 2, got 1"),
        ([1.0, float("inf")], "NaN or infinity"),
        ([1.0, float("nan")], "NaN or infinity"),
        ([], "shape"),
        (None, "expected a row of numbers"),
    ],
)
async def test_a_bad_vector_is_its_own_callers_error(vector: Any, message: str) -> None:
    """Wrong length, NaN and infinity are ValueErrors for that text and for no other."""
    inner = Recording()
    embedder = BatchingEmbedder(inner)
    await embedder.embed("learn the dimension")
    inner.answer = lambda vectors: [vector if v[0] == 3.0 else v for v in vectors]
    good, bad = await asyncio.gather(embedder.embed("ab"), embedder.embed("abc"), return_exceptions=True)
    assert not isinstance(good, BaseException)
    assert good.tolist() == [2.0, 1.0]
    assert isinstance(bad, ValueError)
    with pytest.raises(ValueError, match=message):
        raise bad
    assert embedder.dim == 2


async def test_a_cancelled_caller_harms_nobody() -> None:
    """One of three is cancelled while the call is under way; the others, one with the same text, get their vectors."""
    inner = Recording()
    inner.gate.clear()
    embedder = BatchingEmbedder(inner)
    tasks = [asyncio.create_task(embedder.embed(text)) for text in ("abc", "abc", "de")]
    await until(lambda: len(inner.calls) == 1)
    tasks[0].cancel()
    await asyncio.sleep(0)
    inner.gate.set()
    outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    assert isinstance(outcomes[0], asyncio.CancelledError)
    assert [o[0] for o in outcomes[1:] if not isinstance(o, BaseException)] == [3.0, 2.0]


async def test_when_all_callers_are_cancelled_so_is_the_call() -> None:
    """Nothing goes on for nobody, and whoever comes in that very moment is served."""
    inner = Recording()
    inner.gate.clear()
    embedder = BatchingEmbedder(inner)
    tasks = [asyncio.create_task(embedder.embed("x" * n)) for n in range(3)]
    await until(lambda: len(inner.calls) == 1)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    next_one = asyncio.create_task(embedder.embed("next"))
    await until(lambda: len(inner.calls) == 2)
    assert len(asyncio.all_tasks()) == 3  # this one, the next caller, and the task that serves it
    inner.gate.set()
    assert (await next_one)[0] == 4.0
    await until(lambda: len(asyncio.all_tasks()) == 1)


async def test_cancelling_before_the_call_begins_spares_it() -> None:
    """Texts whose callers left before their turn are not sent."""
    inner = Recording()
    inner.gate.clear()
    embedder = BatchingEmbedder(inner)
    first, gone, stays = (asyncio.create_task(embedder.embed(text)) for text in ("first", "gone", "stays"))
    await until(lambda: len(inner.calls) == 1)
    late = asyncio.create_task(embedder.embed("late"))
    await asyncio.sleep(0)
    late.cancel()
    inner.gate.set()
    await asyncio.gather(first, gone, stays)
    assert inner.calls == [["first", "gone", "stays"]]


async def test_a_failure_nobody_waits_for_is_quiet() -> None:
    """A caller cancelled in the turn in which its error arrives leaves no unseen exception behind."""
    seen: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _loop, context: seen.append(context))
    inner = Recording()
    embedder = BatchingEmbedder(inner)

    tasks: list[asyncio.Task[Any]] = []

    def fault(_texts: list[str]) -> Exception:
        asyncio.get_running_loop().call_soon(tasks[0].cancel)
        return ProviderError("down")

    inner.fault = fault
    tasks.append(asyncio.create_task(embedder.embed("text")))
    await asyncio.gather(*tasks, return_exceptions=True)
    tasks.clear()
    await asyncio.sleep(0)
    assert seen == []


async def test_a_question_goes_straight_through() -> None:
    """embed_query does not wait for a batch, and None stays None."""

    class Asked(Recording):
        async def embed_query(self, text: str) -> list[float] | None:
            return [7.0, 7.0] if text else None

    inner = Asked()
    inner.gate.clear()
    embedder = BatchingEmbedder(inner)
    stuck = asyncio.create_task(embedder.embed("text"))
    question = await embedder.embed_query("who?")
    assert question is not None
    assert question.tolist() == [7.0, 7.0]
    assert await embedder.embed_query("") is None
    inner.gate.set()
    await stuck


def test_one_embedder_serves_one_event_loop_after_another() -> None:
    """asyncio.run three times, each ended with a call still under way, and the next works."""
    inner = Recording()
    embedder = BatchingEmbedder(inner)

    async def leave_one_behind() -> list[float]:
        inner.gate = asyncio.Event()
        asyncio.create_task(embedder.embed("left"))  # noqa: RUF006 - it is to be left behind
        await asyncio.sleep(0.01)
        inner.gate.set()
        own: list[float] = (await embedder.embed("abc")).tolist()
        inner.gate.clear()
        asyncio.create_task(embedder.embed("left again"))  # noqa: RUF006
        await asyncio.sleep(0.01)
        return own

    assert [asyncio.run(leave_one_behind()) for _ in range(3)] == [[3.0, 1.0]] * 3


async def test_closing_waits_for_the_batch_and_ends_use() -> None:
    """aclose lets waiting callers have their vectors; afterwards every call is refused."""
    inner = Recording()
    embedder = BatchingEmbedder(inner)
    waiting = asyncio.create_task(embedder.embed("abc"))
    await asyncio.sleep(0)
    await embedder.aclose()
    await embedder.aclose()
    assert (await waiting)[0] == 3.0
    for call in (embedder.embed("abc"), embedder.embed_many(["abc"]), embedder.embed_query("abc")):
        with pytest.raises(ProviderError, match="this embedder is closed"):
            await call


async def test_closing_ends_the_threads_of_a_blocking_embedder() -> None:
    """A sync function given to the wrapper leaves no thread behind."""
    before = threading.active_count()
    embedder = BatchingEmbedder(lambda text: [float(len(text)), 1.0])
    assert (await embedder.embed("abc")).tolist() == [3.0, 1.0]
    assert threading.active_count() == before + 1
    await embedder.aclose()
    assert [thread.name for thread in threading.enumerate() if thread.name.startswith("teffmem")] == []


async def test_attributes_pass_through() -> None:
    """Fingerprint, dimension and similarity range are the embedder's own."""

    class Named(Recording):
        dim = 2
        fingerprint = "named:2"
        similarity_range = (0.1, 0.5)

    embedder = BatchingEmbedder(Named())
    assert (embedder.dim, embedder.fingerprint, embedder.similarity_range) == (2, "named:2", (0.1, 0.5))
    assert await embedder.embed_many([]) == []
