"""Results as Arrow tables: what a match looks like to its receiver.

rows: an event's columns once for each query that it matches, and the query's id; ids: each event once,
with the list of ids; count: each event once, with their number.

Text ids are a dictionary over the query set, whose indices are the slots: quick, but of use only
where the dictionary need not be sent along. Plain ones are copied out, in chunks whose bytes Arrow's
offsets can count.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple, get_args

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from limen.indexes.protocol import Hits
from limen.indexes.spare import Spare
from limen.kernels.gather import gather
from limen.model import LimenError
from limen.model.ids import MAX_ID_BYTES

I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]
Emit = Literal["rows", "ids", "count"]
TextIds = Literal["dictionary", "plain"]

MOST_IDS = 2**31 - 1
PIECE_BYTES = 2**28  # of events repeated at a time, about: far below what Arrow's offsets can count
MOST_TEXTS = MOST_IDS // MAX_ID_BYTES
COLUMN = {"rows": "query_id", "ids": "query_ids", "count": "matches"}


class Names(NamedTuple):
    """The ids of slots, as the receiver sees them, and how many can be in one array at least."""

    of: Callable[[I32], pa.Array]
    most: int


def number_names(ids: I64) -> Names:
    spare = Spare(np.int64)

    def of(slots: I32) -> pa.Array:
        found = spare.empty(len(slots))[: len(slots)]
        gather(ids, slots, found)
        return pa.array(found)

    return Names(of, MOST_IDS)


def dictionary_names(ids: pa.Array) -> Names:
    """Text ids by slot; where an id has had several slots, `ids` is a dictionary itself."""
    if not pa.types.is_dictionary(ids.type):
        return Names(lambda slots: pa.DictionaryArray.from_arrays(pa.array(slots), ids), MOST_IDS)
    codes, values = ids.indices.to_numpy(zero_copy_only=False), ids.dictionary
    return Names(
        lambda slots: pa.DictionaryArray.from_arrays(pa.array(codes[slots]), values), MOST_IDS
    )


def plain_names(ids: pa.Array) -> Names:
    def of(slots: I32) -> pa.Array:
        try:
            return ids.take(pa.array(slots)).cast(pa.string())
        except pa.ArrowInvalid:
            raise LimenError(
                "an event matches so many queries that their ids fill no list; use emit='rows'"
            ) from None

    return Names(of, MOST_TEXTS)


def check_emit(emit: str, text_ids: str, table_columns: list[str]) -> None:
    if text_ids not in get_args(TextIds):
        raise LimenError(f"text_ids={text_ids!r} is not one of {', '.join(get_args(TextIds))}")
    if emit not in get_args(Emit):
        raise LimenError(f"emit={emit!r} is not one of {', '.join(get_args(Emit))}")
    if COLUMN[emit] in table_columns:
        raise LimenError(
            f"the events have a column {COLUMN[emit]!r}, the name of the result's; rename it or "
            "leave it out with columns=[...]"
        )


def emit_rows(table: pa.Table, hits: Hits, names: Names) -> pa.Table:
    offsets, slots = hits
    events = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    chunks = [names.of(slots[i : i + names.most]) for i in range(0, len(slots) or 1, names.most)]
    found = chunks[0] if len(chunks) == 1 else pa.chunked_array(chunks)
    return _beside(_repeated(table, events), COLUMN["rows"], found)


def _repeated(table: pa.Table, rows: npt.NDArray[np.intp]) -> pa.Table:
    """The rows of the table, in pieces whose text Arrow's offsets can count."""
    most = max(1, int(PIECE_BYTES / max(table.nbytes / max(len(table), 1), 1)))
    if len(rows) <= most:
        return table.take(pa.array(rows))
    pieces = [table.take(pa.array(rows[i : i + most])) for i in range(0, len(rows), most)]
    return pa.concat_tables(pieces)


def emit_ids(table: pa.Table, hits: Hits, names: Names) -> pa.Table:
    """As many lists make a chunk as Arrow's offsets can count the ids of, one at least."""
    offsets, slots = hits
    chunks: list[pa.Array] = []
    first = 0
    while first < len(offsets) - 1 or not chunks:
        begin = offsets[first]
        last = int(np.searchsorted(offsets, begin + names.most, side="right")) - 1
        last = min(max(last, first + 1), len(offsets) - 1)
        ends = pa.array((offsets[first : last + 1] - begin).astype(np.int32))
        chunks.append(pa.ListArray.from_arrays(ends, names.of(slots[begin : offsets[last]])))
        first = last
    return _beside(table, COLUMN["ids"], pa.chunked_array(chunks))


def emit_count(table: pa.Table, counts: I64) -> pa.Table:
    return _beside(table, COLUMN["count"], pa.array(counts, pa.int64()))


def _beside(table: pa.Table, name: str, column: pa.Array | pa.ChunkedArray) -> pa.Table:
    """The table with one more column; one without columns has no length to keep to."""
    return table.append_column(name, column) if table.num_columns else pa.table({name: column})
