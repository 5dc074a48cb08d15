"""`crossings`: a frame of readings in, a frame of what was entered and left out.

Three steps. Readings are packed by bucket, a hash of the entity: many of them in one value, so that the
shuffle and the state operator handle few large rows. The state operator takes each bucket through
`Crosser`, with what it carries in Spark's state store (`buckets.py`). What comes of it is unpacked again.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from limen.model import LimenError, QueryError, type_name
from limen.spark.match import arrow_schema, map_in_arrow, queries_of

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

    from limen.engine.watch import Watch
    from limen.spark.worker import Queries

Span = timedelta | float

PACKED = "bucket int, part int, seq int, data binary"
PACK_ROWS = 1 << 17  # readings of a task that are packed at a time
LEAST_BUCKETS, MOST_BUCKETS = 16, 1024
ANY = "any"  # catalog, where the state does not depend on which queries came and went
PROVIDER = "spark.sql.streaming.stateStore.providerClass"


def crossings(
    readings: DataFrame,
    queries: object,
    *,
    entity: str,
    on: Sequence[str] | str | None = None,
    time: str | None = None,
    dwell: Span | None = None,
    hysteresis: Mapping[str, object] | object = None,
    ttl: Span | None = None,
    lateness: Span | None = None,
    exit_on_removal: bool = False,
    enter_on_add: bool = False,
    keep_bad: bool = False,
    buckets: int | None = None,
    name: str = "crossings",
    bounds: str = "[]",
) -> DataFrame:
    """For each entity, the queries that its readings enter and leave, one row each.

    `readings`: a static or a streaming frame; `queries`: as for `limen.spark.match`; the other options as
    for `limen.crossings`. In the result are the entity, `query_id`, `crossing` (enter or exit), the
    time, the values, the previous values, and the `version` of the catalog.

    `exit_on_removal`, `enter_on_add`: also report what changes because the queries do; by default a
    query that comes or goes is silent. `keep_bad`: readings with a null or NaN, and late ones, stay as
    rows without a crossing and with a `reason`; otherwise `catalog.quarantined(stream)` has their number.
    `buckets`: into how many parts the entities are divided, for as long as the checkpoint lives; from
    the session's shuffle partitions if not said. `name`: for a second such operator in one stream.
    """
    import pyarrow as pa
    from pyspark.sql.pandas.types import from_arrow_schema

    from limen.engine.monitor import to_watch, unwatchable
    from limen.engine.watch import REASON, VERSION, Watch
    from limen.spark.buckets import Buckets

    arrow = arrow_schema(readings)
    found, catalog = queries_of(queries, arrow, bounds, needs_all=False)
    carried = {n: kind for n, kind in catalog.attributes.items() if n in arrow.names}
    known = catalog.snapshot()
    if on is None:
        later = carried if found.binds else None
        on = to_watch(known, arrow.names, [entity, time], later)
    watch = Watch.of(
        arrow,
        carried,
        entity=entity,
        on=on,
        time=time,
        dwell=dwell,
        hysteresis=hysteresis,
        ttl=ttl,
        lateness=lateness,
        exit_on_removal=exit_on_removal,
        enter_on_add=enter_on_add,
    )
    rows, attribute = unwatchable(known, watch.on, watch.keys)
    if len(rows):
        row = int(rows[0])
        raise QueryError(
            f"cannot be watched: crossings are watched on {', '.join(watch.on)}, and the readings carry "
            f"{', '.join(watch.keys) or 'nothing'} beside",
            row,
            known.ids[row].as_py(),
            attribute,
        )
    whole = isinstance(buckets, int) and not isinstance(buckets, bool)
    if buckets is not None and not (whole and 1 <= buckets <= 1 << 20):
        raise LimenError(f"buckets={buckets!r} is not a number from 1 to {1 << 20:,}")
    if readings.isStreaming:
        _check_store(readings)
    partitions = int(readings.sparkSession.conf.get("spark.sql.shuffle.partitions"))
    usual = min(max(LEAST_BUCKETS, 4 * partitions), MOST_BUCKETS)
    settings = Settings(found, name, buckets, usual, watch)
    fields = [*watch.schema(catalog.id_type), pa.field(VERSION, pa.int64())]
    if keep_bad:
        fields.append(pa.field(REASON, pa.string()))
    schema = pa.schema(fields)
    packed = map_in_arrow(readings, watch.columns, Pack(settings), PACKED)
    crossed = packed.groupBy("bucket").transformWithStateInPandas(
        statefulProcessor=Buckets(settings, keep_bad, schema),
        outputStructType="data binary",
        outputMode="Append",
        timeMode="None",
    )
    return crossed.mapInArrow(unpack, from_arrow_schema(schema))


def _check_store(readings: DataFrame) -> None:
    provider = readings.sparkSession.conf.get(PROVIDER, "")
    if "RocksDB" not in (provider or ""):
        raise LimenError(
            "crossings on a stream keeps its state in RocksDB: make the session by "
            f"limen.spark.session(), or set {PROVIDER} to "
            "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
        )


@dataclass(frozen=True)
class Settings:
    """What the tasks of one operator share."""

    queries: Queries
    name: str
    asked: int | None  # for buckets
    usual: int
    watch: Watch

    def opened(self) -> tuple[int, Watch]:
        """How many buckets there are, and what is watched: for a stream, what it was begun with.

        Refuses settings other than those that the checkpoint's state was made with. Attributes that were
        declared since are not carried.
        """
        from limen.catalog.bindings import settle
        from limen.spark.task import batch_of_task

        batch = batch_of_task()
        if batch is None:
            return self.asked or self.usual, self.watch
        wanted = self.facts(self.asked or self.usual)
        key = self.queries.path, batch[0], self.name
        if key not in _settled:
            path = Path(self.queries.path)
            _settled[key] = json.loads(settle(path, batch[0], self.name, json.dumps(wanted)))
        begun = _settled[key]
        self.refuse_others(begun, self.asked or begun["buckets"])
        keys = {name: kind for name, kind in self.watch.keys.items() if _is_in(name, begun["keys"])}
        return int(begun["buckets"]), replace(self.watch, keys=keys)

    def refuse_others(self, begun: dict[str, Any], buckets: int) -> None:
        """Refuse these settings if the state was made with others.

        Keys that are new are no difference, nor is a stream that no longer follows its queries.
        """
        wanted = self.facts(buckets)
        wanted["keys"] = [key for key in wanted["keys"] if key in begun["keys"]]
        if wanted["catalog"] == ANY:
            wanted["catalog"] = begun["catalog"]
        others = [name for name in begun if wanted.get(name) != begun[name]]
        if others:
            raise LimenError(
                f"the stream's state was made with {_told(begun, others)}, and is now asked for with "
                f"{_told(wanted, others)}; go on with the former, or use a new checkpoint (a second "
                "operator in one stream needs a name=... of its own)"
            )

    def facts(self, buckets: int) -> dict[str, Any]:
        watch = self.watch
        return {
            "buckets": buckets,
            "dimensions": len(watch.on),
            "on": [[name, type_name(kind)] for name, kind in watch.on.items()],
            "entity": [watch.entity, type_name(watch.entity_type)],
            "time": [watch.time, str(watch.time_type)],
            "keys": [[name, type_name(kind)] for name, kind in watch.keys.items()],
            "dwell": watch.dwell,
            "hysteresis": {name: str(margin) for name, margin in watch.margins.items()},
            "catalog": self.queries.identity if watch.follows else ANY,
        }


_settled: dict[tuple[str, str, str], dict[str, Any]] = {}


def _is_in(name: str, pairs: list[list[str]]) -> bool:
    return any(name == known for known, _ in pairs)


def _told(facts: dict[str, Any], names: list[str]) -> str:
    return ", ".join(f"{name} = {json.dumps(facts.get(name))}" for name in names)


@dataclass(frozen=True)
class Pack:
    """For `mapInArrow`: readings of one bucket in one value, as Arrow data.

    Where it matters which queries come and go, every task has an empty row for every bucket too, so that
    all of them see every batch.
    """

    settings: Settings

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        from limen.spark.task import part_of_task

        (buckets, watch), (part, _) = self.settings.opened(), part_of_task()
        if watch.follows:
            numbers = list(range(buckets))
            yield _packed(numbers, part, [-1] * buckets, [None] * buckets)
        waiting: list[pa.RecordBatch] = []
        rows = seq = 0
        for batch in batches:
            waiting.append(batch)
            rows += len(batch)
            if rows >= PACK_ROWS:
                yield self._pack(pa.Table.from_batches(waiting), buckets, part, seq)
                waiting, rows, seq = [], 0, seq + 1
        if rows:
            yield self._pack(pa.Table.from_batches(waiting), buckets, part, seq)

    def _pack(self, table: pa.Table, buckets: int, part: int, seq: int) -> pa.RecordBatch:
        import numpy as np
        import pyarrow as pa

        from limen.engine.buckets import buckets_of

        of = buckets_of(table.column(self.settings.watch.entity), buckets)
        order = np.argsort(of, kind="stable")
        sorted_rows = table.take(pa.array(order)).combine_chunks()
        starts = np.searchsorted(of[order], np.arange(buckets + 1))
        numbers = np.flatnonzero(np.diff(starts)).tolist()
        blobs = []
        for number in numbers:
            begin, end = int(starts[number]), int(starts[number + 1])
            blobs.append(to_bytes(sorted_rows.slice(begin, end - begin)))
        return _packed(numbers, part, [seq] * len(numbers), blobs)


def _packed(
    buckets: list[int], part: int, seqs: list[int], blobs: Sequence[bytes | None]
) -> pa.RecordBatch:
    import pyarrow as pa

    columns = [
        pa.array(buckets, pa.int32()),
        pa.array([part] * len(buckets), pa.int32()),
        pa.array(seqs, pa.int32()),
        pa.array(blobs, pa.binary()),
    ]
    return pa.record_batch(columns, names=["bucket", "part", "seq", "data"])


def to_bytes(table: pa.Table) -> bytes:
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]


def unpack(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """For `mapInArrow`: the rows of each value."""
    import pyarrow as pa

    for batch in batches:
        for blob in batch.column(0):
            yield from pa.ipc.open_stream(blob.as_buffer())
