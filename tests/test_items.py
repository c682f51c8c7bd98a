"""Values as JSON, and what a write makes of what is there."""

import datetime
import decimal
import enum
import json
import math
import types
from collections import OrderedDict
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from teffmem.items import KEEP, Draft, Record, json_copy, json_object
from tests import strategies


def parts_of(value: Any) -> list[Any]:
    """Return every list and dict inside a value, itself included."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    nested = [part for one in inner for part in parts_of(one)]
    return [value, *nested] if isinstance(value, dict | list) else nested


@given(st.dictionaries(strategies.short_texts, strategies.json_values, max_size=4))
def test_b15_a_copy_is_equal_and_shares_nothing(value: dict[str, Any]) -> None:
    """The copy prints as the value does, is what JSON gives back, and has no list or dict in common with it."""
    copy = json_object(value)
    assert repr(copy) == repr(value)
    assert json.loads(json.dumps(copy)) == value
    assert not {id(part) for part in parts_of(copy)} & {id(part) for part in parts_of(value)}


class _Word(str, enum.Enum):  # noqa: UP042  whose str() is "_Word.ONE", unlike that of a StrEnum
    ONE = "first"


class _Number(enum.IntEnum):
    TWO = 2


def test_subclasses_become_what_json_has() -> None:
    """A member of a string Enum is kept as its text, an IntEnum and a numpy float64 as numbers, an OrderedDict as a
    dict."""
    copy = json_object(OrderedDict(text=_Word.ONE, n=_Number.TWO, x=np.float64(0.5), o=OrderedDict(a=1)))
    assert repr(copy) == "{'text': 'first', 'n': 2, 'x': 0.5, 'o': {'a': 1}}"


def test_e3_nul_and_controls_are_kept() -> None:
    """NUL, escapes and odd separators inside a text are text."""
    value = {"text": "a\x00b \x1b[31m \x7f \u2028 \ufeff", "": {"\x00": ""}}
    assert json_object(value) == value


class _Odd:
    pass


@pytest.mark.parametrize(
    "part",
    [
        {1},
        frozenset(),
        b"x",
        bytearray(b"x"),
        datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC),
        datetime.date(2026, 1, 1),
        decimal.Decimal(1),
        1 + 2j,
        (1, 2),
        range(2),
        _Odd(),
        _Odd,
        np.float32(1),
        np.bool_(True),
        np.zeros(2),
        types.MappingProxyType({"a": 1}),
        {1: "a"},
        {None: 1},
        {("a",): 1},
        {True: 1},
        pytest.param({10**5000: 1}, id="long key"),
    ],
)
def test_b17_what_json_does_not_have_is_refused(part: Any) -> None:
    """A part of another type, or a name that is no string, is a TypeError that says where it is and what it is."""
    with pytest.raises(TypeError, match=r"value\['x'\]\[1\]"):
        json_object({"text": "t", "x": [0, part]})


@pytest.mark.parametrize(
    "part",
    [
        math.nan,
        math.inf,
        -math.inf,
        pytest.param(10**4000, id="long"),
        pytest.param(-(10**5000), id="longer"),
        "\ud800",
        {"\udfff": 1},
    ],
)
def test_b17_what_cannot_be_written_is_refused(part: Any) -> None:
    """NaN, infinity, endless integers and lone surrogates are a ValueError that says where they are."""
    with pytest.raises(ValueError, match=r"value\['x'\]\[1\]"):
        json_object({"text": "t", "x": [0, part]})


@pytest.mark.parametrize("value", [None, "text", ["text"], 7, ("a", 1), types.MappingProxyType({"text": "t"})])
def test_e5_a_value_is_a_dict(value: Any) -> None:
    """What is no dict is refused with its type."""
    with pytest.raises(TypeError, match=type(value).__name__):
        json_object(value)


def nested(levels: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(levels - 1):
        value = {"a": value}
    return value


def test_nesting_is_bounded() -> None:
    """A value may nest 100 levels deep; a deeper one, or one that holds itself, is a ValueError."""
    assert json_object(nested(100)) == nested(100)
    assert json_copy([nested(99), 1], "part") == [nested(99), 1]
    with pytest.raises(ValueError, match="100 levels"):
        json_object(nested(101))
    cyclic_dict: dict[str, Any] = {"text": "t"}
    cyclic_dict["self"] = cyclic_dict
    cyclic_list: list[Any] = []
    cyclic_list += [cyclic_list, cyclic_list]
    for cyclic in (cyclic_dict, {"text": "t", "x": cyclic_list}):
        with pytest.raises(ValueError, match="100 levels"):
            json_object(cyclic)


def test_no_message_shows_what_a_value_holds() -> None:
    """Errors name places, types and lengths, and nothing of a text."""
    for part in ("SECRET\ud800", [b"SECRET"], {"a": {"SECRET"}}, decimal.Decimal(1234567)):
        with pytest.raises((TypeError, ValueError)) as refusal:
            json_object({"text": part})
        assert "SECRET" not in str(refusal.value)
        assert "1234567" not in str(refusal.value)


def test_json_copy_names_what_it_was_given() -> None:
    """The caller's name for the whole stands in the message."""
    assert json_copy([1, {"a": None}], "operand") == [1, {"a": None}]
    with pytest.raises(TypeError, match=r"operand\[0\] is a set"):
        json_copy([set()], "operand")


PREVIOUS = Record(
    namespace=("u",),
    key="k",
    value={"text": "old"},
    text=None,
    indexed=True,
    thread="talk",
    stamp=50,
    place=40,
    created_at=10.0,
    updated_at=20.0,
    ttl=5.0,
    expires_at=100.0,
)
DRAFT = Draft(namespace=("u",), key="k", value={"text": "new"}, now=30.0)


def written(draft: Draft, previous: Record | None = PREVIOUS, *, stamp: int = 60, now: float = 30.0) -> Record:
    record = draft.over(previous, stamp=stamp, now=now)
    assert record is not None
    return record


def test_a_first_write_begins_everything() -> None:
    """With nothing there, the stamp is also the place, now is also the creation, and there is no thread or expiry."""
    record = written(DRAFT, None)
    assert (record.stamp, record.place) == (60, 60)
    assert (record.created_at, record.updated_at) == (30.0, 30.0)
    assert (record.thread, record.ttl, record.expires_at) == (None, None, None)
    assert (record.namespace, record.key, record.value, record.indexed_text) == (("u",), "k", {"text": "new"}, "new")


def test_an_overwrite_keeps_where_it_came_from_and_nothing_else() -> None:
    """Creation, place and thread stay; value, stamp, time of update and expiry are the draft's."""
    record = written(DRAFT)
    assert (record.created_at, record.place, record.thread) == (10.0, 40, "talk")
    assert (record.updated_at, record.stamp, record.ttl, record.expires_at) == (30.0, 60, None, None)
    assert record.value == {"text": "new"}


@pytest.mark.parametrize(("thread", "kept"), [(KEEP, "talk"), (None, None), ("other", "other"), ("", "")])
def test_a_thread_is_kept_taken_away_or_changed(thread: Any, kept: str | None) -> None:
    """A thread that is not given stays, None takes it away, and a name replaces it."""
    assert written(replace(DRAFT, thread=thread)).thread == kept


def test_what_has_expired_counts_as_nothing() -> None:
    """From its moment of expiry on, a record leaves no creation, place or thread to what is put over it."""
    alive = written(DRAFT, now=99.9)
    assert (alive.created_at, alive.place, alive.thread) == (10.0, 40, "talk")
    for now in (100.0, 1000.0):
        record = written(DRAFT, now=now)
        assert (record.created_at, record.place, record.thread) == (30.0, 60, None)


def test_import_sets_its_own_times() -> None:
    """Given times, places and moments of expiry win over what is there, zero too."""
    record = written(replace(DRAFT, created_at=0.0, place=0, expires_at=0.0, ttl=7.0))
    assert (record.created_at, record.place, record.expires_at, record.ttl) == (0.0, 0, 0.0, 7.0)


def test_c1_expiry_is_now_and_ttl() -> None:
    """Without a given moment, a record expires ttl seconds after the write, or never."""
    assert written(replace(DRAFT, ttl=2.5)).expires_at == 32.5
    assert written(replace(DRAFT, ttl=None)).expires_at is None


def test_compare_and_put_needs_the_very_record() -> None:
    """only_over writes over the live record with that stamp, and over nothing else."""
    wanted = replace(DRAFT, only_over=50)
    assert wanted.over(PREVIOUS, stamp=60, now=30.0) is not None
    assert wanted.over(replace(PREVIOUS, stamp=51), stamp=60, now=30.0) is None
    assert wanted.over(None, stamp=60, now=30.0) is None
    assert wanted.over(PREVIOUS, stamp=60, now=100.0) is None
    assert replace(DRAFT, only_over=0).over(PREVIOUS, stamp=60, now=30.0) is None


def test_only_if_newer_yields_to_what_is_as_new() -> None:
    """only_if_newer writes over an older record, an expired one or nothing, and not over one of the same time."""
    wanted = replace(DRAFT, only_if_newer=True)
    assert wanted.over(PREVIOUS, stamp=60, now=30.0) is not None
    assert wanted.over(None, stamp=60, now=30.0) is not None
    for updated_at in (30.0, 31.0):
        newer = replace(PREVIOUS, updated_at=updated_at)
        assert wanted.over(newer, stamp=60, now=30.0) is None
        assert wanted.over(newer, stamp=60, now=100.0) is not None


def test_the_indexed_text_is_the_own_one_or_the_values() -> None:
    """A text of its own is indexed instead of the value's, and an unindexed record has none, whatever it holds."""
    assert PREVIOUS.indexed_text == "old"
    assert replace(PREVIOUS, text="own", value={}).indexed_text == "own"
    assert replace(PREVIOUS, indexed=False, value={}).indexed_text is None
    assert replace(PREVIOUS, indexed=False, text="own").indexed_text is None


def test_a_record_is_live_until_its_moment() -> None:
    """Gone when now >= expires_at; without a moment never."""
    assert PREVIOUS.is_live(99.999)
    assert not PREVIOUS.is_live(100.0)
    assert replace(PREVIOUS, expires_at=None).is_live(1e18)
    assert not replace(PREVIOUS, expires_at=0.0).is_live(0.0)
