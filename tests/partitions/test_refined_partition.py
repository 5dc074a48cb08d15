"""The refined partition through histories, told and looked at after every update."""

from __future__ import annotations

import os
import re
from decimal import Decimal
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from limen.kernels import refined as kernel
from limen.partitions.refined import RefinedPartition

from .by_hand import (
    HISTORIES,
    Step,
    Watched,
    as_found,
    batches,
    check,
    greedy,
    refusals,
    refuse,
    same_with_large_numbers,
    snapshot,
    steps,
)

UNJITTED = os.environ.get("NUMBA_DISABLE_JIT") == "1"
half = settings(max_examples=settings.default.max_examples // 2)


@half
@given(st.sampled_from([0.05, 0.3, 1.0, 4.0]), steps(), st.booleans())
def test_histories(epsilon: float, history: list[Step], apart: bool) -> None:
    Watched(RefinedPartition(epsilon)).replay(history, apart)


@pytest.mark.parametrize("most", [1, 7, 1000])
@pytest.mark.parametrize("epsilon", [0.05, 1.0])
@pytest.mark.parametrize("name", HISTORIES)
def test_adversaries(name: str, epsilon: float, most: int) -> None:
    Watched(RefinedPartition(epsilon)).replay(batches(HISTORIES[name], most))


@pytest.mark.parametrize("epsilon", [0.1, 2.0])
def test_built_then_updated(epsilon: float) -> None:
    """With more groups than there is room for at first, in one batch."""
    n, random = (150 if UNJITTED else 1000), Random(5)
    watched = Watched(RefinedPartition(epsilon))
    ends = {v: (lo, lo + random.randint(0, 9)) for v in range(n) for lo in [random.randint(0, n)]}
    watched.do("build", ends)
    watched.do("insert", {n + v: (10 * v + 5 * n, 10 * v + 5 * n) for v in range(n)})
    watched.do("delete", dict.fromkeys(random.sample(range(2 * n), n), (0, 0)))
    watched.do("insert", {2 * n + v: (v, v + random.randint(0, 3)) for v in range(n // 2)})
    watched.do("build", {3: (0, 5), 1: (5, 9)})
    watched.do("insert", {v: (v, v) for v in range(4, 9)})


def test_a_batch_is_its_updates_one_by_one() -> None:
    for history in HISTORIES.values():
        one, many = RefinedPartition(0.3), RefinedPartition(0.3)
        for most, partition in ((1, one), (1000, many)):
            for kind, some in batches(history, most):
                if kind == "delete":
                    partition.delete(list(some))
                else:
                    ends = np.array(list(some.values()))
                    partition.insert(list(some), ends[:, 0], ends[:, 1])
        assert as_found(one) == as_found(many)
        assert one.groups().group.tolist() == many.groups().group.tolist()
        assert one.reconstructions == many.reconstructions


def test_looking_ahead_changes_nothing() -> None:
    same_with_large_numbers(lambda: RefinedPartition(0.3))


def test_an_interval_goes_to_the_leftmost_point_that_stabs_it() -> None:
    partition = RefinedPartition(9.0)
    partition.build([0, 1, 2], [0, 10, 20], [5, 15, 25])
    partition.insert([3, 4], [-1, 6], [99, 99])
    assert partition.members(partition.group_of([0])[0]).tolist() == [3, 0]
    assert partition.members(partition.group_of([1])[0]).tolist() == [4, 1]
    partition.insert([5, 6], [6, 6], [8, 99])  # a new group, whose point is before the old one's
    assert partition.members(partition.group_of([5])[0]).tolist() == [5, 6]
    assert partition.groups().point.tolist() == [5, 8, 15, 25]
    partition.insert([7, 8], [17, 12], [18, 99])  # and one whose point is beyond the old one's
    assert partition.members(partition.group_of([7])[0]).tolist() == [7]
    assert partition.members(partition.group_of([1])[0]).tolist() == [4, 1, 8]
    assert partition.groups().point.tolist() == [5, 8, 15, 18, 25]
    assert partition.reconstructions == 0


def test_a_group_may_lose_all_but_one_without_a_reconstruction() -> None:
    """As long as somebody ends at its point (the paper would reconstruct at once)."""
    partition = RefinedPartition(0.5)
    partition.build(range(100), range(100), [100 + v for v in range(100)])
    partition.insert([100], [300], [300])
    before = partition.reconstructions
    partition.delete(range(1, 100))
    assert partition.reconstructions == before
    assert as_found(partition) == [(100, {0}), (300, {100})]


def test_a_group_that_did_not_change_is_not_told_of() -> None:
    """A reconstruction of fifty groups, two of which become one."""
    partition = RefinedPartition(0.04)
    ends = {v: (10 * v, 10 * v + 5) for v in range(50)} | {50: (0, 2)}
    partition.build(list(ends), [e[0] for e in ends.values()], [e[1] for e in ends.values()])
    watched = Watched(partition)
    watched.inside = dict(ends)
    watched.ends |= ends
    watched.do("insert", {60: (6, 6)})
    watched.do("insert", {61: (16, 16)})
    assert partition.reconstructions == 1
    rows = [row for rows in watched.mirror.told for row in rows]
    assert len(rows) <= 2 * 2 + 1  # the new groups go and come as old ones
    watched.do("delete", {50: (0, 2)})
    watched.do("delete", {0: (0, 5)})
    assert as_found(partition) == greedy(watched.inside)


def test_a_point_that_moves_is_told() -> None:
    partition = RefinedPartition(0.5)
    partition.build([0, 1, 2, 3], [0, 1, 100, 101], [5, 9, 105, 109])
    told = []
    partition.subscribe(told.append)
    partition.delete([0])
    assert told[-1].what.tolist() == [kernel.SHRANK, kernel.MOVED]
    assert partition.groups().point.tolist() == [9, 105]


def test_groups_are_few_however_long_it_goes_on() -> None:
    n, random = (300 if UNJITTED else 4000), Random(7)
    partition, inside = RefinedPartition(0.25), {}
    for _ in range(n // 10):
        new = {}
        for v in random.sample(range(n), 20):
            if v not in inside:
                lo = random.randint(0, n)
                new[v] = (lo, lo + random.randint(0, 40))
        partition.insert(list(new), [e[0] for e in new.values()], [e[1] for e in new.values()])
        inside |= new
        gone = random.sample(list(inside), min(9, len(inside)))
        partition.delete(gone)
        inside = {v: ends for v, ends in inside.items() if v not in set(gone)}
        assert partition.stabbing_number <= 1.25 * len(greedy(inside))
    check(partition, inside)
    rows = len(partition.state.kinds)
    assert rows <= 3 * partition.stabbing_number + 200  # numbers of groups are given anew
    assert partition.nbytes < 200 * n + 500 * rows


# -- bad input -----------------------------------------------------------------------------------


@refusals
def test_bad_input(call: str, given: tuple, message: str) -> None:
    refuse(RefinedPartition(0.5), call, given, message)


@pytest.mark.parametrize(
    "epsilon", [0, -1.0, float("nan"), float("inf"), "1", None, True, [1.0], 10**400, Decimal(1)]
)
def test_bad_epsilon(epsilon: object) -> None:
    told = re.escape(f"epsilon is a number above 0, not {epsilon!r}")
    with pytest.raises(ValueError, match=told):
        RefinedPartition(epsilon)  # type: ignore[arg-type]


def test_nothing_to_do_is_done() -> None:
    watched = Watched(RefinedPartition())
    for kind in ("insert", "delete", "build", "insert", "delete"):
        watched.do(kind, {})
    watched.do("insert", {3: (1, 2)})
    before = snapshot(watched.partition)
    watched.do("insert", {})
    watched.do("delete", {})
    assert snapshot(watched.partition) == before
    assert not watched.mirror.told


def test_there_is_no_such_group() -> None:
    partition = RefinedPartition()
    partition.insert([4], [1], [2])
    group = int(partition.group_of([4])[0])
    for bad in (-1, group + 1, 10**6):
        with pytest.raises(ValueError, match=f"there is no group {bad}"):
            partition.members(bad)
    partition.delete([4])
    with pytest.raises(ValueError, match=f"there is no group {group}"):
        partition.members(group)
    assert len(partition.groups().group) == 0
