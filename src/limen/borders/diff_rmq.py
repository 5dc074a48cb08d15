"""DiffRMQ: what the BMQ paper compares with. Find all queries of both values, then take the difference.

Any index of `limen.indexes` will do for the first step; the paper has CEI and interval skip lists. One
dimension. Both values of a reading are looked up, as in the paper; nothing is kept from one to the next.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from limen.borders.bmq import Crossings
from limen.borders.streams import Batch, Streams
from limen.indexes.protocol import Hits, IntervalIndex, with_room
from limen.indexes.spare import Spare
from limen.kernels.chain import FIRST, LATE, RETURNED
from limen.kernels.set_difference import set_difference

I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]

AT_A_TIME = 1 << 13  # readings: keeps what they find in the caches


class DiffRMQ:
    def __init__(self, index: IntervalIndex) -> None:
        self.index = index
        self.accessed = 0  # matching queries found by `cross`, so far
        self._marks = np.zeros(0, np.uint8)
        self._spare = Spare(np.int32)

    def cross(self, batch: Batch, streams: Streams) -> Crossings:
        """The queries that the readings of the batch enter and leave."""
        if (batch.flags == RETURNED).any():
            raise ValueError("DiffRMQ does not forget entities")
        previous = np.ascontiguousarray(streams.previous(batch)[:, 0])
        parts = [
            self._cross(batch, previous, batch.order[i : i + AT_A_TIME])
            for i in range(0, len(batch.order), AT_A_TIME)
        ]
        shifts = np.cumsum([0, *(len(found) for _, found in parts)])
        ends = [ends[1:] + shift for (ends, _), shift in zip(parts, shifts, strict=False)]
        found = [found for _, found in parts]
        return Crossings(
            batch.order,
            np.concatenate([np.zeros(1, np.int64), *ends]),
            found[0] if len(found) == 1 else np.concatenate([np.empty(0, np.int32), *found]),
        )

    def _cross(self, batch: Batch, previous: I64, rows: I64) -> tuple[I64, I32]:
        flags = batch.flags[rows]
        late = flags == LATE
        a_ends, a_ids = self._stab(previous[rows], (flags == FIRST) | late)
        b_ends, b_ids = self._stab(batch.values[rows, 0].copy(), late)
        self.accessed += len(a_ids) + len(b_ids)
        top = max(int(a_ids.max(initial=-1)), int(b_ids.max(initial=-1))) + 1
        self._marks = with_room(self._marks, top)
        ends = np.zeros(len(rows) + 1, np.int64)
        found = self._spare.empty(len(a_ids) + len(b_ids) + 1)
        set_difference(a_ends, a_ids, b_ends, b_ids, self._marks, ends, found)
        return ends, found[: ends[-1]]

    def _stab(self, values: I64, nothing: npt.NDArray[np.bool_]) -> Hits:
        """What each value finds; for some, nothing."""
        if not nothing.any():
            return self.index.stab_many(values)
        ends, ids = self.index.stab_many(values[~nothing])
        counts = np.zeros(len(values), np.int64)
        counts[~nothing] = np.diff(ends)
        return np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)]), ids
