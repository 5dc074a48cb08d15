"""The canonical stabbing partition (section 2.1): as few groups as can be, each with a common point."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from limen.indexes.protocol import plain
from limen.kernels.stabbing import greedy

I64 = npt.NDArray[np.int64]


class Canonical(NamedTuple):
    """Group g has the intervals order[starts[g]:starts[g + 1]], all of which contain points[g]."""

    order: I64
    starts: I64
    points: I64

    def __len__(self) -> int:
        return len(self.points)

    @property
    def sizes(self) -> I64:
        return np.diff(self.starts)

    def groups(self) -> I64:
        """By interval, its group."""
        found = np.empty(len(self.order), np.int64)
        found[self.order] = np.repeat(np.arange(len(self.points)), self.sizes)
        return found


def canonical(lo: npt.ArrayLike, hi: npt.ArrayLike) -> Canonical:
    """Partition the intervals [lo, hi]; the groups are in order of their points.

    >>> found = canonical([1, 2, 8, 3], [5, 9, 9, 4])
    >>> found.points.tolist(), found.groups().tolist()
    ([4, 9], [0, 0, 1, 0])
    """
    first, last = plain(lo, np.int64), plain(hi, np.int64)
    refuse_other_lengths(first, last)
    order = np.argsort(first)
    starts, points = greedy(order, first, last)
    if not len(starts):
        refuse_upside_down(first, last)
    return Canonical(order, starts, points)


def refuse_other_lengths(lo: I64, hi: I64) -> None:
    if len(lo) != len(hi):
        raise ValueError(f"lo and hi differ in length: {len(lo)}, {len(hi)}")


def refuse_upside_down(lo: I64, hi: I64) -> None:
    refuse_other_lengths(lo, hi)
    if (lo > hi).any():
        row = int((lo > hi).argmax())
        raise ValueError(f"interval {row}: lo {lo[row]} is above hi {hi[row]}")
