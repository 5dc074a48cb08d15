"""What a partition should be, in plain Python; who is told of changes alone; and histories."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable
from fractions import Fraction
from itertools import pairwise
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st

from limen.kernels import refined as kinds
from limen.partitions.hotspots import Hotspots
from limen.partitions.lazy import LazyPartition
from limen.partitions.partition import Changes, Groups, Partition
from limen.partitions.refined import RefinedPartition
from limen.testing.strategies import INT64, ordinal_ranges

Ends = dict[int, tuple[int, int]]
Step = tuple[str, Ends]  # insert, delete or build; for deletion the numbers count only
Update = tuple[int, tuple[int, int] | None]  # a number, and its ends if it comes


def greedy(ends: Ends) -> list[tuple[int, set[int]]]:
    """Lemma 1: points and groups from left to right."""
    found: list[tuple[int, set[int]]] = []
    for v in sorted(ends, key=lambda v: ends[v][0]):
        lo, hi = ends[v]
        if found and lo <= found[-1][0]:
            point, members = found[-1]
            found[-1] = (min(point, hi), members | {v})
        else:
            found.append((hi, {v}))
    return found


def as_found(partition: Partition, groups: Groups | None = None) -> list[tuple[int, set[int]]]:
    """Points and members of all groups, or of these."""
    groups = partition.groups() if groups is None else groups
    return [
        (point, {*partition.members(group).tolist()})
        for group, point in zip(groups.group.tolist(), groups.point.tolist(), strict=True)
    ]


# -- what is always true -------------------------------------------------------------------------


def check(partition: Partition, inside: Ends) -> None:
    """It is a stabbing partition of these intervals, and not too large."""
    groups = partition.groups()
    points = groups.point.tolist()
    assert points == sorted(points)
    assert len(partition) == len(inside)
    assert partition.stabbing_number == len(points)
    where: dict[int, int] = {}
    for group, point, size in zip(*(column.tolist() for column in groups), strict=True):
        members = partition.members(group).tolist()
        assert len(members) == size > 0
        lefts = [inside[v][0] for v in members]
        assert lefts == sorted(lefts)
        for v in members:
            assert v not in where
            assert inside[v][0] <= point <= inside[v][1]
            where[v] = group
    assert where.keys() == inside.keys()
    assert partition.group_of(list(inside)).tolist() == [where[v] for v in inside]
    numbers = np.arange(-2, max(where.values(), default=0) + 80)
    known = partition.has_groups(numbers)
    assert numbers[known].tolist() == sorted(groups.group.tolist())
    if isinstance(partition, RefinedPartition):
        check_trees(partition, where.values(), inside)
    if isinstance(partition, Hotspots):
        check_hot(partition, inside)
    else:
        assert points == sorted(set(points))
        assert len(points) <= (1 + partition.epsilon) * len(greedy(inside))


def around(partition: Partition) -> None:
    """The groups next to every point, in the order of all groups."""
    groups = partition.groups()
    names, points = groups.group.tolist(), groups.point.tolist()
    for x in {0, *INT64, *points, *(p - 1 for p in points if p > INT64[0])}:
        place = bisect_right(points, x)
        below = names[place - 1] if place else None
        above = names[place] if place < len(points) else None
        assert partition.around(x) == (below, above)
    everyone = [(group, members.tolist()) for group, members in partition.all_members()]
    assert everyone == [(group, partition.members(group).tolist()) for group in names]


def check_trees(partition: RefinedPartition, groups: Iterable[int], inside: Ends) -> None:
    """Each is in order and balanced, and knows its common intersection."""
    state = partition.state

    def walk(v: int) -> tuple[list[int], int]:
        if v == -1:
            return [], 0
        row = state.nodes[v].tolist()
        (before, low), (after, high) = walk(row[4]), walk(row[5])
        found = [*before, v, *after]
        assert abs(low - high) <= 1
        assert tuple(row[:2]) == inside[v]
        assert row[2] == max(inside[w][0] for w in found)
        assert row[3] == min(inside[w][1] for w in found)
        assert row[6:] == [len(found), max(low, high) + 1]
        return found, max(low, high) + 1

    for group in set(groups):
        assert walk(int(state.roots[group]))[0] == partition.members(group).tolist()


def check_hot(partition: Hotspots, inside: Ends) -> None:
    """(I1), (I2); for (I3) see `Watched`."""
    n, alpha = len(inside), Fraction(str(partition.alpha))  # as it was said, 0.07 for one
    hot, scattered = partition.hot(), partition.scattered()
    both = hot.group.tolist() + scattered.group.tolist()
    assert sorted(both) == sorted(partition.groups().group.tolist())
    assert hot.point.tolist() == sorted(hot.point.tolist())
    assert scattered.point.tolist() == sorted(scattered.point.tolist())
    assert all(size >= alpha / 2 * n for size in hot.size.tolist())
    assert all(size < alpha * n for size in scattered.size.tolist())
    assert len(hot.group) <= 2 / alpha
    others = {v for g in scattered.group.tolist() for v in partition.members(g).tolist()}
    bound = (1 + partition.epsilon) * len(greedy({v: inside[v] for v in others}))
    assert len(scattered.group) <= bound
    assert len(both) <= (1 + partition.epsilon) * len(greedy(inside)) + float(2 / alpha)


# -- told of changes alone -----------------------------------------------------------------------


class Mirror:
    """Looks at a group only when it is told that it has other members, and then after all is told."""

    def __init__(self, partition: Partition, ends: Ends) -> None:
        self.partition, self.ends = partition, ends
        self.told: list[list[tuple[int, int, int, int]]] = []
        self.resets = 0
        self.look_anew()
        partition.subscribe(self.take)

    def look_anew(self) -> None:
        partition = self.partition
        groups = partition.groups()
        self.groups: dict[int, set[int] | None] = dict.fromkeys(groups.group.tolist())
        points = zip(groups.group.tolist(), groups.point.tolist(), strict=True)
        self.points: dict[int, int | None] = dict(points)
        self.hot = {*partition.hot().group.tolist()} if isinstance(partition, Hotspots) else set()

    def take(self, changes: Changes) -> None:
        rows = list(zip(*(column.tolist() for column in changes), strict=True))
        self.told.append(rows)
        look = set()  # at these groups' points
        moved = set()
        for _, what, group, interval in rows:
            if what == kinds.RESET:
                assert rows == [(-1, kinds.RESET, -1, -1)]
                self.resets += 1
                self.look_anew()
            elif what == kinds.CREATED:
                assert group not in self.groups
                self.groups[group] = None if interval < 0 else {interval}
                look.add(group)
            elif what == kinds.GREW:
                members = self.groups[group]
                assert members is None or interval not in members
                self.groups[group] = members and members | {interval}
            elif what == kinds.SHRANK:
                members = self.groups[group]
                assert members is None or members > {interval}
                self.groups[group] = members and members - {interval}
            elif what == kinds.DISSOLVED:
                assert interval < 0 or self.groups[group] in (None, {interval})
                del self.groups[group], self.points[group]
                self.hot.discard(group)
                look.discard(group)
                moved.discard(group)
            elif what == kinds.REBUILT:
                assert group not in self.hot
                self.groups[group] = None
                look.add(group)
            elif what == kinds.MOVED:
                look.add(group)
                moved.add(group)
            elif what == kinds.PROMOTED:
                assert group not in self.hot
                self.hot.add(group)
            else:
                assert what == kinds.DEMOTED
                self.hot.remove(group)
            if what == kinds.CREATED:
                self.points[group] = None
        for group, members in self.groups.items():
            if members is None:
                self.groups[group] = {*self.partition.members(group).tolist()}
        found = self.partition.points(np.array(sorted(look), np.int64)).tolist()
        points = dict(zip(sorted(look), found, strict=True))
        if rows[0][0] == rows[-1][0]:  # of one update: no point has moved back
            assert all(points[group] != self.points[group] for group in moved)
        self.points |= points
        self.agree()

    def agree(self) -> None:
        partition = self.partition
        groups = partition.groups()
        now = dict(zip(groups.group.tolist(), groups.point.tolist(), strict=True))
        assert {g: {*partition.members(g).tolist()} for g in now} == self.groups
        assert partition.points(groups.group).tolist() == groups.point.tolist()
        assert self.points == now  # no other point has moved
        if isinstance(partition, Hotspots):
            assert {*partition.hot().group.tolist()} == self.hot
        inside = {v: self.ends[v] for members in self.groups.values() for v in members or ()}
        check(partition, inside)
        if isinstance(partition, LazyPartition) and self.told[-1][0][1] == kinds.RESET:
            assert as_found(partition) == greedy(inside)
        around(partition)


class Watched:
    """A partition, what should be in it, and a mirror."""

    def __init__(self, partition: Partition) -> None:
        self.partition = partition
        self.inside: Ends = {}
        self.ends: Ends = {}  # of those that are in, or on their way in or out
        self.mirror = Mirror(partition, self.ends)
        self.updates = self.shifted = self.promotions = self.demotions = self.compared = 0
        self.missed = False

    def do(self, kind: str, some: Ends) -> None:
        """Of a batch, what can be done: who is in does not come, who is not does not go."""
        partition, mirror = self.partition, self.mirror
        if kind == "insert":
            some = {v: ends for v, ends in some.items() if v not in self.inside}
        elif kind == "delete":
            some = {v: self.inside[v] for v in some if v in self.inside}
        before, rebuilt = self.scattered(), partition.reconstructions
        mirror.told.clear()
        self.ends.update(some)
        ids, lo, hi = list(some), [e[0] for e in some.values()], [e[1] for e in some.values()]
        if kind == "delete":
            partition.delete(ids)
            self.inside = {v: ends for v, ends in self.inside.items() if v not in some}
        else:
            getattr(partition, kind)(ids, lo, hi)
            self.inside = some if kind == "build" else self.inside | some
        check(partition, self.inside)
        assert {v for members in mirror.groups.values() for v in members or ()} == {*self.inside}
        if kind == "build":
            assert [rows[0][1] for rows in mirror.told] == [kinds.RESET]
            assert partition.reconstructions == 0
            assert as_found(partition) == greedy(self.inside)
            self.shifted = self.promotions = self.demotions = 0
            self.updates, self.missed = len(some), False
            if isinstance(partition, Hotspots):
                assert partition.moves == (len(some), 0, 0, 0, 0)
            return
        self.updates += len(some)
        rebuilt = partition.reconstructions - rebuilt
        self.check_told(kind == "insert", ids, rebuilt)
        if isinstance(partition, Hotspots):
            self.check_moves(before, len(some))
        if len(some) == 1 and rebuilt:
            self.check_greedy()

    def check_told(self, adds: bool, ids: list[int], rebuilt: int) -> None:
        """One row with the interval for each update, and then what followed from it."""
        if self.mirror.resets and any(rows[0][1] == kinds.RESET for rows in self.mirror.told):
            assert type(self.partition) is not RefinedPartition
            return
        rows = [row for rows in self.mirror.told for row in rows]
        assert [row[0] for row in rows] == sorted(row[0] for row in rows)
        first = {row[0]: i for i, row in reversed(list(enumerate(rows)))}
        assert [*first] == [*range(len(ids))][::-1]
        for update, i in first.items():
            assert rows[i][3] == ids[update]
            usual = (kinds.CREATED, kinds.GREW) if adds else (kinds.SHRANK, kinds.DISSOLVED)
            assert rows[i][1] in usual
        rest = [row for i, row in enumerate(rows) if i not in first.values()]
        assert all(row[3] == -1 for row in rest)
        if type(self.partition) is RefinedPartition:
            assert len({row[0] for row in rest}) <= rebuilt
        if isinstance(self.partition, LazyPartition):
            before = {after: row for row, after in pairwise(rows)}
            assert all(row[1] == kinds.MOVED for row in rest)
            assert all(before[row][1:3] == (kinds.GREW, row[2]) for row in rest)

    def check_greedy(self) -> None:
        """After a reconstruction; who has become hot in the same update leaves the others as they are."""
        partition, inside = self.partition, self.inside
        if not isinstance(partition, Hotspots):
            assert as_found(partition) == greedy(inside)
            return
        others = self.scattered()
        found = as_found(partition, partition.scattered())
        assert found == greedy({v: inside[v] for v in inside if others[v]})
        self.compared += 1

    def scattered(self) -> dict[int, bool]:
        """By interval, whether its group is not hot."""
        if not isinstance(self.partition, Hotspots):
            return {}
        hot = self.mirror.hot
        return {v: g not in hot for g, vs in self.mirror.groups.items() for v in vs or ()}

    def check_moves(self, before: dict[int, bool], updates: int) -> None:
        """(I3). A build counts as so many updates as it has intervals."""
        moves = self.partition.moves
        assert moves.updates == self.updates
        assert moves.out + moves.into <= 5 * moves.updates
        after = self.scattered()
        shifted = sum(before[v] != after[v] for v in before.keys() & after.keys())
        self.shifted += shifted
        assert moves.out + moves.into >= self.shifted
        whats = [row[1] for rows in self.mirror.told for row in rows]
        self.promotions += whats.count(kinds.PROMOTED)
        self.demotions += whats.count(kinds.DEMOTED)
        self.missed |= kinds.RESET in whats
        if not self.missed:
            assert (moves.promotions, moves.demotions) == (self.promotions, self.demotions)

    def replay(self, steps: Iterable[Step], apart: bool = False) -> None:
        for kind, some in steps:
            if apart and kind != "build":
                for v, ends in some.items():
                    self.do(kind, {v: ends})
            else:
                self.do(kind, some)


def same_with_large_numbers(make: Callable[[], Partition]) -> None:
    """Large numbers have nodes that do not fit the caches and are looked ahead for: told is the same."""
    for history in HISTORIES.values():
        for most in (7, 1000):
            near, far = make(), make()
            told: tuple[list[Changes], list[Changes]] = [], []
            near.subscribe(told[0].append)
            far.subscribe(told[1].append)
            for kind, some in batches(history, most):
                numbers, ends = np.array(list(some)), np.array(list(some.values()))
                for partition, first in ((near, 0), (far, kinds.FITS)):
                    if kind == "delete":
                        partition.delete(numbers + first)
                    else:
                        partition.insert(numbers + first, ends[:, 0], ends[:, 1])
            assert len(told[0]) == len(told[1]) > 0
            for ours, theirs in zip(*told, strict=True):
                interval = np.where(theirs.interval < 0, -1, theirs.interval - kinds.FITS)
                for one, other in zip(ours, theirs._replace(interval=interval), strict=True):
                    assert one.tolist() == other.tolist()
            assert as_found(near) == [
                (point, {v - kinds.FITS for v in members}) for point, members in as_found(far)
            ]


# -- bad input -----------------------------------------------------------------------------------

REFUSED: list[tuple[str, tuple[Any, ...], str]] = [
    ("insert", ([9, -3, -4], [1, 1, 1], [2, 2, 2]), "id -4 is negative"),
    ("insert", ([9, 8, 9], [1, 1, 1], [2, 2, 2]), "id 9 is given twice"),
    ("insert", ([9, 2, 1], [1, 1, 1], [2, 2, 2]), "id 2 is already in the partition"),
    ("insert", ([9, 8], [1, 7], [2, 6]), "interval 1: lo 7 is above hi 6"),
    ("insert", ([9, 8], [1, INT64[1]], [2, INT64[0]]), f"lo {INT64[1]} is above hi {INT64[0]}"),
    ("insert", ([9, 8], [1], [2]), "ids and lo differ in length: 2, 1"),
    ("insert", ([9], [1, 2], [2, 2]), "ids and lo differ in length: 1, 2"),
    ("insert", ([9, 8], [1, 1], [2]), "lo and hi differ in length: 2, 1"),
    ("insert", ([9.0], [1], [2]), "integers are needed, not float64"),
    ("insert", ([float("nan")], [1], [2]), "integers are needed, not float64"),
    ("insert", ([9], [float("nan")], [2]), "integers are needed, not float64"),
    ("insert", ([9], [1], [2.5]), "integers are needed, not float64"),
    ("insert", ([True], [1], [2]), "integers are needed, not bool"),
    ("insert", ([2**31], [1], [2]), "2147483648 does not fit int32"),
    ("insert", ([9], [2**63], [2**63]), "9223372036854775808 does not fit int64"),
    ("insert", ([[9]], [1], [2]), "an array of one dimension is needed, not of 2"),
    ("insert", (9, [1], [2]), "an array of one dimension is needed, not of 0"),
    ("build", ([-1], [1], [2]), "id -1 is negative"),
    ("build", ([5, 5], [1, 1], [2, 2]), "id 5 is given twice"),
    ("build", ([5, 6], [1, 3], [2, 2]), "interval 1: lo 3 is above hi 2"),
    ("build", ([5, 6], [1, 3], [2]), "lo and hi differ in length: 2, 1"),
    ("build", ([5.5], [1], [2]), "integers are needed, not float64"),
    ("delete", ([1, 9],), "id 9 is not in the partition"),
    ("delete", ([1, 10**6],), "id 1000000 is not in the partition"),
    ("delete", ([1, -1],), "id -1 is not in the partition"),
    ("delete", ([1, 2, 1],), "id 1 is given twice"),
    ("delete", ([1, 4],), "id 4 is not in the partition"),  # it was
    ("delete", ([1.0],), "integers are needed, not float64"),
    ("delete", ([float("nan")],), "integers are needed, not float64"),
    ("group_of", ([4],), "id 4 is not in the partition"),
    ("group_of", ([-1],), "id -1 is not in the partition"),
]
refusals = pytest.mark.parametrize(("call", "given", "message"), REFUSED)


def refuse(partition: Partition, call: str, given: tuple[Any, ...], message: str) -> None:
    """It says what is wrong, changes nothing, tells nobody, and goes on as if nothing had been."""
    watched = Watched(partition)
    watched.do("insert", {v: (v, v + 3) for v in range(8)})
    watched.do("delete", {4: (0, 0)})
    watched.mirror.told.clear()
    before = snapshot(partition)
    with pytest.raises(ValueError, match=re.escape(message)):
        getattr(partition, call)(*given)
    assert snapshot(partition) == before
    assert not watched.mirror.told
    check(partition, watched.inside)
    watched.do("insert", {4: (0, 1), 9: (7, 7)})
    watched.do("delete", {0: (0, 0), 9: (0, 0)})


def snapshot(partition: Partition) -> dict[str, Any]:
    """All that it holds, as plain lists."""
    found = {}
    for name, value in vars(partition).items():
        if name != "_subscribers":
            parts = value if isinstance(value, tuple) else [value]
            found[name] = [np.array(part).tolist() for part in parts]
    return found


# -- histories -----------------------------------------------------------------------------------

_near = st.integers(0, 20)
_short = st.tuples(_near, st.integers(0, 4)).map(lambda p: (p[0], p[0] + p[1]))
_around = st.tuples(st.integers(0, 8), st.integers(0, 8)).map(lambda p: (10 - p[0], 10 + p[1]))
_point = _near.map(lambda x: (x, x))
ranges = st.one_of(_short, _short, _around, _point, ordinal_ranges())


def long(elements: st.SearchStrategy[Any], most: int, least: int = 0) -> st.SearchStrategy[list]:
    """Lists of all lengths alike; Hypothesis' own are of five or so."""
    return st.integers(least, most).flatmap(lambda n: st.lists(elements, min_size=n, max_size=n))


def steps(most: int = 14) -> st.SearchStrategy[list[Step]]:
    """Numbers come again and again, with other ends."""
    some = st.dictionaries(st.integers(0, 25), ranges, max_size=8)
    kind = st.sampled_from(["insert"] * 5 + ["delete"] * 3 + ["build"])
    return long(st.tuples(kind, some), most)


def batches(updates: Iterable[Update], most: int) -> list[Step]:
    """The updates in order, as many of a kind in a batch as can be."""
    found: list[Step] = []
    for v, ends in updates:
        kind = "delete" if ends is None else "insert"
        if not found or found[-1][0] != kind or len(found[-1][1]) == most or v in found[-1][1]:
            found.append((kind, {}))
        found[-1][1][v] = ends or (0, 0)
    return found


def _and_gone(ends: list[tuple[int, int]], gone: Iterable[int]) -> list[Update]:
    return [*enumerate(ends), *[(v, None) for v in gone]]


def _disjoint() -> list[Update]:
    ends = [(10 * i, 10 * i + 3) for i in range(40)]
    odd = range(1, 40, 2)
    back: list[Update] = [(v, (10 * v + 3, 10 * v + 9)) for v in odd]
    return _and_gone(ends, odd) + back + [(v, None) for v in range(39, -1, -1)]


def _nested() -> list[Update]:
    ends = [(i, 100 - i) for i in range(40)]
    inside_out: list[Update] = [(v, None) for v in range(39, 19, -1)]
    return _and_gone(ends, []) + inside_out + [(v, None) for v in range(20)]


def _equal() -> list[Update]:
    return _and_gone([(5, 7)] * 40, range(40)) + [(v, (7, 7)) for v in range(9)]


def _chain() -> list[Update]:
    random = Random(1)
    ends = [(i, i + 1) for i in range(45)]
    random.shuffle(ends)
    gone = random.sample(range(45), 30)
    return _and_gone(ends, gone) + [(v, (2 * i, 2 * i + 2)) for i, v in enumerate(gone)]


def _at_a_boundary() -> list[Update]:
    """Two groups that one interval makes one, or three, again and again."""
    found: list[Update] = [(i, (10 * i, 10 * i + 3)) for i in range(8)]
    for i in range(60):
        ends = [(3, 10), (3, 3), (4, 9), (4, 4), (10, 10), (0, 73)][i % 6]
        found += [(20 + i % 2, ends), (i % 8, None), (i % 8, (10 * (i % 8), 10 * (i % 8) + 3))]
        found += [(20 + i % 2, None)]
    return found


def _mass_deletion() -> list[Update]:
    found: list[Update] = [(i, (100 * i, 100 * i + 5)) for i in range(10)]
    for turn in range(3):
        hotspot = range(10, 50)
        found += [(v, (250 + turn - v, 250 + turn + v)) for v in hotspot]
        found += [(v, None) for v in hotspot]
    return found


def _losing_points() -> list[Update]:
    """The interval that holds a group's point goes, and one that ends later comes."""
    found: list[Update] = []
    for g in range(6):
        found += [(10 * g + i, (100 * g + i, 100 * g + 20 + i)) for i in range(6)]
    for turn in range(25):
        g, i = turn % 6, turn // 6
        found += [(10 * g + i, None), (60 + turn, (100 * g + 10, 100 * g + 40 + turn))]
        found += [(90 + turn, (100 * g + 21 + i, 100 * g + 23 + i))]
    return found


def _other_ends() -> list[Update]:
    random, inside = Random(2), set()
    found: list[Update] = []
    for _ in range(200):
        v = random.randrange(6)
        lo = random.randint(0, 30)
        found.append((v, None if v in inside else (lo, lo + random.randint(0, 12))))
        inside ^= {v}
    return found


def _extremes() -> list[Update]:
    least, most = INT64
    ends = [(least, least), (most, most), INT64, (least, most - 1), (least + 1, most)]
    ends += [(-1, 0), (0, most), (least, 0), (most - 1, most), (least, least + 1)]
    random = Random(3)
    found = _and_gone(ends * 3, random.sample(range(30), 22))
    return found + [(30 + i, random.choice(ends)) for i in range(20)]


def _any(seed: int) -> list[Update]:
    random, inside = Random(seed), set()
    span, wide, many = [(300, 20, 40), (1000, 900, 40), (60, 3, 70)][seed % 3]
    found: list[Update] = []
    for _ in range(220):
        v = random.randrange(many)
        lo = random.randint(0, span) if random.random() < 0.7 else span // 2
        found.append((v, None if v in inside else (lo, lo + random.randint(0, wide))))
        inside ^= {v}
    return found


HISTORIES = {
    "disjoint": _disjoint(),
    "nested": _nested(),
    "equal": _equal(),
    "chain": _chain(),
    "at a boundary": _at_a_boundary(),
    "mass deletion": _mass_deletion(),
    "losing points": _losing_points(),
    "other ends": _other_ends(),
    "extremes": _extremes(),
    "any 0": _any(0),
    "any 1": _any(1),
    "any 2": _any(2),
}
