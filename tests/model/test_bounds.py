"""The endpoint rule, against exact comparison of the bound as written with each value."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from limen.model import (
    BOUND_KINDS,
    INT64_MAX,
    INT64_MIN,
    UNCONSTRAINED,
    QueryError,
    Range,
    extremes,
    ordinal_range,
    ordinal_ranges,
    ordinals,
    value_of,
)

from .test_ordinals import VALUES

PROPERTY = settings(derandomize=True, deadline=None, max_examples=100)
NUMERIC = [kind for kind in VALUES if not (pa.types.is_temporal(kind))]
KINDS = st.sampled_from(BOUND_KINDS)

LANDMARKS = sorted(
    {
        sign * (2**power + offset)
        for power in (0, 7, 8, 15, 16, 24, 31, 32, 53, 63, 64, 70)
        for offset in (-1, 0, 1)
        for sign in (-1, 1)
    }
)
NUMBERS: st.SearchStrategy[Any] = st.one_of(
    st.integers(-300, 300),
    st.integers(-(2**70), 2**70),
    st.sampled_from(LANDMARKS),
    st.floats(allow_nan=False),
    st.floats(-300, 300).map(lambda x: round(x, 1)),
    st.floats(width=32, allow_nan=False).map(np.float32),
    st.decimals(allow_nan=False, allow_infinity=False, places=3, min_value=-1000, max_value=1000),
    st.sampled_from([Decimal("1e-400"), Decimal("-1e-5000"), Decimal("1e999999999")]),
    st.sampled_from([Decimal("Infinity"), Decimal("-Infinity")]),
    st.fractions(-300, 300, max_denominator=12),
    st.sampled_from(LANDMARKS).map(lambda n: Fraction(2 * n + 1, 2)),
    st.integers(-128, 127).map(np.int8),
    st.sampled_from([2**64 - 1, 0]).map(np.uint64),
)


def exact(number: Any) -> Any:
    """A number Python compares exactly with any other: a Fraction or an infinity."""
    if isinstance(number, Decimal) and number.is_finite() and abs(number.adjusted()) > 400:
        return Fraction(10) ** (500 if number.adjusted() > 0 else -500) * (-1 if number < 0 else 1)
    if isinstance(number, np.generic):
        number = number.item()
    return float(number) if number in (math.inf, -math.inf) else Fraction(number)


def inside(value: Any, lo: Any, hi: Any, kind: str) -> bool:
    above = lo is None or value > lo or (kind[0] == "[" and value == lo)
    below = hi is None or value < hi or (kind[1] == "]" and value == hi)
    return above and below


@pytest.mark.parametrize("attribute", NUMERIC, ids=str)
@PROPERTY
@given(data=st.data())
def test_a_range_holds_exactly_the_values_between_its_bounds(
    attribute: pa.DataType, data: st.DataObject
) -> None:
    values = data.draw(st.lists(VALUES[attribute], min_size=1, max_size=6))
    near = st.sampled_from(values)
    bound = st.none() | NUMBERS | near
    lo, hi, kind = data.draw(bound), data.draw(bound), data.draw(KINDS)
    exact_lo = None if lo is None else exact(lo)
    exact_hi = None if hi is None else exact(hi)
    expected = [inside(exact(value), exact_lo, exact_hi, kind) for value in values]
    try:
        start, end = ordinal_range(Range(lo, hi, kind), attribute)
    except QueryError:
        assert not any(expected)
        return
    found, _ = ordinals(pa.array(values, attribute), attribute)
    assert [start <= ordinal <= end for ordinal in found.tolist()] == expected
    # Nothing empty passes: the ends, clipped to the type, are themselves inside.
    least, greatest = extremes(attribute)
    for ordinal in (max(start, least), min(end, greatest)):
        assert inside(exact(value_of(ordinal, attribute)), exact_lo, exact_hi, kind)


@pytest.mark.parametrize("attribute", [pa.int8(), pa.uint8(), pa.decimal128(2, 1)], ids=str)
@PROPERTY
@given(lo=st.none() | NUMBERS, hi=st.none() | NUMBERS, kind=KINDS)
def test_over_all_values_of_a_small_type(
    attribute: pa.DataType, lo: Any, hi: Any, kind: str
) -> None:
    least, greatest = extremes(attribute)
    exact_lo = None if lo is None else exact(lo)
    exact_hi = None if hi is None else exact(hi)
    expected = [
        ordinal
        for ordinal in range(least, greatest + 1)
        if inside(exact(value_of(ordinal, attribute)), exact_lo, exact_hi, kind)
    ]
    if not expected:
        with pytest.raises(QueryError):
            ordinal_range(Range(lo, hi, kind), attribute)
        return
    start, end = ordinal_range(Range(lo, hi, kind), attribute)
    assert (max(start, least), min(end, greatest)) == (expected[0], expected[-1])


MOMENTS = st.datetimes(datetime(1900, 1, 1), datetime(2200, 1, 1))


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@PROPERTY
@given(bound=MOMENTS | st.dates(date(1900, 1, 1), date(2200, 1, 1)), step=st.integers(-3, 3))
def test_timestamps(unit: str, bound: Any, step: int) -> None:
    attribute = pa.timestamp(unit)
    per_second = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[unit]
    moment = bound if isinstance(bound, datetime) else datetime(bound.year, bound.month, bound.day)
    microseconds = (moment - datetime(1970, 1, 1)) // timedelta(microseconds=1)
    place = Fraction(microseconds * per_second, 10**6)
    ordinal = math.floor(place) + step
    kind = pa.timestamp("us") if isinstance(bound, datetime) else pa.date32()
    for text in (bound, bound.isoformat(), np.datetime64(bound), pa.scalar(bound, kind)):
        start, _ = ordinal_range(Range(lo=text), attribute)
        assert (start <= ordinal) == (place <= ordinal)
        _, end = ordinal_range(Range(hi=text, bounds="[)"), attribute)
        assert (ordinal <= end) == (ordinal < place)


@PROPERTY
@given(moment=MOMENTS, minutes=st.integers(-720, 720))
def test_instants_are_the_same_under_any_offset(moment: datetime, minutes: int) -> None:
    attribute = pa.timestamp("us", "Europe/Paris")
    zone = timezone(timedelta(minutes=minutes))
    instant = moment.replace(tzinfo=UTC)
    here = instant.astimezone(zone)
    expected = (moment - datetime(1970, 1, 1)) // timedelta(microseconds=1)
    for bound in (instant, here, here.isoformat(" "), pd.Timestamp(instant), pa.scalar(here)):
        assert ordinal_range(Range(bound, bound), attribute) == (expected, expected)


def test_dates_and_times_of_day() -> None:
    day = (date(2024, 1, 31) - date(1970, 1, 1)).days
    noon = datetime(2024, 1, 31, 12)
    assert ordinal_range(Range("2024-01-31", "2024-01-31"), pa.date32()) == (day, day)
    assert ordinal_range(Range(lo=noon), pa.date32())[0] == day + 1
    assert ordinal_range(Range(hi="2024-01-31T12:00"), pa.date32())[1] == day
    second = day * 86_400 * 10**9
    fine = "2024-01-31 00:00:00.123456789"
    assert ordinal_range(Range(fine, fine), pa.timestamp("ns")) == (second + 123456789,) * 2
    stamp = pd.Timestamp(fine)
    assert ordinal_range(Range(stamp, stamp), pa.timestamp("ns")) == (second + 123456789,) * 2
    assert ordinal_range(Range(lo=-math.inf, hi=math.inf), pa.date32()) == UNCONSTRAINED
    assert ordinal_range(Range(lo="0001-01-01"), pa.timestamp("ns")) == UNCONSTRAINED


def test_the_examples_of_the_rule() -> None:
    i64, f32, f64 = pa.int64(), pa.float32(), pa.float64()
    assert ordinal_range(Range(lo=40.5), i64) == (41, INT64_MAX)
    assert ordinal_range(Range(40, 50, "()"), i64) == (41, 49)
    assert ordinal_range(Range(), i64) == (INT64_MIN, INT64_MAX)
    assert ordinal_range(Range(lo=2**63 - 1), i64) == (INT64_MAX, INT64_MAX)
    assert ordinal_range(Range(hi=300), pa.int8()) == (INT64_MIN, 127)
    assert ordinal_range(Range(lo=-math.inf, hi=5), pa.int8()) == (INT64_MIN, 5)
    assert ordinal_range(Range(hi=-0.0), f64) == ordinal_range(Range(hi=0), f64)
    tenth = float(np.float32(0.1))  # above 0.1
    assert ordinal_range(Range(lo=0.1), f32)[0] == ordinal_range(Range(lo=tenth), f32)[0]
    with pytest.raises(QueryError, match=r"= 0\.1 matches no value of float32"):
        ordinal_range(Range(0.1, 0.1), f32)
    beyond = 2**53 + 1
    assert value_of(ordinal_range(Range(lo=beyond), f64)[0], f64) == 2.0**53 + 2
    assert value_of(ordinal_range(Range(hi=beyond), f64)[1], f64) == 2.0**53
    assert value_of(ordinal_range(Range(lo=0, bounds="()"), f64)[0], f64) == 5e-324


@pytest.mark.parametrize(
    ("bound", "attribute", "message"),
    [
        (Range(50, 40), pa.int64(), "lower bound 50 is above upper bound 40"),
        (Range(40.8, 40.2), pa.int64(), "lower bound 40.8 is above upper bound 40.2"),
        (Range(5, 5, "[)"), pa.int64(), r"range \[5, 5\) is empty"),
        (Range(5, 5, "()"), pa.float64(), r"range \(5, 5\) is empty"),
        (Range(40.2, 40.8), pa.int64(), ">= 40.2 and <= 40.8 matches no value of int64"),
        (Range(4, 5, "()"), pa.int64(), "> 4 and < 5 matches no value of int64"),
        (Range(-5e-324, 0.0, "()"), pa.float64(), "matches no value of float64"),
        (Range(lo=200), pa.int8(), ">= 200 matches no value of int8"),
        (Range(lo=127, bounds="()"), pa.int8(), "> 127 matches no value of int8"),
        (Range(hi=-1), pa.uint64(), "<= -1 matches no value of uint64"),
        (Range(lo=2**63), pa.int64(), "matches no value of int64"),
        (Range(lo=math.inf), pa.int64(), "matches no value of int64"),
        (Range(lo=math.inf, bounds="()"), pa.float64(), "matches no value of float64"),
        (Range(lo=Decimal("0.001"), hi=Decimal("0.009")), pa.decimal128(5, 2), "matches no value"),
        (Range(lo=10**5000), pa.int64(), "a number of more than 90 digits matches no value"),
        (Range(lo=math.nan), pa.float64(), "bound is NaN"),
        (Range(hi=np.float32("nan")), pa.int8(), "bound is NaN"),
        (Range(lo=Decimal("NaN")), pa.int8(), "bound is NaN"),
        (Range(lo=True), pa.int64(), "bound True is a bool; int64 needs a number"),
        (Range(lo=np.bool_(True)), pa.int64(), "is a bool"),
        (Range(lo="40"), pa.float64(), "bound '40' is a str; float64 needs a number"),
        (Range(lo=1j), pa.float64(), "is a complex; float64 needs a number"),
        (Range(lo=date(2024, 1, 1)), pa.int64(), "is a date; int64 needs a number"),
        (Range(lo=5), pa.date32(), "bound 5 is a int; date needs a date, a datetime or ISO text"),
        (Range(lo=math.nan), pa.date32(), "needs a date"),
        (Range(lo="soon"), pa.timestamp("us"), "bound 'soon' is not an ISO date or time"),
        (Range(lo="2024-02-30"), pa.date32(), "not an ISO date"),
        (Range(lo="2024-01-01Z"), pa.timestamp("us", "UTC"), "not an ISO date"),
        (Range(lo="2024-01-01T00:00Z"), pa.timestamp("us"), "has a UTC offset"),
        (Range(lo="2024-01-01"), pa.timestamp("us", "UTC"), "has no UTC offset.*write one"),
        (Range(lo=datetime(2024, 1, 1)), pa.timestamp("us", "UTC"), "has no UTC offset"),
        (Range(lo=np.datetime64("NaT")), pa.date32(), "needs a date"),
        (Range(lo="IBM"), pa.string(), "string takes equality only"),
    ],
    ids=str,
)
def test_refusals(bound: Range, attribute: pa.DataType, message: str) -> None:
    with pytest.raises(QueryError, match=message):
        ordinal_range(bound, attribute)


def test_a_wrong_bound_kind_is_refused() -> None:
    with pytest.raises(QueryError, match=r"bounds '\[\[' is not one of \[\], \[\), \(\], \(\)"):
        Range(1, 2, "[[")
    with pytest.raises(QueryError, match="is not one of"):
        ordinal_ranges(pa.array([1]), None, "x", pa.int64())
    with pytest.raises(QueryError, match="query row 1: bounds 'x' is not one of"):
        ordinal_ranges(pa.array([1, 2]), None, pa.array(["[]", "x"]), pa.int64())


FLOATS = (
    st.floats(allow_nan=True)
    | st.integers(-300, 300).map(float)
    | st.sampled_from([127.5, -128.5, 2.0**63, -(2.0**63), 2.0**53, 3.5e38, -0.0, 0.1])
)
COLUMNS: dict[pa.DataType, st.SearchStrategy[Any]] = {
    **VALUES,
    pa.float64(): FLOATS,
    pa.float32(): st.floats(width=32),
    pa.int64(): st.sampled_from([n for n in LANDMARKS if abs(n) < 2**63]) | st.integers(-200, 200),
    pa.timestamp("ns"): st.integers(-(2**63), 2**63 - 1) | st.integers(-5000, 5000),
    pa.timestamp("ns", "UTC"): st.integers(-5000, 5000),
    pa.string(): MOMENTS.map(str) | st.just("soon"),
}
BOUND_TYPES = {
    "number": [
        pa.int8(),
        pa.int64(),
        pa.uint64(),
        pa.float32(),
        pa.float64(),
        pa.decimal128(10, 2),
    ],
    "time": [pa.date32(), pa.timestamp("s"), pa.timestamp("us"), pa.timestamp("ns"), pa.string()],
    "instant": [pa.timestamp("us", "Asia/Tokyo"), pa.timestamp("ns", "UTC")],
}


def scalar_ranges(
    lo: pa.Array, hi: pa.Array, kinds: list[str], attribute: pa.DataType
) -> list[tuple[int, int]]:
    """Row by row through the scalar rule."""

    def bounds(column: pa.Array) -> list[Any]:
        if not pa.types.is_temporal(column.type):
            return column.to_pylist()
        return [scalar if scalar.is_valid else None for scalar in column]

    found = []
    for row, (start, end, kind) in enumerate(zip(bounds(lo), bounds(hi), kinds, strict=True)):
        try:
            found.append(ordinal_range(Range(start, end, kind), attribute))
        except QueryError as error:
            raise error.at(row=row) from None
    return found


@pytest.mark.parametrize("family", BOUND_TYPES)
@settings(PROPERTY, max_examples=400)
@given(data=st.data())
def test_columns_and_scalars_agree(family: str, data: st.DataObject) -> None:
    types = BOUND_TYPES[family]
    attribute = data.draw(st.sampled_from([kind for kind in types if kind != pa.string()]))
    rows = data.draw(st.integers(1, 4))
    lo, hi = (
        pa.array(
            data.draw(st.lists(COLUMNS[kind] | st.none(), min_size=rows, max_size=rows)),
            kind,
            from_pandas=False,
        )
        for kind in (data.draw(st.sampled_from(types)), data.draw(st.sampled_from(types)))
    )
    kinds = data.draw(st.lists(KINDS, min_size=rows, max_size=rows))
    try:
        expected = scalar_ranges(lo, hi, kinds, attribute)
    except QueryError as error:
        with pytest.raises(QueryError) as caught:
            ordinal_ranges(lo, hi, pa.array(kinds), attribute)
        assert str(caught.value) == str(error)
        assert caught.value.row == error.row
        return
    start, end = ordinal_ranges(lo, hi, pa.array(kinds), attribute)
    assert list(zip(start.tolist(), end.tolist(), strict=True)) == expected


EDGE_TYPES = [pa.int8(), pa.uint8(), pa.int64(), pa.uint64(), pa.float32(), pa.float64()]


@pytest.mark.parametrize("attribute", EDGE_TYPES, ids=str)
@pytest.mark.parametrize("source", EDGE_TYPES, ids=str)
def test_columns_and_scalars_agree_at_every_edge(
    source: pa.DataType, attribute: pa.DataType
) -> None:
    if pa.types.is_floating(source):
        dtype = source.to_pandas_dtype()
        near = [dtype(number) for number in LANDMARKS]
        edges = [np.nextafter(n, dtype(way)) for n in near for way in (-np.inf, np.inf)]
        values = [*map(float, {*near, *edges}), math.inf, -math.inf, math.nan, -0.0, 127.5, -0.5]
    else:
        limits = np.iinfo(source.to_pandas_dtype())
        values = [n for n in LANDMARKS if limits.min <= n <= limits.max]
    for value in values:
        column = pa.array([value], source, from_pandas=False)
        for kind, end in (("[]", "lo"), ("()", "lo"), ("[]", "hi"), ("()", "hi")):
            lo, hi = (column, None) if end == "lo" else (None, column)
            try:
                expected = ordinal_range(Range(**{end: value}, bounds=kind), attribute)
            except QueryError:
                with pytest.raises(QueryError):
                    ordinal_ranges(lo, hi, kind, attribute)
                continue
            start, finish = ordinal_ranges(lo, hi, kind, attribute)
            assert (int(start[0]), int(finish[0])) == expected, (value, kind, end)


def test_one_sided_columns_chunks_and_default_kinds() -> None:
    column = pa.chunked_array([[1], [None, 3]], pa.int64())
    start, end = ordinal_ranges(column, None, "(]", pa.int64())
    assert start.tolist() == [2, INT64_MIN, 4] and end.tolist() == [INT64_MAX] * 3
    start, end = ordinal_ranges(None, column, pa.array([None, "[)", "[)"]), pa.int64())
    assert end.tolist() == [1, INT64_MAX, 2]
    start, end = ordinal_ranges(pa.nulls(2), pa.nulls(2), "[]", pa.date32())
    assert start.tolist() == [INT64_MIN] * 2


def test_zones_must_agree_by_column() -> None:
    naive, aware = pa.array([0], pa.timestamp("us")), pa.array([0], pa.timestamp("us", "UTC"))
    with pytest.raises(QueryError, match=r"row 0: .*has no UTC offset"):
        ordinal_ranges(aware, naive, "[]", aware.type)
    for attribute in (naive.type, pa.timestamp("s"), pa.date32()):
        with pytest.raises(QueryError, match=r"row 0: bound 1970-01-01T00:00:00\.0+Z has a UTC"):
            ordinal_ranges(aware, None, "[]", attribute)
    for column in (naive, pa.array([0], pa.date32())):
        with pytest.raises(QueryError, match=r"row 0: bound 1970.* has no UTC offset"):
            ordinal_ranges(None, column, "[]", aware.type)


def test_columns_must_fit_together() -> None:
    with pytest.raises(QueryError, match="2 lower bounds but 1 upper"):
        ordinal_ranges(pa.array([1, 2]), pa.array([3]), "[]", pa.int64())
    with pytest.raises(QueryError, match="needs a column"):
        ordinal_ranges(None, None, "[]", pa.int64())
    with pytest.raises(QueryError, match="2 ranges but 1 bounds kinds"):
        ordinal_ranges(pa.array([1, 2]), None, pa.array(["[]"]), pa.int64())
    with pytest.raises(QueryError, match="bounds column holds int64"):
        ordinal_ranges(pa.array([1]), None, pa.array([1]), pa.int64())
    with pytest.raises(QueryError, match="equality only"):
        ordinal_ranges(pa.array(["a"]), None, "[]", pa.string())
