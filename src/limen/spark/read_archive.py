"""An archive as a frame: one snapshot, of which only those files are read that can have what is asked.

Keys and times choose among the sub-indices and their files by the archive's directory, on the driver;
Spark's own reader then skips row groups by the same conditions, and by those of the frame. Checksums of
pages are verified.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from limen.model import LimenError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from limen.archive import Archive, Snapshot
    from limen.archive.times import Duration, Moment

Times = tuple["Moment | None", "Moment | None"]


def read_archive(
    spark: SparkSession,
    archive: Archive | Snapshot | str | Path,
    *,
    key: Any = None,
    between: tuple[Any, Any] | None = None,
    generated: Times | None = None,
    expires: Times | None = None,
    window: Duration | Mapping[str, Duration] | None = None,
) -> DataFrame:
    """The results that are alive, as a static frame.

    `archive`: one, its folder, or a snapshot of it. `key`, one or a list of them, or keys `between`
    two, both included; `generated` and `expires` from one time to another, both included, None for no
    limit. `window`: for a query with shorter windows (`Snapshot.window`).
    """
    from pyspark.sql.pandas.types import from_arrow_schema

    from limen.archive import Archive, Snapshot

    if not isinstance(archive, (Archive, Snapshot, str, os.PathLike)):
        raise LimenError(f"archive={archive!r}: an archive, its folder or a snapshot is needed")
    if isinstance(archive, (str, os.PathLike)):
        archive = Archive.open(Path(archive))
    taken = archive if isinstance(archive, Snapshot) else archive.snapshot()
    if key is not None and between is not None:
        raise LimenError("read_archive is for a key or for keys between two, not for both")
    if window is not None:
        taken = taken.window(window)
    schema = from_arrow_schema(taken.shape.schema)
    files = taken.named(key, between, generated, expires)
    if not files:
        return spark.createDataFrame([], schema)
    reader = spark.read.schema(schema).option("parquet.page.verify-checksum.enabled", "true")
    frame = reader.parquet(*(_literally(taken.path / file.path) for file in files))
    return frame.where(taken.where(key, between, generated, expires, quote="`"))


def _literally(path: Path) -> str:
    """A path whose signs mean themselves: Spark takes paths for patterns."""
    return re.sub(r"([*?\[\]{}\\])", r"\\\1", str(path))
