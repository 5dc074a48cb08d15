"""The catalog beside a plain Parquet file of the same queries, and a stream while queries change."""

from __future__ import annotations

import statistics
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import limen
from limen.catalog import Catalog

from .side_by_side import Row, compare, result

SIZE = 1_000_000
SMALL = 10
BATCH, PHASE = 100_000, 12  # events in a batch, batches in a phase
PHASES = 3
COMMITS, CHANGED = 10, 100  # commits a second, each adding and removing so many: 1,000 a second
REPEATS = 5


def run(quick: bool, progress: Callable[[str], None]) -> dict[str, Any]:
    n = SIZE // 10 if quick else SIZE
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as name:
        progress(f"{n:,} queries: add, open, index, small changes")
        rows += against_parquet(Path(name), n, 3 if quick else REPEATS)
        progress("a stream while queries change")
        rows.append(while_changing(Path(name), n))
    return result("catalog", rows)


def drawn(n: int, first: int = 0, seed: int = 1) -> pa.Table:
    rng = np.random.default_rng(seed)
    price = rng.uniform(1, 1000, n)
    names = pa.array([f"S{i:04d}" for i in range(2000)])
    return pa.table(
        {
            "id": np.arange(first, first + n),
            "symbol": names.take(pa.array(rng.integers(0, 2000, n))),
            "price_lo": price,
            "price_hi": price * np.exp(10 ** rng.uniform(-4, -1, n)),
        }
    )


TYPES = {"symbol": "string", "price": "float64"}


def against_parquet(folder: Path, n: int, repeats: int) -> list[Row]:
    table, plain = drawn(n), folder / "plain.parquet"
    made = iter(range(10**6))

    def add() -> None:
        Catalog.open(folder / f"c{next(made)}", TYPES, ids="int64").add(table)

    def index() -> None:
        limen.Matcher(Catalog.open(there).snapshot())

    def write_and_read() -> None:
        pq.write_table(table, plain)
        pq.read_table(plain)

    add()
    there = folder / "c0"
    small = Catalog.open(there)
    few = iter([drawn(SMALL, n + SMALL * i) for i in range(repeats + 1)])
    common: dict[str, Any] = {"repeats": repeats, "goal": round(1 / 3, 3)}
    millions: dict[str, Any] = {"work": n / 1e6, "unit": "M queries/s", **common}

    def small_add() -> None:
        small.add(next(few))

    return [
        compare(
            f"add {n:,} in one call",
            "writing plain Parquet",
            add,
            lambda: pq.write_table(table, plain),
            **millions,
        ),
        compare(
            f"open {n:,}",
            "reading plain Parquet",
            lambda: Catalog.open(there).snapshot(),
            lambda: pq.read_table(plain),
            **millions,
        ),
        compare(
            f"open and index {n:,}",
            "writing and reading plain Parquet",
            index,
            write_and_read,
            **millions,
        ),
        compare(
            f"add {SMALL} to {n:,}",
            "rewriting the plain Parquet file",
            small_add,
            lambda: pq.write_table(table, plain),
            work=1,
            unit="changes/s",
            goal=1,
            repeats=repeats,
        ),
    ]


def while_changing(folder: Path, n: int) -> Row:
    """Batches in turn without and with changes, in one stream."""
    spark = limen.spark.session()
    catalog = Catalog.open(folder / "running", TYPES, ids="int64")
    catalog.add(drawn(n))
    (folder / "events").mkdir()
    rng = np.random.default_rng(3)
    symbols = pa.array([f"S{i:04d}" for i in range(2000)])
    events = pa.table(
        {
            "symbol": symbols.take(pa.array(rng.integers(0, 2000, BATCH))),
            "price": rng.uniform(1, 1000, BATCH),
        }
    )
    for number in range(2 * PHASE * PHASES + 4):
        pq.write_table(events, folder / "events" / f"{number:05}.parquet")
    source = (
        spark.readStream.schema("symbol string, price double")
        .option("maxFilesPerTrigger", 1)
        .parquet(str(folder / "events"))
    )
    frame = limen.spark.match(source, catalog, "ids")
    stream = (
        frame.writeStream.format("noop")
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    changes = Changes(catalog, n)
    changes.start()
    quiet: list[float] = []
    busy: list[float] = []
    seen = -1
    while stream.isActive or seen < 0:
        for progress in stream.recentProgress:
            if progress.batchId > seen and progress.numInputRows:
                seen = progress.batchId
                phase, within = divmod(seen - 3, PHASE)
                if phase >= 0 and within > 1:  # a phase's first batches may belong to the last one
                    taken = progress.durationMs["triggerExecution"] / 1000
                    (busy if changes.on else quiet).append(taken)
                if within == PHASE - 1:
                    changes.on = not changes.on
        time.sleep(0.005)
    stream.awaitTermination()
    committed = changes.stop()
    still, moving = statistics.median(quiet), statistics.median(busy)
    spread = sorted(q / b for q, b in zip(sorted(quiet), sorted(busy), strict=False))
    return {
        "case": f"a stream of {BATCH:,}-event batches, {n:,} queries, "
        f"{COMMITS * CHANGED:,} added and removed a second",
        "rival": "the same stream without changes",
        "ours": round(BATCH / moving / 1e6, 3),
        "theirs": round(BATCH / still / 1e6, 3),
        "unit": "M events/s",
        "ratio": round(still / moving, 3),
        "spread": [
            round(min(spread[0], still / moving), 3),
            round(max(spread[-1], still / moving), 3),
        ],
        "goal": ">= 0.8",
        "holds": still / moving >= 0.8,
        "commits": committed,
    }


class Changes(threading.Thread):
    """Adds and removes queries at a steady pace while it is on."""

    def __init__(self, catalog: Catalog, n: int) -> None:
        super().__init__(daemon=True)
        self.catalog, self.n = catalog, n
        self.on = self._over = False
        self._commits = 0

    def run(self) -> None:
        first = self.n
        while not self._over:
            begun = time.perf_counter()
            if self.on:
                oldest = range(first - self.n, first - self.n + CHANGED)
                self.catalog.change(add=drawn(CHANGED, first, first), remove=oldest)
                first += CHANGED
                self._commits += 1
            time.sleep(max(0.001, 1 / COMMITS - (time.perf_counter() - begun)))

    def stop(self) -> int:
        self._over = True
        self.join()
        return self._commits
