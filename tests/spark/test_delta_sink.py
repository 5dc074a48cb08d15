"""The Delta sink: what it writes, once, and what it refuses. Crashes: see test_crash.py."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

import limen
from limen.spark.delta_sink import DeltaWriter, Written


@pytest.fixture
def stream(spark, tmp_path):
    (tmp_path / "events").mkdir()
    for number in range(3):
        table = pa.table({"n": [number], "texts": [["a", None]]})
        pq.write_table(table, tmp_path / "events" / f"{number}.parquet")
    source = spark.readStream.schema("n long, texts array<string>").option("maxFilesPerTrigger", 1)
    return source.parquet(str(tmp_path / "events"))


def test_every_batch_is_a_commit_with_its_mark(stream, tmp_path):
    query = limen.spark.write_delta(stream, tmp_path / "out", availableNow=True)
    query.awaitTermination()
    table = DeltaTable(tmp_path / "out")
    assert sorted(table.to_pyarrow_table().column("n").to_pylist()) == [0, 1, 2]
    assert table.version() == 3 and table.transaction_version(str(query.id)) == 2
    assert (tmp_path / "out.ckpt").is_dir()


def test_a_batch_that_is_in_is_not_taken_again(tmp_path):
    schema = pa.schema([("n", pa.int64())])
    writer = DeltaWriter(tmp_path, schema)
    for name in ("a", "b"):
        pq.write_table(pa.table({"n": [1]}), tmp_path / name)
        size = (tmp_path / name).stat().st_size
        writer.commit([Written("stream", [(name, size, 1)]), None], 7)
    assert DeltaTable(tmp_path).to_pyarrow_table().num_rows == 1
    assert not (tmp_path / "b").exists(), "what the second try wrote is thrown away"


def test_a_commit_that_is_in_counts_although_what_follows_it_failed(tmp_path):
    schema = pa.schema([("n", pa.int64())])
    configuration = {"delta.checkpointInterval": "1"}
    DeltaTable.create(str(tmp_path), schema, configuration=configuration)
    (tmp_path / "_delta_log" / "_last_checkpoint").mkdir()
    pq.write_table(pa.table({"n": [1]}), tmp_path / "a")
    written = [Written("stream", [("a", (tmp_path / "a").stat().st_size, 1)])]
    writer = DeltaWriter(tmp_path, schema)
    writer.commit(written, 0)
    writer.abort(written, 0)  # as Spark would do if the commit had raised
    assert DeltaTable(tmp_path).to_pyarrow_table().num_rows == 1


def test_a_table_of_other_columns_is_refused_at_the_start(stream, tmp_path):
    DeltaTable.create(str(tmp_path / "out"), pa.schema([("n", pa.string())]))
    with pytest.raises(limen.LimenError, match=r"column 'n' is .*long.* in the frame and .*string"):
        limen.spark.write_delta(stream, tmp_path / "out")


def test_a_static_frame_is_refused(spark, tmp_path):
    with pytest.raises(limen.LimenError, match="takes a streaming frame"):
        limen.spark.write_delta(spark.range(1), tmp_path / "out")
