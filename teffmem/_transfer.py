"""Memories as lines of JSON, for moving them from one store to another."""

import asyncio
import json
import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Generator, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from teffmem._arguments import check_thread, check_value, lifetime, moment
from teffmem.items import Draft, Record, Value, Vector
from teffmem.namespace import Namespace, check, check_key

__all__ = ["Export", "Imported", "Line", "batches", "check_file", "newest_of"]

_BATCH = 500
_NAMES = frozenset(
    ("namespace", "key", "value", "text", "indexed", "thread", "place", "created_at", "updated_at", "ttl", "expires_at")
)


@dataclass(frozen=True, slots=True)
class Imported:
    """What an import did: lines written, lines that what was there outdated, lines that had expired."""

    written: int = 0
    older: int = 0
    expired: int = 0

    def __add__(self, other: "Imported") -> "Imported":
        return Imported(self.written + other.written, self.older + other.older, self.expired + other.expired)

    @property
    def total(self) -> int:
        """Lines in all."""
        return self.written + self.older + self.expired


class Export:
    """An export under way: awaited, it writes its file and returns the number of lines; iterated, it yields them."""

    def __init__(self, records: AsyncIterator[Record], depth: int, path: str | Path | None) -> None:
        self._records = records
        self._depth = depth
        self._path = path

    async def __aiter__(self) -> AsyncIterator[str]:
        async for record in self._records:
            yield _line(record, self._depth)

    def __await__(self) -> Generator[Any, None, int]:
        if self._path is None:
            raise TypeError(
                "export() without a path is to be iterated: async for line in memory.export(); or give it one"
            )
        return self._write(Path(self._path).expanduser().resolve()).__await__()

    async def _write(self, path: Path) -> int:
        """Write beside the file, for the owner alone, and put it in place once it is whole and on the disk."""
        await asyncio.to_thread(path.parent.mkdir, parents=True, exist_ok=True, mode=0o700)
        handle, unfinished = await asyncio.to_thread(tempfile.mkstemp, ".tmp", f".{path.name}", path.parent)
        count = 0
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                async for line in self:
                    file.write(line + "\n")
                    count += 1
                file.flush()
                await asyncio.to_thread(os.fsync, file.fileno())
            await asyncio.to_thread(_put_in_place, unfinished, path)
        except BaseException:
            await asyncio.to_thread(Path(unfinished).unlink, missing_ok=True)
            raise
        return count


@dataclass(slots=True, eq=False)
class Line:
    """One line of an import, checked."""

    namespace: Namespace
    key: str
    value: Value
    text: str | None
    indexed: bool
    thread: str | None
    place: int | None
    created_at: float | None
    updated_at: float | None
    ttl: float | None
    expires_at: float | None

    @classmethod
    def parse(cls, text: str) -> "Line":
        """Read a line.

        Raises:
            TypeError, ValueError: It is no JSON object, lacks a name or has one too many, or cannot be stored.
        """
        line = _decode(text)
        if not isinstance(line, dict):
            raise TypeError(f"expected a JSON object, not {type(line).__name__}")
        missing = [name for name in ("namespace", "key", "value") if name not in line]
        unknown = sorted(set(line) - _NAMES)
        if missing or unknown:
            raise ValueError(f"missing {missing}, unknown {unknown}; known are {sorted(_NAMES)}")
        indexed = line.get("indexed", True)
        if not isinstance(indexed, bool):
            raise TypeError(f"indexed is true or false, not {type(indexed).__name__}")
        value, own_text = check_value(line["value"], line.get("text"), index=indexed)
        return cls(
            namespace=check(line["namespace"]),
            key=check_key(line["key"]),
            value=value,
            text=own_text,
            indexed=indexed,
            thread=None if line.get("thread") is None else check_thread(line["thread"]),
            place=None if line.get("place") is None else _place(line["place"]),
            created_at=_moment(line, "created_at"),
            updated_at=_moment(line, "updated_at"),
            ttl=lifetime(line.get("ttl"), None),
            expires_at=_moment(line, "expires_at"),
        )

    @property
    def indexed_text(self) -> str | None:
        """The text that is to be embedded; None if unindexed."""
        if not self.indexed:
            return None
        own: str = self.value["text"] if self.text is None else self.text
        return own

    def is_live(self, now: float) -> bool:
        """Tell whether it has not expired."""
        return self.expires_at is None or now < self.expires_at

    def written_at(self, now: float) -> float:
        """Return when it was put, in Unix seconds; ``now`` if it does not say."""
        return now if self.updated_at is None else self.updated_at

    def draft(self, under: Namespace, vector: Vector | None, now: float) -> Draft:
        """Return the draft that puts the line under a namespace, unless what is there is as new."""
        return Draft(
            namespace=under + self.namespace,
            key=self.key,
            value=self.value,
            now=self.written_at(now),
            text=self.text,
            indexed=self.indexed,
            vector=vector,
            thread=self.thread,
            ttl=self.ttl,
            created_at=self.created_at,
            place=self.place,
            expires_at=self.expires_at,
            only_if_newer=True,
        )


def _put_in_place(unfinished: str, path: Path) -> None:
    if path.exists():
        shutil.copymode(path, unfinished)
    Path(unfinished).replace(path)


def newest_of(lines: list[Line], now: float) -> list[Line]:
    """Return the lines that have not expired, of each namespace and key the one that was written last."""
    newest: dict[tuple[Namespace, str], Line] = {}
    for line in lines:
        first = newest.get((line.namespace, line.key))
        if line.is_live(now) and (first is None or first.written_at(now) < line.written_at(now)):
            newest[line.namespace, line.key] = line
    return list(newest.values())


async def check_file(path: str | Path) -> int:
    """Check every line of a file; return how many there are.

    Raises:
        ValueError: A line is wrong; the message has its number.
    """
    return await asyncio.to_thread(lambda: sum(1 for _ in _lines(path)))


async def batches(path: str | Path) -> AsyncIterator[list[Line]]:
    """Yield the lines of a file, some hundred at a time."""
    lines = _lines(path)
    while batch := await asyncio.to_thread(lambda: list(islice(lines, _BATCH))):
        yield batch


def _lines(path: str | Path) -> Iterator[Line]:
    # Bytes that are no text become lone surrogates, so that the check of the line they stand in finds them.
    with Path(path).expanduser().open(encoding="utf-8-sig", errors="surrogateescape") as file:
        for number, text in enumerate(file, 1):
            if not text.strip():
                continue
            try:
                yield Line.parse(text)
            except (TypeError, ValueError, RecursionError) as error:
                said = "not JSON" if isinstance(error, json.JSONDecodeError) else str(error) or type(error).__name__
                raise ValueError(f"line {number} of {Path(path).name}: {said}") from None


def _line(record: Record, depth: int) -> str:
    line = {
        "namespace": list(record.namespace[depth:]),
        "key": record.key,
        "value": record.value,
        "created_at": record.created_at,
        "updated_at": record.updated_at,
        "expires_at": record.expires_at,
        "ttl": record.ttl,
        "thread": record.thread,
        "place": record.place,
        "text": record.text,
        "indexed": record.indexed,
    }
    return json.dumps(line, ensure_ascii=False)


def _moment(line: dict[str, Any], name: str) -> float | None:
    return None if line.get(name) is None else moment(name, line[name])


def _place(given: object) -> int:
    if isinstance(given, bool) or not isinstance(given, int):
        raise TypeError(f"place is a whole number, not {type(given).__name__}")
    if not 0 <= given < 2**63:
        raise ValueError("place is from 0 to 2 ** 63 - 1")
    return given


def _refuse_constant(name: str) -> float:
    raise ValueError(f"it holds {name}, which JSON does not have")


_decode = json.JSONDecoder(parse_constant=_refuse_constant).decode
