"""A stabbing partition kept by the lazy strategy of appendix A.1: simple, and dear where groups are few.

Updates cost next to nothing (`kernels/lazy.py`) until a reconstruction is due, which sorts all intervals
anew: n log n / (epsilon tau) an update on average. What a group's members have in common is not widened
again when one of them goes, before the next reconstruction: its point stays right, but an interval that
would meet the wider part makes a group of its own.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from limen.indexes.protocol import plain, with_room
from limen.kernels import avl
from limen.kernels import lazy as kernel
from limen.partitions.canonical import canonical
from limen.partitions.partition import Groups, Partition

I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]

LEAST_ROOM = 64
MOST_CHANGES = 4096  # told at once


class LazyPartition(Partition):
    """
    >>> partition = LazyPartition(epsilon=1.0)
    >>> partition.insert([1, 2, 3], [10, 15, 40], [20, 30, 50])
    >>> partition.groups().size.tolist()
    [2, 1]
    """

    def __init__(self, epsilon: float = 1.0) -> None:
        super().__init__(epsilon)
        counts = np.zeros(kernel.COUNTS, np.int64)
        counts[kernel.SPOTS] = avl.NONE
        self._state = kernel.Lazy(
            lo=np.zeros(0, np.int64),
            hi=np.zeros(0, np.int64),
            group_of=np.zeros(0, np.int32),
            settled=np.zeros(0, np.bool_),
            sizes=np.zeros(LEAST_ROOM, np.int32),
            spots=np.zeros((LEAST_ROOM, avl.WORDS), np.int64),
            free=np.zeros(LEAST_ROOM, np.int32),
            path=np.zeros(avl.DEEP, np.int64),
            counts=counts,
            changes=np.zeros((MOST_CHANGES, 4), np.int64),
        )

    def __len__(self) -> int:
        return int(self._state.counts[kernel.MEMBERS])

    @property
    def stabbing_number(self) -> int:
        return int(self._state.counts[kernel.N_GROUPS])

    # -- updates ---------------------------------------------------------------------------------

    def _build(self, ids: I32, lo: I64, hi: I64) -> None:
        self._set(ids, lo, hi)
        self._lay_out(ids)

    def _set(self, ids: I32, lo: I64, hi: I64) -> None:
        state, rows = self._state, int(ids.max(initial=-1)) + 1
        names = ("lo", "hi", "group_of", "settled")
        larger = {name: with_room(getattr(state, name), rows) for name in names}
        self._state = state._replace(**larger)
        self._state.lo[ids], self._state.hi[ids] = lo, hi

    def _lay_out(self, ids: I32) -> None:
        """Make the partition of these intervals, which are all there are, canonical."""
        found = canonical(self._state.lo[ids], self._state.hi[ids])
        self._make_room(len(found))
        made = np.empty((len(found), 4), np.int64)
        kernel.lay_out(self._state, ids, *found, made)

    def _make_room(self, groups: int) -> None:
        """For twice as many groups."""
        names, rows = ("sizes", "spots", "free"), 2 * groups + LEAST_ROOM
        larger = {name: with_room(getattr(self._state, name), rows) for name in names}
        self._state = self._state._replace(**larger)

    def _some(self, ids: I32, adds: bool, done: int) -> int:
        return kernel.update_many(self._state, ids, adds, done, self.epsilon)

    def _settle(self) -> None:
        counts = self._state.counts
        n, counts[kernel.N_CHANGES] = counts[kernel.N_CHANGES], 0
        if kernel.is_due(self._state, self.epsilon):
            self._lay_out(self.ids())
            self.reconstructions += 1
            self._tell_all()
            return
        self._tell(self._state.changes[:n])
        self._make_room(self.stabbing_number)

    # -- what there is ---------------------------------------------------------------------------

    def groups(self) -> Groups:
        state = self._state
        found = np.empty(self.stabbing_number, np.int32)
        kernel.list_groups(state, found)
        return Groups(found, state.spots[found, avl.HI], state.sizes[found].astype(np.int64))

    def _points(self, groups: I64) -> I64:
        found: I64 = self._state.spots[groups, avl.HI]
        return found

    def _has_groups(self, groups: I64) -> npt.NDArray[np.bool_]:
        state = self._state
        found: npt.NDArray[np.bool_] = (groups >= 0) & (groups < state.counts[kernel.USED])
        found[found] = state.sizes[groups[found]] > 0
        return found

    def around(self, x: int) -> tuple[int | None, int | None]:
        below, above = kernel.around(self._state, int(plain([x], np.int64)[0]))
        return None if below < 0 else int(below), None if above < 0 else int(above)

    def all_members(self) -> Iterator[tuple[int, I32]]:
        """For the price of a sort, where asking group by group takes a look at all for each."""
        state, ids = self._state, self.ids()
        of = state.group_of[ids]
        order = np.lexsort((state.lo[ids], of))
        begins = np.flatnonzero(np.diff(of[order], prepend=-1))
        names = of[order][begins].tolist()
        found = dict(zip(names, np.split(ids[order], begins[1:]), strict=False))
        for group in self.groups().group.tolist():
            yield group, found[group]

    def _members(self, group: int) -> I32:
        """It takes a look at all intervals."""
        state = self._state
        mine = np.flatnonzero(self._live)
        mine = mine[state.group_of[mine] == group]
        found: I32 = mine[np.argsort(state.lo[mine], kind="stable")].astype(np.int32)
        return found

    def group_of(self, ids: npt.ArrayLike) -> I32:
        found: I32 = self._state.group_of[self._known(ids)]
        return found
