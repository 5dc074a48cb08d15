"""Several writers and readers at one archive: each step is made once, readers see whole states."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from datetime import timedelta

import pyarrow as pa
import pytest

from limen.archive import Archive, ArchiveError, ConflictError
from limen.archive.table import Table

from .by_hand import EVERY, INTEGERS, ByHand, bag
from .test_archive import START, open_one, some_rows

STEPS = 8
WRITER = """
import json, pathlib, sys, time
from limen.archive import Archive, ArchiveError, ConflictError

path, gun, name, steps = *sys.argv[1:4], int(sys.argv[4])
archive = Archive.open(path)
print("ready", flush=True)
while not pathlib.Path(gun).exists():
    time.sleep(0.001)
said = []
for step in range(1, steps + 1):
    now = 16 + 2 * step
    rows = {"key": [step], "generated": [now], "expires": [now + 16], "writer": [name]}
    try:
        archive.update(now, rows)
        said.append("won")
    except ConflictError as error:
        said.append(f"conflict: {error}")
    except ArchiveError as error:
        said.append(str(error))
    while archive.time < now:  # the winner has committed, or is about to
        time.sleep(0.001)
print(json.dumps(said), flush=True)
"""


def _lost(said: str) -> bool:
    words = ("another writer has changed it meanwhile; nothing was written", "is done already")
    return any(word in said for word in words) or "is before the last" in said


def test_of_two_processes_one_makes_each_step(tmp_path):
    schema = pa.schema([(n, pa.int64()) for n in ("key", "generated", "expires")])
    schema = schema.append(pa.field("writer", pa.string()))
    said = {"key": "key", "window": 16, "every": 2, "layout": "NoRebuild2x2"}
    archive = Archive.open(tmp_path / "archive", schema, **said)
    archive.update(16)
    gun = tmp_path / "gun"
    jobs = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, str(archive.path), str(gun), name, str(STEPS)],
            stdout=subprocess.PIPE,
            text=True,
        )
        for name in "ab"
    ]
    try:
        assert all(job.stdout.readline() == "ready\n" for job in jobs)
        gun.touch()
        told = [json.loads(job.communicate(timeout=60)[0]) for job in jobs]
    finally:
        for job in jobs:
            job.kill()
            job.communicate()
    rows = {row["key"]: row["writer"] for row in archive.scan().to_pylist()}
    assert archive.version == STEPS + 1 and len(archive.scan()) == STEPS
    for step in range(STEPS):
        assert sorted(told[w][step] == "won" for w in range(2)) == [False, True]
        assert all(line[step] == "won" or _lost(line[step]) for line in told)
        if step + 1 in rows:
            assert rows[step + 1] == "ab"[told[1][step] == "won"]
    _no_strays(archive)


def _no_strays(archive: Archive) -> None:
    """All data files on disk are those of a version."""
    known = {
        file.path
        for version in range(archive.version + 1)
        for file in archive.snapshot(version).files
    }
    on_disk = {str(p.relative_to(archive.path)) for p in archive.path.glob("gen*/*/*")}
    assert on_disk == known


def test_threads_with_handles_of_their_own(tmp_path):
    """Each tries every step; a reader looks on and never sees a part of one."""
    archive, expected = open_one(tmp_path, "Rebuild2x2"), ByHand()
    archive.update(START, INTEGERS.table(some_rows(0)))
    expected.update(START, some_rows(0))
    states = {START: bag(INTEGERS.table(expected.alive()))}
    for step in range(1, STEPS):
        expected.update(START + step * EVERY, some_rows(step))
        states[START + step * EVERY] = bag(INTEGERS.table(expected.alive()))
    barrier, won, wrong = threading.Barrier(2), [], []
    done = threading.Event()

    def write(name: str) -> None:
        mine = Archive.open(archive.path)
        for step in range(1, STEPS):
            barrier.wait(30)
            try:
                mine.update(START + step * EVERY, INTEGERS.table(some_rows(step)))
                won.append(step)
            except ArchiveError as error:
                if not (isinstance(error, ConflictError) or _lost(str(error))):
                    wrong.append(error)
            barrier.wait(30)

    def look() -> None:
        mine = Archive.open(archive.path)
        while not done.is_set():
            snapshot = mine.snapshot()
            if bag(snapshot.scan()) != states[snapshot.time]:
                wrong.append(snapshot.version)

    writers = [threading.Thread(target=write, args=(name,)) for name in "ab"]
    reader = threading.Thread(target=look)
    for thread in (reader, *writers):
        thread.start()
    for thread in writers:
        thread.join()
    done.set()
    reader.join()
    assert won == list(range(1, STEPS)) and not wrong
    assert archive.snapshot().version == STEPS
    _no_strays(archive)


def _in_between(monkeypatch, does) -> None:
    """Let somebody commit after a writer has looked and before it commits."""
    really = Table.commit

    def commit(self, *args, **more):
        monkeypatch.setattr(Table, "commit", really)
        does()
        return really(self, *args, **more)

    monkeypatch.setattr(Table, "commit", commit)


def test_the_slower_of_two_is_told_and_leaves_nothing(tmp_path, monkeypatch):
    archive = open_one(tmp_path, "NoRebuild2x2")
    archive.update(START, INTEGERS.table(some_rows(0)))
    other = Archive.open(archive.path)
    rows = INTEGERS.table(some_rows(1))
    _in_between(monkeypatch, lambda: other.update(START + EVERY, rows))
    with pytest.raises(ConflictError, match="another writer has changed it meanwhile; nothing was"):
        archive.update(START + EVERY, rows)
    assert archive.snapshot().version == 2 and bag(archive.scan()) == bag(other.scan())
    _no_strays(archive)
    with pytest.raises(ArchiveError, match=f"the update at {START + EVERY} is done already"):
        archive.update(START + EVERY, rows)
    archive.update(START + 2 * EVERY)


def test_an_invalidation_that_comes_between(tmp_path, monkeypatch):
    archive = open_one(tmp_path, "NoRebuild2x2")
    archive.update(START, INTEGERS.table(some_rows(0)))
    other = Archive.open(archive.path)
    _in_between(monkeypatch, lambda: other.invalidate([0]))
    with pytest.raises(ConflictError):
        archive.invalidate([1])
    archive.invalidate([1])
    assert not len(archive.probe([0, 1]))


def test_a_migration_is_built_again(tmp_path, monkeypatch):
    archive = open_one(tmp_path, "NoRebuild2x2")
    archive.update(START, INTEGERS.table(some_rows(0)))
    other = Archive.open(archive.path)
    rows = INTEGERS.table(some_rows(1))
    _in_between(monkeypatch, lambda: other.update(START + EVERY, rows))
    archive.migrate("Rebuild3x3")
    assert archive.version == 3 and str(other.snapshot().layout) == "Rebuild3x3"
    alive = [r for step in (0, 1) for r in some_rows(step) if r.expires > START + EVERY]
    INTEGERS.same(other.scan(), alive)
    _no_strays(archive)


def test_a_migration_that_never_comes_first_says_so(tmp_path, monkeypatch):
    archive = open_one(tmp_path, "NoRebuild2x2")
    archive.update(START, INTEGERS.table(some_rows(0)))

    def lost(*args, **more):
        raise ConflictError("another was quicker")

    monkeypatch.setattr(Table, "commit", lost)
    with pytest.raises(ConflictError, match="others kept updating it while Rebuild3x3 was built"):
        archive.migrate("Rebuild3x3")
    monkeypatch.undo()
    assert str(Archive.open(archive.path).layout) == "NoRebuild2x2"
    _no_strays(archive)


def test_a_reader_keeps_its_snapshot(tmp_path):
    """Through updates and a migration, until it is vacuumed."""
    archive = open_one(tmp_path, "Rebuild2x2")
    archive.update(START, INTEGERS.table(some_rows(0)))
    snapshot = archive.snapshot()
    right = bag(snapshot.scan())
    for step in range(1, 6):
        archive.update(START + step * EVERY, INTEGERS.table(some_rows(step)))
        assert bag(snapshot.scan()) == bag(archive.snapshot(1).scan()) == right
    archive.migrate("NoRebuild3x3")
    assert archive.vacuum() == 0 and bag(snapshot.scan()) == right
    newest = bag(archive.scan())
    assert archive.vacuum(timedelta(0)) > 0
    for read in (snapshot.scan, lambda: archive.snapshot(1)):
        with pytest.raises(
            ArchiveError, match=r"is gone: it was vacuumed, or deleted by .*; take a"
        ):
            read()
    assert bag(archive.scan()) == bag(Archive.open(archive.path).scan()) == newest
    on_disk = {str(p.relative_to(archive.path)) for p in archive.path.glob("gen*/*/*")}
    assert on_disk == {file.path for file in archive.snapshot().files}


def test_updates_vacuum_by_themselves(tmp_path):
    archive = open_one(tmp_path, "Rebuild2x2", grace=timedelta(0))
    for step in range(6):
        archive.update(START + step * EVERY, INTEGERS.table(some_rows(step)))
    on_disk = {str(p.relative_to(archive.path)) for p in archive.path.glob("gen*/*/*")}
    used = {file.path for v in (5, 6) for file in _files_of(archive, v)}
    assert {file.path for file in archive.snapshot().files} <= on_disk <= used


def _files_of(archive: Archive, version: int):
    try:
        return archive.snapshot(version).files
    except ArchiveError:
        return []


def test_makers_make_one_archive(tmp_path):
    made, wrong = [], []

    def make() -> None:
        try:
            made.append(open_one(tmp_path, "Rebuild2x2"))
        except ArchiveError as error:
            wrong.append(error)

    threads = [threading.Thread(target=make) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 3 and not wrong
    made[0].update(START, INTEGERS.table(some_rows(0)))
    assert all(bag(one.scan()) == bag(made[0].scan()) for one in made)


def test_a_maker_that_was_slow_or_died(tmp_path):
    """The folder of its log is there, without a commit; another takes over."""
    (tmp_path / "archive" / "_delta_log").mkdir(parents=True)
    assert open_one(tmp_path, "Rebuild2x2").version == 0
