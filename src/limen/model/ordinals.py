"""Values to ordinals: one order-preserving map from each attribute type into int64.

For values a, b of one type, a < b exactly when ordinal(a) < ordinal(b), and neighbours in the type
are neighbours as ordinals: every ordinal between `extremes` is a value, so a strict bound is the
next ordinal. Integers, days, timestamps and decimals are their own count (uint64 shifted by 2^63).
A float is the sign and magnitude of its IEEE bits: magnitude m becomes m or -m, hence -0.0 equals
0.0, infinities are the outermost values, and NaN has no ordinal. One pass over the column, no
Python per row.
"""

from __future__ import annotations

import math
import struct
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as pt

from limen.model.errors import EventError
from limen.model.types import (
    SECONDS_PER_DAY,
    UNITS_PER_SECOND,
    is_float,
    is_ordinal,
    lossless,
    type_name,
)

INT64_MIN = -(2**63)
INT64_MAX = 2**63 - 1

Ordinals = npt.NDArray[np.int64]
ReasonCodes = npt.NDArray[np.uint8]

REASONS = ("", "null", "NaN", "out of range")
GOOD, NULL, NAN, OUT_OF_RANGE = range(4)


def ordinals(
    column: pa.Array | pa.ChunkedArray, attribute: pa.DataType
) -> tuple[Ordinals, ReasonCodes]:
    """The ordinal of each row, and why a row has none (an index into `REASONS`, 0 is good).

    >>> ordinals(pa.array([1.0, None, float("nan")]), pa.float32())  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    limen.model.errors.EventError: type float64 cannot be read as float32 without losing values
    >>> ordinals(pa.array([40, None], pa.int32()), pa.int64())
    (array([40,  0]), array([0, 1], dtype=uint8))
    """
    if not is_ordinal(attribute) or not lossless(column.type, attribute):
        raise EventError(
            f"type {type_name(column.type)} cannot be read as {type_name(attribute)} "
            "without losing values"
        )
    column = plain(column)
    codes: ReasonCodes = np.zeros(len(column), np.uint8)
    if pt.is_null(column.type):
        codes[:] = NULL
        return np.zeros(len(column), np.int64), codes
    if column.null_count:
        codes[column.is_null().to_numpy(zero_copy_only=False)] = NULL
    values = raw_values(column)

    if is_float(attribute):
        values = values.astype(attribute.to_pandas_dtype(), copy=False)
        nan = np.isnan(values) & (codes == GOOD)
        codes[nan] = NAN
        found = _float_ordinals(values)
    elif pt.is_uint64(attribute):
        found = values.astype(np.uint64, copy=False).view(np.int64) ^ np.int64(INT64_MIN)
    else:
        found = values.astype(np.int64, copy=False)
        factor = _units(column.type, attribute)
        if factor > 1:
            limit = INT64_MAX // factor
            outside = ((found > limit) | (found < -limit)) & (codes == GOOD)
            codes[outside] = OUT_OF_RANGE
            found = np.where(codes == GOOD, found, 0) * np.int64(factor)
    # A fresh array in any case, never a read-only or strided view of the column.
    return np.where(codes == GOOD, found, np.int64(0)), codes


@lru_cache
def extremes(attribute: pa.DataType) -> tuple[int, int]:
    """The least and the greatest ordinal that is a value of the type."""
    if is_float(attribute):
        top = float_ordinal(math.inf, attribute)
        return -top, top
    if pt.is_date32(attribute):
        return -(2**31), 2**31 - 1
    if pt.is_decimal(attribute):
        return -(10**attribute.precision) + 1, 10**attribute.precision - 1
    if pt.is_integer(attribute) and attribute.bit_width < 64:
        limits = np.iinfo(attribute.to_pandas_dtype())
        return int(limits.min), int(limits.max)
    return INT64_MIN, INT64_MAX


def value_of(ordinal: int, attribute: pa.DataType) -> object:
    """The value with this ordinal.

    Dates and timestamps come as Python's own, in UTC where the attribute has a zone, or as
    `numpy.datetime64` where Python's cannot hold them (nanoseconds, years beyond 9999).

    >>> value_of(2, pa.date32())
    datetime.date(1970, 1, 3)
    """
    low, high = extremes(attribute)
    if not low <= ordinal <= high:
        raise ValueError(f"{ordinal} is not the ordinal of any {type_name(attribute)}")
    if is_float(attribute):
        return float_value(ordinal, attribute)
    if pt.is_uint64(attribute):
        return ordinal - INT64_MIN
    if pt.is_decimal(attribute):
        return Decimal(ordinal).scaleb(-attribute.scale)
    if pt.is_date32(attribute):
        try:
            return date(1970, 1, 1) + timedelta(days=ordinal)
        except OverflowError:
            return np.datetime64(ordinal, "D")
    if pt.is_timestamp(attribute):
        return _timestamp_value(ordinal, attribute)
    return ordinal


def column_of(found: Ordinals, attribute: pa.DataType) -> pa.Array:
    """A column of the values with these ordinals: the inverse of `ordinals`.

    >>> column_of(ordinals(pa.array([1.5, -0.0]), pa.float64())[0], pa.float64()).to_pylist()
    [1.5, 0.0]
    """
    found = np.ascontiguousarray(found, np.int64)
    stored: npt.NDArray[Any] = found
    if is_float(attribute):
        bits = 32 if pt.is_float32(attribute) else 64
        sign = np.int64(INT64_MIN if bits == 64 else -(2**31))
        stored = np.where(found < 0, sign - found, found).astype(f"<i{bits // 8}")
    elif pt.is_uint64(attribute):
        stored = found ^ np.int64(INT64_MIN)
    elif pt.is_decimal(attribute) and attribute.bit_width == 128:
        stored = np.stack([found, found >> np.int64(63)], axis=1)
    elif attribute.bit_width < 64:
        stored = found.astype(f"<i{attribute.bit_width // 8}")
    return pa.Array.from_buffers(attribute, len(found), [None, pa.py_buffer(stored)])


def values_of(found: Ordinals, attribute: pa.DataType) -> npt.NDArray[np.float64]:
    """Where ordinals lie on a plot's axis, approximately.

    Numbers as they are, dates in days and timestamps in seconds since 1970; ordinals beyond the
    type's own (open ends) are at plus or minus infinity.
    """
    found = np.asarray(found, np.int64)
    low, high = extremes(attribute)
    if is_float(attribute):
        magnitude = np.minimum(np.abs(np.maximum(found, -INT64_MAX)), high)
        if pt.is_float32(attribute):
            positions = magnitude.astype(np.int32).view(np.float32).astype(np.float64)
        else:
            positions = magnitude.view(np.float64)
        positions = np.where(found < 0, -positions, positions)
    else:
        positions = found.astype(np.float64)
        if pt.is_uint64(attribute):
            positions = (found ^ np.int64(INT64_MIN)).view(np.uint64).astype(np.float64)
        elif pt.is_decimal(attribute):
            positions = positions / 10.0**attribute.scale
        elif pt.is_timestamp(attribute):
            positions = positions / UNITS_PER_SECOND[attribute.unit]
    outside = np.where(found < 0, -np.inf, np.inf)
    result: npt.NDArray[np.float64] = np.where((found < low) | (found > high), outside, positions)
    return result


def float_ordinal(value: float, attribute: pa.DataType) -> int:
    """The ordinal of a float that is a value of the attribute's type."""
    code, sign = ("<f", 2**31) if pt.is_float32(attribute) else ("<d", 2**63)
    bits = int.from_bytes(struct.pack(code, value), "little")
    return bits if bits < sign else sign - bits


def float_value(ordinal: int, attribute: pa.DataType) -> float:
    """The inverse of `float_ordinal`."""
    code, width = ("<f", 4) if pt.is_float32(attribute) else ("<d", 8)
    (magnitude,) = struct.unpack(code, abs(ordinal).to_bytes(width, "little"))
    return -float(magnitude) if ordinal < 0 else float(magnitude)


def plain(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """One array, without dictionary encoding."""
    if isinstance(column, pa.ChunkedArray):
        column = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
    return column.dictionary_decode() if pt.is_dictionary(column.type) else column


def raw_values(column: pa.Array) -> npt.NDArray[Any]:
    """The stored numbers of an ordinal column: counts or floats, anything under a null."""
    width = column.type.bit_width // 8
    kind = "f" if pt.is_floating(column.type) else "u" if _is_unsigned(column.type) else "i"
    words = 2 if width == 16 else 1  # decimal128 of at most 18 digits: the low word is the value
    stored = np.dtype(f"<{kind}{width // words}")
    if not len(column):
        return np.zeros(0, stored)
    values = np.frombuffer(column.buffers()[1], stored)
    chosen = values[column.offset * words : (column.offset + len(column)) * words : words]
    return chosen


def _is_unsigned(t: pa.DataType) -> bool:
    return bool(pt.is_unsigned_integer(t))


def _float_ordinals(values: npt.NDArray[Any]) -> Ordinals:
    bits = np.ascontiguousarray(values).view(f"<i{values.itemsize}").astype(np.int64, copy=False)
    sign = np.int64(INT64_MIN if values.itemsize == 8 else -(2**31))
    found: Ordinals = np.where(bits < 0, sign - bits, bits)
    return found


def _units(src: pa.DataType, attribute: pa.DataType) -> int:
    """How many of the attribute's units one unit of the column is."""
    if pt.is_timestamp(attribute):
        per_second = UNITS_PER_SECOND[attribute.unit]
        if pt.is_date32(src):
            return SECONDS_PER_DAY * per_second
        return per_second // UNITS_PER_SECOND[src.unit]
    if pt.is_decimal(attribute):
        scale: int = attribute.scale - (src.scale if pt.is_decimal(src) else 0)
        return int(10**scale)
    return 1


def _timestamp_value(ordinal: int, attribute: pa.DataType) -> object:
    per_second = UNITS_PER_SECOND[attribute.unit]
    microseconds, rest = divmod(ordinal * 10**6, per_second)
    if rest == 0:
        zone = None if attribute.tz is None else UTC
        try:
            return datetime(1970, 1, 1, tzinfo=zone) + timedelta(microseconds=microseconds)
        except OverflowError:
            pass
    return np.datetime64(ordinal, attribute.unit)
