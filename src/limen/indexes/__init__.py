"""Indexes over the ranges of standing queries; `create(name)` makes one."""

from limen.indexes.protocol import Hits, IntervalIndex
from limen.indexes.registry import INDEXES, create

__all__ = ["INDEXES", "Hits", "IntervalIndex", "create"]
