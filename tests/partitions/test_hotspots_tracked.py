"""Hotspots through histories: (I1), (I2), (I3), told and looked at after every update."""

from __future__ import annotations

import math
import os
import re
from decimal import Decimal
from fractions import Fraction
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from limen.kernels import refined as kinds
from limen.partitions.hotspots import Hotspots, Moves

from .by_hand import (
    HISTORIES,
    Step,
    Watched,
    as_found,
    batches,
    greedy,
    long,
    refusals,
    refuse,
    same_with_large_numbers,
    steps,
)

UNJITTED = os.environ.get("NUMBA_DISABLE_JIT") == "1"
half = settings(max_examples=settings.default.max_examples // 2)
alphas = st.sampled_from([0.05, 0.1, 0.25, 0.3, 0.5, 1.0])


@half
@given(alphas, st.sampled_from([0.05, 0.5, 1.0, 4.0]), steps(), st.booleans())
def test_histories(alpha: float, epsilon: float, history: list[Step], apart: bool) -> None:
    Watched(Hotspots(alpha, epsilon)).replay(history, apart)


@settings(max_examples=settings.default.max_examples // 4)
@given(alphas, long(st.tuples(st.integers(0, 14), st.integers(0, 4)), 60))
def test_few_places(alpha: float, picks: list[tuple[int, int]]) -> None:
    """Intervals at five points that come and go, so that groups become hot and scattered."""
    watched = Watched(Hotspots(alpha, 0.5))
    for v, place in picks:
        watched.do("delete" if v in watched.inside else "insert", {v: (10 * place, 10 * place)})


@pytest.mark.parametrize("most", [1, 7, 1000])
@pytest.mark.parametrize(("alpha", "epsilon"), [(0.1, 0.05), (0.5, 1.0), (1.0, 0.3)])
@pytest.mark.parametrize("name", HISTORIES)
def test_adversaries(name: str, alpha: float, epsilon: float, most: int) -> None:
    Watched(Hotspots(alpha, epsilon)).replay(batches(HISTORIES[name], most))


def test_looking_ahead_changes_nothing() -> None:
    same_with_large_numbers(lambda: Hotspots(0.1, 0.3))


def test_reconstructions_are_greedy() -> None:
    """Of the scattered groups; `Watched` compares after every single update that brought one."""
    watched = Watched(Hotspots(0.2, 0.05))
    for name in ("chain", "at a boundary", "losing points", "any 0"):
        watched.replay([("build", {})])
        before = watched.compared
        watched.replay(batches(HISTORIES[name], 1))
        assert watched.compared > before, name


def test_a_batch_is_its_updates_one_by_one() -> None:
    for history in HISTORIES.values():
        one, many = Watched(Hotspots(0.3, 0.3)), Watched(Hotspots(0.3, 0.3))
        one.mirror.agree = many.mirror.agree = lambda: None
        one.replay(batches(history, 1))
        many.replay(batches(history, 1000))
        assert as_found(one.partition) == as_found(many.partition)
        assert one.partition.moves == many.partition.moves
        assert one.partition.hot().group.tolist() == many.partition.hot().group.tolist()


def test_the_papers_example() -> None:
    """Of the ten intervals of Fig. 1, two groups of four are 0.4-hotspots."""
    rows = [
        (0, 6),
        (1, 7),
        (2, 9),
        (3, 5),
        (8, 13),
        (9, 14),
        (10, 16),
        (11, 12),
        (18, 21),
        (19, 22),
    ]
    for built in (True, False):
        watched = Watched(Hotspots(0.4))
        watched.do("build" if built else "insert", dict(enumerate(rows)))
        assert watched.partition.hot().size.tolist() == [4, 4]
        assert watched.partition.hot().point.tolist() == [5, 12]
        assert as_found(watched.partition) == greedy(watched.inside)


def test_hot_from_alpha_and_until_half_of_it() -> None:
    """At alpha n exactly it becomes hot, at half of that it still is, and below no more."""
    watched = Watched(Hotspots(0.25, 1.0))
    partition = watched.partition
    single = {100 + v: (100 * v, 100 * v) for v in range(1, 97)}
    watched.do("build", {v: (0, 0) for v in range(31)} | {v: single[v] for v in list(single)[:93]})
    assert partition.hot().size.tolist() == [31]  # 31 of 124
    watched.do("delete", {0: (0, 0)})
    watched.do("insert", {0: (1, 1)})
    for v in range(1, 15):
        watched.do("delete", {v: (0, 0)})
    assert partition.hot().size.tolist() == [16]  # of 110
    for v in range(15, 18):
        watched.do("delete", {v: (0, 0)})
    assert partition.hot().size.tolist() == []  # 13 < 107 / 8
    assert partition.moves == Moves(124 + 19, 0, 13, 0, 1)
    for v in range(1, 18):
        watched.do("insert", {v: (0, 0)})
    assert partition.hot().size.tolist() == []  # 30 < 124 / 4
    watched.do("delete", {0: (1, 1)})
    watched.do("insert", {0: (0, 0)})
    assert partition.hot().size.tolist() == [31]
    assert partition.moves == Moves(124 + 38, 31, 13, 1, 1)
    assert partition.moves.each == 44 / 162


@pytest.mark.parametrize("alpha", [0.07, 0.14, 0.28, 0.55, 0.56])
def test_shares_are_as_they_are_said(alpha: float) -> None:
    """0.07 * 100 is a little above 7 in floats, but 7 of 100 is a share of 0.07."""
    many = round(100 * alpha)
    assert alpha * 100 > many
    watched = Watched(Hotspots(alpha))
    watched.do("insert", {v: (1000 + v, 1000 + v) for v in range(100 - many)})
    watched.do("insert", {900 + v: (0, 9) for v in range(many)})
    assert watched.partition.hot().size.tolist() == [many]
    if many % 2 == 0:  # half of it, of 100 again
        half = many // 2
        watched.do("insert", {500 + v: (5000 + v, 5000 + v) for v in range(half)})
        watched.do("delete", {900 + v: (0, 9) for v in range(half)})
        assert watched.partition.hot().size.tolist() == [half]


def test_around_takes_any_integer_for_what_it_is() -> None:
    """The next float above 2**63 - 5 is 2**63."""
    spots, top = Hotspots(0.5), 2**63
    spots.insert(range(4), [top - 5, top - 5, top - 20, 0], [top - 1, top - 3, top - 18, 1])
    group = spots.hot().group.tolist()[0]
    for x, wanted in ((top - 4, False), (top - 3, True)):
        for same in (x, np.uint64(x)):
            below, above = spots.around(same)
            assert (below == group, above is None) == (wanted, wanted)


def test_a_hot_group_takes_whoever_meets_its_intersection() -> None:
    partition = Hotspots(0.5)
    partition.build([0, 1, 2, 3], [0, 1, 2, 50], [10, 11, 12, 50])
    partition.insert([4], [-9], [3])
    assert partition.hot().point.tolist() == [3]  # the point moves with it
    partition.insert([5], [4], [6])
    assert partition.members(partition.hot().group[0]).tolist() == [4, 0, 1, 2]
    partition.delete([4])
    partition.insert([6], [4], [6])
    assert partition.hot().point.tolist() == [6]


def test_emptied_and_filled_again() -> None:
    watched = Watched(Hotspots(1.0, 0.1))
    for turn in range(4):
        watched.do("insert", {v: (turn, turn + v) for v in range(9)})
        assert watched.partition.hot().size.tolist() == [9]
        for v in range(9):
            watched.do("delete", {(v + turn) % 9: (0, 0)})
        assert watched.partition.stabbing_number == len(watched.partition) == 0


def test_a_demotion_can_lead_to_a_promotion() -> None:
    """A demoted group and a scattered one that it did not meet before are one in a reconstruction."""
    watched = Watched(Hotspots(0.5, 0.01))
    watched.do("insert", {0: (10, 10)} | {v: (0, 20) for v in range(1, 26)})
    watched.do("insert", {100 + v: (100 * v, 100 * v) for v in range(1, 41)})
    watched.do("insert", {200 + v: (12, 20) for v in range(34)})
    watched.do("delete", {0: (0, 0)})
    assert watched.partition.hot().size.tolist() == [25]
    before = watched.partition.moves
    watched.do("delete", {1: (0, 0)})
    assert watched.partition.hot().size.tolist() == [24 + 34]
    after = watched.partition.moves
    assert after.into - before.into == 24 and after.out - before.out == 58


@pytest.mark.parametrize("first", [90, 101])
def test_more_to_tell_than_there_is_room_for(first: int) -> None:
    """Fifty hot groups are demoted by one update at the end of a long batch: look at all anew."""
    places, each = 50, 20
    watched = Watched(Hotspots(0.02, 1.0))
    watched.do("build", {v: (10 * (v % places),) * 2 for v in range(places * each)})
    assert len(watched.partition.hot().group) == places
    ids = range(places * each, 2 * places * each + 1)
    watched.do("insert", {v: (0, 0) for v in ids[:first]})
    resets = watched.mirror.resets
    watched.do("insert", {v: (0, 0) for v in ids[first:]})
    assert watched.partition.hot().size.tolist() == [1021]
    assert watched.partition.moves == Moves(2001, 0, 980, 0, 49)
    if first == 101:  # it is the last that there is room for
        assert watched.mirror.resets == resets + 1


# -- (I3): as many moves as can be ---------------------------------------------------------------


def hover(partition: Hotspots, turns: int, spare: int) -> None:
    """A group is brought to alpha n and below alpha n / 2, again and again, the shortest way."""
    n, alpha = len(partition), partition.alpha
    fresh = iter(range(n, n + 4 * spare * turns + 10**6))
    mine: list[int] = []
    others: list[int] = []
    for turn in range(turns):
        while not len(partition.hot().group):
            mine.append(next(fresh))
            partition.insert([mine[-1]], [0], [0])
        while len(partition.hot().group):
            if turn % 2 and len(others) < spare:
                others.append(next(fresh))
                at = 10 * others[-1]
                partition.insert([others[-1]], [at], [at])
            else:
                partition.delete([mine.pop()])
        while others and len(mine) / max(1, len(partition)) < alpha * 0.9:
            partition.delete([others.pop()])
            if len(partition.hot().group):
                break


@pytest.mark.parametrize("alpha", [0.02, 0.1, 0.3, 0.5, 0.7])
def test_a_group_that_hovers(alpha: float) -> None:
    n, turns = 200, 4 if UNJITTED else 12
    partition = Hotspots(alpha, 1.0)
    ids = list(range(n))
    partition.insert(ids, [10 * v for v in ids], [10 * v for v in ids])
    before = partition.moves
    hover(partition, turns, n)
    after = partition.moves
    assert after.each <= 5
    moved = after.out + after.into - before.out - before.into
    assert 0 < moved <= 5 * (after.updates - before.updates) + n
    assert after.promotions + after.demotions >= 2 * turns - 1


def all_at_once(alpha: float, turns: int) -> Hotspots:
    """As many groups as can be become hot, and then none: the number of all goes up and down."""
    partition = Hotspots(alpha, 1.0)
    places, each = int(1 / alpha), 6
    ids = list(range(places * each))
    at = [10 * (v % places) for v in ids]
    partition.insert(ids, at, at)
    far = list(range(len(ids), 3 * len(ids)))
    for _ in range(turns):
        lo = [10**6 + 10 * v for v in far]
        partition.insert(far, lo, lo)
        partition.delete(far)
    return partition


@pytest.mark.parametrize("alpha", [0.05, 0.25, 0.5])
def test_all_groups_at_once(alpha: float) -> None:
    moves = all_at_once(alpha, 8).moves
    assert 0 < moves.each <= 5
    assert moves.demotions >= 8 * int(1 / alpha) - 1


@pytest.mark.parametrize("seed", range(4 if UNJITTED else 12))
def test_an_adversary_that_sees_all(seed: int) -> None:
    """Each update is one of those that bring some group nearer to going over."""
    random = Random(seed)
    alpha, epsilon = random.choice([0.05, 0.1, 0.2, 0.34, 0.5]), random.choice([0.1, 1.0])
    watched = Watched(Hotspots(alpha, epsilon))
    partition = watched.partition
    watched.mirror.agree = lambda: None  # it is looked at after each update anyhow
    inside, place, fresh = {}, {}, 0
    for _ in range(150 if UNJITTED else 400):
        n = len(inside)
        by_place: dict[int, list[int]] = {}
        for v, at in place.items():
            by_place.setdefault(at, []).append(v)
        small = [vs for vs in by_place.values() if len(vs) >= alpha / 2 * n]
        small = sorted(small, key=len)
        large = sorted((vs for vs in by_place.values() if len(vs) < alpha * n), key=len)
        choice = random.random()
        if small and choice < 0.35 and n > 8:  # nearest to being demoted
            gone = small[0][-1]
        elif large and choice < 0.45 and n > 30:  # fewer in all
            gone = large[0][-1]
        else:
            gone = None
        if gone is not None:
            watched.do("delete", {gone: (0, 0)})
            del inside[gone], place[gone]
        else:
            at = place[large[-1][0]] if large and choice < 0.8 else random.randrange(60)
            inside[fresh], place[fresh] = (10 * at, 10 * at), at
            watched.do("insert", {fresh: inside[fresh]})
            fresh += 1
        assert partition.moves.each <= 5
    assert partition.moves.promotions > 0


def test_moves_of_none() -> None:
    assert Hotspots(0.5).moves == Moves(0, 0, 0, 0, 0)
    assert Hotspots(0.5).moves.each == 0


# -- bad input -----------------------------------------------------------------------------------


@refusals
def test_bad_input(call: str, given: tuple, message: str) -> None:
    refuse(Hotspots(0.5, 0.5), call, given, message)


@pytest.mark.parametrize(
    "alpha", [0, -0.1, 1.0001, 2, math.nan, math.inf, "0.5", None, True, [0.5], Decimal("0.5")]
)
def test_bad_alpha(alpha: object) -> None:
    told = re.escape(f"alpha is a share above 0 and up to 1, not {alpha!r}")
    with pytest.raises(ValueError, match=told):
        Hotspots(alpha)  # type: ignore[arg-type]


def test_shares_of_any_kind_of_number() -> None:
    for alpha in (Fraction(1, 2), np.float32(0.5), 1):
        tracked = Hotspots(alpha, Fraction(1, 3))  # type: ignore[arg-type]
        tracked.insert([0, 1, 2], [1, 2, 9], [3, 3, 9])
        assert tracked.hot().size.tolist() == [2]


@pytest.mark.parametrize("epsilon", [0, -1.0, math.nan, math.inf])
def test_bad_epsilon(epsilon: float) -> None:
    with pytest.raises(ValueError, match=f"epsilon is a number above 0, not {epsilon}"):
        Hotspots(0.5, epsilon)


def test_what_is_told_of_a_promotion() -> None:
    partition, told = Hotspots(0.5), []
    partition.subscribe(told.append)
    partition.insert([0], [1], [1])
    rows = told[-1]
    assert rows.what.tolist()[0] == kinds.CREATED and rows.what.tolist()[-1] == kinds.PROMOTED
    assert rows.update.tolist() == [0] * len(rows.update)
    assert rows.interval.tolist() == [0] + [-1] * (len(rows.update) - 1)


def test_what_is_told_of_a_hot_groups_point() -> None:
    """It moves when an interval comes or goes, and when the group becomes hot."""
    partition, told = Hotspots(0.5), []
    partition.build([0, 1], [0, 0], [10, 20])
    partition.subscribe(told.append)
    partition.insert([2], [0], [5])
    assert told[-1].what.tolist() == [kinds.GREW, kinds.MOVED]
    assert partition.hot().point.tolist() == [5]
    partition.delete([2])
    assert told[-1].what.tolist() == [kinds.SHRANK, kinds.MOVED]
    assert told[-1].interval.tolist() == [2, -1]
    partition.delete([1])  # its point is that of the other
    assert told[-1].what.tolist() == [kinds.SHRANK]


def test_what_is_told_of_the_point_of_a_group_that_becomes_hot() -> None:
    """It had lost the interval that ends at its point."""
    partition, told = Hotspots(0.5), []
    partition.build(range(5), [0, 0, 30, 40, 50], [10, 20, 30, 40, 50])
    group = int(partition.group_of([1])[0])
    partition.delete([0])
    partition.insert([5], [0], [20])
    assert partition.points([group]).tolist() == [10]
    partition.subscribe(told.append)
    partition.delete([2])
    assert told[-1].what.tolist() == [kinds.DISSOLVED, kinds.PROMOTED, kinds.MOVED]
    assert told[-1].group.tolist()[1:] == [group, group]
    assert partition.points([group]).tolist() == [20]
