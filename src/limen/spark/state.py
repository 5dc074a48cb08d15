"""What a stream of `crossings` knows, read from its checkpoint: who is where, and who is inside a query.

As of the last batch that the stream has committed. It may be running.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from limen.model import LimenError, QueryError, QuerySet

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from limen.catalog import Catalog

HEAD = -1  # stands for the number of an entry


def entities(
    spark: SparkSession, checkpoint: str | os.PathLike[str], *, operator: int = 0
) -> DataFrame:
    """The last reading of every entity that the stream knows.

    `operator`: which of the stream's operators with state it is, if it has several.
    """
    return _read(spark, checkpoint, operator, None)


def inside(
    spark: SparkSession,
    checkpoint: str | os.PathLike[str],
    queries: Catalog | str | os.PathLike[str] | QuerySet,
    query_id: str | int,
    *,
    operator: int = 0,
) -> DataFrame:
    """The entities that are inside a query, as the stream has reported, with their last readings.

    `queries`: the catalog, or the fixed set, that has the query as it stands now.
    """
    from limen.catalog import Catalog

    if isinstance(queries, str) or hasattr(queries, "__fspath__"):
        queries = Catalog.open(queries)  # type: ignore[arg-type]
    known = queries if isinstance(queries, QuerySet) else queries.snapshot()
    rows = [row for row, who in enumerate(known.ids.to_pylist()) if who == query_id]
    if not rows:
        raise QueryError(f"no query has the id {query_id!r}")
    return _read(spark, checkpoint, operator, known.take(rows))


def _read(
    spark: SparkSession, checkpoint: str | os.PathLike[str], operator: int, query: QuerySet | None
) -> DataFrame:
    from pyspark.errors import PySparkException
    from pyspark.sql import functions as f
    from pyspark.sql.pandas.types import from_arrow_schema

    from limen.engine.carried import watch_of

    where = os.fspath(checkpoint)

    def state(variable: str) -> DataFrame:
        reader = spark.read.format("statestore").option("operatorId", operator)
        return reader.option("stateVarName", variable).load(where)

    try:
        watched = state("watch").select("value.data").first()
    except PySparkException as error:
        raise LimenError(
            f"{checkpoint} holds no state of crossings (operator {operator}): "
            f"{str(error).splitlines()[0]}"
        ) from None
    if watched is None:
        raise LimenError(f"{checkpoint}: the stream has not seen any reading yet")
    watch, _ = watch_of(watched[0])
    heads = state("head").select(
        f.col("key.bucket").alias("bucket"),
        f.lit(HEAD).cast("long").alias("entry"),
        f.lit(0).alias("part"),
        f.col("value.data").alias("data"),
    )
    entries = state("entries").select(
        f.col("key.bucket").alias("bucket"),
        f.col("user_map_key.entry").alias("entry"),
        f.col("user_map_key.part").alias("part"),
        f.col("user_map_value.data").alias("data"),
    )
    look = Look(watched[0], query)
    grouped = heads.unionByName(entries).groupBy("bucket")
    # Spark counts the arguments of a plain function only
    return grouped.applyInArrow(lambda table: look(table), from_arrow_schema(watch.reading))


@dataclass(frozen=True)
class Look:
    """For `applyInArrow`: of one bucket, the entities inside a query, or all."""

    watched: str
    query: QuerySet | None

    def __call__(self, table: pa.Table) -> pa.Table:
        from limen.engine.bucket import Bucket
        from limen.engine.carried import watch_of
        from limen.engine.crosser import Crosser
        from limen.engine.monitor import Monitor

        watch, id_type = watch_of(self.watched)
        queries = QuerySet.empty(id_type) if self.query is None else self.query
        monitor = Monitor(queries, list(watch.on), lenient=list(watch.keys))
        bucket = Bucket(lambda: Crosser(monitor, watch))
        bucket.bring_to(Read(table))
        if self.query is None:
            return bucket.crosser.readings()
        return bucket.crosser.inside(self.query.ids[0].as_py())


class Read:
    """The state of a bucket as it was read."""

    def __init__(self, table: pa.Table) -> None:
        columns = (table.column(name).to_pylist() for name in ("entry", "part", "data"))
        self._data: dict[tuple[int, int], bytes] = {
            (entry, part): data for entry, part, data in zip(*columns, strict=True)
        }

    def head(self) -> bytes | None:
        return self._data.get((HEAD, 0))

    def part(self, entry: int, part: int) -> bytes:
        return self._data[entry, part]
