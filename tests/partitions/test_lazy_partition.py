"""The lazy partition through histories, told and looked at after every update."""

from __future__ import annotations

import os
import re
from decimal import Decimal
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from limen.kernels import refined as kinds
from limen.partitions.lazy import MOST_CHANGES, LazyPartition

from .by_hand import HISTORIES, Step, Watched, as_found, batches, refusals, refuse, steps

UNJITTED = os.environ.get("NUMBA_DISABLE_JIT") == "1"
half = settings(max_examples=settings.default.max_examples // 2)


@half
@given(st.sampled_from([0.05, 0.3, 1.0, 4.0]), steps(), st.booleans())
def test_histories(epsilon: float, history: list[Step], apart: bool) -> None:
    Watched(LazyPartition(epsilon)).replay(history, apart)


@pytest.mark.parametrize("most", [1, 7, 1000])
@pytest.mark.parametrize("epsilon", [0.05, 1.0])
@pytest.mark.parametrize("name", HISTORIES)
def test_adversaries(name: str, epsilon: float, most: int) -> None:
    Watched(LazyPartition(epsilon)).replay(batches(HISTORIES[name], most))


def test_built_again_with_fewer() -> None:
    """What was sized for the larger numbers of before is of another length than who is in."""
    watched = Watched(LazyPartition())
    watched.do("build", {v: (v, v) for v in range(100)})
    watched.do("build", {v: (v, v) for v in range(99)})
    watched.do("insert", {99: (5, 5)})
    assert watched.partition.members(5).tolist() == [5, 99]
    watched.do("insert", {v: (50, 60) for v in range(100, 200)})
    watched.do("build", {7: (1, 2)})
    watched.do("insert", {8: (0, 9), 150: (4, 4)})


def test_built_then_updated() -> None:
    n, random = (150 if UNJITTED else 1000), Random(5)
    watched = Watched(LazyPartition(0.5))
    ends = {v: (lo, lo + random.randint(0, 9)) for v in range(n) for lo in [random.randint(0, n)]}
    watched.do("build", ends)
    watched.do("insert", {n + v: (10 * v + 5 * n, 10 * v + 5 * n) for v in range(n // 3)})
    watched.do("delete", dict.fromkeys(random.sample(range(n), n // 2), (0, 0)))


def test_room_for_groups_and_changes_grows_in_a_batch() -> None:
    """More new groups, and more that is told, than there is room for at once."""
    n = MOST_CHANGES + 10
    partition, told = LazyPartition(1e9), []
    partition.build([0], [0], [0])
    partition.subscribe(told.append)
    partition.insert(range(1, n), range(1, n), range(1, n))
    assert partition.stabbing_number == len(partition) == n
    assert partition.reconstructions == 0
    assert len(told) > 2
    rows = [i for changes in told for i in changes.update.tolist()]
    assert rows == list(range(n - 1))
    told.clear()
    partition.delete(range(n - 1, -1, -1))
    assert [len(changes.what) for changes in told] == [MOST_CHANGES - 1, 11]  # two rows an update
    assert all((changes.what == kinds.DISSOLVED).all() for changes in told)
    assert len(partition) == partition.stabbing_number == 0


def test_an_interval_goes_where_it_meets_the_common_intersection() -> None:
    """Not only where a point stabs it; and the intersection does not grow when one goes."""
    partition = LazyPartition(9.0)
    partition.build([0, 1], [0, 50], [10, 60])
    partition.insert([2], [-5], [4])
    assert as_found(partition) == [(4, {0, 2}), (60, {1})]
    partition.delete([2])
    partition.insert([3], [6], [7])
    assert as_found(partition) == [(4, {0}), (7, {3}), (60, {1})]
    assert partition.reconstructions == 0


def test_a_point_that_moves_is_told() -> None:
    partition, told = LazyPartition(9.0), []
    partition.build([0, 1], [0, 0], [10, 20])
    partition.subscribe(told.append)
    partition.insert([2, 3, 4], [0, 0, 30], [5, 7, 40])
    assert told[-1].what.tolist() == [kinds.GREW, kinds.MOVED, kinds.GREW, kinds.CREATED]
    assert told[-1].update.tolist() == [0, 0, 1, 2]
    assert told[-1].interval.tolist() == [2, -1, 3, 4]
    partition.delete([2])  # the point stays where it is
    assert told[-1].what.tolist() == [kinds.SHRANK]
    assert partition.points(partition.groups().group).tolist() == [5, 40]


def test_the_papers_condition() -> None:
    """A reconstruction when |P| >= (1 + epsilon) (tau_0 - m), and not before."""
    partition = LazyPartition(0.5)
    partition.build(range(10), range(10), range(10))
    partition.insert([20], [20], [20])
    partition.delete([20])  # it was not there at the last one: m is 0 still
    partition.insert(range(20, 24), range(20, 24), range(20, 24))
    assert partition.reconstructions == 0  # 14 < 15
    partition.delete([0])
    assert partition.reconstructions == 0  # 13 < 13.5
    partition.insert([24], [24], [24])
    assert partition.reconstructions == 1  # 14 >= 13.5


# -- bad input -----------------------------------------------------------------------------------


@refusals
def test_bad_input(call: str, given: tuple, message: str) -> None:
    refuse(LazyPartition(0.5), call, given, message)


@pytest.mark.parametrize(
    "epsilon", [0, -1.0, float("nan"), float("inf"), "1", None, True, [1.0], 10**400, Decimal(1)]
)
def test_bad_epsilon(epsilon: object) -> None:
    told = re.escape(f"epsilon is a number above 0, not {epsilon!r}")
    with pytest.raises(ValueError, match=told):
        LazyPartition(epsilon)  # type: ignore[arg-type]


def test_there_is_no_such_group() -> None:
    partition = LazyPartition()
    partition.insert([4], [1], [2])
    for bad in (-1, 1, 10**6):
        with pytest.raises(ValueError, match=f"there is no group {bad}"):
            partition.members(bad)
    partition.delete([4])
    with pytest.raises(ValueError, match="there is no group 0"):
        partition.members(0)
    assert len(partition.groups().group) == 0


def test_nothing_to_do_is_done() -> None:
    watched = Watched(LazyPartition())
    for kind in ("insert", "delete", "build", "insert", "delete"):
        watched.do(kind, {})
    assert [rows[0][1] for rows in watched.mirror.told] == []
    watched.do("insert", {3: (1, 2)})
