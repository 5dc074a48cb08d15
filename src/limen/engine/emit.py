"""Results as Arrow tables: what a match looks like to its receiver.

rows: an event's columns once for each query that it matches, and the query's id; ids: each event once,
with the list of ids; count: each event once, with their number.
"""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
import pyarrow as pa

from limen.indexes.protocol import Hits
from limen.model import LimenError

Emit = Literal["rows", "ids", "count"]
MOST_IDS = 2**31 - 1
COLUMN = {"rows": "query_id", "ids": "query_ids", "count": "matches"}


def check_emit(emit: str, table_columns: list[str]) -> None:
    if emit not in get_args(Emit):
        raise LimenError(f"emit={emit!r} is not one of {', '.join(get_args(Emit))}")
    if COLUMN[emit] in table_columns:
        raise LimenError(
            f"the events have a column {COLUMN[emit]!r}, the name of the result's; rename it or "
            "leave it out with columns=[...]"
        )


def emit_rows(table: pa.Table, hits: Hits, ids: pa.Array) -> pa.Table:
    offsets, slots = hits
    events = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    return _beside(table.take(pa.array(events)), COLUMN["rows"], _ids_of(slots, ids))


def emit_ids(table: pa.Table, hits: Hits, ids: pa.Array) -> pa.Table:
    """Lists of at most MOST_IDS ids in all, which is what Arrow's offsets can count, make a chunk."""
    offsets, slots = hits
    found = _ids_of(slots, ids)
    chunks: list[pa.Array] = []
    first = 0
    while first < len(offsets) - 1 or not chunks:
        begin = offsets[first]
        last = int(np.searchsorted(offsets, begin + MOST_IDS, side="right")) - 1
        ends = pa.array((offsets[first : last + 1] - begin).astype(np.int32))
        chunk = found.slice(begin, offsets[last] - begin)
        chunks.append(pa.ListArray.from_arrays(ends, chunk))
        first = last
    return _beside(table, COLUMN["ids"], pa.chunked_array(chunks))


def emit_count(table: pa.Table, counts: np.ndarray[tuple[int], np.dtype[np.int64]]) -> pa.Table:
    return _beside(table, COLUMN["count"], pa.array(counts, pa.int64()))


def _beside(table: pa.Table, name: str, column: pa.Array | pa.ChunkedArray) -> pa.Table:
    """The table with one more column; one without columns has no length to keep to."""
    return table.append_column(name, column) if table.num_columns else pa.table({name: column})


def _ids_of(slots: np.ndarray[tuple[int], np.dtype[np.int32]], ids: pa.Array) -> pa.Array:
    """Outside ids: text stays a dictionary over the query set, whose indices are the slots.

    Where an id has had several slots, `ids` is a dictionary itself: its values must be distinct.
    """
    if pa.types.is_dictionary(ids.type):
        codes = ids.indices.to_numpy(zero_copy_only=False)[slots]
        return pa.DictionaryArray.from_arrays(pa.array(codes), ids.dictionary)
    if pa.types.is_string(ids.type):
        return pa.DictionaryArray.from_arrays(pa.array(slots), ids)
    return pa.array(ids.to_numpy(zero_copy_only=False)[slots])
