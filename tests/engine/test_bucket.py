"""A bucket in a store that commits and rolls back, worked on in turn by workers with copies of their own:
it is always the crosser that saw every committed batch, and writes little."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from limen import QuerySet
from limen.borders.streams import NO_FLOOR
from limen.engine import Crosser
from limen.engine.bucket import FAN, NO_VERSION, PART_ROWS, PAST, Bucket
from limen.engine.buckets import buckets_of
from limen.engine.carried import encode
from limen.engine.monitor import Monitor

UNJITTED = os.environ.get("NUMBA_DISABLE_JIT") == "1"
EXAMPLES = settings.default.max_examples  # type: ignore[union-attr]

SCHEMA = pa.schema(
    [("who", pa.string()), ("at", pa.int64()), ("x", pa.float64()), ("tenant", pa.string())]
)
QUERIES = {
    "low": "x BETWEEN 0 AND 4",
    "mid": "x BETWEEN 3 AND 7",
    "high": "x >= 6",
    "mine": "x > 2 AND tenant = 'A'",
    "yours": "x > 2 AND tenant = 'B'",
}
QUERY_SET = QuerySet.of(QUERIES, SCHEMA)
TTL = {"ttl": 40, "lateness": 5}
OPTIONS: list[dict[str, Any]] = [
    {},
    {"dwell": 6},
    {"hysteresis": 1},
    TTL,
    {"dwell": 6, "hysteresis": 1, **TTL},
]
TOLD = {"exit_on_removal": True, "enter_on_add": True}
FOLLOWING: list[dict[str, Any]] = [
    TOLD,
    {"dwell": 6},
    {"hysteresis": 1},
    {"dwell": 6, "enter_on_add": True, "lateness": 2},
    {"dwell": 6, "hysteresis": 1, **TTL, **TOLD},
]
BODIES = [*QUERIES.values(), "x <= 5", "x = 4", "x > 2 AND x < 8"]
CROWD = 1100  # so many forgotten at once are tidied away


class Memory:
    """A store of values that are there after `commit`, and not after `roll_back`."""

    def __init__(self) -> None:
        self.now: dict[Any, bytes] = {}
        self._kept: dict[Any, bytes] = {}
        self.written = self.heads = self.read = 0

    def commit(self) -> None:
        self._kept = dict(self.now)

    def roll_back(self) -> None:
        self.now = dict(self._kept)

    def head(self) -> bytes | None:
        return self.now.get("head")

    def set_head(self, data: bytes) -> None:
        self.now["head"] = data
        self.heads += len(data)

    def part(self, entry: int, part: int) -> bytes:
        self.read += 1
        return self.now[entry, part]

    def set_part(self, entry: int, part: int, data: bytes) -> None:
        assert (entry, part) not in self.now
        self.now[entry, part] = data
        self.written += len(data)

    def drop_part(self, entry: int, part: int) -> None:
        del self.now[entry, part]

    @property
    def parts(self) -> int:
        return len(self.now) - ("head" in self.now)


def crosser(**options: Any) -> Crosser:
    return Crosser.of(SCHEMA, QUERY_SET, entity="who", on="x", time="at", **options)


def table(*rows: tuple[str, int, float], tenant: str = "A") -> pa.Table:
    made = [dict(zip(SCHEMA.names, (*row, tenant), strict=False)) for row in rows]
    return pa.Table.from_pylist(made, SCHEMA)


def crowd(name: str, at: int, n: int = CROWD) -> pa.Table:
    """Many entities at once."""
    columns = [
        [f"{name}-{i}" for i in range(n)],
        np.full(n, at),
        np.arange(n) % 10.0,
        ["A", "B"] * (n // 2),
    ]
    return pa.table(columns, schema=SCHEMA)


def rows(found: pa.Table) -> Counter[Any]:
    return Counter(zip(*(column.to_pylist() for column in found.columns), strict=True))


def same_state(bucket: Bucket, reference: Crosser, queries: Mapping[str, str] = QUERIES) -> None:
    assert rows(bucket.crosser.readings()) == rows(reference.readings())
    assert len(bucket.crosser) == len(reference)
    assert bucket.crosser.clock == reference.clock
    for query in queries:
        assert rows(bucket.crosser.inside(query)) == rows(reference.inside(query))


@st.composite
def histories(draw: st.DrawFn) -> list[tuple[pa.Table, int, str]]:
    """Batches, each with the worker that takes it and what becomes of it; time goes on, mostly."""
    found, now = [], 0
    for number in range(draw(st.integers(1, 12))):
        now += draw(st.sampled_from([0, 1, 5, 5, 60]))
        if draw(st.integers(0, 5)) == 0:
            readings = crowd(str(number), now)
        else:
            row = st.fixed_dictionaries(
                {
                    "who": st.sampled_from(["a", "b", "c", "d", "é", "0-1", "1-2"]),
                    "at": st.integers(now - 8, now + 8),
                    "x": st.integers(-1, 9).map(float),
                    "tenant": st.sampled_from(["A", "B", "C"]),
                }
            )
            readings = pa.Table.from_pylist(draw(st.lists(row, max_size=8)), SCHEMA)
        fate = draw(st.sampled_from(["good"] * 4 + ["lost", "died"]))
        found.append((readings, draw(st.integers(0, 1)), fate))
    return found


@settings(max_examples=4 if UNJITTED else EXAMPLES // 10)
@given(options=st.sampled_from(OPTIONS), history=histories())
def test_it_is_the_crosser_that_saw_all_that_was_committed(
    options: dict[str, Any], history: list[tuple[pa.Table, int, str]]
) -> None:
    """A *lost* batch was worked through but not committed; one that *died* took its worker along."""
    store, reference = Memory(), crosser(**options)

    def fresh() -> Bucket:
        return Bucket(lambda: crosser(**options))

    workers = [fresh(), fresh()]
    for version, (readings, who, fate) in enumerate(history):
        worker = workers[who]
        worker.bring_to(store)
        same_state(worker, reference)
        found = worker.crosser.cross(readings)
        worker.save(store, worker.crosser.touched, version // 3)
        if fate == "good":
            store.commit()
            expected = reference.cross(readings)
            assert rows(found.crossings) == rows(expected.crossings)
            assert rows(found.quarantine) == rows(expected.quarantine)
            same_state(worker, reference)
        else:
            store.roll_back()
            if fate == "died":
                workers[who] = fresh()
    for worker in (*workers, fresh()):
        worker.bring_to(store)
        same_state(worker, reference)
    at_the_end = crowd("end", 1000, 2)
    expected = rows(reference.cross(at_the_end).crossings)
    for worker in workers:  # also what is pending is the same
        assert rows(worker.crosser.cross(at_the_end).crossings) == expected


@settings(max_examples=4 if UNJITTED else EXAMPLES // 10)
@given(options=st.sampled_from(OPTIONS), history=histories())
def test_buckets_that_are_told_the_time_are_one_crosser(
    options: dict[str, Any], history: list[tuple[pa.Table, int, str]]
) -> None:
    """However the entities are divided; workers that never keep a copy see only what was saved."""
    parts, reference = 3, crosser(**options)
    stores = [Memory() for _ in range(parts)]
    for version, (readings, _, _) in enumerate(history):
        newest = max(readings["at"].to_pylist(), default=NO_FLOOR)
        of = buckets_of(readings["who"], parts) if len(readings) else np.zeros(0)
        found: Counter[Any] = Counter()
        bad: Counter[Any] = Counter()
        for number, store in enumerate(stores):
            bucket = Bucket(lambda: crosser(**options))
            bucket.bring_to(store)
            mine = readings.filter(pa.array(of == number))
            if len(mine):
                crossed = bucket.crosser.cross(mine, newest)
                found, bad = found + rows(crossed.crossings), bad + rows(crossed.quarantine)
            else:
                found += rows(bucket.crosser.let_pass(newest))
            bucket.save(store, bucket.crosser.touched, version // 3)
        expected = reference.cross(readings)
        assert found == rows(expected.crossings)
        assert bad == rows(expected.quarantine)


@st.composite
def followed(draw: st.DrawFn) -> tuple[list[dict[str, str]], list[tuple[pa.Table, int, str, int]]]:
    """The queries of each version; and batches as in `histories`, each bound to a version."""
    versions, steps = [dict(QUERIES)], []
    for readings, who, fate in draw(histories()):
        bodies = st.sampled_from([*BODIES, None, None])
        changes = draw(st.dictionaries(st.sampled_from(sorted(QUERIES)), bodies, max_size=3))
        found = {**versions[-1], **changes}
        versions.append({name: body for name, body in found.items() if body is not None})
        steps.append((readings, who, fate, len(versions) - 1))
    return versions, steps


def query_set(queries: Mapping[str, str]) -> QuerySet:
    return QuerySet.of(queries, SCHEMA) if queries else QuerySet.empty("string")


def others(one: Mapping[str, str], other: Mapping[str, str]) -> dict[str, str]:
    """The queries of one version that are not the same in the other."""
    return {name: body for name, body in one.items() if other.get(name) != body}


@settings(max_examples=4 if UNJITTED else EXAMPLES // 4)
@given(options=st.sampled_from(FOLLOWING), history=followed())
def test_it_follows_the_queries_of_committed_batches(
    options: dict[str, Any],
    history: tuple[list[dict[str, str]], list[tuple[pa.Table, int, str, int]]],
) -> None:
    """What is held, and changes because queries do, is in the store too; a lost batch changes nothing."""
    versions, steps = history
    store, reference = Memory(), crosser(**options)

    def fresh() -> Bucket:
        return Bucket(lambda: crosser(**options))

    workers, last = [fresh(), fresh()], 0
    for readings, who, fate, version in steps:
        worker = workers[who]
        worker.bring_to(store)
        ours, now = worker.crosser, versions[version]
        index = Monitor(query_set(now), ["x"], ours.watch.margins, lenient=["tenant"])
        found: Counter[Any] = Counter()
        touched = [ours.touched[:0]]
        if worker.version not in (NO_VERSION, version):
            before = versions[worker.version]
            removed, added = query_set(others(before, now)), query_set(others(now, before))
            found += rows(ours.move_to(index, removed, added))
            touched.append(ours.touched)
        ours.monitor = index
        found += rows(ours.cross(readings).crossings)
        worker.save(store, np.unique(np.concatenate([*touched, ours.touched])), version)
        if fate == "good":
            store.commit()
            before = versions[last]
            expected = rows(reference.change(others(now, before), others(before, now)))
            assert found == expected + rows(reference.cross(readings).crossings)
            same_state(worker, reference, now)
            last = version
        else:
            store.roll_back()
            if fate == "died":
                workers[who] = fresh()
    read = fresh()
    read.bring_to(store)
    read.crosser.monitor = Monitor(
        query_set(versions[last]), ["x"], reference.watch.margins, lenient=["tenant"]
    )
    same_state(read, reference, versions[last])


# -- copies ------------------------------------------------------------------------------------------


def turn(worker: Bucket, store: Memory, readings: pa.Table, version: int = 1) -> pa.Table:
    worker.bring_to(store)
    found = worker.crosser.cross(readings).crossings
    worker.save(store, worker.crosser.touched, version)
    store.commit()
    return found


def two(**options: Any) -> tuple[Bucket, Bucket, Memory]:
    made: Callable[[], Crosser] = lambda: crosser(**options)  # noqa: E731
    return Bucket(made), Bucket(made), Memory()


def test_a_copy_that_is_right_reads_nothing() -> None:
    worker, _, store = two()
    for i in range(5):
        turn(worker, store, table(("a", i, float(i))))
    assert store.read == 0


def test_a_copy_that_is_late_reads_what_it_has_not_seen() -> None:
    one, other, store = two()
    turn(one, store, crowd("many", 0, 4000))
    other.bring_to(store)
    assert store.read == 1
    for i in range(3):
        turn(one, store, table(("a", i, float(i))))
    other.bring_to(store)
    assert store.read == 2  # of the three entries one is left: each has taken the place of the last
    same_state(other, one.crosser)
    assert other.version == one.version == 1


def test_a_copy_with_an_unknown_token_is_read_anew() -> None:
    one, other, store = two()
    turn(one, store, table(("a", 1, 1.0), ("b", 1, 1.0)))
    other.bring_to(store)
    other.crosser.cross(table(("ghost", 2, 1.0), ("a", 2, 5.0)))
    other.save(store, other.crosser.touched, 2)
    store.roll_back()  # it is ahead of the store, and the store goes another way
    turn(one, store, table(("b", 2, 7.0)))
    other.bring_to(store)
    same_state(other, one.crosser)
    assert other.version == 1
    assert other.crosser.readings()["who"].to_pylist() == ["a", "b"]


def test_a_copy_that_is_too_late_is_read_anew() -> None:
    one, other, store = two()
    turn(one, store, table(("a", 0, 0.0)))
    other.bring_to(store)
    for i in range(PAST + 2):
        turn(one, store, table(("b", i, float(i % 9))))
    other.bring_to(store)
    same_state(other, one.crosser)


def test_a_store_that_lost_its_first_batch_is_empty_again() -> None:
    worker, _, store = two()
    worker.bring_to(store)
    worker.crosser.cross(table(("a", 9, 1.0)))
    worker.save(store, worker.crosser.touched, 4)
    store.roll_back()
    worker.bring_to(store)
    assert len(worker.crosser) == 0 and worker.version == NO_VERSION
    assert len(turn(worker, store, table(("a", 1, 1.0)))) == 1


def test_a_late_copy_forgets_what_was_tidied_away() -> None:
    """The entities that a copy still knows are in no entry any more once the state was compacted."""
    one, other, store = two(**TTL)
    turn(one, store, crowd("old", 0))
    other.bring_to(store)
    assert len(other.crosser) == CROWD
    turn(one, store, table(("new", 500, 1.0)))
    assert one.crosser.streams.size == 1
    other.bring_to(store)
    same_state(other, one.crosser)
    found = turn(other, store, table(("old-1", 501, 1.0), ("old-2", 501, 9.0)))
    assert set(found["crossing"].to_pylist()) == {"enter"}


def test_a_state_of_nobody_can_be_read() -> None:
    one, other, store = two(**TTL)
    turn(one, store, crowd("old", 0))
    one.crosser.streams.known[:] = False
    one.save(store, np.arange(3, dtype=np.int32), 1)
    other.bring_to(store)
    assert len(other.crosser) == 0
    assert len(turn(other, store, table(("a", 500, 1.0)))) > 0


def test_a_batch_that_changes_nothing_writes_nothing() -> None:
    worker, _, store = two()
    turn(worker, store, table(("a", 1, 1.0)))
    before = dict(store.now)
    turn(worker, store, table())
    turn(worker, store, table(("a", 0, 2.0)))  # late
    assert store.now == before
    turn(worker, store, table(), version=2)  # but the version is known
    assert store.now.keys() == before.keys() and store.now != before
    again = Bucket(crosser)
    again.bring_to(store)
    assert again.version == 2


# -- how much is written -----------------------------------------------------------------------------


def test_what_is_written_is_in_proportion_to_what_is_touched() -> None:
    """1 % of the entities a batch: about as much as they need, a few times over, and few entries."""
    known, touched, batches = (4000, 40, 80) if UNJITTED else (20_000, 200, 200)
    worker, other, store = two()
    turn(worker, store, crowd("e", 0, known))
    whole, heads = store.written, store.heads
    rng = np.random.default_rng(1)
    needed = most = 0
    for batch in range(batches):
        some = rng.choice(known, touched, replace=False)
        rows = [(f"e-{i}", batch + 1, float(rng.integers(10))) for i in some]
        turn(worker, store, table(*rows))
        needed += len(encode(worker.crosser, worker.crosser.touched))
        most = max(most, store.parts)
    assert store.written - whole < 4 * needed
    assert store.heads - heads < needed
    assert most < 4 * FAN
    assert store.written - whole < batches * whole / 10
    other.bring_to(store)
    same_state(other, worker.crosser)


@pytest.mark.parametrize("one_by_one", [True, False])
def test_entries_stay_few_whoever_is_touched(one_by_one: bool) -> None:
    """New entities all the time: about a logarithm of them; always the same one: one entry."""
    worker, other, store = two()
    for i in range(600):
        turn(worker, store, table((f"n{i}" if one_by_one else "a", i, float(i % 9))))
    assert store.parts <= (3 * FAN if one_by_one else 1)
    other.bring_to(store)
    same_state(other, worker.crosser)


@pytest.mark.skipif(UNJITTED, reason="it is about size")
def test_values_of_the_store_stay_small() -> None:
    worker, other, store = two()
    turn(worker, store, crowd("e", 0, 2 * PART_ROWS + 10))
    assert store.parts == 3
    assert max(map(len, store.now.values())) < 2 << 20
    other.bring_to(store)
    same_state(other, worker.crosser)
