"""The interval libraries that Limen is measured against, each called the way it is fastest.

superintervals and NCLS take batches and report every hit; bioframe's overlap of arrays was the fastest
further library of those on PyPI that installed here (597 ns a point on the CEI paper's first workload,
against 1,824 for polars-bio and 7,091 for pandas' IntervalIndex). A rival returns what it returns:
superintervals a list of lists, the others arrays of pairs; nothing is converted.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .workloads import I64, Workload


def superintervals(load: Workload) -> tuple[Callable[[I64], object], Callable[[I64], object]]:
    """Reporting and counting."""
    from superintervals import IntervalMap

    index = IntervalMap.from_arrays(load.lo.astype(np.int32), load.hi.astype(np.int32))

    def report(xs: I64) -> object:
        points = xs.astype(np.int32)
        return index.search_idxs_batch(points, points)

    def count(xs: I64) -> object:
        points = xs.astype(np.int32)
        return index.count_batch(points, points)

    return report, count


def ncls(load: Workload) -> Callable[[I64], object]:
    from ncls import NCLS

    index = NCLS(load.lo, load.hi + 1, np.arange(load.n))
    return lambda xs: index.all_overlaps_both(xs, xs + 1, np.arange(len(xs)))


def bioframe(load: Workload) -> Callable[[I64], object]:
    from bioframe.core.arrops import overlap_intervals

    return lambda xs: overlap_intervals(xs, xs + 1, load.lo, load.hi + 1)
