"""Keys as users say them, and as they are compared: dates and timestamps are integers then.

A key that the type of the column cannot hold is not rounded: it lies between two that it can. A float32
is said by two numbers: by itself, and by the shortest decimal that stands for it, such as 0.1.
"""

from __future__ import annotations

import math
from datetime import date, datetime, timedelta
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from limen.archive.columns import flags, is_zoned
from limen.archive.errors import ArchiveError
from limen.archive.times import EPOCH, FIRST, LAST
from limen.model import type_name

Key = int | float | str  # as it is compared
DAY = 86_400_000_000  # microseconds


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


def keys_at(value: Any, column: pa.Field) -> tuple[Key, Key]:
    """The least key of a column not below a user's, and the greatest not above it, as they are compared.

    Both are that key; if the type cannot hold it, it lies between them and the first is the greater.
    """
    kind, value = column.type, _checked(value, column)
    if pt.is_floating(kind):
        if pt.is_float32(kind) and isinstance(value, float):
            value = _meant(value)
        return _floats_at(value, kind.to_pandas_dtype())
    if pt.is_integer(kind):
        limits = np.iinfo(kind.to_pandas_dtype())
        return max(value, int(limits.min)), min(value, int(limits.max))
    found: Key = compared(pa.array([value], kind))[0].as_py()
    if getattr(value, "nanosecond", 0):  # of a timestamp of pandas, which Arrow cuts off
        assert isinstance(found, int)
        return found + 1, found
    return found, found


def listed(asked: Any) -> list[Any]:
    """The keys of a list of them, or the one that is asked for."""
    if isinstance(asked, (pa.Array, pa.ChunkedArray)):
        try:
            return list(asked.to_pylist())
        except (OverflowError, ValueError) as error:  # a time that Python has no datetime for
            raise ArchiveError(f"the keys cannot be read: {error}") from None
    return list(asked) if isinstance(asked, (list, tuple, set, np.ndarray)) else [asked]


def unsaid(keys: pa.Array) -> npt.NDArray[np.bool_]:
    """Which dates or timestamps are none that Python can say?"""
    first, last = (FIRST, LAST) if pt.is_timestamp(keys.type) else (FIRST // DAY, LAST // DAY)
    at = compared(keys)
    return flags(pc.fill_null(pc.or_(pc.less(at, first), pc.greater(at, last)), False))


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


def _meant(value: float) -> float:
    """The float32 that a number is the shortest decimal of, or the number itself."""
    with np.errstate(over="ignore"):
        near = np.float32(value)
    return float(near) if float(str(near)) == value else value


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
