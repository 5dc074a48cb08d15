"""An update holds one sub-index at a time, and reads and writes no other than Appendix B names."""

from __future__ import annotations

import weakref

import pyarrow as pa
import pytest

from limen.archive import LAYOUTS, Archive, ArchiveError, files, layouts, writer
from limen.testing.joined import Joined

from .by_hand import EVERY, INTEGERS, LEFT, STEPS, WINDOW, Appendix, Row
from .test_archive import START, one_of, open_one, some_rows


@pytest.fixture
def reads(monkeypatch):
    """The sub-index of every read, and those whose rows are still held when another is read."""
    found, held = [], []
    alive: list[tuple[tuple[int, int], weakref.ref]] = []
    really = files.read

    def read(file, *args, **more):
        others = {cell for cell, rows in alive if rows() is not None and cell != file.cell}
        held.extend(others)
        rows = really(file, *args, **more)
        found.append(file.cell)
        alive.append((file.cell, weakref.ref(rows)))
        return rows

    monkeypatch.setattr(writer.files, "read", read)
    return found, held


@pytest.mark.parametrize("name", LAYOUTS)
def test_one_sub_index_at_a_time(tmp_path, reads, name):
    found, held = reads
    archive = open_one(tmp_path, one_of(name, (3, 2)))
    for step in range(6):
        found.clear()
        if step == 4:
            archive.invalidate([0])
        done = archive.update(START + step * EVERY, INTEGERS.table(some_rows(step)))
        assert len(set(found)) <= done.touched
        blocks = [cell for i, cell in enumerate(found) if i == 0 or found[i - 1] != cell]
        assert len(blocks) == len(set(blocks))  # nor is one read again after another
    assert not held


@pytest.mark.parametrize("name", ["Rebuild1x1", "Rebuild4x4", "NoRebuild4x4", "LazyRebuild4x4"])
def test_memory_follows_the_largest_sub_index(tmp_path, name):
    """All that Arrow holds at once, beside the new results: a few copies of it, whatever the window."""
    joined = Joined(rows=5000, steps=12)
    said = {"window": joined.window, "every": joined.every, "layout": name}
    archive = Archive.open(tmp_path / "a", joined.schema, key="key", **said)
    archive.update(0, joined.initial())
    for step in range(1, 4):
        archive.update(step * joined.every, joined.update(step))
    new, usual = joined.update(4), pa.default_memory_pool()
    counting = pa.proxy_memory_pool(usual)
    pa.set_memory_pool(counting)
    try:
        archive.update(4 * joined.every, new)
    finally:
        pa.set_memory_pool(usual)
    sizes = [part.bytes for part in archive.sub_indices()]
    assert max(sizes) < counting.max_memory() < 4 * max(sizes) + new.nbytes
    assert len(sizes) == 1 or counting.max_memory() < sum(sizes) / 2


@pytest.mark.parametrize("name", LAYOUTS)
def test_few_files_make_a_sub_index(tmp_path, name):
    archive = open_one(tmp_path, one_of(name, (2, 1)))
    for step in range(STEPS + 2):
        done = archive.update(START + step * EVERY, INTEGERS.table(some_rows(step)))
        assert done.files_written <= done.touched  # what is new and what is written again are one
        most = max(some.files for some in archive.sub_indices())
        assert most <= (1 if archive.layout.recluster else writer.MOST_FILES)
    on_disk = {str(p.relative_to(archive.path)) for p in archive.path.rglob("gen*/**/*.parquet")}
    assert {file.path for file in archive.snapshot().files} <= on_disk


def test_the_smallest_file_takes_in_what_is_new(tmp_path):
    """If it is not much longer, or of four; the others are left as they are."""
    archive = open_one(tmp_path, "NoRebuild1x1")
    each = {40: [40], 10: [10, 40], 3: [3, 10, 40], 1: [1, 3, 10, 40], 2: [3, 3, 10, 40]}
    each |= {4: [3, 7, 10, 40]}
    for step, (many, sizes) in enumerate(each.items()):
        now = START + step * EVERY
        archive.update(now, INTEGERS.table([Row(i % 6, now, now, i) for i in range(many)]))
        assert sorted(file.rows for file in archive.snapshot().files) == sizes


@pytest.mark.parametrize("due", [4, 6])
def test_what_the_next_update_writes_again_is_left_alone(tmp_path, due):
    """Half of a file expires with update 4, or none of it does; as many results are new with update 3."""
    archive = open_one(tmp_path, "NoRebuild1x2")

    def update(step: int, *expires: int) -> list[int]:
        now = START + step * EVERY
        rows = [Row(i, START + e * EVERY - LEFT, now, i) for e in expires for i in range(6)]
        archive.update(now, INTEGERS.table(rows))
        return sorted(file.rows for file in archive.snapshot().files)

    update(0)
    assert update(1, due, 6) == update(2) == [12]
    assert update(3, 6, 6) == ([12, 12] if due == 4 else [24])
    assert update(4) == ([6, 12] if due == 4 else [24])


@pytest.mark.parametrize("name", LAYOUTS)
def test_what_is_invalid_is_deleted_at_the_next_look(tmp_path, name):
    """Section 3.5: though it has not expired, and nothing else of its file has."""
    archive, bad = open_one(tmp_path, one_of(name, (2, 2))), INTEGERS.keys[1]
    rows = [Row(i % 3, START - i % 10, START - i % 6, i) for i in range(60)]
    archive.update(START, INTEGERS.table(rows))  # the first of them expires in 7 minutes
    archive.invalidate([bad])
    gone = 0
    for step in (1, 2):
        before = archive.snapshot().state
        plan = layouts.update(archive.layout, STEPS, before.stretches, step, step)
        gone += archive.update(START + step * EVERY).deleted
        for cell in plan.examined:
            here = [file for file in archive.snapshot().files if file.cell == cell]
            assert all(bad not in _keys(archive, file) for file in here)
    left = sum(_keys(archive, file).count(bad) for file in archive.snapshot().files)
    assert gone == 20 - left > 0 and len(archive.scan()) == 40


def _keys(archive: Archive, file: files.DataFile) -> list[int]:
    return files.read(file).column("key").to_pylist()


@pytest.mark.parametrize("name", [n for n, c in LAYOUTS.items() if c.generation != layouts.LAZY])
def test_counted_windows_are_looked_at_a_step_around(tmp_path, name):
    """The range R: the column of an update, that of the one before and that of the one after."""
    layout, choices = one_of(name, (2, STEPS)), LAYOUTS[name]
    schema = pa.schema([(n, pa.int64()) for n in ("key", "generated", "place")])
    said = {"key": "key", "window": WINDOW, "every": EVERY, "layout": layout}
    archive = Archive.open(tmp_path / "c", schema, **said, counts={"w": ("place", 30)})
    sides = layout.rows, layout.columns
    how = {"generation": choices.generation, "expiration": choices.expiration}
    paper = Appendix(*sides, STEPS, **how)
    archive.update(0, counts={"w": 30})
    for step in range(1, 2 * STEPS):
        expired, inserted = paper.update(step, around=1)
        done = archive.update(step * EVERY, counts={"w": 30 + step})
        assert done.touched == len(expired | inserted)


def test_a_receipt_counts_bytes(tmp_path):
    archive = open_one(tmp_path, "Rebuild2x2")
    first = archive.update(START, INTEGERS.table(some_rows(0)))
    snapshot = archive.snapshot()
    assert first.bytes_read == 0 and first.touched == 4 and first.deleted == 0
    assert first.files_written == len(snapshot.files)
    assert first.bytes_written == sum(file.size for file in snapshot.files)
    second = archive.update(START + EVERY, INTEGERS.table(some_rows(1)))
    kept = {file.path for file in archive.snapshot().files}
    replaced = [file for file in snapshot.files if file.path not in kept]
    assert 0 < second.bytes_read <= sum(file.size for file in replaced)
    nothing = archive.update(START + 2 * EVERY)
    assert nothing.inserted == 0 and nothing.files_written <= nothing.touched == 3


def test_an_update_without_anything_to_do_writes_nothing(tmp_path):
    for name in LAYOUTS:
        archive = open_one(tmp_path / name, one_of(name, (2, 2)))
        archive.update(START)
        done = archive.update(START + EVERY)
        assert (done.files_written, done.bytes_read, done.inserted, done.deleted) == (0, 0, 0, 0)
        assert done.touched == archive.layout.touched


@pytest.mark.parametrize(  # the number of the file, whichever thread writes it
    ("name", "nth"),
    [*((n, i) for n in ("Rebuild", "NoRebuild") for i in (1, 2, 3)), ("LazyRebuild", 2)],
)
def test_an_update_that_fails_leaves_no_files(tmp_path, monkeypatch, name, nth):
    archive = open_one(tmp_path, one_of(name, (2, 2)))
    for step in range(3):
        archive.update(START + step * EVERY, INTEGERS.table(some_rows(step)))
    before = sorted(archive.path.rglob("*"))
    really, calls = files.write, []

    def write(*args):
        calls.append(args)
        if len(calls) == nth:
            raise ArchiveError("the disk is full")
        return really(*args)

    monkeypatch.setattr(writer.files, "write", write)
    with pytest.raises(ArchiveError, match="the disk is full"):
        archive.update(START + 3 * EVERY, INTEGERS.table(some_rows(3)))
    assert sorted(archive.path.rglob("*")) == before and archive.version == 3
    monkeypatch.undo()
    alive = [row for row in some_rows(3) if row.expires > START + 3 * EVERY]
    done = archive.update(START + 3 * EVERY, INTEGERS.table(some_rows(3)))
    assert done.inserted == len(alive)
