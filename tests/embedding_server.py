"""An embedding server on this machine that answers as told: well, badly, late or not at all."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Answer", "EmbeddingServer", "Hang", "Reset", "good_vector", "serving", "until"]

DIM = 4


def good_vector(text: str) -> list[float]:
    """Return the vector that the server gives a text: exact in float32, and different for different lengths."""
    return [float(len(text)), float(sum(text.encode()) % 1024), 1.0, 0.5]


@dataclass(frozen=True)
class Answer:
    """One HTTP answer; body None: the right vectors."""

    status: int = 200
    body: str | None = None
    headers: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Hang:
    """Says nothing, or only part of an answer, and after it perhaps a blank now and then."""

    sent: bytes = b""
    trickles: bool = False


@dataclass(frozen=True)
class Reset:
    """Breaks the connection off amid the body."""


Reaction = Answer | Hang | Reset
Script = Callable[[int, dict[str, Any]], Reaction]


@dataclass
class EmbeddingServer:
    """What was asked of the server, and how it reacts.

    Attributes:
        url: Its base_url.
        react: Gives the reaction to the n-th request (from 0) with this payload.
        requests: The payloads, in order of arrival.
        headers: The header lines of each request, names in lower case.
        at_once: The most requests that were under way at the same time.
    """

    url: str = ""
    react: Script = lambda _n, _payload: Answer()
    requests: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    under_way: int = 0
    connections: set[asyncio.StreamWriter] = field(default_factory=set)
    at_once: int = 0

    def answers(self, *reactions: Reaction) -> None:
        """React to the requests to come in this order, and to all later ones as to the last."""
        first = len(self.requests)
        self.react = lambda n, _payload: reactions[min(n - first, len(reactions) - 1)]

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection until it is closed."""
        self.connections.add(writer)
        try:
            while await self._serve_one(reader, writer):
                pass
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()
            self.connections.discard(writer)

    async def _serve_one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        headers = {line.split(":", 1)[0].lower(): line.split(":", 1)[1].strip() for line in head[1:] if line}
        payload = json.loads(await reader.readexactly(int(headers["content-length"])))
        self.requests.append(payload)
        self.headers.append(headers)
        self.under_way += 1
        self.at_once = max(self.at_once, self.under_way)
        try:
            return await self._react(self.react(len(self.requests) - 1, payload), payload, reader, writer)
        finally:
            self.under_way -= 1

    async def _react(
        self, reaction: Reaction, payload: dict[str, Any], reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        if isinstance(reaction, Hang):
            writer.write(reaction.sent)
            while not reader.at_eof():  # until the client gives up
                writer.write(b" " if reaction.trickles else b"")
                with suppress(TimeoutError):
                    await asyncio.wait_for(reader.read(1), 0.02)
            return False
        if isinstance(reaction, Reset):
            writer.write(b'HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{"data": [')
            await writer.drain()
            return False
        await asyncio.sleep(0.01)  # long enough for requests to overlap
        body = (right_body(payload["input"]) if reaction.body is None else reaction.body).encode()
        head = f"HTTP/1.1 {reaction.status} Some Reason\r\nContent-Length: {len(body)}\r\n"
        head += "".join(f"{name}: {value}\r\n" for name, value in reaction.headers.items())
        writer.write(head.encode() + b"\r\n" + body)
        await writer.drain()
        return True


def right_body(texts: list[str]) -> str:
    """Return the body of a right answer."""
    return body_of([good_vector(text) for text in texts])


def body_of(vectors: list[Any], indexes: list[Any] | None = None) -> str:
    """Return an answer's body with these vectors, numbered as told or in order."""
    numbers = list(range(len(vectors))) if indexes is None else indexes
    return json.dumps({"data": [{"index": n, "embedding": v} for n, v in zip(numbers, vectors, strict=True)]})


@asynccontextmanager
async def serving() -> AsyncIterator[EmbeddingServer]:
    """Run a server on a free port of 127.0.0.1."""
    server = EmbeddingServer()
    listener = await asyncio.start_server(server.handle, "127.0.0.1", 0)
    server.url = f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}/v1"
    try:
        yield server
    finally:
        listener.close()
        for connection in list(server.connections):
            connection.close()
        await until(lambda: not server.connections)


async def until(condition: Callable[[], bool]) -> None:
    """Return once the condition holds; fail if it does not within 5 seconds."""
    for _ in range(1000):
        if condition():
            return
        await asyncio.sleep(0.005)
    raise AssertionError("what was waited for did not come about within 5 s")
