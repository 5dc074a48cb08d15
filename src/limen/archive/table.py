"""The archive's Delta table: one file or a few for each sub-index, one commit for each update.

The state of a version is in its commit; what is too long for that (invalidated keys, results that wait
for their interval to end) is in files beside the table, which the state names, each with its checksum in
its name. So a commit changes all at once, and readers of older versions are not disturbed.
"""

from __future__ import annotations

import json
import time
import uuid
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError
from deltalake.transaction import AddAction, RemoveAction, Transaction

from limen.archive.errors import ArchiveError, ConflictError
from limen.archive.files import DataFile, open_file
from limen.archive.shape import COLUMN, ROW, Shape
from limen.archive.signed import (
    CHECKPOINT,
    DAMAGED,
    FORMAT,
    PARTITIONS,
    check,
    info_of,
    logged,
    looking,
    meta_of,
    not_ours,
    paths_of,
    sign,
    state_of,
)
from limen.archive.state import Invalid, State
from limen.delta import log
from limen.delta.commits import CommitFailedError, commit, properties
from limen.delta.disk import is_forked, plain, to_disk, unpanicked

BESIDE = "_limen"
ASIDE = "quarantine"
INCOMING = "incoming"  # what a task of a stream has written, until its batch is taken in
SWEPT = "swept"  # a note beside the table: the last commit whose files are deleted
CHECKPOINT_EVERY = 10
DAY = 24 * 3600  # seconds for which vacuum keeps the log, and what may be of a commit in the making


class Mark(NamedTuple):
    """A batch of a stream that is in."""

    stream: str
    batch: int


class Table:
    files: list[DataFile]
    state: State
    invalid: Invalid

    def __init__(self, path: Path, delta: DeltaTable) -> None:
        self.path = path
        self._delta = delta
        self.shape, self.grace = meta_of(path, delta)
        self._known: dict[str, DataFile] = {}
        self._swept = -1
        self._seen = -1  # the version that all this is of
        self._look()

    @classmethod
    def create(cls, path: Path, shape: Shape, state: State, grace: float) -> Table:
        """A new, empty one; of several processes at it, one makes it and the others open it."""
        check_process()
        columns = [pa.field(name, pa.int32()) for name in PARTITIONS]
        try:
            DeltaTable.create(
                str(path),
                pa.schema([*columns, *shape.schema]),
                partition_by=PARTITIONS,
                configuration={
                    "limen.archive": shape.to_json(),
                    "limen.archive.format": FORMAT,
                    "limen.archive.grace": repr(grace),
                    "delta.checkpointInterval": str(CHECKPOINT_EVERY),
                    # or deltalake takes a column without statistics for one of nulls
                    "delta.dataSkippingStatsColumns": ",".join(_counted(shape)),
                },
                commit_properties=properties(
                    sign({"kind": "create", **state.to_json()}, [], shape, grace)
                ),
                raise_if_key_not_exists=False,
            )
        except (DeltaError, OSError) as error:
            if not log.begun(path):
                raise ArchiveError(
                    f"{path}: no archive can be made there: {plain(error)}"
                ) from None
        return cls.open(path)

    @classmethod
    def open(cls, path: Path, version: int | None = None) -> Table:
        check_process()
        if not log.begun(path):
            raise ArchiveError(
                f"there is no archive at {path}; give a schema and its window to make one"
            )
        with looking(path, version):
            return cls(path, DeltaTable(str(path), version=version))

    @property
    def version(self) -> int:
        return int(self._delta.version())

    def refresh(self) -> None:
        """Take note of what others have committed."""
        check_process()
        known = log.commit_file(self.path, self._seen).exists()  # or its log was vacuumed
        if known and log.newest(self.path, self._seen) == self._seen:
            return
        with looking(self.path):
            try:
                if known:
                    with unpanicked():
                        self._delta.update_incremental()
                else:
                    self._delta = DeltaTable(str(self.path))
            except DeltaError:
                self._delta = DeltaTable(str(self.path))
            self._look()

    def _look(self) -> None:
        """The files and the state of the version."""
        paths = paths_of(self._delta)
        state = state_of(self.path, self.version, paths, self.shape, self.grace)
        known = {path: self._known.get(path) or open_file(self.path, path) for path in paths}
        invalid = Invalid.none(self.shape)
        if state.invalid is not None:
            invalid = Invalid.from_table(self.read_beside(state.invalid))
        self._known, self.files = known, [known[path] for path in sorted(paths)]
        self.state, self.invalid, self._seen = state, invalid, self.version

    # -- changes ---------------------------------------------------------------------------------

    def commit(
        self,
        kind: str,
        state: State,
        adds: Sequence[DataFile] = (),
        drops: Sequence[DataFile] = (),
        marks: Sequence[Mark] = (),
        said: dict[str, Any] | None = None,
    ) -> int:
        """All or nothing; returns the new version.

        The marks are in the state, which is signed; Delta's own transactions tell them to others.
        """
        check_process()
        state = replace(state, done=state.done | dict(marks))
        now = int(time.time() * 1000)
        actions: list[AddAction | RemoveAction] = [
            AddAction(f.path, f.size, _values(f), now, True, _statistics(f, self.shape))
            for f in adds
        ]
        actions += [RemoveAction(f.path, True, now, f.size, _values(f)) for f in drops]
        done = [Transaction(mark.stream, mark.batch, now) for mark in marks]
        gone = {file.path for file in drops}
        left = [file.path for file in (*self.files, *adds) if file.path not in gone]
        info = {"kind": kind, **(said or {}), **state.to_json()}
        info = sign(info, left, self.shape, self.grace)
        with _writing(self.path):
            if not log.commit_file(
                self.path, self.version
            ).exists():  # nor the one after it, perhaps
                raise CommitFailedError("its log was vacuumed")
            for file in adds:
                to_disk(self.path / file.path)
            for folder in {(self.path / file.path).parent for file in adds}:
                to_disk(folder)
            version = commit(self.path, self._delta, actions, PARTITIONS, info, done)
        self._known.update({file.path: file for file in adds})
        with looking(self.path):
            self._delta.update_incremental()
            self._look()
        return version

    def write_beside(self, table: pa.Table, what: str) -> str:
        """A file that a state can name."""
        data = _parquet(table)
        name = f"{what}-{uuid.uuid4()}-{zlib.crc32(data):08x}.parquet"
        folder = self.path / BESIDE
        with _writing(self.path):
            folder.mkdir(exist_ok=True)
            (folder / name).write_bytes(data)
            to_disk(folder / name)
            to_disk(folder)
        return name

    def read_beside(self, name: str) -> pa.Table:
        return _read_checked(self.path / BESIDE / name)

    def stacked(self, names: list[str], fresh: pa.Table) -> list[str]:
        """Files beside the table with some rows more; like sizes are merged, so that they stay few."""
        if not len(fresh):
            return names
        while names and self._size(names[-1]) <= 2 * fresh.nbytes:
            fresh = pa.concat_tables([self.read_beside(names[-1]), fresh])
            names = names[:-1]
        return [*names, self.write_beside(fresh, "pending")]

    def _size(self, name: str) -> int:
        """Of a file as it was written, or none if it is gone: reading it will say so."""
        path = self.path / BESIDE / name
        return path.stat().st_size if path.exists() else 0

    def set_aside(self, bad: pa.Table, mark: Mark) -> None:
        """Rows that cannot be results. A batch that is repeated replaces what it has written."""
        told = {"stream": pa.scalar(mark.stream), "batch": pa.scalar(mark.batch, pa.int64())}
        for name, value in told.items():
            bad = bad.append_column(_free(name, bad.column_names), pa.repeat(value, len(bad)))
        data = _parquet(bad)
        batch = f"{zlib.crc32(mark.stream.encode()):08x}-{mark.batch:012d}"
        folder = self.path / BESIDE / ASIDE
        with _writing(self.path):
            folder.mkdir(parents=True, exist_ok=True)
            beside = folder / f".{uuid.uuid4()}"
            beside.write_bytes(data)
            to_disk(beside)
            whole = beside.rename(folder / f"{batch}-{zlib.crc32(data):08x}.parquet")
            for path in folder.glob(f"{batch}-*.parquet"):
                if path != whole:
                    path.unlink(missing_ok=True)
            to_disk(folder)

    def read_aside(self) -> pa.Table:
        found = sorted((self.path / BESIDE / ASIDE).glob("*.parquet"))
        if found:
            return pa.concat_tables([_read_checked(path) for path in found])
        fields = [pa.field("reason", pa.string()), pa.field("stream", pa.string())]
        return pa.schema([*self.shape.schema, *fields, pa.field("batch", pa.int64())]).empty_table()

    # -- housekeeping ----------------------------------------------------------------------------

    def sweep(self, seconds: float) -> int:
        """Delete files that a commit has removed, so many seconds ago or earlier; returns how many.

        What cannot be read or deleted is left to `vacuum`, which says so. How far this has come is
        noted beside the table, so that nobody reads these commits again.
        """
        until, deleted = time.time() - seconds, 0
        if self._swept < 0:
            self._swept = self._noted()
        begin, used = self._swept, self._in_use()
        named: set[str] = set()  # beside the table, as of the last commit looked at
        with suppress(ArchiveError):
            named = self._beside(begin)
        while self._swept + 1 < self.version:
            made = log.commit_file(self.path, self._swept + 1)
            if not made.exists():
                later = [v for v in logged(self.path) if v > self._swept]
                if not later:
                    break
                self._swept = later[0] - 1
                continue
            if made.stat().st_mtime > until:
                break
            self._swept += 1
            with suppress(ArchiveError, OSError):
                removed, beside = self._told(self._swept)
                gone = removed if beside is None else removed | named - beside
                named = named if beside is None else beside
                deleted += sum(_delete(self.path / name) for name in gone - used)
        if self._swept > begin:
            self._note()
        return deleted

    def _noted(self) -> int:
        """The last commit that anybody has swept; -1 if that is not known, and all are looked at."""
        try:
            noted = int((self.path / BESIDE / SWEPT).read_text())
        except (OSError, ValueError):
            return -1
        return noted if -1 < noted < self.version else -1

    def _note(self) -> None:
        beside = self.path / BESIDE / f".{uuid.uuid4()}"
        with suppress(OSError):
            beside.parent.mkdir(exist_ok=True)
            beside.write_text(str(self._swept))
            beside.replace(beside.with_name(SWEPT))

    def vacuum(self, seconds: float) -> int:
        """Delete all that no version of the last seconds uses; returns how many files.

        What no commit has named yet is kept for a day: it may be that of a writer at work, or of the
        tasks of a stream, and then a crash has left it behind. The log is kept for a day too; of it
        only what is before a checkpoint goes.
        """
        self.refresh()
        now = time.time()
        used, removed = self._in_use(), set[str]()
        for version in range(self.version, -1, -1):
            made = log.commit_file(self.path, version)
            if not made.exists():
                break
            gone = self._told(version)[0] | self._beside(version - 1)
            (used if made.stat().st_mtime > now - seconds else removed).update(gone)
        with _writing(self.path):
            deleted = 0
            for path in self._on_disk():
                name = str(path.relative_to(self.path))
                if name not in used and (name in removed or _age(path, now) >= max(seconds, DAY)):
                    deleted += _delete(path)
            return deleted + self._forget(now - max(seconds, DAY))

    def _forget(self, until: float) -> int:
        """Delete the log of versions that others had replaced by then, as far as a checkpoint goes.

        Every later version can still be read: from the checkpoint, the commits after it, and the last
        of our commits, which has the state.
        """
        versions = logged(self.path)
        young = (v for v in versions if log.commit_file(self.path, v).stat().st_mtime > until)
        kept = next(young, self.version + 1) - 1  # the oldest version that is
        points = [v for v in logged(self.path, CHECKPOINT) if v <= kept]
        if not points:
            return 0
        try:
            check(self.path, points[-1])
        except DAMAGED:  # the commits before it are all that there is
            return 0
        first = points[-1]
        while first > 0 and self._told(first)[1] is None:
            first -= 1
        old = [log.commit_file(self.path, v) for v in versions if v < first]
        old += [
            log.commit_file(self.path, v).with_suffix(f".{CHECKPOINT}") for v in points if v < first
        ]
        return sum(_delete(path) for path in old)

    def _on_disk(self) -> Iterator[Path]:
        for pattern in (f"{ROW}=*/{COLUMN}=*/*", f"{BESIDE}/*", f"{BESIDE}/{ASIDE}/.*"):
            yield from (path for path in self.path.glob(pattern) if path.is_file())

    def _in_use(self) -> set[str]:
        """What the newest version that is known here uses."""
        names = [*self.state.pending, *filter(None, [self.state.invalid]), SWEPT]
        return {file.path for file in self.files} | _beside_table(names)

    def _told(self, version: int) -> tuple[set[str], set[str] | None]:
        """What a commit has removed, and what beside the table it names: None if it is not ours."""
        try:
            lines = log.actions(self.path, version) or []
            removed = {str(line["remove"]["path"]) for line in lines if "remove" in line}
            info = info_of(lines) if lines else None
            if info is None:
                return removed, None
            return removed, _beside_table([*info["pending"], *filter(None, [info["invalid"]])])
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise not_ours(self.path, version, error) from None

    def _beside(self, version: int) -> set[str]:
        """What a version uses beside the table: its commit says so, or the last of ours before it."""
        for at in range(version, -1, -1):
            if not log.commit_file(self.path, at).exists():
                break
            beside = self._told(at)[1]
            if beside is not None:
                return beside
        return set()


def _beside_table(names: Sequence[str]) -> set[str]:
    return {f"{BESIDE}/{name}" for name in names}


def _age(path: Path, now: float) -> float:
    """In seconds; none if it has just gone."""
    try:
        return now - path.stat().st_mtime
    except FileNotFoundError:
        return 0


def _free(name: str, taken: Sequence[str]) -> str:
    while name in taken:
        name = f"limen_{name}"
    return name


def _delete(path: Path) -> bool:
    try:
        path.unlink()
    except FileNotFoundError:
        return False
    return True


def _parquet(table: pa.Table) -> pa.Buffer:
    """The bytes of a file beside the table, which has their checksum in its name."""
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="lz4")
    return sink.getvalue()


def _read_checked(path: Path) -> pa.Table:
    try:
        data = path.read_bytes()
        if path.stem[-8:] != f"{zlib.crc32(data):08x}":
            raise OSError("its checksum is another")
        return pq.ParquetFile(pa.BufferReader(data)).read(use_threads=False)
    except (OSError, pa.ArrowException) as error:
        raise ArchiveError(f"{path}: the archive is damaged: {error}") from None


def _counted(shape: Shape) -> list[str]:
    """The columns that commits have statistics of."""
    names = [shape.generated, shape.expires]
    names += [shape.key] if pa.types.is_integer(shape.key_type) else []
    return [name if name.isidentifier() else f"`{name}`" for name in names]


def _values(file: DataFile) -> dict[str, str | None]:
    return {ROW: str(file.cell[0]), COLUMN: str(file.cell[1])}


def _statistics(file: DataFile, shape: Shape) -> str:
    """What Delta's readers skip files by."""

    def time_of(moment: int) -> int | str:
        if not shape.in_timestamps:
            return moment
        return str(shape.time_of(moment)).replace(" ", "T").replace("+00:00", "Z")

    low = {shape.generated: time_of(file.generated[0]), shape.expires: time_of(file.expires[0])}
    high = {shape.generated: time_of(file.generated[1]), shape.expires: time_of(file.expires[1])}
    if pa.types.is_integer(shape.key_type) and file.groups:
        low[shape.key], high[shape.key] = int(file.firsts[0]), int(file.lasts[-1])
    return json.dumps(
        {"numRecords": file.rows, "minValues": low, "maxValues": high, "nullCount": {}}
    )


def check_process() -> None:
    if is_forked():
        raise ArchiveError(
            "an archive or a catalog was in use before this process was forked, so it cannot be used "
            "here: start processes by spawn or forkserver"
        )


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    try:
        yield
    except CommitFailedError:
        raise ConflictError(
            f"{path}: another writer has changed it meanwhile; nothing was written"
        ) from None
    except (DeltaError, OSError) as error:
        raise ArchiveError(f"{path} cannot be written: {plain(error)}") from None


__all__ = ["Mark", "Table"]
