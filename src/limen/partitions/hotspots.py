"""Hotspots (section 2.2): the groups with at least a share alpha of all intervals, as they come and go.

At all times, with n intervals and tau the number of groups of their smallest stabbing partition:
(I1) every group of alpha n or more is hot, and none of less than alpha n / 2, so at most 2 / alpha are;
(I2) there are at most (1 + epsilon) tau + 2 / alpha groups, hot and scattered;
(I3) at most 5 intervals an update, on average, become hot or scattered with their group.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from limen.indexes.protocol import plain, with_room
from limen.kernels import hotspots as kernel
from limen.kernels.refined import MEMBERS, MISSED, N_CHANGES
from limen.partitions.partition import Groups, number
from limen.partitions.refined import RefinedPartition

I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]


class Moves(NamedTuple):
    """What an update costs those who index hot and scattered intervals apart, so far."""

    updates: int  # a build counts as so many as it has intervals
    out: int  # intervals that were scattered and became hot with their group
    into: int  # and the other way
    promotions: int
    demotions: int

    @property
    def each(self) -> float:
        """Intervals moved for an update."""
        return (self.out + self.into) / max(1, self.updates)


class Hotspots(RefinedPartition):
    """
    >>> tracked = Hotspots(alpha=0.4)
    >>> tracked.insert(range(5), [10, 12, 14, 50, 70], [20, 22, 24, 60, 80])
    >>> tracked.hot().point.tolist(), tracked.hot().size.tolist(), len(tracked)
    ([20], [3], 5)
    """

    def __init__(self, alpha: float, epsilon: float = 1.0) -> None:
        if not 0 < number(alpha) <= 1:
            raise ValueError(f"alpha is a share above 0 and up to 1, not {alpha!r}")
        super().__init__(epsilon)
        self.alpha = number(alpha)
        self._updates = 0
        self._hot = self._no_hot()

    def _no_hot(self) -> kernel.Hot:
        room = len(self.state.kinds)
        return kernel.Hot(
            groups=np.zeros(room, np.int32),
            lo=np.zeros(room, np.int64),
            hi=np.zeros(room, np.int64),
            sizes=np.zeros(room, np.int64),
            tally=np.zeros(kernel.TALLY, np.int64),
        )

    def __len__(self) -> int:
        return int(self.state.counts[MEMBERS] + self._hot.tally[kernel.N_INSIDE])

    @property
    def stabbing_number(self) -> int:
        return super().stabbing_number + int(self._hot.tally[kernel.N_HOT])

    @property
    def moves(self) -> Moves:
        tally = self._hot.tally[
            [kernel.MOVED_OUT, kernel.MOVED_IN, kernel.PROMOTIONS, kernel.DEMOTIONS]
        ]
        return Moves(self._updates, *tally.tolist())

    def hot(self) -> Groups:
        """The hot groups, in order of their stabbing points."""
        n = int(self._hot.tally[kernel.N_HOT])
        order = np.argsort(self._hot.hi[:n], kind="stable")
        hot = self._hot
        return Groups(hot.groups[order], hot.hi[order], hot.sizes[order])

    def scattered(self) -> Groups:
        """The groups that are not hot, in order of their stabbing points."""
        return super().groups()

    def groups(self) -> Groups:
        return self.hot().and_also(self.scattered())

    def around(self, x: int) -> tuple[int | None, int | None]:
        below, above = super().around(x)
        hot = self.hot()
        place = int(np.searchsorted(hot.point, plain([x], np.int64)[0], "right"))
        points = self.state.points
        if place > 0 and (below is None or points[below] < hot.point[place - 1]):
            below = int(hot.group[place - 1])
        if place < len(hot.group) and (above is None or points[above] >= hot.point[place]):
            above = int(hot.group[place])
        return below, above

    def _build(self, ids: I32, lo: I64, hi: I64) -> None:
        super()._build(ids, lo, hi)
        self._hot, self._updates = self._no_hot(), len(ids)
        kernel.settle(self.state, self._hot, 0, self.alpha, self.epsilon)
        self._hot.tally[kernel.MOVED_OUT :] = 0
        self.state.counts[N_CHANGES] = self.state.counts[MISSED] = 0

    def _make_room(self) -> None:
        super()._make_room()
        room, hot = len(self.state.kinds), self._hot
        self._hot = hot._replace(
            groups=with_room(hot.groups, room),
            lo=with_room(hot.lo, room),
            hi=with_room(hot.hi, room),
            sizes=with_room(hot.sizes, room),
        )

    def _some(self, ids: I32, adds: bool, done: int) -> int:
        hot, alpha = self._hot, self.alpha
        now = kernel.update_many(self.state, hot, ids, adds, done, alpha, self.epsilon)
        self._updates += now - done
        return now
