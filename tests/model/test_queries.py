"""Query sets: every way in, what is refused with row, id and field, and the set's own promises."""

from __future__ import annotations

import doctest
import importlib
import pickle
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from limen.model import (
    INT64_MAX,
    INT64_MIN,
    LimenError,
    Query,
    QueryError,
    QuerySet,
    Range,
    ordinal_range,
)

PROPERTY = settings(derandomize=True, deadline=None, max_examples=80)
TYPES = {"price": "float64", "qty": "int32", "symbol": "string", "live": "bool", "day": "date"}


def bodies(queries: QuerySet) -> dict[Any, dict[str, Any]]:
    """Each query's constrained attributes, for comparison."""
    found: dict[Any, dict[str, Any]] = {}
    for row, query_id in enumerate(queries.ids.to_pylist()):
        body: dict[str, Any] = {}
        for name in queries.lo:
            ends = int(queries.lo[name][row]), int(queries.hi[name][row])
            if ends != (INT64_MIN, INT64_MAX):
                body[name] = ends
        for name, key in queries.keys.items():
            if key[row].is_valid:
                body[name] = key[row].as_py()
        found[query_id] = body
    return found


def ends(lo: Any, hi: Any, kind: str = "[]", attribute: pa.DataType | None = None) -> Any:
    return ordinal_range(Range(lo, hi, kind), attribute or pa.float64())


def test_every_way_in_gives_the_same_set() -> None:
    frame = {"id": ["a", "b"], "price_lo": [40.0, None], "price_hi": [50.0, 9.5],
             "symbol": [None, "IBM"]}  # fmt: skip
    ways: list[Any] = [
        [
            Query("a", {"price": Range(40, 50, "[)")}),
            {"id": "b", "where": "price < 9.5 AND symbol = 'IBM'"},
        ],
        {"a": "price >= 40 and price < 50", "b": {"price": {"<": 9.5}, "symbol": "IBM"}},
        (Query(i, w) for i, w in {
            "a": {"price": {">=": Decimal(40), "<": 50}},
            "b": {"symbol": {"=": "IBM"}, "price": Range(hi=9.5, bounds="()")},
        }.items()),
        pa.table(frame),
        pa.RecordBatch.from_pydict(frame),
        pd.DataFrame(frame),
        pl.DataFrame(frame),
        pa.table({"id": ["a", "b"],
                  "where": ["price >= 40 and price < 50", "price < 9.5 and symbol = 'IBM'"]}),
        pa.table({**frame, "price_bounds": ["[)", None], "qty": pa.nulls(2)}),
    ]  # fmt: skip
    for way in ways:
        queries = QuerySet.of(way, TYPES, bounds="[)")
        assert bodies(queries) == {
            "a": {"price": ends(40, 50, "[)")},
            "b": {"price": ends(None, 9.5, "[)"), "symbol": "IBM"},
        }
        assert set(queries.attributes) == {"price", "symbol"}
        assert QuerySet.of(queries, TYPES) is queries


def test_all_kinds_of_conditions() -> None:
    queries = QuerySet.of(
        {
            1: {"qty": {"between": [1, 5]}, "live": True},
            2: {"qty": 7, "day": date(2024, 1, 31)},
            3: {"qty": {">": 1, ">=": 2.5, "<=": 9}, "live": np.bool_(False)},
            4: {},
            5: {"qty": Range()},
        },
        pa.schema({"qty": pa.int32(), "live": pa.bool_(), "day": pa.date32(), "x": pa.binary()}),
    )
    day = (date(2024, 1, 31) - date(1970, 1, 1)).days
    assert bodies(queries) == {
        1: {"qty": (1, 5), "live": True},
        2: {"qty": (7, 7), "day": (day, day)},
        3: {"qty": (3, 9), "live": False},
        4: {},
        5: {},
    }
    assert queries.ids.type == pa.int64()


def test_types_come_from_the_frame() -> None:
    queries = QuerySet.of(
        pa.table(
            {
                "id": pa.array([1, 2], pa.uint8()),
                "a_lo": pa.array([1, 2], pa.int32()),
                "a_hi": pa.array([9, None], pa.int64()),
                "b_lo": pa.array([1.5, None], pa.float32()),
                "b_hi": pa.array([2.5, 1.0]),
                "c": pa.array(["x", None], pa.large_string()),
                "d": pa.array(["x", "y"]).dictionary_encode(),
                "e_lo": pa.array([1, 1], pa.int32()),
                "e_hi": pa.array([1, 1], pa.uint32()),
                "f_lo": pa.nulls(2),
                "total_bounds": pa.array([4, None], pa.int8()),
            }
        )
    )
    assert queries.attributes == {
        "a": pa.int64(), "b": pa.float64(), "c": pa.string(), "d": pa.string(),
        "e": pa.int64(), "total_bounds": pa.int8(),
    }  # fmt: skip
    assert bodies(queries)[2] == {
        "a": (2, INT64_MAX), "b": ends(None, 1), "d": "y", "e": (1, 1),
    }  # fmt: skip


def table(**columns: Any) -> pa.Table:
    rows = len(next(iter(columns.values())))
    return pa.table({"id": list(range(rows)), **columns})


@pytest.mark.parametrize(
    ("given", "message", "row", "query_id", "field"),
    [
        ({"q1": {}, "q9": {"price": Range(50, 40)}},
         "query row 1 (id 'q9'), field 'price': lower bound 50 is above upper bound 40",
         1, "q9", "price"),
        (table(price_lo=[1.0, 50.0], price_hi=[2.0, 40.0]),
         "query row 1 (id 1), field 'price': lower bound 50.0 is above upper bound 40.0",
         1, 1, "price"),
        (table(price_lo=[1.0, float("nan")]), "bound is NaN", 1, 1, "price"),
        (table(price_lo=[1.0], price_bounds=["[["]), "bounds '[[' is not one of", 0, 0, "price"),
        (table(price_lo=[1.0], price_bounds=[3]), "column 'price_bounds' is int64, not text",
         None, None, "price"),
        (table(price_bounds=["[]"]), "needs 'price_lo' or 'price_hi'", None, None, "price"),
        (table(qty=[1.0, 40.5]), "= 40.5 matches no value of int32", 1, 1, "qty"),
        (table(qty=[1, 7], qty_lo=[1, 8]), "the value in 'qty' lies outside", 1, 1, "qty"),
        (table(symbol=[5]), "a column of int64 is not string", None, None, "symbol"),
        (table(symbol_lo=["a"]), "string takes equality only: name the column 'symbol'",
         None, None, "symbol"),
        (table(prcie_lo=[1.0]), "unknown attribute 'prcie'; known: price, qty, symbol, live, day; "
         "did you mean 'price'?", None, None, None),
        (table(Price=[1.0]), "did you mean 'price'?", None, None, None),
        (table(where=["price > 1", "price > 1 OR qty = 2"]), "OR is not supported", 1, 1, None),
        (table(where=["price > 1", None]), "where is missing (null)", 1, 1, None),
        (table(where=["price > 1"], qty=[1]), "a frame with 'where' has 'id' beside it only",
         None, None, None),
        (table(where=[1]), "column 'where' is int64, not SQL text", None, None, None),
        (pa.table({"price_lo": [1.0]}), "the frame has no column 'id'; it has price_lo",
         None, None, None),
        (pa.table([[1], [1], [2]], ["id", "qty", "qty"]), "a column occurs twice",
         None, None, None),
        ({"a": {"zzz": 1}}, "unknown attribute 'zzz'", 0, "a", None),
        ({"a": "prices > 5"}, "did you mean 'price'?", 0, "a", None),
        ({"a": {"price": {">=": 50, "<": 40}}}, "no value of float64 is >= 50 and < 40",
         0, "a", "price"),
        ({"a": "qty > 4 and qty < 5"}, "no value of int32 is > 4 and < 5", 0, "a", "qty"),
        ({"a": {"price": {"~": 5}}}, "unknown operator '~'; use one of >=, >, <=, <, =, between",
         0, "a", "price"),
        ({"a": {"price": {"between": 5}}}, "between needs two bounds", 0, "a", "price"),
        ({"a": {"price": {}}}, "no condition is given", 0, "a", "price"),
        ({"a": {"price": None}}, "null matches nothing", 0, "a", "price"),
        ({"a": {"price": "dear"}}, "'dear' is a str; float64 needs a number", 0, "a", "price"),
        ({"a": {"symbol": 5}}, "5 is a int, the attribute is string", 0, "a", "symbol"),
        ({"a": {"symbol": {">": "A"}}}, "string takes equality only", 0, "a", "symbol"),
        ({"a": {"symbol": Range("A", "B")}}, "string takes equality only", 0, "a", "symbol"),
        ({"a": {"live": 1}}, "1 is a int, the attribute is bool", 0, "a", "live"),
        ({"a": "symbol = 'A' and symbol = 'B'"}, "no value is both 'A' and 'B'", 0, "a", "symbol"),
        ({"a": {"symbol": "\ud800"}}, "the text is not valid Unicode", 0, "a", "symbol"),
        ({"a": 5}, "where is a int; use a mapping or SQL text", 0, "a", None),
        ([5], "a int is not a query", 0, None, None),
        ([{"id": 1}], "the query has no 'where'", 0, None, None),
        ([{"id": 1, "where": {}, "note": 1}], "'id' and 'where' only, not note", 0, None, None),
        ({"id": 1, "where": {}}, "this is one query", None, None, None),
        ("price > 5", "cannot read queries from a str", None, None, None),
        (5, "cannot read queries from a int", None, None, None),
    ],
)  # fmt: skip
def test_refusals_say_what_and_where(
    given: Any, message: str, row: int | None, query_id: Any, field: str | None
) -> None:
    with pytest.raises(QueryError) as caught:
        QuerySet.of(given, TYPES)
    assert message in str(caught.value)
    assert (caught.value.row, caught.value.query_id, caught.value.field) == (row, query_id, field)
    copy = pickle.loads(pickle.dumps(caught.value))
    assert (str(copy), copy.row, copy.field) == (str(caught.value), row, field)


def test_types_must_be_known() -> None:
    with pytest.raises(QueryError, match="pass attributes=, such as"):
        QuerySet.of({"a": {"price": 5}})
    with pytest.raises(QueryError, match="pass attributes=, such as"):
        QuerySet.of(pa.table({"id": [1], "where": ["price > 5"]}))
    with pytest.raises(QueryError, match=r"field 'x': its columns have types int64 and float64"):
        QuerySet.of(pa.table({"id": [1], "x_lo": [1], "x_hi": [1.5]}))
    with pytest.raises(QueryError, match=r"field 'x': type list<.*is not supported; supported"):
        QuerySet.of(pa.table({"id": [1], "x": [[1]]}))
    with pytest.raises(QueryError, match="field 'x': type binary is not supported"):
        QuerySet.of({"a": {"x": 5}}, pa.schema({"x": pa.binary()}))
    with pytest.raises(LimenError, match="field 'x': type money is not supported"):
        QuerySet.of({}, {"x": "money"})
    with pytest.raises(QueryError, match="'x_lo' could be the attribute 'x_lo' or the lo of 'x'"):
        QuerySet.of(pa.table({"id": [1], "x_lo": [1]}), {"x": "int8", "x_lo": "int8"})
    narrow = QuerySet.of(pa.table({"id": [1], "x": [1]}))
    with pytest.raises(QueryError, match="field 'x': has type int64, not int8"):
        QuerySet.of(narrow, {"x": "int8"})


BAD_IDS: list[tuple[list[Any], pa.DataType | None, str, int | None]] = [
    (["a", None], None, "missing", 1),
    (["a", ""], None, "id is empty", 1),
    (["a", "é" * 129], None, "longer than 256 bytes", 1),
    (["a", "b\nc"], None, "control character", 1),
    (["a", "b\x7f"], None, "control character", 1),
    (["a", "b\x85"], None, "control character", 1),
    ([1, 2**63], pa.uint64(), "does not fit int64", 1),
]


@pytest.mark.parametrize(("ids", "kind", "message", "row"), BAD_IDS)
def test_ids_refused_from_frames_and_rows(
    ids: list[Any], kind: pa.DataType | None, message: str, row: int
) -> None:
    frame = pa.table({"id": pa.array(ids, kind), "price_lo": [1.0] * len(ids)})
    rows = [{"id": value, "where": {"price": 1.0}} for value in ids]
    for given_queries in (frame, rows):
        with pytest.raises(QueryError, match=message) as caught:
            QuerySet.of(given_queries, TYPES)
        assert caught.value.row == row and caught.value.field == "id"


@pytest.mark.parametrize("queries", [{"a": "x > 1"}, [], pa.table({"id": [1], "x_lo": [1.0]})])
def test_bounds_are_checked_whatever_the_queries_are(queries: object) -> None:
    with pytest.raises(LimenError, match="'xx'"):
        QuerySet.of(queries, {"x": "float64"}, bounds="xx")


@pytest.mark.parametrize("ids", [[1.5], [True], [date(2024, 1, 1)], [b"x"]])
def test_ids_of_other_types_are_refused(ids: list[Any]) -> None:
    with pytest.raises(QueryError, match=r"field 'id'.*use int64 or string"):
        QuerySet.of(pa.table({"id": ids, "price": [1.0]}), TYPES)
    with pytest.raises(QueryError, match=r"query row 0, field 'id': id .* use an int or a str"):
        QuerySet.of([{"id": ids[0], "where": {}}], TYPES)


def test_ids_are_of_one_kind_and_the_longest_is_accepted() -> None:
    with pytest.raises(QueryError, match="row 1, field 'id': id 'b' is a str, the ids before"):
        QuerySet.of({1: {}, "b": {}}, TYPES)
    with pytest.raises(QueryError, match="row 1, field 'id': id is not valid Unicode"):
        QuerySet.of({"a": {}, "\udc00": {}}, TYPES)
    assert len(QuerySet.of({"é" * 128: {}, "two words": {}}, TYPES)) == 2
    assert QuerySet.of({np.int32(7): {}}, TYPES).ids.to_pylist() == [7]


def test_the_same_query_twice_is_kept_once() -> None:
    frame = pa.table(
        {"id": ["a", "b", "a"], "qty_lo": [1.5, None, 2.0], "symbol": ["x", None, "x"]}
    )
    queries = QuerySet.of(frame, TYPES)
    assert queries.ids.to_pylist() == ["a", "b"]
    for column in ("qty_lo", "symbol"):
        other = {"qty_lo": [2.0, None, 3.0], "symbol": ["x", None, None]}[column]
        changed = frame.set_column(frame.column_names.index(column), column, pa.array(other))
        with pytest.raises(QueryError) as caught:
            QuerySet.of(changed, TYPES)
        assert str(caught.value) == "query row 2 (id 'a'): the same id has another body in row 0"


def test_take_keeps_the_attributes() -> None:
    queries = QuerySet.of({"a": {"price": 1}, "b": {"qty": 2}, "c": {"symbol": "x"}}, TYPES)
    taken = queries.take([2, 0])
    assert bodies(taken) == {"c": {"symbol": "x"}, "a": {"price": ends(1, 1)}}
    assert list(taken.attributes) == ["price", "qty", "symbol"]
    assert len(queries.take([])) == 0 and queries.take(np.arange(3)) == queries
    for wrong, message in (([3], "rows from 0 to 2"), ([-1], "rows from"), ([0, 0], "at most once"),
                           ([True], "row numbers"), ([[0]], "row numbers")):  # fmt: skip
        with pytest.raises(LimenError, match=message):
            queries.take(wrong)


def test_concat_unites_attributes() -> None:
    first = QuerySet.of({"a": {"price": 1}, "b": {"symbol": "x"}}, TYPES)
    second = QuerySet.of({"b": {"symbol": "x"}, "c": {"qty": 2, "symbol": "y"}}, TYPES)
    both = first.concat(second)
    assert bodies(both) == {**bodies(first), **bodies(second)}
    assert both.ids.to_pylist() == ["a", "b", "c"]
    assert first.concat(QuerySet.empty()) == first == QuerySet.empty("int64").concat(first)
    with pytest.raises(QueryError, match="the same id has another body in row 0"):
        first.concat(QuerySet.of({"a": {"price": 2}}, TYPES))
    with pytest.raises(QueryError, match="field 'price': has type float64 in one set and int8"):
        first.concat(QuerySet.of({"z": {"price": 2}}, {"price": "int8"}))
    with pytest.raises(QueryError, match="one set has string ids, the other int64"):
        first.concat(QuerySet.of({1: {"price": 2}}, TYPES))


def test_empty_sets() -> None:
    for empty in (QuerySet.empty(), QuerySet.of([]), QuerySet.of({}, TYPES),
                  QuerySet.of(pa.table({"id": pa.array([], pa.int64())}))):  # fmt: skip
        assert len(empty) == 0 and empty == QuerySet.empty()
    assert repr(QuerySet.empty()) == "QuerySet(0 queries)"
    assert QuerySet.empty("string").ids.type == pa.string()
    with pytest.raises(QueryError, match="ids are int64 or string"):
        QuerySet.empty("float64")


def test_a_set_does_not_change() -> None:
    queries = QuerySet.of({"a": {"price": 1}}, TYPES)
    with pytest.raises(ValueError, match="read-only"):
        queries.lo["price"][0] = 0
    with pytest.raises(AttributeError):
        queries.ids = None  # type: ignore[misc]
    assert pickle.loads(pickle.dumps(queries)) == queries
    assert queries != QuerySet.of({"a": {"price": 2}}, TYPES) and queries != 5


BOUND = st.none() | st.integers(-50, 50) | st.floats(-50, 50)


@PROPERTY
@given(
    rows=st.lists(st.tuples(BOUND, BOUND, st.sampled_from(["[]", "[)", "(]", "()"])), max_size=5),
    kind=st.sampled_from(["int32", "float64", "float32"]),
)
def test_a_frame_and_its_rows_give_the_same_set(rows: list[Any], kind: str) -> None:
    frame = pa.table(
        {
            "id": pa.array(range(len(rows)), pa.int64()),
            "x_lo": pa.array(
                [None if lo is None else float(lo) for lo, _, _ in rows], pa.float64()
            ),
            "x_hi": pa.array(
                [None if hi is None else float(hi) for _, hi, _ in rows], pa.float64()
            ),
            "x_bounds": pa.array([bounds for _, _, bounds in rows], pa.string()),
        }
    )

    def outcome(build: Callable[[], QuerySet]) -> Any:
        try:
            return bodies(build())
        except QueryError as error:
            return error.row, error.field

    by_rows = [Query(i, {"x": Range(*row)}) for i, row in enumerate(rows)]
    assert outcome(lambda: QuerySet.of(frame, {"x": kind})) == outcome(
        lambda: QuerySet.of(by_rows, {"x": kind})
    )


@pytest.mark.parametrize(
    "name",
    ["errors", "types", "ordinals", "exact", "bounds", "bound_columns", "where", "sql", "queries"],
)
def test_examples_in_docstrings(name: str) -> None:
    module = importlib.import_module(f"limen.model.{name}")
    result = doctest.testmod(module)
    assert result.attempted and not result.failed
