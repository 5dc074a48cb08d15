"""The map from values to ordinals: order, neighbours, inverse, and what has no ordinal."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from limen.model import (
    INT64_MAX,
    INT64_MIN,
    REASONS,
    EventError,
    Range,
    extremes,
    ordinal_range,
    ordinals,
    value_of,
    values_of,
)

PROPERTY = settings(derandomize=True, deadline=None, max_examples=60)


def integers_of(bits: int, signed: bool) -> st.SearchStrategy[int]:
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    return st.integers(low, high) | st.sampled_from([low, low + 1, 0, high - 1, high])


def decimals_of(precision: int, scale: int) -> st.SearchStrategy[Decimal]:
    top = 10**precision - 1
    return st.integers(-top, top).map(lambda unscaled: Decimal(unscaled).scaleb(-scale))


EDGES = [0.0, -0.0, math.inf, -math.inf, 5e-324, -5e-324, 1.7976931348623157e308]
EDGES32 = [0.0, -0.0, math.inf, -math.inf, 2.0**-149, -(2.0**-149), float(np.finfo("f4").max)]
MOMENTS = st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30))
VALUES: dict[pa.DataType, st.SearchStrategy[Any]] = {
    pa.int8(): integers_of(8, True),
    pa.int16(): integers_of(16, True),
    pa.int32(): integers_of(32, True),
    pa.int64(): integers_of(64, True),
    pa.uint8(): integers_of(8, False),
    pa.uint16(): integers_of(16, False),
    pa.uint32(): integers_of(32, False),
    pa.uint64(): integers_of(64, False),
    pa.float32(): st.floats(width=32, allow_nan=False) | st.sampled_from(EDGES32),
    pa.float64(): st.floats(allow_nan=False) | st.sampled_from(EDGES),
    pa.date32(): st.dates(),
    pa.timestamp("s"): MOMENTS.map(lambda moment: moment.replace(microsecond=0)),
    pa.timestamp("us"): MOMENTS,
    pa.timestamp("us", "Asia/Tokyo"): MOMENTS.map(lambda moment: moment.replace(tzinfo=UTC)),
    pa.decimal128(10, 2): decimals_of(10, 2),
    pa.decimal128(18, 0): decimals_of(18, 0),
    pa.decimal128(18, 18): decimals_of(18, 18),
}
EVERY_TYPE = pytest.mark.parametrize("kind", VALUES, ids=str)


def ordinals_of(values: list[Any], kind: pa.DataType) -> list[int]:
    found, codes = ordinals(pa.array(values, kind), kind)
    assert found.flags.writeable and found.flags.c_contiguous
    assert found.dtype == np.int64 and codes.dtype == np.uint8
    assert not codes.any()
    return [int(ordinal) for ordinal in found]


@EVERY_TYPE
@PROPERTY
@given(data=st.data())
def test_order_and_equality_are_kept(kind: pa.DataType, data: st.DataObject) -> None:
    values = data.draw(st.lists(VALUES[kind], min_size=2, max_size=12))
    found = ordinals_of(values, kind)
    for value, ordinal in zip(values, found, strict=True):
        for other, other_ordinal in zip(values, found, strict=True):
            assert (value < other) == (ordinal < other_ordinal)
            assert (value == other) == (ordinal == other_ordinal)


@EVERY_TYPE
@PROPERTY
@given(data=st.data())
def test_the_inverse_gives_the_value_back(kind: pa.DataType, data: st.DataObject) -> None:
    value = data.draw(VALUES[kind])
    (ordinal,) = ordinals_of([value], kind)
    least, greatest = extremes(kind)
    assert least <= ordinal <= greatest
    assert value_of(ordinal, kind) == value
    assert ordinal_range(Range(value, value), kind) == (ordinal, ordinal)


@pytest.mark.parametrize(("kind", "dtype"), [(pa.float32(), "f4"), (pa.float64(), "f8")], ids=str)
@PROPERTY
@given(data=st.data())
def test_neighbouring_floats_have_neighbouring_ordinals(
    kind: pa.DataType, dtype: str, data: st.DataObject
) -> None:
    value = np.dtype(dtype).type(data.draw(VALUES[kind]))
    if value == np.inf:
        return
    with np.errstate(over="ignore"):
        following = np.nextafter(value, np.dtype(dtype).type(np.inf))
    here, there = ordinals_of([float(value), float(following)], kind)
    assert there == here + 1


@pytest.mark.parametrize(
    ("kind", "least", "greatest"),
    [
        (pa.int8(), -128, 127),
        (pa.uint32(), 0, 2**32 - 1),
        (pa.int64(), -(2**63), 2**63 - 1),
        (pa.uint64(), 0, 2**64 - 1),
        (pa.float32(), -math.inf, math.inf),
        (pa.float64(), -math.inf, math.inf),
        (pa.decimal128(5, 2), Decimal("-999.99"), Decimal("999.99")),
    ],
    ids=str,
)
def test_extremes_are_the_outermost_values(kind: pa.DataType, least: Any, greatest: Any) -> None:
    assert tuple(ordinals_of([least, greatest], kind)) == extremes(kind)
    with pytest.raises(ValueError, match="is not the ordinal of any"):
        value_of(extremes(kind)[1] + 1, kind)


def test_uint64_ordinals_are_shifted_by_half_the_type() -> None:
    assert ordinals_of([0, 2**63, 2**64 - 1], pa.uint64()) == [INT64_MIN, 0, INT64_MAX]


def test_zero_has_one_ordinal() -> None:
    for kind in (pa.float32(), pa.float64()):
        assert ordinals_of([-0.0, 0.0], kind) == [0, 0]


def test_null_and_nan_are_bad_and_say_why() -> None:
    column = pa.array([1.0, None, math.nan, math.inf], from_pandas=False)
    found, codes = ordinals(column, pa.float64())
    assert [REASONS[code] for code in codes] == ["", "null", "NaN", ""]
    assert found[1] == found[2] == 0
    _, codes = ordinals(pa.nulls(2), pa.date32())
    assert [REASONS[code] for code in codes] == ["null", "null"]


def test_a_value_lost_by_a_finer_unit_is_bad() -> None:
    seconds = pa.array([1, None, 2**62, -(2**62)], pa.timestamp("s"))
    found, codes = ordinals(seconds, pa.timestamp("ns"))
    assert found[0] == 10**9
    assert [REASONS[code] for code in codes] == ["", "null", "out of range", "out of range"]
    days = pa.array([1, 2**31 - 1, -(2**31)], pa.date32())
    found, codes = ordinals(days, pa.timestamp("us"))
    assert found[0] == 86_400 * 10**6
    assert [REASONS[code] for code in codes] == ["", "out of range", "out of range"]
    limit = INT64_MAX // 10**9
    _, codes = ordinals(
        pa.array([limit, limit + 1, -limit, -limit - 1], pa.timestamp("s")), pa.timestamp("ns")
    )
    assert codes.tolist() == [0, 3, 0, 3]


@PROPERTY
@given(
    values=st.lists(integers_of(16, True) | st.none(), max_size=10),
    cut=st.integers(0, 10),
)
def test_a_lossless_column_has_the_attributes_ordinals(values: list[int | None], cut: int) -> None:
    """Other column types, chunks, slices and dictionaries change nothing."""
    plain = pa.array(values, pa.int16())
    for kind in (pa.int64(), pa.float32(), pa.float64(), pa.decimal128(9, 3)):
        expected, expected_codes = ordinals(pa.array(values, kind), kind)
        split = pa.chunked_array([plain[:cut], plain[cut:]], pa.int16())
        padded = pa.concat_arrays([pa.array([7, None, 9], pa.int16()), plain])[3:]
        for column in (plain, split, padded, plain.dictionary_encode()):
            found, codes = ordinals(column, kind)
            assert found.tolist() == expected.tolist()
            assert codes.tolist() == expected_codes.tolist()


def test_decimals_of_each_width_and_scale() -> None:
    values = [Decimal("1.5"), None, Decimal("-0.1")]
    for source in (pa.decimal32(5, 1), pa.decimal64(5, 1), pa.decimal128(5, 1)):
        found, codes = ordinals(pa.array(values, source)[1:], pa.decimal128(10, 3))
        assert found.tolist() == [0, -100] and codes.tolist() == [1, 0]


def test_float32_is_widened_for_a_float64_attribute() -> None:
    column = pa.array([0.1], pa.float32())
    found, _ = ordinals(column, pa.float64())
    assert value_of(int(found[0]), pa.float64()) == float(np.float32(0.1)) != 0.1


def test_a_lossy_column_is_refused() -> None:
    with pytest.raises(EventError, match="type int64 cannot be read as float64 without losing"):
        ordinals(pa.array([1]), pa.float64())
    with pytest.raises(EventError, match="string"):
        ordinals(pa.array(["x"]), pa.string())


def test_values_beyond_pythons_calendar_come_as_numpys() -> None:
    assert value_of(10**7, pa.date32()) == np.datetime64(10**7, "D")
    assert value_of(1, pa.timestamp("ns")) == np.datetime64(1, "ns")
    assert value_of(2000, pa.timestamp("ns")) == datetime(1970, 1, 1) + timedelta(microseconds=2)
    assert value_of(INT64_MAX, pa.timestamp("s")) == np.datetime64(INT64_MAX, "s")
    assert value_of(0, pa.timestamp("ms", "UTC")) == datetime(1970, 1, 1, tzinfo=UTC)
    assert value_of(-1, pa.date32()) == date(1969, 12, 31)


@pytest.mark.parametrize(
    ("values", "kind", "positions"),
    [
        ([-7, 0, 7], pa.int8(), [-7, 0, 7]),
        ([0, 2**64 - 1], pa.uint64(), [0, 2.0**64]),
        ([-1.5, 0.0, 1e300, math.inf], pa.float64(), [-1.5, 0, 1e300, math.inf]),
        ([-1.5, 2.0**-149, -math.inf], pa.float32(), [-1.5, 2.0**-149, -math.inf]),
        ([date(1970, 1, 11)], pa.date32(), [10]),
        ([datetime(1970, 1, 1, 0, 0, 2, 500_000)], pa.timestamp("us"), [2.5]),
        ([Decimal("12.34")], pa.decimal128(10, 2), [12.34]),
    ],
    ids=str,
)
def test_positions_for_plots(values: list[Any], kind: pa.DataType, positions: list[float]) -> None:
    found, _ = ordinals(pa.array(values, kind), kind)
    assert values_of(found, kind).tolist() == positions


def test_open_ends_are_plotted_at_infinity() -> None:
    ends = np.array([INT64_MIN, INT64_MAX])
    for kind in (pa.int32(), pa.float32(), pa.float64(), pa.date32(), pa.decimal128(10, 2)):
        assert values_of(ends, kind).tolist() == [-math.inf, math.inf]
