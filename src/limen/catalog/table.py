"""The catalog's Delta table: one commit a version, one file of change records a commit.

The table is partitioned by `version`: the value is in the log, so a file need not know its version before
its commit has won, and a writer that loses a race commits the same file again. A commit takes exactly the
next version or fails. A data file has its checksum in its name, which every read verifies; both the file
and the commit are on disk before a receipt is given.
"""

from __future__ import annotations

import json
import re
import time
import uuid
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, unquote

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import CommitProperties, DeltaTable
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError
from deltalake.transaction import AddAction, RemoveAction

from limen.catalog import log
from limen.catalog.errors import CatalogError
from limen.catalog.records import Layout, at_version, said
from limen.delta.commits import commit, properties
from limen.delta.disk import is_forked, plain, to_disk
from limen.model import attribute_type, type_name

FORMAT = 1
PARTITION = "version"
CHECKPOINT_EVERY = 10
CHECKSUM = re.compile(r"-([0-9a-f]{8})\.parquet")


class Meta(NamedTuple):
    id: str
    layout: Layout


class Table:
    def __init__(self, path: Path, delta: DeltaTable) -> None:
        self.path = path
        self._opened = delta
        self.meta = _meta(path, delta)

    @property
    def _delta(self) -> DeltaTable:
        _check_process()
        return self._opened

    @classmethod
    def create(cls, path: Path, layout: Layout) -> Table:
        """A new, empty one; of several processes at it, one makes it and the others open it."""
        _check_process()
        schema = pa.schema([pa.field(PARTITION, pa.int64()), *layout.schema()])
        try:
            DeltaTable.create(
                str(path),
                schema,
                partition_by=[PARTITION],
                configuration={
                    **_configuration(layout),
                    "limen.format": str(FORMAT),
                    "delta.checkpointInterval": str(CHECKPOINT_EVERY),
                    "delta.enableExpiredLogCleanup": "false",
                },
                commit_properties=properties({"kind": "create", "live": 0}),
                raise_if_key_not_exists=False,
            )
        except (DeltaError, OSError) as error:
            if not log.begun(path):
                said = plain(error)
                raise CatalogError(f"{path}: no catalog can be made there: {said}") from None
        return cls.open(path)

    @classmethod
    def open(cls, path: Path) -> Table:
        if not log.begun(path):
            raise CatalogError(
                f"there is no catalog at {path}; name its attributes and their types to make one"
            )
        return cls(path, _delta(path))

    @property
    def version(self) -> int:
        """The version that the next commit builds on."""
        return int(self._delta.version())

    def refresh(self) -> None:
        """Take note of what others have committed."""
        try:
            self._delta.update_incremental()
        except DeltaError:
            self._opened = _delta(self.path)
        self.meta = _meta(self.path, self._delta)

    def files(self, version: int | None = None) -> list[tuple[str, int]]:
        """The data files of a version, each with the version it was committed in."""
        delta = self._delta if version in (None, self.version) else _delta(self.path, version)
        actions = pa.table(delta.get_add_actions(flatten=True))
        paths = actions.column("path").to_pylist()
        return sorted(
            zip(paths, actions.column(f"partition.{PARTITION}").to_pylist(), strict=True),
            key=lambda file: (file[1], file[0]),
        )

    def write(self, records: pa.Table) -> str:
        """A data file of these records, not yet part of the table."""
        records, sink = said(records), pa.BufferOutputStream()
        texts = [f.name for f in records.schema if pa.types.is_string(f.type) and f.name != "id"]
        pq.write_table(
            records, sink, compression="lz4", use_dictionary=texts, write_statistics=False
        )
        data = sink.getvalue()
        name = f"{uuid.uuid4()}-{zlib.crc32(data):08x}.parquet"
        with _writing(self.path):
            (self.path / name).write_bytes(data)
            to_disk(self.path / name)
            to_disk(self.path)
        return name

    def read(self, file: str, version: int) -> pa.Table:
        path = self.path / unquote(file)
        try:
            data = path.read_bytes()
            expected = CHECKSUM.search(path.name)  # none if another program has rewritten the file
            if expected and zlib.crc32(data) != int(expected[1], 16):
                raise OSError("its checksum is another")
            # without Arrow's threads: a process that ends while they start is aborted
            records = pq.ParquetFile(pa.BufferReader(data)).read(use_threads=False)
        except FileNotFoundError:
            raise CatalogError(
                f"{path} is gone: version {version} of the catalog is no longer kept"
            ) from None
        except (OSError, pa.ArrowException) as error:
            raise CatalogError(f"{path}: the catalog is damaged: {plain(error)}") from None
        return at_version(records, version)

    def commit(
        self, adds: dict[str, int], drops: list[tuple[str, int]], info: dict[str, Any]
    ) -> int:
        """Make files (with their numbers of records) part of the next version; returns it.

        Raises CommitFailedError, with nothing changed, if somebody else has taken that version.
        """
        version, now = self.version + 1, int(time.time() * 1000)
        partition = {PARTITION: str(version)}
        actions: list[AddAction | RemoveAction] = [
            AddAction(
                quote(name),
                (self.path / name).stat().st_size,
                partition,
                now,
                not drops,
                json.dumps({"numRecords": rows}),
            )
            for name, rows in adds.items()
        ]
        actions += [
            RemoveAction(name, False, now, None, {PARTITION: str(at)}) for name, at in drops
        ]
        with _writing(self.path):
            commit(self.path, self._delta, actions, [PARTITION], info)
        self.refresh()
        return version

    def declare(self, layout: Layout) -> None:
        """Take in more attributes. Two commits; what is left between them by a crash does no harm."""
        from deltalake.schema import Schema

        known = {field.name for field in self._delta.schema().fields}
        more = [field for field in layout.schema() if field.name not in known]
        with _writing(self.path):
            if more:
                self._delta.alter.add_columns(
                    Schema.from_arrow(pa.schema(more)).fields,
                    commit_properties=properties({"kind": "declare"}),
                )
            self._delta.alter.set_table_properties(
                _configuration(layout),
                raise_if_not_exists=False,
                commit_properties=properties({"kind": "declare"}),
            )
        self.refresh()

    def vacuum(self, hours: int) -> int:
        """Delete data files that no version of the last hours uses.

        Among them those that a crash or a lost race left behind; but not if zero hours are asked for:
        a file without a commit may then be that of a writer at work.
        """
        facts = CommitProperties(custom_metadata={log.INFO: {"kind": "vacuum"}})
        with _writing(self.path):
            deleted = self._delta.vacuum(
                hours,
                dry_run=False,
                enforce_retention_duration=False,
                full=hours > 0,
                commit_properties=facts,
            )
        return len(deleted)


def _check_process() -> None:
    if is_forked():
        raise CatalogError(
            "a catalog was in use before this process was forked, so it cannot be used here: start "
            "processes by spawn or forkserver"
        )


def _delta(path: Path, version: int | None = None) -> DeltaTable:
    _check_process()
    try:
        return DeltaTable(str(path), version=version)
    except TableNotFoundError:
        raise CatalogError(f"{path}: the catalog is damaged: its Delta log is incomplete") from None
    except DeltaError as error:
        raise CatalogError(f"{path}: the catalog is damaged: {plain(error)}") from None


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    try:
        yield
    except CommitFailedError:
        raise
    except (DeltaError, OSError) as error:
        raise CatalogError(f"{path} cannot be written: {plain(error)}") from None


def _meta(path: Path, delta: DeltaTable) -> Meta:
    metadata = delta.metadata()
    facts = metadata.configuration
    if "limen.format" not in facts:
        raise CatalogError(f"{path} is a Delta table, but not a catalog of queries")
    if facts["limen.format"] != str(FORMAT):
        raise CatalogError(
            f"{path} has format {facts['limen.format']}, this program knows {FORMAT}: "
            "install a newer limen"
        )
    try:
        named = json.loads(facts["limen.attributes"])
        layout = Layout(
            attribute_type(facts["limen.id_type"]),
            {name: attribute_type(kind) for name, kind in named},
        )
    except (KeyError, ValueError, TypeError) as error:
        raise CatalogError(
            f"{path}: the catalog is damaged: its properties cannot be read ({error})"
        ) from None
    return Meta(str(metadata.id), layout)


def _configuration(layout: Layout) -> dict[str, str]:
    named = [[name, type_name(kind)] for name, kind in layout.attributes.items()]
    return {"limen.id_type": type_name(layout.id_type), "limen.attributes": json.dumps(named)}


__all__ = ["CommitFailedError", "Meta", "Table"]
