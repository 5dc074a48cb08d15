"""`match` and `quarantine`: a frame of events in, a frame of matches or of bad events out.

On a static frame the version of the catalog is settled when the frame is made; on a streaming one each
batch is bound to the newest version when it first runs, and to the same one if it is replayed.

The engine is imported when `match` is called: the processes of a sink import this package too, and need
none of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from limen.model import LimenError, QuerySet

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

    from limen.catalog import Catalog
    from limen.engine.emit import Emit
    from limen.spark.worker import Queries

    Task = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def match(
    events: DataFrame,
    queries: object,
    emit: Emit = "rows",
    columns: Sequence[str] | None = None,
    *,
    bounds: str = "[]",
    keep_bad: bool = False,
    version_column: str | None = None,
    metrics: str | None = None,
) -> DataFrame:
    """For each event, the standing queries whose ranges contain it.

    `events`: a static or a streaming frame. `queries`: a `Catalog` (or the path of one), whose
    queries may change while a stream runs; or whatever `QuerySet.of` takes, or a Spark frame with a
    row a query. `emit`: "rows", one row an event and query (`query_id`); "ids", one row an event with
    the list (`query_ids`); "count", with their number (`matches`). `columns`: the event columns to
    keep, all by default. `version_column`: a further column with the version of the catalog that the
    row was matched against.

    An event with a null or NaN in a field that some query names matches nothing and is left out:
    `quarantine` has those. How many they are, `catalog.quarantined(stream)` tells, and the log of a
    static job. With `keep_bad` they stay in this frame, without a result and with a `reason`, which is
    null elsewhere. With `metrics`, `matches` and `quarantined` are observed metrics of the query under
    that name; that costs Spark a look at every row.
    """
    from pyspark.sql import functions as f

    flagged, reason = _matched(
        events, queries, emit, columns, bounds, version_column, keep_bad or metrics is not None
    )
    if metrics is not None:
        ids = f.sum(f.when(f.col(reason).isNull(), f.size("query_ids")))
        found = {"rows": f.count("query_id"), "ids": ids, "count": f.sum("matches")}[emit]
        matches, bad = f.coalesce(found, f.lit(0)), f.count(reason)
        flagged = flagged.observe(metrics, matches.alias("matches"), bad.alias("quarantined"))
        if not keep_bad:
            flagged = flagged.where(f.col(reason).isNull()).drop(reason)
    return flagged


def quarantine(events: DataFrame, queries: object, *, bounds: str = "[]") -> DataFrame:
    """The events that cannot be matched, with the reason why in a last column."""
    from limen.engine.events import quarantine_of
    from limen.spark.worker import QuarantineTask

    schema = arrow_schema(events)
    found, _ = queries_of(queries, schema, bounds)
    flagged = quarantine_of(schema.empty_table(), []).schema
    return map_in_arrow(events, schema.names, QuarantineTask(found), flagged)


def _matched(
    events: DataFrame,
    queries: object,
    emit: Emit,
    columns: Sequence[str] | None,
    bounds: str,
    version_column: str | None,
    keep_bad: bool,
) -> tuple[DataFrame, str]:
    """The matches, and if asked the bad events; and the name of the column that tells them apart."""
    import pyarrow as pa

    from limen.engine.emit import COLUMN, check_emit
    from limen.engine.events import REASON
    from limen.spark.worker import MatchTask

    arrow = arrow_schema(events)
    kept = list(arrow.names if columns is None else columns)
    for name in kept:
        if name not in arrow.names:
            raise LimenError(f"columns: the events have no column {name!r}")
    if len(set(kept)) < len(kept):
        raise LimenError(f"columns: a name is there twice: {', '.join(kept)}")
    check_emit(emit, "plain", kept)
    found, catalog = queries_of(queries, arrow, bounds)
    fields = [arrow.field(name) for name in kept]
    ids = {"rows": catalog.id_type, "ids": pa.list_(catalog.id_type), "count": pa.int64()}
    fields.append(pa.field(COLUMN[emit], ids[emit]))
    if version_column:
        if version_column in (f.name for f in fields):
            raise LimenError(f"the result has a column {version_column!r} already")
        fields.append(pa.field(version_column, pa.int64()))
    reason = REASON
    while reason in (f.name for f in fields):
        reason = f"limen_{reason}"
    if keep_bad:
        fields.append(pa.field(reason, pa.string()))
    schema = pa.schema(fields)
    task = MatchTask(found, emit, tuple(kept), version_column or "", keep_bad, schema)
    # What is not needed does not travel; an event of no column would not be one.
    needed = [name for name in arrow.names if name in {*kept, *catalog.attributes}]
    return map_in_arrow(events, needed or arrow.names[:1], task, schema), reason


def map_in_arrow(
    frame: DataFrame, columns: Sequence[str], task: Task, schema: pa.Schema | str
) -> DataFrame:
    """These columns of a frame through a task. PySpark's own refuses names with dots and backticks."""
    from pyspark.sql import functions as f
    from pyspark.sql.pandas.types import from_arrow_schema

    quoted = (f"`{name.replace('`', '``')}`" for name in columns)
    plain = frame.select(*(f.col(name).alias(f"c{i}") for i, name in enumerate(quoted)))
    made = schema if isinstance(schema, str) else from_arrow_schema(schema)
    return plain.mapInArrow(Named(task, tuple(columns)), made)


@dataclass(frozen=True)
class Named:
    """For `mapInArrow`: a task whose batches have their columns' names again."""

    task: Task
    names: tuple[str, ...]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return self.task(batch.rename_columns(list(self.names)) for batch in batches)


def arrow_schema(events: DataFrame) -> pa.Schema:
    from pyspark.sql.pandas.types import to_arrow_schema

    if not hasattr(events, "isStreaming"):
        raise LimenError(
            f"a frame of Spark's is needed, not a {type(events).__name__}; what limen.spark does for "
            "frames, limen.match and limen.crossings do for tables"
        )
    return to_arrow_schema(events.schema, timezone="UTC")


def queries_of(
    queries: object, schema: pa.Schema, bounds: str, *, needs_all: bool = True
) -> tuple[Queries, Catalog]:
    """What the tasks need to find the queries; an error if the events lack a column for them.

    Without `needs_all` a column may be missing, but not be of a type that could lose values.
    """
    from limen.engine.events import check_columns
    from limen.spark.worker import Queries

    catalog, binds = _catalog(queries, schema, bounds)
    catalog.refresh()
    there = {n: k for n, k in catalog.attributes.items() if needs_all or n in schema.names}
    check_columns(schema, there)
    return Queries(str(catalog.path), catalog.id, catalog.version, binds), catalog


def _catalog(queries: object, schema: pa.Schema, bounds: str) -> tuple[Catalog, bool]:
    """The catalog to match against, and whether a stream is to see its later versions."""
    from limen.catalog import Catalog
    from limen.spark.frozen import frozen

    if isinstance(queries, Catalog):
        return queries, True
    if isinstance(queries, str) or hasattr(queries, "__fspath__"):
        return Catalog.open(queries), True  # type: ignore[arg-type]
    if hasattr(queries, "sparkSession") and hasattr(queries, "toArrow"):
        if getattr(queries, "isStreaming", False):
            raise LimenError(
                "the queries are a streaming frame; keep changing queries in a Catalog"
            )
        queries = queries.toArrow()
    known = None if isinstance(queries, QuerySet) else schema
    return frozen(QuerySet.of(queries, known, bounds=bounds)), False
