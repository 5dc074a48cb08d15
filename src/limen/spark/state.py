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

HEAD = -1  # stands for the number of an entry


def entities(
    spark: SparkSession, checkpoint: str | os.PathLike[str], *, operator: int = 0
) -> DataFrame:
    """The last reading of every entity that the stream knows.

    `operator`: which of the stream's operators with state it is, if it has several.
    """
    return _look(_State(spark, checkpoint, operator), None)


def inside(
    spark: SparkSession,
    checkpoint: str | os.PathLike[str],
    queries: object,
    query_id: str | int,
    *,
    operator: int = 0,
) -> DataFrame:
    """The entities that are inside a query, as the stream has reported, with their last readings.

    `queries`: the catalog, or the fixed set, that has the query as it stands now.
    """
    from limen.catalog import Catalog
    from limen.engine.monitor import unwatchable

    state = _State(spark, checkpoint, operator)
    if isinstance(queries, str) or hasattr(queries, "__fspath__"):
        queries = Catalog.open(queries)  # type: ignore[arg-type]
    if isinstance(queries, Catalog):
        known = queries.snapshot()
    else:
        types = None if isinstance(queries, QuerySet) else {**state.watch.on, **state.watch.keys}
        known = QuerySet.of(queries, types)
    rows = [row for row, who in enumerate(known.ids.to_pylist()) if who == query_id]
    if not rows:
        raise QueryError(f"no query has the id {query_id!r}")
    query = known.take(rows)
    _, attribute = unwatchable(query, state.watch.on, state.watch.keys)
    if attribute:
        raise QueryError(
            f"is not among what the stream watches ({', '.join(state.watch.on)}) or carries "
            f"({', '.join(state.watch.keys) or 'nothing'}), so the stream has left the query out",
            query_id=query_id,
            field=attribute,
        )
    return _look(state, query)


class _State:
    """The state of one operator of a stream, as of its last batch."""

    def __init__(
        self, spark: SparkSession, checkpoint: str | os.PathLike[str], operator: int
    ) -> None:
        from pyspark.errors import PySparkException

        from limen.engine.carried import watch_of

        self._reader = spark.read.format("statestore").option("operatorId", operator)
        self._where = os.fspath(checkpoint)
        try:
            watched = self.variable("watch").select("value.data").first()
        except PySparkException as error:
            raise LimenError(
                f"{checkpoint} holds no state of crossings (operator {operator}): "
                f"{str(error).splitlines()[0]}"
            ) from None
        if watched is None:
            raise LimenError(f"{checkpoint}: the stream has not seen any reading yet")
        self.watched = watched[0]
        self.watch, _ = watch_of(self.watched)

    def variable(self, name: str) -> DataFrame:
        return self._reader.option("stateVarName", name).load(self._where)


def _look(state: _State, query: QuerySet | None) -> DataFrame:
    """The last readings of the entities inside the query, or of all."""
    from pyspark.sql import functions as f
    from pyspark.sql.pandas.types import from_arrow_schema

    heads = state.variable("head").select(
        f.col("key.bucket").alias("bucket"),
        f.lit(HEAD).cast("long").alias("entry"),
        f.lit(0).alias("part"),
        f.col("value.data").alias("data"),
    )
    entries = state.variable("entries").select(
        f.col("key.bucket").alias("bucket"),
        f.col("user_map_key.entry").alias("entry"),
        f.col("user_map_key.part").alias("part"),
        f.col("user_map_value.data").alias("data"),
    )
    look = Look(state.watched, query)
    grouped = heads.unionByName(entries).groupBy("bucket")
    # Spark counts the arguments of a plain function only
    return grouped.applyInArrow(lambda table: look(table), from_arrow_schema(state.watch.reading))


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
