"""A streaming sink that keeps results in an archive, each batch once.

The tasks of a batch write their rows into files beside the archive; when all are there, they are taken in
by one commit, together with the mark (stream, batch). A batch that is replayed after a crash finds its
mark and adds nothing. Files that no commit has taken in, left by a killed task, go with the archive's
vacuum when they are a day old: a younger one may be of a batch at work.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql.datasource import DataSource, DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.pandas.types import to_arrow_schema

from limen.archive import Archive, ArchiveError
from limen.archive.table import BESIDE, INCOMING
from limen.archive.times import as_wait
from limen.model import LimenError
from limen.spark.task import batch_of_task

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming import StreamingQuery
    from pyspark.sql.types import StructType

    from limen.archive.times import Duration

FORMAT = "limen-archive"


def archive_sink(
    frame: DataFrame,
    archive: Archive | str | Path,
    checkpoint: str | Path | None = None,
    *,
    delay: Duration | None = None,
    name: str | None = None,
    key: str | None = None,
    generated: str | None = None,
    expires: str | None = None,
    window: Duration | None = None,
    every: Duration | None = None,
    layout: str | None = None,
    stamps: Mapping[str, tuple[str, Duration]] | None = None,
    window_bytes: float | None = None,
    queries: float = 1,
    space: bool = False,
    probes_first: bool = False,
    grace: timedelta | None = None,
    **trigger: Any,
) -> StreamingQuery:
    """Start a query that keeps the rows of a streaming frame in an archive.

    `archive`: one, or its folder; with `key`, `window` and `every` it is made there if need be
    (`Archive.open` says what these are). `delay`: rows may come so much later than others that were
    generated after them; the archive is brought up to a time when a row is later than that by `delay`.
    `checkpoint`: the folder of the query's checkpoint, beside the archive if not said. `trigger`: as for
    Spark's `trigger`, such as `availableNow=True` or `processingTime="1 second"`.

    Rows that no window can have (a null key, an expiration before the generation) are set aside:
    `archive.quarantine()`.
    """
    if not frame.isStreaming:
        raise LimenError(
            "archive_sink takes a streaming frame; use archive.update for a static one"
        )
    if not isinstance(archive, (Archive, str, os.PathLike)):
        raise LimenError(f"archive={archive!r}: an archive or its folder is needed")
    if not isinstance(checkpoint, (str, os.PathLike, NoneType)):
        raise LimenError(f"checkpoint={checkpoint!r}: the folder of a checkpoint is needed")
    schema = to_arrow_schema(frame.schema, timezone="UTC")
    frame.sparkSession.dataSource.register(ArchiveSink)
    writer = frame.writeStream.format(FORMAT).outputMode("append")
    if name is not None:
        writer = writer.queryName(name)
    if trigger:  # refused by Spark before an archive is made
        writer = writer.trigger(**trigger)
    if window is not None and delay is not None:
        _check_delay(delay, schema, generated or "generated")
    kept = Archive.open(
        archive.path if isinstance(archive, Archive) else archive,
        schema if window is not None else None,
        key=key,
        generated=generated,
        expires=expires,
        window=window,
        every=every,
        layout=layout,
        stamps=stamps,
        window_bytes=window_bytes,
        queries=queries,
        space=space,
        probes_first=probes_first,
        grace=grace,
    )
    kept.shape.table_of(schema.empty_table())  # has the archive these columns?
    if kept.shape.count_based:
        raise LimenError("a stream does not tell how many rows the windows of an archive have seen")
    wait = 0 if delay is None else kept.shape.duration(delay, "delay")
    where = kept.path.with_name(f"{kept.path.name}.ckpt")
    if checkpoint:
        where = Path(checkpoint).expanduser().absolute()
    writer = writer.option("path", str(kept.path)).option("delay", str(wait))
    return writer.option("checkpointLocation", str(where)).start()


def _check_delay(delay: Duration, schema: pa.Schema, generated: str) -> None:
    """Of an archive that is yet to be made, if the frame has its times."""
    if generated in schema.names:
        as_wait(delay, pa.types.is_timestamp(schema.field(generated).type), "delay")


class ArchiveSink(DataSource):
    @classmethod
    def name(cls) -> str:
        return FORMAT

    def streamWriter(self, schema: StructType, overwrite: bool) -> ArchiveWriter:  # noqa: N802
        return ArchiveWriter(
            Path(self.options["path"]),
            to_arrow_schema(schema, timezone="UTC"),
            int(self.options["delay"]),
        )


@dataclass
class Written(WriterCommitMessage):
    """What one task has written."""

    stream: str
    file: str | None
    rows: int


class ArchiveWriter(DataSourceStreamArrowWriter):
    def __init__(self, path: Path, schema: pa.Schema, delay: int) -> None:
        self.path, self.schema, self.delay = path, schema, delay

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        batch = batch_of_task()
        if batch is None:
            raise LimenError("Spark did not say which batch of which stream this task works for")
        parts = [part.cast(self.schema) for part in iterator if len(part)]
        if not parts:
            return Written(batch[0], None, 0)
        table = pa.Table.from_batches(parts, self.schema)
        file = self.path / BESIDE / f"{INCOMING}-{batch[1]}-{uuid.uuid4()}.parquet"
        file.parent.mkdir(exist_ok=True)
        pq.write_table(table, file, write_page_checksum=True, compression="lz4")
        return Written(batch[0], file.name, len(table))

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        told = [message for message in messages if isinstance(message, Written)]
        files = [self.path / BESIDE / t.file for t in told if t.file is not None]
        if files:
            archive = Archive.open(self.path)
            rows = pa.concat_tables([self._read(file) for file in files])
            archive.take_in(told[0].stream, batchId, rows, archive.shape.length(self.delay))
        for file in files:
            with suppress(FileNotFoundError):
                file.unlink()

    def _read(self, file: Path) -> pa.Table:
        try:
            found = pq.ParquetFile(file, page_checksum_verification=True)
            return found.read(use_threads=False)
        except (OSError, pa.ArrowException) as error:
            raise ArchiveError(f"{file}: what a task has written cannot be read: {error}") from None

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Nothing is deleted: the batch may be in although it failed. Vacuum takes what is not."""
