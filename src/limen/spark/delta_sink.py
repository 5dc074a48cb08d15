"""A streaming sink that writes a Delta table exactly once, without a jar.

The tasks of a batch write Parquet files into the table's folder; when all are there, one commit makes
them part of the table, together with the mark (stream, batch). A batch that is replayed after a crash
finds its mark and adds nothing. Files that no commit names, left by a killed task, are invisible and go
with Delta's (full) vacuum.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql.datasource import DataSource, DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.pandas.types import to_arrow_schema

from limen.model import LimenError
from limen.spark.task import batch_of_task

if TYPE_CHECKING:
    from deltalake import DeltaTable
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming import StreamingQuery
    from pyspark.sql.types import StructType

FORMAT = "limen-delta"


def write_delta(
    frame: DataFrame,
    path: str | Path,
    checkpoint: str | Path | None = None,
    *,
    name: str | None = None,
    **trigger: Any,
) -> StreamingQuery:
    """Start a query that appends a streaming frame to a Delta table; made if it is not there.

    `checkpoint`: the folder of the query's checkpoint, beside the table if not said. `trigger`: as for
    Spark's `trigger`, such as `availableNow=True` or `processingTime="1 second"`.
    """
    from deltalake import DeltaTable

    if not frame.isStreaming:
        raise LimenError("write_delta takes a streaming frame; a static one has writers of its own")
    folder = Path(path).expanduser().absolute()
    if DeltaTable.is_deltatable(str(folder)):
        check_schema(DeltaTable(str(folder)), to_arrow_schema(frame.schema, timezone="UTC"))
    where = folder.with_name(f"{folder.name}.ckpt")
    if checkpoint:
        where = Path(checkpoint).expanduser().absolute()
    frame.sparkSession.dataSource.register(DeltaSink)
    writer = frame.writeStream.format(FORMAT).option("path", str(folder))
    writer = writer.option("checkpointLocation", str(where)).outputMode("append")
    if name is not None:
        writer = writer.queryName(name)
    if trigger:
        writer = writer.trigger(**trigger)
    return writer.start()


class DeltaSink(DataSource):
    @classmethod
    def name(cls) -> str:
        return FORMAT

    def streamWriter(self, schema: StructType, overwrite: bool) -> DeltaWriter:  # noqa: N802
        return DeltaWriter(Path(self.options["path"]), to_arrow_schema(schema, timezone="UTC"))


@dataclass
class Written(WriterCommitMessage):
    """What one task has written."""

    stream: str
    files: list[tuple[str, int, int]]  # name, bytes, rows


class DeltaWriter(DataSourceStreamArrowWriter):
    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self.path, self.schema = path, schema

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        batch = batch_of_task()
        if batch is None:
            raise LimenError("Spark did not say which batch of which stream this task works for")
        name = f"{batch[0]}-{batch[1]}-{uuid.uuid4()}.parquet"
        rows, writer = 0, None
        for part in iterator:
            if len(part):
                if writer is None:
                    self.path.mkdir(parents=True, exist_ok=True)
                    writer = pq.ParquetWriter(
                        self.path / name, self.schema, write_page_checksum=True
                    )
                writer.write_batch(part.cast(self.schema))
                rows += len(part)
        if writer is None:
            return Written(batch[0], [])
        writer.close()
        return Written(batch[0], [(name, (self.path / name).stat().st_size, rows)])

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        from deltalake import CommitProperties
        from deltalake.exceptions import DeltaError
        from deltalake.transaction import AddAction, Transaction

        told = [message for message in messages if isinstance(message, Written)]
        table = self._table()
        files = [file for message in told for file in message.files]
        if not files:
            return
        stream = told[0].stream
        done = table.transaction_version(stream)
        if done is not None and done >= batchId:
            self._discard(told)
            return
        now = int(time.time() * 1000)
        actions = [
            AddAction(name, size, {}, now, True, json.dumps({"numRecords": rows}))
            for name, size, rows in files
        ]
        mark = Transaction(app_id=stream, version=batchId, last_updated=now)
        try:
            table.create_write_transaction(
                actions,
                "append",
                table.schema(),
                commit_properties=CommitProperties(app_transactions=[mark]),
            )
        except (DeltaError, OSError):  # perhaps of what comes after the commit: a checkpoint
            done = self._table().transaction_version(stream)
            if done is None or done < batchId:
                raise

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Nothing is deleted: a commit may be in although it failed. Vacuum takes what is not."""

    def _discard(self, told: list[Written]) -> None:
        for message in told:
            for name, _, _ in message.files:
                with suppress(FileNotFoundError):
                    (self.path / name).unlink()

    def _table(self) -> DeltaTable:
        from deltalake import DeltaTable

        if not DeltaTable.is_deltatable(str(self.path)):
            return DeltaTable.create(str(self.path), self.schema, mode="ignore")
        table = DeltaTable(str(self.path))
        check_schema(table, self.schema)
        return table


def check_schema(table: DeltaTable, schema: pa.Schema) -> None:
    """The table must have the frame's columns: files of others would make it unreadable."""
    from deltalake import Schema

    if parts := table.metadata().partition_columns:
        raise LimenError(
            f"the Delta table {table.table_uri} is partitioned by {', '.join(parts)}; write to another"
        )
    known = {field.name: field.type for field in table.schema().fields}
    asked = {field.name: field.type for field in Schema.from_arrow(schema).fields}
    for name in [*asked, *known]:
        if known.get(name) != asked.get(name):
            raise LimenError(
                f"column {name!r} is {asked.get(name, 'missing')} in the frame and "
                f"{known.get(name, 'missing')} in the Delta table {table.table_uri}; write to another"
            )
