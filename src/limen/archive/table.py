"""The archive's Delta table: one file or a few for each sub-index, one commit for each update.

The state of a version is in its commit; what is too long for that (invalidated keys, results that wait
for their interval to end) is in files beside the table, which the state names, each with its checksum in
its name. So a commit changes all at once, and readers of older versions are not disturbed.
"""

from __future__ import annotations

import json
import re
import time
import uuid
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError
from deltalake.transaction import AddAction, RemoveAction, Transaction

from limen.archive.errors import ArchiveError, ConflictError
from limen.archive.files import DataFile, open_file
from limen.archive.shape import COLUMN, ROW, Shape, stored
from limen.archive.state import Invalid, State
from limen.delta import log
from limen.delta.commits import CommitFailedError, commit, properties
from limen.delta.disk import is_forked, plain, to_disk

FORMAT = "1"
BESIDE = "_limen"
ASIDE = "quarantine"
INCOMING = "incoming"  # what a task of a stream has written, until its batch is taken in
SWEPT = "swept"  # a note beside the table: the last commit whose files are deleted
CHECKPOINT_EVERY = 10
DAY = 24 * 3600  # seconds for which vacuum keeps the log, and the files of batches at work
PARTITIONS = [ROW, COLUMN]


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
        self.shape, self.grace = _meta(path, delta)
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
                    _signed({"kind": "create", **state.to_json()}, [], shape)
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
        try:
            return cls(path, DeltaTable(str(path), version=version))
        except TableNotFoundError:
            if version is not None and not log.commit_file(path, 0).exists():
                raise ArchiveError(
                    f"{path}: there is no version {version}: its log was vacuumed"
                ) from None
            raise ArchiveError(
                f"{path}: the archive is damaged: its Delta log is incomplete"
            ) from None
        except DeltaError as error:
            if version is not None:
                raise ArchiveError(
                    f"{path}: there is no version {version}: {plain(error)}"
                ) from None
            raise ArchiveError(f"{path}: the archive is damaged: {plain(error)}") from None
        except (KeyError, ValueError, TypeError, OverflowError) as error:
            if isinstance(error, ArchiveError):
                raise
            raise ArchiveError(f"{path}: the archive is damaged: {error}") from None

    @property
    def version(self) -> int:
        return int(self._delta.version())

    def refresh(self) -> None:
        """Take note of what others have committed."""
        check_process()
        known = log.commit_file(self.path, self._seen).exists()  # or its log was vacuumed
        if known and log.newest(self.path, self._seen) == self._seen:
            return
        try:
            try:
                if known:
                    self._delta.update_incremental()
                else:
                    self._delta = DeltaTable(str(self.path))
            except DeltaError:
                self._delta = DeltaTable(str(self.path))
        except DeltaError as error:
            raise ArchiveError(f"{self.path}: the archive is damaged: {plain(error)}") from None
        self._look()

    def _look(self) -> None:
        """The files and the state of the version."""
        actions = pa.table(self._delta.get_add_actions(flatten=True))
        paths = actions.column("path").to_pylist()
        known = {path: self._known.get(path) or open_file(self.path, path) for path in paths}
        state = self._state(paths)
        invalid = Invalid.none(self.shape)
        if state.invalid is not None:
            invalid = Invalid.from_table(self.read_beside(state.invalid))
        self._known, self.files = known, [known[path] for path in sorted(paths)]
        self.state, self.invalid, self._seen = state, invalid, self.version

    def _state(self, paths: list[str]) -> State:
        """From the newest commit of ours: others may have vacuumed, but not changed any file."""
        for version in range(self.version, -1, -1):
            try:
                lines = log.actions(self.path, version)
                if lines is None:
                    break
                facts: dict[str, Any] = next(a["commitInfo"] for a in lines if "commitInfo" in a)
                info = facts.get(log.INFO)
                if info is not None:
                    if info["checksum"] != _signed(info, paths, self.shape)["checksum"]:
                        raise ValueError("its checksum is another")
                    return State.from_json(info)
            except (
                ValueError,
                KeyError,
                TypeError,
                AttributeError,
                StopIteration,
            ) as error:
                raise _not_ours(self.path, version, error) from None
            if any("add" in line or "remove" in line for line in lines):
                raise ArchiveError(
                    f"{self.path}: version {version} was written by another program, so what the "
                    "archive holds is not known any more; restore the version before it"
                )
        raise ArchiveError(f"{self.path}: the archive is damaged: its log has no commit of its own")

    def done(self, stream: str) -> int | None:
        """The last batch of a stream that is in."""
        found = self._delta.transaction_version(stream)
        return None if found is None else int(found)

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
        """All or nothing; returns the new version."""
        check_process()
        now = int(time.time() * 1000)
        actions: list[AddAction | RemoveAction] = [
            AddAction(f.path, f.size, _values(f), now, True, _statistics(f, self.shape))
            for f in adds
        ]
        actions += [RemoveAction(f.path, True, now, f.size, _values(f)) for f in drops]
        done = [Transaction(mark.stream, mark.batch, now) for mark in marks]
        gone = {file.path for file in drops}
        left = [file.path for file in (*self.files, *adds) if file.path not in gone]
        info = _signed({"kind": kind, **(said or {}), **state.to_json()}, left, self.shape)
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
        self._delta.update_incremental()
        self._look()
        return version

    def write_beside(self, table: pa.Table, what: str) -> str:
        """A file that a state can name."""
        sink = pa.BufferOutputStream()
        pq.write_table(table, sink, compression="lz4")
        data = sink.getvalue()
        name = f"{what}-{uuid.uuid4()}-{zlib.crc32(data):08x}.parquet"
        folder = self.path / BESIDE
        with _writing(self.path):
            folder.mkdir(exist_ok=True)
            (folder / name).write_bytes(data)
            to_disk(folder / name)
            to_disk(folder)
        return name

    def read_beside(self, name: str) -> pa.Table:
        path = self.path / BESIDE / name
        try:
            data = path.read_bytes()
            if path.stem[-8:] != f"{zlib.crc32(data):08x}":
                raise OSError("its checksum is another")
            return pq.ParquetFile(pa.BufferReader(data)).read(use_threads=False)
        except (OSError, pa.ArrowException) as error:
            raise ArchiveError(f"{path}: the archive is damaged: {error}") from None

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
        """Rows that cannot be results. A batch that is repeated writes the same file again."""
        told = {"stream": pa.scalar(mark.stream), "batch": pa.scalar(mark.batch, pa.int64())}
        for name, value in told.items():
            bad = bad.append_column(_free(name, bad.column_names), pa.repeat(value, len(bad)))
        folder = self.path / BESIDE / ASIDE
        with _writing(self.path):
            folder.mkdir(parents=True, exist_ok=True)
            beside = folder / f".{uuid.uuid4()}"
            pq.write_table(bad, beside, write_page_checksum=True)
            to_disk(beside)
            safe = zlib.crc32(mark.stream.encode())
            beside.rename(folder / f"{safe:08x}-{mark.batch:012d}.parquet")
            to_disk(folder)

    def read_aside(self) -> pa.Table:
        found = sorted((self.path / BESIDE / ASIDE).glob("*.parquet"))
        try:
            tables = [
                pq.ParquetFile(path, page_checksum_verification=True).read(use_threads=False)
                for path in found
            ]
        except (OSError, pa.ArrowException) as error:
            raise ArchiveError(f"{self.path}: the quarantine is damaged: {error}") from None
        if tables:
            return pa.concat_tables(tables)
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
                later = [v for v in self._logged() if v > self._swept]
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

        Also what a crash has left behind, if it is older than that and than a minute: a younger one may
        be that of a writer at work. What the tasks of a stream have written is kept for a day, and so
        is the log; of it only what is before a checkpoint goes.
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
                least = DAY if path.name.startswith(INCOMING) else 60
                if name not in used and (name in removed or _age(path, now) >= max(seconds, least)):
                    deleted += _delete(path)
            return deleted + self._forget(now - max(seconds, DAY))

    def _forget(self, until: float) -> int:
        """Delete the log of versions that others had replaced by then, as far as a checkpoint goes.

        Every later version can still be read: from the checkpoint, the commits after it, and the last
        of our commits, which has the state.
        """
        logged = self._logged()
        young = (v for v in logged if log.commit_file(self.path, v).stat().st_mtime > until)
        kept = next(young, self.version + 1) - 1  # the oldest version that is
        points = [v for v in self._logged("checkpoint.parquet") if v <= kept]
        if not points:
            return 0
        try:
            DeltaTable(str(self.path), version=points[-1])
        except DeltaError:  # the commits before it are all that there is
            return 0
        first = points[-1]
        while first > 0 and self._told(first)[1] is None:
            first -= 1
        old = [log.commit_file(self.path, v) for v in logged if v < first]
        old += [
            log.commit_file(self.path, v).with_suffix(".checkpoint.parquet")
            for v in points
            if v < first
        ]
        return sum(_delete(path) for path in old)

    def _logged(self, kind: str = "json") -> list[int]:
        """The versions whose commits, or checkpoints, are there."""
        found = (
            re.fullmatch(rf"(\d{{20}})\.{re.escape(kind)}", path.name)
            for path in (self.path / log.FOLDER).iterdir()
        )
        return sorted(int(name[1]) for name in found if name)

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
            removed, beside = set(), None
            for line in log.actions(self.path, version) or []:
                if "remove" in line:
                    removed.add(str(line["remove"]["path"]))
                info = line.get("commitInfo", {}).get(log.INFO)
                if info is not None:
                    beside = _beside_table([*info["pending"], *filter(None, [info["invalid"]])])
            return removed, beside
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise _not_ours(self.path, version, error) from None

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


def _not_ours(path: Path, version: int, error: Exception) -> ArchiveError:
    commit = log.commit_file(path, version)
    return ArchiveError(f"{commit}: the archive is damaged: not one of its commits ({error})")


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


def _signed(info: dict[str, Any], paths: Sequence[str], shape: Shape) -> dict[str, Any]:
    """With a checksum of what a version is: its state, its files and what its columns mean."""
    facts = {name: value for name, value in info.items() if name != "checksum"}
    whole = [facts, sorted(paths), shape.to_json(), str(shape.schema)]
    text = json.dumps(json.loads(json.dumps(whole)), sort_keys=True)
    return {**facts, "checksum": zlib.crc32(text.encode())}


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


def _meta(path: Path, delta: DeltaTable) -> tuple[Shape, float]:
    facts = delta.metadata().configuration
    if "limen.archive" not in facts:
        raise ArchiveError(f"{path} is a Delta table, but not an archive")
    if facts["limen.archive.format"] != FORMAT:
        raise ArchiveError(
            f"{path} has format {facts['limen.archive.format']}, this program knows {FORMAT}: "
            "install a newer limen"
        )
    schema = pa.schema(delta.schema().to_arrow())
    try:
        fields = [pa.field(f.name, stored(f.type)) for f in schema if f.name not in PARTITIONS]
        shape = Shape.from_json(facts["limen.archive"], pa.schema(fields))
        return shape, float(facts["limen.archive.grace"])
    except (KeyError, ValueError, TypeError) as error:
        raise ArchiveError(
            f"{path}: the archive is damaged: its properties cannot be read ({error})"
        ) from None


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
