"""Where one bound, of whatever Python type, lies on an attribute's ordinal line, exactly.

`place` gives the bound as a rational in the attribute's own unit; `enclosing` gives the greatest
ordinal at or below it and the least at or above it, as unbounded Python ints. They are equal when
the bound is itself a value of the type and neighbours otherwise. Nothing is rounded on the way.
"""

from __future__ import annotations

import math
import re
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from numbers import Rational

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from limen.model.errors import QueryError
from limen.model.ordinals import INT64_MIN, float_ordinal, float_value
from limen.model.types import SECONDS_PER_DAY, UNITS_PER_SECOND, is_float, type_name

FAR = 2**80  # beyond the ordinals of every type

# Decimals and ints may be of any size; past these magnitudes all are alike to every type.
_HUGE_EXPONENT = 400
_HUGE = Fraction(10**_HUGE_EXPONENT)

_ISO = re.compile(
    r"(\d{4}-\d\d-\d\d)"
    r"(?:[T ](\d\d:\d\d(?::\d\d)?)(?:[.](\d{1,18}))?)?"
    r"\s*(Z|z|[+-]\d\d(?::?\d\d)?)?"
)
_EPOCH = datetime(1970, 1, 1)
_NUMPY_SECONDS = {
    "W": Fraction(7 * SECONDS_PER_DAY),
    "D": Fraction(SECONDS_PER_DAY),
    "h": Fraction(3600),
    "m": Fraction(60),
    **{unit: Fraction(1, count) for unit, count in UNITS_PER_SECOND.items()},
}


def enclosing(value: object, attribute: pa.DataType) -> tuple[int, int]:
    """The ordinals next below and next above a bound; beyond `FAR` for an infinite one.

    >>> enclosing(40.5, pa.int64())
    (40, 41)
    """
    if isinstance(value, float) and pt.is_float64(attribute) and value == value:
        found = float_ordinal(value, attribute)
        return found, found
    exact = place(value, attribute)
    if is_float(attribute):
        return _between_floats(exact, attribute)
    if isinstance(exact, float):
        return (FAR, FAR) if exact > 0 else (-FAR, -FAR)
    shift = INT64_MIN if pt.is_uint64(attribute) else 0
    return math.floor(exact) + shift, math.ceil(exact) + shift


def place(value: object, attribute: pa.DataType) -> Fraction | float:
    """The bound in the attribute's unit: a rational, or a float when infinite."""
    if pt.is_date32(attribute) or pt.is_timestamp(attribute):
        return _time_place(value, attribute)
    exact = _number(value, attribute)
    if pt.is_decimal(attribute) and isinstance(exact, Fraction):
        return exact * Fraction(10) ** int(attribute.scale)
    return exact


def shown(value: object) -> str:
    """A bound as a message shows it: its own spelling, on a few characters."""
    if isinstance(value, np.generic) and not isinstance(value, np.datetime64):
        value = value.item()
    if isinstance(value, pa.TimestampScalar) and value.is_valid:
        zone = "" if value.type.tz is None else "Z"
        return f"{np.datetime64(value.value, value.type.unit)}{zone}"
    if isinstance(value, int) and value.bit_length() > 300:
        return "a number of more than 90 digits"
    text = repr(value) if isinstance(value, str) else str(value)
    return text if len(text) <= 80 else text[:77] + "..."


def _number(value: object, attribute: pa.DataType) -> Fraction | float:
    if isinstance(value, (bool, np.bool_)):
        raise QueryError(f"bound {value} is a bool; {type_name(attribute)} needs a number")
    if isinstance(value, np.integer):
        value = int(value)
    if isinstance(value, (float, np.floating)):
        if math.isnan(value):
            raise QueryError("bound is NaN, which matches nothing")
        if math.isinf(value):
            return float(value)
        return Fraction(*value.as_integer_ratio())
    if isinstance(value, Decimal):
        return _decimal_number(value)
    if isinstance(value, Rational):
        return Fraction(value)
    raise QueryError(
        f"bound {shown(value)} is a {type(value).__name__}; {type_name(attribute)} needs a number"
    )


def _decimal_number(value: Decimal) -> Fraction | float:
    if value.is_nan():
        raise QueryError("bound is NaN, which matches nothing")
    if value.is_infinite():
        return math.copysign(math.inf, value)
    if value == 0:
        return Fraction(0)
    if abs(value.adjusted()) > _HUGE_EXPONENT:
        magnitude = _HUGE if value.adjusted() > 0 else 1 / _HUGE
        return -magnitude if value.is_signed() else magnitude
    return Fraction(value)


def _between_floats(exact: Fraction | float, attribute: pa.DataType) -> tuple[int, int]:
    if isinstance(exact, float):
        found = float_ordinal(exact, attribute)
        return found, found
    try:
        nearest = exact.numerator / exact.denominator
    except OverflowError:
        nearest = math.inf if exact > 0 else -math.inf
    if pt.is_float32(attribute):
        with np.errstate(over="ignore", under="ignore"):
            nearest = float(np.float32(nearest))
    below = float_ordinal(nearest, attribute)
    if float_value(below, attribute) > exact:
        below -= 1
    return below, below if float_value(below, attribute) == exact else below + 1


def _time_place(value: object, attribute: pa.DataType) -> Fraction | float:
    if isinstance(value, (float, np.floating)) and math.isinf(value):
        return float(value)
    seconds, aware = _seconds(value, attribute)
    zoned = pt.is_timestamp(attribute) and attribute.tz is not None
    if aware and not zoned:
        raise QueryError(
            f"bound {shown(value)} has a UTC offset, but {type_name(attribute)} has no zone"
        )
    if zoned and not aware:
        raise QueryError(
            f"bound {shown(value)} has no UTC offset, but {type_name(attribute)} holds instants; "
            "write one, such as 2024-01-31T09:00:00Z"
        )
    if pt.is_date32(attribute):
        return seconds / SECONDS_PER_DAY
    return seconds * UNITS_PER_SECOND[attribute.unit]


def _seconds(value: object, attribute: pa.DataType) -> tuple[Fraction, bool]:
    """Seconds since 1970, and whether the bound is an instant (has an offset)."""
    if isinstance(value, str):
        return _iso_seconds(value, attribute)
    if isinstance(value, pa.TimestampScalar) and value.is_valid:
        count, kind = value.value, value.type
        return Fraction(count, UNITS_PER_SECOND[kind.unit]), kind.tz is not None
    if isinstance(value, pa.Date32Scalar) and value.is_valid:
        return Fraction(value.value * SECONDS_PER_DAY), False
    if isinstance(value, datetime):
        aware = value.utcoffset() is not None
        naive = value.astimezone(UTC).replace(tzinfo=None) if aware else value
        nanoseconds = int(getattr(value, "nanosecond", 0))  # pandas.Timestamp
        whole = datetime(
            naive.year, naive.month, naive.day,
            naive.hour, naive.minute, naive.second, naive.microsecond,
        )  # fmt: skip
        return _since_epoch(whole) + Fraction(nanoseconds, 10**9), aware
    if isinstance(value, date):
        return _since_epoch(datetime(value.year, value.month, value.day)), False
    if isinstance(value, np.datetime64) and not np.isnat(value):
        unit, count = np.datetime_data(value.dtype)
        if unit in _NUMPY_SECONDS:
            return int(value.astype(np.int64)) * count * _NUMPY_SECONDS[unit], False
    raise QueryError(
        f"bound {shown(value)} is a {type(value).__name__}; "
        f"{type_name(attribute)} needs a date, a datetime or ISO text"
    )


def _iso_seconds(text: str, attribute: pa.DataType) -> tuple[Fraction, bool]:
    match = _ISO.fullmatch(text.strip())
    try:
        if match is None:
            raise ValueError
        day, time, fraction, offset = match.groups()
        if offset is not None and time is None:
            raise ValueError
        zone = (offset or "").upper()
        moment = datetime.fromisoformat(f"{day}T{time or '00:00'}{zone}")
        instant = moment.utcoffset() or timedelta(0)
        seconds = _since_epoch(moment.replace(tzinfo=None)) - Fraction(instant // _SECOND)
    except ValueError:
        raise QueryError(
            f"bound {shown(text)} is not an ISO date or time; {type_name(attribute)} needs "
            "one such as '2024-01-31' or '2024-01-31T09:00:00'"
        ) from None
    if fraction:
        seconds += Fraction(int(fraction), 10 ** len(fraction))
    return seconds, offset is not None


_SECOND = timedelta(seconds=1)


def _since_epoch(moment: datetime) -> Fraction:
    return Fraction((moment - _EPOCH) // timedelta(microseconds=1), 10**6)
