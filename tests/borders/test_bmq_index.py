"""Histories of an index, stream tables and readings, against two evaluations for every reading."""

from __future__ import annotations

import copy
import itertools
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from limen.borders import bmq
from limen.borders.bmq import BMQIndex, Crossings, Places
from limen.borders.streams import NO_FLOOR, Streams
from limen.kernels.bmq import LIVE
from limen.kernels.chain import LATE, RETURNED

from . import by_hand
from .by_hand import INT64, Box, Crossed, Queries, Query, Reading, World

GROUPS = 3
half = settings(max_examples=settings.default.max_examples // 2)
fewer = settings(max_examples=settings.default.max_examples // 5)


class Table:
    """A stream table, its places in one index, and what should be in it."""

    def __init__(self, dimensions: int) -> None:
        self.dimensions = dimensions
        self.streams, self.places = Streams(dimensions), Places(dimensions)
        self.world = World()

    def groups_of(self, rows: np.ndarray) -> np.ndarray:
        seen = self.world.seen
        return np.array([seen[s].group if s in seen else 0 for s in rows.tolist()], np.int32)

    def take(
        self,
        index: BMQIndex,
        queries: Queries,
        readings: list[Reading],
        *,
        timed: bool = True,
        grouped: bool = True,
        floor: int = NO_FLOOR,
        patience: int = -1,
    ) -> tuple[Crossings, list[Crossed]]:
        """A batch: what the index finds, and what it should."""
        n = len(readings)
        self.streams.grow(max((r.entity + 1 for r in readings), default=0))
        batch = self.streams.arrange(
            np.array([r.entity for r in readings], np.int32),
            np.array([r.values for r in readings], np.int64).reshape(n, self.dimensions),
            np.array([r.time for r in readings], np.int64) if timed else None,
            floor=floor,
            patience=patience,
        )
        groups = np.array([r.group for r in readings], np.int32) if grouped else None
        found = index.cross(
            batch, self.streams, self.places, groups, self.groups_of if grouped else None
        )
        self.streams.settle(batch)
        expected = self.world.take(queries, readings, floor, patience)
        assert batch.order.tolist() == [crossed.reading for crossed in expected]
        assert batch.late == sum(crossed.late for crossed in expected)
        for crossed in expected:
            assert (batch.flags[crossed.reading] == LATE) == crossed.late
            assert (batch.flags[crossed.reading] == RETURNED) == crossed.returned
        return found, expected


def compare(found: Crossings, expected: list[Crossed]) -> None:
    assert found.order.tolist() == [crossed.reading for crossed in expected]
    assert len(found.ends) == len(expected) + 1
    assert found.ends[0] == 0 and found.ends[-1] == len(found.found)
    for crossed, (i, j) in zip(expected, itertools.pairwise(found.ends.tolist()), strict=True):
        met = found.found[i:j].tolist()
        assert len(met) == len(crossed.entered) + len(crossed.left)
        if crossed.returned:
            left = len(crossed.left)
            assert {~q for q in met[:left]} == crossed.left
            assert set(met[left:]) == crossed.entered
        assert {q for q in met if q >= 0} == crossed.entered
        assert {~q for q in met if q < 0} == crossed.left
    readings, queries, entered = (column.tolist() for column in found.rows())
    rows = [(crossed.reading, q, True) for crossed in expected for q in crossed.entered]
    rows += [(crossed.reading, q, False) for crossed in expected for q in crossed.left]
    assert sorted(zip(readings, queries, entered, strict=True)) == sorted(rows)


def put(index: BMQIndex, call: str, queries: Queries, grouped: bool = True) -> None:
    boxes = np.array([box for _, box in queries.values()], np.int64)
    boxes = boxes.reshape(len(queries), index.dimensions, 2)
    groups = np.array([group for group, _ in queries.values()], np.int32) if grouped else None
    getattr(index, call)(np.array(list(queries), np.int32), boxes[:, :, 0], boxes[:, :, 1], groups)


def check_shape(index: BMQIndex, queries: Queries) -> None:
    """The RS lists are those of the definition, the frames those of no history."""
    assert len(index) == len(queries)
    for group in range(max((q.group for q in queries.values()), default=0) + 1):
        for k in range(index.dimensions):
            assert index.nodes(k, group) == by_hand.nodes(queries, k, group)
    marks = index.parts()[0]["marks"]
    assert {*np.flatnonzero(marks).tolist()} == {*queries}
    assert all(mark == LIVE for mark in marks[marks != 0])


# -- histories -----------------------------------------------------------------------------------

near = st.integers(0, 12)
extremes = st.sampled_from([INT64[0], INT64[0] + 1, -(2**62), 2**40, INT64[1] - 1, INT64[1]])
numbers = st.one_of(near, near, near, st.integers(-70_000, 70_000), extremes)
pairs = st.tuples(numbers, numbers).map(lambda p: (min(p), max(p)))
short = st.tuples(near, st.integers(0, 3)).map(lambda p: (p[0], p[0] + p[1]))
ranges = st.one_of(short, short, pairs, numbers.map(lambda x: (x, x)))


@st.composite
def steps(draw: st.DrawFn, dimensions: int, groups: int) -> tuple[str, Any]:
    kind = draw(st.sampled_from(["insert", "delete", "cross", "cross", "cross", "build", "saved"]))
    if kind in ("insert", "build"):
        box = st.tuples(*[ranges] * dimensions)
        query = st.builds(Query, st.integers(0, groups - 1), box)
        return kind, draw(st.lists(query, max_size=10))
    if kind == "delete":
        return kind, draw(st.lists(st.integers(0, 30), max_size=6))
    if kind == "saved":
        return kind, None
    reading = st.builds(
        Reading,
        st.integers(0, 4),
        st.tuples(*[numbers] * dimensions),
        st.integers(0, 9),
        st.integers(-1, groups + 1) if groups > 1 else st.just(0),
    )
    floor = draw(st.sampled_from([NO_FLOOR, NO_FLOOR, NO_FLOOR, 5]))
    return kind, (draw(st.integers(0, 1)), draw(st.lists(reading, max_size=15)), floor)


@st.composite
def histories(draw: st.DrawFn) -> tuple:
    dimensions, groups = draw(st.integers(1, 3)), draw(st.sampled_from([1, 1, GROUPS]))
    history = draw(st.lists(steps(dimensions, groups), min_size=1, max_size=10))
    timed = draw(st.booleans())
    patience = draw(st.sampled_from([-1, -1, 0, 2, 8])) if timed else -1
    return dimensions, groups, timed, patience, history


@given(histories())
def test_histories(drawn: tuple) -> None:
    """Registration and deregistration between batches, two stream tables, groups, late readings."""
    dimensions, groups, timed, patience, history = drawn
    index, queries, fresh = BMQIndex(dimensions), {}, 0
    tables, kept, clock = [Table(dimensions), Table(dimensions)], [], 0
    for step, body in history:
        if step == "delete":
            gone = list(dict.fromkeys(list(queries)[i % len(queries)] for i in body if queries))
            index.delete(np.array(gone, np.int32))
            for q in gone:
                del queries[q]
        elif step == "saved":
            arrays, facts = index.parts()
            index = BMQIndex.of_parts({k: a.copy() for k, a in arrays.items()}, dict(facts))
            for table in tables:
                table.places = Places(dimensions, table.streams.size)
        elif step == "cross":
            which, readings, floor = body
            if timed:
                readings = [r._replace(time=clock + r.time) for r in readings]
                floor = floor if floor == NO_FLOOR else clock + floor
            else:
                readings, floor = [r._replace(time=0) for r in readings], NO_FLOOR
            clock += 4
            found, expected = tables[which].take(
                index,
                queries,
                readings,
                timed=timed,
                grouped=groups > 1,
                floor=floor,
                patience=patience,
            )
            compare(found, expected)
            kept.append((found, expected))
        else:
            new = {fresh + i: query for i, query in enumerate(body)}
            fresh += len(body)
            put(index, step, new, grouped=groups > 1)
            queries = new if step == "build" else queries | new
        check_shape(index, queries)
    for found, expected in kept:  # a later batch does not write over an earlier one
        compare(found, expected)


@fewer
@given(
    st.lists(st.integers(0, 700), min_size=1, max_size=3),
    st.integers(1, 3),
    st.sampled_from([1, GROUPS]),
    st.integers(0, 2**32),
)
def test_many_queries(sizes: list[int], dimensions: int, groups: int, seed: int) -> None:
    """Long jumps and short ones, with frames on the way; queries come and go in bulk."""
    random = Random(seed)
    spread = random.choice([50, 5000, 10**6, 2**40])
    index, queries, table = BMQIndex(dimensions), {}, Table(dimensions)
    free = list(range(2500))
    random.shuffle(free)
    for size in sizes:
        new = {}
        for _ in range(size):
            box = []
            for _ in range(dimensions):
                lo = random.randint(0, spread)
                wide = random.choice([spread // 500, spread // 500, spread // 20, spread // 2])
                hi = lo + random.randint(0, wide)
                kind = random.randint(0, 60)
                box.append((INT64[0] if kind == 0 else lo, INT64[1] if kind == 1 else hi))
            new[free.pop()] = Query(random.randrange(groups), tuple(box))
        put(index, "insert", new)
        queries |= new
        gone = random.sample(list(queries), len(queries) // 5)
        index.delete(gone)
        for q in gone:
            del queries[q]
            free.append(q)
        check_shape(index, queries)
        readings, at = [], {s: [spread // 2] * dimensions for s in range(4)}
        for time in range(30):
            s = random.randrange(4)
            step = random.choice([spread // 100, spread // 10, spread])
            at[s] = [x + random.randint(-step, step) * random.randint(0, 1) for x in at[s]]
            group = 0 if random.random() < 0.7 else random.randrange(groups)
            readings.append(Reading(s, tuple(at[s]), time // 2, group))
        last = max((seen.time for seen in table.world.seen.values()), default=0)
        readings = [r._replace(time=r.time + last) for r in readings]
        compare(*table.take(index, queries, readings, patience=random.choice([-1, 3])))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("dimensions", [2, 3])
def test_short_steps_among_many_strips(
    dimensions: int, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Values on and beside borders and cuts: many a step leaves its room by as little as can be."""
    for limit in ("MOST_LISTS", "MOST_CORNERS", "REACH"):  # strips although there are few queries
        monkeypatch.setattr(bmq, limit, 100)
    monkeypatch.setattr(bmq, "MOST_STRIPS", 8)
    random = Random(seed)
    spread = 400 if seed % 2 else 10**6
    queries = {}
    for q in range(90):
        ends = [(lo := random.randrange(spread), lo + random.randrange(spread // 9))]
        ends += [(lo := random.randrange(spread), lo + 5) for _ in range(dimensions - 1)]
        random.shuffle(ends)
        queries[q] = Query(random.randrange(2), tuple(ends))
    index, table = BMQIndex(dimensions), Table(dimensions)
    put(index, "build", queries)
    assert index._n_strips == 8
    known = [{*cuts.tolist()} for cuts in index._cuts]
    for k, places in enumerate(known):
        places.update(end for _, box in queries.values() for end in box[k])
    places = [sorted(some) for some in known]
    at = [[random.choice(some) for some in places] for _ in range(12)]
    for time in range(25):
        readings = []
        for _ in range(30):
            s = random.randrange(len(at))
            for k in range(dimensions):
                near = min(
                    range(len(places[k])), key=lambda i, k=k, s=s: abs(places[k][i] - at[s][k])
                )
                near = max(0, min(len(places[k]) - 1, near + random.choice([-1, 0, 0, 1])))
                if random.random() < 0.7:
                    at[s][k] = places[k][near] + random.choice([-1, 0, 1])
            readings.append(Reading(s, tuple(at[s]), time, 0 if random.random() < 0.9 else 1))
        compare(*table.take(index, queries, readings))
        for s, seen in table.world.seen.items():
            for k, x in enumerate(seen.values):
                strip, (low, high) = table.places.strips[s, k], table.places.rooms[s, k]
                cuts = [INT64[0], *index._cuts[k].tolist(), INT64[1]]
                assert cuts[strip] <= low <= x <= high <= cuts[strip + 1]
                assert high < cuts[strip + 1] or strip + 2 == len(cuts)


def boxes(random: Random, n: int, first: int, side: int, offset: int = 0) -> Queries:
    found = {}
    for q in range(first, first + n):
        low = [offset + random.randrange(10**6) for _ in "xy"]
        found[q] = Query(0, tuple((lo, lo + side) for lo in low))
    return found


def test_strips_are_chosen_anew_for_wide_queries() -> None:
    random = Random(1)
    index = BMQIndex(2)
    small, wide = boxes(random, 4000, 0, 1000), boxes(random, 4000, 4000, 500_000)
    put(index, "build", small)
    assert index._n_strips > 16
    put(index, "insert", wide)
    at_once = BMQIndex(2)
    put(at_once, "build", small | wide)
    assert index.nbytes < 1.5 * at_once.nbytes
    one_by_one = BMQIndex(2)
    put(one_by_one, "build", small)
    for q in range(4000, 8000, 100):
        put(one_by_one, "insert", {i: wide[i] for i in range(q, q + 100)})
        assert one_by_one.nbytes < 6 * at_once.nbytes
    check_shape(one_by_one, small | wide)


def test_strips_are_chosen_anew_for_many_groups() -> None:
    queries = boxes(Random(2), 4000, 0, 1000)
    index = BMQIndex(2)
    put(index, "build", queries)
    before = index.nbytes
    more = {4000 + g: Query(g, ((5, 9), (5, 9))) for g in range(1, 301)}
    put(index, "insert", more)
    assert index.nbytes < 2 * before
    check_shape(index, {q: queries[q] for q in range(4000)} | more)


def test_strips_are_chosen_anew_when_queries_move() -> None:
    index = BMQIndex(2)
    put(index, "build", boxes(Random(3), 4000, 0, 1000))
    for q in range(0, 4000, 500):
        moved = boxes(Random(q), 500, q, 1000, offset=10**7)
        index.delete(list(moved))
        put(index, "insert", moved)
    assert (index._cuts >= 10**7).mean() > 0.5 and index._n_strips > 16


def random_index(dimensions: int = 1, n: int = 300) -> tuple[BMQIndex, Queries]:
    random = Random(dimensions)
    queries = {}
    for q in range(n):
        box: Box = tuple(
            (lo := random.randrange(2000), lo + random.randrange(100)) for _ in range(dimensions)
        )
        queries[q] = Query(random.randrange(GROUPS), box)
    index = BMQIndex(dimensions)
    put(index, "build", queries)
    return index, queries


@pytest.mark.parametrize("dimensions", [1, 2])
def test_a_batch_that_finds_more_than_there_is_room_for(dimensions: int) -> None:
    """Every reading enters or leaves all queries: no batch before has found so much."""
    n = 500
    queries = {q: Query(0, ((0, 10),) * dimensions) for q in range(n)}
    index, table = BMQIndex(dimensions), Table(dimensions)
    put(index, "build", queries)
    for _ in range(2):
        readings = [Reading(0, (5 if i % 2 else 50,) * dimensions, 0, 0) for i in range(101)]
        found, expected = table.take(index, queries, readings, timed=False, grouped=False)
        compare(found, expected)
    readings = [Reading(0, (5,) * dimensions, 0, 0), Reading(0, (50,) * dimensions, 0, 0)]
    compare(*table.take(index, queries, readings, timed=False))


def test_an_order_of_arrival_for_equal_times() -> None:
    queries = {1: Query(0, ((0, 10),)), 2: Query(0, ((20, 30),))}
    index, table = BMQIndex(), Table(1)
    put(index, "build", queries)
    readings = [Reading(0, (x,), time, 0) for x, time in [(25, 7), (5, 3), (25, 3), (5, 7)]]
    found, expected = table.take(index, queries, readings)
    compare(found, expected)
    assert found.order.tolist() == [1, 2, 0, 3]
    assert found.ends.tolist() == [0, 1, 3, 3, 5]


def test_a_returned_entity_leaves_all_and_enters_all() -> None:
    for dimensions in (1, 2):
        queries = {1: Query(0, ((0, 10),) * dimensions), 2: Query(0, ((5, 30),) * dimensions)}
        index, table = BMQIndex(dimensions), Table(dimensions)
        put(index, "build", queries)
        for time, x, met in [(0, 7, [1, 2]), (9, 20, [~1]), (20, 20, [~2, 2]), (40, 99, [~2])]:
            readings = [Reading(0, (x,) * dimensions, time, 0)]
            found, expected = table.take(index, queries, readings, patience=10)
            compare(found, expected)
            assert sorted(found.found.tolist()) == sorted(met)


def test_entities_of_several_tables_have_places_of_their_own() -> None:
    index, queries = random_index()
    random = Random(4)
    tables = [Table(1) for _ in range(3)]
    for turn in range(12):
        table = tables[turn % 3]
        readings = [
            Reading(random.randrange(5), (random.randrange(2100),), turn, random.randrange(GROUPS))
            for _ in range(8)
        ]
        compare(*table.take(index, queries, readings))
        if turn % 4 == 3:
            put(index, "insert", {500 + turn: Query(1, ((turn, 1500),))})
            queries[500 + turn] = Query(1, ((turn, 1500),))
            index.delete([turn])
            del queries[turn]


def test_a_group_that_comes_later() -> None:
    """A reading in a group that no query is in yet; when one is, the entity is where it was."""
    for dimensions in (1, 2):
        index, table = BMQIndex(dimensions), Table(dimensions)
        queries = {1: Query(0, ((0, 10),) * dimensions)}
        put(index, "build", queries)
        five, fifty = (5,) * dimensions, (50,) * dimensions
        compare(*table.take(index, queries, [Reading(0, five, 0, 7)]))
        compare(*table.take(index, queries, [Reading(0, five, 1, 0)]))
        compare(*table.take(index, queries, [Reading(0, five, 2, 7)]))
        queries[2] = Query(7, ((0, 10),) * dimensions)
        put(index, "insert", {2: queries[2]})
        check_shape(index, queries)
        found, expected = table.take(index, queries, [Reading(0, fifty, 3, 7)])
        compare(found, expected)
        assert found.found.tolist() == [~2]


def test_queries_without_a_lower_bound_stay_in_their_lists() -> None:
    """Also when there are more groups, and the lists of a dimension begin elsewhere."""
    below, above = (INT64[0], 5), (3, INT64[1])
    index, table, queries = BMQIndex(3), Table(3), {}
    for q, group in enumerate([0, 2, 1, 9, 4, 40]):
        queries[q] = Query(group, (below, above, below) if q % 2 else (above, below, INT64))
        put(index, "insert", {q: queries[q]})
        check_shape(index, queries)
        readings = [Reading(s, (4, 4, 4), q, s) for s in (0, 1, 2, 9, 4, 40)]
        readings += [Reading(s, (9, 1, -9), q, s) for s in (0, 1, 2, 9, 4, 40)]
        compare(*table.take(index, queries, readings))


def test_a_first_reading_in_no_group() -> None:
    for dimensions in (1, 2):
        index, table = BMQIndex(dimensions), Table(dimensions)
        queries = {1: Query(0, ((3, 5),) * dimensions)}
        put(index, "build", queries)
        for time, group, met in [(0, -1, []), (1, 0, [1]), (2, -1, [~1]), (3, -1, []), (4, 0, [1])]:
            readings = [Reading(0, (4,) * dimensions, time, group)]
            found, expected = table.take(index, queries, readings)
            compare(found, expected)
            assert found.found.tolist() == met


def test_what_is_looked_at_is_counted() -> None:
    """On a short way: the borders between the two values."""
    random = Random(6)
    queries = {q: Query(0, ((lo := random.randrange(99), lo + 9),)) for q in range(30)}
    index, table = BMQIndex(), Table(1)
    put(index, "build", queries)
    x = 50
    table.take(index, queries, [Reading(0, (x,), 0, 0)])
    keys = [key for _, ((lo, hi),) in queries.values() for key in (lo, hi + 1)]
    for time in range(1, 40):
        y, before = random.randrange(110), index.accessed
        table.take(index, queries, [Reading(0, (y,), time, 0)])
        assert index.accessed - before == sum(min(x, y) < key <= max(x, y) for key in keys)
        x = y
    put(index, "build", queries)
    assert index.accessed == 0


# -- registration --------------------------------------------------------------------------------


def test_nodes_are_split_and_merged() -> None:
    index = BMQIndex()
    assert index.nodes() == [(None, [], [])]
    index.insert([1], [10], [19])
    index.insert([2], [15], [19])
    index.insert([3], [10], [INT64[1]])
    index.insert([4], [INT64[0]], [14])
    assert index.nodes() == [(None, [4], []), (10, [1, 3], []), (15, [2], [4]), (20, [], [1, 2])]
    index.delete([1])
    assert index.nodes() == [(None, [4], []), (10, [3], []), (15, [2], [4]), (20, [], [2])]
    index.delete([2, 3])
    assert index.nodes() == [(None, [4], []), (15, [], [4])]
    index.delete([4])
    assert index.nodes() == [(None, [], [])]


@half
@given(st.integers(1, 3), st.integers(0, 200), st.integers(0, 2**32))
def test_at_once_and_one_by_one(dimensions: int, n: int, seed: int) -> None:
    random = Random(seed)
    spread = random.choice([20, 10**5, 2**61])
    queries = {}
    for q in random.sample(range(2 * n), n):
        box = [sorted(random.randint(-spread, spread) for _ in "ab") for _ in range(dimensions)]
        queries[q] = Query(random.randrange(GROUPS), tuple((lo, hi) for lo, hi in box))
    built, grown = BMQIndex(dimensions), BMQIndex(dimensions)
    put(built, "build", queries)
    waiting = list(queries)
    while waiting:
        some, waiting = waiting[: (size := random.randint(1, 60))], waiting[size:]
        put(grown, "insert", {q: queries[q] for q in some})
    for index in (built, grown):
        check_shape(index, queries)
    gone = random.sample(list(queries), n // 2)
    built.delete(gone)
    for q in gone:
        grown.delete([q])
        del queries[q]
    for index in (built, grown):
        check_shape(index, queries)


BAD: list[tuple[str, tuple, str]] = [
    ("insert", ([5], [[3]], [[2]]), r"id 5: lo \[3\] is above hi \[2\]"),
    ("insert", ([5], [3], [2]), r"id 5: lo \[3\] is above hi \[2\]"),
    ("insert", ([1], [0], [1]), "id 1 is already in the index"),
    ("insert", ([7, 2], [0, 0], [1, 1]), "id 2 is already in the index"),
    ("insert", ([6, 6], [0, 0], [1, 1]), "id 6 is given twice"),
    ("insert", ([-1], [0], [1]), "id -1 is negative"),
    ("insert", ([6], [0], [1], [-1]), "group -1 is negative"),
    ("insert", ([6], [0], [1], [0, 0]), "ids and groups differ in length: 1, 2"),
    ("insert", ([6, 7], [0], [1]), "lo and hi need 2 rows and 1 columns"),
    ("insert", ([6], [[0, 1]], [[1, 2]]), "lo and hi need 1 rows and 1 columns"),
    ("insert", ([2**32 + 5], [0], [1]), "4294967301 does not fit int32"),
    ("insert", ([5], [0.5], [1.5]), "integers are needed, not float64"),
    ("insert", ([5], [0], [2**63]), "9223372036854775808 does not fit int64"),
    ("build", ([5], [3], [2]), r"id 5: lo \[3\] is above hi \[2\]"),
    ("build", ([5, 5], [1, 1], [2, 2]), "id 5 is given twice"),
    ("build", ([6, 7], [0], [1]), "lo and hi need 2 rows and 1 columns"),
    ("build", ([5], [0.5], [1.5]), "integers are needed, not float64"),
    ("delete", ([9],), "id 9 is not in the index"),
    ("delete", ([3],), "id 3 is not in the index"),
    ("delete", ([1, 1],), "id 1 is given twice"),
    ("delete", ([1, -2],), "id -2 is not in the index"),
    ("delete", ([2**32 + 1],), "4294967297 does not fit int32"),
    ("delete", ([1.0],), "integers are needed, not float64"),
]


@pytest.mark.parametrize(("call", "arguments", "message"), BAD)
def test_bad_input_changes_nothing(call: str, arguments: tuple, message: str) -> None:
    index, table = BMQIndex(), Table(1)
    queries = {1: Query(0, ((0, 10),)), 2: Query(0, ((5, 8),)), 3: Query(1, ((5, 8),))}
    put(index, "build", queries)
    index.delete([3])
    del queries[3]
    compare(*table.take(index, queries, [Reading(0, (3,), 0, 0)]))
    before = copy.deepcopy({k: v for k, v in vars(index).items() if k != "_spare"})
    with pytest.raises(ValueError, match=message):
        getattr(index, call)(*(np.array(a) for a in arguments))
    after = vars(index)
    for name, value in before.items():
        same = np.array_equal(value, after[name]) if isinstance(value, np.ndarray) else None
        if name == "_rs":
            same = all(np.array_equal(a, b) for a, b in zip(value, after[name], strict=True))
        assert same or value == after[name], name
    check_shape(index, queries)
    compare(*table.take(index, queries, [Reading(0, (9,), 1, 0), Reading(0, (7,), 2, 0)]))


def test_bad_input_in_several_dimensions() -> None:
    index = BMQIndex(2)
    index.build([1], [[0, 0]], [[9, 9]])
    with pytest.raises(ValueError, match=r"id 2: lo \[3 8\] is above hi \[5 7\]"):
        index.insert([3, 2], [[0, 0], [3, 8]], [[1, 1], [5, 7]])
    with pytest.raises(ValueError, match="lo and hi need 2 rows and 2 columns"):
        index.insert([2, 3], [0, 0], [1, 1])
    check_shape(index, {1: Query(0, ((0, 9), (0, 9)))})
    with pytest.raises(ValueError, match="an index has one dimension at least, not 0"):
        BMQIndex(0)


def test_nothing_to_do_is_done() -> None:
    index, queries = random_index()
    before = index.parts()[0]
    put(index, "insert", {})
    index.delete(np.empty(0, np.int32))
    assert all(array is before[name] for name, array in index.parts()[0].items())
    check_shape(index, queries)
    found, expected = Table(1).take(index, queries, [])
    compare(found, expected)
    put(index, "build", {})
    check_shape(index, {})


# -- size and disk -------------------------------------------------------------------------------


def test_the_papers_bound_of_storage() -> None:
    """Two words a query and one a stream, and a fifth: frames and all."""
    n, domain, entities = 20_000, 1_000_000, 2_000
    rng = np.random.default_rng(1)
    lo = rng.integers(1, domain, n)
    hi = np.minimum(lo + domain // 1000, domain)
    index = BMQIndex()
    index.build(np.arange(n), lo, hi)
    streams, places = Streams(), Places(1, entities)
    streams.grow(entities)
    paper = 8 * (2 * n + entities)
    assert index.nbytes + places.nbytes + streams.values[:entities].nbytes <= 1.2 * paper
    assert index.nbytes >= n * 2 * 4  # all ids are counted


def test_places_count_the_words_in_use() -> None:
    for dimensions, strips_and_rooms in ((1, 0), (2, 2 * 4 + 4 * 8)):
        places = Places(dimensions)
        places.bring_to(1, 10)
        assert places.nbytes == 10 * (dimensions * 4 + strips_and_rooms + 4 + 1)


@pytest.mark.parametrize("dimensions", [1, 2, 3])
def test_an_index_is_the_sum_of_its_parts(dimensions: int) -> None:
    index, queries = random_index(dimensions)
    arrays, facts = index.parts()
    again = BMQIndex.of_parts({name: array.copy() for name, array in arrays.items()}, dict(facts))
    assert again.nbytes == index.nbytes
    check_shape(again, queries)
    first, second = Table(dimensions), Table(dimensions)
    random = Random(2)
    for turn in range(4):
        readings = [
            Reading(
                random.randrange(3),
                tuple(random.randrange(2100) for _ in range(dimensions)),
                turn,
                random.randrange(GROUPS),
            )
            for _ in range(10)
        ]
        for some, table in ((index, first), (again, second)):
            compare(*table.take(some, queries, readings))
    new = {400: Query(5, ((1, 2),) * dimensions)}
    put(again, "insert", new)
    again.delete([0])
    check_shape(again, {q: query for q, query in (queries | new).items() if q})
    check_shape(index, queries)
