"""`limen.spark.match` beside Spark's own means: the identity of mapInArrow, the range join, bin joins.

Events and queries are `workloads.mixed`: lengths log-uniform over four decades, about 10 hits an event.
What either side can prepare is prepared before the clock starts (the index is built, the exploded queries
are cached in memory); both write to Spark's noop sink.
"""

from __future__ import annotations

import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.types import StructType

import limen
from limen.catalog import Catalog

from .memory import peak_of
from .side_by_side import Row, compare, result, seconds
from .workloads import Workload, mixed

EVENTS = 1_000_000
PASSED = 4  # times as many events for the identity, which is over too soon otherwise
SIZES = [100_000, 1_000_000, 10_000_000]
RANGE_JOIN = 100_000
BINS = [300, 1_000, 3_000, 10_000]
STREAMED = 1_000_000  # queries
BATCH, BATCHES = 100_000, 8
REPEATS = 5
HEAP = "12g"
HOW = {"broadcast": "broadcast", "shuffled": "shuffle_hash", "sorted": "merge"}


def run(quick: bool, progress: Callable[[str], None]) -> dict[str, Any]:
    spark = _session()
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        sizes = SIZES[:-1] if quick else SIZES
        for n in sizes:
            progress(f"{n:,} queries: bin joins")
            case = Case(spark, folder / str(n), n)
            if n == STREAMED or len(sizes) == 1:
                progress(f"{n:,} queries: identity")
                rows += identity(case, 3 if quick else REPEATS)
            rows += bin_join(case, 2 if quick else 3)
            case.free()
        progress("range join")
        rows.append(range_join(Case(spark, folder / "range", RANGE_JOIN), 1 if quick else 2))
        progress("micro-batches")
        rows += micro_batches(Case(spark, folder / "stream", STREAMED), folder / "work")
    if not quick:
        progress("peak memory")
        rows += memory()
    return result("spark-match", rows)


def _session() -> SparkSession:
    """The running one, or one with memory for the joins: at 10^7 queries they need it."""
    running = SparkSession.getActiveSession()
    return running if running is not None else limen.spark.session(memory=HEAP)


class Case:
    """A query set as a catalog and as a frame, and a frame of events, both in memory."""

    def __init__(self, spark: SparkSession, folder: Path, n: int) -> None:
        self.spark, self.n = spark, n
        self.load: Workload = mixed(n, 10, EVENTS)
        self.catalog = Catalog.open(folder / "catalog", {"x": "int64"}, ids="int64")
        table = pa.table({"id": np.arange(n), "x_lo": self.load.lo, "x_hi": self.load.hi})
        self.catalog.add(table)
        pq.write_table(table, folder / "queries.parquet")
        pq.write_table(pa.table({"x": self.load.xs}), folder / "events.parquet")
        self.events = spark.read.parquet(str(folder / "events.parquet")).repartition(2).cache()
        self.queries = spark.read.parquet(str(folder / "queries.parquet"))
        self.events.count()

    def free(self) -> None:
        self.events.unpersist()


def identity(case: Case, repeats: int) -> list[Row]:
    """The same output columns with the same content, for nothing: what the transport alone costs."""
    rows = []
    events = case.events
    for _ in range(PASSED - 1):
        events = events.union(case.events)
    events = events.repartition(2).cache()
    events.count()
    for emit in ("ids", "count"):
        ours = limen.spark.match(events, case.catalog, emit)
        answer = limen.Matcher(case.catalog.snapshot()).match(
            pa.table({"x": case.load.xs[:10_000]}), emit
        )
        column = answer.matches.column(1).combine_chunks()
        theirs = events.mapInArrow(constant(column), ours.schema)
        rows.append(
            compare(
                f"emit={emit!r}, {case.n:,} queries, {PASSED * EVENTS:,} events",
                "identity mapInArrow with the same columns",
                lambda: drain(ours),
                lambda: drain(theirs),
                work=PASSED * EVENTS / 1e6,
                unit="M events/s",
                goal=0.8,
                repeats=repeats,
            )
        )
    events.unpersist()
    return rows


def constant(column: pa.Array) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Passes the events through and puts a ready column beside them."""

    def pass_on(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            beside = column.slice(0, len(batch))
            if len(beside) < len(batch):
                beside = pa.concat_arrays([column] * (1 + len(batch) // len(column)))
                beside = beside.slice(0, len(batch))
            yield pa.record_batch([batch.column(0), beside], names=["x", "found"])

    return pass_on


def range_join(case: Case, repeats: int) -> Row:
    """BETWEEN, as everybody would write it first: Spark answers with a nested loop."""
    events = case.events.limit(RANGE_JOIN).repartition(2).cache()
    events.count()
    ours = limen.spark.match(events, case.catalog)
    joined = events.join(
        f.broadcast(case.queries), (events.x >= f.col("x_lo")) & (events.x <= f.col("x_hi"))
    )
    return compare(
        f"{case.n:,} queries, {RANGE_JOIN:,} events, rows",
        "Spark's range join",
        lambda: drain(ours),
        lambda: drain(joined.select("x", "id")),
        work=RANGE_JOIN / 1e6,
        unit="M events/s",
        goal=100,
        repeats=repeats,
    )


def exploded(queries: DataFrame, width: int) -> DataFrame:
    """A row for every bin that a query touches."""
    first, last = f.floor(f.col("x_lo") / width), f.floor(f.col("x_hi") / width)
    return queries.withColumn("bin", f.explode(f.sequence(first, last)))


def joined(events: DataFrame, prepared: DataFrame, width: int, how: str) -> DataFrame:
    binned = events.withColumn("bin", f.floor(f.col("x") / width))
    hinted = prepared.hint(HOW[how])
    inside = (f.col("x") >= f.col("x_lo")) & (f.col("x") <= f.col("x_hi"))
    return binned.join(hinted, "bin").where(inside).select("x", "id")


def bin_join(case: Case, repeats: int) -> list[Row]:
    """Against the best of several bin widths and ways to join; what runs out of memory is not it."""
    large = case.n > 2_000_000
    case.spark.conf.set("spark.sql.shuffle.partitions", "16" if large else "2")
    best: tuple[float, int, str] | None = None
    for width in BINS[1:3] if large else BINS:
        prepared = exploded(case.queries, width).cache()
        prepared.count()
        for how in ("shuffled", "sorted") if large else ("shuffled", "broadcast"):
            try:
                taken = seconds(lambda: drain(joined(case.events, prepared, width, how)))
            except Exception as error:
                if "OutOfMemory" not in str(error):
                    raise
                continue
            if best is None or taken < best[0]:
                best = taken, width, how
        prepared.unpersist()
    assert best is not None
    _, width, how = best
    prepared = exploded(case.queries, width).cache()
    prepared.count()
    rows = []
    for emit in ("rows", "ids"):
        ours = limen.spark.match(case.events, case.catalog, emit)
        rows.append(
            compare(
                f"one batch of {EVENTS:,} events, {case.n:,} queries, emit={emit!r}",
                f"bin join ({how}, width {width:,})",
                lambda: drain(ours),
                lambda: drain(joined(case.events, prepared, width, how)),
                work=EVENTS / 1e6,
                unit="M events/s",
                goal=1,
                repeats=repeats,
            )
        )
    prepared.unpersist()
    case.spark.conf.set("spark.sql.shuffle.partitions", "2")
    return rows


def micro_batches(case: Case, folder: Path) -> list[Row]:
    """A stream of small batches: the join scans, shuffles and hashes its queries every time.

    Spark itself takes a share of every batch, however little is done in it: that is the second row.
    """
    (folder / "events").mkdir(parents=True)
    rng = np.random.default_rng(5)
    for number in range(BATCHES + 2):
        xs = rng.choice(case.load.xs, BATCH)
        pq.write_table(pa.table({"x": xs}), folder / "events" / f"{number}.parquet")
    source = (
        case.spark.readStream.schema(StructType(case.events.schema.fields))
        .option("maxFilesPerTrigger", 1)
        .parquet(str(folder / "events"))
    )
    theirs: dict[str, list[float]] = {}
    for width in BINS[1:3]:
        prepared = exploded(case.queries, width).cache()
        prepared.count()
        for how in ("shuffled", "broadcast"):
            frame = joined(source, prepared, width, how)
            theirs[f"{how}, width {width:,}"] = _batch_seconds(frame, folder / "checkpoint")
        prepared.unpersist()
    name, best = min(theirs.items(), key=lambda item: statistics.median(item[1]))
    nothing = _batch_seconds(source, folder / "checkpoint")
    rows = []
    for emit in ("rows", "ids"):
        ours = _batch_seconds(limen.spark.match(source, case.catalog, emit), folder / "checkpoint")
        what = f"micro-batches of {BATCH:,} events, {case.n:,} queries, emit={emit!r}"
        rows.append(_batch_row(what, f"bin join ({name})", ours, best, 10))
        rows.append(_batch_row(what, "the stream without an operator", ours, nothing, None))
    return rows


def _batch_row(
    case: str, rival: str, ours: list[float], theirs: list[float], goal: float | None
) -> Row:
    our, their = statistics.median(ours), statistics.median(theirs)
    return {
        "case": case,
        "rival": rival,
        "ours": round(BATCH / our / 1e6, 3),
        "theirs": round(BATCH / their / 1e6, 3),
        "unit": "M events/s",
        "ratio": round(their / our, 3),
        "spread": [round(min(theirs) / max(ours), 3), round(max(theirs) / min(ours), 3)],
        "goal": None if goal is None else f">= {goal:g}",
        "holds": None if goal is None else their / our >= goal,
    }


def _batch_seconds(frame: DataFrame, checkpoint: Path) -> list[float]:
    """What each batch took as a whole, but for the first two."""
    shutil.rmtree(checkpoint, ignore_errors=True)
    stream = (
        frame.writeStream.format("noop")
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    stream.awaitTermination()
    taken = [
        p.durationMs["triggerExecution"] / 1000 for p in stream.recentProgress if p.numInputRows
    ]
    return taken[2:] if len(taken) > 2 else taken


def memory() -> list[Row]:
    """Peak of all processes of a run, each side in a session of its own with the same heap."""
    peaks = {}
    for side in ("match", "join"):
        code = (
            "import sys; sys.path.append(sys.argv[1]); import importlib; "
            "importlib.import_module(sys.argv[2] + '.spark_match').one_side(sys.argv[3])"
        )
        here = Path(__file__).parent
        process = subprocess.Popen(
            [sys.executable, "-c", code, str(here.parent), here.name, side],
            stdout=subprocess.DEVNULL,
        )
        peaks[side] = peak_of(process)
    ratio = round(peaks["join"] / peaks["match"], 3)
    return [
        {
            "case": f"peak memory, one batch of {EVENTS:,} events, {STREAMED:,} queries",
            "rival": f"bin join (shuffled, width {BINS[1]:,})",
            "ours": round(peaks["match"] / 2**20),
            "theirs": round(peaks["join"] / 2**20),
            "unit": "MiB",
            "ratio": ratio,
            "spread": [ratio, ratio],
            "goal": None,
            "holds": None,
        }
    ]


def one_side(side: str) -> None:
    """A whole run of one side, for its peak memory."""
    spark = limen.spark.session(memory="4g")
    with tempfile.TemporaryDirectory() as folder:
        case = Case(spark, Path(folder), STREAMED)
        for _ in range(3):
            if side == "match":
                drain(limen.spark.match(case.events, case.catalog))
            else:
                prepared = exploded(case.queries, BINS[1]).cache()
                drain(joined(case.events, prepared, BINS[1], "shuffled"))
    spark.stop()


def drain(frame: DataFrame) -> None:
    frame.write.format("noop").mode("overwrite").save()
