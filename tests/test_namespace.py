"""Namespaces: what may name a place, and how it is kept."""

import re
import uuid
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from teffmem import namespace as ns
from tests import strategies

Path = tuple[str, ...]


def code_points(path: Path) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(map(ord, segment)) for segment in path)


# Few letters, so that paths often share a beginning, also one that ends within a segment.
near_names = st.text(st.sampled_from("a:*\u0001\U0001f600"), min_size=1, max_size=2)
near_paths = st.lists(near_names, max_size=3).map(tuple)
paths = st.one_of(strategies.namespaces, near_paths)


@given(paths)
def test_encoding_is_lossless(path: Path) -> None:
    """Any path comes back from its bytes, whatever its segments hold."""
    assert ns.decode(ns.encode(path)) == path
    assert ns.check(list(path)) == path


@given(paths, paths)
def test_a3_encoding_is_injective_and_keeps_the_order(one: Path, other: Path) -> None:
    """Bytes are equal only where paths are, and are ordered as code points are, a parent before its children."""
    first, second = ns.encode(one), ns.encode(other)
    assert (first == second) == (one == other)
    assert (first < second) == (code_points(one) < code_points(other))


@given(paths, paths)
def test_a1_a_subtree_is_what_begins_with_its_top(path: Path, top: Path) -> None:
    """Whole segments decide what lies below a top; the encoded bytes, and the range they span, say the same."""
    below = list(path[: len(top)]) == list(top)
    low = ns.encode(top)
    assert ns.starts_with(path, top) == below
    assert ns.encode(path).startswith(low) == below
    assert (low <= ns.encode(path) < low + b"\xff") == below


def test_a1_a_sibling_with_the_same_first_letters_is_outside() -> None:
    """("users", "u10") does not lie under ("users", "u1")."""
    assert ns.starts_with(("users", "u1", "work"), ("users", "u1"))
    assert not ns.starts_with(("users", "u10"), ("users", "u1"))
    assert not ns.starts_with(("users",), ("users", "u1"))
    assert ns.starts_with(("users",), ())


@pytest.mark.parametrize("other", [("team", "a", "b"), ("team", "a:b"), ("team:a", "b"), ("team", "a", "b", "b")])
def test_a3_separators_in_segments_do_not_collide(other: Path) -> None:
    """Paths that look alike when joined are kept apart."""
    assert ns.encode(other) != ns.encode(("team", "a::b"))


@given(paths)
def test_a_lineage_leads_down_to_the_namespace(path: Path) -> None:
    """The lineage begins with the root, grows by one segment a step, and ends with the namespace."""
    lineage = list(ns.lineage(path))
    assert lineage[0] == ()
    assert lineage[-1] == path
    assert [len(step) for step in lineage] == list(range(len(path) + 1))
    assert all(ns.starts_with(path, step) for step in lineage)


@given(paths, near_paths, near_paths)
def test_a9_only_the_star_is_a_pattern(path: Path, prefix: Path, suffix: Path) -> None:
    """A pattern's star is any one segment, and everything else in a pattern is itself."""

    def fits(segments: list[str], pattern: Path) -> bool:
        expression = "".join("[^\0]+\0" if part == "*" else re.escape(part) + "\0" for part in pattern)
        return re.fullmatch(expression, "".join(segment + "\0" for segment in segments)) is not None

    expected = any(fits(list(path[:i]), prefix) for i in range(len(path) + 1)) and any(
        fits(list(path[i:]), suffix) for i in range(len(path) + 1)
    )
    assert ns.matches(path, prefix=prefix, suffix=suffix) == expected


@pytest.mark.parametrize("pattern", ["%", "a_c", "a?c", "[a]bc", ".*", "**", "A", "abc*", "*bc", "a\\*c"])
def test_a9_wildcards_of_other_languages_are_literal(pattern: str) -> None:
    """Percent, underscore, brackets and a star within a segment match themselves alone."""
    assert not ns.matches(("users", "abc"), prefix=("users", pattern), suffix=())
    assert ns.matches(("users", pattern), prefix=("users", pattern), suffix=(pattern,))


def test_prefix_and_suffix_may_overlap() -> None:
    """A path of two segments may begin with two and end with the same two."""
    assert ns.matches(("a", "b"), prefix=("a", "b"), suffix=("a", "*"))
    assert not ns.matches(("a",), prefix=("a", "b"), suffix=())
    assert ns.matches((), prefix=(), suffix=())


def test_a_string_is_one_segment() -> None:
    """A bare string is a path of one segment; a list becomes a tuple; nothing is trimmed, folded or split."""
    assert ns.check("users/u1") == ("users/u1",)
    assert ns.check(["users", "u1"]) == ("users", "u1")
    assert ns.check(()) == ()
    assert ns.check((" A ", "é", "e\u0301")) == (" A ", "é", "e\u0301")


@pytest.mark.parametrize("segment", [7, 1.5, True, None, uuid.UUID(int=1), b"u1", ["u1"], object])
def test_a7_a_segment_that_is_no_string_is_refused(segment: Any) -> None:
    """Nothing is turned into a string on the way; the error names the segment, its type and the namespace."""
    with pytest.raises(TypeError) as refusal:
        ns.check(("users", segment))
    assert repr(segment) in str(refusal.value)
    assert repr(("users", segment)) in str(refusal.value)
    assert type(segment).__name__ in str(refusal.value)


@pytest.mark.parametrize("segment", ["", "a\x00b", "\x00", "\ud800", "a\udfff"])
def test_a7_a_segment_that_cannot_be_kept_is_refused(segment: str) -> None:
    """Nothing, NUL and lone surrogates name no place; the error names the segment and the namespace."""
    with pytest.raises(ValueError, match="segment") as refusal:
        ns.check(("users", segment))
    assert repr(segment) in str(refusal.value)
    assert repr(("users", segment)) in str(refusal.value)
    with pytest.raises(ValueError, match="segment"):
        ns.check(segment)


@pytest.mark.parametrize("whole", [None, 7, b"users", {"users"}, {"users": 1}, iter(["users"])])
def test_a_namespace_is_a_tuple_a_list_or_a_string(whole: Any) -> None:
    """Other collections have no order or are read once, and are refused with their type."""
    with pytest.raises(TypeError, match=type(whole).__name__):
        ns.check(whole)


@pytest.mark.parametrize(("key", "error"), [(7, TypeError), (None, TypeError), ("", ValueError), ("a\x00", ValueError)])
def test_a_key_follows_the_rules_of_a_segment(key: Any, error: type[Exception]) -> None:
    """What cannot be a segment cannot be a key; whatever else a string holds, it can."""
    with pytest.raises(error, match="key"):
        ns.check_key(key)
    assert ns.check_key("o'brien's note::2026\n%") == "o'brien's note::2026\n%"


def test_a_checked_name_is_a_plain_string() -> None:
    """A string of a subclass is kept as the text it is, so that it equals what comes back from a store."""

    class Name(str):
        __slots__ = ()

        def __eq__(self, other: object) -> bool:
            return False

        __hash__ = str.__hash__

    assert type(ns.check((Name("u1"),))[0]) is str
    assert type(ns.check(Name("u1"))[0]) is str
    assert type(ns.check_key(Name("u1"))) is str
