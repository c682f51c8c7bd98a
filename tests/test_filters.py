"""The law of filters, by example and by algebra."""

import copy
import datetime
import json
import math
import re
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from teffmem.errors import FilterError
from teffmem.filters import All, AnyOf, FieldTest, Not, match, parse, same
from tests import strategies

MISSING: dict[str, Any] = {}


def meets(value: dict[str, Any], filter_: Any) -> bool:
    return match(parse(filter_), value)


def chosen(filter_: Any, stored: dict[str, dict[str, Any]]) -> str:
    """Return the names of the stored values that a filter chooses, joined by blanks."""
    condition = parse(filter_)
    return " ".join(name for name, value in stored.items() if match(condition, value))


NUMBERS: dict[str, dict[str, Any]] = {
    "9": {"n": 9},
    "10": {"n": 10},
    "10.0": {"n": 10.0},
    "100": {"n": 100},
    "text": {"n": "10"},
    "null": {"n": None},
    "true": {"n": True},
    "list": {"n": [10]},
    "missing": {},
}


@pytest.mark.parametrize(
    ("filter_", "names"),
    [
        ({"n": 10}, "10 10.0"),
        ({"n": 10.0}, "10 10.0"),
        ({"n": "10"}, "text"),
        ({"n": True}, "true"),
        ({"n": 1}, ""),
        ({"n": {"$gte": 10}}, "10 10.0 100"),
        ({"n": {"$gt": 10}}, "100"),
        ({"n": {"$lt": 10}}, "9"),
        ({"n": {"$lte": 10}}, "9 10 10.0"),
        ({"n": {"$gte": "1"}}, "text"),
        ({"n": {"$gt": 9, "$lt": 100}}, "10 10.0"),
        ({"n": {"$ne": 10}}, "9 100 text null true list missing"),
        ({"n": {"$not": {"$gte": 10}}}, "9 text null true list missing"),
    ],
)
def test_b5_numbers_are_compared_as_numbers(filter_: Any, names: str) -> None:
    """Numbers equal and order as numbers, texts as texts, and a mixed pair matches nothing and raises nothing."""
    assert chosen(filter_, NUMBERS) == names


@pytest.mark.parametrize(
    ("filter_", "said"),
    [
        ({"tenant": {"$foo": 1}}, "$gte"),
        ({"$nor": [{"a": 1}]}, "$and $or $not"),
        ({"$gt": 5}, "$and $or $not"),
        ({"$and": {"a": 1}}, "list of filters"),
        ({"$or": "a"}, "list of filters"),
        ({"$and": [{"a": 1}, None]}, "filter['$and'][1]"),
        ({"$not": [{"a": 1}]}, "filter['$not'] must be a dict"),
        ({"$not": None}, "filter['$not'] must be a dict"),
        ({"a": {"$gt": 1, "b": 2}}, "filter['a']['b']"),
        ({"a": {"$and": [{"$gt": 1}]}}, "filter['a']['$and']"),
        ({"a": {"$not": {}}}, "dict of operators"),
        ({"a": {"$not": {"b": 1}}}, "filter['a']['$not']['b']"),
        ({"a": {"$not": 1}}, "dict of operators"),
        ({"a": {"$in": "news"}}, "list of values"),
        ({"a": {"$nin": {"b": 1}}}, "list of values"),
        ({"a": {"$exists": 1}}, "True or False"),
        ({"a": {"$gt": None}}, "number or a string"),
        ({"a": {"$gte": True}}, "number or a string"),
        ({"a": {"$lt": [1]}}, "number or a string"),
        ({"a": {"$lte": {"b": 1}}}, "number or a string"),
        ({"a": {1, 2}}, "set"),
        ({"a": (1, 2)}, "tuple"),
        ({"a": b"x"}, "bytes"),
        ({"a": datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)}, "datetime"),
        ({"a": {"$lt": datetime.date(2026, 1, 1)}}, "date"),
        ({"a": math.nan}, "nan"),
        ({"a": {"$gt": math.inf}}, "inf"),
        ({"a": "\ud800"}, "surrogate"),
        ({1: 2}, "strings"),
        ({"a": {"$eq": {None: 1}}}, "strings"),
        ([], "dict"),
        ("a", "dict"),
        ([("a", 1)], "tuple"),
        (0, "dict"),
        (False, "dict"),
    ],
)
def test_b7_what_has_no_meaning_is_refused(filter_: Any, said: str) -> None:
    """An unknown operator or a wrong shape is a FilterError that says where and what is allowed; nothing is dropped."""
    with pytest.raises(FilterError, match=re.escape(said)):
        parse(filter_)


def test_b7_an_empty_or_beside_a_condition_matches_nothing() -> None:
    """A condition that nothing can meet is not dropped because another stands beside it."""
    assert not meets({"a": 1}, {"a": 1, "$or": []})


@pytest.mark.parametrize(
    "filter_",
    [{"a') = 'x' OR 1=1 --": "y"}, {"a": "x' OR '1'='1"}, {"$or": [{"['text']": "x"}]}, {'a"]': 1}],
)
def test_b9_names_and_operands_are_literal(filter_: Any) -> None:
    """A name or text made to break out of a query is a name or text like any other, and finds only itself."""
    assert not meets({"a": "x", "text": "x"}, filter_)


def test_b9_a_crafted_name_finds_the_field_that_bears_it() -> None:
    """A field with an odd name can be filtered on by exactly that name; a dot in it is no path."""
    odd = "a') = 'x' OR 1=1 --"
    assert meets({odd: "y"}, {odd: "y"})
    assert meets({"a.b": 1}, {"a.b": 1})
    assert not meets({"a": {"b": 1}}, {"a.b": 1})
    assert meets({"": 1}, {"": 1})


def test_b9_a_path_for_a_name_is_refused() -> None:
    """A name that starts with $ is an operator, so that a JSON path is refused, not looked up."""
    with pytest.raises(FilterError, match=re.escape("filter['$.text']")):
        parse({"$.text": "x"})


TAGS: dict[str, dict[str, Any]] = {
    "news": {"tag": "news"},
    "n": {"tag": "n"},
    "list": {"tag": ["news", "old"]},
    "nested": {"tag": [["news"]]},
    "empty": {"tag": []},
    "missing": {},
}


@pytest.mark.parametrize(
    ("filter_", "names"),
    [
        (None, "news n list nested empty missing"),
        ({}, "news n list nested empty missing"),
        ({"$and": []}, "news n list nested empty missing"),
        ({"$and": [{}]}, "news n list nested empty missing"),
        ({"$or": []}, ""),
        ({"$or": [{}]}, "news n list nested empty missing"),
        ({"$not": {}}, ""),
        ({"tag": []}, ""),
        ({"tag": {"$in": []}}, ""),
        ({"tag": {"$nin": []}}, "news n list nested empty missing"),
        ({"tag": ["news"]}, "news list"),
        ({"tag": {"$in": ["news", "x"]}}, "news list"),
        ({"tag": {"$nin": ["news"]}}, "n nested empty missing"),
        ({"tag": "news"}, "news"),
        ({"tag": {"$eq": ["news", "old"]}}, "list"),
        ({"tag": {"$eq": ["old", "news"]}}, ""),
        ({"tag": {"$eq": []}}, "empty"),
        ({"tag": [["news"]]}, "nested"),
        ({"tag": [["news", "old"]]}, "list"),
        ({"tag": {"$contains": "news"}}, "news list"),
        ({"tag": {"$contains": "ew"}}, "news"),
        ({"tag": {"$contains": ""}}, "news n"),
        ({"tag": {"$contains": ["news"]}}, "nested"),
    ],
)
def test_b11_nothing_asked_and_no_choice_differ(filter_: Any, names: str) -> None:
    """No filter matches all, an empty choice nothing, and a text is never taken apart into letters."""
    assert chosen(filter_, TAGS) == names


SOURCES: dict[str, dict[str, Any]] = {
    "a": {"source": "a", "n": 0},
    "null": {"source": None, "n": None},
    "false": {"source": False, "n": False},
    "missing": {},
}


@pytest.mark.parametrize(
    ("filter_", "names"),
    [
        ({"source": None}, "null"),
        ({"source": [None, "a"]}, "a null"),
        ({"source": {"$eq": None}}, "null"),
        ({"source": {"$ne": None}}, "a false missing"),
        ({"source": {"$ne": "a"}}, "null false missing"),
        ({"source": {"$nin": ["a", None]}}, "false missing"),
        ({"source": {"$exists": True}}, "a null false"),
        ({"source": {"$exists": False}}, "missing"),
        ({"$not": {"source": "a"}}, "null false missing"),
        ({"source": {"$not": {"$eq": "a"}}}, "null false missing"),
        ({"source": {"$not": {"$exists": True}}}, "missing"),
        ({"n": 0}, "a"),
        ({"n": False}, "false"),
        ({"n": {"$lte": 0}}, "a"),
        ({"n": {"$contains": None}}, ""),
    ],
)
def test_b13_missing_null_and_falsy_are_three_things(filter_: Any, names: str) -> None:
    """A missing field meets only $ne, $nin, $not and $exists: False; None means a stored null; 0 is not False."""
    assert chosen(filter_, SOURCES) == names


def test_a_dict_without_operators_is_an_object_to_equal() -> None:
    """An object equals an object of the same names and values in any order; {} equals the empty one."""
    assert meets({"o": {"x": 1, "y": [True]}}, {"o": {"y": [True], "x": 1.0}})
    assert not meets({"o": {"x": 1, "y": 2}}, {"o": {"x": 1}})
    assert not meets({"o": {"x": True}}, {"o": {"x": 1}})
    assert chosen({"o": {}}, {"empty": {"o": {}}, "full": {"o": {"x": 1}}, "list": {"o": []}, "none": {}}) == "empty"
    assert meets({"o": {"$x": 1}}, {"o": {"$eq": {"$x": 1}}})


def test_texts_are_ordered_by_code_point() -> None:
    """Texts order by code point: capitals before small letters, what lies beyond 16 bits last."""
    assert meets({"s": "Z"}, {"s": {"$lt": "a"}})
    assert meets({"s": "\U0001f600"}, {"s": {"$gt": "\uffff"}})
    assert not meets({"s": "10"}, {"s": {"$gt": "9"}})


def test_whole_numbers_keep_every_digit() -> None:
    """An integer beyond a float's precision is not equal to its neighbour."""
    assert not meets({"n": 2**53 + 1}, {"n": 2**53})
    assert not meets({"n": 2**53 + 1}, {"n": float(2**53)})
    assert meets({"n": 2**53 + 1}, {"n": {"$gt": float(2**53)}})
    assert meets({"n": 10**400}, {"n": {"$gt": 1e308}})


def test_b15_a_condition_shares_nothing_with_the_filter() -> None:
    """Changing a filter after it was parsed does not change what the condition means."""
    filter_: dict[str, Any] = {"a": ["x"], "o": {"$eq": {"y": [1]}}}
    condition = parse(filter_)
    filter_["a"].append("z")
    filter_["o"]["$eq"]["y"].append(2)
    assert match(condition, {"a": "x", "o": {"y": [1]}})
    assert not match(condition, {"a": "z", "o": {"y": [1]}})


def test_nesting_is_bounded() -> None:
    """A filter may nest 100 levels; a deeper one, or one that holds itself, is a FilterError."""
    deep: dict[str, Any] = {"a": 1}
    for _ in range(98):
        deep = {"$not": deep}
    assert meets({"a": 1}, deep)
    with pytest.raises(FilterError, match="100 levels"):
        parse({"$not": {"$not": deep}})
    with pytest.raises(FilterError, match="100 levels"):
        parse({"a": {"$eq": json.loads("[" * 200 + "]" * 200)}})
    endless: dict[str, Any] = {}
    endless["$not"] = endless
    with pytest.raises(FilterError, match="100 levels"):
        parse(endless)


@pytest.mark.parametrize(
    "filter_",
    [
        {"a": {"$in": "SECRET"}},
        {"a": {"$exists": "SECRET"}},
        {"a": {"$gt": ["SECRET"]}},
        {"$and": "SECRET"},
        {"$or": ["SECRET"]},
        {"a": "SECRET\ud800"},
        {"a": b"SECRET"},
        "SECRET",
    ],
)
def test_no_message_shows_an_operand(filter_: Any) -> None:
    """An error names fields, operators, types and lengths, never what was asked for; nor does a condition's repr."""
    with pytest.raises(FilterError) as refusal:
        parse(filter_)
    assert "SECRET" not in str(refusal.value)
    assert refusal.value.__suppress_context__ or refusal.value.__context__ is None
    assert "SECRET" not in repr(parse({"a": ["SECRET"]}))


def test_the_tree_has_few_kinds() -> None:
    """A backend meets four kinds of node: $ne and $nin are negations, and one condition alone is not wrapped."""
    plain = parse({"a": 1})
    assert isinstance(plain, FieldTest)
    assert (plain.field, plain.operator, plain.operand) == ("a", "$eq", 1)
    negated = parse({"a": {"$nin": [1]}})
    assert isinstance(negated, Not)
    assert isinstance(negated.condition, FieldTest)
    assert negated.condition.operator == "$in"
    assert isinstance(parse({"a": 1, "b": 1}), All)
    assert isinstance(parse({"$or": [{"a": 1}]}), AnyOf)


@given(strategies.values, strategies.filters, strategies.filters)
def test_logic_follows_de_morgan(value: dict[str, Any], one: dict[str, Any], other: dict[str, Any]) -> None:
    """Not (A or B) is (not A) and (not B), not (A and B) is (not A) or (not B), and not not A is A."""
    nots = [{"$not": one}, {"$not": other}]
    assert meets(value, {"$not": {"$or": [one, other]}}) == meets(value, {"$and": nots})
    assert meets(value, {"$not": {"$and": [one, other]}}) == meets(value, {"$or": nots})
    assert meets(value, {"$not": {"$not": one}}) == meets(value, one)


@given(strategies.values, strategies.filters, strategies.filters)
def test_a_further_condition_only_narrows(value: dict[str, Any], one: dict[str, Any], other: dict[str, Any]) -> None:
    """What meets A and B meets A, and what meets A meets A or B."""
    assert meets(value, {"$and": [one, other]}) == (meets(value, one) and meets(value, other))
    assert meets(value, {"$or": [one, other]}) == (meets(value, one) or meets(value, other))
    assert meets(value, {"$and": [one, other]}) <= meets(value, one) <= meets(value, {"$or": [one, other]})


@given(strategies.values, strategies.field_names, strategies.json_values, st.lists(strategies.json_values, max_size=3))
def test_negations_negate(value: dict[str, Any], field: str, operand: Any, choice: list[Any]) -> None:
    """$ne is not $eq and $nin is not $in, whatever is stored or missing."""
    assert meets(value, {field: {"$ne": operand}}) != meets(value, {field: {"$eq": operand}})
    assert meets(value, {field: {"$nin": choice}}) != meets(value, {field: {"$in": choice}})
    assert meets(value, {field: choice}) == meets(value, {field: {"$in": choice}})
    assert meets(value, {field: {"$not": {"$in": choice}}}) == meets(value, {"$not": {field: {"$in": choice}}})


@given(strategies.values, strategies.filters)
def test_an_unnamed_field_has_no_say(value: dict[str, Any], filter_: dict[str, Any]) -> None:
    """A field that a filter does not name changes nothing of its answer."""
    assert meets({**value, "unnamed": [1]}, filter_) == meets(value, filter_)


@given(strategies.filters)
def test_parsing_leaves_the_filter_alone(filter_: dict[str, Any]) -> None:
    """A filter is the same after parse and match as before."""
    before = copy.deepcopy(filter_)
    meets({"a": 1}, filter_)
    assert repr(filter_) == repr(before)


_ANYTHING = st.recursive(
    st.one_of(
        strategies.scalars,
        st.sampled_from(["$eq", "$and", "$not", "$bogus"]),
        st.binary(max_size=2),
        st.floats(),
        st.builds(object),
        st.dates(),
    ),
    lambda parts: st.one_of(
        st.lists(parts, max_size=3),
        st.tuples(parts),
        st.dictionaries(
            st.one_of(
                st.sampled_from(["a", "$and", "$or", "$not", "$in", "$gt", "$exists", "$eq", "$bogus"]),
                st.integers(),
                st.text(max_size=2),
            ),
            parts,
            max_size=3,
        ),
    ),
    max_leaves=8,
)


@given(_ANYTHING, strategies.values)
def test_anything_parses_or_is_refused(junk: Any, value: dict[str, Any]) -> None:
    """Whatever is given as a filter either means something or raises FilterError, and no other error."""
    try:
        condition = parse(junk)
    except FilterError:
        return
    assert match(condition, value) in (True, False)


def tagged(value: Any) -> Any:
    """Return a JSON value with its types made plain, so that Python's own equality is JSON's."""
    if isinstance(value, bool) or value is None:
        return ("word", repr(value))
    if isinstance(value, str):
        return ("text", tuple(map(ord, value)))
    if isinstance(value, list):
        return ("list", tuple(tagged(element) for element in value))
    if isinstance(value, dict):
        return ("object", frozenset((name, tagged(of)) for name, of in value.items()))
    return ("number", Fraction(value))


@given(strategies.json_values, strategies.json_values)
def test_equality_is_that_of_json(one: Any, other: Any) -> None:
    """Two values are the same if their types and contents are, numbers by their exact value."""
    assert same(one, other) == (tagged(one) == tagged(other))
    assert same(one, copy.deepcopy(one))
    assert same(json.loads(json.dumps(one)), one)


@given(strategies.json_values, st.one_of(strategies.numbers, strategies.short_texts))
def test_ranges_order_what_is_alike(stored: Any, bound: Any) -> None:
    """A range holds by exact value of numbers and by code points of texts, and for nothing else."""
    (kind, place), (wanted, limit) = tagged(stored), tagged(bound)
    alike = kind == wanted
    answers = {name: meets({"f": stored}, {"f": {name: bound}}) for name in ("$lt", "$lte", "$gt", "$gte")}
    assert answers == {
        "$lt": alike and place < limit,
        "$lte": alike and place <= limit,
        "$gt": alike and place > limit,
        "$gte": alike and place >= limit,
    }


@given(strategies.json_values, st.lists(strategies.json_values, max_size=3))
def test_membership_is_of_the_value_or_of_its_elements(stored: Any, choice: list[Any]) -> None:
    """A choice holds what equals one of it, and a list that shares an element with it."""
    among = {tagged(operand) for operand in choice}
    elements = {tagged(element) for element in stored} if isinstance(stored, list) else set()
    assert meets({"f": stored}, {"f": choice}) == (tagged(stored) in among or not elements.isdisjoint(among))


@given(strategies.json_values, strategies.json_values)
def test_containing_is_of_elements_and_of_parts(stored: Any, operand: Any) -> None:
    """A list contains its elements, a text its parts, and nothing else contains anything."""
    expected = False
    if isinstance(stored, list):
        expected = tagged(operand) in [tagged(element) for element in stored]
    elif isinstance(stored, str) and isinstance(operand, str):
        expected = stored.find(operand) >= 0
    assert meets({"f": stored}, {"f": {"$contains": operand}}) == expected
