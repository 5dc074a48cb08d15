"""What runs in Spark's Python workers: batches of events in, matches and bad events out.

A worker process lives through many batches, and so does what this module holds: per stream, the matcher
of the version seen last. A task asks which version its batch is bound to, moves the matcher there, and
probes it with every Arrow batch that Spark hands over.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, NamedTuple

import pyarrow as pa

from limen.catalog import Catalog, CatalogError
from limen.catalog.bindings import note_quarantined
from limen.engine.emit import COLUMN, Emit
from limen.engine.events import read_events
from limen.engine.matcher import Matched
from limen.engine.versions import MATCHER, Make, T, Versions
from limen.spark.task import batch_of_task, part_of_task

MOST_HELD = 8

# by path and id of the catalog, stream, and kind of index
_held: dict[tuple[str, str, str, str], Versions[Any]] = {}
_bound: dict[tuple[str, str, str], tuple[int, int]] = {}  # without the kind: batch, version


def versions_of(path: str, catalog_id: str, stream: str, make: Make[T]) -> Versions[T]:
    """The indexes of a catalog; kept for the next batch of the same stream."""
    key = path, catalog_id, stream, make.name
    versions = _held.pop(key, None)
    if versions is None:
        catalog = Catalog.open(path)
        if catalog.id != catalog_id:
            raise CatalogError(f"{path}: another catalog has taken the place of the one in use")
        versions = Versions(catalog, make)
    _held[key] = versions
    while len(_held) > MOST_HELD:
        del _held[next(iter(_held))]
    return versions


def version_of(catalog: Catalog, stream: str, batch: int) -> int:
    """The version that the batch is bound to, now or since its first try."""
    key = str(catalog.path), catalog.id, stream
    held = _bound.get(key)
    if held is None or held[0] != batch:
        held = _bound[key] = batch, catalog.bind(stream, batch)
    return held[1]


class Opened(NamedTuple, Generic[T]):
    """What a task has of the queries; the stream and batch, if that is what it works for."""

    at_version: T
    version: int
    catalog: Catalog
    batch: tuple[str, int] | None


@dataclass(frozen=True)
class Queries:
    """Where a task finds the queries of its batch."""

    path: str
    catalog_id: str
    version: int  # what a job sees that is no batch of a stream
    binds: bool  # whether the batches of a stream see later versions

    @property
    def identity(self) -> str:
        """Of the catalog, or of what is in a fixed set: its folder is named by that."""
        return self.catalog_id if self.binds else Path(self.path).name

    def of_task(self, make: Make[T]) -> Opened[T]:
        batch = batch_of_task() if self.binds else None
        versions = versions_of(self.path, self.catalog_id, batch[0] if batch else "", make)
        version = version_of(versions.catalog, *batch) if batch else self.version
        return Opened(versions.at(version), version, versions.catalog, batch)


def tell(
    path: str, batch: tuple[str, int] | None, part: int, bad: int, of: str, where: str
) -> None:
    """Note how many events were left out: beside the catalog for a stream, else in the log."""
    if batch is not None:
        note_quarantined(Path(path), *batch, part, part_of_task()[1], bad)
        return
    print(f"limen: {bad:,} {of} were not taken; {where}", file=sys.stderr)


@dataclass(frozen=True)
class QuarantineTask:
    """For `mapInArrow`: the bad events, with a last column that says why they are bad."""

    queries: Queries

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        matcher = self.queries.of_task(MATCHER).at_version
        for part in batches:
            events = read_events(pa.Table.from_batches([part]), matcher.attributes)
            yield from events.quarantine.to_batches()


@dataclass(frozen=True)
class MatchTask:
    """For `mapInArrow`: the matches, and if asked the bad events."""

    queries: Queries
    emit: Emit
    columns: tuple[str, ...]
    version_column: str  # empty if it is not wanted
    keeps_bad: bool  # bad events are rows too; otherwise they are counted and left out
    schema: pa.Schema  # the columns, the result, the version, the reason where bad events are kept

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        matcher, version, _, batch = self.queries.of_task(MATCHER)
        events = bad = 0
        for part in batches:
            table = pa.Table.from_batches([part])
            for matched in matcher.match_batch(table, self.emit, self.columns, text_ids="plain"):
                yield from self._rows(matched, version)
                bad += len(matched.quarantine)
            events += len(part)
        if bad and not self.keeps_bad:
            where = "limen.spark.quarantine has them with their reasons"
            tell(self.queries.path, batch, part_of_task()[0], bad, f"of {events:,} events", where)

    def _rows(self, matched: Matched, version: int) -> Iterator[pa.RecordBatch]:
        """Matches without a reason, then bad events without a result."""
        found, bad = matched
        result = COLUMN[self.emit]
        if len(found):
            reason = [pa.nulls(len(found), pa.string())] if self.keeps_bad else []
            yield from self._batches(found, found.column(result), reason, version)
        if len(bad) and self.keeps_bad:
            no_result = pa.nulls(len(bad), self.schema.field(result).type)
            reason = [bad.column(bad.num_columns - 1)]
            yield from self._batches(bad, no_result, reason, version)

    def _batches(
        self, table: pa.Table, result: pa.Array, reason: list[pa.Array], version: int
    ) -> list[pa.RecordBatch]:
        columns = [*(table.column(name) for name in self.columns), result]
        if self.version_column:
            columns.append(pa.repeat(pa.scalar(version, pa.int64()), len(table)))
        whole = pa.table([*columns, *reason], names=self.schema.names)
        return whole.cast(self.schema).to_batches()  # type: ignore[no-any-return]
