"""The market as a source of Spark: the same offsets are the same events, and no batch is too large."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

from limen.testing.feed import FORMAT, FeedReader, MarketFeed, Stretch
from limen.testing.market import BLOCK, SCHEMA, Market


def reader(**options: int) -> FeedReader:
    return FeedReader({name: str(value) for name, value in options.items()})


def frame(batches: Iterable[pa.RecordBatch]) -> Any:
    """In pandas NaN equals NaN."""
    return pa.Table.from_batches(batches, SCHEMA).to_pandas()


def offset(trade: int) -> dict[str, int]:
    return {"trade": trade}


@pytest.mark.parametrize(
    ("first", "last"), [(0, 10 * BLOCK), (0, 1), (7, 7), (3, BLOCK + 3), (BLOCK - 1, 5 * BLOCK + 1)]
)
@pytest.mark.parametrize("tasks", [1, 2, 3])
def test_partitions_are_the_range_cut_between_blocks(first, last, tasks):
    feed = reader(partitions=tasks)
    parts = feed.partitions(offset(first), offset(last))
    assert len(parts) <= tasks
    assert [n for part in parts for n in range(part.first, part.last)] == list(range(first, last))
    assert all(part.first % BLOCK == 0 for part in parts[1:])
    read = [batch for part in parts for batch in feed.read(part)]
    assert frame(read).equals(frame(Market().trades(first, last)))


def test_work_is_shared_evenly():
    assert reader().partitions(offset(0), offset(100_000)) == [
        Stretch(0, 50_000),
        Stretch(50_000, 100_000),
    ]


def test_a_batch_takes_what_the_limit_says():
    feed = reader(rows_per_batch=1000, rows=2500)
    assert feed.getDefaultReadLimit() == ReadMaxRows(1000)
    assert feed.latestOffset(offset(0), ReadMaxRows(1000)) == offset(1000)
    assert feed.latestOffset(offset(2000), ReadMaxRows(1000)) == offset(2500)
    assert feed.latestOffset(offset(2500), ReadMaxRows(1000)) == offset(2500)
    assert feed.latestOffset(offset(0), ReadAllAvailable()) == offset(2500)
    endless = reader(rows_per_batch=1000)
    assert endless.latestOffset(offset(10**12), ReadAllAvailable()) == offset(10**12 + 1000)


def test_pace(monkeypatch):
    now = 100.0
    monkeypatch.setattr("limen.testing.feed.time.monotonic", lambda: now)
    feed = reader(rows_per_batch=1000, rows_per_second=100)
    assert feed.latestOffset(offset(40), ReadMaxRows(1000)) == offset(40)
    now = 101.5
    assert feed.latestOffset(offset(40), ReadMaxRows(1000)) == offset(190)
    now = 200.0
    assert feed.latestOffset(offset(190), ReadMaxRows(1000)) == offset(1190)


@pytest.mark.parametrize("options", [{"rows_per_batch": 0}, {"partitions": -1}, {"seed": "x"}])
def test_options_that_are_no_numbers(options):
    with pytest.raises(ValueError, match="must be a whole number from"):
        reader(**options)
    with pytest.raises(ValueError, match="needs the option rows"):
        reader().prepareForTriggerAvailableNow()


def test_on_spark(spark, tmp_path):
    """In batches, and started again from the checkpoint: every trade once, as the market has it."""
    spark.dataSource.register(MarketFeed)
    parts = []

    def run(rows: int) -> list[int]:
        feed = spark.readStream.format(FORMAT).option("rows_per_batch", 12_000).option("rows", rows)
        query = (
            feed.load()
            .writeStream.foreachBatch(lambda frame, _: parts.append(frame.toArrow()))
            .option("checkpointLocation", str(tmp_path / "ckpt"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        return [p["numInputRows"] for p in query.recentProgress if p["numInputRows"]]

    assert run(30_000) == [12_000, 12_000, 6_000]
    assert run(40_000) == [10_000]
    read = [batch for part in parts for batch in part.sort_by("trade").to_batches()]
    assert frame(read).equals(frame(Market().trades(0, 40_000)))
