"""What the property tests draw from: texts, JSON values, namespaces and filters."""

from typing import Any

from hypothesis import strategies as st

# Characters that joins, patterns, quoting, case rules and encodings trip over, among all others but surrogates.
_AWKWARD = "/:.,;|\\'\"*?%_[](){}$-#\n\t \x01\x7f\u200b\ufeff\u0301\u00e9\u00df\u0130\u0131\u6c34\U0001f600\U0010ffff"
texts = st.text(st.one_of(st.sampled_from(_AWKWARD), st.characters(exclude_categories=["Cs"])), max_size=12)
names = st.text(
    st.one_of(st.sampled_from(_AWKWARD), st.characters(exclude_categories=["Cs"], exclude_characters="\x00")),
    min_size=1,
    max_size=6,
)
namespaces = st.lists(names, max_size=4).map(tuple)

numbers = st.one_of(
    st.integers(-3, 3),
    st.integers(-(2**70), 2**70),
    st.sampled_from([-1.0, 0.0, -0.0, 0.5, 1.0, 2.0, 2.0**53, 1e300]),
    st.floats(allow_nan=False, allow_infinity=False),
)
short_texts = st.one_of(st.sampled_from(["", "a", "b", "ab", "1", "true", "A"]), texts)
scalars = st.one_of(st.none(), st.booleans(), numbers, short_texts)
json_values: st.SearchStrategy[Any] = st.recursive(
    scalars,
    lambda parts: st.one_of(st.lists(parts, max_size=3), st.dictionaries(short_texts, parts, max_size=3)),
    max_leaves=6,
)

field_names = st.sampled_from(["a", "b", "a.b", "", "\U0001f600"])
values = st.dictionaries(field_names, json_values, max_size=4)
_plain_objects = st.dictionaries(st.sampled_from(["a", "b", "x.y"]), json_values, max_size=2)
_operators = st.fixed_dictionaries(
    {},
    optional={
        "$eq": json_values,
        "$ne": json_values,
        "$gt": st.one_of(numbers, short_texts),
        "$gte": st.one_of(numbers, short_texts),
        "$lt": st.one_of(numbers, short_texts),
        "$lte": st.one_of(numbers, short_texts),
        "$in": st.lists(json_values, max_size=3),
        "$nin": st.lists(json_values, max_size=3),
        "$exists": st.booleans(),
        "$contains": json_values,
    },
).filter(bool)
operands = st.one_of(
    scalars,
    st.lists(json_values, max_size=3),
    _plain_objects,
    _operators,
    _operators.map(lambda operators: {"$not": operators}),
)
filters: st.SearchStrategy[dict[str, Any]] = st.recursive(
    st.dictionaries(field_names, operands, max_size=2),
    lambda parts: st.one_of(
        st.builds(lambda left, right: {**left, **right}, parts, parts),
        st.lists(parts, max_size=3).map(lambda some: {"$and": some}),
        st.lists(parts, max_size=3).map(lambda some: {"$or": some}),
        parts.map(lambda one: {"$not": one}),
    ),
    max_leaves=5,
)
