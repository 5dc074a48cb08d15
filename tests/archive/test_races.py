"""Several writers and readers at one archive: each step is made once, readers see whole states."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from limen.archive import Archive, ArchiveError, ConflictError, table
from limen.archive.table import Table
from limen.delta import log

from .by_hand import EVERY, INTEGERS, ByHand, Row, bag
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


# -- housekeeping ---------------------------------------------------------------------------------


def _aged(archive: Archive, seconds: float) -> None:
    """As if all had been written so long ago."""
    for path in archive.path.rglob("*"):
        if path.is_file():
            os.utime(path, (time.time() - seconds,) * 2)


@pytest.mark.parametrize("place", ["to_disk", "commit"])
@pytest.mark.parametrize("does", ["update", "migrate", "invalidate", "take_in"])
def test_a_vacuum_spares_a_commit_in_the_making(tmp_path, monkeypatch, does, place):
    """Though it has taken hours: what no commit has named is kept for a day."""
    archive = open_one(tmp_path, "NoRebuild2x2", grace=timedelta(0))
    for step in range(3):
        archive.update(START + step * EVERY, INTEGERS.table(some_rows(step)))
    rows = INTEGERS.table([Row(2, START + 5, START + 5)])
    change = {
        "update": lambda: archive.update(START + 3 * EVERY, INTEGERS.table(some_rows(3))),
        "migrate": lambda: archive.migrate("Rebuild3x3"),
        "invalidate": lambda: archive.invalidate([INTEGERS.keys[1]]),
        "take_in": lambda: archive.take_in("s", 0, rows),
    }[does]
    other, vacuumed = Archive.open(archive.path), []
    really = getattr(table, place)

    def slow(*args, **more):
        monkeypatch.undo()
        _aged(archive, 20 * 3600)
        vacuumed.append(other.vacuum(timedelta(0)))
        return really(*args, **more)

    monkeypatch.setattr(table, place, slow)
    change()
    assert vacuumed and archive.version == 4
    again = Archive.open(archive.path)
    assert again.version == 4 and bag(again.scan()) == bag(archive.scan())
    again.update(START + 4 * EVERY, late=True, catch_up=True)
    assert again.done("s") == (0 if does == "take_in" else None)


def test_what_a_commit_has_removed_goes_at_once_if_it_is_said(tmp_path):
    """And what none has named only after a day."""
    archive = open_one(tmp_path, "Rebuild2x2")
    for step in range(3):
        archive.update(START + step * EVERY, INTEGERS.table(some_rows(step)))
        archive.invalidate([INTEGERS.keys[step]])
    newest = archive.snapshot()
    left = archive.path / "generation_partition=0" / "expiration_partition=0" / "left.parquet"
    left.write_bytes(b"?")
    assert archive.vacuum(timedelta(0)) > 3
    data = {str(path.relative_to(archive.path)) for path in archive.path.glob("gen*/*/*")}
    assert data == {str(left.relative_to(archive.path)), *(file.path for file in newest.files)}
    beside = {path.name for path in (archive.path / "_limen").glob("*.parquet")}
    assert beside == {newest.state.invalid}
    for hours, there in ((23, True), (25, False)):
        os.utime(left, (time.time() - hours * 3600,) * 2)
        archive.vacuum(timedelta(0))
        assert left.exists() == there


def test_updates_sweep_files_beside_the_table_too(tmp_path):
    """Lists of invalid keys and waiting results that later commits have replaced."""
    archive = open_one(tmp_path, "Rebuild2x2")
    archive.update(START, INTEGERS.table(some_rows(0)))
    for batch in range(3):
        archive.take_in("s", batch, INTEGERS.table([Row(2, START + 1, START + 1, batch)]))
        archive.invalidate([INTEGERS.keys[batch]])
    old = {path.name for path in (archive.path / "_limen").glob("*.parquet")}
    archive.update(START + EVERY)
    kept = {archive.snapshot().state.invalid}
    assert not archive.snapshot().state.pending and len(old - kept) == 5
    _aged(archive, 7200)
    archive.update(START + 2 * EVERY)
    here = {path.name for path in (archive.path / "_limen").glob("*.parquet")}
    assert not here & (old - kept) and kept <= here  # the grace of the last is not over


def _waiting(tmp_path) -> Archive:
    """With a result that waits and a key that was invalidated; then another program has its say."""
    archive = open_one(tmp_path, "NoRebuild2x2")
    archive.update(START, INTEGERS.table(some_rows(0)))
    archive.take_in("s", 0, INTEGERS.table([r for r in some_rows(1) if r.generated == START + 1]))
    archive.invalidate([INTEGERS.keys[1]])
    harmless = {"delta.deletedFileRetentionDuration": "interval 8 days"}
    DeltaTable(str(archive.path)).alter.set_table_properties(harmless)
    _aged(archive, 7200)
    return Archive.open(archive.path)


@pytest.mark.parametrize("does", ["vacuum", "update", "take_in"])
def test_a_commit_of_another_program_loses_no_file(tmp_path, does):
    archive = _waiting(tmp_path)
    state, right = archive.snapshot().state, bag(archive.scan())
    assert state.pending and state.invalid
    if does == "vacuum":
        assert archive.vacuum() == 0
        assert Archive.open(archive.path).snapshot().state == state
        assert bag(Archive.open(archive.path).scan()) == right
    elif does == "update":
        archive.update(START + EVERY)
        _aged(archive, 7200)
        archive.update(START + 2 * EVERY)
    else:
        archive.take_in("s", 1, INTEGERS.table([]))
        _aged(archive, 7200)
        archive.vacuum()
    again = Archive.open(archive.path)
    again.update(again.time + EVERY)
    rows = again.scan().to_pylist()
    assert any(row["generated"] == START + 1 for row in rows)  # it has waited
    assert all(row["key"] != INTEGERS.keys[1] or row["generated"] > START for row in rows)


def _with_a_damaged_commit(tmp_path):
    """Before a checkpoint, so that only housekeeping reads it."""
    archive = open_one(tmp_path, "Rebuild2x2")
    for step in range(14):
        archive.update(START + step * EVERY, INTEGERS.table(some_rows(step)))
    damaged = archive.path / "_delta_log" / f"{3:020}.json"
    damaged.write_bytes(b"\xff{")
    _aged(archive, 7200)
    return Archive.open(archive.path), damaged


def test_an_update_is_not_failed_by_housekeeping(tmp_path):
    archive, damaged = _with_a_damaged_commit(tmp_path)
    before = {p for p in archive.path.glob("gen*/*/*")}
    done = archive.update(START + 14 * EVERY, INTEGERS.table(some_rows(14)))
    assert archive.version == done.version == 15
    assert len(before - {p for p in archive.path.glob("gen*/*/*")}) > 3
    with pytest.raises(ArchiveError, match=f"{damaged.name}: the archive is damaged: not one of"):
        archive.vacuum()


def test_a_file_that_cannot_be_deleted_fails_no_update(tmp_path, monkeypatch):
    archive = open_one(tmp_path, "Rebuild2x2", grace=timedelta(0))
    for step in range(3):
        archive.update(START + step * EVERY, INTEGERS.table(some_rows(step)))

    really = Path.unlink

    def refused(path: Path, missing_ok: bool = False) -> None:
        if path.suffix == ".parquet":
            raise PermissionError("not yours")
        really(path, missing_ok)

    monkeypatch.setattr(Path, "unlink", refused)
    archive.update(START + 3 * EVERY)
    assert archive.version == 4
    with pytest.raises(ArchiveError, match="cannot be written: not yours"):
        archive.vacuum(timedelta(0))


def test_each_commit_is_swept_once(tmp_path, monkeypatch):
    """Not again by every handle: a sink opens one for every batch."""
    archive = open_one(tmp_path, "Rebuild2x2")
    for step in range(12):
        archive.update(START + step * EVERY, INTEGERS.table(some_rows(step)))
    _aged(archive, 7200)
    Archive.open(archive.path).update(START + 12 * EVERY)
    files, looked = list(archive.path.glob("gen*/*/*")), []
    really = log.actions
    monkeypatch.setattr(log, "actions", lambda path, v: looked.append(v) or really(path, v))
    fresh = Archive.open(archive.path)
    looked.clear()
    fresh.update(START + 13 * EVERY)
    assert len(looked) < 6 and min(looked) > 8
    assert set(files) <= set(archive.path.glob("gen*/*/*"))  # the grace of the last is not over
    monkeypatch.undo()
    (archive.path / "_limen" / "swept").write_text("lost")
    _aged(archive, 7200)
    Archive.open(archive.path).update(START + 14 * EVERY)
    used = {f.path for v in (13, 14, 15) for f in _files_of(archive, v)}
    assert {str(p.relative_to(archive.path)) for p in archive.path.glob("gen*/*/*")} <= used


def _logged(archive: Archive) -> list[int]:
    return sorted(int(p.stem) for p in (archive.path / "_delta_log").glob("*.json"))


def test_the_log_is_vacuumed_up_to_a_checkpoint(tmp_path):
    archive = open_one(tmp_path, "NoRebuild2x2", grace=timedelta(0))
    idle = Archive.open(archive.path)
    archive.take_in("s", 3, INTEGERS.table([]))
    for step in range(24):
        archive.update(START + step * EVERY, INTEGERS.table(some_rows(step)))
    right = bag(archive.scan())
    archive.vacuum()
    assert _logged(archive) == list(range(26))  # young
    _aged(archive, 3 * 24 * 3600)
    assert archive.vacuum(timedelta(days=4)) == 0 and _logged(archive) == list(range(26))
    assert archive.vacuum() > 0
    assert _logged(archive) == list(range(19, 26))
    with pytest.raises(ArchiveError, match="there is no version 5: its log was vacuumed"):
        archive.snapshot(5)
    again = Archive.open(archive.path)
    assert bag(again.scan()) == right and again.done("s") == 3 and again.version == 25
    assert again.snapshot(25).time == archive.time
    # one that has not looked for long: its version is gone, and so is the commit after it
    assert bag(idle.scan()) == right and idle.version == 25
    idle.update(START + 24 * EVERY)
    assert archive.snapshot().version == 26
    assert not list(archive.path.glob("_delta_log/00000000000000000001.json"))
    assert archive.vacuum() >= 0 and _logged(archive) == list(range(19, 27))


def test_a_writer_whose_log_is_vacuumed_meanwhile_is_told(tmp_path, monkeypatch):
    """Else it would commit in the place of a version that has been."""
    archive = open_one(tmp_path, "NoRebuild2x2")
    archive.update(START, INTEGERS.table(some_rows(0)))
    slow = Archive.open(archive.path)

    def meanwhile() -> None:
        for step in range(1, 24):
            archive.update(START + step * EVERY, INTEGERS.table(some_rows(step)))
        _aged(archive, 3 * 24 * 3600)
        archive.vacuum()

    _in_between(monkeypatch, meanwhile)
    with pytest.raises(ConflictError, match="another writer has changed it meanwhile"):
        slow.update(START + EVERY)
    assert _logged(archive)[0] == 19 and archive.snapshot().version == 24


def test_the_log_keeps_the_last_commit_of_ours(tmp_path):
    """A checkpoint may be of a version that another program has made, which has no state."""
    archive = open_one(tmp_path, "NoRebuild2x2")
    for step in range(8):
        archive.update(START + step * EVERY, INTEGERS.table(some_rows(step)))
    table = DeltaTable(str(archive.path))
    table.alter.set_table_properties({"delta.deletedFileRetentionDuration": "interval 8 days"})
    table.create_checkpoint()
    archive.update(START + 8 * EVERY)
    right = bag(archive.scan())
    _aged(archive, 3 * 24 * 3600)
    archive.vacuum()
    assert _logged(archive) == [8, 9, 10]
    assert bag(Archive.open(archive.path).scan()) == right


def test_a_damaged_checkpoint_is_not_relied_on(tmp_path):
    archive = open_one(tmp_path, "NoRebuild2x2")
    for step in range(14):
        archive.update(START + step * EVERY, INTEGERS.table(some_rows(step)))
    (point,) = (archive.path / "_delta_log").glob("*.checkpoint.parquet")
    point.write_bytes(point.read_bytes()[:100])
    _aged(archive, 3 * 24 * 3600)
    archive.vacuum()
    assert _logged(archive) == list(range(15))


def test_what_crashes_and_tasks_leave(tmp_path):
    archive = open_one(tmp_path, "NoRebuild2x2")
    archive.update(START, INTEGERS.table(some_rows(0)))
    bad = INTEGERS.table(some_rows(1)[:1]).set_column(
        0, "key", pa.nulls(1, INTEGERS.table([]).field(0).type)
    )
    archive.take_in("s", 0, bad)
    beside = archive.path / "_limen"
    left, incoming = beside / "quarantine" / ".killed", beside / "incoming-0-x.parquet"
    for path in (left, incoming):
        path.write_bytes(b"?")
    _aged(archive, 23 * 3600)
    archive.vacuum()
    assert left.exists() and incoming.exists() and len(archive.quarantine()) == 1
    _aged(archive, 25 * 3600)
    archive.vacuum()
    assert not left.exists() and not incoming.exists() and len(archive.quarantine()) == 1
