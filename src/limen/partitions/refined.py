"""A stabbing partition kept while intervals come and go, at most (1 + epsilon) times the smallest.

The refined algorithm of appendix A.2 (`kernels/refined.py`): an update touches one group, and now and
then a reconstruction makes the partition canonical again, at a cost for each group, not each interval.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from limen.indexes.protocol import plain, with_room
from limen.kernels import avl
from limen.kernels import refined as kernel
from limen.partitions.canonical import canonical
from limen.partitions.partition import Groups, Partition

I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]

LEAST_ROOM = 64
_CHANGES = 8  # of a batch that there is room for, to a group


class RefinedPartition(Partition):
    """
    >>> partition = RefinedPartition(epsilon=1.0)
    >>> partition.insert([1, 2, 3], [10, 15, 40], [20, 30, 50])
    >>> partition.groups().point.tolist(), partition.groups().size.tolist()
    ([20, 50], [2, 1])
    >>> partition.delete([1])
    >>> partition.members(partition.group_of([2])[0]).tolist()
    [2]
    """

    def __init__(self, epsilon: float = 1.0) -> None:
        super().__init__(epsilon)
        self.state = _state(0, LEAST_ROOM)

    def __len__(self) -> int:
        return int(self.state.counts[kernel.MEMBERS])

    @property
    def stabbing_number(self) -> int:
        return int(self.state.counts[kernel.N_GROUPS])

    # -- updates ---------------------------------------------------------------------------------

    def _build(self, ids: I32, lo: I64, hi: I64) -> None:
        found = canonical(lo, hi)
        self.state = _state(int(ids.max(initial=-1)) + 1, len(found) + LEAST_ROOM)
        self._set(ids, lo, hi)
        order = found.order
        if (np.diff(lo[order]) == 0).any():  # the trees have equal ones in order of their numbers
            order = np.lexsort((ids, lo))
        made = np.empty((max(found.sizes, default=0), 3), np.int64)
        in_order = ids[order].astype(np.int64)
        kernel.lay_out(self.state, in_order, found.starts, found.points, made)

    def _set(self, ids: I32, lo: I64, hi: I64) -> None:
        state, rows = self.state, int(ids.max(initial=-1)) + 1
        self.state = state._replace(
            nodes=with_room(state.nodes, rows),
            group_of=with_room(state.group_of, rows),
            fresh=with_room(state.fresh, rows),
            sizes=with_room(state.sizes, rows + 1),
        )
        self.state.nodes[ids, avl.LO], self.state.nodes[ids, avl.HI] = lo, hi

    def _some(self, ids: I32, adds: bool, done: int) -> int:
        return kernel.update_many(self.state, ids, adds, done, self.epsilon)

    def _settle(self) -> None:
        counts = self.state.counts
        self.reconstructions = int(counts[kernel.RECONSTRUCTED])
        n, missed = counts[kernel.N_CHANGES], counts[kernel.MISSED]
        counts[kernel.N_CHANGES] = counts[kernel.MISSED] = 0
        if missed:
            self._tell_all()
        else:
            self._tell(self.state.changes[:n])
        self._make_room()

    def _make_room(self) -> None:
        """For twice as many groups, and for what a reconstruction of them has to tell."""
        state, n = self.state, self.stabbing_number
        by_group = ("kinds", "roots", "points", "ranks", "spots", "free", "order", "at", "living")
        larger = {
            name: with_room(getattr(state, name), 2 * n + LEAST_ROOM)
            for name in (*by_group, "order_next")
        }
        changes = with_room(state.changes, _CHANGES * (n + LEAST_ROOM))
        self.state = state._replace(changes=changes, **larger)

    # -- what there is ---------------------------------------------------------------------------

    def groups(self) -> Groups:
        n = int(self.state.counts[kernel.N_GROUPS])
        found = Groups(np.empty(n, np.int32), np.empty(n, np.int64), np.empty(n, np.int64))
        kernel.list_groups(self.state, *found)
        return found

    def _has_groups(self, groups: I64) -> npt.NDArray[np.bool_]:
        found: npt.NDArray[np.bool_] = (groups >= 0) & (groups < len(self.state.kinds))
        found[found] = self.state.kinds[groups[found]] != kernel.FREE
        return found

    def around(self, x: int) -> tuple[int | None, int | None]:
        below, above = kernel.around(self.state, int(plain([x], np.int64)[0]))
        return None if below < 0 else int(below), None if above < 0 else int(above)

    def _members(self, group: int) -> I32:
        state = self.state
        root = int(state.roots[group])
        found = np.empty(state.nodes[root, avl.SIZE], np.int32)
        avl.members(state.nodes, state.path, root, found)
        return found

    def _points(self, groups: I64) -> I64:
        found: I64 = self.state.points[groups]
        return found

    def ends(self, ids: npt.ArrayLike) -> tuple[I64, I64]:
        """Of intervals that are in."""
        numbers = self._known(ids)
        return self.state.nodes[numbers, avl.LO], self.state.nodes[numbers, avl.HI]

    def common(self, groups: npt.ArrayLike) -> tuple[I64, I64]:
        """The common intersections of groups that there are."""
        roots = self.state.roots[self._all_groups(groups)]
        return self.state.nodes[roots, avl.MAX_LO], self.state.nodes[roots, avl.MIN_HI]

    def group_of(self, ids: npt.ArrayLike) -> I32:
        numbers = self._known(ids)
        found = np.empty(len(numbers), np.int32)
        kernel.groups_of(self.state, numbers, found)
        return found

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in self.state)


def _state(rows: int, groups: int) -> kernel.Refined:
    counts = np.zeros(kernel.COUNTS, np.int64)
    counts[kernel.SPOTS] = avl.NONE
    return kernel.Refined(
        nodes=np.zeros((rows, avl.WORDS), np.int64),
        group_of=np.zeros(rows, np.int32),
        kinds=np.zeros(groups, np.uint8),
        roots=np.zeros(groups, np.int32),
        points=np.zeros(groups, np.int64),
        ranks=np.zeros(groups, np.int32),
        spots=np.zeros((groups, avl.WORDS), np.int64),
        free=np.zeros(groups, np.int32),
        order=np.zeros(groups, np.int32),
        at=np.zeros(groups, np.int64),
        living=np.zeros(groups, np.int32),
        order_next=np.zeros(groups, np.int32),
        fresh=np.zeros(rows, np.int32),
        path=np.zeros(avl.DEEP, np.int64),
        more=np.zeros(avl.DEEP, np.int64),
        scouts=np.zeros(kernel.SCOUTS, np.int64),
        counts=counts,
        changes=np.zeros((_CHANGES * groups, 4), np.int64),
        sizes=np.zeros(rows + 1, np.int32),
    )
