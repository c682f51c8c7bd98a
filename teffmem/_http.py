"""One request to an HTTP API, repeated with patience: what embedders and chat models over HTTP stand on.

tenacity, stamina and httpx-retries were weighed: none brings both a bounded `Retry-After` (seconds or date) and our
typed errors, and each would be one more hard dependency for the forty lines that remain.
"""

import asyncio
import json
import math
import random
import re
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import UTC
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Any

import httpx

from teffmem.errors import ProviderError, RateLimitError

__all__ = ["JsonEndpoint", "RetryPolicy", "retry_after_seconds"]

_WORTH_RETRYING = frozenset({408, 429, 500, 502, 503, 504})
_HOPELESS_CODES = frozenset({"insufficient_quota"})  # a 429 that no wait cures
_CODE = re.compile(r"[A-Za-z0-9_]{1,40}")  # an identifier; anything else could be a sentence, a text or a key


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How long a request may take and when it is repeated. All times are seconds.

    Attributes:
        timeout: Longest time of one try, from connecting to the last byte.
        retries: Tries after the first.
        max_wait: Longest wait between two tries; a provider that asks for more is given up at once.
        give_up_after: Longest time of all tries and waits together.
        first_wait: Bound of the first back-off; each next one is twice as long.
        sleep: Waits.
        monotonic: The clock for durations.
        now: The wall clock (Unix seconds), which `Retry-After` dates are compared with.
        jitter: A random number in [0, 1), by which the bound of a back-off is multiplied.
    """

    timeout: float = 30.0
    retries: int = 4
    max_wait: float = 60.0
    give_up_after: float = 110.0
    first_wait: float = 0.5
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    monotonic: Callable[[], float] = time.monotonic
    now: Callable[[], float] = time.time
    jitter: Callable[[], float] = random.random

    def __post_init__(self) -> None:
        for name in ("timeout", "give_up_after"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} is a number of seconds above 0, not {getattr(self, name)!r}")
        if isinstance(self.retries, bool) or not isinstance(self.retries, int) or self.retries < 0:
            raise ValueError(f"retries is a whole number from 0, not {self.retries!r}")
        if not self.max_wait >= 0:
            raise ValueError(f"max_wait is a number of seconds from 0, not {self.max_wait!r}")

    def wait_before(self, retry: int, asked: float | None) -> float:
        """Return the seconds to wait before a retry (1 is the first): what was asked for, plus a random back-off."""
        bound = min(self.first_wait * 2.0 ** (retry - 1), self.max_wait)
        return (asked or 0.0) + bound * self.jitter()


@dataclass(frozen=True, slots=True)
class _Failure:
    """A try that did not succeed.

    Attributes:
        error: What the caller is to see if nothing better follows.
        transient: Whether another try may succeed.
        asked: Seconds that the provider asked to wait; None if it did not say.
    """

    error: ProviderError
    transient: bool
    asked: float | None = None


class JsonEndpoint:
    """Posts JSON to one API and returns what it answers. Serves any event loop, one at a time."""

    def __init__(
        self,
        base_url: str,
        *,
        headers: Mapping[str, str],
        policy: RetryPolicy,
        client: httpx.AsyncClient | None = None,
    ) -> None:
        """Prepare; nothing is sent.

        Args:
            base_url: http(s) address that paths are appended to; credentials and a query do not belong in it.
            headers: Sent with each request. Their values count as secrets: no error shows them.
            policy: Time-outs and retries.
            client: Sends the requests, and stays open; None makes one for each event loop.

        Raises:
            ValueError: base_url is no such address.
        """
        self.base_url = _checked_base_url(base_url)
        self.host = httpx.URL(self.base_url).netloc.decode()
        self._headers = dict(headers)
        self._policy = policy
        self._given = client
        self._own: tuple[asyncio.AbstractEventLoop, httpx.AsyncClient] | None = None
        self._closed = False
        self._under_way = 0
        self._idle = asyncio.Event()

    async def post(self, path: str, payload: Mapping[str, Any]) -> Any:
        """Return the JSON that answers a POST, after as many retries as the policy allows.

        Raises:
            RateLimitError: It was refused for the rate of calls, to the last try.
            ProviderError: Any other refusal, no answer in time, or an answer that is no JSON.
        """
        if self._closed:
            raise ProviderError(f"the client of {self.host} is closed")
        body = json.dumps(payload, ensure_ascii=False).encode(errors="replace")
        self._under_way += 1
        try:
            return _parsed(await self._patiently(path, body), self.host)
        finally:
            self._under_way -= 1
            if not self._under_way:
                self._idle.set()

    async def aclose(self) -> None:
        """Wait for requests under way, then close the client if it was made here. May be called again."""
        self._closed = True
        while self._under_way:
            self._idle.clear()
            await self._idle.wait()
        own, self._own = self._own, None
        if own is not None and own[0] is asyncio.get_running_loop():
            await own[1].aclose()

    async def _patiently(self, path: str, body: bytes) -> httpx.Response:
        deadline = self._policy.monotonic() + self._policy.give_up_after
        retry = 0
        while True:
            left = deadline - self._policy.monotonic()
            outcome = await self._once(path, body, min(self._policy.timeout, left))
            if isinstance(outcome, httpx.Response):
                return outcome
            retry += 1
            wait = self._policy.wait_before(retry, outcome.asked)
            late = (outcome.asked or 0.0) > self._policy.max_wait or wait >= deadline - self._policy.monotonic()
            if late or not outcome.transient or retry > self._policy.retries:
                raise outcome.error
            await self._policy.sleep(wait)

    async def _once(self, path: str, body: bytes, seconds: float) -> httpx.Response | _Failure:
        try:
            async with asyncio.timeout(seconds):
                client = await self._client()
                response = await client.post(
                    self.base_url + path,
                    content=body,
                    headers={"Content-Type": "application/json", **self._headers},
                    timeout=None,  # the bound above is for the whole of a try, and not for each read
                )
        except TimeoutError:
            return _Failure(ProviderError(f"{self.host} did not answer within {seconds:.4g} s"), transient=True)
        except httpx.TransportError as error:
            failed = ProviderError(f"no answer from {self.host}: {type(error).__name__}")
            failed.__cause__ = error
            return _Failure(failed, transient=True)
        except httpx.DecodingError:
            return _Failure(ProviderError(f"{self.host} sent an answer with a broken encoding"), transient=False)
        return response if response.is_success else self._refusal(response)

    async def _client(self) -> httpx.AsyncClient:
        if self._given is not None:
            return self._given
        loop = asyncio.get_running_loop()
        if self._own is None or self._own[0] is not loop:
            made = await asyncio.to_thread(httpx.AsyncClient)  # reading the certificates takes up to 50 ms
            if self._own is None or self._own[0] is not loop:
                self._own = (loop, made)
        return self._own[1]

    def _refusal(self, response: httpx.Response) -> _Failure:
        status = response.status_code
        code = _error_code(response, self._headers.values())
        asked = retry_after_seconds(response.headers.get("Retry-After"), self._policy.now())
        message = f"{self.host} answered {status} {_phrase(status)}" + (f" ({code})" if code else "")
        if status == HTTPStatus.TOO_MANY_REQUESTS:
            hint = "" if asked is None else f"; it asks to wait {asked:.4g} s"
            return _Failure(RateLimitError(message + hint, retry_after=asked), code not in _HOPELESS_CODES, asked)
        return _Failure(ProviderError(message, status=status), status in _WORTH_RETRYING, asked)


def retry_after_seconds(header: str | None, now: float) -> float | None:
    """Return the seconds that a ``Retry-After`` header asks for, never below 0; None if it says nothing usable.

    Args:
        header: Seconds or an HTTP date (RFC 9110, 10.2.3).
        now: Unix seconds.
    """
    if header is None:
        return None
    try:
        seconds = float(header)
    except ValueError:
        return _seconds_until(header, now)
    return max(0.0, seconds) if math.isfinite(seconds) else None


def _seconds_until(date: str, now: float) -> float | None:
    try:
        moment = parsedate_to_datetime(date)
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max(0.0, moment.timestamp() - now)


def _checked_base_url(base_url: str) -> str:
    try:
        url = httpx.URL(base_url)
    except (httpx.InvalidURL, TypeError):
        raise ValueError("base_url is not a URL; it looks like https://host/v1") from None
    if url.scheme not in ("http", "https") or not url.host:
        raise ValueError("base_url is an http:// or https:// address with a host, such as https://host/v1")
    if url.userinfo or url.query or url.fragment:
        raise ValueError("base_url must not hold a user, password, query or fragment; use api_key= or headers=")
    return str(url).rstrip("/")


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return ""


def _error_code(response: httpx.Response, secrets: Any) -> str:
    """Return the provider's own short name for an error; "" where there is none that is safe to show."""
    try:
        body = response.json()
    except ValueError:
        return ""
    error = body.get("error", body) if isinstance(body, dict) else None
    if not isinstance(error, dict):
        return ""
    for name in ("code", "type"):
        code = str(error.get(name) or "")
        if _CODE.fullmatch(code) and not any(code in secret or secret in code for secret in secrets):
            return code
    return ""


def _parsed(response: httpx.Response, host: str) -> Any:
    try:
        return response.json()
    except ValueError:
        status = response.status_code
        # No cause: a JSONDecodeError carries the whole reply.
        raise ProviderError(
            f"{host} answered {status} with {len(response.content)} bytes that are no JSON", status=status
        ) from None
