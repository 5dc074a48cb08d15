"""Hot groups from inside: what is noted of them, when they go over, and where room is out."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from limen.kernels import avl, refined
from limen.kernels import hotspots as kernel
from limen.partitions.hotspots import Hotspots
from limen.partitions.refined import _state
from limen.testing.strategies import ordinal_ranges

from .trees_by_hand import Ends, greedy, in_order, long

fewer = settings(max_examples=settings.default.max_examples // 4)


def check(of: refined.Refined, hot: kernel.Hot, inside: Ends, alpha: float, epsilon: float) -> None:
    """What is noted of the hot groups, their intervals and the others is true, and all is settled."""
    n_hot = int(hot.tally[kernel.N_HOT])
    groups = hot.groups[:n_hot].tolist()
    kinds = of.kinds[: of.counts[refined.USED]].tolist()
    assert sorted(groups) == [g for g, kind in enumerate(kinds) if kind == refined.HOT]
    found = {}
    for place, g in enumerate(groups):
        members = in_order(of.nodes, int(of.roots[g]), inside)
        assert hot.lo[place] == max(inside[v][0] for v in members)
        assert hot.hi[place] == min(inside[v][1] for v in members)
        assert hot.lo[place] <= hot.hi[place]
        assert hot.sizes[place] == len(members)
        assert len(members) / len(inside) >= alpha / 2
        assert of.ranks[g] == place
        assert of.points[g] == hot.hi[place]
        assert all(of.group_of[v] == g for v in members)
        found |= dict.fromkeys(members, g)
    assert hot.tally[kernel.N_INSIDE] == len(found)
    assert of.counts[refined.MEMBERS] == len(inside) - len(found)
    sizes = []
    for g, kind in enumerate(kinds):
        if kind in (refined.OLD, refined.NEW):
            members = in_order(of.nodes, int(of.roots[g]), inside)
            sizes.append(len(members))
            assert not found.keys() & {*members}
            found |= dict.fromkeys(members, g)
    assert found.keys() == inside.keys()
    assert of.counts[refined.N_GROUPS] == len(sizes)
    assert of.counts[refined.LARGEST] == max(sizes, default=0)
    assert [int(of.sizes[i]) for i in range(len(of.sizes))] == [
        sizes.count(i) for i in range(len(of.sizes))
    ]
    assert all(size / len(inside) < alpha for size in sizes)
    scattered = {v: inside[v] for v, g in found.items() if g not in groups}
    assert of.counts[refined.SOUND] <= len(greedy(scattered))
    assert len(sizes) <= (1 + epsilon) * len(greedy(scattered))
    assert kernel._is_settled(of, hot, alpha, epsilon)


def hot_points(hot: kernel.Hot) -> tuple[list[int], list[int]]:
    n = int(hot.tally[kernel.N_HOT])
    return hot.groups[:n].tolist(), hot.hi[:n].tolist()


def prepared(ranges: list[tuple[int, int]], alpha: float) -> tuple[refined.Refined, kernel.Hot]:
    """Nobody is in, the ends are set, and there is room for all to be groups of their own."""
    of = _state(len(ranges), len(ranges) + 8)
    of.nodes[:, : avl.HI + 1] = ranges
    return of, Hotspots(alpha)._no_hot()


near = st.tuples(st.integers(0, 12), st.integers(0, 3)).map(lambda p: (10 * p[0], 10 * p[0] + p[1]))
wide = st.tuples(st.integers(0, 99), st.integers(0, 60)).map(lambda p: (p[0], p[0] + p[1]))
sets = long(st.one_of(near, near, wide, ordinal_ranges()), 20, least=1)


@fewer
@given(
    sets,
    long(st.integers(0, 19), 60),
    st.sampled_from([0.1, 0.3, 0.5, 1.0]),
    st.sampled_from([0.1, 1.0]),
)
def test_what_is_noted(
    ranges: list[tuple[int, int]], picks: list[int], alpha: float, epsilon: float
) -> None:
    (of, hot), inside = prepared(ranges, alpha), {}
    for turn, pick in enumerate(picks):
        v = pick % len(ranges)
        before, points = hot.tally.copy(), dict(zip(*hot_points(hot), strict=True))
        ids = np.array([v], np.int32)
        assert kernel.update_many(of, hot, ids, v not in inside, 0, alpha, epsilon) == 1
        if v in inside:
            del inside[v]
        else:
            inside[v] = ranges[v]
        check(of, hot, inside, alpha, epsilon)
        moved = hot.tally - before
        rows = of.changes[: of.counts[refined.N_CHANGES]].tolist()
        whats = [row[1] for row in rows]
        of.counts[refined.N_CHANGES] = 0
        told = {row[2] for row in rows if row[1] in (refined.MOVED, refined.PROMOTED)}
        for group, point in zip(*hot_points(hot), strict=True):
            assert group in told or points[group] == point
        assert moved[kernel.PROMOTIONS] == whats.count(refined.PROMOTED)
        assert moved[kernel.DEMOTIONS] == whats.count(refined.DEMOTED)
        assert moved[kernel.MOVED_OUT] >= moved[kernel.PROMOTIONS]
        assert hot.tally[kernel.MOVED_OUT] + hot.tally[kernel.MOVED_IN] <= 5 * (turn + 1)


@fewer
@given(sets, st.sampled_from([0.1, 0.4]), st.integers(3, 9), st.integers(8, 24))
def test_room_that_runs_out_in_a_batch(
    ranges: list[tuple[int, int]], alpha: float, groups: int, changes: int
) -> None:
    """It stops before an update, and with more room goes on as if it had never stopped."""
    ids = np.arange(len(ranges), dtype=np.int32)
    (of, hot), (short_of, short_hot) = prepared(ranges, alpha), prepared(ranges, alpha)
    assert kernel.update_many(of, hot, ids, True, 0, alpha, 0.5) == len(ids)
    done = 0
    while done < len(ids):
        short = short_of._replace(kinds=short_of.kinds[:groups], changes=short_of.changes[:changes])
        now = kernel.update_many(short, short_hot, ids, True, done, alpha, 0.5)
        assert now == len(ids) or not kernel.has_room(short)
        check(short_of, short_hot, dict(enumerate(ranges[:now])), alpha, 0.5)
        short_of.counts[refined.N_CHANGES] = short_of.counts[refined.MISSED] = 0
        groups, changes, done = groups + 1, changes + 2, now
    assert short_hot.tally.tolist() == hot.tally.tolist()
    n = int(hot.tally[kernel.N_HOT])
    assert short_hot.groups[:n].tolist() == hot.groups[:n].tolist()
    assert short_of.kinds.tolist() == of.kinds.tolist()


def test_the_first_hot_group_that_is_met() -> None:
    partition = Hotspots(0.2)
    places = [30, 10, 20]
    ids = range(9)
    lo = [places[v % 3] for v in ids]
    partition.build(ids, lo, [x + 4 for x in lo])
    hot = partition._hot
    spans = list(zip(hot.lo[:3].tolist(), hot.hi[:3].tolist(), strict=True))
    assert sorted(spans) == [(10, 14), (20, 24), (30, 34)]
    for first in range(5, 40):
        for last in range(first, 40):
            met = [p for p, (lo, hi) in enumerate(spans) if lo <= last and hi >= first]
            assert kernel._meets(hot, first, last) == (met[0] if met else avl.NONE)


@pytest.mark.parametrize("place", [0, 1, 2])
def test_the_last_takes_the_place_of_one_that_goes(place: int) -> None:
    partition = Hotspots(0.2)
    partition.build(range(9), [10 * (v % 3) for v in range(9)], [10 * (v % 3) for v in range(9)])
    group = int(partition._hot.groups[place])
    gone = partition.members(group).tolist()
    partition.delete(gone)
    inside = {v: (10 * (v % 3),) * 2 for v in range(9) if v not in gone}
    assert partition._hot.tally[kernel.N_HOT] == 2
    check(partition.state, partition._hot, inside, 0.2, 1.0)
    assert partition.state.kinds[group] == refined.FREE


def test_changes_that_have_no_room_are_missed() -> None:
    """Of ten promotions four are told; all happen, and it is said that some were not told."""
    partition = Hotspots(0.1)
    ids = list(range(20))
    partition.insert(ids, [10 * (v % 10) for v in ids], [10 * (v % 10) for v in ids])
    of, hot = partition.state, partition._hot
    n = int(hot.tally[kernel.N_HOT])
    assert n == 10
    of.counts[refined.N_CHANGES] = 0
    hot.sizes[:n] = 1  # as if they were smaller
    kernel.settle(of._replace(changes=of.changes[:4]), hot, 0, 1.5, 1e9)
    assert of.counts[refined.MISSED] == 1
    assert of.counts[refined.N_CHANGES] == 4
    assert set(of.changes[:4, 1].tolist()) == {refined.DEMOTED}
    assert hot.tally[kernel.N_HOT] == 0
    assert hot.tally[kernel.DEMOTIONS] >= 10
