"""Hotspots of standing queries: the table, changes, ids of both kinds, all types; by plain loops."""

from __future__ import annotations

import math
from datetime import date
from decimal import Decimal
from random import Random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import limen
from limen.model import QueryError, QuerySet, values_of

XS = {"x": "int32"}


def frame(ends: dict[int, tuple[int | None, int | None]], text: bool) -> pa.Table:
    ids = [f"q{i}" if text else i for i in ends]
    lo, hi = ([one[side] for one in ends.values()] for side in (0, 1))
    columns = {"x_lo": pa.array(lo, pa.int32()), "x_hi": pa.array(hi, pa.int32())}
    return pa.table({"id": pa.array(ids, pa.string() if text else pa.int64())} | columns)


def checked(tracker: limen.HotspotTracker, ends: dict, text: bool, alpha: float) -> None:
    """Every query is in one group, all of whose queries have the group's range in common."""
    bounded = {q: one for q, one in ends.items() if one != (None, None)}
    seen: list[int] = []
    rows = tracker.table().to_pylist()
    for row in rows:
        found = tracker.queries(row["group"]).to_pylist()
        mine = [int(who[1:]) if text else who for who in found]
        seen += mine
        lows = [bounded[q][0] for q in mine if bounded[q][0] is not None]
        highs = [bounded[q][1] for q in mine if bounded[q][1] is not None]
        assert (row["lo"], row["hi"]) == (max(lows, default=None), min(highs, default=None))
        assert row["lo"] is None or row["hi"] is None or row["lo"] <= row["hi"]
        assert row["queries"] == len(mine) and row["share"] == len(mine) / len(bounded)
        assert row["share"] >= alpha / 2 if row["hot"] else row["share"] < alpha
    assert sorted(seen) == sorted(bounded) and len(tracker) == len(bounded)
    order = [(not row["hot"], -row["queries"]) for row in rows]
    assert order == sorted(order)


@given(st.booleans(), st.sampled_from([0.1, 0.3, 1.0]), st.integers(0, 2**32))
def test_changes_of_the_query_set(text: bool, alpha: float, seed: int) -> None:
    random = Random(seed)

    def some(first: int, n: int) -> dict:
        found = {}
        for q in range(first, first + n):
            lo = random.choice([None, random.randint(0, 50)])
            width = random.choice([0, random.randint(0, 30)])
            hi = random.choice([None, (0 if lo is None else lo) + width])
            found[q] = (lo, hi)
        return found

    ends = some(0, random.randint(0, 20))
    tracker = limen.HotspotTracker(frame(ends, text), "x", alpha=alpha, attributes=XS)
    checked(tracker, ends, text, alpha)
    for step in range(1, 6):
        gone = random.sample(sorted(ends), min(len(ends), random.randint(0, 10)))
        tracker.remove([f"q{q}" if text else q for q in gone])
        ends = {q: one for q, one in ends.items() if q not in gone}
        back = {q: one for q, one in some(0, 20).items() if q in gone and random.randint(0, 1)}
        new = back | some(100 * step, random.randint(0, 10))
        tracker.add(frame(new, text))
        ends |= new
        checked(tracker, ends, text, alpha)


@pytest.mark.parametrize(
    ("kind", "ends", "common"),
    [
        ("float64", [(1.5, 9.0), (2.5, None)], (2.5, 9.0)),
        ("date", [(date(2026, 1, 1), date(2026, 2, 1)), (None, date(2026, 1, 5))], None),
        ("decimal(9, 2)", [(Decimal("1.10"), Decimal("2.00")), (Decimal("1.95"), None)], None),
        ("uint64", [(2**63, 2**64 - 1), (2**63 + 5, 2**63 + 9)], (2**63 + 5, 2**63 + 9)),
        ("int8", [(-5, 5), (0, 0)], (0, 0)),
    ],
)
def test_values_have_the_attributes_type(kind: str, ends: list, common: tuple | None) -> None:
    queries = [
        {
            "id": i,
            "where": {
                "x": {op: v for op, v in zip((">=", "<="), one, strict=True) if v is not None}
            },
        }
        for i, one in enumerate(ends)
    ]
    found = limen.hotspots(queries, attributes={"x": kind})
    low = max((lo for lo, _ in ends if lo is not None), default=None)
    high = min((hi for _, hi in ends if hi is not None), default=None)
    (row,) = found.to_pylist()
    assert (row["lo"], row["hi"]) == (common or (low, high))
    assert found.schema.field("lo").type == found.schema.field("hi").type


@pytest.mark.parametrize(
    ("kind", "extremes"),
    [("uint64", (0, 2**64 - 1)), ("int64", (-(2**63), 2**63 - 1)), ("int8", (-128, 127))],
)
def test_the_least_and_the_greatest_value_are_no_open_ends(kind: str, extremes: tuple) -> None:
    least, most = extremes
    queries = {1: f"x = {least}", 2: f"x <= {least + 5}", 3: f"x = {most}", 4: f"x >= {most - 5}"}
    found = limen.hotspots(queries, attributes={"x": kind}).select(["lo", "hi"]).to_pylist()
    assert found == [{"lo": least, "hi": least}, {"lo": most, "hi": most}]
    if kind != "int8":  # there is room beyond its values
        (row,) = limen.hotspots({2: f"x <= {least + 5}"}, attributes={"x": kind}).to_pylist()
        assert (row["lo"], row["hi"]) == (None, least + 5)


def test_queries_that_say_nothing_of_the_attribute_are_left_out() -> None:
    queries = {"a": "x > 3 AND y = 1", "b": "y = 2", "c": "x < 9"}
    types = {"x": "int32", "y": "int32"}
    tracker = limen.HotspotTracker(queries, "x", attributes=types)
    assert len(tracker) == 2
    tracker.add({"d": "y > 7"})
    tracker.remove(["b", "nobody"])
    with pytest.raises(QueryError, match="ids are string here, not int64"):
        tracker.remove([7])
    assert len(tracker) == 2
    (row,) = tracker.table().to_pylist()
    assert tracker.queries(row["group"]).to_pylist() == ["c", "a"]


@pytest.mark.parametrize(
    ("kind", "least", "most"),
    [
        (pa.int8(), -128, 127),
        (pa.uint16(), 0, 2**16 - 1),
        (pa.int64(), -(2**63), 2**63 - 1),
        (pa.uint64(), 0, 2**64 - 1),
        (pa.float32(), -math.inf, math.inf),
        (pa.float64(), -math.inf, math.inf),
        (pa.decimal128(3, 0), Decimal(-999), Decimal(999)),
    ],
    ids=str,
)
def test_a_range_that_leaves_nothing_out_does_not_constrain(
    kind: pa.DataType, least: object, most: object
) -> None:
    """It is in no group, whichever of its ends are said."""
    lo = pa.array([least, least, None, least, 5], kind)
    hi = pa.array([most, None, most, 5, most], kind)
    tracker = limen.HotspotTracker(pa.table({"id": range(5), "x_lo": lo, "x_hi": hi}))
    assert len(tracker) == 2
    (row,) = tracker.table().to_pylist()
    assert sorted(tracker.queries(row["group"]).to_pylist()) == [3, 4]
    tracker.add(pa.table({"id": [7, 8], "x_lo": lo.slice(0, 2), "x_hi": hi.slice(0, 2)}))
    assert len(tracker) == 2


def test_a_bound_beyond_the_type_leaves_nothing_out() -> None:
    queries = {1: "x < 3000000000", 2: "x > -3000000000", 3: "x < 2147483647"}
    tracker = limen.HotspotTracker(queries, attributes=XS)
    assert tracker.queries(0).to_pylist() == [3]


def test_no_queries() -> None:
    tracker = limen.HotspotTracker({}, "x", attributes=XS)
    assert tracker.table().num_rows == len(tracker) == 0
    assert tracker.table().schema.field("lo").type == pa.int32()
    tracker.add({"a": "x = 1"})
    assert tracker.table()["hot"].to_pylist() == [True]
    assert tracker.queries(0).to_pylist() == ["a"]


def test_a_value_that_is_in_all_of_a_group() -> None:
    queries = {"a": "x <= 5", "b": "x >= 1", "c": "x >= 10", "d": "x >= 10 AND x <= 20"}
    tracker = limen.HotspotTracker(queries, attributes=XS, alpha=0.9)
    for group, point in zip(
        tracker.groups().group, tracker.inside(tracker.groups().group), strict=True
    ):
        lo, hi = tracker.ranges(int(group))
        assert ((lo <= point) & (point <= hi)).all()
    lo, hi = tracker.all_ranges()
    assert len(lo) == 4 and (lo <= hi).all()
    assert np.array_equal(tracker.hot().size, [])


@pytest.mark.parametrize("kind", [pa.float32(), pa.float64()], ids=str)
def test_an_infinite_end_is_an_open_one_to_the_value_in_common(kind: pa.DataType) -> None:
    ends = [(2, math.inf), (-math.inf, -2), (3, 5), (math.inf, math.inf)]
    for (lo, hi), expected in zip(ends, (2, -2, 4, math.inf), strict=True):
        queries = pa.table({"id": [1], "x_lo": pa.array([lo], kind), "x_hi": pa.array([hi], kind)})
        tracker = limen.HotspotTracker(queries)
        inside = tracker.inside(tracker.groups().group)
        assert values_of(inside, tracker.kind).tolist() == pytest.approx([expected], rel=0.1)


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: limen.hotspots({1: "x = 1 AND y = 1"}, attributes=XS | {"y": "int8"}), "on= says"),
        (lambda: limen.hotspots({1: "x = 1"}, "z", attributes=XS), "on='z' is in no query"),
        (
            lambda: limen.hotspots({1: "x = 1 AND s = 'a'"}, "s", attributes=XS | {"s": "string"}),
            "takes equality only",
        ),
        (
            lambda: limen.HotspotTracker({1: "x = 1"}, attributes=XS).add({1: "x = 2"}),
            "is in already",
        ),
        (
            lambda: limen.HotspotTracker({1: "x = 1"}, attributes=XS).add({"a": "x = 2"}),
            "ids are int64",
        ),
        (lambda: limen.hotspots({1: "x = 1"}, ["x"], attributes=XS), r"on= is the name .*\['x'\]"),
        (lambda: limen.hotspots({1: "x = 1"}, attributes=5), "attributes= are names .* not a int"),
        (lambda: limen.HotspotTracker({}, attributes={"s": "string"}), "ranges: none"),
    ],
)
def test_refusals(call, told: str) -> None:
    with pytest.raises(QueryError, match=told):
        call()


@pytest.mark.parametrize("group", ["a", 1.0, None, True, 7, -1, 2**70, [0]])
def test_there_is_no_such_group(group: object) -> None:
    tracker = limen.HotspotTracker({1: "x = 1"}, attributes=XS)
    for ask in (tracker.queries, tracker.ranges):
        with pytest.raises(ValueError, match="there is no group"):
            ask(group)  # type: ignore[arg-type]


@pytest.mark.parametrize("alpha", [0, -1, 1.5, float("nan"), "0.5", None, [0.5], Decimal("0.5")])
def test_alpha_is_a_share(alpha: float) -> None:
    with pytest.raises(ValueError, match="alpha is a share"):
        limen.hotspots({1: "x = 1"}, attributes=XS, alpha=alpha)


@pytest.mark.parametrize("text", [False, True])
def test_ids_that_come_and_go_take_no_room(text: bool) -> None:
    """Numbers are given again, and ids that have gone are forgotten."""
    tracker = limen.HotspotTracker(frame({}, text), "x", attributes=XS)
    stay = frame({-1: (1, 2), -2: (1, 9)}, text)
    tracker.add(stay)
    for round_ in range(12):
        new = frame({q: (q % 7, 9) for q in range(1000 * round_, 1000 * round_ + 1000)}, text)
        tracker.add(new)
        tracker.remove(new["id"])
    assert sorted(tracker.queries(0).to_pylist()) == sorted(stay["id"].to_pylist())
    numbers = tracker._numbers
    assert len(numbers._codes) <= 2 * 1002 + 1024 + 1000
    assert len(numbers._code_of) <= 1002
    with pytest.raises(QueryError, match="is in already"):
        tracker.add(stay)


@pytest.mark.parametrize(
    "kind", [pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())]
)
def test_ids_of_any_string_type(kind: pa.DataType) -> None:
    tracker = limen.HotspotTracker({"a": "x = 1", "b": "x = 1", "ab": "x = 2"}, attributes=XS)
    tracker.remove(pa.array(["a", None], pa.string()).cast(kind))
    assert len(tracker) == 2
    tracker.remove(pa.chunked_array([["b"], ["b", "z"]], pa.string()))
    assert len(tracker) == 1
    for one in ("ab", 5, b"ab"):
        with pytest.raises(QueryError, match="ids are given as a list"):
            tracker.remove(one)
    assert len(tracker) == 1
    tracker.remove(["ab"])
    tracker.add({7: "x = 1"})
    tracker.remove(pa.array([7], pa.int8()))
    assert len(tracker) == 0


def test_a_catalog(tmp_path) -> None:
    catalog = limen.Catalog.open(tmp_path / "c", XS, ids="int64")
    catalog.add({1: "x = 1", 2: "x >= 0"})
    assert limen.hotspots(catalog)["queries"].to_pylist() == [2]


@pytest.mark.parametrize("first", [{}, {1: "x >= 1"}, {1: "y = 1"}, {1: "x >= 1 AND y = 2"}])
def test_a_follower_of_a_catalog_of_several_attributes(tmp_path, first: dict) -> None:
    """Whichever of them the queries of the first version name, and of all later ones."""
    catalog = limen.Catalog.open(tmp_path / "c", XS | {"y": "int32", "s": "string"}, ids="int64")
    if first:
        catalog.add(first)
    tracker = limen.HotspotTracker(catalog, "x")
    seen = catalog.version
    inside = {who for who, where in first.items() if "x" in where}
    for new, gone in (
        ({2: "x > 5 AND y = 3"}, []),
        ({3: "y = 3", 4: "s = 'a' AND x < 9"}, [2]),
        ({2: "x = 0", 5: "x = 7"}, [3, 4]),
    ):
        catalog.change(new, gone)
        changes = catalog.changes(seen, catalog.version)
        tracker.remove(changes.removed)
        tracker.add(changes.added)
        seen = catalog.version
        inside = (inside - {*gone}) | {who for who, where in new.items() if "x" in where}
        rows = tracker.table().to_pylist()
        found = [who for row in rows for who in tracker.queries(row["group"]).to_pylist()]
        assert sorted(found) == sorted(inside)
    catalog.declare({"z": "float64"})
    catalog.add({9: "z > 1 AND x = 1"})
    tracker.add(catalog.changes(seen, catalog.version).added)
    assert len(tracker) == len(inside) + 1
    tracker.add({10: "x = 1 AND y = 2 AND s = 'b'"})
    assert len(tracker) == len(inside) + 2


def test_a_catalog_whose_only_attribute_has_no_query_yet(tmp_path) -> None:
    catalog = limen.Catalog.open(tmp_path / "c", XS | {"s": "string"}, ids="int64")
    assert limen.HotspotTracker(catalog).on == "x"
    assert limen.hotspots(catalog, "x").num_rows == 0
    with pytest.raises(QueryError, match="on='s' is string and takes equality only"):
        limen.hotspots(catalog, "s")


@pytest.mark.parametrize("kind", ["arrow", "batch", "pandas", "polars"])
def test_a_frame_without_rows_has_types(kind: str) -> None:
    full = pa.table({"id": [1, 2], "x_lo": [1.5, 2.5], "x_hi": pa.array([None, 3.5])})

    def given(table: pa.Table) -> object:
        if kind == "pandas":
            return table.to_pandas().set_index(np.arange(7, 7 + len(table)))
        if kind == "polars":
            return pytest.importorskip("polars").from_arrow(table)
        return (
            table
            if kind == "arrow"
            else pa.RecordBatch.from_pydict(table.to_pydict(), table.schema)
        )

    for on in (None, "x"):
        tracker = limen.HotspotTracker(given(full.slice(0, 0)), on)
        assert (tracker.on, tracker.kind, len(tracker)) == ("x", pa.float64(), 0)
        more = full.append_column("y_lo", pa.array([1, 2])).append_column("s", pa.array(["a", "b"]))
        tracker.add(given(more))
        assert tracker.table()["queries"].to_pylist() == [2]
    with pytest.raises(QueryError, match="has type int32, not float64"):
        tracker.add(QuerySet.of({7: "x = 1"}, XS))
    with pytest.raises(QueryError, match="has type float64, not int32"):
        limen.hotspots(QuerySet.of(full), attributes=XS)
    assert len(tracker) == 2


def test_an_id_that_is_in_is_refused_whatever_its_query_is_now() -> None:
    tracker = limen.HotspotTracker({1: "x = 1", 2: "x > 5"}, "x", attributes=XS | {"y": "int8"})
    for queries in ({1: "y = 3"}, {7: "x = 1", 2: "y = 3"}):
        with pytest.raises(QueryError, match=r"a query with the id [12] is in already"):
            tracker.add(queries)
    assert len(tracker) == 2
