"""Every index by name: the contract suite and the benchmarks run over this list."""

from __future__ import annotations

from limen.indexes.cei import CEI
from limen.indexes.protocol import IntervalIndex
from limen.indexes.sorted_scan import SortedScan

INDEXES: dict[str, type[CEI] | type[SortedScan]] = {i.name: i for i in (CEI, SortedScan)}


def create(name: str) -> IntervalIndex:
    """An empty index.

    >>> import numpy as np
    >>> index = create("cei")
    >>> index.build(np.array([0, 1]), np.array([40, 45]), np.array([50, 60]))
    >>> sorted(index.stab(50).tolist())
    [0, 1]
    """
    if name not in INDEXES:
        raise ValueError(f"no index named {name!r}; there are: {', '.join(sorted(INDEXES))}")
    return INDEXES[name]()
