"""Clusters in the ranges of queries: stabbing partitions, hotspots, interval histograms.

What is for use is here; the names in capitals are what a `Partition` tells its subscribers, by
`Changes.what` (they are explained in `kernels/refined.py`).
"""

from limen.kernels.refined import (
    CREATED,
    DEMOTED,
    DISSOLVED,
    GREW,
    MOVED,
    PROMOTED,
    REBUILT,
    RESET,
    SHRANK,
)
from limen.partitions.canonical import Canonical, canonical
from limen.partitions.histograms import Histogram, optima
from limen.partitions.hotspots import Hotspots, Moves
from limen.partitions.lazy import LazyPartition
from limen.partitions.partition import Changes, Groups, Partition
from limen.partitions.refined import RefinedPartition
from limen.partitions.ssi import StabbingSetIndex

__all__ = [
    "CREATED",
    "DEMOTED",
    "DISSOLVED",
    "GREW",
    "MOVED",
    "PROMOTED",
    "REBUILT",
    "RESET",
    "SHRANK",
    "Canonical",
    "Changes",
    "Groups",
    "Histogram",
    "Hotspots",
    "LazyPartition",
    "Moves",
    "Partition",
    "RefinedPartition",
    "StabbingSetIndex",
    "canonical",
    "optima",
]
