"""Filters as SQL: a condition on ``items.value`` that holds wherever the filter does, and seldom elsewhere.

SQLite's JSON functions know no difference between some values that a filter tells apart, and older ones round numbers
their own way, so that `filters.match` has the last word on every row that comes back.
"""

import json

from teffmem.filters import All, AnyOf, Condition, FieldTest

__all__ = ["narrowing"]

Sql = tuple[str, list[object]]

_ANY: Sql = ("1", [])
_MOST_OPERANDS = 50
_EXACT = 2**53  # integers up to here are the same as floats
_SLACK = 1e-9  # relative: more than SQLite's reading of a number may be off


def narrowing(condition: Condition | None) -> Sql:
    """Return SQL, with its parameters, that is true of every value that meets the condition."""
    sql, parameters = _ANY if condition is None else _of(condition)
    if sql == "1":
        return _ANY
    return f"(NOT json_valid(items.value) OR {sql})", parameters  # what is damaged is for the reader to report


def _of(condition: Condition) -> Sql:
    if isinstance(condition, All):
        return _joined(" AND ", [part for part in map(_of, condition.conditions) if part != _ANY], empty="1")
    if isinstance(condition, AnyOf):
        parts = [_of(part) for part in condition.conditions]
        return _ANY if _ANY in parts else _joined(" OR ", parts, empty="0")
    return _of_field(condition) if isinstance(condition, FieldTest) else _ANY


def _joined(word: str, parts: list[Sql], *, empty: str) -> Sql:
    if not parts:
        return empty, []
    return f"({word.join(sql for sql, _ in parts)})", [value for _, values in parts for value in values]


def _of_field(test: FieldTest) -> Sql:
    if json.dumps(test.field, ensure_ascii=False) != f'"{test.field}"' or len(_operands(test)) > _MOST_OPERANDS:
        return _ANY  # SQLite compares names as they are written, escapes and all
    if test.operator == "$exists":
        return f"{'' if test.operand else 'NOT '}EXISTS (SELECT 1 FROM {_FIELD})", [test.field]
    sql, parameters = _of_operand(test)
    return f"EXISTS (SELECT 1 FROM {_FIELD} AND {sql})", [test.field, *parameters]


_FIELD = "json_each(items.value) AS field WHERE field.key = ?"


def _operands(test: FieldTest) -> list[object]:
    return test.operand if test.operator == "$in" else [test.operand]


def _of_operand(test: FieldTest) -> Sql:
    if test.operator == "$eq":
        return _equal(test.operand)
    if test.operator == "$in":
        return _joined(" OR ", [("field.type = 'array'", []), *map(_equal, test.operand)], empty="0")
    if test.operator == "$contains":
        return "field.type IN ('array', 'text')", []
    return _beyond(test.operand, upwards=test.operator in ("$gt", "$gte"))


def _equal(operand: object) -> Sql:
    if isinstance(operand, str):
        return _text("=", operand)
    if isinstance(operand, bool) or operand is None:
        return f"field.type = '{json.dumps(operand)}'", []
    if isinstance(operand, int | float):
        if abs(operand) > _EXACT:
            return _IS_NUMBER, []
        slack = abs(operand) * _SLACK
        return f"({_IS_NUMBER} AND field.atom BETWEEN ? AND ?)", [operand - slack, operand + slack]
    return f"field.type = '{'array' if isinstance(operand, list) else 'object'}'", []


_IS_NUMBER = "field.type IN ('integer', 'real')"


def _beyond(operand: str | float, *, upwards: bool) -> Sql:
    comparison = ">=" if upwards else "<="
    if isinstance(operand, str):
        return _text(comparison, operand)
    if abs(operand) > _EXACT:
        return _IS_NUMBER, []
    slack = abs(operand) * _SLACK
    return f"({_IS_NUMBER} AND field.atom {comparison} ?)", [operand - slack if upwards else operand + slack]


def _text(comparison: str, operand: str) -> Sql:
    if "\0" in operand:  # SQLite ends a text there
        return "field.type = 'text'", []
    return f"(field.type = 'text' AND field.atom {comparison} ?)", [operand]
