"""DiffRMQ over the indexes of the paper finds what BMQ-Index finds, and counts what it looks at."""

from __future__ import annotations

import itertools
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from limen.borders import diff_rmq
from limen.borders.bmq import BMQIndex, Crossings, Places
from limen.borders.diff_rmq import DiffRMQ
from limen.borders.streams import NO_FLOOR, Streams
from limen.indexes import create
from limen.indexes.cei import CEI
from limen.testing.strategies import ordinal_ranges, ordinals

from .by_hand import Crossed, Queries, Query, Reading, World, inside

every_index = pytest.mark.parametrize("name", ["cei", "is-list"])
fewer = settings(max_examples=settings.default.max_examples // 3)

near = st.integers(-3, 25)
short = st.tuples(near, st.integers(0, 6)).map(lambda p: (p[0], p[0] + p[1]))
changes = st.one_of(
    st.tuples(st.just("insert"), st.lists(st.one_of(short, ordinal_ranges()), max_size=10)),
    st.tuples(st.just("delete"), st.lists(st.integers(0, 30), max_size=5)),
)
readings = st.builds(
    Reading,
    st.integers(0, 3),
    st.tuples(st.one_of(near, near, ordinals())),
    st.integers(0, 9),
    st.just(0),
)
batches = st.tuples(
    st.just("cross"),
    st.tuples(st.lists(readings, max_size=15), st.sampled_from([NO_FLOOR, NO_FLOOR, 4])),
)
histories = st.lists(st.one_of(changes, batches, batches), min_size=1, max_size=8)


def events(found: Crossings) -> list[tuple[set[int], set[int]]]:
    """By reading, in order: entered and left, each query once."""
    assert found.ends[0] == 0 and found.ends[-1] == len(found.found)
    split = []
    for i, j in itertools.pairwise(found.ends.tolist()):
        met = found.found[i:j].tolist()
        assert len(set(met)) == len(met)
        split.append(({q for q in met if q >= 0}, {~q for q in met if q < 0}))
    return split


def looked_at(queries: Queries, readings: list[Reading], before: dict, told: list[Crossed]) -> int:
    """How many queries match either value of every reading."""
    last, total = {s: seen.values for s, seen in before.items()}, 0
    for crossed in told:
        if not crossed.late:
            reading = readings[crossed.reading]
            if reading.entity in last:
                total += len(inside(queries, 0, last[reading.entity]))
            total += len(inside(queries, 0, reading.values))
            last[reading.entity] = reading.values
    return total


class Both:
    """A stream table with BMQ-Index and DiffRMQ side by side."""

    def __init__(self, name: str) -> None:
        self.plain, self.bmq = create(name), BMQIndex()
        self.diff = DiffRMQ(self.plain)
        self.queries: Queries = {}
        self.streams, self.places, self.world = Streams(), Places(1), World()

    def insert(self, ranges: dict[int, tuple[int, int]]) -> None:
        ids = np.array(list(ranges), np.int32)
        ends = np.array(list(ranges.values()), np.int64).reshape(-1, 2)
        for index in (self.plain, self.bmq):
            index.insert(ids, ends[:, 0].copy(), ends[:, 1].copy())
        self.queries |= {q: Query(0, (ends,)) for q, ends in ranges.items()}

    def delete(self, ids: list[int]) -> None:
        for index in (self.plain, self.bmq):
            index.delete(np.array(ids, np.int32))
        for q in ids:
            del self.queries[q]

    def take(self, readings: list[Reading], floor: int = NO_FLOOR) -> None:
        self.streams.grow(max((r.entity + 1 for r in readings), default=0))
        batch = self.streams.arrange(
            np.array([r.entity for r in readings], np.int32),
            np.array([r.values for r in readings], np.int64).reshape(-1, 1),
            np.array([r.time for r in readings], np.int64),
            floor=floor,
        )
        accessed, before = self.diff.accessed, dict(self.world.seen)
        found = self.diff.cross(batch, self.streams)
        by_borders = self.bmq.cross(batch, self.streams, self.places)
        self.streams.settle(batch)
        told = self.world.take(self.queries, readings, floor)
        assert found.order.tolist() == by_borders.order.tolist() == [c.reading for c in told]
        assert events(found) == events(by_borders) == [(c.entered, c.left) for c in told]
        expected = looked_at(self.queries, readings, before, told)
        assert self.diff.accessed - accessed == expected


@every_index
@fewer
@given(history=histories)
def test_histories(name: str, history: list) -> None:
    both, fresh, clock = Both(name), 0, 0
    for step, body in history:
        if step == "insert":
            both.insert({fresh + i: ends for i, ends in enumerate(body)})
            fresh += len(body)
        elif step == "delete":
            known = list(both.queries)
            both.delete(list(dict.fromkeys(known[i % len(known)] for i in body if known)))
        else:
            rows, floor = body
            rows = [r._replace(time=clock + r.time) for r in rows]
            both.take(rows, floor if floor == NO_FLOOR else clock + floor)
            clock += 4


@every_index
def test_a_batch_in_several_parts(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(diff_rmq, "AT_A_TIME", 7)
    random, both = Random(3), Both(name)
    both.insert({q: (lo := random.randrange(500), lo + random.randrange(90)) for q in range(200)})
    for turn in range(5):
        n = [30, 7, 14, 1, 0][turn]
        both.take(
            [
                Reading(random.randrange(5), (random.randrange(600),), turn * 50 + i, 0)
                for i in range(n)
            ]
        )


@every_index
def test_many_crossings(name: str) -> None:
    both = Both(name)
    both.insert({q: (q % 7, 1000 + q) for q in range(700)})
    both.take([Reading(0, (x,), t, 0) for t, x in enumerate([-1, 10, 5000, 3, 1300, 1200, 0, -1])])


def test_no_entity_is_forgotten() -> None:
    diff, streams = DiffRMQ(CEI()), Streams()
    streams.grow(1)
    batch = streams.arrange(
        np.zeros(2, np.int32), np.array([[1], [2]]), np.array([0, 9]), patience=5
    )
    with pytest.raises(ValueError, match="DiffRMQ does not forget entities"):
        diff.cross(batch, streams)
