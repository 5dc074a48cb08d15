"""The state operator of `crossings`: one bucket of entities at a time, its state in Spark's state store.

A worker keeps copies of the buckets that it has worked on (`engine/bucket.py` says when one is good).
This module is imported only where PySpark is: it defines a subclass of one of its classes.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from limen.catalog import Catalog, CatalogError
from limen.engine.bucket import NO_VERSION, Bucket
from limen.engine.carried import describe_watch
from limen.engine.crosser import Crosser
from limen.engine.monitor import unwatchable
from limen.engine.versions import monitor
from limen.engine.watch import CROSSING, QUERY, REASON, VERSION, Watch
from limen.model import LimenError, QuerySet
from limen.spark.crossings import ANY, NO_TIME, SETTLING, Settings, to_bytes
from limen.spark.task import batch_of_task
from limen.spark.worker import tell

OUT_ROWS = 1 << 16  # crossings in one value
MOST_HELD = 4096
SETTINGS = "settings"

_held: dict[tuple[str, str, int, int], Bucket] = {}  # by stream, operator, buckets, bucket
_between: dict[tuple[Any, ...], tuple[QuerySet, QuerySet]] = {}  # by catalog and versions


class Buckets(StatefulProcessor):
    def __init__(self, settings: Settings, keep_bad: bool, schema: pa.Schema) -> None:
        self._settings, self._keep_bad = settings, keep_bad
        self._schema = schema.serialize().to_pybytes()

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._watched = handle.getValueState("watch", "data string")
        self._head = handle.getValueState("head", "data binary")
        self._entries = handle.getMapState("entries", "entry long, part int", "data binary")

    # What `engine.bucket.Store` asks for.

    def head(self) -> bytes | None:
        found = self._head.get()
        return None if found is None else bytes(found[0])

    def set_head(self, data: bytes) -> None:
        self._head.update((data,))

    def part(self, entry: int, part: int) -> bytes:
        return bytes(self._entries.getValue((entry, part))[0])

    def set_part(self, entry: int, part: int, data: bytes) -> None:
        self._entries.updateValue((entry, part), (data,))

    def drop_part(self, entry: int, part: int) -> None:
        self._entries.removeKey((entry, part))

    def handleInputRows(  # noqa: N802 (Spark's name)
        self,
        key: Any,
        rows: Iterator[pd.DataFrame],
        timerValues: Any,  # noqa: N803
    ) -> Iterator[pd.DataFrame]:
        number = int(key[0])
        buckets, watch = self._settings.opened()
        watch = self._carried(number, buckets, watch)
        packed: list[tuple[int, int, bytes | None]] = []
        newest = NO_TIME
        for frame in rows:
            packed += zip(frame["part"], frame["seq"], frame["data"], strict=True)
            newest = max(newest, int(frame["newest"].max()))
        packed.sort(key=lambda row: (row[0], row[1]))
        tables = [pa.ipc.open_stream(blob).read_all() for _, _, blob in packed if blob is not None]
        out = list(self._taken(number, buckets, watch, tables, newest))
        if out:
            yield pd.DataFrame({"data": out})

    def _taken(
        self, number: int, buckets: int, watch: Watch, tables: list[pa.Table], newest: int
    ) -> Iterator[bytes]:
        """Take the readings of a bucket through it; the crossings come as Arrow data.

        `newest`: the greatest time of the readings of all buckets.
        """
        batch = batch_of_task()
        make = monitor(list(watch.on), watch.margins, list(watch.keys))
        index, version, catalog, _ = self._settings.queries.of_task(make)
        name = (batch[0], self._settings.name, buckets, number) if batch else None
        bucket = _held.pop(name, None) if name else None  # not to be used if this fails half-way
        if bucket is None or bucket.crosser.watch != watch:
            bucket = Bucket(lambda: Crosser(index, watch))
        bucket.bring_to(self)
        if bucket.is_new:
            told = json.loads(describe_watch(watch, index.id_type))
            told[SETTINGS] = self._settings.facts(buckets, watch)
            self._watched.update((json.dumps(told),))
        crosser = bucket.crosser
        found, touched = [], [crosser.touched[:0]]
        if watch.follows and bucket.version not in (NO_VERSION, version):
            changes = _changes(catalog, bucket.version, version, watch)
            found.append(crosser.move_to(index, *changes))
            touched.append(crosser.touched)
        crosser.monitor = index
        if tables:
            crossed = crosser.cross(pa.concat_tables(tables), newest)
            found.append(crossed.crossings)
            touched.append(crosser.touched)
            found += self._bad(crossed.quarantine, batch, number)
        elif watch.has_clock:
            found.append(crosser.let_pass(newest))
            touched.append(crosser.touched)
        bucket.save(self, np.unique(np.concatenate(touched)), version)
        if name:
            _held[name] = bucket
            while len(_held) > MOST_HELD:
                del _held[next(iter(_held))]
        schema = pa.ipc.read_schema(pa.py_buffer(self._schema))
        for table in found:
            whole = table.append_column(VERSION, pa.repeat(pa.scalar(version), len(table)))
            if self._keep_bad and REASON not in whole.column_names:
                whole = whole.append_column(REASON, pa.nulls(len(table), pa.string()))
            whole = whole.select(schema.names).cast(schema)
            for begin in range(0, len(whole), OUT_ROWS):
                yield to_bytes(whole.slice(begin, OUT_ROWS))

    def _carried(self, number: int, buckets: int, watch: Watch) -> Watch:
        """What is watched, as this bucket has it in the state; other settings than its own are refused.

        It is the state that knows them: what is noted beside the queries is not of the checkpoint, and
        the copy here may be of a run with others. If queries are followed no longer, that is kept too:
        what they do now is told to nobody, so they cannot be followed again.
        """
        found = self._watched.get()
        if found is not None:
            told = json.loads(found[0])
            begun = told[SETTINGS]
            self._settings.refuse_others(begun, buckets)
            watch = self._settings.carrying(begun["keys"])
            if not watch.follows and begun["catalog"] != ANY:
                begun["catalog"] = ANY
                self._watched.update((json.dumps(told),))
        if number == SETTLING:
            self._settings.note(buckets, watch)
        return watch

    def _bad(self, bad: pa.Table, batch: tuple[str, int] | None, number: int) -> list[pa.Table]:
        """The readings that were not taken: as rows of the result, or counted."""
        if not len(bad):
            return []
        if not self._keep_bad:
            where = "keep_bad=True keeps them with their reasons"
            batch = (
                batch if self._settings.queries.binds else None
            )  # nobody looks beside a fixed set
            part = zlib.crc32(self._settings.name.encode()) << 20 | number  # of this operator alone
            tell(self._settings.queries.path, batch, part, len(bad), "readings", where)
            return []
        schema = pa.ipc.read_schema(pa.py_buffer(self._schema))
        columns = {
            field.name: bad.column(field.name)
            if field.name in bad.column_names and field.name not in (QUERY, CROSSING)
            else pa.nulls(len(bad), field.type)
            for field in schema
            if field.name not in (VERSION, REASON)
        }
        return [pa.table({**columns, REASON: bad.column(bad.num_columns - 1)})]


def _changes(catalog: Catalog, first: int, last: int, watch: Watch) -> tuple[QuerySet, QuerySet]:
    """The queries removed and added between two versions, as far as they can be watched."""
    versions = [(version, catalog.fingerprint(version)) for version in (first, last)]
    key = catalog.id, *versions
    if key not in _between:
        none = QuerySet.empty(str(catalog.id_type))
        try:
            changes, before = catalog.changes(first, last), catalog.snapshot(first)
        except CatalogError as error:
            if watch.exit_on_removal or watch.enter_on_add:
                raise LimenError(
                    f"which queries came and went since version {first} cannot be told any more: "
                    f"{error}; start without exit_on_removal and enter_on_add"
                ) from None
            return none, none
        gone = pc.is_in(before.ids, value_set=changes.removed).to_numpy(zero_copy_only=False)
        _between.clear()
        _between[key] = before.take(np.flatnonzero(gone)), changes.added
    removed, added = _between[key]
    return _watchable(removed, watch), _watchable(added, watch)


def _watchable(queries: QuerySet, watch: Watch) -> QuerySet:
    """The queries that a monitor has not left out."""
    rows, _ = unwatchable(queries, watch.on, watch.keys)
    return queries.take(np.setdiff1d(np.arange(len(queries)), rows)) if len(rows) else queries
