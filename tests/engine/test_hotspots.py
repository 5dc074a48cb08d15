"""Hotspots of standing queries: the table, changes, ids of both kinds, all types; by plain loops."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from random import Random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import limen
from limen.model import QueryError

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
        least = alpha / 2 if row["hot"] else 0
        assert least * len(bounded) <= len(mine)
        assert row["hot"] or len(mine) < alpha * len(bounded)
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
    ],
)
def test_refusals(call, told: str) -> None:
    with pytest.raises(QueryError, match=told):
        call()


@pytest.mark.parametrize("alpha", [0, -1, 1.5, float("nan")])
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
