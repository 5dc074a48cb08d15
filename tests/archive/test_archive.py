"""Histories of an archive in every layout, against a list that is filtered in full each time."""

from __future__ import annotations

import pickle
import tempfile
from datetime import timedelta
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from deltalake import DeltaTable
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from limen.archive import LAYOUTS, Archive, ArchiveError, Layout

from .by_hand import (
    EVERY,
    INTEGERS,
    KINDS,
    LEFT,
    RIGHT,
    STEPS,
    WINDOW,
    Appendix,
    ByHand,
    Kind,
    Row,
    bag,
)

SIDES = [(2, 2), (3, 2), (2, 4), (4, 3), (8, 5), (2, 1)]
START = 16


def open_one(folder: Path | str, layout: str | Layout, kind: Kind = INTEGERS, **more) -> Archive:
    return Archive.open(
        Path(folder) / "archive",
        kind.schema,
        key="key",
        window=kind.length(WINDOW),
        every=kind.length(EVERY),
        layout=layout,
        stamps={"left": ("of_left", kind.length(LEFT)), "right": ("of_right", kind.length(RIGHT))},
        **more,
    )


def one_of(name: str, sides: tuple[int, int]) -> Layout:
    rows, columns = sides
    rivals = LAYOUTS[name].rivals
    return Layout(name, 1 if rivals == "columns" else rows, 1 if rivals == "rows" else columns)


LAID = st.builds(one_of, st.sampled_from(list(LAYOUTS)), st.sampled_from(SIDES))
NUMBERS = st.integers(0, 5)
ARRIVALS = st.lists(  # how long ago it was generated, its key, the age of a parent, and which
    st.tuples(st.integers(0, 19), NUMBERS, st.integers(0, LEFT), st.booleans()), max_size=8
)
PERIODS = st.one_of(st.integers(1, STEPS + 3), st.integers(STEPS + 4, 10**8))
CHANGES = st.one_of(
    st.tuples(st.just("update"), st.just(1), st.just(False), ARRIVALS),
    st.tuples(st.just("update"), PERIODS, st.booleans(), ARRIVALS),
    st.tuples(st.just("invalidate"), st.lists(NUMBERS, max_size=3), st.integers(0, 9)),
    st.tuples(st.just("migrate"), LAID),
    st.tuples(st.just("reopen")),
    st.tuples(st.just("vacuum")),
)


class World:
    """An archive, and the list that it is compared with."""

    def __init__(self, folder: str, layout: Layout, kind: Kind, start: int = START) -> None:
        self.folder, self.kind, self.start = folder, kind, start
        self.archive = open_one(folder, layout, kind)
        self.list = ByHand()
        self.kept: dict[int, ByHand] = {}  # by version
        self.stored = self.serial = 0

    def rows(self, now: int, arrivals, least: int) -> list[Row]:
        """Results generated up to now, and after `least`."""
        rows = []
        for ago, key, age, left in arrivals:
            at = max(now - ago, least + 1)
            self.serial += ago % 3 > 0  # some are twice the same
            parents = (at - age, at) if left else (at, at - age)
            rows.append(Row(key, *parents, self.serial))
        return rows

    def update(self, periods: int, late: bool, arrivals) -> None:
        last = self.list.now
        now = self.start if last is None else last + periods * EVERY
        rows = self.rows(now, arrivals, now - 20 if late or last is None else last)
        done = self.archive.update(
            self.kind.time(now), self.kind.table(rows), late=late, catch_up=periods > 1
        )
        live = [row for row in self.list.valid(rows) if row.expires > now]
        assert (done.inserted, done.expired) == (len(live), len(rows) - len(live))
        assert done.time == self.kind.time(now) and done.version == self.archive.version
        if last is not None:
            layout = self.archive.layout
            assert done.touched == layout.touched if periods == 1 else done.touched >= 1
        self.stored += done.inserted - done.deleted
        self.list.update(now, rows)

    def invalidate(self, numbers, ago: int) -> None:
        if self.list.now is None:
            return
        until = self.list.now - ago
        keys = [self.kind.keys[number] for number in numbers]
        self.archive.invalidate(keys, self.kind.time(until) if ago else None)
        self.list.invalidate(numbers, until)

    def migrate(self, layout: Layout) -> None:
        done = self.archive.migrate(layout)
        self.stored -= done.deleted
        assert self.archive.layout == layout

    def reopen(self) -> None:
        self.archive = Archive.open(self.archive.path)

    def vacuum(self) -> None:
        self.archive.vacuum(timedelta(0))
        self.kept = {}

    def check(self, number: int) -> None:
        """What a change may have spoiled."""
        archive, kind, live = self.archive, self.kind, self.list.alive()
        self.kept[archive.version] = self.list.copy()
        kind.same(archive.scan(), live)
        kind.same(archive.probe(kind.keys[number]), [r for r in live if r.key == number])
        assert sum(some.rows for some in archive.sub_indices()) == self.stored >= len(live)

    def check_all(self, numbers: list[int], size: int, sizes: tuple[int, int], old: int) -> None:
        """Every way to read."""
        archive, kind, live = self.archive, self.kind, self.list.alive()
        for order in ("key", "generated", "expires"):
            found = archive.scan(order)
            kind.same(found, live)
            values = found.column(order).to_pylist()
            assert values == sorted(values)
        batches = list(archive.scan_batches())
        if batches:
            assert pa.concat_tables(batches).column("key") == archive.scan("key").column("key")
        kind.same(pa.concat_tables([kind.schema.empty_table(), *batches]), live)
        for low in numbers:
            for high in numbers:
                found = archive.probe(between=(kind.keys[low], kind.keys[high]))
                kind.same(found, [r for r in live if low <= r.key <= high])
        listed = archive.probe([kind.keys[number] for number in numbers])
        kind.same(listed, [r for r in live if r.key in numbers])
        order = list(zip(*(listed.column(n).to_pylist() for n in ("key", "expires")), strict=True))
        assert order == sorted(order)
        shorter = archive.window(kind.length(size))
        unequal = archive.window({"left": kind.length(sizes[0]), "right": kind.length(sizes[1])})
        kind.same(shorter.scan(), self.list.shorter(size))
        kind.same(unequal.scan("key"), self.list.unequal(*sizes))
        expected = [r for r in self.list.unequal(*sizes) if r.key == numbers[0]]
        kind.same(unequal.probe(kind.keys[numbers[0]]), expected)
        for snapshot in (archive.snapshot(), shorter, unequal):
            self.check_where(snapshot)
        version = sorted(self.kept)[old % len(self.kept)]
        kind.same(archive.snapshot(version).scan(), self.kept[version].alive())

    def check_where(self, snapshot) -> None:
        """The rows of the files for which the SQL holds are those of a scan."""
        files = DeltaTable(str(self.archive.path)).file_uris()
        if not files:
            assert not len(snapshot.scan())
            return
        with duckdb.connect() as connection:
            connection.sql("SET TimeZone = 'UTC'")
            columns = ", ".join(self.kind.schema.names)
            found = connection.sql(
                f"SELECT {columns} FROM read_parquet({files!r}, hive_partitioning = false) "
                f"WHERE {snapshot.where()}"
            ).to_arrow_table()
        assert bag(found.cast(self.kind.schema)) == bag(snapshot.scan())


@pytest.mark.parametrize("name", LAYOUTS)
@settings(max_examples=6, phases=[Phase.explicit, Phase.generate])  # shrinking writes for minutes
@given(st.data())
def test_histories(name, data):
    draw = data.draw
    layout, kind = one_of(name, draw(st.sampled_from(SIDES))), draw(st.sampled_from(KINDS))
    start = draw(st.sampled_from([START, -101, 10**6]))
    changes = [("update", 1, False, draw(ARRIVALS)), *draw(st.lists(CHANGES, max_size=9))]
    with tempfile.TemporaryDirectory() as folder:
        world = World(folder, layout, kind, start)
        if draw(st.booleans()):
            world.check(0)
        for change, *said in changes:
            getattr(world, change)(*said)
            world.check(draw(NUMBERS))
        world.check_all(
            draw(st.lists(NUMBERS, min_size=2, max_size=2)),
            draw(st.integers(1, WINDOW)),
            draw(st.tuples(st.integers(1, LEFT), st.integers(1, RIGHT))),
            draw(st.integers(0, 9)),
        )


# -- layouts side by side ------------------------------------------------------------------------


def some_rows(step: int, n: int = 10) -> list[Row]:
    """Those of a step, and of the whole window for step 0."""
    now = START + step * EVERY
    span = EVERY if step else WINDOW
    rows = []
    for i in range(n if step else 4 * n):
        at, age = now - i * 7 % span, i * 5 % LEFT
        rows.append(Row(i * 11 % 6, at - age, at, 100 * step + i))
    return rows


def test_all_layouts_give_the_same_answers(tmp_path):
    """With keys that go and come again."""
    expected = ByHand()
    archives = []
    for name in LAYOUTS:
        archives.append(open_one(tmp_path / name, one_of(name, (3, 3))))
    for step in range(5):
        now = START + step * EVERY
        expected.update(now, some_rows(step))
        if step % 4 == 2:
            expected.invalidate([step % 6], now)
        answers = []
        for archive in archives:
            archive.update(now, INTEGERS.table(some_rows(step)))
            if step % 4 == 2:
                archive.invalidate([INTEGERS.keys[step % 6]])
            answers.append((archive.scan("key"), archive.probe(INTEGERS.keys[step % 6])))
        for scanned, probed in answers:
            INTEGERS.same(scanned, expected.alive())
            INTEGERS.same(probed, [r for r in expected.alive() if r.key == step % 6])


@pytest.mark.parametrize(
    "text", ["Rebuild2x2", "NoRebuild4x2", "LazyRebuild3x2", "ChronologicalNoRebuild2x4"]
)
def test_results_lie_where_appendix_b_says(tmp_path, text):
    archive, layout = open_one(tmp_path, text), Layout.of(text)
    paper = Appendix(
        layout.rows,
        layout.columns,
        STEPS,
        START,
        EVERY,
        LAYOUTS[layout.name].generation,
        LAYOUTS[layout.name].expiration,
    )
    for step in range(STEPS + 3):
        before = {file.path: file.cell for file in archive.snapshot().files}
        now = START + step * EVERY
        archive.update(now, INTEGERS.table(some_rows(step)))
        after = {file.path: file.cell for file in archive.snapshot().files}
        changed = {{**before, **after}[path] for path in before.keys() ^ after.keys()}
        if step:
            expired, inserted = paper.update(step)
            assert changed <= expired | inserted
        lie = DeltaTable(str(archive.path)).to_pyarrow_table().to_pylist()
        for row in lie:
            assert row["generation_partition"] == paper.row_of(row["generated"])
            if row["expires"] > now:
                assert row["expiration_partition"] == paper.column_of(row["expires"])


@pytest.mark.parametrize("name", LAYOUTS)
def test_only_lazy_layouts_keep_what_has_expired(tmp_path, name):
    """And these in the oldest row alone."""
    archive, expected = open_one(tmp_path, one_of(name, (3, 3))), ByHand()
    idle = 0
    for step in range(STEPS + 4):
        now = START + step * EVERY
        expected.update(now, some_rows(step))
        archive.update(now, INTEGERS.table(some_rows(step)))
        stored = sum(some.rows for some in archive.sub_indices())
        idle += stored - len(expected.alive())
        if archive.layout.is_lazy:
            stretches = archive.snapshot().state.stretches
            oldest = stretches.index(min(stretches))
            lie = DeltaTable(str(archive.path)).to_pyarrow_table().to_pylist()
            gone = {row["generation_partition"] for row in lie if row["expires"] <= now}
            assert gone <= {oldest}
    assert (idle > 0) == archive.layout.is_lazy


# -- time that was left out ----------------------------------------------------------------------


@pytest.mark.parametrize("name", LAYOUTS)
@pytest.mark.parametrize("kind", [INTEGERS, KINDS[1]], ids=str)
def test_the_distance_does_not_matter(tmp_path, name, kind):
    """Of many windows that were left out nothing is read, nothing kept, and no step is counted."""
    archive = open_one(tmp_path, one_of(name, (3, 3)), kind)
    for step in range(3):
        archive.update(kind.time(START + step * EVERY), kind.table(some_rows(step)))
    there = sum(some.rows for some in archive.sub_indices())
    far = START + (10**17 if kind is INTEGERS else 10**9) * EVERY
    rows = [Row(i % 6, far - i, far - i, i) for i in range(WINDOW)]
    done = archive.update(kind.time(far), kind.table(rows), catch_up=True)
    assert (done.inserted, done.deleted, done.bytes_read) == (WINDOW, there, 0)
    kind.same(archive.scan(), rows)
    next_one = Row(1, far + 1, far + 1, 99)
    done = archive.update(kind.time(far + EVERY), kind.table([next_one]))
    assert done.touched == archive.layout.touched
    kind.same(archive.scan(), [*rows[: WINDOW - EVERY], next_one])


def test_one_row_of_a_stream_far_in_the_future(tmp_path):
    archive = open_one(tmp_path, "NoRebuild4x4")
    archive.take_in("s", 0, INTEGERS.table([Row(2, START, START)]))
    far = [Row(2, 2**61, 2**61, 1)]
    assert archive.take_in("s", 1, INTEGERS.table(far))
    assert archive.time == 2**61
    INTEGERS.same(archive.scan(), far)


# -- invalidation --------------------------------------------------------------------------------


def _served(tmp_path, layout="NoRebuild2x2", steps=1) -> Archive:
    archive = open_one(tmp_path, layout)
    for step in range(steps):
        archive.update(START + step * EVERY, INTEGERS.table(some_rows(step)))
    return archive


def test_a_later_invalidation_with_an_earlier_limit_revives_nothing(tmp_path):
    archive = _served(tmp_path)
    archive.invalidate([0])
    archive.invalidate([0], until=START - 10)
    assert not len(archive.probe(0))


def test_a_key_can_come_again(tmp_path):
    archive = _served(tmp_path)
    archive.invalidate([0])
    assert (
        not len(archive.probe(0)) and 'NOT ("key" IN (0) AND "generated" <= 16)' in archive.where()
    )
    again = Row(2, START + 2, START + 2)
    archive.update(START + 2, INTEGERS.table([again]))
    INTEGERS.same(archive.probe(0), [again])


@pytest.mark.parametrize("name", LAYOUTS)
def test_the_list_is_forgotten_when_all_was_looked_through(tmp_path, name):
    archive = open_one(tmp_path, one_of(name, (2, 2)))
    for step in range(4):
        archive.update(START + step * EVERY, INTEGERS.table(some_rows(step)))
    archive.invalidate([0, 1])
    step = 4
    while "NOT" in archive.where() and step < 4 + 2 * STEPS:
        archive.update(START + step * EVERY, INTEGERS.table(some_rows(step)))
        step += 1
    assert "NOT" not in archive.where() and not len(archive.snapshot().invalid)
    archive.vacuum(timedelta(0))
    assert not list((archive.path / "_limen").glob("*"))


@pytest.mark.parametrize("text", ["R-ins1", "Rebuild2x2", "NoRebuild4x4", "LazyNoRebuild4x4"])
@pytest.mark.parametrize("other", [None, "R-ins1", "NoRebuild2x2", "LazyRebuild3x2"])
def test_late_results_of_an_invalidated_key_are_invalid(tmp_path, text, other):
    """Whatever was looked through, or laid out anew, since it was invalidated."""
    archive = _served(tmp_path, text)
    archive.invalidate([0])
    if other is not None:
        archive.migrate(other)
    late = [Row(2, START - 1, at, 900 + at) for at in (START - 1, START, START + 1)]
    archive.update(START + 2)
    archive.update(START + 4, INTEGERS.table(late), late=True)
    INTEGERS.same(archive.probe(0), late[2:])


def test_results_that_waited_while_their_key_was_invalidated_are_invalid(tmp_path):
    for other in (None, "NoRebuild3x3"):
        archive = open_one(tmp_path / str(other), "Rebuild2x2")
        archive.take_in("s", 0, INTEGERS.table([Row(2, START, START)]))
        archive.take_in("s", 1, INTEGERS.table([Row(2, START - 1, START - 1, 1)]))
        archive.invalidate([0])
        if other is not None:
            archive.migrate(other)
        archive.update(START + 2)
        assert not len(archive.probe(0))


@pytest.mark.parametrize(
    ("keys", "told"),
    [
        ("0", r"keys are given as a list; for one, \['0'\]"),
        (0, r"keys are given as a list; for one, \[0\]"),
        (["0"], "'0' is not a key: 'key' is int64 here"),
        ([None], "None is not a key"),
        ([True], "True is not a key"),
        ([1.5], "1.5 is not a key"),
        ([2**70], "cannot be invalidated"),
    ],
)
def test_keys_that_cannot_be_invalidated(tmp_path, keys, told):
    archive = _served(tmp_path)
    before = archive.scan()
    with pytest.raises(ArchiveError, match=told):
        archive.invalidate(keys)
    with pytest.raises(ArchiveError, match="until=17 is after the last update, 16"):
        archive.invalidate([0], until=17)
    assert archive.version == 1 and archive.scan() == before
    assert archive.invalidate([]) == 1
    assert not (archive.path / "_limen").exists()


def test_nothing_to_invalidate_yet(tmp_path):
    with pytest.raises(ArchiveError, match="no results to invalidate before the first update"):
        open_one(tmp_path, "Rebuild2x2").invalidate([0])


# -- streams -------------------------------------------------------------------------------------


def test_batches_of_a_stream_are_taken_in_once(tmp_path):
    archive, expected, given = open_one(tmp_path, "NoRebuild2x2"), ByHand(), []
    for batch in range(9):
        rows = some_rows(batch)
        assert archive.take_in("s", batch, INTEGERS.table(rows))
        assert not archive.take_in("s", batch, INTEGERS.table(rows))
        assert archive.done("s") == batch and archive.done("t") is None
        given += rows
        now = max(row.generated for row in given) // EVERY * EVERY
        expected.rows, expected.now = [r for r in given if r.generated <= now], now
        assert archive.time == now
        INTEGERS.same(archive.scan(), expected.alive())


def test_an_older_batch_is_in_too(tmp_path):
    """A sink that was started anew from an older checkpoint gives it again."""
    archive = open_one(tmp_path, "NoRebuild2x2")
    for batch in range(4):
        archive.take_in("s", batch, INTEGERS.table(some_rows(batch)))
    version, right = archive.version, bag(archive.scan())
    for handle in (archive, Archive.open(archive.path)):
        for batch in (2, 0, 3):
            assert not handle.take_in("s", batch, INTEGERS.table(some_rows(batch)))
        assert handle.version == version and bag(handle.scan()) == right
        assert handle.done("s") == 3
    assert archive.take_in("t", 0, INTEGERS.table([])) and archive.done("t") == 0
    assert archive.done("s") == 3


def test_what_is_in_survives_all_other_changes(tmp_path):
    archive = open_one(tmp_path, "NoRebuild2x2")
    archive.take_in("s", 4, INTEGERS.table(some_rows(0)))
    archive.update(START + EVERY)
    archive.invalidate([INTEGERS.keys[0]])
    archive.migrate("Rebuild3x3")
    assert archive.done("s") == Archive.open(archive.path).done("s") == 4
    assert archive.snapshot(archive.version - 1).state.done == {"s": 4}


@pytest.mark.parametrize("stream", [5, None, "", b"s"])
def test_what_is_no_stream(tmp_path, stream):
    archive = open_one(tmp_path, "NoRebuild2x2")
    for ask in (archive.done, lambda name: archive.take_in(name, 0, INTEGERS.table([]))):
        with pytest.raises(ArchiveError, match=f"stream={stream!r}: the name of a stream is"):
            ask(stream)


def test_results_wait_for_their_interval_to_end(tmp_path):
    archive = open_one(tmp_path, "Rebuild2x2")
    first, second = Row(2, 16, 16), Row(2, 17, 17)
    archive.take_in("s", 0, INTEGERS.table([first, second]))
    assert archive.time == 16
    INTEGERS.same(archive.scan(), [first])
    third = Row(2, 18, 18)
    archive = Archive.open(archive.path)
    archive.take_in("s", 1, INTEGERS.table([third]))
    assert archive.time == 18
    INTEGERS.same(archive.scan(), [first, second, third])


def test_results_that_wait_survive_an_update_and_a_migration(tmp_path):
    archive = open_one(tmp_path, "Rebuild2x2")
    first, second, third = Row(2, 16, 16), Row(2, 17, 17), Row(2, 18, 18)
    archive.take_in("s", 0, INTEGERS.table([first, second]))
    archive.migrate("NoRebuild3x3")
    archive.update(18, INTEGERS.table([third]))
    archive.take_in("s", 1, INTEGERS.table([Row(2, 20, 20)]))
    assert second.serial in archive.probe(0).column("serial").to_pylist()
    assert len(archive.probe(0)) == 4


@pytest.mark.parametrize("kind", [INTEGERS, KINDS[1]], ids=str)
def test_a_delay_that_reaches_before_all_times_is_waited_for(tmp_path, kind):
    archive = open_one(tmp_path, "Rebuild2x2", kind)
    ever = timedelta(days=365 * 3000) if kind.timed else 2**62 - 1
    rows = [Row(2, -5, -5), Row(2, -3, -3)]
    for batch, row in enumerate(rows):
        archive.take_in("s", batch, kind.table([row]), ever)
        assert archive.time is None and not len(archive.scan())
    archive.update(kind.time(0))
    kind.same(archive.scan(), rows)


# -- migration, versions, handles ----------------------------------------------------------------


@pytest.mark.parametrize("other", LAYOUTS)
def test_migration_to_any_layout(tmp_path, other):
    archive = _served(tmp_path, "LazyNoRebuild3x2", 6)
    expected = archive.scan()
    archive.invalidate([INTEGERS.keys[5]])
    version, snapshot = archive.version, archive.snapshot()
    done = archive.migrate(one_of(other, (4, 3)))
    assert done.version == archive.version == version + 1 and done.inserted == 0
    assert bag(archive.scan()) == bag(snapshot.scan()) != bag(expected)
    assert len(archive.snapshot().invalid) == 1  # late results may still come
    now = START + 6 * EVERY
    assert archive.update(now, INTEGERS.table(some_rows(6))).touched == archive.layout.touched
    assert Archive.open(archive.path).layout == one_of(other, (4, 3))
    step = 7
    while "NOT" in archive.where() and step < 7 + 2 * STEPS:
        archive.update(START + step * EVERY, INTEGERS.table(some_rows(step)))
        step += 1
    assert "NOT" not in archive.where()


def test_migration_before_the_first_update(tmp_path):
    archive = open_one(tmp_path, "Rebuild2x2")
    archive.migrate("WATA3")
    assert str(archive.layout) == "WATA3" and archive.time is None and not len(archive.scan())
    archive.update(START, INTEGERS.table(some_rows(0)))
    kept = [r for r in some_rows(0) if r.expires > START]
    INTEGERS.same(archive.scan(), kept)


def test_a_migration_that_cannot_be_changes_nothing(tmp_path):
    archive = _served(tmp_path)
    before = _files(archive.path)
    with pytest.raises(ArchiveError, match="a window has 8 updates"):
        archive.migrate("Rebuild9x1")
    with pytest.raises(ArchiveError, match="there is no layout 'B-tree'"):
        archive.migrate("B-tree")
    assert _files(archive.path) == before and archive.version == 1


def test_a_migration_that_fails_leaves_no_files(tmp_path):
    archive = _served(tmp_path, steps=3)
    damaged = archive.path / sorted(file.path for file in archive.snapshot().files)[-1]
    damaged.write_bytes(damaged.read_bytes()[:100])
    before = _files(archive.path)
    with pytest.raises(ArchiveError, match=damaged.name):
        archive.migrate("Rebuild3x3")
    assert _files(archive.path) == before


def _files(path: Path) -> set[str]:
    return {str(file.relative_to(path)) for file in path.rglob("*") if file.is_file()}


@pytest.mark.parametrize("version", [-1, 7, "x"])
def test_there_is_no_such_version(tmp_path, version):
    with pytest.raises(ArchiveError, match=f"there is no version {version}"):
        _served(tmp_path).snapshot(version)


def test_a_version_of_numpy(tmp_path):
    archive = open_one(tmp_path, "Rebuild2x2")
    archive.update(START)
    assert (
        archive.snapshot(np.int64(0)).version == 0 and archive.snapshot(np.uint8(1)).time == START
    )


def test_what_is_told_of_an_archive_is_of_one_version(tmp_path):
    """The newest, whoever made it."""
    archive = open_one(tmp_path, "Rebuild2x2")
    other = Archive.open(archive.path)
    archive.update(START)
    archive.migrate("NoRebuild3x3")
    assert other.version == 2
    archive.update(START + EVERY)
    told = f"NoRebuild3x3, version 3, time {START + EVERY})"
    assert repr(other) == repr(archive) == f"Archive({str(archive.path)!r}, {told}"
    archive.migrate("Rebuild3x3")
    assert str(other.layout) == "Rebuild3x3"


def test_a_handle_is_pickled_by_its_folder(tmp_path):
    archive = _served(tmp_path)
    again = pickle.loads(pickle.dumps(archive))
    assert again.scan() == archive.scan()
    assert repr(again) == f"Archive('{archive.path}', NoRebuild2x2, version 1, time 16)"


def test_another_grace_is_refused(tmp_path):
    archive = open_one(tmp_path / "said", "Rebuild2x2", grace=timedelta(hours=3))
    for said in ({}, {"grace": timedelta(minutes=180)}):
        assert open_one(tmp_path / "said", "Rebuild2x2", **said).version == 0
        assert Archive.open(archive.path, **said).version == 0
    usual = open_one(tmp_path / "usual", "Rebuild2x2")
    assert open_one(tmp_path / "usual", "Rebuild2x2", grace=timedelta(minutes=10)).version == 0
    for path, here in ((archive.path, "3:00:00"), (usual.path, "0:10:00")):
        told = f"grace is {here} here, not 0:00:05"
        with pytest.raises(ArchiveError, match=told):
            Archive.open(path, grace=timedelta(seconds=5))
        with pytest.raises(ArchiveError, match=told):
            open_one(path.parent, "Rebuild2x2", grace=timedelta(seconds=5))


def test_the_layout_is_chosen_if_none_is_said(tmp_path):
    schema = INTEGERS.schema
    said = {"key": "key", "window": 36, "every": 1}
    archive = Archive.open(tmp_path / "a", schema, **said, layout="auto", window_bytes=5e9)
    assert str(archive.layout) == "NoRebuild3x3" and "a large window (5 GB)" in archive.why
    other = Archive.open(tmp_path / "b", schema, **said, queries=1000)
    assert str(other.layout) == "Rebuild2x2" and "many queries" in other.why
    assert str(Archive.open(tmp_path / "a", layout="auto").layout) == "NoRebuild3x3"
    assert Archive.open(tmp_path / "a").why is None
