"""Cells of text, or values of JSON, to typed columns; what does not parse is pointed out.

Parsing is strict and exact: `45.5` is no int64, `1e400` and `9007199254740993` are no float64,
`2024-13-01` is no date. A column
is parsed whole; only when that fails are its distinct cells halved until the bad ones stand alone, so
clean columns cost one cast; cells that do not even look like the type are out before that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

Mask = npt.NDArray[np.bool_]

NUMBERS = (pa.int64(), pa.float64())
TIMES = (
    pa.date32(),
    pa.timestamp("us"),
    pa.timestamp("us", "UTC"),
    pa.timestamp("ns"),
    pa.timestamp("ns", "UTC"),
)
SAMPLE = 4096
LONG_INTEGER = "^[+-]?[0-9]{16,}$"  # perhaps beyond what float64 holds exactly


@dataclass
class Use:
    """How queries use an attribute: what its type can be."""

    ranges: bool = False
    numbers: bool = False
    fractions: bool = False
    booleans: bool = False
    texts: list[str] = field(default_factory=list)

    def candidates(self) -> Sequence[pa.DataType]:
        if self.numbers:
            return NUMBERS
        if self.booleans:
            return (pa.bool_(),)
        return (*NUMBERS, *TIMES) if self.ranges else (pa.string(),)


def parsed(text: pa.Array, kind: pa.DataType) -> tuple[pa.Array, Mask]:
    """The cells as a column of the type, and the mask of those that are none of its values.

    >>> values, bad = parsed(pa.array(["45", "abc", None]), pa.int64())
    >>> values.to_pylist(), bad.tolist()
    ([45, None, None], [False, True, False])
    """
    if pt.is_string(kind):
        return text, np.zeros(len(text), np.bool_)
    whole = _cast(text, kind)
    if whole is not None:
        return whole, np.zeros(len(text), np.bool_)
    encoded = text.dictionary_encode()
    shaped = pc.match_substring_regex(encoded.dictionary, _shape(kind))
    parts: list[pa.Array] = [pa.nulls(0, kind)]
    _halve(pc.if_else(shaped, encoded.dictionary, None), kind, parts)
    column = pa.concat_arrays(parts).take(encoded.indices)
    return column, _mask(column.is_null()) & _mask(text.is_valid())


def _mask(column: pa.Array) -> Mask:
    mask: Mask = column.to_numpy(zero_copy_only=False)
    return mask


def _shape(kind: pa.DataType) -> str:
    """What a cell of the type looks like: most that is bad is seen at once."""
    if pt.is_integer(kind):
        return "^-?[0-9]+$"
    if pt.is_floating(kind) or pt.is_decimal(kind):
        number = r"([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?"
        return f"(?i)^[+-]?({number}|nan|inf|infinity)$"
    return "(?i)^(true|false|0|1)$" if pt.is_boolean(kind) else "^[0-9]{4}-[0-9]{2}-[0-9]{2}"


def _halve(text: pa.Array, kind: pa.DataType, parts: list[pa.Array]) -> None:
    whole = _cast(text, kind)
    if whole is not None:
        parts.append(whole)
    elif len(text) == 1:
        parts.append(pa.nulls(1, kind))
    else:
        _halve(text.slice(0, len(text) // 2), kind, parts)
        _halve(text.slice(len(text) // 2), kind, parts)


def _cast(text: pa.Array, kind: pa.DataType) -> pa.Array | None:
    """The column, or None if a cell does not parse."""
    if pt.is_integer(kind) and pc.any(pc.match_substring_regex(text, "[^0-9-]")).as_py():
        return None  # Arrow takes 0x10 for a number
    try:
        found = text.cast(kind)
    except pa.ArrowInvalid:
        return None
    if pt.is_floating(kind) and pc.any(pc.match_substring_regex(text, LONG_INTEGER)).as_py():
        long = text.filter(pc.match_substring_regex(text, LONG_INTEGER))
        if not all(is_exact_float(int(cell)) for cell in long.unique().to_pylist()):
            return None  # 2**53 + 1 would become another number
    if pt.is_floating(kind) and pc.any(pc.is_inf(found)).as_py():
        said = pc.match_substring_regex(text, "(?i)inf")
        if pc.any(pc.and_not(pc.is_inf(found), said)).as_py():
            return None  # 1e400 overflows
    return found


def type_of_cells(sample: pa.Array, use: Use) -> pa.DataType:
    """The type that most cells parse as, among those that the queries allow."""
    cells = sample.drop_null().unique().slice(0, SAMPLE)
    if not len(cells):
        cells = pa.array(use.texts, pa.string())
    good = {kind: np.count_nonzero(~parsed(cells, kind)[1]) for kind in use.candidates()}
    best = max(good, key=lambda kind: good[kind])  # the first of equals
    return best if good[best] or use.numbers or not len(cells) else pa.string()


def type_of_values(sample: Sequence[Any], use: Use) -> pa.DataType:
    """The same for JSON values: numbers and booleans say themselves what they are."""
    found = [value for value in sample[:SAMPLE] if value is not None]
    texts = [value for value in found if isinstance(value, str)]
    if found and 2 * len(texts) < len(found) and not use.texts:
        kinds = (*NUMBERS, pa.bool_())
        good = {kind: sum(value_fits(value, kind) for value in found) for kind in kinds}
        return max(good, key=lambda kind: good[kind])
    if use.ranges and not use.numbers:
        return type_of_cells(pa.array(texts, pa.string()), use)
    if use.booleans:
        return pa.bool_()
    return pa.float64() if use.numbers else pa.string()


def value_fits(value: object, kind: pa.DataType) -> bool:
    """May this JSON value stand in a column of the type? Text of dates is parsed elsewhere."""
    if pt.is_boolean(kind):
        return isinstance(value, bool)
    if pt.is_integer(kind) or pt.is_floating(kind):
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            return False
        if pt.is_integer(kind):
            return isinstance(value, int) and _fits(value, kind)
        return isinstance(value, float) or is_exact_float(value)
    if pt.is_decimal(kind) and isinstance(value, (int, float)):
        return not isinstance(value, bool)
    return isinstance(value, str)


def is_exact_float(value: int) -> bool:
    """Is the integer a value of float64? 2**53 + 1 is not."""
    try:
        return float(value) == value
    except OverflowError:
        return False


def _fits(value: int, kind: pa.DataType) -> bool:
    limits = np.iinfo(kind.to_pandas_dtype())
    return bool(limits.min <= value <= limits.max)


def column_of_values(values: Sequence[Any], kind: pa.DataType) -> tuple[pa.Array, Mask]:
    """JSON values as a column of the type, and the mask of those that do not fit."""
    bad = np.fromiter(
        (value is not None and not value_fits(value, kind) for value in values),
        np.bool_,
        len(values),
    )
    good = [None if wrong else value for value, wrong in zip(values, bad, strict=True)]
    if pt.is_floating(kind):
        good = [None if value is None else float(value) for value in good]
    if pt.is_boolean(kind) or pt.is_integer(kind) or pt.is_floating(kind):
        return pa.array(good, kind), bad
    texts = [value if value is None or isinstance(value, str) else repr(value) for value in good]
    column, unparsed = parsed(pa.array(texts, pa.string()), kind)
    return column, bad | unparsed
