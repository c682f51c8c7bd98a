"""What SQLite is asked to leave out is never anything that a filter keeps."""

import json
import sqlite3
from contextlib import closing
from typing import Any

import pytest
from hypothesis import given

from teffmem.filters import match, parse
from teffmem.vectorstores._sqlite_filter import narrowing
from tests.strategies import filters, values


def admits(connection: sqlite3.Connection, given_filter: dict[str, Any], value: str) -> bool:
    """Tell whether SQLite lets a row with this value through."""
    sql, parameters = narrowing(parse(given_filter))
    query = f"SELECT 1 FROM (SELECT ? AS value) AS items WHERE {sql}"  # noqa: S608
    found = connection.execute(query, [value, *parameters])
    return found.fetchone() is not None


@given(filters, values)
def test_whatever_a_filter_keeps_comes_through(given_filter: dict[str, Any], value: dict[str, Any]) -> None:
    """The condition in SQL holds of every value that meets the filter."""
    with closing(sqlite3.connect(":memory:")) as connection:
        if match(parse(given_filter), value):
            assert admits(connection, given_filter, json.dumps(value, ensure_ascii=False))


@pytest.mark.parametrize(
    "given_filter",
    [
        {"kind": "note"},
        {"kind": ["note", "task"]},
        {"n": 2},
        {"n": {"$gte": 10}},
        {"n": {"$lt": 1}},
        {"done": True},
        {"gone": None},
        {"missing": {"$exists": True}},
        {"$or": [{"kind": "note"}, {"n": 2}]},
        {"$or": []},
    ],
)
def test_most_of_what_a_filter_drops_is_left_out_early(given_filter: dict[str, Any]) -> None:
    """A row that plainly does not fit is not even read."""
    with closing(sqlite3.connect(":memory:")) as connection:
        assert not admits(connection, given_filter, '{"kind": "other", "n": 3, "done": false, "gone": 0}')


def test_what_is_damaged_is_let_through_to_be_reported() -> None:
    """Broken JSON is no reason to fail, nor to pass over it in silence."""
    with closing(sqlite3.connect(":memory:")) as connection:
        assert admits(connection, {"kind": "note"}, '{"kind": ')
