"""BMQ-Index: the standing queries by their borders, in one dimension or several.

Registration puts a query's two borders among the others in each dimension, which splits the RS nodes that
they fall into; deregistration takes them out, which merges what they parted. A batch of either is one
pass over the lists. Queries may be divided into groups (tenants, symbols); a reading meets those of its
own group only.

Positions of entities are kept in `Places`, one for each stream table that the index is used with, and
found anew when the index has changed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from limen.borders.streams import Batch, Streams
from limen.indexes.protocol import plain, refuse_twice, with_room
from limen.indexes.saved import Arrays, Facts
from limen.indexes.spare import Spare
from limen.kernels.bmq import LANES, LIVE, cross
from limen.kernels.bmq_nd import cross_nd
from limen.kernels.borders import (
    BLOCK,
    BLOCK_BITS,
    RSLists,
    locate_many,
    make_frames,
    pack_keys,
)

I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]
U8 = npt.NDArray[np.uint8]

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1
ROOM = 4096  # crossings that a batch has room for beyond what the last one had

MOST_LISTS = 1 / 8  # lists for each query, at most
MOST_CORNERS = 4  # where the cut of a dimension meets a list: likewise
MOST_STRIPS = 1024
REACH = 1.6  # strips that a query reaches into, on average, at most
OUTGROWN = 2  # times these limits, or the queries or borders at the fit: the strips are chosen anew
SAMPLE = 4096
NO_ROOM = [INT64_MAX, INT64_MIN]  # in which no value is

_NO_I32 = np.empty(0, np.int32)


class Crossings(NamedTuple):
    """Reading order[i] has found[ends[i]:ends[i + 1]]: q for a query entered, ~q for one left."""

    order: I64
    ends: I64
    found: I32

    def rows(self) -> tuple[I64, I32, npt.NDArray[np.bool_]]:
        """By crossing: the reading, the query, and whether it was entered."""
        entered = self.found >= 0
        readings = np.repeat(self.order, np.diff(self.ends))
        return readings, np.where(entered, self.found, ~self.found), entered


class Places:
    """Where the entities of one stream table are in the lists of one index.

    `size`: how many entities the stream table has already.
    """

    def __init__(self, dimensions: int, size: int = 0) -> None:
        self.at = np.zeros((size, dimensions), np.int32)
        several = size if dimensions > 1 else 0  # in one dimension there are no strips
        self.strips = np.zeros((several, dimensions), np.int32)
        self.rooms = np.zeros((several, dimensions, 2), np.int64)
        self.groups = np.zeros(size, np.int32)
        self.size = size
        self.old = np.zeros(size, np.bool_)  # not found since the index changed
        self.n_old = 0
        self.stamp = 0  # of the index, at the last batch

    def bring_to(self, stamp: int, size: int) -> None:
        """Take note of a changed index, and of entities that are new."""
        self.at, self.groups = with_room(self.at, size), with_room(self.groups, size)
        if self.at.shape[1] > 1:
            self.strips = with_room(self.strips, size)
            self.rooms = with_room(self.rooms, size)
        self.old = with_room(self.old, size)
        if stamp != self.stamp:
            self.old[: self.size], self.n_old, self.stamp = True, self.size, stamp
        self.size = size

    @property
    def nbytes(self) -> int:
        arrays = (self.at, self.strips, self.rooms, self.groups, self.old)
        return sum(array[: self.size].nbytes for array in arrays)


class BMQIndex:
    """
    >>> index = BMQIndex()
    >>> index.build([1, 2], [[10], [15]], [[20], [30]])
    >>> streams, places = Streams(), Places(1)
    >>> streams.grow(1)
    >>> values = np.array([[12], [17], [25]])
    >>> batch = streams.arrange(np.zeros(3, np.int32), values)
    >>> [column.tolist() for column in index.cross(batch, streams, places).rows()]
    [[0, 1, 2], [1, 2, 1], [True, True, False]]
    """

    _rs: RSLists

    def __init__(self, dimensions: int = 1) -> None:
        if not isinstance(dimensions, int) or dimensions < 1:
            raise ValueError(f"an index has one dimension at least, not {dimensions}")
        self.dimensions = dimensions
        self._stamp = 0
        self._per_reading = 1.0  # crossings, in the last batch
        self._spare = Spare(np.int64), Spare(np.int32)
        self._empty()

    def _empty(self) -> None:
        self._stamp += 1
        self.size = 0
        self.accessed = 0  # ids and borders looked at by `cross`, so far
        self._groups = 1
        self._cuts = np.empty((self.dimensions, 0), np.int64)  # between strips, by dimension
        self._fitted = 0  # queries that were in when they were cut
        self._fitted_borders = 0  # and their borders, in all strips
        self._changed = 0  # queries added and removed since
        self._ranges = np.zeros((0, self.dimensions, 2), np.int64)  # the query table
        self._group_of = _NO_I32  # by query, in several dimensions
        self._open_ids, self._open_lists = _NO_I32, np.empty(0, np.int64)
        self._marks = np.zeros(0, np.uint8)
        no = np.zeros(self.dimensions + 1, np.int64)
        self._lay(np.empty(0, np.int64), _NO_I32, no)

    def __len__(self) -> int:
        return self.size

    # -- registration and deregistration ---------------------------------------------------------

    def build(
        self, ids: npt.ArrayLike, lo: npt.ArrayLike, hi: npt.ArrayLike, groups: I32 | None = None
    ) -> None:
        """Hold these queries and no others; lo and hi, both inclusive, have a column a dimension."""
        before = self.__dict__.copy()
        self._empty()
        try:
            self.insert(ids, lo, hi, groups)
        except ValueError:
            self.__dict__ = before
            raise

    def insert(
        self, ids: npt.ArrayLike, lo: npt.ArrayLike, hi: npt.ArrayLike, groups: I32 | None = None
    ) -> None:
        numbers = plain(ids, np.int32)
        n = len(numbers)
        lows, highs = self._ends(lo, n), self._ends(hi, n)
        of = np.zeros(n, np.int32) if groups is None else plain(groups, np.int32)
        self._refuse(numbers, lows, highs, of)
        if not n:
            return
        self._stamp += 1
        top = int(numbers.max()) + 1
        self._marks = with_room(self._marks, top)
        self._marks[numbers] = LIVE
        self.size += n
        if self.dimensions > 1:
            self._ranges = with_room(self._ranges, top)
            self._ranges[numbers, :, 0], self._ranges[numbers, :, 1] = lows, highs
            self._group_of = with_room(self._group_of, top)
            self._group_of[numbers] = of
            self._changed += n
            if self._outgrown(lows, highs, int(of.max()) + 1):
                self._fit(int(of.max()) + 1)
                return
        self._make_groups(int(of.max()) + 1)
        self._register(numbers, lows, highs, of)

    def _register(self, ids: I32, lo: I64, hi: I64, groups: I32) -> None:
        """Put the borders of queries among those that are in."""
        lists, keys, whose = [], [], []
        for k in range(self.dimensions):
            rows, strips = self._strips((k + 1) % self.dimensions, lo, hi)
            of = (k * self._groups + groups[rows].astype(np.int64)) * self._n_strips + strips
            begins, ends = lo[rows, k], hi[rows, k]
            unbounded, ended = begins == INT64_MIN, ends < INT64_MAX
            self._open_ids = np.append(self._open_ids, ids[rows[unbounded]])
            self._open_lists = np.append(self._open_lists, of[unbounded])
            lists += [of[~unbounded], of[ended]]
            keys += [begins[~unbounded], ends[ended] + 1]
            whose += [ids[rows[~unbounded]], ~ids[rows[ended]]]
        self._merge(np.concatenate(lists), np.concatenate(keys), np.concatenate(whose))

    def _outgrown(self, lo: I64, hi: I64, groups: int) -> bool:
        """Were the strips chosen for others than those that are in, with these new ones?

        For so many fewer or so different ones that they are in the wrong places, for fewer groups, or
        for queries that reach into fewer strips than the new ones do.
        """
        if self._changed > self._fitted + 64:
            return True
        if self._n_strips == 1:
            return False
        lists = self.dimensions * max(groups, self._groups) * self._n_strips
        corners = lists * self._n_strips
        if (
            lists > OUTGROWN * MOST_LISTS * self.size
            or corners > OUTGROWN * MOST_CORNERS * self.size
        ):
            return True
        more = sum(int(self._reach(k, lo, hi)[1].sum()) for k in range(self.dimensions))
        return len(self._rs.keys) + 2 * more > OUTGROWN * self._fitted_borders

    @property
    def _n_strips(self) -> int:
        return self._cuts.shape[1] + 1

    def _reach(self, k: int, lo: I64, hi: I64) -> tuple[I64, I64]:
        """The first strip of dimension k that each query reaches into, and how many they are."""
        first = np.searchsorted(self._cuts[k], lo[:, k], side="right")
        return first, np.searchsorted(self._cuts[k], hi[:, k], side="right") - first + 1

    def _strips(self, k: int, lo: I64, hi: I64) -> tuple[I64, I64]:
        """The strips of dimension k that queries reach into: rows, and a strip for each."""
        rows = np.arange(len(lo))
        if not self._cuts.shape[1]:
            return rows, np.zeros(len(lo), np.int64)
        first, many = self._reach(k, lo, hi)
        begins = np.cumsum(many) - many
        return np.repeat(rows, many), np.arange(many.sum()) - np.repeat(begins - first, many)

    def _fit(self, groups: int) -> None:
        """Choose the strips by the queries that are in, and lay them out anew."""
        ids = np.flatnonzero(self._marks).astype(np.int32)
        lo, hi = self._ranges[ids, :, 0], self._ranges[ids, :, 1]
        self._groups = max(groups, self._groups)
        each = len(ids) / (self.dimensions * self._groups)
        most = min(MOST_LISTS * each, np.sqrt(MOST_CORNERS * each), MOST_STRIPS)
        self._cuts = _cuts(lo, hi, most)
        self._fitted, self._changed = len(ids), 0
        self._open_ids, self._open_lists = _NO_I32, np.empty(0, np.int64)
        no = np.zeros(self.dimensions * self._groups * self._n_strips + 1, np.int64)
        self._lay(np.empty(0, np.int64), _NO_I32, no)
        self._register(ids, lo, hi, self._group_of[ids])
        self._fitted_borders = len(self._rs.keys)

    def delete(self, ids: npt.ArrayLike) -> None:
        numbers = plain(ids, np.int32)
        bad = (numbers < 0) | (numbers >= len(self._marks))
        bad[~bad] = self._marks[numbers[~bad]] == 0
        if bad.any():
            raise ValueError(f"id {numbers[bad.argmax()]} is not in the index")
        refuse_twice(numbers)
        if not len(numbers):
            return
        self._stamp += 1
        self._marks[numbers] = 0
        self.size -= len(numbers)
        self._changed += len(numbers)
        of = self._rs.ids[:-LANES]
        whose = np.where(of < 0, ~of, of)
        stay = self._marks[whose] != 0
        staying = np.concatenate([[0], np.cumsum(stay)])
        opened = self._marks[self._open_ids] != 0
        self._open_ids, self._open_lists = self._open_ids[opened], self._open_lists[opened]
        self._lay(self._keys()[stay], of[stay], staying[self._rs.starts])

    def _ends(self, ends: npt.ArrayLike, n: int) -> I64:
        found = np.asarray(ends)
        if found.ndim == 1 and self.dimensions == 1:
            found = found[:, None]
        if found.shape != (n, self.dimensions) and (found.size or n):
            raise ValueError(f"lo and hi need {n} rows and {self.dimensions} columns")
        flat = plain(found.reshape(-1), np.int64)
        return np.require(flat.reshape(n, self.dimensions), np.int64, ["C"])

    def _refuse(self, ids: I32, lo: I64, hi: I64, groups: I32) -> None:
        if len(groups) != len(ids):
            raise ValueError(f"ids and groups differ in length: {len(ids)}, {len(groups)}")
        if not len(ids):
            return
        for what, numbers in (("id", ids), ("group", groups)):
            if numbers.min() < 0:
                raise ValueError(f"{what} {numbers.min()} is negative")
        if (lo > hi).any():
            row = int((lo > hi).any(axis=1).argmax())
            raise ValueError(f"id {ids[row]}: lo {lo[row]} is above hi {hi[row]}")
        known = ids[ids < len(self._marks)]
        if self._marks[known].any():
            raise ValueError(f"id {known[self._marks[known].argmax()]} is already in the index")
        refuse_twice(ids)

    def _make_groups(self, groups: int) -> None:
        """Make room for groups below this number: lists of nothing."""
        if groups <= self._groups:
            return
        groups = max(groups, self._groups + self._groups // 4)
        before, after = self._groups * self._n_strips, groups * self._n_strips
        dimension, rest = np.divmod(self._open_lists, before)
        self._open_lists = dimension * after + rest
        starts = np.empty(self.dimensions * after + 1, np.int64)
        for k in range(self.dimensions):
            mine = self._rs.starts[k * before : (k + 1) * before + 1]
            starts[k * after : (k + 1) * after + 1] = mine[-1]
            starts[k * after : k * after + len(mine)] = mine
        self._groups = groups
        self._rs = self._rs._replace(starts=starts)

    def _keys(self) -> I64:
        bases: I64 = np.repeat(self._rs.bases, BLOCK)[: len(self._rs.keys)]
        return self._rs.keys + bases

    def _merge(self, lists: I64, keys: I64, ids: I32) -> None:
        """Put further borders among those that are in."""
        several = len(self._rs.starts) > 2
        order = np.lexsort((keys, lists)) if several else np.argsort(keys, kind="stable")
        lists, keys, ids = lists[order], keys[order], ids[order]
        there = np.empty(len(keys), np.int32)
        locate_many(self._rs, 0, lists.astype(np.int32), keys, there)
        more = np.bincount(lists, minlength=len(self._rs.starts) - 1)
        starts = self._rs.starts + np.concatenate([[0], np.cumsum(more)])
        self._lay(
            np.insert(self._keys(), there, keys),
            np.insert(self._rs.ids[:-LANES], there, ids),
            starts,
        )

    def _lay(self, keys: I64, ids: I32, starts: I64) -> None:
        """Take these borders for the lists, and put frames into them."""
        bases = np.empty((len(keys) >> BLOCK_BITS) + 1, np.int64)
        most = pack_keys(keys, bases)
        width: Any = next((w for w in (np.uint16, np.uint32) if 0 <= most <= np.iinfo(w).max), None)
        if width is None:
            width, bases[:] = np.int64, 0
        packed = (keys - np.repeat(bases, BLOCK)[: len(keys)]).astype(width)
        top = np.array([2**64 - 1 if width is np.int64 else np.iinfo(width).max], np.uint64)
        by_list = np.argsort(self._open_lists, kind="stable")
        opens = np.searchsorted(self._open_lists[by_list], np.arange(len(starts)))
        open_ids = self._open_ids[by_list].astype(np.int32)
        frames = make_frames(ids, starts, open_ids, opens, len(self._marks))
        padded = np.append(ids, np.zeros(LANES, np.int32))
        self._rs = RSLists(packed, bases, top, padded, starts, *frames)
        self._corners = self._find_corners()

    def _find_corners(self) -> I32:
        """By list and cut of its own dimension: the position there, between begin and end of the list."""
        starts = self._rs.starts
        corners = np.empty((len(starts) - 1, self._n_strips + 1), np.int32)
        corners[:, 0], corners[:, -1] = starts[:-1], starts[1:]
        for k in range(self.dimensions if self._n_strips > 1 else 0):
            per = self._groups * self._n_strips
            lists = np.repeat(np.arange(per, dtype=np.int32), self._n_strips - 1)
            at = np.empty(len(lists), np.int32)
            locate_many(self._rs, k * per, lists, np.tile(self._cuts[k], per), at)
            corners[k * per : (k + 1) * per, 1:-1] = at.reshape(per, -1)
        return corners

    # -- what is crossed -------------------------------------------------------------------------

    def cross(
        self,
        batch: Batch,
        streams: Streams,
        places: Places,
        groups: I32 | None = None,
        groups_of: Callable[[I64], I32] | None = None,
    ) -> Crossings:
        """The queries that the readings of the batch enter and leave.

        `groups`: of each reading, -1 where no query can be meant; `groups_of`: likewise, of the last
        readings of these entities. All are in group 0 if not given.
        """
        places.bring_to(self._stamp, streams.size)
        self._find_again(batch, streams, places, groups_of)
        in_group = _NO_I32
        if groups is not None:
            in_group = np.where(groups < self._groups, groups, np.int32(-1)).astype(np.int32)
        n = len(batch.order)
        ends = self._spare[0].empty(n + 1)[: n + 1]
        ends[0] = 0
        found = self._spare[1].empty(int(1.2 * self._per_reading * n) + ROOM)
        accessed = np.zeros(1, np.int64)
        done = 0
        while True:
            done = self._cross(batch, streams, places, in_group, done, ends, found, accessed)
            if done == n:
                break
            larger = np.empty(2 * len(found) + 4 * self.size * self.dimensions, np.int32)
            larger[: ends[done]] = found[: ends[done]]
            found = larger
        self.accessed += int(accessed[0])
        self._per_reading = ends[n] / max(1, n)
        return Crossings(batch.order, ends, found[: ends[n]])

    def _cross(
        self,
        batch: Batch,
        streams: Streams,
        places: Places,
        groups: I32,
        done: int,
        ends: I64,
        found: I32,
        accessed: I64,
    ) -> int:
        entities, values, _, order, before, flags, _ = batch
        if self.dimensions == 1:
            return cross(
                self._rs,
                self._marks,
                entities,
                values.reshape(-1),
                groups,
                order,
                done,
                flags,
                places.at.reshape(-1),
                places.groups,
                ends,
                found,
                accessed,
            )
        return cross_nd(
            self._rs,
            self._ranges,
            self._cuts,
            self._corners,
            self._groups,
            entities,
            values,
            groups,
            order,
            done,
            flags,
            before,
            streams.values,
            places.at,
            places.strips,
            places.groups,
            places.rooms,
            np.empty((1, self.dimensions), np.int32),
            np.empty((1, self.dimensions), np.int32),
            np.empty((2, self.dimensions), np.int64),
            ends,
            found,
            accessed,
        )

    def _find_again(
        self,
        batch: Batch,
        streams: Streams,
        places: Places,
        groups_of: Callable[[I64], I32] | None,
    ) -> None:
        """Bring the places of the batch's entities up to date with the index."""
        if not places.n_old:
            return
        rows = np.unique(batch.entities[places.old[batch.entities]]).astype(np.int64)
        places.old[rows] = False
        places.n_old -= len(rows)
        groups = np.zeros(len(rows), np.int32) if groups_of is None else groups_of(rows)
        groups = np.where(groups < self._groups, groups, np.int32(-1)).astype(np.int32)
        places.groups[rows] = groups
        last = streams.values[rows]
        strips = np.zeros((len(rows), self.dimensions), np.int64)
        if self._cuts.shape[1]:
            for k in range(self.dimensions):
                strips[:, k] = np.searchsorted(self._cuts[k], last[:, k], side="right")
        if self.dimensions > 1:
            places.strips[rows], places.rooms[rows] = strips, NO_ROOM
        for k in range(self.dimensions):
            at = np.empty(len(rows), np.int32)
            of = groups * self._n_strips + strips[:, (k + 1) % self.dimensions]
            lists = np.where(groups < 0, -1, of).astype(np.int32)
            first = k * self._groups * self._n_strips
            locate_many(self._rs, first, lists, np.ascontiguousarray(last[:, k]), at)
            places.at[rows, k] = at

    # -- size, shape, disk -----------------------------------------------------------------------

    @property
    def nbytes(self) -> int:
        arrays = list(self._rs)
        if self.dimensions > 1:
            arrays += [self._ranges, self._group_of, self._cuts, self._corners]
        arrays += [self._marks, self._open_ids, self._open_lists]
        return sum(array.nbytes for array in arrays)

    def nodes(
        self, dimension: int = 0, group: int = 0
    ) -> list[tuple[int | None, list[int], list[int]]]:
        """The RS list as the paper draws it: each node's lower border, +DQSet and -DQSet.

        The first node has no lower border; its +DQSet is the queries without a lower bound.
        """
        first = (dimension * self._groups + group) * self._n_strips
        begin, end = self._rs.starts[first], self._rs.starts[first + self._n_strips]
        keys, whose = self._keys()[begin:end], self._rs.ids[begin:end]
        mine = (self._open_lists >= first) & (self._open_lists < first + self._n_strips)
        unbounded = np.unique(self._open_ids[mine]).tolist()
        found: list[tuple[int | None, list[int], list[int]]] = [(None, unbounded, [])]
        for key in np.unique(keys).tolist():
            here = np.unique(whose[keys == key])
            found.append((key, here[here >= 0].tolist(), sorted((~here[here < 0]).tolist())))
        return found

    def parts(self) -> tuple[Arrays, Facts]:
        """What is saved of the index."""
        arrays: Arrays = self._rs._asdict()
        arrays |= {"ranges": self._ranges, "marks": self._marks}
        arrays |= {"cuts": self._cuts, "corners": self._corners, "group_of": self._group_of}
        arrays |= {"open_ids": self._open_ids, "open_lists": self._open_lists}
        facts: Facts = {
            "dimensions": self.dimensions,
            "size": self.size,
            "groups": self._groups,
            "fitted": [self._fitted, self._fitted_borders, self._changed],
        }
        return arrays, facts

    @classmethod
    def of_parts(cls, arrays: Arrays, facts: Facts) -> BMQIndex:
        index = cls(facts["dimensions"])
        index.size, index._groups = facts["size"], facts["groups"]
        index._ranges, index._marks = arrays["ranges"], arrays["marks"]
        index._cuts, index._corners = arrays["cuts"], arrays["corners"]
        index._group_of = arrays["group_of"]
        index._fitted, index._fitted_borders, index._changed = facts["fitted"]
        index._open_ids, index._open_lists = arrays["open_ids"], arrays["open_lists"]
        index._rs = RSLists(**{name: arrays[name] for name in RSLists._fields})
        return index


def _cuts(lo: I64, hi: I64, most: float) -> I64:
    """Where to cut each dimension into strips: as many as can be, so that queries reach into few."""
    some = slice(None, None, max(1, len(lo) // SAMPLE))
    lo, hi = (
        np.sort(lo[some], axis=0),
        hi[some][np.argsort(lo[some], axis=0), np.arange(lo.shape[1])],
    )
    strips = MOST_STRIPS
    while strips > 1:
        at = np.arange(1, strips) * len(lo) // strips
        cuts = np.ascontiguousarray(lo[at].T)
        if strips <= most and _reach(cuts, lo, hi) <= REACH:
            return cuts
        strips //= 2
    return np.empty((lo.shape[1], 0), np.int64)


def _reach(cuts: I64, lo: I64, hi: I64) -> float:
    """How many strips the ranges of a dimension reach into, on average."""
    reach = [
        np.searchsorted(cut, high, side="right") - np.searchsorted(cut, low, side="right") + 1
        for cut, low, high in zip(cuts, lo.T, hi.T, strict=True)
    ]
    return float(np.mean(reach))
