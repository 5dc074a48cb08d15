"""What every index over query ranges can do.

A range is a pair of int64 ordinals [lo, hi], both ends included; ids are int32, small and dense (the
index keeps arrays as long as the largest). The answer to a batch of values is in CSR form: the ids found
by xs[i] are ids[offsets[i]:offsets[i + 1]], in no particular order.

Bad input has one answer everywhere: a range with lo > hi, an id that is already in (or twice in one
call), an id to delete that is not in, arrays of different lengths raise ValueError that names the
first offender, and nothing is changed. Domains, half-open ends and real values: `bounded.py`.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]
Hits = tuple[I64, I32]

FEW = 1 << 14  # ids that are sooner sorted than marked in an array as long as the largest


class IntervalIndex(Protocol):
    @property
    def name(self) -> str: ...

    def __len__(self) -> int:
        """How many queries are in."""
        ...

    def build(self, ids: I32, lo: I64, hi: I64) -> None:
        """Hold these queries and no others; faster than inserting them."""
        ...

    def insert(self, ids: I32, lo: I64, hi: I64) -> None: ...

    def delete(self, ids: I32) -> None: ...

    def stab(self, x: int) -> I32:
        """The ids of the queries that contain x."""
        ...

    def stab_many(self, xs: I64) -> Hits:
        """Offsets and ids, for a batch of values."""
        ...

    def count_many(self, xs: I64) -> I32:
        """How many queries contain each value."""
        ...

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays held."""
        ...


def plain(array: npt.ArrayLike, dtype: type[np.signedinteger[Any]]) -> npt.NDArray[Any]:
    """Contiguous, of this type and writable: the one kind of array that kernels are compiled for.

    Values that the type cannot hold are refused, and so is anything but integers in a row.
    """
    found = np.asarray(array)
    refuse_tables(found)
    if found.dtype != dtype and found.size:
        if found.dtype.kind not in "iu":
            raise ValueError(f"integers are needed, not {found.dtype}")
        limits = np.iinfo(dtype)
        worst = max(int(found.max()), -int(found.min()) - 1)
        if worst > limits.max:
            outside = found.max() if int(found.max()) > limits.max else found.min()
            raise ValueError(f"{outside} does not fit {np.dtype(dtype)}")
    return np.require(found, dtype, ["C", "W"])


def refuse_tables(array: npt.NDArray[Any]) -> None:
    if array.ndim != 1:
        raise ValueError(f"an array of one dimension is needed, not of {array.ndim}")


def checked(ids: I32, lo: I64, hi: I64) -> tuple[I32, I64, I64]:
    """The three as contiguous arrays of the right type, or ValueError."""
    ids, lo, hi = plain(ids, np.int32), plain(lo, np.int64), plain(hi, np.int64)
    if not (len(ids) == len(lo) == len(hi)):
        raise ValueError(f"ids, lo and hi differ in length: {len(ids)}, {len(lo)}, {len(hi)}")
    if len(ids) and ids.min() < 0:
        raise ValueError(f"id {ids.min()} is negative")
    reversed_ = lo > hi
    if reversed_.any():
        i = int(reversed_.argmax())
        raise ValueError(f"id {ids[i]}: lo {lo[i]} is above hi {hi[i]}")
    return ids, lo, hi


def refuse_twice(ids: I32) -> None:
    if len(ids) < FEW:
        ordered = np.sort(ids)
        again = ordered[1:][ordered[1:] == ordered[:-1]]
        if len(again):
            raise ValueError(f"id {again[0]} is given twice")
        return
    seen = np.zeros(int(ids.max(initial=-1)) + 1, np.bool_)
    seen[ids] = True
    if np.count_nonzero(seen) != len(ids):
        values, counts = np.unique(ids, return_counts=True)
        raise ValueError(f"id {values[counts.argmax()]} is given twice")


def with_room(array: npt.NDArray[Any], n: int) -> npt.NDArray[Any]:
    """The array itself if it has n rows, else a copy with at least a quarter more, zeros behind it.

    Memory behind the copy is not touched, so it costs nothing yet.
    """
    if n <= len(array):
        return array
    longer = np.zeros((max(n, len(array) + len(array) // 4), *array.shape[1:]), array.dtype)
    longer[: len(array)] = array
    return longer


class QueryTable:
    """The ranges of the queries that are in, by id: what an index needs to take one out again."""

    def __init__(self) -> None:
        self.lo = np.empty(0, np.int64)
        self.hi = np.empty(0, np.int64)
        self.live = np.zeros(0, np.bool_)
        self.size = 0

    def ids(self) -> I32:
        return np.flatnonzero(self.live).astype(np.int32)

    def add(self, ids: I32, lo: I64, hi: I64) -> None:
        """Take them in, or raise ValueError and change nothing."""
        if not len(ids):
            return
        top = int(ids.max()) + 1
        known = ids[ids < len(self.live)]
        if self.live[known].any():
            raise ValueError(f"id {known[self.live[known].argmax()]} is already in the index")
        refuse_twice(ids)
        self.lo, self.hi = with_room(self.lo, top), with_room(self.hi, top)
        self.live = with_room(self.live, top)
        self.lo[ids] = lo
        self.hi[ids] = hi
        self.live[ids] = True
        self.size += len(ids)

    def check_in(self, ids: I32) -> I32:
        """The ids to delete, or ValueError if one is not in or given twice."""
        ids = plain(ids, np.int32)
        bad = (ids < 0) | (ids >= len(self.live))
        bad[~bad] = ~self.live[ids[~bad]]
        if bad.any():
            raise ValueError(f"id {ids[bad.argmax()]} is not in the index")
        refuse_twice(ids)
        return ids

    def remove(self, ids: I32) -> None:
        self.live[ids] = False
        self.size -= len(ids)

    @property
    def nbytes(self) -> int:
        return self.lo.nbytes + self.hi.nbytes + self.live.nbytes
