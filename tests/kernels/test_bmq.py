"""What a value crosses, against the formulas of section 3.3 and the difference of two evaluations."""

from __future__ import annotations

import collections
import itertools
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from limen.kernels.bmq import LANES, LIVE, SHORT, cross
from limen.kernels.borders import apart, nearest
from limen.kernels.chain import FIRST, LATE, PLAIN, RETURNED
from limen.testing.strategies import INT64

from .test_borders import SPREADS, Built, Ranges, build, crowd, probes

fewer = settings(max_examples=settings.default.max_examples // 2)
fewest = settings(max_examples=settings.default.max_examples // 8)

CANARY = -77


class Run:
    """Entities on their way through the lists of one index, a batch at a time."""

    def __init__(self, built: Built, entities: int, *, room: int = 0, more: int = 1) -> None:
        self.built = built
        self.at = np.zeros(entities, np.int32)
        self.list_of = np.zeros(entities, np.int32)
        self.room, self.more = room, more
        self.marks = np.zeros(built.most, np.uint8)
        self.marks[[q for ranges in built.lists for q in ranges]] = LIVE
        self.accessed = np.zeros(1, np.int64)
        self.stops = 0

    def cross(self, who: list, xs: list, lists: list, order: list, flags: list) -> list[list[int]]:
        """By place in order: what is found. There is little room, and more whenever it is out."""
        n, before = len(order), self.marks.copy()
        ends = np.full(n + 1, CANARY, np.int64)
        ends[0] = 0
        done, room = 0, self.room + LANES
        found = np.full(room + 32, CANARY, np.int32)
        arguments = (
            np.array(who, np.int32),
            np.array(xs, np.int64),
            np.array(lists, np.int32),
            np.array(order, np.int64),
        )
        while True:
            stopped = cross(
                self.built.rs,
                self.marks,
                *arguments,
                done,
                np.array(flags, np.uint8),
                self.at,
                self.list_of,
                ends,
                found[:room],
                self.accessed,
            )
            assert (found[room:] == CANARY).all()
            assert (self.marks == before).all()
            assert done <= stopped <= n
            done = stopped
            if done == n:
                break
            self.stops += 1
            room += self.more
            larger = np.full(room + 32, CANARY, np.int32)
            larger[: ends[done]] = found[: ends[done]]
            found = larger
        assert (np.diff(ends) >= 0).all()
        return [found[i:j].tolist() for i, j in itertools.pairwise(ends.tolist())]

    def walk(self, xs: list[int]) -> list[list[int]]:
        """One entity's values, one after the other."""
        n = len(xs)
        return self.cross([0] * n, xs, [], list(range(n)), [FIRST] + [PLAIN] * (n - 1))


def inside(ranges: Ranges, x: int) -> set[int]:
    return {q for q, (lo, hi) in ranges.items() if lo <= x <= hi}


def told(found: list[int]) -> tuple[set[int], set[int]]:
    """Entered and left; each query once."""
    assert len(set(found)) == len(found)
    return {q for q in found if q >= 0}, {~q for q in found if q < 0}


# -- section 3.3 ---------------------------------------------------------------------------------


def rs_nodes(ranges: Ranges) -> list[tuple[int, set[int], set[int]]]:
    """A value in each node's range, +DQSet and -DQSet; a range here ends before its hi + 1."""
    lower = {lo for lo, _ in ranges.values()} | {hi + 1 for _, hi in ranges.values()}
    borders = sorted(b for b in lower if INT64[0] < b <= INT64[1])
    nodes = [((borders[0] - 1) if borders else 0, set(), set())]
    for b in borders:
        plus = {q for q, (lo, _) in ranges.items() if lo == b}
        minus = {q for q, (_, hi) in ranges.items() if hi + 1 == b}
        nodes.append((b, plus, minus))
    return nodes


def formulas(nodes: list, j: int, h: int) -> tuple[set[int], set[int]]:
    """QSet+ and QSet- from node j to node h."""
    visited = range(j + 1, h + 1) if j < h else range(j, h, -1)
    plus = set().union(*(nodes[i][1] for i in visited))
    minus = set().union(*(nodes[i][2] for i in visited))
    return (plus - minus, minus - plus) if j < h else (minus - plus, plus - minus)


@fewest
@given(st.integers(0, 12), st.sampled_from(SPREADS), st.integers(0, 2**32))
def test_the_formulas_of_the_paper(n: int, spread: int, seed: int) -> None:
    random = Random(seed)
    ranges = crowd(random, n, spread)
    nodes = rs_nodes(ranges)
    ways = list(itertools.product(range(len(nodes)), repeat=2))
    visits = [i for way in ways for i in way]
    found = Run(build([ranges], random), 1, room=10_000).walk([nodes[i][0] for i in visits])
    assert told(found[0]) == (inside(ranges, nodes[0][0]), set())
    for (j, h), met in zip(itertools.pairwise(visits), found[1:], strict=True):
        before, after = inside(ranges, nodes[j][0]), inside(ranges, nodes[h][0])
        assert told(met) == formulas(nodes, j, h) == (after - before, before - after)


def test_figure_2() -> None:
    """Q5 begins and the others end on the way from N5 to N8; from N5 to N2, the way back."""
    ranges = {1: (20, 39), 2: (10, 69), 3: (20, 29), 4: (30, 59), 5: (50, 99)}
    run = Run(build([ranges], Random(0)), 1, room=100)
    found = run.walk([45, 75, 45, 25])
    assert [told(met) for met in found] == [
        ({2, 4}, set()),
        ({5}, {2, 4}),
        ({2, 4}, {5}),
        ({1, 3}, {4}),
    ]


# -- short ways and long jumps -------------------------------------------------------------------


@st.composite
def runs(draw: st.DrawFn) -> tuple[Built, int]:
    """Lists of groups: each its own queries; few or many."""
    size = st.one_of(st.integers(0, 6), st.integers(0, 90), st.integers(200, 500))
    sizes = draw(st.lists(size, min_size=1, max_size=3))
    spread = draw(st.sampled_from(SPREADS))
    seed = draw(st.integers(0, 2**32))
    random = Random(seed)
    firsts = [0, *itertools.accumulate(sizes)]
    lists = [crowd(random, n, spread, first) for n, first in zip(sizes, firsts, strict=False)]
    return build(lists, random), seed


@fewer
@given(runs(), st.integers(0, 40), st.integers(1, 3000))
def test_crossings_are_the_difference_of_two_evaluations(
    drawn: tuple, room: int, more: int
) -> None:
    """Entities in groups and in none, new ones, late and returned ones; batch after batch."""
    built, seed = drawn
    random = Random(seed)
    entities = 4
    run = Run(built, entities, room=room, more=more)
    last: dict[int, tuple[int, int]] = {}  # list and value
    groups = random.choice([[0], range(-1, len(built.lists)), [len(built.lists) - 1]])

    def there(of: int, x: int) -> set[int]:
        return inside(built.lists[of], x) if of >= 0 else set()

    for _ in range(3):
        xs = probes(built, random, 12)
        n = len(xs)
        who = [random.randrange(entities) for _ in xs]
        lists = [random.choice(groups) for _ in xs]
        order = random.sample(range(n), n)
        flags, expected = [LATE] * n, []
        for i in order:
            s = who[i]
            if random.randint(0, 9) > 0:
                flags[i] = FIRST if s not in last else random.choice([PLAIN] * 6 + [RETURNED])
            before = there(*last[s]) if s in last else set()
            after = there(lists[i], xs[i])
            if flags[i] == LATE:
                expected.append((set(), set(), False))
                continue
            whole = flags[i] == RETURNED or s not in last or last[s][0] != lists[i]
            if not whole:
                before, after = before - after, after - before
            expected.append((after, before, whole))
            last[s] = lists[i], xs[i]
        alone = groups == [0] and random.random() < 0.5
        found = run.cross(who, xs, [] if alone else lists, order, flags)
        for met, (entered, left, whole) in zip(found, expected, strict=True):
            assert len(met) == len(entered) + len(left)
            assert told(met) == (entered, left)
            assert not whole or all(q < 0 for q in met[: len(left)])  # all of the old ones first
        for s, (of, x) in last.items():
            assert run.list_of[s] == of
            assert run.at[s] == (built.position(of, x) if of >= 0 else -1)


def shapes() -> dict[str, Ranges]:
    random = Random(3)
    narrow = {q: (lo := random.randrange(40_000), lo + random.randrange(60)) for q in range(700)}
    wide = {q: (lo := random.randrange(20_000), lo + 15_000) for q in range(700)}
    return {
        "narrow": narrow,
        "wide": wide,
        "all alike": dict.fromkeys(range(200), (10_000, 30_000)),
        "one after the other": {q: (50 * q, 50 * q + 49) for q in range(700)},
        "all nested": {q: (10 * q, 40_000 - 10 * q) for q in range(700)},
        "in a row": {q: (5 * q, 20_000 + 5 * q) for q in range(700)},
        "no ends": {q: (INT64[0], 40 * q) if q % 2 else (40 * q, INT64[1]) for q in range(700)},
        "mixed": {q: (narrow if q % 3 else wide)[q] for q in range(700)},
    }


def ways_taken(built: Built, xs: list[int]) -> collections.Counter[str]:
    """Which ways are taken by one entity: the rules of the kernel, told in the plain."""
    rs, taken = built.rs, collections.Counter[str]()
    places = [built.position(0, x) for x in xs]
    for p, to in itertools.pairwise(places):
        long = abs(to - p)
        ends = [nearest(rs, 0, np.int64(p)), nearest(rs, 0, np.int64(to))]
        if long == 0:
            taken["stays"] += 1
        elif long <= SHORT or long <= ends[0][2] + ends[1][2]:
            far = "long" if long > SHORT else "short"
            copied = apart(rs, np.int64(min(p, to)), np.int64(max(p, to)))
            taken[f"{far} walk, {'copied' if copied else 'marked'}"] += 1
        else:
            for place, (frame, at, _) in zip((p, to), ends, strict=True):
                kind = "behind" if at > place else "at" if at == place else "before"
                copied = at < place and apart(rs, np.int64(at), np.int64(place))
                taken[f"frame {kind}, {'copied' if copied else 'marked'}"] += 1
                taken["no frame"] += frame < 0
            taken["common left out" if long < rs.widest[0] else "nothing in common"] += 1
    return taken


def test_long_jumps() -> None:
    taken = collections.Counter[str]()
    for name, ranges in shapes().items():
        random = Random(name)
        built = build([ranges], random)
        near = sorted({key + d for key in built.keys for d in (-1, 0)})
        xs = [random.choice(near)]
        for _ in range(150):
            step = random.choice([3, 40, 300, 1500, len(near)])
            place = near.index(xs[-1]) + random.randint(-step, step)
            xs.append(near[min(max(place, 0), len(near) - 1)])
        run = Run(built, 1, room=5000, more=5000)
        found = run.walk(xs)
        assert told(found[0]) == (inside(ranges, xs[0]), set())
        for (x, y), met in zip(itertools.pairwise(xs), found[1:], strict=True):
            before, after = inside(ranges, x), inside(ranges, y)
            assert told(met) == (after - before, before - after), name
        taken += ways_taken(built, xs)
    assert {
        "stays",
        "short walk, copied",
        "short walk, marked",
        "long walk, copied",
        "long walk, marked",
        "frame before, copied",
        "frame before, marked",
        "frame behind, marked",
        "no frame",
        "common left out",
        "nothing in common",
    } <= set(taken), taken


def test_a_jump_costs_no_more_than_the_cheaper_way() -> None:
    for ranges in shapes().values():
        built = build([ranges], Random(1))
        xs = [0, 39_000, 20_000, 20_100, 0, 10_000, 10_000]
        run = Run(built, 1, room=20_000)
        run.walk(xs[:1])
        for x, y in itertools.pairwise(xs):
            p, to = built.position(0, x), built.position(0, y)
            frames = sum(nearest(built.rs, 0, np.int64(at))[2] for at in (p, to))
            before = run.accessed[0]
            run.cross([0], [y], [], [0], [PLAIN])
            walk = abs(to - p)
            assert run.accessed[0] - before == (walk if walk <= SHORT else min(walk, frames))


def test_a_query_that_just_reaches_over_a_jump() -> None:
    ranges = {q: (20 * q, 20 * q + 5) for q in range(1, 400)} | {0: (10, 8000)}
    built = build([ranges], Random(2))
    run = Run(built, 1, room=1000)
    for x, y, z in [(10, 8000, 10), (9, 8001, 9), (10, 8001, 10), (9, 8000, 9)]:
        found = run.walk([x, y, z])
        for (a, b), met in zip([(x, y), (y, z)], found[1:], strict=True):
            before, after = inside(ranges, a), inside(ranges, b)
            assert told(met) == (after - before, before - after)
    assert built.position(0, 8000) - built.position(0, 10) + 1 == built.rs.widest[0]
    assert run.accessed[0] < 12 * SHORT  # none is walked


@pytest.mark.parametrize("more", [1, 7, 100])
def test_too_little_room(more: int) -> None:
    """The kernel stops before a reading that might find more than there is room for."""
    built = build([shapes()["mixed"]], Random(5))
    random = Random(more)
    xs = [random.randrange(45_000) for _ in range(40)]
    tight, roomy = Run(built, 1, more=more), Run(built, 1, room=100_000)
    assert tight.walk(xs) == roomy.walk(xs)
    assert tight.stops > 5 and roomy.stops == 0
    assert tight.accessed[0] == roomy.accessed[0]


def test_a_reading_that_is_late_or_in_no_list() -> None:
    built = build([{0: (3, 5), 1: (4, 9)}, {2: (0, 100)}], Random(0))
    run = Run(built, 2, room=100)
    flags = [FIRST, LATE, PLAIN, PLAIN, RETURNED, PLAIN]
    found = run.cross([0] * 6, [4, 50, 4, 4, 4, 5], [-1, 0, 0, 1, 1, -1], list(range(6)), flags)
    assert [told(met) for met in found[:4]] == [
        (set(), set()),
        (set(), set()),
        ({0, 1}, set()),
        ({2}, {0, 1}),
    ]
    assert found[4:] == [[~2, 2], [~2]]
    assert run.at.tolist() == [-1, 0] and run.list_of.tolist() == [-1, 0]


def test_no_queries() -> None:
    run = Run(build([{}], Random(0)), 1)
    assert run.walk([0, INT64[0], INT64[1], 7]) == [[], [], [], []]
    assert run.accessed[0] == 0
