"""Filters: conditions on the top-level fields of a memory's value, parsed once into a small tree.

A filter is a dict, and all of it must hold::

    {"kind": "note"}                           the field equals this JSON value
    {"kind": ["note", "task"]}                 it is one of these, or is a list that shares an element with them
    {"size": {"$gte": 10, "$lt": 20}}          every operator holds
    {"$or": [{"kind": "note"}, {"size": 1}]}   one of these filters holds; also $and, and $not of one filter

Operators under a field: ``$eq $ne $gt $gte $lt $lte $in $nin $exists $contains``, and ``$not`` of a dict of operators.
A dict without ``$`` names is an object to equal. Names are literal: "a.b" is one field, not a path. A name at the top
that starts with ``$`` is always an operator, so that a field with such a name cannot be filtered on.

A memory without the field meets only ``$ne``, ``$nin``, ``$not`` and ``{"$exists": False}``; None means a stored null.
What `match` says is the meaning; a backend that cannot express a condition exactly asks for more, then checks by it.
"""

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from dataclasses import field as attribute
from typing import Any, Final, Literal, TypeAlias, cast

from teffmem.errors import FilterError
from teffmem.items import json_copy

__all__ = ["All", "AnyOf", "Condition", "FieldTest", "Not", "Operator", "match", "parse", "same"]

Operator: TypeAlias = Literal["$eq", "$in", "$contains", "$exists", "$gt", "$gte", "$lt", "$lte"]
"""What a parsed test can ask. ``$ne`` and ``$nin`` are parsed into `Not` of ``$eq`` and ``$in``."""


@dataclass(frozen=True, slots=True, eq=False)
class FieldTest:
    """A question about one field; false where the field is missing, unless it is ``$exists``.

    Attributes:
        field: The field's literal name.
        operator: What is asked.
        operand: ``$eq`` and ``$contains``: any JSON value. ``$in``: a list of them. ``$exists``: a bool. The four
            ranges: a number (no bool) or a string.
    """

    field: str
    operator: Operator
    operand: Any = attribute(repr=False)


@dataclass(frozen=True, slots=True, eq=False)
class Not:
    """Holds where ``condition`` does not, a missing field included."""

    condition: "Condition"


@dataclass(frozen=True, slots=True, eq=False)
class All:
    """Holds where every one of ``conditions`` does; of none: everywhere."""

    conditions: tuple["Condition", ...]


@dataclass(frozen=True, slots=True, eq=False)
class AnyOf:
    """Holds where at least one of ``conditions`` does; of none: nowhere."""

    conditions: tuple["Condition", ...]


Condition: TypeAlias = FieldTest | Not | All | AnyOf
"""A parsed filter. Nodes are compared by identity: Python takes True and 1 for equal, and a filter does not."""


def parse(given: object) -> Condition | None:
    """Return the condition that a filter means, sharing nothing with it; None for None and {}, which mean no filter.

    Raises:
        FilterError: It is no dict, holds something that is not JSON, nests deeper than 100 levels, has an unknown
            operator, or an operator's operand has the wrong shape.
    """
    if given is None:
        return None
    try:
        filter_ = json_copy(given, "filter")
    except (TypeError, ValueError) as error:
        raise FilterError(str(error)) from None
    return None if filter_ == {} else _parse_filter(filter_, "filter")


def match(condition: Condition | None, value: Mapping[str, Any]) -> bool:
    """Tell whether a memory's value meets a condition; None is met by all. Never raises for a JSON object."""
    if condition is None:
        return True
    if isinstance(condition, All):
        return all(match(part, value) for part in condition.conditions)
    if isinstance(condition, AnyOf):
        return any(match(part, value) for part in condition.conditions)
    if isinstance(condition, Not):
        return not match(condition.condition, value)
    if condition.operator == "$exists":
        return (condition.field in value) is condition.operand
    return condition.field in value and _HOLDS[condition.operator](value[condition.field], condition.operand)


def same(one: Any, other: Any) -> bool:
    """Tell whether two JSON values are equal: 1 is 1.0, but neither True nor "1"; the order of names is nothing."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(part, other[name]) for name, part in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return isinstance(one, bool) is isinstance(other, bool) and bool(one == other)


def _is_among(stored: Any, operands: list[Any]) -> bool:
    candidates = [stored, *stored] if isinstance(stored, list) else [stored]
    return any(same(candidate, operand) for candidate in candidates for operand in operands)


def _contains(stored: Any, operand: Any) -> bool:
    if isinstance(stored, list):
        return any(same(element, operand) for element in stored)
    return isinstance(stored, str) and isinstance(operand, str) and operand in stored


def _in_order(compare: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    return lambda stored, operand: _ordering(stored) == _ordering(operand) != "none" and compare(stored, operand)


def _ordering(value: Any) -> Literal["number", "text", "none"]:
    """Name the order that a value has a place in."""
    if isinstance(value, str):
        return "text"
    return "number" if isinstance(value, int | float) and not isinstance(value, bool) else "none"


_HOLDS: Final[dict[Operator, Callable[[Any, Any], bool]]] = {
    "$eq": same,
    "$in": _is_among,
    "$contains": _contains,
    "$gt": _in_order(operator.gt),
    "$gte": _in_order(operator.ge),
    "$lt": _in_order(operator.lt),
    "$lte": _in_order(operator.le),
}
_NEGATED: Final[dict[str, Operator]] = {"$ne": "$eq", "$nin": "$in"}
_LOGICAL: Final = ("$and", "$or", "$not")
_UNDER_A_FIELD: Final = (*_HOLDS, *_NEGATED, "$exists", "$not")


def _parse_filter(filter_: Any, where: str) -> Condition:
    if not isinstance(filter_, dict):
        raise FilterError(f"{where} must be a dict of conditions, not {_shape(filter_)}")
    return _all([_parse_entry(name, operand, f"{where}[{name!r}]") for name, operand in filter_.items()])


def _parse_entry(name: str, operand: Any, where: str) -> Condition:
    if not name.startswith("$"):
        return _parse_field(name, operand, where)
    if name == "$not":
        return Not(_parse_filter(operand, where))
    if name not in _LOGICAL:
        raise FilterError(
            f"{where}: no such operator here; allowed are {' '.join(_LOGICAL)}, and under a field's name "
            f"{' '.join(_UNDER_A_FIELD)}"
        )
    if not isinstance(operand, list):
        raise FilterError(f"{where} takes a list of filters, not {_shape(operand)}")
    parts = [_parse_filter(part, f"{where}[{i}]") for i, part in enumerate(operand)]
    return _all(parts) if name == "$and" else AnyOf(tuple(parts))


def _parse_field(name: str, operand: Any, where: str) -> Condition:
    if isinstance(operand, list):
        return FieldTest(name, "$in", operand)
    if isinstance(operand, dict) and any(key.startswith("$") for key in operand):
        return _parse_operators(name, operand, where)
    return FieldTest(name, "$eq", operand)


def _parse_operators(field: str, operators: dict[str, Any], where: str) -> Condition:
    for name in operators:
        if name not in _UNDER_A_FIELD:
            raise FilterError(
                f"{where}[{name!r}]: no such operator; allowed under a field are {' '.join(_UNDER_A_FIELD)}, or an "
                "object to equal, without names that start with '$' ({'$eq': ...} takes any object)"
            )
    return _all([_parse_test(field, name, operand, f"{where}[{name!r}]") for name, operand in operators.items()])


def _parse_test(field: str, name: str, operand: Any, where: str) -> Condition:
    if name == "$not":
        if not isinstance(operand, dict) or not operand:
            raise FilterError(f"{where} takes a dict of operators, such as {{'$gt': 1}}, not {_shape(operand)}")
        return Not(_parse_operators(field, operand, where))
    if name in ("$in", "$nin") and not isinstance(operand, list):
        raise FilterError(f"{where} takes a list of values, not {_shape(operand)}")
    if name == "$exists" and not isinstance(operand, bool):
        raise FilterError(f"{where} takes True or False, not {_shape(operand)}")
    if name in ("$gt", "$gte", "$lt", "$lte") and _ordering(operand) == "none":
        raise FilterError(f"{where} takes a number or a string, not {_shape(operand)}")
    if name in _NEGATED:
        return Not(FieldTest(field, _NEGATED[name], operand))
    return FieldTest(field, cast("Operator", name), operand)


def _all(conditions: list[Condition]) -> Condition:
    return conditions[0] if len(conditions) == 1 else All(tuple(conditions))


def _shape(operand: Any) -> str:
    """Describe an operand without showing what may be private in it."""
    if isinstance(operand, str | list | dict):
        return f"{type(operand).__name__} of length {len(operand)}"
    return "None" if operand is None else type(operand).__name__
