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

PACKED = "bucket int, part int, seq int, newest long, data binary"
PACK_ROWS = 1 << 17  # readings of a task that are packed at a time
LEAST_BUCKETS, MOST_BUCKETS = 16, 1024
NO_TIME = -(2**63)
SETTLING = 0  # the bucket that sees every batch
ANY = "any"  # catalog, where the state does not depend on which queries came and went
_ANY = "without dwell, hysteresis, exit_on_removal and enter_on_add"
_FOLLOWS = "with one of dwell, hysteresis, exit_on_removal and enter_on_add"
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
    if not isinstance(name, str) or not name:
        raise LimenError(f"name={name!r}: the name of the operator is needed")
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
        """How many buckets there are, and what is watched: as is asked for, or as the stream was begun
        with these queries.

        Attributes that were declared since are not carried.
        """
        begun = self._begun()
        if begun is None:
            return self.asked or self.usual, self.watch
        return self.asked or int(begun["buckets"]), self.carrying(begun["keys"])

    def carrying(self, keys: list[list[str]]) -> Watch:
        """The watch with these keys only."""
        names = {name for name, _ in keys}
        kept = {name: kind for name, kind in self.watch.keys.items() if name in names}
        return replace(self.watch, keys=kept)

    def _begun(self) -> dict[str, Any] | None:
        """What is noted beside the queries; read once a batch."""
        from limen.catalog.bindings import noted_settings
        from limen.spark.task import batch_of_task, part_of_task

        batch = batch_of_task()
        if batch is None:
            return None
        key, now = (self.queries.path, batch[0], self.name), (batch[1], part_of_task()[1])
        if key not in _noted or _noted[key][0] != now:
            text = noted_settings(Path(self.queries.path), batch[0], self.name)
            _noted[key] = now, None if text is None else json.loads(text)
        return _noted[key][1]

    def note(self, buckets: int, watch: Watch) -> None:
        """For later batches: how many buckets if that is not said, and what is carried."""
        from limen.catalog.bindings import note_settings
        from limen.spark.task import batch_of_task

        batch, facts = batch_of_task(), self.facts(buckets, watch)
        if batch is not None and self._begun() != facts:
            note_settings(Path(self.queries.path), batch[0], self.name, json.dumps(facts))

    def refuse_others(self, begun: dict[str, Any], buckets: int) -> None:
        """Refuse these settings if the state was made with others.

        A stream that no longer follows its queries is no difference, nor are keys that a catalog has
        declared since: queries that ask for these are left out.
        """
        wanted = self.facts(buckets, self.watch)
        if self.queries.binds and self._begun() is not None:
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

    def facts(self, buckets: int, watch: Watch) -> dict[str, Any]:
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


_noted: dict[tuple[str, str, str], tuple[tuple[int, str], dict[str, Any] | None]] = {}


def _told(facts: dict[str, Any], names: list[str]) -> str:
    from limen.engine.watch import OFF

    found = {name: json.dumps(facts.get(name)) for name in names}
    if facts.get("dwell") == OFF and "dwell" in found:
        found["dwell"] = "none"
    if "catalog" in found:
        found["catalog"] = f"{found['catalog']} ({_FOLLOWS if facts['catalog'] != ANY else _ANY})"
    return ", ".join(f"{name} = {told}" for name, told in found.items())


@dataclass(frozen=True)
class Pack:
    """For `mapInArrow`: readings of one bucket in one value, as Arrow data.

    Every task has an empty row too, with the newest time of its readings, for the first bucket, which
    sees to the settings, whatever is read. Where it matters what time it is, or which queries come and
    go, there is one for every bucket.
    """

    settings: Settings

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:

        from limen.spark.task import part_of_task

        (buckets, watch), (part, _) = self.settings.opened(), part_of_task()
        newest = NO_TIME
        for seq, table in enumerate(_tables(batches)):
            yield self._pack(table, buckets, part, seq)
            if watch.has_clock:
                newest = max(newest, _newest(table, watch))
        seeing = range(buckets) if watch.follows or watch.has_clock else [SETTLING]
        nothing = [None] * len(seeing)
        yield _packed(list(seeing), part, [-1] * len(seeing), nothing, newest)

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


def _newest(table: pa.Table, watch: Watch) -> int:
    """The greatest time of the readings that will be taken."""
    from limen.engine.events import read_events, without_views

    assert watch.time is not None
    good = read_events(without_views(table), {**watch.keys, **watch.needed})
    return int(good.ordinals[watch.time].max(initial=NO_TIME))


def _tables(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
    """As many rows at a time as are packed together."""
    import pyarrow as pa

    waiting: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        waiting.append(batch)
        rows += len(batch)
        if rows >= PACK_ROWS:
            yield pa.Table.from_batches(waiting)
            waiting, rows = [], 0
    if rows:
        yield pa.Table.from_batches(waiting)


def _packed(
    buckets: list[int],
    part: int,
    seqs: list[int],
    blobs: Sequence[bytes | None],
    newest: int = NO_TIME,
) -> pa.RecordBatch:
    import pyarrow as pa

    columns = [
        pa.array(buckets, pa.int32()),
        pa.array([part] * len(buckets), pa.int32()),
        pa.array(seqs, pa.int32()),
        pa.array([newest] * len(buckets), pa.int64()),
        pa.array(blobs, pa.binary()),
    ]
    return pa.record_batch(columns, names=["bucket", "part", "seq", "newest", "data"])


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
