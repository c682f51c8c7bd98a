"""Embedding over HTTP, by any API that is compatible with OpenAI's ``/embeddings``."""

import asyncio
import base64
import binascii
import json
import os
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from types import TracebackType
from typing import Any, Self

import httpx
import numpy as np

from teffmem._http import JsonEndpoint, RetryPolicy
from teffmem.embedders._bounded import each
from teffmem.embedders._providers import GENERIC, PROVIDERS, Provider
from teffmem.embedders._vectors import checked_vectors
from teffmem.errors import ProviderError
from teffmem.items import Vector

__all__ = ["OpenAICompatibleEmbedder"]

_REQUESTS_AT_ONCE = 2  # of one embed_many; more would run into rate limits sooner, and gain little
_BYTES_A_TOKEN = 3  # of UTF-8: low for English (about 4), about right for Chinese and Japanese
_STATUS_OK = 200


@dataclass(frozen=True, slots=True)
class _Use:
    """What makes a question, or a text to be stored, of a text: a prefix and request fields."""

    prefix: str
    fields: Mapping[str, Any]


class OpenAICompatibleEmbedder:
    """Embeds by HTTP requests to a provider or a server of one's own.

    A text longer than the model reads is cut or refused by the provider; most cut it.

    Attributes:
        model: The model's name at the provider.
        similarity_range: The cosines (lo, hi) between which meaning counts, see `ranking.Query`; None if not known.
    """

    def __init__(
        self,
        model: str,
        *,
        provider: str | None = None,
        base_url: str | None = None,
        api_key: str | None = None,
        dim: int | None = None,
        send_dimensions: bool = False,
        query_prefix: str = "",
        document_prefix: str = "",
        query_fields: Mapping[str, Any] | None = None,
        document_fields: Mapping[str, Any] | None = None,
        batch_size: int | None = None,
        timeout: float = 30.0,
        retries: int = 4,
        max_wait: float = 60.0,
        give_up_after: float = 110.0,
        similarity_range: tuple[float, float] | None = None,
        fingerprint: str | None = None,
        headers: Mapping[str, str] | None = None,
        client: httpx.AsyncClient | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """Prepare; nothing is sent before the first text.

        Args:
            model: The model's name at the provider.
            provider: "jina", "mistral", "ollama", "openai", "together" or "voyage": sets the address, the variable
                that the key is read from, the limits, and the fields that tell a question from a document.
            base_url: Address that ``/embeddings`` is appended to, instead of the provider's own. With neither, the
                provider is "openai". A key is then sent only if given here, or named by ``provider``.
            api_key: Sent as a bearer token. None reads the provider's usual environment variable, now.
            dim: Dimension that every vector must have; None takes that of the first answer.
            send_dimensions: Ask the model for ``dim`` (only some can shorten their vectors).
            query_prefix: Put before each question.
            document_prefix: Put before each text that is to be stored.
            query_fields: Request fields for questions, instead of the provider's.
            document_fields: Request fields for what is stored, instead of the provider's.
            batch_size: Texts a request; None takes a value that suits the provider.
            timeout: Seconds that one try may take.
            retries: Tries after the first, when the provider is busy, faulty or silent.
            max_wait: Seconds of the longest wait before a retry.
            give_up_after: Seconds that a request may take with all its retries and waits.
            similarity_range: Cosines between which meaning counts for this model.
            fingerprint: Name of the vectors, instead of one made of provider, model, dimension, prefixes and fields.
            headers: More request headers. Their values are treated as secrets.
            client: Sends the requests and stays open; None makes one for each event loop.
            sleep: Waits between tries; tests replace it.

        Raises:
            ValueError: The provider is unknown, its key is nowhere, base_url is no http address, or a number is out
                of range.
        """
        self._provider = _provider(provider, base_url)
        self._name = provider or ("openai" if base_url is None else "openai-compatible")
        self.model = model
        self.similarity_range = similarity_range
        self._dim = _positive("dim", dim)
        self._batch_size = _positive("batch_size", batch_size) or self._provider.batch_size
        if send_dimensions and dim is None:
            raise ValueError("send_dimensions needs dim: the dimension to ask the model for")
        self._dim_fields = {self._provider.dim_field: dim} if send_dimensions else {}
        self._query = _Use(query_prefix, _chosen(query_fields, self._provider.query_fields))
        self._document = _Use(document_prefix, _chosen(document_fields, self._provider.document_fields))
        self._fingerprint = fingerprint
        self._endpoint = JsonEndpoint(
            base_url or self._provider.base_url,
            headers={**_authorization(self._name, self._provider, api_key), **(headers or {})},
            policy=RetryPolicy(timeout, retries, max_wait, give_up_after, sleep=sleep),
            client=client,
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.model!r}, base_url={self._endpoint.base_url!r})"

    @property
    def dim(self) -> int | None:
        """Length of each vector; None if it was not given and no answer has come yet."""
        return self._dim

    @property
    def fingerprint(self) -> str | None:
        """Name of the vectors, such as "openai:text-embedding-3-small:1536"; None as long as ``dim`` is."""
        if self._fingerprint is not None or self._dim is None:
            return self._fingerprint
        return f"{self._name}:{self.model}:{self._dim}{self._dialect()}"

    async def embed(self, text: str) -> Vector:
        """Return the vector of a text that is to be stored: float32, ``dim`` long.

        Raises:
            RateLimitError: The provider refused for the rate of calls, to the last try.
            ProviderError: It did not answer in time, refused, or answered what is no vector of this dimension.
        """
        return (await self._embed([text], self._document))[0]

    async def embed_many(self, texts: Sequence[str]) -> list[Vector]:
        """Return one vector a text, in the order of the texts; two requests run at a time. Raises as `embed` does."""
        return await self._embed(texts, self._document)

    async def embed_query(self, text: str) -> Vector:
        """Return the vector of a question. Raises as `embed` does."""
        return (await self._embed([text], self._query))[0]

    async def aclose(self) -> None:
        """Wait for requests under way and close the client, unless it was given. May be called again."""
        await self._endpoint.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def _embed(self, texts: Sequence[str], use: _Use) -> list[Vector]:
        prefixed = [use.prefix + text for text in texts]
        batches = _batches(prefixed, self._batch_size, self._provider.batch_tokens)
        answers = await each(lambda batch: self._request(batch, use), batches, _REQUESTS_AT_ONCE)
        return [vector for answer in answers for vector in answer]

    async def _request(self, batch: list[str], use: _Use) -> list[Vector]:
        payload = {"model": self.model, "input": batch, **self._provider.fields, **self._dim_fields, **use.fields}
        answer = await self._endpoint.post("/embeddings", payload)
        try:
            vectors = checked_vectors(_in_order(answer, len(batch)), len(batch), self._dim)
        except ValueError as error:
            raise ProviderError(f"{self._endpoint.host}, model {self.model!r}: {error}", status=_STATUS_OK) from error
        self._dim = vectors[0].size
        return vectors

    def _dialect(self) -> str:
        """Return what the fingerprint says of prefixes and fields; "" where they are the provider's own."""
        own = ("", self._provider.query_fields, "", self._provider.document_fields)
        used = (self._query.prefix, self._query.fields, self._document.prefix, self._document.fields)
        if used == own:
            return ""
        return ":" + blake2b(json.dumps(used, sort_keys=True, default=dict).encode(), digest_size=4).hexdigest()


def _provider(name: str | None, base_url: str | None) -> Provider:
    if name is None:
        return PROVIDERS["openai"] if base_url is None else GENERIC
    if name not in PROVIDERS:
        known = ", ".join(sorted(PROVIDERS))
        raise ValueError(f"unknown provider {name!r} for embeddings; known are {known}; any other server: base_url=")
    return PROVIDERS[name]


def _authorization(name: str, provider: Provider, api_key: str | None) -> dict[str, str]:
    if api_key is None and provider.key_variable is not None:
        api_key = os.environ.get(provider.key_variable, "").strip()
        if not api_key:
            raise ValueError(f"provider {name!r} needs a key: set {provider.key_variable}, or pass api_key=")
    return {"Authorization": f"Bearer {api_key}"} if api_key else {}


def _positive(name: str, number: int | None) -> int | None:
    if number is not None and (isinstance(number, bool) or not isinstance(number, int) or number < 1):
        raise ValueError(f"{name} is a whole number from 1, or None, not {number!r}")
    return number


def _chosen(given: Mapping[str, Any] | None, usual: Mapping[str, Any]) -> dict[str, Any]:
    return dict(usual if given is None else given)


def _batches(texts: Sequence[str], size: int, tokens: int) -> Iterator[list[str]]:
    """Cut texts into runs of at most ``size``, and of at most ``tokens`` (estimated) unless one text has more."""
    batch: list[str] = []
    held = 0
    for text in texts:
        length = len(text.encode(errors="replace")) // _BYTES_A_TOKEN + 1
        if batch and (len(batch) == size or held + length > tokens):
            yield batch
            batch, held = [], 0
        batch.append(text)
        held += length
    if batch:
        yield batch


def _in_order(answer: Any, count: int) -> list[Any]:
    """Return the embeddings of an answer by their index.

    Raises:
        ValueError: It has another shape or count, or its indexes are not those of the texts.
    """
    data = answer.get("data") if isinstance(answer, dict) else None
    if not isinstance(data, list) or not all(isinstance(entry, dict) and "embedding" in entry for entry in data):
        raise ValueError("expected an answer with a list of embeddings under 'data'")
    if len(data) != count:
        raise ValueError(f"expected {count} vectors for {count} texts, got {len(data)}")
    if count == 1:
        return [_decoded(data[0]["embedding"])]  # some servers give no index, or always 0: for one text it needs none
    by_index = {entry.get("index"): entry["embedding"] for entry in data if type(entry.get("index")) is int}
    if by_index.keys() != set(range(count)):
        raise ValueError(
            f"expected each index from 0 to {count - 1} once, got {len(by_index)} different ones; "
            "for a server that does not number its answers, use batch_size=1"
        )
    return [_decoded(by_index[place]) for place in range(count)]


def _decoded(embedding: Any) -> Any:
    if not isinstance(embedding, str):
        return embedding
    try:
        return np.frombuffer(base64.b64decode(embedding, validate=True), dtype="<f4")
    except (binascii.Error, ValueError):
        raise ValueError(f"expected numbers in base64, got a string of {len(embedding)} characters") from None
