"""Columns of results: whatever frame they come in, in the types that a Delta table has.

A column of another type is taken if no value of that type can be lost by it.
"""

from __future__ import annotations

import reprlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as pt

from limen.archive import rows
from limen.archive.errors import ArchiveError
from limen.model import lossless


def as_table(results: object, wanted: Sequence[pa.Field]) -> pa.Table:
    """What is given as a table; Python's own values are taken as the columns that are wanted."""
    if isinstance(results, pa.Table):
        return results
    if isinstance(results, (list, Mapping)) and not results:
        return pa.schema(wanted).empty_table()
    if isinstance(results, list) and all(isinstance(row, Mapping) for row in results):
        results = rows.turned(results, [field.name for field in wanted])
    try:
        if isinstance(results, pa.RecordBatch):
            return pa.Table.from_batches([results])
        if isinstance(results, Mapping):
            return pa.table(_built(results, wanted))
        if type(results).__module__.partition(".")[0] == "pandas":
            return pa.Table.from_pandas(results, preserve_index=False)
        if hasattr(results, "__arrow_c_stream__"):
            return pa.table(results)
    except ArchiveError:
        raise
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise ArchiveError(f"the results cannot be read as a table: {error}") from None
    raise ArchiveError(f"results are a table or a frame, not a {type(results).__name__}")


def _built(columns: Mapping[str, Any], wanted: Sequence[pa.Field]) -> dict[str, Any]:
    fields = {field.name: field for field in wanted}
    return {
        name: rows.column(values, fields[name])
        if name in fields and rows.is_plain(values)
        else values
        for name, values in columns.items()
    }


def in_type(found: pa.ChunkedArray, wanted: pa.Field) -> pa.ChunkedArray:
    if found.type == wanted.type:
        return found
    told = f"column {wanted.name!r} is {found.type} in the results and {wanted.type} in the archive"
    try:
        if not _widens(found.type, wanted.type):
            raise ArchiveError(told)
        return found.cast(wanted.type)
    except (ArchiveError, pa.ArrowNotImplementedError):
        raise ArchiveError(told) from None
    except pa.ArrowInvalid:
        row = _first_that_does_not_fit(found, wanted.type)
        raise ArchiveError(f"result row {row}: {_shown(found[row])} does not fit: {told}") from None


def _first_that_does_not_fit(column: pa.ChunkedArray, kind: pa.DataType) -> int:
    begin, end = 0, len(column)
    while end - begin > 1:
        middle = (begin + end) // 2
        try:
            column.slice(begin, middle - begin).cast(kind)
            begin = middle
        except pa.ArrowInvalid:
            end = middle
    return begin


def _shown(value: pa.Scalar) -> str:
    """As Arrow says it, which has times that Python has not."""
    try:
        return str(value.cast(pa.string()).as_py())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return reprlib.repr(value.as_py())


def _widens(found: pa.DataType, wanted: pa.DataType) -> bool:
    """Can the wanted type hold all values of the other? Of what is nested, each part of its own."""
    if pt.is_dictionary(found):
        return _widens(found.value_type, wanted)
    if pt.is_map(found) and pt.is_map(wanted):
        return _widens(found.key_type, wanted.key_type) and _widens(
            found.item_type, wanted.item_type
        )
    if _is_list(found) and _is_list(wanted):
        return _widens(found.value_type, wanted.value_type)
    if pt.is_struct(found) and pt.is_struct(wanted):
        return found.names == wanted.names and all(
            _widens(found.field(name).type, wanted.field(name).type) for name in wanted.names
        )
    return lossless(found, wanted) or stored(found) == wanted


def stored(kind: pa.DataType) -> pa.DataType:
    """The type as a Delta table has it: one spelling of texts, bytes, times and lists, nulls anywhere.

    One that a Delta table does not have is refused.
    """
    if pt.is_dictionary(kind) or pt.is_run_end_encoded(kind):
        return stored(kind.value_type)
    if pt.is_string(kind) or pt.is_large_string(kind) or pt.is_string_view(kind):
        return pa.string()
    if pt.is_binary(kind) or pt.is_large_binary(kind) or pt.is_binary_view(kind):
        return pa.binary()
    if pt.is_fixed_size_binary(kind):
        return pa.binary()
    if pt.is_timestamp(kind):
        return pa.timestamp("us", tz=None if kind.tz is None else "UTC")
    if pt.is_date(kind):
        return pa.date32()
    if pt.is_unsigned_integer(kind):
        return pa.int64() if kind.bit_width >= 32 else pa.int32()
    if pt.is_map(kind):
        return pa.map_(stored(kind.key_type), stored(kind.item_type))
    if _is_list(kind):
        return pa.list_(pa.field("element", stored(kind.value_type)))
    if pt.is_struct(kind) and kind.num_fields and differ(kind.names):
        return pa.struct([(name, stored(kind.field(name).type)) for name in kind.names])
    if pt.is_decimal(kind) and kind.precision <= 38 and 0 <= kind.scale <= kind.precision:
        return pa.decimal128(kind.precision, kind.scale)
    if pt.is_signed_integer(kind) or pt.is_boolean(kind):
        return kind
    if pt.is_float32(kind) or pt.is_float64(kind):
        return kind
    raise ArchiveError(f"{kind} is a type that a Delta table does not have")


def _is_list(kind: pa.DataType) -> bool:
    return bool(
        pt.is_list(kind)
        or pt.is_large_list(kind)
        or pt.is_fixed_size_list(kind)
        or pt.is_list_view(kind)
        or pt.is_large_list_view(kind)
    )


def differ(names: list[str]) -> bool:
    """As Delta sees them, which does not tell capitals from small letters."""
    return len({name.lower() for name in names}) == len(names)


def is_zoned(kind: pa.DataType) -> bool:
    return bool(pt.is_timestamp(kind) and kind.tz is not None)


def flags(column: pa.ChunkedArray) -> npt.NDArray[np.bool_]:
    found: npt.NDArray[np.bool_] = one(column).to_numpy(zero_copy_only=False)
    return found


def one(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    if not isinstance(column, pa.ChunkedArray):
        return column
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
