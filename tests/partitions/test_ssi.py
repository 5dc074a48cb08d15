"""The stabbing set index in step with every kind of partition."""

from __future__ import annotations

from bisect import bisect_right
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from limen.partitions.hotspots import Hotspots
from limen.partitions.lazy import LazyPartition
from limen.partitions.partition import Changes, Partition
from limen.partitions.refined import RefinedPartition
from limen.partitions.ssi import StabbingSetIndex

from .by_hand import HISTORIES, Ends, Step, batches, steps

PARTITIONS = {
    "refined": lambda: RefinedPartition(0.5),
    "refined, seldom": lambda: RefinedPartition(50.0),
    "lazy": lambda: LazyPartition(0.5),
    "hotspots": lambda: Hotspots(0.25, 0.5),
}
partitions = pytest.mark.parametrize("made", PARTITIONS.values(), ids=PARTITIONS)
fewer = settings(max_examples=settings.default.max_examples // 4)


class Strict:
    """A set that nobody comes into twice and nobody leaves who is not in."""

    def __init__(self, ids: np.ndarray) -> None:
        assert ids.dtype == np.int32
        self.given = ids.tolist()
        self.ids = set(self.given)
        assert len(self.ids) == len(ids) > 0

    def add(self, ids: np.ndarray) -> None:
        assert len(ids) and ids.dtype == np.int32
        assert not self.ids & set(ids.tolist())
        self.ids |= set(ids.tolist())

    def remove(self, ids: np.ndarray) -> None:
        assert len(ids) and ids.dtype == np.int32
        assert self.ids >= set(ids.tolist())
        self.ids -= set(ids.tolist())


def put(partition: Partition, inside: Ends, kind: str, some: Ends) -> None:
    if kind == "delete":
        gone = [v for v in some if v in inside]
        partition.delete(gone)
        for v in gone:
            del inside[v]
        return
    if kind == "build":
        inside.clear()
    new = {v: ends for v, ends in some.items() if v not in inside}
    ends = np.array(list(new.values()), np.int64).reshape(-1, 2)
    getattr(partition, kind)(list(new), ends[:, 0], ends[:, 1])
    inside |= new


def in_step(index: StabbingSetIndex[Strict], partition: Partition, inside: Ends) -> None:
    groups = partition.groups()
    points = groups.point.tolist()
    assert len(index) == len(points)
    assert [point for point, _ in index.items()] == points
    for group, (point, structure) in zip(groups.group.tolist(), index.items(), strict=True):
        assert structure is index.structure(group)
        assert structure.ids == set(partition.members(group).tolist())
        assert all(inside[v][0] <= point <= inside[v][1] for v in structure.ids)
    assert sum(len(structure.ids) for _, structure in index.items()) == len(inside)
    for x in {0, 7, *points, *(p - 1 for p in points if p > -(2**63))}:
        place = bisect_right(points, x)
        below, above = index.around(x)
        names = groups.group.tolist()
        assert below == (names[place - 1] if place else None)
        assert above == (names[place] if place < len(points) else None)


@fewer
@given(st.sampled_from(list(PARTITIONS)), steps(), st.integers(0, 4))
def test_histories(name: str, history: list[Step], late: int) -> None:
    """The index is there from the beginning, or is made of a partition that is in use."""
    partition, inside = PARTITIONS[name](), {}
    for kind, some in history[:late]:
        put(partition, inside, kind, some)
    index = StabbingSetIndex(partition, Strict)
    in_step(index, partition, inside)
    for kind, some in history[late:]:
        put(partition, inside, kind, some)
        in_step(index, partition, inside)


@partitions
@pytest.mark.parametrize("most", [1, 9])
@pytest.mark.parametrize("name", ["disjoint", "chain", "at a boundary", "losing points", "any 0"])
def test_adversaries(made, most: int, name: str) -> None:
    partition, inside = made(), {}
    index = StabbingSetIndex(partition, Strict)
    for kind, some in batches(HISTORIES[name], most):
        put(partition, inside, kind, some)
        in_step(index, partition, inside)


class Cut(Strict):
    """Cut at its group's point: each of its intervals contains the point that it was told last."""

    ends: ClassVar[Ends] = {}  # of those that are in, or on their way in or out

    def __init__(self, ids: np.ndarray) -> None:
        super().__init__(ids)
        self.point: int | None = None

    def add(self, ids: np.ndarray) -> None:
        super().add(ids)
        self.look()

    def remove(self, ids: np.ndarray) -> None:
        super().remove(ids)
        self.look()

    def moved(self, point: int) -> None:
        assert type(point) is int
        self.point = point
        self.look()

    def look(self) -> None:
        assert all(self.ends[v][0] <= self.point <= self.ends[v][1] for v in self.ids)


@partitions
@pytest.mark.parametrize("most", [1, 9, 1000])
@pytest.mark.parametrize("name", HISTORIES)
def test_a_structure_that_is_cut_at_the_point_is_told_where_it_is(
    made, most: int, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    partition, inside, ends = made(), {}, {}
    monkeypatch.setattr(Cut, "ends", ends)
    index = StabbingSetIndex(partition, Cut)
    for kind, some in batches(HISTORIES[name], most):
        if kind == "insert":
            ends |= {v: one for v, one in some.items() if v not in inside}
        put(partition, inside, kind, some)
        in_step(index, partition, inside)
        assert [structure.point for _, structure in index.items()] == [p for p, _ in index.items()]
    late = StabbingSetIndex(partition, Cut)
    assert [structure.point for _, structure in late.items()] == [p for p, _ in late.items()]


def test_of_a_point_that_stays_a_structure_is_told_once() -> None:
    points: list[int] = []

    class Counting(Strict):
        def moved(self, point: int) -> None:
            points.append(point)

    partition = Hotspots(0.5)
    StabbingSetIndex(partition, Counting)
    partition.build([0, 1], [0, 0], [10, 20])
    partition.insert([2, 3], [0, 0], [11, 12])
    partition.delete([1, 2])
    assert points == [10]
    partition.delete([0])
    assert points == [10, 12]


@partitions
def test_one_that_comes_or_goes_is_added_or_taken(made) -> None:
    """No structure is made for it, but for a group of its own."""
    partition = made()
    ends = {v: (100 * (v % 5) + v % 3, 100 * (v % 5) + 10 + v % 4) for v in range(50)}
    partition.build(list(ends), [e[0] for e in ends.values()], [e[1] for e in ends.values()])
    index = StabbingSetIndex(partition, Strict)
    structures = [structure for _, structure in index.items()]
    assert index.made == 5
    for v in range(50, 90):
        put(partition, ends, "insert", {v: (100 * (v % 5), 100 * (v % 5) + 50)})
        in_step(index, partition, ends)
    put(partition, ends, "insert", {v: (100 * (v % 5), 100 * (v % 5) + 50) for v in range(90, 120)})
    put(partition, ends, "delete", {v: (0, 0) for v in range(70, 120)})
    for v in range(50, 70):
        put(partition, ends, "delete", {v: (0, 0)})
        in_step(index, partition, ends)
    assert index.made == 5
    assert [structure for _, structure in index.items()] == structures
    put(partition, ends, "insert", {200: (50, 60)})
    assert index.made <= 6 + (5 if isinstance(partition, LazyPartition) else 0)
    in_step(index, partition, ends)


def test_structures_made_by_a_reconstruction_are_those_of_groups_that_changed() -> None:
    partition = RefinedPartition(0.1)
    partition.build(range(100), [10 * v for v in range(100)], [10 * v + 5 for v in range(100)])
    index = StabbingSetIndex(partition, Strict)
    ids = range(100, 111)
    partition.insert(ids, [10 * v + 10 for v in ids], [10 * v + 10 for v in ids])
    assert partition.reconstructions == 1
    assert index.made <= 100 + 11
    partition.delete([5])
    assert index.made <= 100 + 11


def test_members_are_given_in_order_of_left_ends() -> None:
    partition = RefinedPartition()
    partition.build([3, 1, 2, 0], [4, 2, 3, 1], [9, 9, 9, 9])
    index = StabbingSetIndex(partition, Strict)
    assert [structure.given for _, structure in index.items()] == [[0, 1, 2, 3]]


def test_no_group() -> None:
    index = StabbingSetIndex(RefinedPartition(), Strict)
    assert len(index) == index.made == 0
    assert list(index.items()) == []
    assert index.around(3) == (None, None)
    with pytest.raises(ValueError, match="there is no group 0"):
        index.structure(0)


@pytest.mark.parametrize("bad", ["a", 1.0, None, True, [0], {}, -1, 5, 2**70, np.int64(7)])
def test_there_is_no_such_group(bad: object) -> None:
    partition = RefinedPartition()
    partition.insert([0, 1], [1, 50], [2, 60])
    index = StabbingSetIndex(partition, Strict)
    with pytest.raises(ValueError, match="there is no group"):
        index.structure(bad)  # type: ignore[arg-type]
    for group in partition.groups().group:  # of numpy's integers
        assert len(index.structure(group).ids) == 1


def test_what_cannot_be_kept_in_step_is_refused_at_the_making() -> None:
    with pytest.raises(ValueError, match="over the groups of a partition, not of None"):
        StabbingSetIndex(None, Strict)  # type: ignore[arg-type]
    partition = RefinedPartition()
    with pytest.raises(ValueError, match="called with the intervals of a group; 5 cannot be"):
        StabbingSetIndex(partition, 5)  # type: ignore[arg-type]
    partition.insert([0], [1], [2])
    for bad in (1, "a", None):
        with pytest.raises(ValueError, match=f"a structure with add and remove; {bad!r} is"):
            StabbingSetIndex(partition, lambda ids, bad=bad: bad)  # type: ignore[misc]
    partition.insert([1], [1], [2])  # nobody follows it


def test_two_indexes_of_one_partition() -> None:
    partition, inside = Hotspots(0.3), {}
    one, other = StabbingSetIndex(partition, Strict), StabbingSetIndex(partition, Strict)
    for kind, some in batches(HISTORIES["any 2"], 5):
        put(partition, inside, kind, some)
    in_step(one, partition, inside)
    in_step(other, partition, inside)
    assert not {id(s) for _, s in one.items()} & {id(s) for _, s in other.items()}


# -- subscribers that fail -----------------------------------------------------------------------


@pytest.mark.parametrize("partition", [RefinedPartition(), LazyPartition(), Hotspots(0.5)])
def test_who_raises_does_not_harm_others(partition: Partition) -> None:
    """The batch is done, all others are told once, and then the exception comes out."""
    index = StabbingSetIndex(partition, Strict)
    calls = []

    def fail(changes: Changes) -> None:
        calls.append(len(changes.what))
        raise OSError("no room")

    partition.subscribe(fail)
    for first in range(0, 600, 200):
        ids = range(first, first + 200)
        with pytest.raises(OSError, match="no room"):
            partition.insert(ids, [10 * v for v in ids], [10 * v + 5 for v in ids])
        assert len(partition) == first + 200
    with pytest.raises(OSError, match="no room"):
        partition.delete(range(0, 600, 2))
    partition.unsubscribe(fail)
    partition.delete([1])
    assert len(calls) >= 4 and len(partition) == 299
    for group in partition.groups().group.tolist():
        assert index.structure(group).ids == set(partition.members(group).tolist())


def test_a_structure_that_raises_is_made_anew() -> None:
    class Fails(Strict):
        def add(self, ids: np.ndarray) -> None:
            raise OSError("no room")

    partition = RefinedPartition()
    partition.insert([0], [0], [9])
    index = StabbingSetIndex(partition, Fails)
    with pytest.raises(OSError, match="no room"):
        partition.insert([1], [0], [9])
    partition.delete([0])
    assert [structure.ids for _, structure in index.items()] == [{1}]
    index.close()
    partition.delete([1])
    assert len(index) == 1


@partitions
def test_a_structure_that_raised_is_made_anew_when_it_is_asked_for(made) -> None:
    """Not only at the next change: what it told before would be stale."""

    class Fails(Strict):
        def add(self, ids: np.ndarray) -> None:
            raise OSError("no room")

    for ask in (
        lambda index: [structure.ids for _, structure in index.items()],
        lambda index: [index.structure(index.around(5)[1]).ids],
    ):
        partition = made()
        partition.insert([0, 7], [0, 0], [9, 9])
        index = StabbingSetIndex(partition, Fails)
        with pytest.raises(OSError, match="no room"):
            partition.insert([1], [0], [9])
        assert ask(index) == [{0, 1, 7}]


@partitions
def test_an_index_is_in_step_for_whoever_is_told_before_it(made) -> None:
    """The partition has changed by then, the index has not been told yet."""
    partition, seen = made(), []

    def ask(changes: Changes) -> None:
        items = [(point, sorted(structure.ids)) for point, structure in index.items()]
        members = {g: sorted(ids.tolist()) for g, ids in partition.all_members()}
        groups = partition.groups()
        points = zip(groups.point.tolist(), groups.group.tolist(), strict=True)
        assert items == [(point, members[g]) for point, g in points]
        assert index.groups.group.tolist() == groups.group.tolist()
        seen.append(len(items))

    partition.subscribe(ask)
    index = StabbingSetIndex(partition, Strict)
    partition.insert([0, 1], [0, 1], [9, 9])
    partition.insert([2, 3], [100, 2], [101, 9])
    partition.delete([2])
    assert seen[0] == 1 and seen[-1] == 1 and max(seen) == 2
    assert [sorted(structure.ids) for _, structure in index.items()] == [[0, 1, 3]]


@partitions
def test_an_index_misses_nothing_when_a_change_is_interrupted(made) -> None:
    partition, stops = made(), [KeyboardInterrupt(), KeyboardInterrupt(), None]

    def interrupted(changes: Changes) -> None:
        stop = stops.pop(0)
        if stop is not None:
            raise stop

    partition.insert([0, 1], [0, 1], [9, 9])
    partition.subscribe(interrupted)
    index = StabbingSetIndex(partition, Strict)
    with pytest.raises(KeyboardInterrupt):
        partition.delete([0])
    assert [structure.ids for _, structure in index.items()] == [{1}]
    with pytest.raises(KeyboardInterrupt):
        partition.insert([5], [100], [101])
    partition.insert([6], [100], [101])
    assert [structure.ids for _, structure in index.items()] == [{1}, {5, 6}]


def test_items_of_a_partition_that_changes_meanwhile() -> None:
    partition = RefinedPartition()
    partition.insert([0, 1], [0, 20], [9, 29])
    items = StabbingSetIndex(partition, Strict).items()
    assert next(items)[0] == 9
    partition.delete([1])
    with pytest.raises(RuntimeError, match="has changed since the first of these items"):
        next(items)


def test_structures_are_not_made_by_changing_the_partition() -> None:
    partition = RefinedPartition()
    partition.insert([0], [0], [9])

    def make(ids: np.ndarray) -> Strict:
        partition.insert([5], [50], [59])
        return Strict(ids)

    with pytest.raises(RuntimeError, match="cannot be changed by what makes the structures"):
        StabbingSetIndex(partition, make)


def test_a_closed_index_stays_as_it_is() -> None:
    partition = RefinedPartition()
    partition.insert([0, 1], [0, 20], [9, 29])
    index = StabbingSetIndex(partition, Strict)
    for _ in range(2):  # the second time there is nothing to do
        index.close()
    first, second = partition.groups().group.tolist()
    partition.delete([0])
    partition.insert([5, 6], [40, 50], [45, 55])
    assert [(point, structure.ids) for point, structure in index.items()] == [(9, {0}), (29, {1})]
    assert [index.around(x) for x in (8, 9, 99)] == [(None, first), (first, second), (second, None)]


# -- what it costs -------------------------------------------------------------------------------


def test_around_does_not_list_the_groups(monkeypatch) -> None:
    """A search, also where most groups have gone."""
    partition = RefinedPartition(10.0)
    n = 3000
    partition.build(range(n), [10 * v for v in range(n)], [10 * v + 5 for v in range(n)])
    index = StabbingSetIndex(partition, Strict)
    partition.delete([v for v in range(n) if v % 1000])
    partition.insert([n, n + 1], [7007, 13007], [7007, 13007])
    points = dict(zip(*(c.tolist() for c in partition.groups()[1::-1]), strict=True))
    partition.groups = None  # type: ignore[method-assign, assignment]
    places = [5, 7007, 10005, 13007, 20005]
    for x in (0, 4, 5, 6, 7006, 7007, 10004, 10005, 19999, 20005, 99999, 2**63 - 1, -(2**63)):
        below = max((p for p in places if p <= x), default=None)
        above = min((p for p in places if p > x), default=None)
        assert index.around(x) == (points.get(below), points.get(above))
    for bad, told in ((2**63, "does not fit int64"), (1.5, "integers are needed, not float64")):
        with pytest.raises(ValueError, match=told):
            index.around(bad)  # type: ignore[arg-type]


def test_an_index_over_the_lazy_partition_does_not_look_for_members_group_by_group() -> None:
    """Asked for one group that takes a look at all intervals."""
    partition, inside = LazyPartition(0.5), {}
    partition.members = partition._members = None  # type: ignore[method-assign, assignment]
    index = StabbingSetIndex(partition, Strict)
    put(partition, inside, "build", {v: (10 * v, 10 * v + 5) for v in range(100)})
    put(partition, inside, "insert", {v: (10 * v, 10 * v + 5) for v in range(100, 120)})
    put(partition, inside, "insert", {500: (5000, 5009), 501: (5003, 5010), 502: (2, 3)})
    assert partition.reconstructions == 0
    put(partition, inside, "delete", {v: (0, 0) for v in (3, 7, 500)})
    put(partition, inside, "insert", {v: (10 * v, 10 * v + 5) for v in range(120, 190)})
    assert partition.reconstructions > 0
    found = sorted(v for _, structure in index.items() for v in structure.ids)
    assert found == sorted(inside)


def test_one_that_was_created_is_given_its_interval_and_then_the_others() -> None:
    class Noted(Strict):
        def __init__(self, ids: np.ndarray) -> None:
            super().__init__(ids)
            self.added: list[int] = []

        def add(self, ids: np.ndarray) -> None:
            super().add(ids)
            self.added += ids.tolist()

    partition = RefinedPartition(9.0)
    partition.build([0, 1], [0, 100], [9, 109])
    index = StabbingSetIndex(partition, Noted)
    partition.insert([2, 3, 4, 5], [50, 51, 0, 52], [60, 60, 20, 60])
    found = [(point, s.given, s.added) for point, s in index.items()]
    assert found == [(9, [0], [4]), (60, [2], [3, 5]), (109, [1], [])]
    partition.delete([2, 3, 5])
    partition.insert([6, 7], [70, 0], [71, 30])  # the group's number is given anew
    found = [(point, s.given, s.added) for point, s in index.items()]
    assert found == [(9, [0], [4, 7]), (71, [6], []), (109, [1], [])]


def test_a_subscriber_cannot_change_the_partition() -> None:
    partition = RefinedPartition()
    partition.subscribe(lambda changes: partition.insert([7], [1], [2]))
    with pytest.raises(RuntimeError, match="cannot be changed by those who are told"):
        partition.insert([1], [1], [2])
    assert partition.ids().tolist() == [1]
