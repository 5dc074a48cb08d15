"""Whole columns of bounds to ordinal ranges, with the same answers as `ordinal_range` row by row.

A bound column is read as (floor, fractional, side): the greatest ordinal at or below the bound,
whether the bound lies strictly above it, and -1, 0 or 1 where the bound is below, within or above
the type's values. Four readings are pure array work: a lossless column, floats on integers,
float64 on float32, and a finer timestamp on a coarser one; integers on other integers or on floats
too, where their values allow. Any other pair of types goes through the scalar rule once for each
distinct value. The first bad row is handed to the scalar rule, which words the error.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from limen.model.bounds import (
    BOUND_KINDS,
    UNCONSTRAINED,
    Range,
    check_kind,
    lower_end,
    ordinal_range,
    upper_end,
)
from limen.model.errors import QueryError
from limen.model.ordinals import (
    NAN,
    OUT_OF_RANGE,
    Ordinals,
    extremes,
    ordinals,
    plain,
    raw_values,
)
from limen.model.types import UNITS_PER_SECOND, is_float, is_key, lossless, type_name

Mask = npt.NDArray[np.bool_]
Column: TypeAlias = pa.Array | pa.ChunkedArray


class Reading(NamedTuple):
    floor: Ordinals
    fractional: Mask
    side: npt.NDArray[np.int8]


def ordinal_ranges(
    lo: Column | None,
    hi: Column | None,
    bounds: str | Column,
    attribute: pa.DataType,
) -> tuple[Ordinals, Ordinals]:
    """The ordinal range of each row; a null bound leaves its end open.

    >>> ordinal_ranges(pa.array([1, 2]), pa.array([1.5, 7.0]), "[)", pa.int64())
    (array([1, 2]), array([1, 6]))
    """
    if is_key(attribute):
        raise QueryError(f"{type_name(attribute)} takes equality only, not a range")
    lo = None if lo is None else plain(lo)
    hi = None if hi is None else plain(hi)
    given = lo if lo is not None else hi
    if given is None:
        raise QueryError("a range needs a column of lower or of upper bounds")
    if lo is not None and hi is not None and len(lo) != len(hi):
        raise QueryError(f"{len(lo)} lower bounds but {len(hi)} upper bounds")
    rows = len(given)
    closed_below, closed_above = _closed(bounds, rows)
    start, bad_start = _ends(lo, closed_below, attribute, -1, rows)
    end, bad_end = _ends(hi, closed_above, attribute, 1, rows)
    bad = bad_start | bad_end | (start > end)
    if bad.any():
        row = int(bad.argmax())
        _refuse(row, lo, hi, closed_below[row], closed_above[row], attribute)
    return start, end


def _closed(bounds: str | Column, rows: int) -> tuple[Mask, Mask]:
    if isinstance(bounds, str):
        check_kind(bounds)
        return np.full(rows, bounds[0] == "["), np.full(rows, bounds[1] == "]")
    kinds = plain(bounds)
    if pt.is_null(kinds.type):
        kinds = kinds.cast(pa.string())
    if not lossless(kinds.type, pa.string()):
        raise QueryError(f"the bounds column holds {type_name(kinds.type)}, not text")
    if len(kinds) != rows:
        raise QueryError(f"{rows} ranges but {len(kinds)} bounds kinds")
    kinds = kinds.cast(pa.string()).fill_null("[]")
    codes = pc.index_in(kinds, pa.array(BOUND_KINDS))
    if codes.null_count:
        row = int(codes.is_null().to_numpy(zero_copy_only=False).argmax())
        try:
            check_kind(kinds[row].as_py())
        except QueryError as error:
            raise error.at(row=row) from None
    code = codes.to_numpy(zero_copy_only=False)
    return code < 2, code % 2 == 0


def _ends(
    column: pa.Array | None, inclusive: Mask, attribute: pa.DataType, way: int, rows: int
) -> tuple[Ordinals, Mask]:
    """The outermost ordinal each bound admits, and the rows it admits none or is no bound.

    `way` is -1 for lower bounds and 1 for upper ones.
    """
    open_end = np.int64(UNCONSTRAINED[way > 0])
    if column is None or column.null_count == rows:
        return np.full(rows, open_end), np.zeros(rows, bool)
    null: Mask = column.is_null().to_numpy(zero_copy_only=False)
    least, greatest = extremes(attribute)
    read = _read(column, attribute)
    if read is None:
        return _scalar_ends(column, inclusive, attribute, way)
    (floor, fractional, side), not_a_bound, infinite = read
    if way < 0:
        step = np.where(inclusive, fractional, True)
        bad = (side > 0) | ((side == 0) & step & (floor == greatest))
        found = np.where(side < 0, np.int64(least), floor + (step & ~bad))
    else:
        step = np.where(inclusive, False, ~fractional)
        bad = (side < 0) | ((side == 0) & step & (floor == least))
        found = np.where(side > 0, np.int64(greatest), floor - (step & ~bad))
    found = np.where(null | (infinite & (side == way)), open_end, found)
    return found, (bad | not_a_bound) & ~null


def _read(column: pa.Array, attribute: pa.DataType) -> tuple[Reading, Mask, Mask] | None:
    """The column's reading, its NaN rows and its infinite rows on a type without infinities."""
    nothing = np.zeros(len(column), bool)
    if lossless(column.type, attribute):
        found, codes = ordinals(column, attribute)
        if (codes == OUT_OF_RANGE).any():
            return None
        return _whole(found), codes == NAN, nothing
    if pt.is_floating(column.type) and not pt.is_float16(column.type):
        values = raw_values(column).astype(np.float64)
        if column.null_count:
            values[column.is_null().to_numpy(zero_copy_only=False)] = 0.0
        nan = np.isnan(values)
        if pt.is_float32(attribute):
            return _float64_on_float32(values), nan, nothing
        if pt.is_integer(attribute) and not pt.is_uint64(attribute):
            return _floats_on_integers(np.where(nan, 0.0, values), attribute), nan, np.isinf(values)
        return None
    reading = None
    if pt.is_integer(column.type):
        reading = _integers(column, attribute)
    elif _same_clock(column.type, attribute):
        factor = UNITS_PER_SECOND[column.type.unit] // UNITS_PER_SECOND[attribute.unit]
        floor, rest = np.divmod(raw_values(column).view(np.int64), np.int64(factor))
        reading = Reading(floor, rest != 0, np.zeros(len(column), np.int8))
    return None if reading is None else (reading, nothing, nothing)


def _whole(found: Ordinals) -> Reading:
    return Reading(found, np.zeros(len(found), bool), np.zeros(len(found), np.int8))


def _float64_on_float32(values: npt.NDArray[np.float64]) -> Reading:
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        nearest = values.astype(np.float32)
    found, _ = ordinals(pa.array(nearest), pa.float32())
    widened = nearest.astype(np.float64)
    side = np.zeros(len(values), np.int8)
    return Reading(found - (widened > values), widened != values, side)


def _floats_on_integers(values: npt.NDArray[np.float64], attribute: pa.DataType) -> Reading:
    least, greatest = extremes(attribute)
    below = values < float(least)
    above = values >= float(greatest + 1)  # a power of two: exact
    inside = np.where(below | above, 0.0, values)
    floor = np.floor(inside)
    side = above.astype(np.int8) - below.astype(np.int8)
    return Reading(floor.astype(np.int64), floor != inside, side)


def _integers(column: pa.Array, attribute: pa.DataType) -> Reading | None:
    filled = column.fill_null(0) if column.null_count else column
    values = raw_values(filled)
    if is_float(attribute):
        limit = 2**24 if pt.is_float32(attribute) else 2**53
        inexact = values > limit
        if values.dtype.kind == "i":
            inexact |= values < -limit
        if inexact.any():
            return None
        floats = pa.array(values.astype(attribute.to_pandas_dtype()))
        return _whole(ordinals(floats, attribute)[0])
    if not pt.is_integer(attribute) or pt.is_uint64(attribute):
        return None
    least, greatest = extremes(attribute)
    above = values > greatest
    below = values < least if values.dtype.kind == "i" else np.zeros(len(values), bool)
    inside = np.where(above | below, 0, values).astype(np.int64)
    side = above.astype(np.int8) - below.astype(np.int8)
    return Reading(inside, np.zeros(len(values), bool), side)


def _same_clock(src: pa.DataType, attribute: pa.DataType) -> bool:
    return bool(
        pt.is_timestamp(src)
        and pt.is_timestamp(attribute)
        and (src.tz is None) == (attribute.tz is None)
    )


def _scalar_ends(
    column: pa.Array, inclusive: Mask, attribute: pa.DataType, way: int
) -> tuple[Ordinals, Mask]:
    least, greatest = extremes(attribute)
    encoded = column.dictionary_encode()
    codes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    values = bound_values(encoded.dictionary)
    found = np.full(len(column), UNCONSTRAINED[way > 0], np.int64)
    bad = np.zeros(len(column), bool)
    end = lower_end if way < 0 else upper_end
    for closed in (True, False):
        rows = np.flatnonzero((inclusive == closed) & (codes >= 0))
        table = np.zeros(len(values), np.int64)
        refused = np.ones(len(values), bool)
        for code in np.unique(codes[rows]):
            try:
                ordinal = end(values[code], closed, attribute)
            except QueryError:
                continue
            refused[code] = ordinal > greatest if way < 0 else ordinal < least
            table[code] = 0 if refused[code] else ordinal
        found[rows] = table[codes[rows]]
        bad[rows] = refused[codes[rows]]
    return found, bad


def bound_values(column: pa.Array) -> list[object]:
    """The bounds of a column; Arrow's own scalars where Python's dates and times are too coarse."""
    if pt.is_timestamp(column.type) or pt.is_date32(column.type):
        return [scalar if scalar.is_valid else None for scalar in column]
    values: list[object] = column.to_pylist()
    return values


def _refuse(
    row: int,
    lo: pa.Array | None,
    hi: pa.Array | None,
    closed_below: bool,
    closed_above: bool,
    attribute: pa.DataType,
) -> None:
    kind = ("[" if closed_below else "(") + ("]" if closed_above else ")")
    start = None if lo is None else bound_values(lo.slice(row, 1))[0]
    end = None if hi is None else bound_values(hi.slice(row, 1))[0]
    try:
        ordinal_range(Range(start, end, kind), attribute)
    except QueryError as error:
        raise error.at(row=row) from None
    raise AssertionError(f"row {row}: the column rule refused what the scalar rule accepts")
