"""The stabbing set index (section 2.1): points in order, a structure of the user's own for each group.

The index is told by the partition of what happens to groups and does as little as follows from it: an
interval that comes or goes is added to or taken from one group's structure; a structure is made anew only
where a reconstruction changed who is in the group.

A structure that is cut at its group's point has a method `moved(point)` besides. It is called once after
the structure is made, and whenever the point is another: after intervals that go have gone, and before
those that come. So at all times the structure's intervals contain the point that it was told last.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from numbers import Integral
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from limen.indexes.protocol import plain
from limen.kernels.refined import CREATED, DISSOLVED, GREW, MOVED, REBUILT, RESET, SHRANK
from limen.partitions.partition import Changes, Groups, Partition

I32 = npt.NDArray[np.int32]


class Structure(Protocol):
    """What is kept of a group's intervals; with `moved(self, point: int)`, if it is cut at the point."""

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
        if not isinstance(partition, Partition):
            raise ValueError(f"an index is over the groups of a partition, not of {partition!r}")
        if not callable(make):
            raise ValueError(f"make is called with the intervals of a group; {make!r} cannot be")
        self._partition, self._make = partition, make
        self._groups: Groups | None = None
        self._structures: dict[int, S] = {}
        self.made = 0  # structures made so far
        self._follows = True
        self._seen = -1  # how much the partition had told when all this was in step with it
        self._make_all()
        partition.subscribe(self._take_note)

    def __len__(self) -> int:
        return len(self._up_to_date())

    def close(self) -> None:
        """Follow the partition no more: it stays as it is, whatever becomes of the partition."""
        if self._follows:
            self._up_to_date()
            self._groups = self.groups
            self._partition.unsubscribe(self._take_note)
            self._follows = False

    @property
    def groups(self) -> Groups:
        """In order of their points."""
        self._up_to_date()
        if self._groups is None:
            self._groups = self._partition.groups()
            for column in self._groups:
                column.flags.writeable = False
        return self._groups

    def structure(self, group: int) -> S:
        structures = self._up_to_date()
        is_number = isinstance(group, Integral) and not isinstance(group, bool)
        if not is_number or group not in structures:
            raise ValueError(f"there is no group {group!r}")
        return structures[group]

    def items(self) -> Iterator[tuple[int, S]]:
        """Points in order, each with its group's structure."""
        groups, structures, seen = self.groups, self._up_to_date(), self._seen
        for group, point in zip(groups.group.tolist(), groups.point.tolist(), strict=True):
            if self._follows and self._partition.told != seen:
                raise RuntimeError("the partition has changed since the first of these items")
            yield point, structures[group]

    def around(self, x: int) -> tuple[int | None, int | None]:
        """The groups of the last point at or below x and of the first point above it.

        Cost: a search in the partition, which does not list the groups.
        """
        if self._follows:
            self._up_to_date()
            return self._partition.around(x)
        groups = self.groups
        place = int(np.searchsorted(groups.point, plain([x], np.int64)[0], side="right"))
        below = int(groups.group[place - 1]) if place > 0 else None
        above = int(groups.group[place]) if place < len(groups.group) else None
        return below, above

    # -- in step with the partition --------------------------------------------------------------

    def _up_to_date(self) -> dict[int, S]:
        """By group its structure; all are made anew if one has raised at the last change, or if that
        has not been told yet, since who is asking was told before."""
        if self._follows and self._seen != self._partition.told:
            self._make_all()
        return self._structures

    def _take_note(self, changes: Changes) -> None:
        """If a structure raises, all are made anew when the index is asked or told the next time."""
        now = self._partition.told
        if self._seen == now:
            return
        if self._seen != now - 1 or (changes.what == RESET).any():
            self._make_all()
            return
        self._seen, self._groups = -1, None
        self._follow(changes)
        self._seen = now

    def _follow(self, changes: Changes) -> None:
        """A group that was created for an interval begins with that and grows as it is told."""
        what, rows = changes.what, np.arange(len(changes.what))
        anew = np.isin(what, [CREATED, DISSOLVED, REBUILT])
        others, last = np.unique(changes.group[anew][::-1], return_index=True)
        last = rows[anew][::-1][last]  # the row that counts of each
        now = self._partition.has_groups(others)
        alone = now & (what[last] == CREATED) & (changes.interval[last] >= 0)
        for group in others[~now].tolist():
            self._structures.pop(group, None)
        for group, row in zip(others[alone].tolist(), last[alone].tolist(), strict=True):
            self._put(group, changes.interval[row : row + 1].astype(np.int32))
        for group in others[now & ~alone].tolist():
            self._put(group, self._partition.members(group))
        known = np.full(len(what), -1)  # by row, up to which row its group's structure has all
        if len(others):
            place = np.searchsorted(others, changes.group) % len(others)
            mine = others[place] == changes.group
            known[mine] = np.where(alone, last, len(what))[place[mine]]
        rest = np.flatnonzero(np.isin(what, [GREW, SHRANK, MOVED]) & (rows > known))
        for group, some in _by_group(changes.group, rest):
            structure, ids = self._structures[group], changes.interval[some].astype(np.int32)
            came, went, moved = (what[some] == one for one in (GREW, SHRANK, MOVED))
            if went.any():
                structure.remove(ids[went])
            if moved.any():
                self._say_point(group)
            if came.any():
                structure.add(ids[came])

    def _make_all(self) -> None:
        self._seen, self._groups, now = -1, None, self._partition.told
        self._structures.clear()
        for group, members in self._partition.all_members():
            self._put(group, members)
            if self._partition.told != now:
                raise RuntimeError("a partition cannot be changed by what makes the structures")
        self._seen = now

    def _put(self, group: int, members: I32) -> None:
        structure = self._make(members)
        if not all(callable(getattr(structure, name, None)) for name in ("add", "remove")):
            raise ValueError(f"make returns a structure with add and remove; {structure!r} is none")
        self._structures[group] = structure
        self.made += 1
        self._say_point(group)

    def _say_point(self, group: int) -> None:
        """To a structure that wants to know."""
        moved = getattr(self._structures[group], "moved", None)
        if moved is not None:
            moved(int(self._partition.points(np.array([group]))[0]))


def _by_group(
    groups: npt.NDArray[np.int64], rows: npt.NDArray[Any]
) -> Iterator[tuple[int, npt.NDArray[Any]]]:
    """Each group among these rows, with its rows in order."""
    rows = rows[np.argsort(groups[rows], kind="stable")]
    found, begins = np.unique(groups[rows], return_index=True)
    yield from zip(found.tolist(), np.split(rows, begins[1:]), strict=False)
