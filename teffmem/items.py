"""What a memory is: the item a user sees, the record a backend keeps, the draft that becomes one."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from teffmem.namespace import Namespace

__all__ = [
    "DEFAULT",
    "KEEP",
    "Default",
    "Draft",
    "Keep",
    "Match",
    "MemoryItem",
    "Record",
    "Value",
    "Vector",
    "json_copy",
    "json_object",
]

Value = dict[str, Any]
Vector = NDArray[np.float32]

_DEEPEST = 100
_LONGEST_INTEGER = 10**4000  # Python refuses to parse an integer of more than 4,300 digits


class Keep:
    """The type of `KEEP`."""

    def __repr__(self) -> str:
        return "KEEP"


KEEP: Final = Keep()
"""As a thread: whatever thread the overwritten record is in, or none."""


class Default:
    """The type of `DEFAULT`."""

    def __repr__(self) -> str:
        return "DEFAULT"


DEFAULT: Final = Default()
"""As an argument: what the store was opened with."""


@dataclass(frozen=True, slots=True)
class MemoryItem:
    """A memory as it is read.

    Attributes:
        key: Its name within the namespace.
        value: The JSON object that was put; a copy of the caller's own.
        namespace: The path it lives under.
        created_at: Unix seconds of the first put.
        updated_at: Unix seconds of the last put or update.
        expires_at: Unix seconds from which it is gone; None if it never expires.
        score: What a search ordered it by, higher first; None where nothing was asked for.
        scores: The parts of ``score`` by name (see `MemoryStore.search`).
        thread: The conversation or document it is one turn of; None if of none.
    """

    key: str
    value: Value
    namespace: Namespace
    created_at: float
    updated_at: float
    expires_at: float | None = None
    score: float | None = None
    scores: Mapping[str, float] = field(default_factory=dict)
    thread: str | None = None


@dataclass(slots=True, eq=False)  # not frozen: that would triple the time it takes to make one
class Record:
    """A memory as a backend keeps it.

    Attributes:
        namespace: The path it lives under.
        key: Its name there.
        value: The JSON object; a backend returns an equal one that it does not share.
        text: What was indexed instead of ``value["text"]``; None if the value's own text was, or none.
        indexed: Whether searches by meaning and words find it.
        thread: The conversation it is one turn of, or None.
        stamp: Order of its last write: an integer that only grows within a store (microseconds, or the last + 1).
        place: Its stamp at the first put: its place within the thread.
        created_at: Unix seconds of the first put.
        updated_at: Unix seconds of the last put.
        ttl: Seconds that a write or refresh lets it live; None for ever.
        expires_at: Unix seconds from which it is gone; None for never.
        vector: float32, unit length (or all zeros), ``dim`` long; None where unindexed or words alone are indexed.
            Backends may leave it out of what they return, unless asked for it.
    """

    namespace: Namespace
    key: str
    value: Value
    text: str | None
    indexed: bool
    thread: str | None
    stamp: int
    place: int
    created_at: float
    updated_at: float
    ttl: float | None
    expires_at: float | None
    vector: Vector | None = field(default=None, repr=False)

    @property
    def indexed_text(self) -> str | None:
        """The text that searches look at; None if unindexed."""
        if not self.indexed:
            return None
        own: str = self.value["text"] if self.text is None else self.text
        return own

    def is_live(self, now: float) -> bool:
        """Tell whether it has not expired: gone when now >= expires_at."""
        return self.expires_at is None or now < self.expires_at


@dataclass(slots=True, eq=False)  # not frozen: that would triple the time it takes to make one
class Draft:
    """A write that is asked for; with what is there already, it becomes a `Record`.

    Attributes are those of `Record`, and:
        now: Unix seconds of the write; it becomes ``updated_at``.
        thread: `KEEP` to stay in the thread of the record that is overwritten.
        created_at: Set by import to keep a time; None means the overwritten record's, or ``now``.
        place: Set by import to keep an order; None means the overwritten record's, or the new stamp.
        expires_at: Set by import and update to keep a moment; None means ``now + ttl``.
        only_over: Write only over a live record with this stamp (compare and put).
        only_if_newer: Write only if no live record has an ``updated_at`` of ``now`` or later.
        same_text: Keep what is indexed of the overwritten record; goes with ``only_over``, and ``vector`` is ignored.
    """

    namespace: Namespace
    key: str
    value: Value
    now: float
    text: str | None = None
    indexed: bool = True
    vector: Vector | None = field(default=None, repr=False)
    thread: str | Keep | None = KEEP
    ttl: float | None = None
    created_at: float | None = None
    place: int | None = None
    expires_at: float | None = None
    only_over: int | None = None
    only_if_newer: bool = False
    same_text: bool = False

    def over(self, previous: Record | None, *, stamp: int, now: float) -> Record | None:
        """Return the record that this draft makes of what is there; None if its condition does not hold.

        Args:
            previous: The record with this namespace and key, live or expired; None if there is none.
            stamp: The stamp that the write would get.
            now: Unix seconds; a record expired by then counts as none.
        """
        if previous is not None and not previous.is_live(now):
            previous = None
        if self.only_over is not None and (previous is None or previous.stamp != self.only_over):
            return None
        if self.only_if_newer and previous is not None and previous.updated_at >= self.now:
            return None
        thread, place, created_at, vector = None, stamp, self.now, self.vector
        if previous is not None:
            thread, place, created_at = previous.thread, previous.place, previous.created_at
            vector = previous.vector if self.same_text else vector
        expires_at = self.expires_at
        if expires_at is None and self.ttl is not None:
            expires_at = self.now + self.ttl
        return Record(
            namespace=self.namespace,
            key=self.key,
            value=self.value,
            text=self.text,
            indexed=self.indexed,
            thread=thread if isinstance(self.thread, Keep) else self.thread,
            stamp=stamp,
            place=place if self.place is None else self.place,
            created_at=created_at if self.created_at is None else self.created_at,
            updated_at=self.now,
            ttl=self.ttl,
            expires_at=expires_at,
            vector=vector,
        )


@dataclass(slots=True, eq=False)  # not frozen: that would triple the time it takes to make one
class Match:
    """A record that a search found.

    Attributes:
        record: The record.
        score: What the matches are ordered by, higher first.
        scores: Parts of the score by name.
    """

    record: Record
    score: float
    scores: dict[str, float]


def json_object(value: object) -> Value:
    """Return a deep copy of a JSON object.

    Raises:
        TypeError: It is not a dict, or something in it is not JSON: a set, tuple, bytes, datetime, a key that is no
            string.
        ValueError: A number is NaN, infinite or over 4,000 digits, a string holds a lone surrogate, or it nests
            deeper than 100 levels (or holds itself).
    """
    if not isinstance(value, dict):
        raise TypeError(f"a value is a JSON object (a dict), not {type(value).__name__}")
    copy: Value = json_copy(value, "value")
    return copy


def json_copy(part: object, name: str) -> Any:
    """Return a deep copy of any JSON value, ``name`` being what messages call it; raises as `json_object` does."""
    return _copy(part, (name,))


_Path = tuple[str | int, ...]


def _copy(part: object, path: _Path) -> Any:
    if isinstance(part, str):
        return _copy_string(part, path)
    if part is None or isinstance(part, bool):
        return part
    if isinstance(part, int | float):
        return _copy_number(part, path)
    if isinstance(part, list | dict) and len(path) > _DEEPEST:
        raise ValueError(f"{_where(path)[:60]}... nests deeper than {_DEEPEST} levels, or holds itself")
    if isinstance(part, list):
        return [_copy(element, (*path, i)) for i, element in enumerate(part)]
    if isinstance(part, dict):
        return {_copy_name(name, path): _copy(of, (*path, name)) for name, of in part.items()}
    raise TypeError(f"{_where(path)} is a {type(part).__name__}, which JSON does not have; convert it first")


def _copy_name(name: object, path: _Path) -> str:
    if not isinstance(name, str):
        raise TypeError(f"{_where(path)} has a key of type {type(name).__name__}; JSON's keys are strings")
    return _copy_string(name, ("a key of", *path))


def _copy_string(string: str, path: _Path) -> str:
    if not string.isascii():
        try:
            string.encode()
        except UnicodeEncodeError as error:
            raise ValueError(
                f"{_where(path)} holds a lone surrogate at character {error.start} of {len(string)}; "
                "it is not valid Unicode"
            ) from None
    return str.__str__(string)  # str() would turn a member of a string Enum into its name


def _copy_number(number: float, path: _Path) -> float:
    if isinstance(number, int):
        if abs(number) >= _LONGEST_INTEGER:
            raise ValueError(f"{_where(path)} is an integer of over 4,000 digits")
        return int(number)
    if not math.isfinite(number):
        raise ValueError(f"{_where(path)} is {number!r}, which JSON does not have")
    return float(number)


def _where(path: _Path) -> str:
    """Return a path as code would write it."""
    name, *steps = path
    if name == "a key of":
        return f"a key of {_where(tuple(steps))}"
    return f"{name}{''.join(f'[{step!r}]' for step in steps)}"
