"""Ranges with a margin around them: exact, like every other bound.

[lo, hi] with margin m holds the values v with lo - m <= v <= hi + m, in exact arithmetic; an open end
stays open. A sum of two floats that is no float is rounded inward, by the error that Knuth's two-sum
gives; integers, decimals, days and timestamps count in whole units.
"""

from __future__ import annotations

import math
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as pt

from limen.model.errors import LimenError
from limen.model.ordinals import INT64_MAX, INT64_MIN, Ordinals, column_of, extremes, ordinals
from limen.model.types import SECONDS_PER_DAY, UNITS_PER_SECOND, is_float, type_name

Floats = npt.NDArray[np.float64]

NUMBERS = (int, float, Decimal, np.integer, np.floating)
MOST = np.finfo(np.float64).max


def widened(
    lo: Ordinals, hi: Ordinals, margin: object, attribute: pa.DataType
) -> tuple[Ordinals, Ordinals]:
    """The ranges with the margin: a number, or a timedelta where the attribute is a time.

    A number is of days for dates and of seconds for timestamps.

    >>> ends = widened(np.array([40, 50]), np.array([45, 2**63 - 1]), 2.5, pa.int64())
    >>> [end.tolist() for end in ends]
    [[38, 48], [47, 9223372036854775807]]
    """
    size = _size(margin, attribute)
    if is_float(attribute):
        low, high = _float_below(lo, size, attribute), -_float_below(-hi, size, attribute)
    else:
        least, greatest = extremes(attribute)
        units = math.floor(size)
        low = _shifted(lo, units, least)
        high = ~_shifted(~hi, units, ~greatest)  # ~x is -1 - x: it turns the order round, exactly
    return np.where(lo == INT64_MIN, lo, low), np.where(hi == INT64_MAX, hi, high)


def _size(margin: object, attribute: pa.DataType) -> Fraction:
    """The margin in the units in which the attribute counts."""
    day, moment = pt.is_date32(attribute), pt.is_timestamp(attribute)
    if isinstance(margin, timedelta) and (day or moment):
        size = Fraction(margin // timedelta(microseconds=1), 10**6)
        size /= SECONDS_PER_DAY if day else 1
    elif isinstance(margin, (bool, np.timedelta64)) or not isinstance(margin, NUMBERS):
        raise LimenError(f"a margin of {margin!r} is none for {type_name(attribute)}")
    else:
        plain = margin.item() if isinstance(margin, np.number) else margin
        finite = plain.is_finite() if isinstance(plain, Decimal) else abs(plain) < math.inf
        if not finite or plain < 0:
            raise LimenError(f"a margin is a number from 0 on, not {margin!r}")
        size = Fraction(plain)
    if size < 0:
        raise LimenError(f"a margin is not negative, as {margin!r} is")
    if moment:
        return size * UNITS_PER_SECOND[attribute.unit]
    if pt.is_decimal(attribute):
        return size * Fraction(10) ** int(attribute.scale)
    return size


def _shifted(ends: Ordinals, units: int, least: int) -> Ordinals:
    """ends - units, but nowhere below least."""
    if least + units > INT64_MAX:
        return np.full(len(ends), least, np.int64)
    below = ends - np.uint64(units).view(np.int64)  # modulo 2^64; right where there is such an end
    return np.where(ends < least + units, np.int64(least), below)


def _float_below(ends: Ordinals, size: Fraction, attribute: pa.DataType) -> Ordinals:
    """The ordinals of the least values of the type that are not below ends - size."""
    least, greatest = extremes(attribute)
    a: Floats = column_of(np.clip(ends, least, greatest), attribute).to_numpy().astype(np.float64)
    with np.errstate(all="ignore"):
        if size <= MOST and Fraction(float(size)) == size:
            b = -float(size)
            found = a + b
            rest = found - a
            error = (a - (found - rest)) + (b - rest)
            found = np.where(error > 0, np.nextafter(found, np.inf), found)
            found = np.where(np.isinf(found) & np.isfinite(a), -MOST, found)
        else:
            distinct, at = np.unique(a, return_inverse=True)
            found = np.array([_least_float(value, size) for value in distinct.tolist()] or a)[at]
        if pt.is_float32(attribute):
            rounded = found.astype(np.float32)
            below = rounded < found
            rounded[below] = np.nextafter(rounded[below], np.float32(np.inf))
            return ordinals(pa.array(rounded), attribute)[0]
    return ordinals(pa.array(found), attribute)[0]


def _least_float(end: float, size: Fraction) -> float:
    """The least double that is not below end - size, where the size is none itself."""
    if math.isinf(end):
        return end
    sought = Fraction(end) - size
    if sought <= -MOST:
        return -float(MOST)
    near = float(sought)
    return near if near >= sought else math.nextafter(near, math.inf)
