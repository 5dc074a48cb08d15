"""Damage to the Delta log is named, or no answer depends on it; commits of others are told apart."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from limen.archive import Archive, ArchiveError
from limen.archive.table import ASIDE, BESIDE

from .by_hand import EVERY, INTEGERS, Row, bag
from .test_archive import START, open_one, some_rows

FLIPS = 60  # in every commit, beside those in the words on which most depends
WORDS = (
    rb'"(?:commitInfo|operation|limen|limen\.archive[a-z.]*|txn|appId|version|add|remove|path)":'
)
KINDS = ["create", "update", "invalidate", "wait", "update", "migrate"]


def _served(folder: Path) -> Archive:
    """With commits of all kinds, two of them with the mark of a batch."""
    archive = open_one(folder, "NoRebuild2x2")
    archive.update(START, INTEGERS.table(some_rows(0)))
    archive.invalidate([INTEGERS.keys[1]])
    for batch, now in enumerate([START + 1, START + EVERY]):
        archive.take_in("s", batch, INTEGERS.table([Row(2, now, now)]))
    archive.migrate("Rebuild2x3")
    return archive


@pytest.fixture
def archive(tmp_path) -> Archive:
    return _served(tmp_path)


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Archive:
    """For many damages, each of which is undone."""
    return _served(tmp_path_factory.mktemp("whole"))


def _commits(archive: Archive) -> list[Path]:
    return sorted((archive.path / "_delta_log").glob("*.json"))


def _answers(archive: Archive) -> list[object]:
    return [
        archive.done("s"),
        archive.done("t"),
        archive.time,
        archive.layout,
        archive._table.grace,
        archive.where(),
        bag(archive.scan()),
        bag(archive.probe(0)),
        bag(archive.probe(INTEGERS.keys[1])),
        archive.snapshot().state,
    ]


def _is_named(damaged: Path, path: Path, right: list[object]) -> bool:
    """Is damage told by the name of the file? If it is not told, all answers must be right."""
    try:
        found = _answers(Archive.open(path))
    except ArchiveError as error:
        assert damaged.name in str(error), str(error)
        return True
    assert found == right
    return False


def _flips(data: bytes, seed: str) -> Iterator[bytes]:
    rng = random.Random(seed)
    bits = set(rng.sample(range(8 * len(data)), FLIPS))
    for word in {found[0]: found for found in re.finditer(WORDS, data)}.values():
        bits |= {8 * at + rng.randrange(8) for at in range(*word.span())}
    limen = 8 * data.index(b'"limen":')
    for bit in sorted({*bits, *range(limen, limen + 64)}):
        at = bit // 8
        yield data[:at] + bytes([data[at] ^ 1 << bit % 8]) + data[at + 1 :]


# -- damage ---------------------------------------------------------------------------------------


def test_a_flipped_bit_of_a_commit(whole):
    """Whether it tells of files, of the state, of a batch or of the table."""
    right = _answers(whole)
    assert right[:2] == [1, None] and not right[8] and right[7]
    kinds, told = [], 0
    for path in _commits(whole):
        data = path.read_bytes()
        kinds.append(json.loads(data.splitlines()[0])["commitInfo"]["limen"]["kind"])
        for flipped in _flips(data, path.name):
            path.write_bytes(flipped)
            told += _is_named(path, whole.path, right)
        path.write_bytes(data)
    assert kinds == KINDS and told > 300
    assert _answers(Archive.open(whole.path)) == right


def test_a_cut_commit(whole):
    right = _answers(whole)
    for path in _commits(whole):
        data = path.read_bytes()
        lines = data.splitlines(keepends=True)
        cuts = [data[: len(data) * part // 7] for part in range(7)]
        for cut in [*cuts, *(b"".join(lines[:n]) for n in range(len(lines)))]:
            path.write_bytes(cut)
            _is_named(path, whole.path, right)
        path.write_bytes(data)


@pytest.mark.parametrize("number", [2, 3])
def test_a_commit_that_no_longer_says_it_is_ours(tmp_path, number):
    """Else what was invalidated would come again, and what waits would never come."""
    archive = open_one(tmp_path, "NoRebuild2x2")
    archive.update(START, INTEGERS.table(some_rows(0)))
    archive.invalidate([INTEGERS.keys[1]])
    if number == 3:
        archive.take_in("s", 0, INTEGERS.table([Row(2, START + 1, START + 1)]))
    path = _commits(archive)[-1]
    assert path.stem == f"{number:020}"
    path.write_bytes(path.read_bytes().replace(b'"limen"', b'"limeo"'))
    for look in (lambda: Archive.open(archive.path), lambda: archive.snapshot(number)):
        with pytest.raises(ArchiveError, match=f"{path.name}: .*: not one of its commits"):
            look()


def test_the_mark_of_a_batch_is_signed(archive):
    """Delta's own is for others: without it, or with another, the batch is still in once."""
    right = _answers(archive)
    path = _commits(archive)[4]
    data = path.read_bytes()
    assert b'{"txn":{"appId":"s","version":1,' in data
    for cut in (
        data[: data.index(b'{"txn"')],
        data.replace(b'"version":1', b'"version":3'),
        data.replace(b'"appId"', b'"appIe"'),
    ):
        path.write_bytes(cut)
        again = Archive.open(archive.path)
        assert _answers(again) == right
        assert not again.take_in("s", 1, INTEGERS.table(some_rows(1)))
    assert again.take_in("s", 2, INTEGERS.table([]))
    path.write_bytes(data)
    assert DeltaTable(str(archive.path)).transaction_version("s") == 2


def test_a_state_that_lacks_a_fact(archive):
    path = _commits(archive)[-1]
    path.write_bytes(path.read_bytes().replace(b'"done":{"s":1},', b""))
    with pytest.raises(ArchiveError, match=f"{path.name}: the archive is damaged"):
        Archive.open(archive.path)


def test_grace_is_signed(archive):
    path = _commits(archive)[0]
    path.write_bytes(path.read_bytes().replace(b'grace":"600.0', b'grace":"400.0'))
    with pytest.raises(ArchiveError, match=f"{path.name}: .* is another"):
        Archive.open(archive.path)


def _longer(archive: Archive) -> None:
    for step in range(2, 10):
        archive.update(START + step * EVERY, INTEGERS.table(some_rows(step)))
    assert len(_commits(archive)) == 14


@pytest.mark.parametrize("data", [b"", b"{}\n", b"[]\n", b"\xff\xfe", b"null\n", None])
def test_the_damaged_commit_is_named_and_not_the_newest(archive, data):
    _longer(archive)
    path = _commits(archive)[11]
    if data is None:
        path.unlink()
    else:
        path.write_bytes(data)
    for look in (lambda: Archive.open(archive.path), lambda: archive.snapshot(12)):
        with pytest.raises(ArchiveError, match=f"{path.name}: the archive is damaged"):
            look()
    assert archive.snapshot(10).version == 10
    with pytest.raises(ArchiveError, match="there is no version 14: the newest is 13"):
        archive.snapshot(14)


def test_a_handle_names_the_damaged_commit_too(archive):
    other = Archive.open(archive.path)
    _longer(archive)
    path = _commits(archive)[-2]
    path.write_bytes(path.read_bytes().replace(b'"remove"', b'"remote"'))
    with pytest.raises(ArchiveError, match=path.name):
        other.scan()


def test_a_flipped_bit_of_a_checkpoint(archive):
    """Also where deltalake panics, which is no Exception to Python."""
    _longer(archive)
    right = _answers(archive)
    folder = archive.path / "_delta_log"
    told = 0
    for path in (folder / f"{9:020}.checkpoint.parquet", folder / "_last_checkpoint"):
        data = path.read_bytes()
        rng = random.Random(path.name)
        for bit in rng.sample(range(8 * len(data)), 200):
            at = bit // 8
            path.write_bytes(data[:at] + bytes([data[at] ^ 1 << bit % 8]) + data[at + 1 :])
            told += _is_named(path, archive.path, right)
        path.write_bytes(data)
    assert told


def test_a_checkpoint_that_is_not_there(archive):
    """Delta's readers begin with the one that is named; after a later number they find none."""
    _longer(archive)
    hint = archive.path / "_delta_log" / "_last_checkpoint"
    hint.write_bytes(hint.read_bytes().replace(b'"version":9', b'"version":12'))
    with pytest.raises(ArchiveError, match="_last_checkpoint: the archive is damaged: it names no"):
        Archive.open(archive.path)


def test_a_panic_of_deltalake_is_an_error(archive, monkeypatch):
    class PanicException(BaseException):
        """Named as that of pyo3."""

    def fails(error: BaseException) -> None:
        def panic(*_: object, **__: object) -> None:
            raise error

        monkeypatch.setattr("limen.archive.table.DeltaTable", panic)

    fails(PanicException("index out of bounds"))
    with pytest.raises(ArchiveError, match="the archive is damaged: index out of bounds"):
        Archive.open(archive.path)
    fails(KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        Archive.open(archive.path)


def test_a_flipped_bit_of_what_was_set_aside(archive):
    bad = INTEGERS.table(some_rows(1)[:3])
    bad = bad.set_column(0, "key", pa.nulls(3, bad.schema.field(0).type))
    archive.take_in("s", 2, bad)
    right = archive.quarantine()
    (path,) = (archive.path / BESIDE / ASIDE).iterdir()
    data = path.read_bytes()
    rng = random.Random("aside")
    for bit in rng.sample(range(8 * len(data)), 250):
        at = bit // 8
        path.write_bytes(data[:at] + bytes([data[at] ^ 1 << bit % 8]) + data[at + 1 :])
        with pytest.raises(ArchiveError, match=f"{path.name}: the archive is damaged"):
            archive.quarantine()
    path.write_bytes(data)
    assert archive.quarantine() == right and len(right) == 3


def test_a_batch_that_is_tried_again_sets_its_rows_aside_once(archive, monkeypatch):
    """In another order too, as tasks may give them."""
    bad = INTEGERS.table(some_rows(1)[:3])
    bad = bad.set_column(0, "key", pa.nulls(3, bad.schema.field(0).type))
    with monkeypatch.context() as patch:

        def fail(*_: object, **__: object) -> None:
            raise ArchiveError("no room")

        patch.setattr("limen.archive.table.commit", fail)
        with pytest.raises(ArchiveError, match="no room"):
            archive.take_in("s", 2, bad)
    assert len(archive.quarantine()) == 3
    archive.take_in("s", 2, bad.take([2, 0, 1]))
    archive.take_in("s", 3, bad)
    assert len(archive.quarantine()) == 6


# -- other programs -------------------------------------------------------------------------------


def test_commits_of_other_programs_that_change_no_file(archive):
    right = _answers(archive)
    table = DeltaTable(str(archive.path))
    table.alter.set_table_properties({"delta.deletedFileRetentionDuration": "interval 8 days"})
    table.vacuum(0, enforce_retention_duration=False, dry_run=False)
    table.optimize.compact()
    found = [json.loads(path.read_bytes().splitlines()[0]) for path in _commits(archive)[6:]]
    assert {"SET TBLPROPERTIES", "VACUUM START"} <= {
        one["commitInfo"]["operation"] for one in found
    }
    assert _answers(archive) == _answers(Archive.open(archive.path)) == right
    archive.update(START + 2 * EVERY)
    assert Archive.open(archive.path).done("s") == 1


def test_rows_of_another_program_go_when_the_version_before_is_restored(archive):
    right = _answers(archive)
    table = DeltaTable(str(archive.path))
    write_deltalake(str(archive.path), table.to_pyarrow_table().slice(0, 2), mode="append")
    for look in (lambda: Archive.open(archive.path), archive.scan):
        with pytest.raises(ArchiveError, match=f"{6:020}.json: .* restore the version before"):
            look()
    DeltaTable(str(archive.path)).restore(5)
    assert _answers(archive) == _answers(Archive.open(archive.path)) == right


@pytest.mark.parametrize(
    "changed", [{"limen.archive.grace": "1.0"}, {"limen.archive.format": "2"}], ids=str
)
def test_properties_that_another_program_has_changed(archive, changed):
    DeltaTable(str(archive.path)).alter.set_table_properties(changed, False)
    with pytest.raises(ArchiveError, match=f"{6:020}.json: the archive"):
        Archive.open(archive.path)
