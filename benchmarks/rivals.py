"""The interval libraries that Limen is measured against, each called the way it is fastest.

superintervals and NCLS take batches and report every hit; bioframe's overlap of arrays was the fastest
further library of those on PyPI that installed here (597 ns a point on the CEI paper's first workload,
against 1,824 for polars-bio and 7,091 for pandas' IntervalIndex). A rival returns what it returns:
superintervals a list of lists, the others arrays of pairs; nothing is converted. Each function gives
calls without arguments, for points that are brought into the rival's form beforehand.

`Tree` is GEOS's STRtree, by shapely. For rectangles and points its boxes are the answer, so no predicate
is asked for, which is fastest; pairs of point and rectangle are kept from one batch to the next as sorted
integers, so that a batch needs one search and two differences.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .workloads import I64, Workload

Call = Callable[[], Any]


def superintervals(load: Workload, xs: I64) -> tuple[Call, Call]:
    """Reporting and counting."""
    from superintervals import IntervalMap

    index = IntervalMap.from_arrays(load.lo.astype(np.int32), load.hi.astype(np.int32))
    points = xs.astype(np.int32)
    return lambda: index.search_idxs_batch(points, points), lambda: index.count_batch(
        points, points
    )


def ncls(load: Workload, xs: I64) -> Call:
    from ncls import NCLS

    index = NCLS(load.lo, load.hi + 1, np.arange(load.n))
    ends, numbers = xs + 1, np.arange(len(xs))
    return lambda: index.all_overlaps_both(xs, ends, numbers)


def bioframe(load: Workload, xs: I64) -> Call:
    from bioframe.core.arrops import overlap_intervals

    point_ends, query_ends = xs + 1, load.hi + 1
    return lambda: overlap_intervals(xs, point_ends, load.lo, query_ends)


class Tree:
    """Rectangles with both ends included; whose turn it is to move, all points at once."""

    def __init__(self, lo: I64, hi: I64, capacity: int = 10) -> None:
        import shapely

        self._n = len(lo)
        self._tree = shapely.STRtree(shapely.box(lo[:, 0], lo[:, 1], hi[:, 0], hi[:, 1]), capacity)
        self._before = np.empty(0, np.int64)

    @staticmethod
    def points(values: I64) -> Any:
        import shapely

        return shapely.points(values)

    def move(self, points: Any) -> tuple[I64, I64]:
        """Pairs entered and left, as point * rectangles + rectangle."""
        rows, found = self._tree.query(points)
        now = rows * np.int64(self._n) + found
        now.sort()
        before, self._before = self._before, now
        return (
            np.setdiff1d(now, before, assume_unique=True),
            np.setdiff1d(before, now, assume_unique=True),
        )
