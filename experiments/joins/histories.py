"""Intervals that come and go, and how many points they need, in plain Python and not by the library.

An id is given anew after its interval has gone. All ends are whole numbers, and both belong to it.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations_with_replacement
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from limen.partitions.partition import Groups, Partition

Array = npt.NDArray[Any]
Interval = tuple[int, int]


class Update(NamedTuple):
    id: int
    lo: int
    hi: int
    adds: bool


# -- histories ------------------------------------------------------------------------------------


def history(kind: str, updates: int, size: int, seed: int = 1) -> list[Update]:
    """So many updates of at most `size` intervals, none to begin with."""
    return KINDS[kind](updates, size, np.random.default_rng([seed, size, len(kind)]))


def _churn(
    updates: int, size: int, rng: np.random.Generator, draw: Callable[[int], Interval]
) -> list[Update]:
    """Inserts and deletes by chance; the more intervals are in, the more is deleted."""
    found: list[Update] = []
    free, live = list(range(size)), dict[int, Interval]()
    order: list[int] = []
    for chance in rng.random(updates).tolist():
        if chance >= 0.8 * len(order) / size:
            one = free.pop(int(rng.integers(len(free))))
            live[one] = draw(one)
            order.append(one)
            found.append(Update(one, *live[one], True))
        else:
            place = int(rng.integers(len(order)))
            order[place], order[-1] = order[-1], order[place]
            one = order.pop()
            found.append(Update(one, *live.pop(one), False))
            free.append(one)
    return found


def _random(updates: int, size: int, rng: np.random.Generator) -> list[Update]:
    def draw(_: int) -> Interval:
        lo = int(rng.integers(10 * size))
        return lo, lo + int(rng.integers(80))

    return _churn(updates, size, rng, draw)


def _disjoint(updates: int, size: int, rng: np.random.Generator) -> list[Update]:
    return _churn(updates, size, rng, lambda one: (10 * one, 10 * one + 5))


def _nested(updates: int, size: int, rng: np.random.Generator) -> list[Update]:
    """Within each other, in five places: all of a place contain its middle."""

    def draw(one: int) -> Interval:
        middle = 4 * size * int(rng.integers(5))
        return middle - one, middle + one

    return _churn(updates, size, rng, draw)


def _equal(updates: int, size: int, rng: np.random.Generator) -> list[Update]:
    return _churn(updates, size, rng, lambda _: (7, 9))


def _touching(updates: int, size: int, rng: np.random.Generator) -> list[Update]:
    """Ends that meet in a point, or miss each other by one."""

    def draw(_: int) -> Interval:
        lo = 10 * int(rng.integers(size // 2)) + int(rng.integers(2))
        return lo, max(lo, 10 * (lo // 10 + int(rng.integers(1, 3))) - int(rng.integers(2)))

    return _churn(updates, size, rng, draw)


def _alternation(updates: int, size: int, rng: np.random.Generator) -> list[Update]:
    """A chain in which each overlaps the two before it; with another at its beginning all groups are
    shifted by one, and this one comes and goes. So does, in between, one of the chain."""
    chain = [(5 * i, 5 * i + 12) for i in range(size - 1)]
    first = Update(size - 1, -10, 6, True)
    found = [Update(i, *chain[i], True) for i in range(len(chain))][:updates]
    while len(found) < updates:
        link = int(rng.integers(len(chain)))
        one = Update(link, *chain[link], False)
        found += [first, one, first._replace(adds=False), one._replace(adds=True)]
    return found[:updates]


def _mass_deletion(updates: int, size: int, rng: np.random.Generator) -> list[Update]:
    """All come, then all go: from the left, by right ends (those that end at a group's point go first),
    from the right, by chance."""
    found: list[Update] = []
    turn = 0
    while len(found) < updates:
        lo = rng.integers(10 * size, size=size)
        hi = lo + rng.integers(80, size=size)
        come = [
            Update(i, a, b, True)
            for i, (a, b) in enumerate(zip(lo.tolist(), hi.tolist(), strict=True))
        ]
        go = [come[i]._replace(adds=False) for i in rng.permutation(size).tolist()]
        by: list[Callable[[Update], int]] = [lambda u: u.lo, lambda u: u.hi, lambda u: -u.lo]
        if turn % 4 < 3:
            go.sort(key=by[turn % 4])
        found += come + go
        turn += 1
    return found[:updates]


KINDS: dict[str, Callable[[int, int, np.random.Generator], list[Update]]] = {
    "random": _random,
    "disjoint": _disjoint,
    "nested": _nested,
    "equal": _equal,
    "touching": _touching,
    "alternation": _alternation,
    "mass deletion": _mass_deletion,
}


# -- by definition --------------------------------------------------------------------------------


def greedy(intervals: Sequence[Interval]) -> tuple[list[int], list[int]]:
    """Of intervals in order of left ends: the group of each, and the groups' points."""
    groups: list[int] = []
    points: list[int] = []
    for lo, hi in intervals:
        if not points or lo > points[-1]:
            points.append(hi)
        points[-1] = min(points[-1], hi)
        groups.append(len(points) - 1)
    return groups, points


class Present:
    """The intervals that are in now."""

    def __init__(self, size: int) -> None:
        self.lo, self.hi = np.zeros(size, np.int64), np.zeros(size, np.int64)
        self.is_in = np.zeros(size, np.bool_)
        self._in_order: list[tuple[int, int, int]] = []

    def __len__(self) -> int:
        return len(self._in_order)

    def take(self, update: Update) -> None:
        one = (update.lo, update.hi, update.id)
        if update.adds:
            insort(self._in_order, one)
        else:
            del self._in_order[bisect_left(self._in_order, one)]
        self.lo[update.id], self.hi[update.id] = update.lo, update.hi
        self.is_in[update.id] = update.adds

    @property
    def ids(self) -> Array:
        return np.flatnonzero(self.is_in)

    def without(self, these: Array) -> Present:
        """The others, by id; only to be counted."""
        found = Present(0)
        found._in_order = [one for one in self._in_order if not these[one[2]]]
        return found

    def tau(self) -> int:
        """How many points are needed to stab them all."""
        found, point = 0, 0
        for lo, hi, _ in self._in_order:
            if not found or lo > point:
                found, point = found + 1, hi
            elif hi < point:
                point = hi
        return found

    def greedy(self) -> tuple[Array, list[int]]:
        """By id, the number of its group in the greedy partition; and the groups' points."""
        groups, points = greedy([(lo, hi) for lo, hi, _ in self._in_order])
        found = np.full(len(self.lo), -1)
        found[[one for _, _, one in self._in_order]] = groups
        return found, points


def apply(partition: Partition, update: Update) -> None:
    if update.adds:
        partition.insert([update.id], [update.lo], [update.hi])
    else:
        partition.delete([update.id])


def places(present: Present, groups: Groups, of: Array) -> Array | None:
    """By interval, the place of its group in the list of groups; None if it is not a stabbing partition.

    It is one if each interval is in one group of the list and contains its point, and each group has as
    many as the list says, one or more.
    """
    ids = present.ids
    table = np.full(int(groups.group.max(initial=-1)) + 2, -1)
    table[groups.group] = np.arange(len(groups.group))
    if len(of) != len(ids) or (of < 0).any() or (of >= len(table)).any():
        return None
    found = table[of]
    sizes = np.bincount(found[found >= 0], minlength=len(groups.group))
    if (found < 0).any() or not np.array_equal(sizes, groups.size) or (sizes == 0).any():
        return None
    points = groups.point[found]
    stabbed = (present.lo[ids] <= points) & (points <= present.hi[ids])
    return found if stabbed.all() else None


def every_multiset(points: int, most: int) -> Iterator[tuple[Interval, ...]]:
    """Of 1 to `most` intervals with ends among so many points."""
    spans = [(lo, hi) for lo in range(points) for hi in range(lo, points)]
    for n in range(1, most + 1):
        yield from combinations_with_replacement(spans, n)
