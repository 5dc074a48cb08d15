"""Results of Python's own values, dicts and lists, as columns of the archive's types.

A value is stored as what it is, or it is refused. Arrow, told the type, makes 1 of 1.5 within a list, a
date of a datetime and infinity of 1e300, and leaves out the fields that a struct does not have; not told
it, Arrow makes an int64 of 5, which a narrower column would then refuse.
"""

from __future__ import annotations

import math
import reprlib
from collections.abc import Callable, ItemsView, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from limen.archive.errors import ArchiveError

Fits = Callable[[Any], bool]


def check_names(found: Sequence[str], names: Sequence[str], what: str) -> None:
    """Refuse columns that are not the archive's, each once."""
    if sorted(found) == sorted(names):
        return
    missing = [n for n in names if n not in found]
    more = [n for n in found if n not in names]
    twice = sorted({n for n in found if found.count(n) > 1})
    said = [f"no column {', '.join(missing)}"] if missing else []
    said += [f"a column {', '.join(more)} that it does not know"] if more else []
    said += [f"column {', '.join(twice)} twice"] if twice else []
    raise ArchiveError(f"{what} {' and '.join(said)}; it has {', '.join(names)}")


def turned(rows: Sequence[Mapping[Any, Any]], names: Sequence[str]) -> dict[str, list[Any]]:
    """Rows as columns."""
    for i, row in enumerate(rows):
        if row.keys() != set(names):
            check_names([str(name) for name in row], names, f"result row {i} has")
    return {name: [row[name] for row in rows] for name in names}


def is_plain(values: object) -> bool:
    """Are these Python's own values, which have no type in common but by what they are?"""
    return isinstance(values, Sequence) and not isinstance(values, (str, bytes, bytearray))


def column(values: Sequence[Any], wanted: pa.Field) -> pa.Array:
    """These values in the type of this column."""
    kind, fits = wanted.type, _fits(wanted.type)
    try:
        if all(value is None or fits(value) for value in values):
            return pa.array(values, kind)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        pass
    row = next((i for i, value in enumerate(values) if not _is_taken(value, kind, fits)), 0)
    raise ArchiveError(
        f"result row {row}: {reprlib.repr(values[row])} does not fit column {wanted.name!r}, which is "
        f"{kind} in the archive"
    )


def _is_taken(value: Any, kind: pa.DataType, fits: Fits) -> bool:
    try:
        return (value is None or fits(value)) and len(pa.array([value], kind)) == 1
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return False


def _fits(kind: pa.DataType) -> Fits:
    """Whether a value is one of this type. To Python True is 1, and a datetime a date.

    Integers and decimals that are too large or too long for it are left to Arrow, which refuses them.
    """
    if pt.is_boolean(kind):
        return lambda value: isinstance(value, (bool, np.bool_))
    if pt.is_integer(kind):
        return lambda value: _is_of(value, (int, np.integer))
    if pt.is_floating(kind):
        most = float(np.finfo(kind.to_pandas_dtype()).max)
        return lambda value: (
            _is_of(value, (int, float, np.integer, np.floating))
            and not (isinstance(value, float) and most < abs(value) < math.inf)
        )
    if pt.is_decimal(kind):
        return lambda value: _is_of(value, (int, Decimal))
    if pt.is_string(kind):
        return lambda value: isinstance(value, str)
    if pt.is_binary(kind):
        return lambda value: isinstance(value, (bytes, bytearray))
    if pt.is_date(kind):
        return lambda value: _is_of(value, date) and not isinstance(value, datetime)
    if pt.is_timestamp(kind):
        zoned = kind.tz is not None
        return lambda value: (
            isinstance(value, datetime)
            and (value.tzinfo is not None) == zoned
            and not getattr(value, "nanosecond", 0)  # of a timestamp of pandas
        )
    if pt.is_map(kind):
        return _pairs_fit(_fits(kind.key_type), _fits(kind.item_type))
    if pt.is_struct(kind):
        fields = {name: _fits(kind.field(name).type) for name in kind.names}
        return lambda value: (
            isinstance(value, Mapping)
            and value.keys() <= fields.keys()
            and all(one is None or fields[name](one) for name, one in value.items())
        )
    fits = _fits(kind.value_type)
    return lambda value: (
        isinstance(value, (list, tuple, np.ndarray))
        and all(one is None or fits(one) for one in value)
    )


def _pairs_fit(key: Fits, item: Fits) -> Fits:
    """Of a map: a dict, or pairs."""

    def is_one(pair: Any) -> bool:
        if not isinstance(pair, tuple) or len(pair) != 2:
            return False
        return key(pair[0]) and (pair[1] is None or item(pair[1]))

    def fits(value: Any) -> bool:
        pairs = value.items() if isinstance(value, Mapping) else value
        return isinstance(pairs, (ItemsView, list, tuple)) and all(map(is_one, pairs))

    return fits


def _is_of(value: object, kinds: type | tuple[type, ...]) -> bool:
    return isinstance(value, kinds) and not isinstance(value, (bool, np.bool_))
