"""Which batch of which stream a task works for.

Spark sets the two as local properties on every task of a streaming query. They are internal to Spark but
the same on replay, which nothing public is; `tests/spark/test_guards.py` watches them.
"""

from __future__ import annotations

STREAM_PROPERTY = "sql.streaming.queryId"
BATCH_PROPERTY = "streaming.sql.batchId"
RUN_PROPERTY = "spark.jobGroup.id"  # of a stream: another each time it is started


def batch_of_task() -> tuple[str, int] | None:
    """The streaming query and the batch that this task works for; None in a job that is no batch."""
    from pyspark import TaskContext

    context = TaskContext.get()
    stream = context.getLocalProperty(STREAM_PROPERTY) if context is not None else None
    batch = context.getLocalProperty(BATCH_PROPERTY) if context is not None else None
    return (stream, int(batch)) if stream and batch is not None else None


def part_of_task() -> tuple[int, str]:
    """Which part of the batch, in which run of the stream: the same when the task is run again."""
    from pyspark import TaskContext

    context = TaskContext.get()
    if context is None:
        return 0, ""
    return int(context.partitionId()), context.getLocalProperty(RUN_PROPERTY) or ""
