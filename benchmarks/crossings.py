"""What readings enter and leave: BMQ-Index against DiffRMQ and an STRtree, and crossings on Spark.

In one dimension the setting is the BMQ paper's (section 5.1): queries of one width, streams whose steps
have a given mean (FL, a share of the domain). All indexes are fed with the same readings, some tuples of
every stream in turn; only the search is timed, since the stream table is common to all. Before the clock
starts, both sides of every comparison have given the same crossings.

On Spark, streams are kept running side by side and get a file of readings in turn.
"""

from __future__ import annotations

import itertools
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

import limen
from limen.borders.bmq import BMQIndex, Crossings, Places
from limen.borders.diff_rmq import DiffRMQ
from limen.borders.streams import Streams
from limen.catalog import Catalog
from limen.indexes import create
from limen.model.ordinals import ordinals
from limen.spark.crossings import LEAST_BUCKETS, MOST_BUCKETS

from .rivals import Tree
from .side_by_side import Row, result, row, seconds
from .workloads import I64, walks

DOMAIN = 1_000_000
WIDTH, LEVEL = 0.1, 0.01  # per cent of the domain: the paper's default
MIXED = {0.01: 0.5, 1.0: 0.45, 10.0: 0.05}  # widths in per cent, and how many have them
OPEN = np.iinfo(np.int64).max
SLOWER = 10  # IS-lists get so many times fewer readings
WARM = 3  # tuples before the clock starts
CAPACITIES = [4, 10, 32]  # of the nodes of an STRtree
WORD = 8
SETTLED = 2  # batches of a stream before the clock starts: all entities are new in the first

SCALES: dict[str, dict[str, Any]] = {
    "full": {
        "n": 100_000,
        "streams": 2000,
        "tuples": 100,  # in a round
        "rounds": 7,
        "at_once": 50,  # tuples in a large batch
        "levels": [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10],
        "open_tuples": 2,  # half of all queries match every reading
        "is_list": 100_000,  # no IS-lists of more queries
        "stored": [10_000, 100_000, 1_000_000],
        "rectangles": 100_000,
        "queries": 100_000,  # on Spark
        "per_key": [2_000, 100_000],
        "largest_batches": 3,
        "entities": 1_000_000,
        "crossings": [0.1, 1],  # a reading
        "batches": 5,
        "few_batches": 12,
    },
    "quick": {
        "n": 20_000,
        "streams": 1000,
        "tuples": 20,
        "rounds": 3,
        "at_once": 10,
        "levels": [0.01, 0.1, 1, 10],
        "open_tuples": 1,
        "is_list": 20_000,
        "stored": [10_000, 100_000],
        "rectangles": 20_000,
        "queries": 10_000,
        "per_key": [250, 5_000],
        "largest_batches": 3,
        "entities": 50_000,
        "crossings": [0.1],
        "batches": 3,
        "few_batches": 8,
    },
}


def run(quick: bool, progress: Callable[[str], None]) -> dict[str, Any]:
    scale = SCALES["quick" if quick else "full"]
    rows = one_dimension(scale, progress)
    progress("storage")
    rows += storage(scale)
    progress("two dimensions")
    rows += two_dimensions(scale)
    rows += on_spark(scale, progress)
    for one in rows:
        if one["ratio"] < 1:
            one["rival"] += " (ahead)"
    return result("crossings", rows)


# -- one dimension --------------------------------------------------------------------------------


class Fed:
    """An index with its own stream table."""

    def __init__(self, index: BMQIndex | DiffRMQ, streams: int, dimensions: int = 1) -> None:
        self.index = index
        self._streams, self._places = Streams(dimensions), Places(dimensions)
        self._streams.grow(streams)
        self._entities = np.arange(streams, dtype=np.int32)
        self.found = 0
        self.last: Crossings

    def feed(self, values: I64, at_once: int = 1) -> float:
        """Take these tuples, some in a batch; returns the seconds that the search took."""
        taken = 0.0
        for i in range(0, len(values), at_once):
            some = np.ascontiguousarray(values[i : i + at_once])
            entities = np.tile(self._entities, len(some))
            batch = self._streams.arrange(entities, some.reshape(-1, values.shape[2]))
            begin = time.perf_counter()
            if isinstance(self.index, DiffRMQ):
                self.last = self.index.cross(batch, self._streams)
            else:
                self.last = self.index.cross(batch, self._streams, self._places)
            taken += time.perf_counter() - begin
            self._streams.settle(batch)
            self.found += len(self.last.found)
        return taken

    def pairs(self) -> tuple[list[int], list[int]]:
        """What the last batch entered and left, as reading << 32 | query."""
        readings, queries, entered = self.last.rows()
        codes = np.asarray(readings, np.int64) << 32 | queries
        return np.sort(codes[entered]).tolist(), np.sort(codes[~entered]).tolist()

    def begin_counting(self) -> None:
        self.index.accessed = self.found = 0

    @property
    def efficiency(self) -> float:
        """SE: of the queries and borders looked at, those reported, in per cent."""
        return 100 * self.found / max(1, self.index.accessed)


def bmq(lo: I64, hi: I64) -> BMQIndex:
    index = BMQIndex(lo.shape[1])
    index.build(np.arange(len(lo), dtype=np.int32), lo, hi)
    return index


def diff_rmq(name: str, lo: I64, hi: I64) -> DiffRMQ:
    """With Limen's CEI, or with IS-lists laid out in one stretch of memory, which is their best."""
    index = create(name)
    index.build(np.arange(len(lo), dtype=np.int32), lo[:, 0].copy(), hi[:, 0].copy())
    if name == "is-list":
        index.compact()
    return DiffRMQ(index)


def even(n: int, width: float = WIDTH) -> tuple[I64, I64]:
    lo = np.random.default_rng(1).integers(1, DOMAIN, (n, 1))
    return lo, lo + round(width / 100 * DOMAIN) - 1


def mixed_widths(n: int) -> tuple[I64, I64]:
    rng = np.random.default_rng(1)
    widths = rng.choice(list(MIXED), (n, 1), p=list(MIXED.values()))
    lo = rng.integers(1, DOMAIN, (n, 1))
    return lo, lo + (widths / 100 * DOMAIN).astype(np.int64) - 1


def open_ended(n: int) -> tuple[I64, I64]:
    lo = np.random.default_rng(1).integers(1, DOMAIN, (n, 1))
    return lo, np.full((n, 1), OPEN)


def one_dimension(scale: dict[str, Any], progress: Callable[[str], None]) -> list[Row]:
    n, levels = scale["n"], scale["levels"]
    rows: list[Row] = []
    progress(f"{n:,} queries of one width")
    both = indexes(*even(n), is_list=n <= scale["is_list"])
    for level in levels:
        progress(f"{n:,} queries of one width, FL {level:g} %")
        rows += fluctuating(f"N={n:,} W={WIDTH:g} %", both, level, scale, 1)
    for level in (levels[0], 1):
        rows += fluctuating(f"N={n:,} W={WIDTH:g} %", both, level, scale, scale["at_once"])
    progress(f"{n:,} queries of mixed widths")
    told = ", ".join(f"{100 * share:g} % {width:g} %" for width, share in MIXED.items())
    both = indexes(*mixed_widths(n), is_list=n <= scale["is_list"])
    for level in (levels[0], 1):
        rows += fluctuating(f"N={n:,} W: {told}", both, level, scale, 1)
    progress(f"{n:,} queries without an upper bound")
    both = indexes(*open_ended(n), is_list=False)  # building these takes time and memory N * N
    few = scale | {"tuples": scale["open_tuples"]}
    for level in (levels[0], 1):
        rows += fluctuating(f"N={n:,}, no upper bound", both, level, few, 1)
    return rows


def indexes(lo: I64, hi: I64, *, is_list: bool) -> dict[str, BMQIndex | DiffRMQ]:
    found: dict[str, BMQIndex | DiffRMQ] = {"ours": bmq(lo, hi)}
    found["DiffRMQ(CEI)"] = diff_rmq("cei", lo, hi)
    if is_list:
        found["DiffRMQ(IS-list)"] = diff_rmq("is-list", lo, hi)
    return found


def fluctuating(
    queries: str,
    of: dict[str, BMQIndex | DiffRMQ],
    level: float,
    scale: dict[str, Any],
    at_once: int,
) -> list[Row]:
    """Ours and a rival over the same walks, round by round in turn; then their search efficiencies."""
    streams, rounds = scale["streams"], scale["rounds"]
    case = f"{queries} FL={level:g} %, batches of {at_once * streams:,}"
    default = level == LEVEL and queries.endswith(f"W={WIDTH:g} %")
    rows = []
    for name, theirs in list(of.items())[1:]:
        judged = name == "DiffRMQ(CEI)"
        tuples = max(scale["tuples"] if judged else scale["tuples"] // SLOWER, at_once)
        values = walks(streams, WARM + rounds * tuples, level / 100 * DOMAIN, DOMAIN)
        both = [Fed(of["ours"], streams), Fed(theirs, streams)]
        for one in both:
            one.feed(values[:WARM])
        _same({"ours": both[0].pairs(), name: both[1].pairs()})
        for one in both:
            one.begin_counting()
        parts = np.split(values[WARM:], rounds)
        times = [(both[0].feed(part, at_once), both[1].feed(part, at_once)) for part in parts]
        _same({"ours": both[0].found, name: both[1].found})
        ours, other = (one.efficiency for one in both)
        goal = (10 if default else 0.9) if judged else None
        rows += [
            row(
                case,
                name,
                times,
                work=streams * tuples / 1e6,
                unit="M readings/s",
                goal=goal,
                crossings_a_reading=round(both[0].found / (rounds * streams * tuples), 3),
            ),
            plain(case, f"{name}, search efficiency", ours, other, "%", True),
        ]
        if default and judged:
            rows.append(plain(case, "search efficiency to reach", ours, 99, "%", True, 1))
    return rows


def _same(answers: dict[str, Any]) -> None:
    first, *others = answers.items()
    for name, answer in others:
        if answer != first[1]:
            raise AssertionError(f"{name} answers otherwise: the comparison would be worthless")


def plain(
    case: str,
    rival: str,
    ours: float,
    theirs: float,
    unit: str,
    more_is_better: bool = False,
    goal: float | None = None,
    **more: Any,
) -> Row:
    """A row of two numbers that no clock has to do with; a ratio above 1 is in our favour."""
    ratio = ours / theirs if more_is_better else theirs / ours
    return {
        "case": case,
        "rival": rival,
        "ours": round(ours, 3),
        "theirs": round(theirs, 3),
        "unit": unit,
        "ratio": round(ratio, 3),
        "spread": [round(ratio, 3)] * 2,
        "goal": None if goal is None else f">= {goal:g}",
        "holds": None if goal is None else round(ratio, 3) >= goal,
        **more,
    }


# -- storage --------------------------------------------------------------------------------------


def storage(scale: dict[str, Any]) -> list[Row]:
    """Of the index, and of all that is kept of each stream: its value, time, position and group."""
    rows = []
    streams = scale["streams"]
    known = Streams(1)
    known.grow(streams)
    table = Places(1, streams).nbytes + known.nbytes
    for n in scale["stored"]:
        lo, hi = even(n)
        ours = bmq(lo, hi).nbytes + table
        words = WORD * (2 * n + streams)
        case = f"storage, N={n:,} W={WIDTH:g} %, int64"
        goal = round(1 / 1.2, 3)
        rows.append(plain(case, "2 N + Nd words", ours / 1e6, words / 1e6, "MB", goal=goal))
        for name, told in (("cei", "CEI"), ("is-list", "IS-list")):
            if name == "cei" or n <= scale["is_list"]:
                theirs = diff_rmq(name, lo, hi).index.nbytes
                rows.append(plain(case, told, ours / 1e6, theirs / 1e6, "MB"))
        rng = np.random.default_rng(1)
        low = rng.uniform(1, DOMAIN, (n, 1))
        ends = (low, low + WIDTH / 100 * DOMAIN)
        first, last = (ordinals(pa.array(end[:, 0]), pa.float64())[0][:, None] for end in ends)
        ours = bmq(first, last).nbytes + table
        case = f"storage, N={n:,} W={WIDTH:g} %, float64"
        rows.append(plain(case, "2 N + Nd words", ours / 1e6, words / 1e6, "MB", goal=goal))
    return rows


# -- two dimensions -------------------------------------------------------------------------------


def two_dimensions(scale: dict[str, Any]) -> list[Row]:
    """All points move, then comes the next batch; the tree's points are made before the clock starts.

    A round is long enough that what the other side has left in the caches does not matter.
    """
    n, streams, rounds = scale["rectangles"], scale["streams"], scale["rounds"]
    tuples = scale["tuples"]
    rng = np.random.default_rng(1)
    lo = rng.integers(0, DOMAIN, (n, 2))
    hi = lo + (10 ** rng.uniform(-3, -2, (n, 2)) * DOMAIN).astype(np.int64)
    index = bmq(lo, hi)
    rows = []
    for level in (LEVEL, 1):
        values = walks(streams, WARM + rounds * tuples, level / 100 * DOMAIN, DOMAIN, 2)
        points = [Tree.points(one) for one in values]
        tree, capacity = _best_tree(lo, hi, points[:WARM])
        fed = Fed(index, streams, 2)
        for i in range(WARM):
            fed.feed(values[i : i + 1])
            entered, left = (
                ((pairs // n) << 32 | pairs % n).tolist() for pairs in tree.move(points[i])
            )
            _same({"ours": fed.pairs(), "STRtree": (entered, left)})
        fed.begin_counting()
        theirs = 0
        times = []
        for i in range(WARM, len(values), tuples):
            our = fed.feed(values[i : i + tuples])
            begin = time.perf_counter()
            moved = [tree.move(some) for some in points[i : i + tuples]]
            times.append((our, time.perf_counter() - begin))
            theirs += sum(len(entered) + len(left) for entered, left in moved)
        _same({"ours": fed.found, "STRtree": theirs})
        each = fed.found / (rounds * tuples * streams)
        case = f"{n:,} rectangles, {streams:,} points, steps of {level:g} %"
        case += f", {each:.3g} crossings a reading"
        rows.append(
            row(
                case,
                f"GEOS STRtree (shapely, {capacity} a node)",
                times,
                work=streams * tuples / 1e6,
                unit="M readings/s",
                goal=10 if level == LEVEL else None,
            )
        )
    return rows


def _best_tree(lo: I64, hi: I64, points: list[Any]) -> tuple[Tree, int]:
    """The tree with the best of several node sizes, with no points in it yet."""
    taken = {}
    for capacity in CAPACITIES:
        tree = Tree(lo, hi, capacity)
        tree.move(points[0])
        taken[capacity] = min(seconds(lambda: tree.move(some)) for some in points)
    capacity = min(taken, key=lambda size: taken[size])
    return Tree(lo, hi, capacity), capacity


# -- Spark ----------------------------------------------------------------------------------------

SPARK_DOMAIN = 1_000_000_000
SPARK_HITS = 10  # queries that contain a value
READING = pa.schema([("who", pa.int64()), ("at", pa.int64()), ("x", pa.int64())])
PER_KEY_ROW = "who long, query_id long, entered boolean, at long, x long, previous long"


def on_spark(scale: dict[str, Any], progress: Callable[[str], None]) -> list[Row]:
    spark = SparkSession.getActiveSession() or limen.spark.session()
    n = scale["queries"]
    lo = np.random.default_rng(1).integers(0, SPARK_DOMAIN, n)
    hi = lo + SPARK_HITS * SPARK_DOMAIN // n
    with tempfile.TemporaryDirectory() as name, _rare_polls(spark):
        folder = Path(name)
        catalog = Catalog.open(folder / "catalog", {"x": "int64"}, ids="int64")
        catalog.add(pa.table({"id": np.arange(n), "x_lo": lo, "x_hi": hi}))
        np.savez(folder / "queries.npz", lo=lo, hi=hi)
        progress("Spark: the same answers")
        _check_per_key(spark, folder, catalog, n)
        rows = per_key(spark, folder, catalog, scale, progress)
        for each in scale["crossings"]:
            rows += many_entities(spark, folder / f"{each:g}", catalog, scale, each, progress)
    return rows


@contextmanager
def _rare_polls(spark: SparkSession) -> Iterator[None]:
    """Streams that wait for their turn look for files less often; it is in none of the times."""
    name = "spark.sql.streaming.pollingDelay"
    before = spark.conf.get(name, None)
    spark.conf.set(name, "200ms")
    try:
        yield
    finally:
        if before is None:
            spark.conf.unset(name)
        else:
            spark.conf.set(name, before)


class Readings:
    """One reading of every entity, again and again: walks with some crossings in each step."""

    def __init__(self, entities: int, queries: int, crossings: float) -> None:
        self._rng = np.random.default_rng(7)
        self._step = crossings * SPARK_DOMAIN / (2 * queries)
        self._at = self._rng.uniform(0, SPARK_DOMAIN, entities)
        self._time = 0

    def next(self, entities: I64 | None = None) -> pa.Table:
        who = np.arange(len(self._at)) if entities is None else entities
        steps = self._rng.exponential(self._step, len(who))
        self._at[who] += steps * self._rng.choice([-1, 1], len(who))
        self._time += 1
        columns = [who, np.full(len(who), self._time), self._at[who].astype(np.int64)]
        return pa.table(columns, schema=READING)


class Fold:
    """A running stream over a folder of files, one a batch."""

    def __init__(
        self, spark: SparkSession, folder: Path, operator: Callable[[DataFrame], DataFrame]
    ) -> None:
        self._folder, self._files = folder, itertools.count()
        (folder / "in").mkdir(parents=True)
        source = spark.readStream.schema("who long, at long, x long")
        source = source.option("maxFilesPerTrigger", 1)
        self._query = (
            operator(source.parquet(str(folder / "in")))
            .writeStream.format("noop")
            .option("checkpointLocation", str(folder / "checkpoint"))
            .start()
        )
        self._seen: set[tuple[str, int]] = set()

    def take(self, readings: pa.Table) -> float:
        """The seconds of a batch of these."""
        number = next(self._files)
        pq.write_table(readings, self._folder / "next")
        os.replace(self._folder / "next", self._folder / "in" / f"{number:05}.parquet")
        self._query.processAllAvailable()
        batches = [p for p in self._query.recentProgress if p.numInputRows]
        assert batches[-1].batchId == number and batches[-1].numInputRows == len(readings)
        return batches[-1].durationMs["triggerExecution"] / 1000

    def written(self) -> int:
        """Bytes of the state's files that were not there when last asked."""
        found = set()
        for where, _, names in os.walk(self._folder / "checkpoint" / "state"):
            for name in names:
                if not name.endswith(".crc"):
                    path = os.path.join(where, name)
                    found.add((path, os.path.getsize(path)))
        new, self._seen = found - self._seen, found
        return sum(size for _, size in new)

    def __enter__(self) -> Fold:
        return self

    def __exit__(self, *error: object) -> None:
        self._query.stop()


def crossed(readings: DataFrame, catalog: Catalog) -> DataFrame:
    return limen.spark.crossings(readings, catalog, entity="who", on="x", time="at")


def one_key_at_a_time(path: str) -> Callable[[DataFrame], DataFrame]:
    """As everybody would write it first: the last value is the state of a key.

    The queries are in memory once for each task, their borders sorted; what lies between the two values
    is found by bisection. The class is made here so that Spark sends it along with the stream.
    """

    class PerKey(StatefulProcessor):
        def init(self, handle: Any) -> None:
            self._last = handle.getValueState("last", "x long")
            with np.load(path) as saved:
                self._lo, self._hi = saved["lo"], saved["hi"]
            self._begins, self._ends = np.argsort(self._lo), np.argsort(self._hi)
            self._sorted = self._lo[self._begins], self._hi[self._ends] + 1

        def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Any:  # noqa: N802, N803
            frames = list(rows)
            frame = frames[0] if len(frames) == 1 else pd.concat(frames)
            times, values = frame["at"].to_numpy(), frame["x"].to_numpy()
            order = range(1) if len(values) == 1 else np.argsort(times, kind="stable")
            state = self._last.get()
            last = None if state is None else state[0]
            for i in order:
                now = int(values[i])
                entered, left = self._between(last, now)
                if len(entered) + len(left):
                    yield pd.DataFrame(
                        {
                            "who": key[0],
                            "query_id": np.concatenate([entered, left]),
                            "entered": np.arange(len(entered) + len(left)) < len(entered),
                            "at": times[i],
                            "x": now,
                            "previous": pd.array([last] * (len(entered) + len(left)), "Int64"),
                        }
                    )
                last = now
            self._last.update((last,))

        def _between(self, last: int | None, now: int) -> tuple[Any, Any]:
            if last is None:
                return np.flatnonzero((self._lo <= now) & (now <= self._hi)), np.empty(0, np.int64)
            low, high = min(last, now), max(last, now)
            a, b = np.searchsorted(self._sorted[0], [low, high], "right")
            c, d = np.searchsorted(self._sorted[1], [low, high], "right")
            begun, ended = self._begins[a:b], self._ends[c:d]
            both = np.intersect1d(begun, ended) if len(begun) and len(ended) else begun[:0]
            if len(both):
                begun, ended = np.setdiff1d(begun, both), np.setdiff1d(ended, both)
            return (begun, ended) if now > last else (ended, begun)

        def close(self) -> None:
            pass

    def operator(readings: DataFrame) -> DataFrame:
        return readings.groupBy("who").transformWithStateInPandas(
            statefulProcessor=PerKey(),
            outputStructType=PER_KEY_ROW,
            outputMode="Append",
            timeMode="None",
        )

    return operator


def _check_per_key(spark: SparkSession, folder: Path, catalog: Catalog, n: int) -> None:
    source = Readings(50, n, 1)
    pq.write_table(pa.concat_tables(source.next() for _ in range(3)), folder / "check.parquet")
    readings = spark.read.parquet(str(folder / "check.parquet"))
    names = ["who", "query_id", "entered", "at", "x", "previous"]
    ours = crossed(readings, catalog).withColumn("entered", f.col("crossing") == "enter")
    ours = ours.withColumnRenamed("previous_x", "previous").select(names)
    theirs = one_key_at_a_time(str(folder / "queries.npz"))(readings).select(names)
    _same({"ours": sorted(ours.collect(), key=str), "per key": sorted(theirs.collect(), key=str)})


def per_key(
    spark: SparkSession,
    folder: Path,
    catalog: Catalog,
    scale: dict[str, Any],
    progress: Callable[[str], None],
) -> list[Row]:
    """A batch has one reading of every entity; fewer batches at the largest number, since theirs
    takes minutes for one there."""
    sizes, n = scale["per_key"], scale["queries"]
    theirs = one_key_at_a_time(str(folder / "queries.npz"))
    rows = []
    for size in sizes:
        source = Readings(size, n, 1)
        batches = scale["batches"] if size < max(sizes) else scale["largest_batches"]
        times = []
        with (
            Fold(spark, folder / f"ours {size}", lambda x: crossed(x, catalog)) as our_stream,
            Fold(spark, folder / f"theirs {size}", theirs) as their_stream,
        ):
            for number in range(SETTLED + batches):
                progress(f"Spark, {size:,} keys: batch {number + 1} of {SETTLED + batches}")
                readings = source.next()
                times.append((our_stream.take(readings), their_stream.take(readings)))
        rows.append(
            row(
                f"micro-batches of {size:,} entities, {n:,} queries, 1 crossing a reading",
                "transformWithStateInPandas per key",
                times[SETTLED:],
                work=size / 1e3,
                unit="k readings/s",
                goal=20 if size == max(sizes) else None,
            )
        )
    return rows


def usual_buckets(spark: SparkSession) -> int:
    """What `limen.spark.crossings` takes if it is not told."""
    partitions = int(spark.conf.get("spark.sql.shuffle.partitions"))
    return min(max(LEAST_BUCKETS, 4 * partitions), MOST_BUCKETS)


def passed_on(buckets: int) -> Callable[[DataFrame], DataFrame]:
    """The readings as they are, behind a shuffle by bucket."""

    def identity(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from batches

    def operator(readings: DataFrame) -> DataFrame:
        bucket = f.pmod(f.hash("who"), f.lit(buckets))
        shuffled = readings.withColumn("bucket", bucket).repartition("bucket")
        return shuffled.mapInArrow(identity, shuffled.schema)

    return operator


def many_entities(
    spark: SparkSession,
    folder: Path,
    catalog: Catalog,
    scale: dict[str, Any],
    each: float,
    progress: Callable[[str], None],
) -> list[Row]:
    """Speed against an identity, and what a batch writes into the checkpoint."""
    entities, n = scale["entities"], scale["queries"]
    source = Readings(entities, n, each)
    ours = Fold(spark, folder / "ours", lambda readings: crossed(readings, catalog))
    theirs = Fold(spark, folder / "theirs", passed_on(usual_buckets(spark)))
    rows: list[Row] = []
    with ours:
        times, whole = [], []
        with theirs:
            for number in range(SETTLED + scale["batches"]):
                progress(f"Spark, {entities:,} entities: batch {number + 1}")
                readings = source.next()
                times.append((ours.take(readings), theirs.take(readings)))
                whole.append(ours.written())
        rows.append(
            row(
                f"micro-batches of {entities:,} entities, {n:,} queries, {each:g} crossings a reading",
                "mapInArrow identity behind the same shuffle",
                times[SETTLED:],
                work=entities / 1e6,
                unit="M readings/s",
                goal=0.4,
            )
        )
        if each == scale["crossings"][0]:
            few, some = max(1, entities // 100), []
            rng = np.random.default_rng(9)
            for _ in range(scale["few_batches"]):
                progress(f"Spark, {few:,} of {entities:,} entities")
                ours.take(source.next(np.sort(rng.choice(entities, few, replace=False))))
                some.append(ours.written())
            rows += checkpoint_rows(entities, few, some, whole[SETTLED:])
    return rows


def checkpoint_rows(entities: int, few: int, some: list[int], whole: list[int]) -> list[Row]:
    """Means over the batches: now and then one writes anew what others have written."""
    case = f"checkpoint, {entities:,} entities known"
    small, large = statistics.mean(some), statistics.mean(whole)
    told = {"batches": [some, whole]}
    return [
        plain(case, "a batch of all, against one of 1 %", small / 1e3, large / 1e3, "kB", **told),
        plain(case, "the same, an entity touched", small / few, large / entities, "bytes"),
    ]
