"""Queries as columns: the body of a `QuerySet`, before and after it is settled.

Each ordinal attribute has one closed ordinal range a row, each key attribute one value or null.
`settled` makes the promise a set keeps: an id occurs once. Cost: one hash pass over the ids.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from limen.model.errors import QueryError
from limen.model.ordinals import INT64_MAX, INT64_MIN, Ordinals


class QueryColumns(NamedTuple):
    ids: pa.Array
    attributes: dict[str, pa.DataType]
    lo: dict[str, Ordinals]
    hi: dict[str, Ordinals]
    keys: dict[str, pa.Array]


def settled(columns: QueryColumns) -> QueryColumns:
    """Without repeats of an id."""
    if pa.types.is_int64(columns.ids.type):
        ids = np.sort(columns.ids.to_numpy(zero_copy_only=False))
        if (ids[1:] != ids[:-1]).all():
            return columns
    encoded = columns.ids.dictionary_encode()
    if len(encoded.dictionary) < len(columns.ids):
        codes = encoded.indices.to_numpy(zero_copy_only=False)
        first_rows = np.unique(codes, return_index=True)[1]
        first = first_rows[codes]
        _refuse_other_bodies(columns, first)
        columns = taken(columns, np.flatnonzero(first == np.arange(len(first))))
    return columns


def taken(columns: QueryColumns, rows: npt.NDArray[np.intp]) -> QueryColumns:
    """The given rows, in the given order."""
    chosen = pa.array(rows, pa.int64())
    return QueryColumns(
        columns.ids.take(chosen),
        columns.attributes,
        {name: lo[rows] for name, lo in columns.lo.items()},
        {name: hi[rows] for name, hi in columns.hi.items()},
        {name: key.take(chosen) for name, key in columns.keys.items()},
    )


def widened(columns: QueryColumns, attributes: Mapping[str, pa.DataType]) -> QueryColumns:
    """The same queries over more attributes, which they leave unconstrained."""
    rows = len(columns.ids)
    lo, hi, keys = {}, {}, {}
    for name, kind in attributes.items():
        if kind in (pa.string(), pa.bool_()):
            keys[name] = columns.keys[name] if name in columns.keys else pa.nulls(rows, kind)
        elif name in columns.lo:
            lo[name], hi[name] = columns.lo[name], columns.hi[name]
        else:
            lo[name] = np.full(rows, INT64_MIN, np.int64)
            hi[name] = np.full(rows, INT64_MAX, np.int64)
    return QueryColumns(columns.ids, dict(attributes), lo, hi, keys)


def _refuse_other_bodies(columns: QueryColumns, first: npt.NDArray[np.intp]) -> None:
    rows = np.flatnonzero(first != np.arange(len(first)))
    differs = np.zeros(len(rows), bool)
    for ends in (*columns.lo.values(), *columns.hi.values()):
        differs |= ends[rows] != ends[first[rows]]
    for key in columns.keys.values():
        codes = pc.fill_null(key.dictionary_encode().indices, -1).to_numpy(zero_copy_only=False)
        differs |= codes[rows] != codes[first[rows]]
    if differs.any():
        row = int(rows[differs.argmax()])
        raise QueryError(
            f"the same id has another body in row {int(first[row])}",
            row=row,
            query_id=columns.ids[row].as_py(),
        )
