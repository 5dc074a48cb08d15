"""The refined partition from inside: its counts, the paper's invariant (*), and where room is out."""

from __future__ import annotations

import os
from itertools import pairwise
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from limen.kernels import avl
from limen.kernels import refined as kernel
from limen.partitions.refined import RefinedPartition, _state
from limen.testing.strategies import INT64, ordinal_ranges

from .trees_by_hand import Ends, greedy, in_order, long

UNJITTED = os.environ.get("NUMBA_DISABLE_JIT") == "1"
fewer = settings(max_examples=settings.default.max_examples // 4)


def living(of: kernel.Refined) -> list[int]:
    """The old groups that are not empty, in order."""
    old = int(of.counts[kernel.N_OLD])
    return [int(of.order[p]) for p in range(old) if int(of.living[p]) == p]


def check(of: kernel.Refined, inside: Ends) -> dict[int, list[int]]:
    """All that the counts say is true; returns the groups."""
    old, counts = living(of), of.counts
    kinds = of.kinds[: counts[kernel.USED]].tolist()
    assert sorted(old) == [g for g, kind in enumerate(kinds) if kind == kernel.OLD]
    assert not of.kinds[counts[kernel.USED] :].any()
    free = of.free[: counts[kernel.FREED]].tolist()
    assert sorted(free) == [g for g, kind in enumerate(kinds) if kind == kernel.FREE]
    new = [g for g, kind in enumerate(kinds) if kind == kernel.NEW]
    spots = {g: (int(of.points[g]),) * 2 for g in new}
    assert sorted(in_order(of.spots, int(counts[kernel.SPOTS]), spots)) == new
    groups = {g: in_order(of.nodes, int(of.roots[g]), inside) for g in old + new}
    members = [v for vs in groups.values() for v in vs]
    assert counts[kernel.N_GROUPS] == len(groups)
    assert counts[kernel.MEMBERS] == len(members) == len(set(members))
    sizes = [len(vs) for vs in groups.values()]
    assert counts[kernel.LARGEST] == max(sizes, default=0)
    for size, many in enumerate(of.sizes.tolist()):
        assert many == sizes.count(size)
    for g, vs in groups.items():
        assert all(inside[v][0] <= of.points[g] <= inside[v][1] for v in vs)
        assert all(of.group_of[v] == (g if g in spots else avl.NONE) for v in vs)
    found = np.empty(len(members), np.int32)
    kernel.groups_of(of, numbers(members), found)
    assert found.tolist() == [g for g, vs in groups.items() for _ in vs]
    bounds = [(of.points[g], min(inside[v][0] for v in groups[g])) for g in old]
    for (point, _), (_, begin) in pairwise(bounds):
        assert begin > point  # (*), and more: the left ends of a group are beyond the one before
    sound = [g for g in old if min(inside[v][1] for v in groups[g]) == of.points[g]]
    assert counts[kernel.SOUND] == len(sound) <= len(greedy({v: inside[v] for v in members}))
    for rank, g in enumerate(of.order[: counts[kernel.N_OLD]].tolist()):
        assert g not in old or of.living[rank] != rank or of.ranks[g] == rank
        assert rank <= of.living[rank] <= counts[kernel.N_OLD]
    return groups


def prepared(ends: Ends) -> kernel.Refined:
    """Nobody is in, the ends are set, and there is room for all to be groups of their own."""
    rows = max(ends, default=0) + 1
    of = _state(rows, rows + 8)
    for v, (lo, hi) in ends.items():
        of.nodes[v, avl.LO], of.nodes[v, avl.HI] = lo, hi
    return of


def told(of: kernel.Refined) -> list[list[int]]:
    rows = of.changes[: of.counts[kernel.N_CHANGES]].tolist()
    of.counts[kernel.N_CHANGES] = 0
    return rows


def numbers(some: list[int]) -> np.ndarray:
    return np.array(some, np.int32)


near = st.tuples(st.integers(0, 25), st.integers(0, 6)).map(lambda p: (p[0], p[0] + p[1]))
sets = long(st.one_of(near, near, near, ordinal_ranges()), 25, least=1)


@fewer
@given(sets, long(st.integers(0, 24), 60), st.sampled_from([0.1, 0.5, 1.0, 3.0]))
def test_counts_and_the_invariant(
    ranges: list[tuple[int, int]], picks: list[int], epsilon: float
) -> None:
    ends = dict(enumerate(ranges))
    of, inside = prepared(ends), set()
    for pick in picks:
        v = pick % len(ranges)
        before = int(of.counts[kernel.RECONSTRUCTED])
        assert kernel.update_many(of, numbers([v]), v not in inside, 0, epsilon) == 1
        inside ^= {v}
        groups = check(of, {w: ends[w] for w in inside})
        assert {w for vs in groups.values() for w in vs} == inside
        assert not kernel.is_due(of, epsilon)
        if of.counts[kernel.RECONSTRUCTED] > before:
            found = [(int(of.points[g]), {*groups[g]}) for g in living(of)]
            assert found == greedy({w: ends[w] for w in inside})
        told(of)


@fewer
@given(sets, st.integers(3, 9), st.integers(8, 30), st.sampled_from([0.1, 1.0, 50.0]))
def test_room_that_runs_out_in_a_batch(
    ranges: list[tuple[int, int]], groups: int, changes: int, epsilon: float
) -> None:
    """It stops before an update, all is in order, and with more room it goes on as if never stopped."""
    ends = dict(enumerate(ranges))
    plenty = prepared(ends)
    ids = numbers(list(ends))
    little, all_rows, rows, stops = prepared(ends), [], [], 0
    for adds, batch in ((True, ids), (False, ids[::2].copy())):
        assert kernel.update_many(plenty, batch, adds, 0, epsilon) == len(batch)
        all_rows += told(plenty)
        done, inside = 0, {*ids.tolist()} if not adds else set()
        while done < len(batch):
            short = little._replace(kinds=little.kinds[:groups], changes=little.changes[:changes])
            now = kernel.update_many(short, batch, adds, done, epsilon)
            assert done <= now
            assert not short.counts[kernel.MISSED]
            inside ^= {*batch[done:now].tolist()}
            found = check(little, {v: ends[v] for v in inside})
            assert {v for vs in found.values() for v in vs} == inside
            rows += told(short)
            if now < len(batch):
                assert not kernel.has_room(short) or now > done
                groups, changes, stops = groups + 1, changes + 2, stops + 1
            done = now
    assert rows == all_rows
    assert of_all(little) == of_all(plenty)
    assert stops or len(ranges) < 25


def of_all(of: kernel.Refined) -> list[tuple[int, int, int]]:
    n = int(of.counts[kernel.N_GROUPS])
    columns = np.empty(n, np.int32), np.empty(n, np.int64), np.empty(n, np.int64)
    assert kernel.list_groups(of, *columns) == n
    return list(zip(*(column.tolist() for column in columns), strict=True))


def test_room_is_asked_for_before_it_is_needed() -> None:
    """Of thirty disjoint intervals, the tenth group is not made where there is room for so few."""
    ends = {v: (10 * v, 10 * v) for v in range(30)}
    of = prepared(ends)
    short = of._replace(kinds=of.kinds[:12])
    assert kernel.update_many(short, numbers(list(ends)), True, 0, 1.0) == 10
    assert not kernel.has_room(short) and kernel.has_room(of)
    assert len(check(of, ends)) == 10
    assert kernel.update_many(short, numbers(list(ends)), True, 10, 1.0) == 10
    assert kernel.update_many(of, numbers(list(ends)), True, 10, 1.0) == 30
    check(of, ends)


def test_changes_that_have_no_room_are_missed() -> None:
    """The partition is right all the same, and says that not all was told."""
    ends = {v: (10 * v, 10 * v + 5) for v in range(9)}
    of = prepared(ends)
    for v in ends:
        kernel.add(of, 0, v)
    told(of)
    kernel.reconstruct(of._replace(changes=of.changes[:4]), 7)
    assert of.counts[kernel.MISSED] == 1
    rows = told(of)
    assert len(rows) == 4 and {row[0] for row in rows} == {7}
    assert len(check(of, ends)) == 9
    of.counts[kernel.MISSED] = 0
    kernel.reconstruct(of, 8)
    assert not of.counts[kernel.MISSED] and not told(of)  # nothing has changed


def test_a_reset_is_told_for_changes_missed() -> None:
    partition = RefinedPartition()
    seen = []
    partition.subscribe(lambda changes: seen.append(changes.what.tolist()))
    partition.state.counts[kernel.MISSED] = 1
    partition.insert([0], [1], [2])
    assert seen == [[kernel.RESET]]
    partition.delete([0])
    assert seen[1:] == [[kernel.DISSOLVED]]


@pytest.mark.parametrize("gone", [[], [0], [9], [3, 4, 5, 6], [6, 5, 4, 3], [0, 9, 5], range(10)])
def test_dead_groups_are_skipped(gone: list[int]) -> None:
    partition = RefinedPartition(1e9)
    partition.build(range(10), [10 * v for v in range(10)], [10 * v + 5 for v in range(10)])
    of = partition.state
    for v in gone:
        kernel.drop(of, 0, v)
    left = [v for v in range(10) if v not in gone]
    for _ in range(2):  # the way is shorter the second time
        for x in [*range(-1, 102, 3), *INT64]:
            expected = next((v for v in left if 10 * v + 5 >= x), 10)
            assert kernel._first_old(of, x) == expected
            points = {10 * v + 5: int(of.order[v]) for v in left}
            below = max((p for p in points if p <= x), default=None)
            above = min((p for p in points if p > x), default=None)
            assert kernel.around(of, x) == (points.get(below, -1), points.get(above, -1))
    for v in range(10):
        assert of.living[v] == next((w for w in left if w >= v), 10)
    check(of, {v: (10 * v, 10 * v + 5) for v in left})


def test_a_number_given_anew_does_not_revive_the_old_group() -> None:
    """An old group has gone and its number is a new group's, elsewhere."""
    partition = RefinedPartition(1e9)
    partition.build(range(5), [10 * v for v in range(5)], [10 * v + 5 for v in range(5)])
    group = int(partition.group_of([2])[0])
    partition.delete([2])
    partition.insert([7], [90], [95])
    assert partition.group_of([7]).tolist() == [group]
    partition.insert([8], [20], [27])  # where the old one was
    assert partition.group_of([8])[0] != group
    ends = {v: (10 * v, 10 * v + 5) for v in (0, 1, 3, 4)} | {7: (90, 95), 8: (20, 27)}
    check(partition.state, ends)
    kernel.reconstruct(partition.state, 0)
    found = check(partition.state, ends)
    assert [{*found[g]} for g in living(partition.state)] == [m for _, m in greedy(ends)]


@pytest.mark.parametrize("seed", range(4 if UNJITTED else 30))
def test_reconstructions_of_many_groups(seed: int) -> None:
    """Groups that are cut more than once, joined, kept: after updates without any reconstruction."""
    random = Random(seed)
    n, span = random.choice([(60, 40), (200, 300), (200, 2000)])
    wide = random.choice([2, 20, 200])
    ends = {
        v: (lo, lo + random.randint(0, wide)) for v in range(n) for lo in [random.randint(0, span)]
    }
    of, inside = prepared(ends), set()
    for _ in range(4):
        some = random.sample(range(n), n // 3)
        for adds in (False, True):
            batch = [v for v in some if (v in inside) != adds]
            for v in batch:
                if adds:
                    kernel.add(of, 0, v)
                else:
                    kernel.drop(of, 0, v)
            inside ^= {*batch}
        check(of, {v: ends[v] for v in inside})
        kernel.reconstruct(of, 0)
        assert not of.counts[kernel.MISSED]
        told(of)
        found = check(of, {v: ends[v] for v in inside})
        expected = greedy({v: ends[v] for v in inside})
        assert [(int(of.points[g]), {*found[g]}) for g in living(of)] == expected
        assert of.counts[kernel.SOUND] == of.counts[kernel.N_GROUPS] == len(expected)
