"""Events of a table, as ordinals and key columns; rows that cannot be matched are set apart.

A column that is missing or whose type could lose values is an error before anything is matched. A row
with a null, a NaN or an out-of-range value in a field that some query names is quarantined whole, with
the reason; what is left is good in every needed field.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from limen.model import REASONS, EventError, is_key, lossless, ordinals, type_name

REASON = "reason"
NULL = REASONS.index("null")


class Events(NamedTuple):
    """Good rows: the table, its ordinals and its key columns; and the quarantined rows."""

    table: pa.Table
    ordinals: dict[str, npt.NDArray[np.int64]]
    keys: dict[str, pa.Array]
    quarantine: pa.Table


def check_columns(schema: pa.Schema, attributes: Mapping[str, pa.DataType]) -> None:
    """Raise EventError if a table of this schema cannot be matched against these attributes."""
    for name, kind in attributes.items():
        found = schema.get_all_field_indices(name)
        if not found:
            there = ", ".join(schema.names) or "none"
            raise EventError(f"is missing; the queries need it (columns: {there})", name)
        if len(found) > 1:
            raise EventError("is there more than once", name)
        if not lossless(schema.field(found[0]).type, kind):
            raise EventError(
                f"has type {schema.field(found[0]).type}, which cannot be read as "
                f"{type_name(kind)} without losing values; cast it yourself if that is meant",
                name,
            )


def read_events(table: pa.Table, attributes: Mapping[str, pa.DataType]) -> Events:
    check_columns(table.schema, attributes)
    numbers: dict[str, npt.NDArray[np.int64]] = {}
    keys: dict[str, pa.Array] = {}
    bad: dict[str, npt.NDArray[np.uint8]] = {}
    for name in table.column_names:  # in their order, so that reasons do not depend on a history
        if name not in attributes:
            continue
        kind, column = attributes[name], table.column(name)
        if is_key(kind):
            keys[name] = _one_array(column, kind)
            codes = np.zeros(len(table), np.uint8)
            if keys[name].null_count:
                codes[keys[name].is_null().to_numpy(zero_copy_only=False)] = NULL
        else:
            numbers[name], codes = ordinals(column, kind)
        if codes.any():
            bad[name] = codes
    if not bad:
        return Events(table, numbers, keys, quarantine_of(table.slice(0, 0), []))
    good = ~np.logical_or.reduce([codes != 0 for codes in bad.values()])
    kept, rows = pa.array(good), np.flatnonzero(~good)
    return Events(
        table.filter(kept),
        {name: values[good] for name, values in numbers.items()},
        {name: column.filter(kept) for name, column in keys.items()},
        quarantine_of(table.take(pa.array(rows)), _reasons(bad, rows)),
    )


def quarantine_of(rows: pa.Table, reasons: list[str]) -> pa.Table:
    """The rows with a last column that says why they are here."""
    name = REASON
    while name in rows.column_names:
        name = f"limen_{name}"
    return rows.append_column(name, pa.array(reasons, pa.string()))


def _reasons(bad: dict[str, npt.NDArray[np.uint8]], rows: npt.NDArray[np.intp]) -> list[str]:
    texts = [[f"{name}: {reason}" for reason in REASONS] for name in bad]
    codes = np.stack([column[rows] for column in bad.values()], axis=1)
    return ["; ".join(texts[i][c] for i, c in enumerate(row) if c) for row in codes.tolist()]


def _one_array(column: pa.ChunkedArray, kind: pa.DataType) -> pa.Array:
    """A key column in one piece; a dictionary stays one if it is one piece without nulls inside."""
    if pa.types.is_null(column.type):
        return pa.nulls(len(column), kind)
    if pa.types.is_dictionary(column.type):
        if column.num_chunks == 1 and not column.chunk(0).dictionary.null_count:
            return column.chunk(0)
        column = column.cast(kind)
    joined = column.combine_chunks()
    return joined.chunk(0) if isinstance(joined, pa.ChunkedArray) else joined


def without_views(table: pa.Table) -> pa.Table:
    """Text and binary views as plain text and binary: Arrow cannot take rows of the former."""
    for i, field in enumerate(table.schema):
        kind = {pa.string_view(): pa.large_string(), pa.binary_view(): pa.large_binary()}.get(
            field.type
        )
        if kind is not None:
            table = table.set_column(i, field.with_type(kind), table.column(i).cast(kind))
    return table
