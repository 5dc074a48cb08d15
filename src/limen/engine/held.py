"""Pairs of an entity and a query of which more is known than the last reading tells.

One that *lingers* is inside although its last value is only within the margin; one that is *pending*
came in at `since` and has not been reported yet, because it has not been inside for long enough. With a
pending one are kept the reading that came in and the one before. They are columns in no order.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from limen.kernels.holds import LINGERS, PENDING

I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]
U8 = npt.NDArray[np.uint8]
Mask = npt.NDArray[np.bool_]


class Held(NamedTuple):
    entities: I32
    ids: pa.Array  # of the queries
    since: I64  # of the pending ones
    state: U8  # LINGERS, PENDING, or both
    values: I64  # a row each, a column a dimension
    previous: I64
    seen: Mask  # whether there is a previous one

    @classmethod
    def none(cls, id_type: pa.DataType, dimensions: int) -> Held:
        no_values = np.empty((0, dimensions), np.int64)
        return cls(
            np.empty(0, np.int32),
            pa.array([], id_type),
            np.empty(0, np.int64),
            np.empty(0, np.uint8),
            no_values,
            no_values,
            np.empty(0, np.bool_),
        )

    def __bool__(self) -> bool:
        return len(self.entities) > 0

    @property
    def pending(self) -> Mask:
        return self._is(PENDING)

    @property
    def lingers(self) -> Mask:
        return self._is(LINGERS)

    def _is(self, state: np.uint8) -> Mask:
        found: Mask = (self.state & state) != 0
        return found

    def some(self, chosen: Mask) -> Held:
        return self._with([self.ids.filter(pa.array(chosen))], [c[chosen] for c in self._arrays()])

    def and_(self, others: Held) -> Held:
        both = zip(self._arrays(), others._arrays(), strict=True)
        return self._with([self.ids, others.ids], [np.concatenate(pair) for pair in both])

    def _arrays(self) -> list[npt.NDArray[Any]]:
        return [column for column in self if column is not self.ids]

    @staticmethod
    def _with(ids: list[pa.Array], arrays: list[npt.NDArray[Any]]) -> Held:
        return Held(arrays[0], pa.concat_arrays(ids), *arrays[1:])
