"""Trees that are grown, cut and joined, against sorted lists."""

from __future__ import annotations

import os
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from limen.kernels import avl
from limen.testing.strategies import INT64, ordinal_ranges

from .trees_by_hand import Ends, in_order, long

UNJITTED = os.environ.get("NUMBA_DISABLE_JIT") == "1"


class Forest:
    """Trees from left to right over the same rows, each with the list that it should be."""

    def __init__(self, ends: Ends) -> None:
        self.ends = ends
        self.nodes = np.full((len(ends), avl.WORDS), 77, np.int64)
        for v, (lo, hi) in ends.items():
            self.nodes[v, avl.LO], self.nodes[v, avl.HI] = lo, hi
        self.path, self.more = np.full(avl.DEEP, -9, np.int64), np.full(avl.DEEP, -9, np.int64)
        self.roots, self.lists = [avl.NONE], [[]]

    def key(self, v: int) -> tuple[int, int]:
        return self.ends[v][0], v

    def toggle(self, v: int) -> None:
        """Take v out of the tree that it is in, or put it where it belongs."""
        for i, members in enumerate(self.lists):
            if v in members:
                self.roots[i] = avl.delete(self.nodes, self.path, self.roots[i], v)
                members.remove(v)
                return
        i = 0
        for j, members in enumerate(self.lists):
            if members and self.key(members[0]) < self.key(v):
                i = j
        self.roots[i] = avl.insert(self.nodes, self.path, self.roots[i], v)
        self.lists[i] = sorted([*self.lists[i], v], key=self.key)

    def split(self, i: int, x: int) -> None:
        cut = avl.split(self.nodes, self.path, self.more, self.roots[i], x)
        members = self.lists[i]
        self.roots[i : i + 1] = cut
        begin = [v for v in members if self.ends[v][0] <= x]
        self.lists[i : i + 1] = [begin, members[len(begin) :]]

    def join(self, i: int) -> None:
        """This tree and the next."""
        two = self.roots[i : i + 2]
        self.roots[i : i + 2] = [avl.join(self.nodes, self.path, *two)]
        self.lists[i : i + 2] = [self.lists[i] + self.lists[i + 1]]

    def plant(self, i: int) -> None:
        """The tree anew, out of the middle of a list."""
        members = self.lists[i]
        order = np.array([-1, -1, *members, -1], np.int64)
        scratch = np.empty((len(members), 3), np.int64)
        self.roots[i] = avl.plant(self.nodes, order, 2, 2 + len(members), scratch)
        deepest = int(self.nodes[self.roots[i], avl.HEIGHT]) if members else 0
        assert deepest == len(members).bit_length()

    def check(self) -> None:
        for root, members in zip(self.roots, self.lists, strict=True):
            assert in_order(self.nodes, root, self.ends) == members
            assert avl.size(self.nodes, root) == len(members)
            found = np.full(len(members) + 1, -5, np.int32)
            assert avl.members(self.nodes, self.path, root, found) == len(members)
            assert found.tolist() == [*members, -5]
            if members:
                assert avl.least(self.nodes, root) == members[0]

    def check_searches(self, xs: list[int]) -> None:
        for root, members in zip(self.roots, self.lists, strict=True):
            for x in xs:
                later = [v for v in members if self.ends[v][0] >= x]
                assert avl.first_from(self.nodes, root, x) == (later[0] if later else avl.NONE)
                ends = [self.ends[v][1] for v in members]
                if ends == sorted(ends):
                    before = [v for v in members if self.ends[v][1] <= x]
                    after = [v for v in members if self.ends[v][1] > x]
                    assert avl.last_to(self.nodes, root, x) == (before or [avl.NONE])[-1]
                    assert avl.first_after(self.nodes, root, x) == (after or [avl.NONE])[0]


numbers = st.integers(0, 29)
operations = st.one_of(
    *[st.tuples(st.just("toggle"), numbers, numbers)] * 5,
    st.tuples(st.just("split"), numbers, numbers),
    st.tuples(st.just("join"), numbers, numbers),
    st.tuples(st.just("plant"), numbers, numbers),
    st.tuples(st.just("all"), numbers, numbers),
)
close = st.tuples(st.integers(0, 6), st.integers(0, 9)).map(lambda p: (p[0], p[0] + p[1]))


@settings(max_examples=settings.default.max_examples // 2)
@given(
    long(st.one_of(close, close, ordinal_ranges()), 30, least=1),
    long(operations, 40),
)
def test_histories(ranges: list[tuple[int, int]], steps: list[tuple[str, int, int]]) -> None:
    forest = Forest(dict(enumerate(ranges)))
    for what, one, other in steps:
        i = one % len(forest.roots)
        if what == "toggle":
            forest.toggle(one % len(ranges))
        elif what == "all":
            for v in range(min(one, other), min(max(one, other) + 1, len(ranges))):
                forest.toggle(v)
        elif what == "split":
            lo = ranges[other % len(ranges)][0]
            forest.split(i, max(lo - 1, INT64[0]) if one % 3 == 0 else lo)
        elif what == "join" and i + 1 < len(forest.roots):
            forest.join(i)
        elif what == "plant":
            forest.plant(i)
        forest.check()
    xs = [x for lo, _ in ranges for x in (lo, max(lo - 1, INT64[0]), min(lo + 1, INT64[1]))]
    forest.check_searches([*xs, *INT64])


def test_no_node_and_one() -> None:
    forest = Forest({0: INT64})
    assert avl.height(forest.nodes, avl.NONE) == avl.size(forest.nodes, avl.NONE) == 0
    forest.split(0, 0)
    forest.join(0)
    forest.plant(0)
    forest.check()
    assert forest.roots == [avl.NONE]
    forest.check_searches([*INT64, 0])
    assert avl.alone(forest.nodes, 0, *INT64) == 0
    assert in_order(forest.nodes, 0, forest.ends) == [0]
    forest.toggle(0)
    for x in INT64:
        forest.split(0, x)
        forest.check()
        forest.join(0)
    forest.check_searches([*INT64, 0])
    forest.toggle(0)
    forest.check()
    assert forest.roots == [avl.NONE]


def test_equal_left_ends_stay_together() -> None:
    """A split never parts them, and among themselves they are in order of their numbers."""
    forest = Forest({v: (5, 5 + v % 3) for v in range(40)})
    order = list(range(40))
    Random(1).shuffle(order)
    for v in order:
        forest.toggle(v)
    forest.check()
    for x, many in ((4, [0, 40]), (5, [40, 0]), (6, [40, 0])):
        forest.split(0, x)
        assert [len(members) for members in forest.lists] == many
        forest.check()
        forest.join(0)
    forest.check_searches([4, 5, 6])


LONG = 300 if UNJITTED else 3000


@pytest.mark.parametrize("first", [0, 1, 2, 5, 40, LONG])
@pytest.mark.parametrize("second", [0, 1, 2, 7, 63, LONG])
@pytest.mark.parametrize("planted", [True, False])
def test_joins_of_unequal_heights(first: int, second: int, planted: bool) -> None:
    random = Random(first * 10_000 + second)
    los = sorted(random.randint(-(2**40), 2**40) for _ in range(first + second))
    forest = Forest({v: (lo, lo + random.randint(0, 99)) for v, lo in enumerate(los)})
    forest.roots, forest.lists = [-1, -1], [[*range(first)], [*range(first, first + second)]]
    for i, members in enumerate(forest.lists):
        if planted:
            forest.plant(i)
            continue
        for v in members:  # in order, so that the tree leans
            forest.roots[i] = avl.insert(forest.nodes, forest.path, forest.roots[i], v)
    forest.join(0)
    forest.check()


@pytest.mark.parametrize("order", ["up", "down", "inwards", "shuffled"])
def test_height_of_large_trees(order: str) -> None:
    """However they were filled, and after half of them were taken out at one end or anywhere."""
    n, random = (400 if UNJITTED else 5000), Random(3)
    forest = Forest({v: (v // 3, v) for v in range(n)})
    numbers = list(range(n))
    if order == "down":
        numbers.reverse()
    elif order == "inwards":
        numbers = [v for pair in zip(numbers, reversed(numbers), strict=True) for v in pair]
        numbers = list(dict.fromkeys(numbers))
    elif order == "shuffled":
        random.shuffle(numbers)
    root = avl.NONE
    for v in numbers:
        root = avl.insert(forest.nodes, forest.path, root, v)
    assert in_order(forest.nodes, root, forest.ends) == list(range(n))
    for gone in (numbers[: n // 2], random.sample(numbers[n // 2 :], n // 3)):
        for v in gone:
            root = avl.delete(forest.nodes, forest.path, root, v)
        numbers = [v for v in numbers if v not in set(gone)]
        assert in_order(forest.nodes, root, forest.ends) == sorted(numbers)


def test_a_tree_cut_into_many_and_put_together() -> None:
    n, random = (120 if UNJITTED else 600), Random(4)
    forest = Forest({v: (v, random.randint(v, 2 * n)) for v in range(n)})
    for v in random.sample(range(n), n):
        forest.toggle(v)
    for x in random.sample(range(n), n // 6):
        at = next(i for i, members in enumerate(forest.lists) if members and members[-1] >= x)
        forest.split(at, x)
        forest.check()
    while len(forest.roots) > 1:
        forest.join(random.randrange(len(forest.roots) - 1))
        forest.check()
    assert forest.lists == [list(range(n))]


def test_a_walk_keeps_within_the_scratch_space() -> None:
    """DEEP is enough for as many nodes as promised: a tree of height h has F(h + 2) - 1 at least."""
    a, b = 1, 1
    for _ in range(avl.DEEP - 1):
        a, b = b, a + b
    assert a + b - 1 >= 2**44
