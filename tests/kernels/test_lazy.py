"""The lazy partition between reconstructions: the parts of groups, and where it stops."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from limen.kernels import avl
from limen.kernels import lazy as kernel
from limen.kernels import refined as kinds
from limen.partitions.lazy import LazyPartition
from limen.testing.strategies import INT64, ordinal_ranges

from .trees_by_hand import long

fewer = settings(max_examples=settings.default.max_examples // 4)
Ranges = list[tuple[int, int]]


def prepared(ranges: Ranges) -> kernel.Lazy:
    """Nobody is in; the ends are set."""
    partition = LazyPartition()
    partition.build(range(len(ranges)), [r[0] for r in ranges], [r[1] for r in ranges])
    partition.build([], [], [])
    return partition._state


class Plain:
    """Parts and groups in a plain list."""

    def __init__(self, ranges: Ranges) -> None:
        self.ranges, self.parts = ranges, {}  # by group: lo, hi, members

    def add(self, v: int, group: int) -> bool:
        """Where it goes, leftmost first, or a group of its own, as numbered; is it one?"""
        lo, hi = self.ranges[v]
        for other, (first, last, members) in sorted(self.parts.items(), key=lambda p: p[1][:2]):
            if first <= hi and last >= lo:
                assert group == other
                self.parts[other] = (max(lo, first), min(hi, last), members | {v})
                return False
        assert group not in self.parts
        self.parts[group] = (lo, hi, {v})
        return True

    def drop(self, v: int) -> tuple[int, bool]:
        for group, (first, last, members) in list(self.parts.items()):
            if v in members:
                self.parts[group] = (first, last, members - {v})
                if members == {v}:
                    del self.parts[group]
                return group, members == {v}
        raise AssertionError

    def check(self, of: kernel.Lazy) -> None:
        n = int(of.counts[kernel.N_GROUPS])
        found = np.empty(n, np.int32)
        assert kernel.list_groups(of, found) == n == len(self.parts)
        order = found.tolist()
        assert order == sorted(self.parts, key=lambda g: self.parts[g][:2])
        parts = [self.parts[g][:2] for g in order]
        assert [(int(of.spots[g, avl.LO]), int(of.spots[g, avl.HI])) for g in order] == parts
        for (_, last), (first, _) in pairwise(parts):
            assert last < first
        for group, (_, _, members) in self.parts.items():
            assert of.sizes[group] == len(members)
            assert all(of.group_of[v] == group for v in members)
        assert of.counts[kernel.MEMBERS] == sum(len(p[2]) for p in self.parts.values())
        check_height(of.spots, int(of.counts[kernel.SPOTS]))


def check_height(spots: np.ndarray, at: int) -> int:
    if at < 0:
        return 0
    low, high = (check_height(spots, int(spots[at, side])) for side in (avl.LEFT, avl.RIGHT))
    assert abs(low - high) <= 1
    assert spots[at, avl.HEIGHT] == max(low, high) + 1
    return max(low, high) + 1


near = st.tuples(st.integers(0, 30), st.integers(0, 8)).map(lambda p: (p[0], p[0] + p[1]))
sets = long(st.one_of(near, near, near, ordinal_ranges()), 25, least=1)


@fewer
@given(sets, long(st.integers(0, 24), 60))
def test_parts_of_groups(ranges: Ranges, picks: list[int]) -> None:
    of, plain, inside = prepared(ranges), Plain(ranges), set()
    for turn, pick in enumerate(picks):
        v = pick % len(ranges)
        of.counts[kernel.TAU] = 10**9  # no reconstruction
        ids = np.array([-1] * turn + [v], np.int32)
        assert kernel.update_many(of, ids, v not in inside, turn, 1.0) == turn + 1
        (update, what, group, interval), *rest = of.changes[: of.counts[kernel.N_CHANGES]].tolist()
        assert (update, interval) == (turn, v)
        of.counts[kernel.N_CHANGES] = 0
        point = plain.parts[group][1] if group in plain.parts else None
        if v in inside:
            expected, gone = plain.drop(v)
            assert (group, what) == (expected, kinds.DISSOLVED if gone else kinds.SHRANK)
        else:
            alone = plain.add(v, group)
            assert what == (kinds.CREATED if alone else kinds.GREW)
        moved = point not in (None, plain.parts.get(group, (0, point))[1])
        assert rest == ([[turn, kinds.MOVED, group, avl.NONE]] if moved else [])
        inside ^= {v}
        plain.check(of)
        for x in (0, 15, 31, *INT64):
            met = [g for g, (lo, hi, _) in plain.parts.items() if lo <= x <= hi]
            assert [kernel._met(of, x, x)] == (met or [avl.NONE])


def test_it_stops_when_a_reconstruction_is_due() -> None:
    of = prepared([(v, v) for v in range(9)])
    of.counts[kernel.TAU] = 3
    ids = np.arange(9, dtype=np.int32)
    assert not kernel.is_due(of, 1.0)
    assert kernel.update_many(of, ids, True, 0, 1.0) == 6  # 6 >= (1 + 1) 3
    assert kernel.is_due(of, 1.0)
    assert of.changes[:6, 0].tolist() == list(range(6))
    assert of.counts[kernel.MEMBERS] == of.counts[kernel.N_GROUPS] == 6


def test_it_stops_when_room_for_groups_is_out() -> None:
    of = prepared([(v, v) for v in range(9)] + [(0, 9)])
    of.counts[kernel.TAU] = 100
    short = of._replace(sizes=of.sizes[:4])
    ids = np.arange(10, dtype=np.int32)
    assert kernel.update_many(short, ids, True, 0, 1.0) == 4
    assert kernel.update_many(short, ids, True, 4, 1.0) == 4
    assert kernel.update_many(of, ids, True, 4, 1.0) == 10
    assert of.counts[kernel.N_GROUPS] == 9 and of.counts[kernel.MEMBERS] == 10


def test_it_stops_when_room_for_changes_is_out() -> None:
    of = prepared([(v, v) for v in range(9)])
    of.counts[kernel.TAU] = 100
    short = of._replace(changes=of.changes[: 4 + kernel.MOST_TOLD])
    ids = np.arange(9, dtype=np.int32)
    assert kernel.update_many(short, ids, True, 0, 1.0) == 5
    of.counts[kernel.N_CHANGES] = 0
    assert kernel.update_many(short, ids, True, 5, 1.0) == 9
    of.counts[kernel.N_CHANGES] = 0
    assert kernel.update_many(short, ids, False, 0, 1.0) == 5
    assert of.changes[:5, 1].tolist() == [kinds.DISSOLVED] * 5
    assert of.counts[kernel.FREED] == 5


def test_there_is_room_for_points_that_move() -> None:
    """Each of these intervals grows the group and moves its point."""
    of = prepared([(0, 9 - v) for v in range(9)])
    of.counts[kernel.TAU] = 100
    short = of._replace(changes=of.changes[:6])
    ids = np.arange(9, dtype=np.int32)
    assert kernel.update_many(short, ids, True, 0, 1.0) == 3
    assert of.counts[kernel.N_CHANGES] == 5
    rows = [[1, kinds.GREW, 0, 1], [1, kinds.MOVED, 0, -1], [2, kinds.GREW, 0, 2]]
    assert of.changes[:5].tolist() == [[0, kinds.CREATED, 0, 0], *rows, [2, kinds.MOVED, 0, -1]]


def test_lost_counts_those_of_the_last_reconstruction_only() -> None:
    partition = LazyPartition(1e9)
    partition.build([0, 1, 2], [0, 10, 20], [5, 15, 25])
    of = partition._state
    assert of.counts[kernel.TAU] == 3 and of.settled[:3].all()
    partition.insert([3], [2], [3])
    assert not partition._state.settled[3]
    partition.delete([3])
    assert partition._state.counts[kernel.LOST] == 0
    partition.insert([4], [0], [9])
    partition.delete([0])
    assert partition._state.counts[kernel.LOST] == 1
    partition.insert([0], [1], [1])  # it is another now
    partition.delete([0])
    assert partition._state.counts[kernel.LOST] == 1
    assert partition._state.counts[kernel.TAU] == 3
