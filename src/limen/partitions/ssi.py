"""The stabbing set index (section 2.1): points in order, a structure of the user's own for each group.

The index is told by the partition of what happens to groups and does as little as follows from it: an
interval that comes or goes is added to or taken from one group's structure; a structure is made anew only
where a reconstruction changed who is in the group.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from limen.kernels.refined import CREATED, DISSOLVED, GREW, REBUILT, RESET, SHRANK
from limen.partitions.partition import Changes, Groups, Partition

I32 = npt.NDArray[np.int32]


class Structure(Protocol):
    """What is kept of a group's intervals."""

    def add(self, ids: I32) -> None: ...

    def remove(self, ids: I32) -> None: ...


S = TypeVar("S", bound=Structure)


class StabbingSetIndex(Generic[S]):
    """`make` gets the intervals of a group, in order of their left ends, and returns its structure.

    >>> from limen.partitions.refined import RefinedPartition
    >>> class Members:
    ...     def __init__(self, ids):
    ...         self.ids = set(ids.tolist())
    ...     def add(self, ids):
    ...         self.ids |= set(ids.tolist())
    ...     def remove(self, ids):
    ...         self.ids -= set(ids.tolist())
    >>> partition = RefinedPartition()
    >>> index = StabbingSetIndex(partition, Members)
    >>> partition.insert([1, 2, 3], [10, 15, 40], [20, 30, 50])
    >>> [(point, structure.ids) for point, structure in index.items()]
    [(20, {1, 2}), (50, {3})]
    """

    def __init__(self, partition: Partition, make: Callable[[I32], S]) -> None:
        self._partition, self._make = partition, make
        self._groups: Groups | None = None
        self._structures: dict[int, S] = {}
        self.made = 0  # structures made so far, from the members of a group
        self._in_step = True
        self._make_all()
        partition.subscribe(self._take_note)

    def __len__(self) -> int:
        return len(self._structures)

    def close(self) -> None:
        """Follow the partition no more."""
        self._partition.unsubscribe(self._take_note)

    @property
    def groups(self) -> Groups:
        """In order of their points."""
        if self._groups is None:
            self._groups = self._partition.groups()
        return self._groups

    def structure(self, group: int) -> S:
        return self._structures[group]

    def items(self) -> Iterator[tuple[int, S]]:
        """Points in order, each with its group's structure."""
        groups = self.groups
        for group, point in zip(groups.group.tolist(), groups.point.tolist(), strict=True):
            yield point, self._structures[group]

    def around(self, x: int) -> tuple[int | None, int | None]:
        """The groups of the last point at or below x and of the first point above it."""
        groups = self.groups
        place = int(np.searchsorted(groups.point, x, side="right"))
        below = int(groups.group[place - 1]) if place > 0 else None
        above = int(groups.group[place]) if place < len(groups.group) else None
        return below, above

    # -- in step with the partition --------------------------------------------------------------

    def _take_note(self, changes: Changes) -> None:
        """If a structure raises, all are made anew the next time."""
        in_step, self._in_step = self._in_step, False
        self._groups = None
        if not in_step or (changes.what == RESET).any():
            self._make_all()
        else:
            self._follow(changes)
        self._in_step = True

    def _follow(self, changes: Changes) -> None:
        what = changes.what
        anew = np.isin(what, [CREATED, DISSOLVED, REBUILT])
        others = np.unique(changes.group[anew])
        now = self._partition.has_groups(others)
        for group in others[~now].tolist():
            self._structures.pop(group, None)
        for group in others[now].tolist():
            self._make_one(group)
        rest = np.isin(what, [GREW, SHRANK]) & ~np.isin(changes.group, others)
        for group, rows in _by_group(changes.group, np.flatnonzero(rest)):
            structure, came = self._structures[group], what[rows] == GREW
            ids = changes.interval[rows].astype(np.int32)
            if came.any():
                structure.add(ids[came])
            if not came.all():
                structure.remove(ids[~came])

    def _make_all(self) -> None:
        self._structures.clear()
        for group in self.groups.group.tolist():
            self._make_one(group)

    def _make_one(self, group: int) -> None:
        self._structures[group] = self._make(self._partition.members(group))
        self.made += 1


def _by_group(
    groups: npt.NDArray[np.int64], rows: npt.NDArray[Any]
) -> Iterator[tuple[int, npt.NDArray[Any]]]:
    """Each group among these rows, with its rows in order."""
    rows = rows[np.argsort(groups[rows], kind="stable")]
    found, begins = np.unique(groups[rows], return_index=True)
    yield from zip(found.tolist(), np.split(rows, begins[1:]), strict=False)
