"""Damage: a turned bit, a cut or missing file is named, or no answer depends on it; none is wrong."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from limen.archive import Archive, ArchiveError, files

from .by_hand import EVERY, INTEGERS, bag
from .test_archive import START, open_one, some_rows

FLIPS = 60  # in every file


@pytest.fixture
def archive(tmp_path, monkeypatch):
    """With several row groups in a file, and a list of invalid keys."""
    monkeypatch.setattr(files, "MIN_BYTES", 100)
    made = open_one(tmp_path, "NoRebuild2x2")
    for step in range(3):
        made.update(START + step * EVERY, INTEGERS.table(some_rows(step)))
    made.invalidate([INTEGERS.keys[1]])
    return made


def _flips(data: bytes, seed: str, n: int = FLIPS):
    """The bytes with one bit turned, at many places; the ends are among them."""
    rng = random.Random(seed)
    inside = rng.sample(range(len(data)), min(n, len(data)))
    for at in {*inside, 0, len(data) - 1, len(data) - 5, len(data) - 9}:
        yield at, data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1 :]


def _answers(archive: Archive):
    between = INTEGERS.keys[0], INTEGERS.keys[3]
    return [
        bag(archive.scan()),
        bag(archive.scan("key")),
        bag(archive.probe(0)),
        bag(archive.probe(between=between)),
        bag(archive.window(9).scan()),
        archive.where(),
        archive.time,
        archive.layout,
    ]


def _named(damaged: Path, path: Path, right) -> bool:
    """Is damage to a file told by its name? If it is not told, all answers must be right."""
    try:
        found = _answers(Archive.open(path))
    except ArchiveError as error:
        assert damaged.name in str(error), str(error)
        return True
    assert found == right
    return False


def test_a_flipped_bit_of_a_data_file(archive):
    right = _answers(archive)
    for file in archive.snapshot().files:
        path = archive.path / file.path
        whole = path.read_bytes()
        begin, end = file.groups[0].start, file.groups[-1].start + file.groups[-1].length
        for at, flipped in _flips(whole, "data", 25):
            path.write_bytes(flipped)
            told = _named(path, archive.path, right)
            assert told or not (begin <= at < end or at >= end)
        path.write_bytes(whole)
    assert _answers(Archive.open(archive.path)) == right


def test_an_open_handle_sees_damage_too(archive):
    file = archive.snapshot().files[0]
    path = archive.path / file.path
    whole = path.read_bytes()
    for group in file.groups:
        at = group.start + group.length // 2
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 8]) + whole[at + 1 :])
        with pytest.raises(
            ArchiveError, match=f"{path.name}: the archive is damaged: the checksum"
        ):
            archive.scan()
        with pytest.raises(ArchiveError, match=path.name):
            archive.migrate("Rebuild2x2")


@pytest.mark.parametrize("left", [0, 3, 8, 50, 0.5, -1, -9])
def test_a_cut_data_file(archive, left):
    path = archive.path / archive.snapshot().files[0].path
    whole = path.read_bytes()
    path.write_bytes(whole[: int(left * len(whole)) if isinstance(left, float) else left])
    with pytest.raises(ArchiveError, match=f"{path.name}: the archive is damaged"):
        Archive.open(archive.path)
    if left in (0, 3, 8, 50):  # more, and the footer is missing, which this handle has read before
        with pytest.raises(ArchiveError, match=f"{path.name}: the archive is damaged"):
            archive.scan()


def test_a_missing_data_file(archive):
    path = archive.path / archive.snapshot().files[0].path
    path.unlink()
    for read in (archive.scan, lambda: Archive.open(archive.path)):
        with pytest.raises(ArchiveError, match=f"{path.name} is gone: it was vacuumed, or deleted"):
            read()


def test_a_file_in_the_place_of_another(archive):
    first, second = (archive.path / file.path for file in archive.snapshot().files[:2])
    first.write_bytes(second.read_bytes())
    with pytest.raises(
        ArchiveError, match=f"{first.name}: .* the checksum of its footer is another"
    ):
        Archive.open(archive.path)


def test_a_file_beside_the_table(archive):
    right = _answers(archive)
    (path,) = (archive.path / "_limen").iterdir()
    whole = path.read_bytes()
    for _, flipped in _flips(whole, "beside"):
        path.write_bytes(flipped)
        assert _named(path, archive.path, right)
    path.write_bytes(whole[:-1])
    assert _named(path, archive.path, right)
    path.unlink()
    assert _named(path, archive.path, right)


@pytest.mark.parametrize("what", ["step", "origin"])
def test_a_number_of_the_state_is_another(archive, what):
    """A turned bit that leaves a commit readable."""
    right = _answers(archive)
    path = max((archive.path / "_delta_log").glob("*.json"))
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for line in lines:
        if "commitInfo" in line:
            line["commitInfo"]["limen"][what] ^= 2
    path.write_text("\n".join(json.dumps(line) for line in lines) + "\n")
    assert _named(path, archive.path, right)


def test_a_removal_that_is_lost(archive):
    """The file that it named would be read a second time."""
    archive.update(START + 3 * EVERY, INTEGERS.table(some_rows(3)))
    right = _answers(archive)
    path = max((archive.path / "_delta_log").glob("*.json"))
    lines = path.read_text().splitlines(keepends=True)
    lost = next(line for line in lines if '"remove"' in line)
    path.write_text("".join(line for line in lines if line != lost))
    assert _named(path, archive.path, right)


@pytest.mark.parametrize("data", [b"", b"{}\n", b"[]\n", b"\xff\xfe", b"null\n"])
def test_a_commit_of_something_else(archive, data):
    newest = max((archive.path / "_delta_log").glob("*.json"))
    newest.write_bytes(data)
    with pytest.raises(ArchiveError, match=str(archive.path)):
        Archive.open(archive.path)


def test_a_missing_commit(archive):
    right = archive.time
    (archive.path / "_delta_log" / f"{1:020}.json").unlink()
    with pytest.raises(ArchiveError, match=str(archive.path)):
        Archive.open(archive.path)
    assert archive.time == right


def test_a_handle_meets_a_damaged_commit(archive):
    """One that another writer has made, before this handle has looked at it."""
    other = Archive.open(archive.path)
    other.update(START + 3 * EVERY, INTEGERS.table(some_rows(3)))
    newest = max((archive.path / "_delta_log").glob("*.json"))
    newest.write_bytes(newest.read_bytes()[:-40])
    with pytest.raises(ArchiveError, match=str(archive.path)):
        archive.scan()


# -- what is in a file ---------------------------------------------------------------------------


def test_a_file_is_in_order_and_cut_by_key(archive):
    """The directory has what Parquet's own metadata and the rows say."""
    several = 0
    for file in archive.snapshot().files:
        parquet = pq.ParquetFile(archive.path / file.path)
        several += parquet.num_row_groups > 1
        assert parquet.num_row_groups == len(file.groups)
        rows = parquet.read()
        order = list(zip(*(rows.column(n).to_pylist() for n in ("key", "expires")), strict=True))
        assert order == sorted(order)
        assert file.rows == len(rows) == sum(group.rows for group in file.groups)
        assert file.size == (archive.path / file.path).stat().st_size
        for name in ("generated", "expires"):
            values = rows.column(name).to_pylist()
            assert getattr(file, name) == (min(values), max(values))
        for i, group in enumerate(file.groups):
            keys = parquet.read_row_group(i).column("key").to_pylist()
            assert (group.first, group.last, group.rows) == (keys[0], keys[-1], len(keys))
        lasts = [group.last for group in file.groups[:-1]]
        assert all(a != b.first for a, b in zip(lasts, file.groups[1:], strict=True))
        for key in INTEGERS.keys:
            have = [i for i, g in enumerate(file.groups) if g.first <= key <= g.last]
            assert list(file.groups_of(key, key)) == have
    assert several


def test_row_groups_are_small_enough_for_a_probe_to_read_little(tmp_path):
    """About 64 kB of rows, whatever they take on disk, and whole keys."""
    n, size = 3000, 1000
    rows = {"key": [i // 3 for i in range(n)], "generated": [16] * n, "expires": [20] * n}
    rows["body"] = [b"%d" % i * (size // len(b"%d" % i)) for i in range(n)]
    schema = pa.schema([*((name, pa.int64()) for name in list(rows)[:3]), ("body", pa.binary())])
    said = {"key": "key", "window": 16, "every": 2, "layout": "Rebuild1x1"}
    made = Archive.open(tmp_path / "large", schema, **said)
    made.update(16, rows)
    (file,) = made.snapshot().files
    assert len(file.groups) > n * size // (70 * 1024)
    for group in file.groups[:-1]:
        assert 60 * 1024 <= group.rows * size <= 68 * 1024
    assert len(file.groups_of(500, 500)) == 1 and len(made.probe(500)) == 3


def test_a_key_with_very_many_results_is_cut(archive, monkeypatch, tmp_path):
    monkeypatch.setattr(files, "MAX_BYTES", 2000)
    n = 500
    rows = {"key": [7] * n, "generated": [16] * n, "expires": [20] * n}
    schema = pa.table(rows).schema
    made = Archive.open(
        tmp_path / "long", schema, key="key", window=16, every=2, layout="Rebuild1x1"
    )
    made.update(16, rows)
    (file,) = made.snapshot().files
    assert len(file.groups) > 3 and len(made.probe(7)) == n
    assert sum(len(part) for part in made.scan_batches()) == n


def test_texts_too_long_for_32_bit_offsets(monkeypatch, tmp_path):
    """Rows of several tables are put together by 64-bit ones, and are texts again in the file."""
    monkeypatch.setattr(files, "LONG", 0)
    n = 40
    made = None
    for step in range(3):
        rows = {
            "key": [f"key {i % 3}" for i in range(n)],
            "generated": [16 + step] * n,
            "expires": [20 + i % 7 for i in range(n)],
            "body": [b"%d %d" % (step, i) for i in range(n)],
        }
        schema = pa.table(rows).schema
        made = made or Archive.open(
            tmp_path / "texts", schema, key="key", window=16, every=1, layout="Rebuild1x1"
        )
        made.update(16 + step, rows)
    (file,) = made.snapshot().files
    assert pq.ParquetFile(made.path / file.path).schema_arrow.field("body").type == pa.binary()
    assert sorted(made.scan().column("body").to_pylist()) == sorted(
        b"%d %d" % (step, i) for step in range(3) for i in range(n)
    )


def test_a_large_key_ends_its_row_group(monkeypatch):
    """Rows of ten bytes: keys of 50, 10, 90, 90, 10 and 10."""
    monkeypatch.setattr(files, "OWN_BYTES", 80)
    monkeypatch.setattr(files, "MIN_BYTES", 200)
    keys = pa.array([1] * 5 + [2] + [3] * 9 + [4] * 9 + [5, 6])
    assert list(files._cuts(keys, 10 * len(keys))) == [(0, 15), (15, 24), (24, 26)]


@pytest.mark.parametrize("most", [1, 1000, 10_000])
def test_a_file_is_read_in_parts(archive, monkeypatch, most):
    """Of a row group, of some, and all at once."""
    monkeypatch.setattr(files, "AT_ONCE", most)
    for file in archive.snapshot().files:
        read = files.read(file, columns=["serial", "key"])
        fewest = {1: len(file.groups), 1000: -(-file.groups[-1].start // 1000), 10_000: 1}[most]
        assert (
            fewest <= read.column("key").num_chunks <= (1 if most == 10_000 else len(file.groups))
        )
        whole = pq.ParquetFile(archive.path / file.path).read()
        assert read.to_pydict() == whole.select(read.column_names).to_pydict()
