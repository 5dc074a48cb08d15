"""The market as a streaming source for Spark, `spark.readStream.format("limen-market")`.

Offsets are trade numbers, and the trades of a range are the same whenever and wherever they are read: a
batch that is replayed after a crash has the same events. A task makes whole blocks, as Arrow batches.

Options: `rows_per_batch` (100,000), what a batch takes at most; `rows`, how many there are in all (no end
if not said; a trigger of availableNow needs one); `rows_per_second`, how fast they come, counted from the
start of the query (at once if not said); `partitions` (2) of a batch; `seed` (7) of the market.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np
import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from limen.testing.market import BLOCK, Market

FORMAT = "limen-market"
SCHEMA = "trade bigint, time timestamp, symbol string, price double, volume bigint"

market = lru_cache(maxsize=4)(Market)  # lives as long as the worker


class MarketFeed(DataSource):
    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> str:
        return SCHEMA

    def streamReader(self, schema: object) -> FeedReader:  # noqa: N802
        return FeedReader(self.options)


@dataclass
class Stretch(InputPartition):
    """Trades from `first` up to, not including, `last`."""

    first: int
    last: int


class FeedReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    def __init__(self, options: Mapping[str, str]) -> None:
        self.seed = _number(options, "seed", 7, least=0)
        self.batch = _number(options, "rows_per_batch", 100_000)
        self.rows = _number(options, "rows", 0, least=0)
        self.pace = _number(options, "rows_per_second", 0, least=0)
        self.tasks = _number(options, "partitions", 2)
        self._began: tuple[float, int] | None = None  # when this run began, and at which trade

    def initialOffset(self) -> dict[str, int]:  # noqa: N802
        return {"trade": 0}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        return ReadMaxRows(self.batch)

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:  # noqa: N802
        """As far as the limit lets a batch go; a feed without end is never read whole."""
        at = int(start["trade"])
        last = self.rows or at + self.batch
        if isinstance(limit, ReadMaxRows):
            last = min(at + limit.max_rows, self.rows or at + limit.max_rows)
        if self.pace:
            began, first = self._began = self._began or (time.monotonic(), at)
            last = min(last, first + int((time.monotonic() - began) * self.pace))
        return {"trade": max(last, at)}

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """What is available now are all rows there will be."""
        if not self.rows:
            raise ValueError(f"{FORMAT} has no end; availableNow needs the option rows")
        self.pace = 0

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[Stretch]:
        """Cut between blocks, so that no two tasks make the same one."""
        first, last = int(start["trade"]), int(end["trade"])
        blocks = np.linspace(first // BLOCK, -(-last // BLOCK), self.tasks + 1).round().astype(int)
        cuts = np.clip(blocks * BLOCK, first, last).tolist()
        return [Stretch(a, b) for a, b in pairwise(cuts) if a < b]

    def read(self, partition: Stretch) -> Iterator[pa.RecordBatch]:
        return market(self.seed).trades(partition.first, partition.last)


def _number(options: Mapping[str, str], name: str, default: int, least: int = 1) -> int:
    text = options.get(name, str(default))
    if not text.isdecimal() or int(text) < least:
        raise ValueError(f"{FORMAT}: {name} is {text!r}; it must be a whole number from {least} on")
    return int(text)
