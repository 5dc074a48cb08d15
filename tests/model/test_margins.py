"""Ranges with a margin, against exact arithmetic in every type."""

from __future__ import annotations

import math
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from limen.model import INT64_MAX, INT64_MIN, LimenError, extremes, value_of, widened

TIMED = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
TYPES = [
    *(pa.int8(), pa.int16(), pa.int32(), pa.int64()),
    *(pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()),
    *(pa.float32(), pa.float64(), pa.date32()),
    *(pa.timestamp("s"), pa.timestamp("us", "UTC"), pa.timestamp("ns")),
    *(pa.decimal128(9, 2), pa.decimal128(18, 0)),
]


def number(ordinal: int, kind: pa.DataType) -> Any:
    """The value in the units of a margin: exact, or an infinity."""
    if pa.types.is_floating(kind):
        value: Any = value_of(ordinal, kind)
        return value if math.isinf(value) else Fraction(value)
    if pa.types.is_uint64(kind):
        return Fraction(ordinal + 2**63)
    if pa.types.is_decimal(kind):
        return Fraction(ordinal, 10**kind.scale)
    return Fraction(ordinal, TIMED[kind.unit] if pa.types.is_timestamp(kind) else 1)


def ends_of(kind: pa.DataType) -> st.SearchStrategy[int]:
    """Ordinals of values, most of them near to each other, to zero or to the extremes."""
    least, greatest = extremes(kind)
    found = [
        st.integers(least, greatest),
        st.integers(max(least, -300), 300 if greatest > 300 else greatest),
        st.integers(least, least + 3),
        st.integers(greatest - 3, greatest),
    ]
    if pa.types.is_floating(kind):
        one = 1065353216 if kind == pa.float32() else 4607182418800017408  # of 1.0
        found += [st.integers(one - 50, one + 50), st.integers(-one - 50, -one + 50)]
    return st.one_of(*found)


MARGINS = st.one_of(
    st.integers(0, 5),
    st.integers(0, 20).map(lambda quarters: quarters / 4),
    st.integers(0, 3).map(lambda days: 86_400 * days),
    st.sampled_from([0.1, 1e-9, 5e-324, 1e308, 1.7976931348623157e308, 2.0**53, 1e-320]),
    st.sampled_from([2**53 + 1, 2**62, 2**63 - 1, 2**63, 2**63 + 5, 2**64 - 1, 2**64, 10**400]),
    st.decimals(0, 4, places=3),
    st.sampled_from([Decimal("0.1"), Decimal("1E-400"), Decimal("1E+310"), Decimal("0.3")]),
    st.floats(0, allow_infinity=False),
    st.sampled_from([np.float32(0.1), np.int8(3), np.uint64(2**64 - 1)]),
)


@pytest.mark.parametrize("kind", TYPES, ids=str)
@settings(max_examples=settings.default.max_examples // 8)  # type: ignore[union-attr]
@given(data=st.data())
def test_widened_is_exact(kind: pa.DataType, data: st.DataObject) -> None:
    pairs = data.draw(st.lists(st.tuples(ends_of(kind), ends_of(kind)), min_size=1, max_size=6))
    margin = data.draw(MARGINS)
    size = Fraction(margin.item() if isinstance(margin, np.number) else margin)
    lo = np.array([min(pair) for pair in pairs], np.int64)
    hi = np.array([max(pair) for pair in pairs], np.int64)
    before = lo.copy(), hi.copy()
    low, high = widened(lo, hi, margin, kind)
    assert np.array_equal(lo, before[0]) and np.array_equal(hi, before[1])
    least, greatest = extremes(kind)
    for a, found in zip(lo.tolist(), low.tolist(), strict=True):
        if a == INT64_MIN:
            assert found == a
            continue
        assert least <= found <= a
        sought = moved(number(a, kind), -size)
        assert number(found, kind) >= sought
        assert found == least or number(found - 1, kind) < sought
    for b, found in zip(hi.tolist(), high.tolist(), strict=True):
        if b == INT64_MAX:
            assert found == b
            continue
        assert b <= found <= greatest
        sought = moved(number(b, kind), size)
        assert number(found, kind) <= sought
        assert found == greatest or number(found + 1, kind) > sought


def moved(value: Any, by: Fraction) -> Any:
    return value if isinstance(value, float) else value + by


@pytest.mark.parametrize("kind", TYPES, ids=str)
def test_open_ends_stay_open(kind: pa.DataType) -> None:
    lo, hi = np.array([INT64_MIN, 5]), np.array([7, INT64_MAX])
    for margin in (0, 1, 10**6, Decimal("0.1"), 2**70):
        low, high = widened(lo, hi, margin, kind)
        assert low[0] == INT64_MIN and high[1] == INT64_MAX
        assert low[1] <= 5 and high[0] >= 7


def test_margins_of_time() -> None:
    lo = hi = np.array([10])
    for kind, units in ((pa.timestamp("ms"), 1500), (pa.timestamp("s"), 1)):
        for margin in (timedelta(seconds=1.5), 1.5, Decimal("1.5")):
            assert [e.tolist() for e in widened(lo, hi, margin, kind)] == [
                [10 - units],
                [10 + units],
            ]
    low, high = widened(lo, hi, timedelta(days=2, hours=23), pa.date32())
    assert (low.tolist(), high.tolist()) == ([8], [12])
    low, high = widened(lo, hi, 2.9, pa.date32())  # days
    assert (low.tolist(), high.tolist()) == ([8], [12])


@pytest.mark.parametrize(
    ("margin", "kind", "message"),
    [
        (-1, pa.int64(), "a margin is a number from 0 on, not -1"),
        (-0.5, pa.float64(), "a margin is a number from 0 on, not -0.5"),
        (Decimal("-0.5"), pa.float64(), "a margin is a number from 0 on"),
        (float("nan"), pa.float64(), "a margin is a number from 0 on, not nan"),
        (float("inf"), pa.float64(), "a margin is a number from 0 on, not inf"),
        (Decimal("NaN"), pa.float64(), "a margin is a number from 0 on"),
        (Decimal("sNaN"), pa.float64(), "a margin is a number from 0 on"),
        (Decimal("Infinity"), pa.int8(), "a margin is a number from 0 on"),
        (np.float64("nan"), pa.int8(), "a margin is a number from 0 on"),
        (timedelta(seconds=-1), pa.timestamp("s"), "a margin is not negative"),
        (timedelta(seconds=1), pa.int64(), "is none for int64"),
        (np.timedelta64(1, "s"), pa.timestamp("s"), "is none for timestamp"),
        (np.complex128(1), pa.float64(), "is none for float64"),
        ("1", pa.int64(), "a margin of '1' is none for int64"),
        (True, pa.int64(), "a margin of True is none for int64"),
        (None, pa.date32(), "a margin of None is none for date"),
    ],
)
def test_margins_that_make_no_sense(margin: object, kind: pa.DataType, message: str) -> None:
    none = np.empty(0, np.int64)
    with pytest.raises(LimenError, match=message):
        widened(none, none, margin, kind)
