"""Keys as users say them, and as they are compared: dates and timestamps are integers then.

A key that the type of the column cannot hold is not rounded: it lies between two that it can.
"""

from __future__ import annotations

import math
from datetime import date, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from limen.archive.columns import is_zoned
from limen.archive.errors import ArchiveError
from limen.archive.times import EPOCH
from limen.model import type_name

Key = int | float | str  # as it is compared


def is_key(kind: pa.DataType) -> bool:
    return bool(_is_number(kind) or pt.is_string(kind) or pt.is_date32(kind) or is_zoned(kind))


def compared(keys: pa.Array) -> pa.Array:
    """Keys as they are compared."""
    if pt.is_date32(keys.type):
        return keys.cast(pa.int32())
    return keys.cast(pa.int64()) if pt.is_timestamp(keys.type) else keys


def said(key: Key, kind: pa.DataType) -> Any:
    """A key, as it is compared, as users say it."""
    if pt.is_date32(kind):
        return EPOCH.date() + timedelta(int(key))
    return EPOCH + timedelta(microseconds=int(key)) if pt.is_timestamp(kind) else key


def keys_at(value: Any, column: pa.Field, nearest: bool = False) -> tuple[Key, Key]:
    """The least key of a column not below a user's, and the greatest not above it, as they are compared.

    Both are that key; if the type cannot hold it, it lies between them and the first is the greater.
    `nearest`: the float32 that 0.1 was stored as is meant, not 0.1 itself.
    """
    kind, value = column.type, _checked(value, column)
    if pt.is_floating(kind):
        number = kind.to_pandas_dtype()
        if nearest and isinstance(value, float) and abs(value) <= float(np.finfo(number).max):
            value = float(number(value))
        return _floats_at(value, number)
    if pt.is_integer(kind):
        limits = np.iinfo(kind.to_pandas_dtype())
        return max(value, int(limits.min)), min(value, int(limits.max))
    found: Key = compared(pa.array([value], kind))[0].as_py()
    if getattr(value, "nanosecond", 0):  # of a timestamp of pandas, which Arrow cuts off
        assert isinstance(found, int)
        return found + 1, found
    return found, found


def plus_zero(keys: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """With one zero only: -0.0 equals 0.0, but not to all that compares."""
    return pc.add(keys, pa.scalar(0, keys.type)) if pt.is_floating(keys.type) else keys


def _checked(value: Any, column: pa.Field) -> Any:
    """A key of the user's as Python has it; one of another type is refused."""
    kind = column.type
    if isinstance(value, np.generic):
        value = value.item()
    if _is_number(kind) and _is_like(value, kind):
        return value  # one that the type cannot hold is no key, but can be compared
    told = f"{value!r} is not a key: {column.name!r} is {type_name(kind)} here"
    if not _is_like(value, kind):
        raise ArchiveError(told)
    if pt.is_timestamp(kind) and value.tzinfo is None:
        raise ArchiveError(f"{told}; a datetime with a zone is needed")
    try:
        pa.array([value], kind)
    except (pa.ArrowException, OverflowError, TypeError, ValueError):
        raise ArchiveError(told) from None
    return value


def _floats_at(value: float, number: type[np.floating[Any]]) -> tuple[float, float]:
    """The least float of this kind not below a number, and the greatest not above it.

    The number may be an integer of any size: Python compares these with floats exactly.
    """
    most = float(np.finfo(number).max)
    inside = -most <= value <= most
    near = float(number(value if inside else math.inf if value > 0 else -math.inf))
    if near < value:
        return float(np.nextafter(number(near), number(math.inf))), near
    if near > value:
        return near, float(np.nextafter(number(near), number(-math.inf)))
    return near, near


def _is_like(value: object, kind: pa.DataType) -> bool:
    """Is it of the Python type that keys of this type are of? To Python True is 1, a datetime a date."""
    if pt.is_timestamp(kind):
        return isinstance(value, datetime)
    if isinstance(value, (bool, datetime)):
        return False
    if pt.is_floating(kind):
        return isinstance(value, int) or (isinstance(value, float) and not math.isnan(value))
    return isinstance(value, int if pt.is_integer(kind) else str if pt.is_string(kind) else date)


def _is_number(kind: pa.DataType) -> bool:
    return bool(pt.is_integer(kind) or pt.is_float32(kind) or pt.is_float64(kind))
