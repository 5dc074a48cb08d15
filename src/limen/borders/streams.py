"""The stream table: of each entity, a small number, its last values and when it was last heard of.

`arrange` takes a batch of readings and finds what came before each: the entity's reading before it in the
batch, by time and then by order of arrival, or what the table holds. A reading older than the entity's
last one is late; it is flagged and no crossing comes of it. `settle` makes the batch's last readings
those of the table.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from limen.indexes.protocol import with_room
from limen.kernels.chain import chain, settle

I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]
U8 = npt.NDArray[np.uint8]

NO_FLOOR = -(2**63)


class Batch(NamedTuple):
    entities: I32
    values: I64  # a row a reading, a column a dimension
    times: I64
    order: I64  # the readings by time
    before: I32  # the row of the entity's reading before, or -1 where the table holds it
    flags: U8  # see `kernels/chain.py`
    late: int


class Streams:
    def __init__(self, dimensions: int = 1) -> None:
        self.dimensions = dimensions
        self.size = 0  # entities are the numbers below
        self.known = np.zeros(0, np.bool_)
        self.heard = np.zeros(0, np.int64)
        self.values = np.zeros((0, dimensions), np.int64)
        self._newest = np.zeros(0, np.int32)

    def grow(self, size: int) -> None:
        """Make room for entities up to this number."""
        if size <= self.size:
            return
        before = len(self._newest)
        self.known, self.heard = with_room(self.known, size), with_room(self.heard, size)
        self.values = with_room(self.values, size)
        self._newest = with_room(self._newest, size)
        self._newest[before:] = -1
        self.size = size

    def arrange(
        self,
        entities: I32,
        values: I64,
        times: I64 | None = None,
        *,
        floor: int = NO_FLOOR,
        patience: int = -1,
    ) -> Batch:
        """The readings in order, from entities below `size`; without times, as they came.

        Those older than `floor` are late. After more than `patience` of silence an entity comes as if
        for the first time.
        """
        n = len(entities)
        if times is None:
            order = np.arange(n)
            heard, times = np.zeros(len(self.heard), np.int64), np.zeros(n, np.int64)
        else:
            heard = self.heard
            in_order = n < 2 or bool((times[1:] >= times[:-1]).all())
            order = np.arange(n) if in_order else np.argsort(times, kind="stable")
        before, flags = np.empty(n, np.int32), np.empty(n, np.uint8)
        late = chain(
            entities, times, order, self.known, heard, self._newest, floor, patience, before, flags
        )
        return Batch(entities, values, times, order, before, flags, late)

    def settle(self, batch: Batch) -> None:
        settle(batch.entities, batch.values, batch.order, batch.flags, self.values)

    def previous(self, batch: Batch) -> I64:
        """The values before each reading; of no meaning where the entity is new."""
        from_table = self.values[batch.entities]
        return np.where(batch.before[:, None] >= 0, batch.values[batch.before], from_table)

    @property
    def nbytes(self) -> int:
        """What a stream table has of every entity that is in: the words in use."""
        return sum(a[: self.size].nbytes for a in (self.known, self.heard, self.values))
