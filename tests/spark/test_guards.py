"""What the operators rely on in Spark that Spark does not promise: if this fails, read spark/task.py."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql.types import ArrayType, LongType, StringType, StructField, StructType

from limen.spark.task import BATCH_PROPERTY, RUN_PROPERTY, STREAM_PROPERTY


def test_tasks_of_a_stream_know_their_query_and_batch(spark, tmp_path):
    (tmp_path / "events").mkdir()
    for number in range(3):
        pq.write_table(pa.table({"x": [number]}), tmp_path / "events" / f"{number}.parquet")

    def properties(batches):
        from pyspark import TaskContext

        context = TaskContext.get()
        for batch in batches:
            names = STREAM_PROPERTY, BATCH_PROPERTY, RUN_PROPERTY
            told = [[context.getLocalProperty(name)] * len(batch) for name in names]
            yield pa.record_batch(told, ["q", "b", "r"])

    source = spark.readStream.schema("x long").option("maxFilesPerTrigger", 1)
    frame = source.parquet(str(tmp_path / "events")).mapInArrow(
        properties, "q string, b string, r string"
    )
    stream = (
        frame.writeStream.format("memory")
        .queryName("guarded")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    stream.awaitTermination()
    found = sorted(tuple(row) for row in spark.table("guarded").collect())
    assert found == [(str(stream.id), str(batch), str(stream.runId)) for batch in range(3)]


def test_a_static_job_has_neither(spark):
    def properties(batches):
        from pyspark import TaskContext

        context = TaskContext.get()
        for _ in batches:
            told = [str(context.getLocalProperty(n)) for n in (STREAM_PROPERTY, BATCH_PROPERTY)]
            yield pa.record_batch([[told[0]], [told[1]]], ["q", "b"])

    rows = spark.range(1).mapInArrow(properties, "q string, b string").collect()
    assert [(row.q, row.b) for row in rows] == [("None", "None")]


def test_schemas_go_to_arrow_and_back():
    from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

    schema = StructType(
        [StructField("ids", ArrayType(LongType())), StructField("reason", StringType())]
    )
    arrow = to_arrow_schema(schema)
    assert arrow.field("ids").type == pa.list_(pa.int64())
    assert from_arrow_schema(arrow) == schema


def test_workers_and_their_modules_survive_batches(spark):
    """A cache in an imported module is what makes the second batch cheap."""

    def count(batches):
        from limen.spark import worker

        for _ in batches:
            worker.calls = getattr(worker, "calls", 0) + 1
            yield pa.record_batch([[worker.calls]], ["calls"])

    seen = [
        row.calls
        for _ in range(4)
        for row in spark.range(0, 2, 1, 2).mapInArrow(count, "calls long").collect()
    ]
    assert max(seen) > 1
