"""A probe reads the row groups that the directory names, and nothing else."""

from __future__ import annotations

import subprocess
import sys
import threading

import duckdb
import pyarrow as pa
import pytest

from limen.archive import Archive, ArchiveError, files, reader

from .by_hand import EVERY, INTEGERS, KINDS, LEFT, RIGHT, ByHand, bag
from .test_archive import START, open_one, some_rows


@pytest.fixture
def archive(tmp_path, monkeypatch):
    """Files with several row groups."""
    monkeypatch.setattr(files, "MIN_BYTES", 200)
    made = open_one(tmp_path, "NoRebuild2x2")
    for step in range(4):
        made.update(START + step * EVERY, INTEGERS.table(some_rows(step)))
    return made


@pytest.fixture
def asked(monkeypatch):
    """What is asked for: the path of the file, and its row groups."""
    found = []
    really = files.read

    def read(file, groups=None, *args, **more):
        whole = range(len(file.groups)) if groups is None else groups
        found.append((file.path, tuple(whole)))
        return really(file, groups, *args, **more)

    monkeypatch.setattr(reader.files, "read", read)
    return found


@pytest.mark.parametrize("number", range(6))
def test_a_probe_reads_the_groups_with_its_key(archive, asked, number):
    key, snapshot = INTEGERS.keys[number], archive.snapshot()
    expected, read, all_bytes = [], 0, 0
    for file in snapshot.files:
        here = [i for i, g in enumerate(file.groups) if g.first <= key <= g.last]
        all_bytes += sum(group.length for group in file.groups)
        if here:
            expected.append((file.path, tuple(here)))
            read += sum(file.groups[i].length for i in here)
    archive.probe(key)
    assert sorted(asked) == sorted(expected)
    lengths = {file.path: [g.length for g in file.groups] for file in snapshot.files}
    assert sum(lengths[path][i] for path, groups in asked for i in groups) == read < all_bytes


@pytest.mark.parametrize("number", range(6))
def test_all_other_bytes_may_be_anything(archive, number):
    """What a probe does not read, it does not miss: all other row groups are overwritten."""
    key, snapshot = INTEGERS.keys[number], archive.snapshot()
    right = snapshot.probe(key)
    for file in snapshot.files:
        path = archive.path / file.path
        data = bytearray(path.read_bytes())
        there = [group for group in file.groups if group.first <= key <= group.last]
        for group in file.groups:
            if group not in there:
                data[group.start : group.start + group.length] = bytes(group.length)
        if there:
            path.write_bytes(data)
        else:
            path.unlink()  # such a file is not even opened
    assert snapshot.probe(key) == right
    with pytest.raises(ArchiveError):
        snapshot.scan()


def test_a_missing_key_reads_nothing_or_one_group_of_a_file(archive, asked):
    assert not len(archive.probe(-(2**62)))
    assert all(len(groups) == 1 for _, groups in asked)
    asked.clear()
    assert not len(archive.probe([])) and not asked


def test_files_that_have_expired_are_not_read(tmp_path, asked):
    """Those of a lazy layout that lie there for a while, and those that a shorter window leaves out."""
    archive = open_one(tmp_path, "LazyNoRebuild2x4")
    for step in range(6):
        archive.update(START + step * EVERY, INTEGERS.table(some_rows(step)))
    snapshot = archive.snapshot()
    asked.clear()
    snapshot.scan()
    now = START + 5 * EVERY
    assert {path for path, _ in asked} == {f.path for f in snapshot.files if f.expires[1] > now}
    assert len(asked) < len(snapshot.files)
    asked.clear()
    snapshot.window(4).scan()
    least = now + 12
    assert {path for path, _ in asked} == {f.path for f in snapshot.files if f.expires[1] > least}


def test_columns_are_chosen(archive):
    whole = archive.scan("key")
    for columns in (["serial"], ["serial", "key"], ["expires"], []):
        assert archive.scan("key", columns=columns).column_names == columns
        assert archive.probe(0, columns=columns).column_names == columns
    assert bag(archive.scan(columns=["serial", "key"])) == bag(whole.select(["serial", "key"]))
    archive.invalidate([0])
    left = archive.window({"left": 5}).scan(columns=["serial"]).column("serial").to_pylist()
    rows = [r for step in range(4) for r in some_rows(step)]
    now = START + 3 * EVERY
    alive = [r.serial for r in rows if r.left > now - 5 and r.expires > now and r.key != 2]
    assert sorted(left) == sorted(alive)


@pytest.mark.parametrize("kind", KINDS, ids=repr)
def test_a_scan_in_parts(tmp_path, monkeypatch, kind):
    """However few rows a part has, every result is in one of them, in order of the key."""
    monkeypatch.setattr(files, "MIN_BYTES", 200)
    archive, expected = open_one(tmp_path, "Rebuild2x2", kind), ByHand()
    for step in range(3):
        archive.update(kind.time(START + step * EVERY), kind.table(some_rows(step)))
        expected.update(START + step * EVERY, some_rows(step))
    for rows in (1, 10, 10**6):
        monkeypatch.setattr(reader, "SLICE_ROWS", rows)
        parts = list(archive.scan_batches())
        assert len(parts) == 1 if rows == 10**6 else len(parts) > 1
        keys = [key for part in parts for key in part.column("key").to_pylist()]
        assert keys == sorted(keys)
        kind.same(pa.concat_tables(parts), expected.alive())


def test_an_archive_without_results(tmp_path):
    archive = open_one(tmp_path, "Rebuild2x2")
    for _ in range(2):
        assert archive.scan().schema == archive.shape.schema
        assert not len(archive.scan("key")) and not len(archive.probe(1))
        assert not list(archive.scan_batches()) and not len(archive.window(8).scan())
        if archive.time is None:
            assert archive.where() == "false"
            archive.update(START)
    assert [some.rows for some in archive.sub_indices()] == [0] * 4


def test_what_was_read_stays_as_it_is(archive):
    """A table that a reader holds does not change with what is read after it."""
    held = [(key, archive.probe(key)) for key in INTEGERS.keys]
    before = [(key, bag(table)) for key, table in held]
    for _ in range(3):
        archive.scan()
        archive.probe(list(INTEGERS.keys))
    assert [(key, bag(table)) for key, table in held] == before


def test_threads_share_a_handle(archive):
    right = {key: bag(archive.probe(key)) for key in INTEGERS.keys}
    wrong: list[object] = []

    def look() -> None:
        for _ in range(10):
            wrong.extend(key for key in right if bag(archive.probe(key)) != right[key])

    threads = [threading.Thread(target=look) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_sub_indices_are_told_row_by_row(archive):
    told = archive.sub_indices()
    assert [(some.row, some.column) for some in told] == [(0, 0), (0, 1), (1, 0), (1, 1)]
    snapshot = archive.snapshot()
    assert sum(some.files for some in told) == len(snapshot.files)
    assert sum(some.bytes for some in told) == sum(file.size for file in snapshot.files)


def test_files_are_named_by_key_and_times(archive):
    """No file with a result that is asked for is left out, and the ends of its ranges decide."""
    snapshot = archive.snapshot()
    now = START + 3 * EVERY
    alive = [f for f in snapshot.files if f.expires[1] > now]
    assert snapshot.named() == alive
    for key in INTEGERS.keys:
        found = snapshot.named(key=key)
        assert found == [f for f in alive if len(f.groups_of(key, key))]
    assert snapshot.named(generated=(now - 1, None)) == [
        f for f in alive if f.generated[1] >= now - 1
    ]
    assert snapshot.named(expires=(None, now + 3)) == [f for f in alive if f.expires[0] <= now + 3]
    assert Archive.open(archive.path).snapshot().named(between=(0, 1)) == [
        f for f in alive if len(f.groups_of(0, 1))
    ]


@pytest.mark.parametrize(
    ("asked", "left", "right"),
    [  # one after the other; what is left of each window
        ([10, 7], LEFT - 9, RIGHT - 9),
        ([{"left": 9}, {"right": 6}], 9, 6),
        ([{"left": 9}, {"left": 5}], 5, RIGHT),
        ([10, {"right": 6}], LEFT - 6, 6),
        ([{"right": 6}, 10], LEFT - 6, 6),
        ([10, {"left": LEFT - 6}, {"right": RIGHT - 6}, 10], LEFT - 6, RIGHT - 6),
    ],
)
def test_windows_get_shorter_and_shorter(archive, asked, left, right):
    expected = ByHand()
    for step in range(4):
        expected.update(START + step * EVERY, some_rows(step))
    snapshot = archive.snapshot()
    for size in asked:
        snapshot = snapshot.window(size)
    alive = expected.unequal(left, right)
    INTEGERS.same(snapshot.scan(), alive)
    with duckdb.connect() as connection:
        connection.register("results", archive.scan())
        found = connection.sql(f"SELECT serial FROM results WHERE {snapshot.where()}").fetchall()
    assert sorted(serial for (serial,) in found) == sorted(row.serial for row in alive)


@pytest.mark.parametrize(
    ("first", "then", "told"),
    [
        (8, 16, "window=16: the snapshot's is 8"),
        (8, 9, "window=9: the snapshot's is 8"),
        (8, {"left": 9}, "window 'left': 9 is more than its size in the snapshot"),
        (8, {"right": 13}, "window 'right': 13 is more than its size in the snapshot"),
        ({"left": 4}, {"left": 5}, "window 'left': 5 is more than its size in the snapshot"),
        ({"left": 4}, {"right": 21}, "window 'right': 21 is more than its size in the archive"),
        ({"left": 4}, 17, "window=17: the archive's is 16"),
    ],
)
def test_windows_do_not_get_longer(archive, first, then, told):
    with pytest.raises(ArchiveError, match=told):
        archive.window(first).window(then)


def test_a_forked_process_is_told_why_it_cannot_read(archive):
    """Its pool of threads was not taken along: it would wait for them for ever."""
    code = f"""
import os, signal
from limen.archive import Archive, ArchiveError
snapshot = Archive.open({str(archive.path)!r}).snapshot()
assert len(snapshot.scan()) == {len(archive.scan())}
if not (child := os.fork()):
    signal.alarm(30)
    for read in (snapshot.scan, lambda: snapshot.probe([0, 1]), lambda: list(snapshot.scan_batches())):
        try:
            read()
        except ArchiveError as error:
            assert "start processes by spawn or forkserver" in str(error)
        else:
            os._exit(1)
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
"""
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True, timeout=120)


def test_what_goes_wrong_in_any_read_is_told(archive, monkeypatch):
    """Also an IndexError, in whichever thread, of whichever file."""
    really = reader.files.read
    for bad in {file.path for file in archive.snapshot().files}:

        def read(file, *args, bad=bad, **more):
            if file.path == bad:
                raise IndexError(bad)
            return really(file, *args, **more)

        monkeypatch.setattr(reader.files, "read", read)
        with pytest.raises(IndexError, match=bad):
            archive.scan()
