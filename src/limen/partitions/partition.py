"""What all dynamic partitions have in common: who is in, and who is told of what happens to groups."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from math import inf, nan
from numbers import Integral, Real
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from limen.indexes.protocol import plain, refuse_twice, with_room
from limen.kernels.refined import RESET
from limen.partitions.canonical import refuse_upside_down

I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]


class Changes(NamedTuple):
    """What has happened to groups, in order: the update (a row of the batch), what it is
    (`kernels/refined.py`), the group, and the interval that came or went, -1 where it is not one."""

    update: I64
    what: I64
    group: I64
    interval: I64


class Groups(NamedTuple):
    """In order of their stabbing points."""

    group: I32
    point: I64
    size: I64

    def and_also(self, others: Groups) -> Groups:
        group = np.concatenate([self.group, others.group])
        point = np.concatenate([self.point, others.point])
        size = np.concatenate([self.size, others.size])
        order = np.argsort(point, kind="stable")
        return Groups(group[order], point[order], size[order])


Subscriber = Callable[[Changes], None]


class Partition(ABC):
    """Intervals [lo, hi] with numbers of their own, in groups that each have a common point.

    Memory is taken for all numbers up to the greatest, so they should be small and given again. Groups
    have numbers too, which are given anew after a group has gone.
    """

    def __init__(self, epsilon: float = 1.0) -> None:
        if not 0 < number(epsilon) < inf:
            raise ValueError(f"epsilon is a number above 0, not {epsilon!r}")
        self.epsilon = number(epsilon)
        self.reconstructions = 0
        self._live = np.zeros(0, np.bool_)
        self._subscribers: list[Subscriber] = []
        self._updating = False
        self._failed: Exception | None = None
        self.told = 0  # batches, or parts of them, that groups have changed in

    @abstractmethod
    def __len__(self) -> int:
        """How many intervals are in."""

    @property
    @abstractmethod
    def stabbing_number(self) -> int:
        """How many groups there are."""

    def ids(self) -> I32:
        """Those that are in."""
        return np.flatnonzero(self._live).astype(np.int32)

    def has(self, ids: npt.ArrayLike) -> npt.NDArray[np.bool_]:
        """Which of these are in."""
        ids = plain(ids, np.int64)
        found: npt.NDArray[np.bool_] = (ids >= 0) & (ids < len(self._live))
        found[found] = self._live[ids[found]]
        return found

    @abstractmethod
    def groups(self) -> Groups: ...

    def members(self, group: int) -> I32:
        """The intervals of a group, in order of their left ends."""
        return self._members(self._group(group))

    @abstractmethod
    def _members(self, group: int) -> I32: ...

    def all_members(self) -> Iterator[tuple[int, I32]]:
        """Every group with its members, in order of the points."""
        for group in self.groups().group.tolist():
            yield group, self._members(group)

    @abstractmethod
    def around(self, x: int) -> tuple[int | None, int | None]:
        """The groups of the last point at or below x and of the first point above it."""

    def points(self, groups: npt.ArrayLike) -> I64:
        """The points of groups that there are."""
        return self._points(self._all_groups(groups))

    @abstractmethod
    def _points(self, groups: I64) -> I64: ...

    def has_groups(self, groups: npt.ArrayLike) -> npt.NDArray[np.bool_]:
        """Which of these are groups now."""
        return self._has_groups(plain(groups, np.int64))

    @abstractmethod
    def _has_groups(self, groups: I64) -> npt.NDArray[np.bool_]: ...

    @abstractmethod
    def group_of(self, ids: npt.ArrayLike) -> I32: ...

    def subscribe(self, subscriber: Subscriber) -> None:
        """Tell of what happens to groups, batch by batch (or in parts of one) after it has happened.

        A subscriber may ask the partition but not change it. If one raises, the batch is done and all
        others are told before the exception comes out of the call that made the change. If it is
        interrupted, as by Ctrl-C, all others are told of what is done, and what is left of the batch is
        not done.
        """
        if not callable(subscriber):
            raise ValueError(f"a subscriber is called with the changes; {subscriber!r} cannot be")
        self._subscribers.append(subscriber)

    def unsubscribe(self, subscriber: Subscriber) -> None:
        if subscriber not in self._subscribers:
            raise ValueError(f"{subscriber!r} is not subscribed to this partition")
        self._subscribers.remove(subscriber)

    # -- updates ---------------------------------------------------------------------------------

    def build(self, ids: npt.ArrayLike, lo: npt.ArrayLike, hi: npt.ArrayLike) -> None:
        """Hold these intervals and no others, in the canonical partition."""
        numbers, first, last = self._checked(ids, lo, hi, among=np.zeros(0, np.bool_))
        self._refuse_within()
        try:
            live = np.zeros(int(numbers.max(initial=-1)) + 1, np.bool_)
            self._build(numbers, first, last)
        except MemoryError:
            raise MemoryError(_too_large(numbers)) from None
        self._live = live
        self._live[numbers] = True
        self.reconstructions = 0
        self._tell_all()
        self._raise_what_failed()

    def insert(self, ids: npt.ArrayLike, lo: npt.ArrayLike, hi: npt.ArrayLike) -> None:
        numbers, first, last = self._checked(ids, lo, hi, among=self._live)
        self._refuse_within()
        try:
            live = with_room(self._live, int(numbers.max(initial=-1)) + 1)
            self._set(numbers, first, last)
        except MemoryError:
            raise MemoryError(_too_large(numbers)) from None
        self._live = live
        self._update(numbers, adds=True)

    def delete(self, ids: npt.ArrayLike) -> None:
        numbers = self._known(ids)
        self._refuse_within()
        self._update(numbers, adds=False)

    @abstractmethod
    def _build(self, ids: I32, lo: I64, hi: I64) -> None: ...

    @abstractmethod
    def _set(self, ids: I32, lo: I64, hi: I64) -> None:
        """Make room for intervals of these numbers, and note their ends."""

    def _update(self, ids: I32, adds: bool) -> None:
        done = 0
        while done < len(ids):
            begin, done = done, self._some(ids, adds, done)
            self._live[ids[begin:done]] = adds
            self._settle()
        self._raise_what_failed()

    @abstractmethod
    def _some(self, ids: I32, adds: bool, done: int) -> int:
        """Insert or delete the intervals from ids[done] on; returns how many are done."""

    @abstractmethod
    def _settle(self) -> None:
        """Tell of what has happened, and make room for more."""

    def _tell(self, changes: I64) -> None:
        if not len(changes):
            return
        self.told += 1
        columns = changes.T.copy()
        columns.flags.writeable = False
        told, interrupted = Changes(*columns), None
        self._updating = True
        try:
            for subscriber in list(self._subscribers):
                try:
                    subscriber(told)
                except Exception as error:
                    self._failed = self._failed or error
                except BaseException as error:
                    interrupted = interrupted or error
        finally:
            self._updating = False
        if interrupted is not None:
            self._failed = None
            raise interrupted

    def _raise_what_failed(self) -> None:
        failed, self._failed = self._failed, None
        if failed is not None:
            raise failed

    def _refuse_within(self) -> None:
        if self._updating:
            raise RuntimeError("a partition cannot be changed by those who are told of its changes")

    def _tell_all(self) -> None:
        self._tell(np.array([[-1, RESET, -1, -1]]))

    # -- bad input -------------------------------------------------------------------------------

    def _group(self, group: int) -> int:
        """The number of a group that there is."""
        if isinstance(group, Integral) and not isinstance(group, bool):
            found = int(group)
            if 0 <= found < 2**31 and self.has_groups(np.array([found]))[0]:
                return found
            raise ValueError(f"there is no group {found}")
        raise ValueError(f"there is no group {group!r}")

    def _all_groups(self, groups: npt.ArrayLike) -> I64:
        """Numbers of groups that there are."""
        found: I64 = plain(groups, np.int64)
        there = self._has_groups(found)
        if not there.all():
            raise ValueError(f"there is no group {found[there.argmin()]}")
        return found

    def _checked(
        self, ids: npt.ArrayLike, lo: npt.ArrayLike, hi: npt.ArrayLike, among: npt.NDArray[np.bool_]
    ) -> tuple[I32, I64, I64]:
        numbers = plain(ids, np.int32)
        first, last = plain(lo, np.int64), plain(hi, np.int64)
        if len(numbers) != len(first):
            raise ValueError(f"ids and lo differ in length: {len(numbers)}, {len(first)}")
        refuse_upside_down(first, last)
        if len(numbers) and numbers.min() < 0:
            raise ValueError(f"id {numbers.min()} is negative")
        known = numbers[numbers < len(among)]
        if among[known].any():
            raise ValueError(f"id {known[among[known].argmax()]} is already in the partition")
        refuse_twice(numbers)
        return numbers, first, last

    def _known(self, ids: npt.ArrayLike) -> I32:
        numbers = plain(ids, np.int32)
        bad = ~self.has(numbers)
        if bad.any():
            raise ValueError(f"id {numbers[bad.argmax()]} is not in the partition")
        refuse_twice(numbers)
        return numbers


def number(given: object) -> float:
    """A number as a float; NaN, which is in no range, for anything else."""
    if not isinstance(given, Real) or isinstance(given, bool):
        return nan
    try:
        return float(given)
    except OverflowError:
        return inf


def _too_large(ids: I32) -> str:
    return (
        f"there is no memory for the number {ids.max()}: it is taken for all numbers up to the "
        "greatest, so give small ones, and those again that have gone"
    )
