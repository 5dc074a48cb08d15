"""What values in several dimensions cross: the cross-check, frames, groups; by plain loops."""

from __future__ import annotations

import itertools
from random import Random
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from limen.kernels.bmq import SHORT
from limen.kernels.bmq_nd import cross_nd
from limen.kernels.borders import nearest
from limen.kernels.chain import FIRST, LATE, PLAIN, RETURNED
from limen.testing.strategies import INT64

from .test_borders import SPREADS, Built, build, crowd

fewer = settings(max_examples=settings.default.max_examples // 2)

CANARY = -77
Boxes = dict[int, list[tuple[int, int]]]  # by query: a range for each dimension
Point = tuple[int, ...]


def inside(boxes: Boxes, x: Point) -> set[int]:
    return {
        q
        for q, box in boxes.items()
        if all(lo <= value <= hi for (lo, hi), value in zip(box, x, strict=True))
    }


class World(NamedTuple):
    """Queries in groups, and their RS lists: those of the first dimension, of the second, ..."""

    groups: list[Boxes]
    dims: int
    built: Built
    table: np.ndarray


def world(groups: list[Boxes], dims: int, random: Random) -> World:
    lists = [{q: box[k] for q, box in boxes.items()} for k in range(dims) for boxes in groups]
    built = build(lists, random)
    table = np.zeros((max(built.most, 1), dims, 2), np.int64)
    for boxes in groups:
        for q, box in boxes.items():
            table[q] = box
    return World(groups, dims, built, table)


def boxes_of(random: Random, n: int, dims: int, spread: int, first: int = 0) -> Boxes:
    columns = [crowd(random, n, spread, first) for _ in range(dims)]
    return {q: [column[q] for column in columns] for q in columns[0]}


class Run:
    def __init__(self, made: World, entities: int, *, room: int = 0, more: int = 1) -> None:
        self.made, self.room, self.more = made, room, more
        self.at = np.zeros((entities, made.dims), np.int32)
        self.list_of = np.zeros(entities, np.int32)
        self.rooms = np.zeros((entities, made.dims, 2), np.int64)
        starts = made.built.rs.starts.astype(np.int32)
        self.corners = np.stack([starts[:-1], starts[1:]], axis=1)
        self.last = np.zeros((entities, made.dims), np.int64)
        self.accessed = np.zeros(1, np.int64)
        self.stops = 0

    def cross(self, who: list, xs: list, lists: list, order: list, flags: list) -> list[list[int]]:
        """By place in order: what is found. There is little room, and more whenever it is out."""
        n, before, newest = len(order), [-1] * len(order), {}
        for i in order:
            before[i] = newest.get(who[i], -1)
            if flags[i] != LATE:
                newest[who[i]] = i
        ends = np.full(n + 1, CANARY, np.int64)
        ends[0] = 0
        done, room = 0, self.room
        found = np.full(room + 32, CANARY, np.int32)
        to = np.empty((1, self.made.dims), np.int32)
        while True:
            stopped = cross_nd(
                self.made.built.rs,
                self.made.table,
                np.empty((self.made.dims, 0), np.int64),
                self.corners,
                len(self.made.groups),
                np.array(who, np.int32),
                np.array(xs, np.int64).reshape(n, self.made.dims),
                np.array(lists, np.int32),
                np.array(order, np.int64),
                done,
                np.array(flags, np.uint8),
                np.array(before, np.int32),
                self.last,
                self.at,
                np.zeros_like(self.at),
                self.list_of,
                self.rooms,
                to,
                np.zeros((1, self.made.dims), np.int32),
                np.empty((2, self.made.dims), np.int64),
                ends,
                found[:room],
                self.accessed,
            )
            assert (found[room:] == CANARY).all()
            assert done <= stopped <= n
            done = stopped
            if done == n:
                break
            self.stops += 1
            room += self.more
            larger = np.full(room + 32, CANARY, np.int32)
            larger[: ends[done]] = found[: ends[done]]
            found = larger
        for s, i in newest.items():
            self.last[s] = xs[i]
        assert (np.diff(ends) >= 0).all()
        return [found[i:j].tolist() for i, j in itertools.pairwise(ends.tolist())]

    def walk(self, xs: list[Point]) -> list[list[int]]:
        n = len(xs)
        return self.cross([0] * n, xs, [], list(range(n)), [FIRST] + [PLAIN] * (n - 1))


def told(found: list[int]) -> tuple[set[int], set[int]]:
    """Entered and left; each query once."""
    assert len(set(found)) == len(found)
    return {q for q in found if q >= 0}, {~q for q in found if q < 0}


def points(made: World, random: Random, n: int) -> list[Point]:
    """Near the borders of every dimension; now and then as before in some of them."""
    near: list[list[int]] = []
    for k in range(made.dims):
        ends = {e for boxes in made.groups for box in boxes.values() for e in box[k]} | {0, *INT64}
        near.append(sorted({e + d for e in ends for d in (-1, 0, 1)} - {INT64[0] - 1, 2**63}))
    found = [tuple(random.choice(values) for values in near)]
    while len(found) < n:
        fresh = [random.choice(values) for values in near]
        found.append(
            tuple(
                new if random.randint(0, 1) else old
                for new, old in zip(fresh, found[-1], strict=True)
            )
        )
    return found


# -- section 4.3 ---------------------------------------------------------------------------------


def differential(ranges: dict[int, tuple[int, int]], x: int, y: int) -> tuple[set[int], set[int]]:
    """Section 3.3, in one dimension: QSet+ and QSet- of a value that goes from x to y."""
    low, high = min(x, y), max(x, y)
    begins = {q for q, (lo, _) in ranges.items() if low < lo <= high}
    ends = {q for q, (_, hi) in ranges.items() if low < hi + 1 <= high}
    return (begins - ends, ends - begins) if x < y else (ends - begins, begins - ends)


def cross_checked(boxes: Boxes, x: Point, y: Point) -> tuple[set[int], set[int]]:
    """Figure 5 for any number of dimensions: the others are checked with what is there now, or was."""
    entered, left = set(), set()
    for k in range(len(x)):
        plus, minus = differential({q: box[k] for q, box in boxes.items()}, x[k], y[k])
        others = [j for j in range(len(x)) if j != k]
        for q in plus:
            if all(boxes[q][j][0] <= y[j] <= boxes[q][j][1] for j in others):
                entered.add(q)
        for q in minus:
            if all(boxes[q][j][0] <= x[j] <= boxes[q][j][1] for j in others):
                left.add(q)
    return entered, left


@fewer
@given(st.integers(0, 40), st.integers(1, 3), st.sampled_from(SPREADS), st.integers(0, 2**32))
def test_the_cross_check_of_the_paper(n: int, dims: int, spread: int, seed: int) -> None:
    random = Random(seed)
    boxes = boxes_of(random, n, dims, spread)
    made = world([boxes], dims, random)
    xs = points(made, random, 40)
    found = Run(made, 1, room=10_000).walk(xs)
    assert told(found[0]) == (inside(boxes, xs[0]), set())
    for (x, y), met in zip(itertools.pairwise(xs), found[1:], strict=True):
        before, after = inside(boxes, x), inside(boxes, y)
        assert told(met) == cross_checked(boxes, x, y) == (after - before, before - after)


# -- short ways and long jumps -------------------------------------------------------------------


@fewer
@given(
    st.lists(
        st.one_of(st.integers(0, 6), st.integers(0, 60), st.integers(150, 300)),
        min_size=1,
        max_size=3,
    ),
    st.integers(1, 3),
    st.sampled_from(SPREADS),
    st.integers(0, 40),
    st.integers(1, 3000),
    st.integers(0, 2**32),
)
def test_crossings_are_the_difference_of_two_evaluations(
    sizes: list[int], dims: int, spread: int, room: int, more: int, seed: int
) -> None:
    """Entities in groups and in none, new ones, late and returned ones; batch after batch."""
    random = Random(seed)
    firsts = [0, *itertools.accumulate(sizes)]
    groups = [
        boxes_of(random, n, dims, spread, first) for n, first in zip(sizes, firsts, strict=False)
    ]
    made, entities = world(groups, dims, random), 4
    run = Run(made, entities, room=room, more=more)
    last: dict[int, tuple[int, Point]] = {}
    some = random.choice([[0], range(-1, len(groups)), [len(groups) - 1]])

    def there(of: int, x: Point) -> set[int]:
        return inside(groups[of], x) if of >= 0 else set()

    for _ in range(3):
        n = 12
        xs = points(made, random, n)
        who = [random.randrange(entities) for _ in xs]
        lists = [random.choice(some) for _ in xs]
        order = random.sample(range(n), n)
        flags, expected = [LATE] * n, []
        for i in order:
            s = who[i]
            if random.randint(0, 9) > 0:
                flags[i] = FIRST if s not in last else random.choice([PLAIN] * 6 + [RETURNED])
            if flags[i] == LATE:
                expected.append((set(), set(), False))
                continue
            before = there(*last[s]) if s in last else set()
            after = there(lists[i], xs[i])
            whole = flags[i] == RETURNED or s not in last or last[s][0] != lists[i]
            if not whole:
                before, after = before - after, after - before
            expected.append((after, before, whole))
            last[s] = lists[i], xs[i]
        alone = some == [0] and random.random() < 0.5
        found = run.cross(who, xs, [] if alone else lists, order, flags)
        for met, (entered, left, whole) in zip(found, expected, strict=True):
            assert len(met) == len(entered) + len(left)
            assert told(met) == (entered, left)
            assert not whole or all(q < 0 for q in met[: len(left)])  # all of the old ones first
        for s, (of, x) in last.items():
            assert run.list_of[s] == of
            for k in range(dims):
                place = made.built.position(k * len(groups) + of, x[k]) if of >= 0 else -1
                assert run.at[s, k] == place


def mixed(dims: int) -> World:
    """Narrow and wide ranges; in the first dimension, most begin before any ends."""
    random = Random(dims)
    boxes: Boxes = {}
    for q in range(600):
        boxes[q] = [(q, 10_000 + q) if q < 400 else (20 * q + 3000, 20 * q + 3010)]
        for _ in range(dims - 1):
            lo = random.randrange(10_000)
            boxes[q].append((lo, lo + random.choice([20, 200, 5000])))
    return world([boxes], dims, random)


@pytest.mark.parametrize("dims", [2, 3])
def test_long_jumps(dims: int) -> None:
    made, random = mixed(dims), Random(8)
    xs, taken = [(200,) * dims], {"short": 0, "walk": 0, "frames": 0, "behind": 0}
    for i in range(200):
        step = [30, 600, 12_000][i % 3]
        xs.append(tuple(min(max(x + random.randint(-step, step), -5), 15_500) for x in xs[-1]))
    run = Run(made, 1, room=2000, more=2000)
    boxes, rs = made.groups[0], made.built.rs
    assert told(run.walk(xs[:1])[0]) == (inside(boxes, xs[0]), set())
    for x, y in itertools.pairwise(xs):
        accessed = run.accessed[0]
        before, after = inside(boxes, x), inside(boxes, y)
        assert told(run.cross([0], [y], [], [0], [PLAIN])[0]) == (after - before, before - after)
        p, to = ([made.built.position(k, v[k]) for k in range(dims)] for v in (x, y))
        walk = sum(abs(a - b) for a, b in zip(p, to, strict=True))
        frames = 0
        for place in (p, to):
            ways = [nearest(rs, k, np.int64(place[k])) for k in range(dims)]
            best = min(range(dims), key=lambda k: ways[k][2])
            frames += ways[best][2]
            taken["behind"] += ways[best][1] > place[best]
        cheaper = walk if walk <= SHORT else min(walk, frames)
        assert run.accessed[0] - accessed == cheaper
        taken["short" if walk <= SHORT else "walk" if walk <= frames else "frames"] += 1
    assert all(taken.values()), taken


@pytest.mark.parametrize("more", [1, 7, 100])
def test_too_little_room(more: int) -> None:
    made = mixed(2)
    random = Random(more)
    xs = [(random.randrange(11_000), random.randrange(11_000)) for _ in range(40)]
    tight, roomy = Run(made, 1, more=more), Run(made, 1, room=100_000)
    assert tight.walk(xs) == roomy.walk(xs)
    assert tight.stops > 1 and roomy.stops == 0
    assert tight.accessed[0] == roomy.accessed[0]


def test_a_reading_that_is_late_or_in_no_list() -> None:
    made = world([{0: [(3, 5), (3, 5)], 1: [(4, 9), (0, 9)]}, {2: [(0, 99)] * 2}], 2, Random(0))
    run = Run(made, 2, room=100)
    flags = [FIRST, LATE, PLAIN, PLAIN, RETURNED, PLAIN]
    xs = [(4, 4), (50, 50), (4, 4), (4, 4), (4, 4), (5, 5)]
    found = run.cross([0] * 6, xs, [-1, 0, 0, 1, 1, -1], list(range(6)), flags)
    assert [told(met) for met in found[:4]] == [
        (set(), set()),
        (set(), set()),
        ({0, 1}, set()),
        ({2}, {0, 1}),
    ]
    assert found[4:] == [[~2, 2], [~2]]
    assert run.list_of.tolist() == [-1, 0]


def test_entered_in_both_dimensions_at_once_is_reported_once() -> None:
    run = Run(world([{0: [(3, 5), (3, 5)]}], 2, Random(0)), 1, room=100)
    found = run.walk([(0, 0), (4, 4), (9, 9), (4, 0), (4, 4), (0, 4), (9, 4), (4, 4)])
    assert found == [[], [0], [~0], [], [0], [~0], [], [0]]
