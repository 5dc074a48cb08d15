"""`limen.spark.crossings` on static and streaming frames: what the engine says, however it is cut into
batches; queries that come and go; bad readings; settings that a checkpoint keeps. Crashes: see
test_crossings_crash.py."""

from __future__ import annotations

import datetime as dt
import itertools
import os
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from pyspark.sql import functions as f
from pyspark.sql.pandas.types import from_arrow_schema

sys.path.append(str(Path(__file__).parent))  # pytest's importlib mode leaves it out
from crash_driver import QUICK

import limen
from limen import LimenError
from limen.catalog import Catalog
from limen.engine import Crosser
from limen.engine.buckets import buckets_of
from limen.spark.frozen import frozen

TIMESTAMP = pa.timestamp("us", tz="UTC")
SHAPE = pa.schema(
    [("who", pa.string()), ("at", pa.int64()), ("x", pa.float64()), ("tenant", pa.string())]
)
TYPES = {"x": "float64", "tenant": "string"}
BY_TIME = {"entity": "who", "on": "x", "time": "at"}
HOT = {"hot": "x >= 30", "mild": "x BETWEEN 10 AND 25"}
TOLD = {"exit_on_removal": True, "enter_on_add": True}
NAMES = [f"room-{i}" for i in range(40)]  # in most of 16 buckets


def table(*rows: tuple[Any, ...], shape: pa.Schema = SHAPE) -> pa.Table:
    whole = [(*row, "A")[: len(shape)] for row in rows]
    return pa.Table.from_pylist([dict(zip(shape.names, r, strict=True)) for r in whole], shape)


def rows(found: pa.Table, without: tuple[str, ...] = ("version",)) -> Counter[Any]:
    kept = [name for name in found.column_names if name not in without]
    return Counter(zip(*(found[name].to_pylist() for name in kept), strict=True))


def engine(pieces: Iterable[pa.Table], queries: object, **options: Any) -> Counter[Any]:
    """What a crosser makes of the readings."""
    whole = pa.concat_tables(pieces)
    return rows(Crosser.of(whole.schema, queries, **options).cross(whole).crossings)


class Feed:
    """A folder of files of readings, watched as a stream, and what comes of it in a Delta table."""

    def __init__(
        self, spark: Any, folder: Path, queries: Any, *, shape: pa.Schema = SHAPE, **options: Any
    ) -> None:
        self.spark, self.folder, self.queries, self.shape = spark, folder, queries, shape
        (folder / "readings").mkdir(parents=True, exist_ok=True)
        self.files = 1
        self.options = {**BY_TIME, **options}

    def put(self, *tables: pa.Table) -> None:
        for part in tables:
            number = len(list((self.folder / "readings").iterdir()))
            beside = self.folder / f"{number:04}.parquet"
            pq.write_table(part, beside)
            os.utime(beside, (1_700_000_000 + number,) * 2)  # Spark takes them by their times
            beside.rename(self.folder / "readings" / beside.name)

    def say(self, *readings: tuple[Any, ...]) -> None:
        self.put(table(*readings, shape=self.shape))

    @property
    def source(self) -> Any:
        reader = self.spark.readStream.schema(from_arrow_schema(self.shape))
        reader = reader.option("maxFilesPerTrigger", self.files)
        return reader.parquet(str(self.folder / "readings"))

    def frame(self) -> Any:
        return limen.spark.crossings(self.source, self.queries, **self.options)

    def start(self, frame: Any = None, **trigger: Any) -> Any:
        found = self.frame() if frame is None else frame
        folder = self.folder
        return limen.spark.write_delta(found, folder / "out", folder / "checkpoint", **trigger)

    def drain(self, frame: Any = None) -> Any:
        """Take all that is there, from the checkpoint on."""
        stream = self.start(frame, availableNow=True)
        stream.awaitTermination()
        return stream

    @contextmanager
    def running(self) -> Iterator[Any]:
        """A stream that takes what comes; it is waited for where all that is there is to be taken."""
        stream = self.start(processingTime="0 seconds")
        try:
            yield stream
        finally:
            stream.stop()

    def table(self) -> pa.Table:
        return DeltaTable(str(self.folder / "out")).to_pyarrow_table()

    def rows(self, *names: str) -> list[tuple[Any, ...]]:
        found = self.table().select(names or self.table().column_names)
        return sorted(rows(found, ()).elements(), key=str)

    def of_version(self, version: int) -> list[tuple[Any, ...]]:
        """Who has crossed what in batches of a version."""
        names = ("version", "who", "query_id", "crossing")
        return [row[1:] for row in self.rows(*names) if row[0] == version]


@pytest.fixture
def feed(spark, tmp_path):
    return Feed(spark, tmp_path, Catalog.open(tmp_path / "c", TYPES))


# -- the same as the engine --------------------------------------------------------------------------

RECTANGLES = {
    **{f"r{i}": f"x BETWEEN {i} AND {i + 25} AND y < {50 + i}" for i in range(0, 60, 3)},
    **{f"a{i}": f"x > {10 * i} AND tenant = 'A'" for i in range(6)},
    "y": "y >= 40",
}
HOLDS = {"dwell": 6, "hysteresis": {"x": 4}}
FORGETS = {"ttl": 40, "lateness": 0}


def walks(entity: str, n: int = 1200, cuts: int = 6) -> list[pa.Table]:
    """Entities that wander about, some of them from later on and some until earlier; by time, with ties.

    In tables of which each begins with the last readings of the one before.
    """
    rng = np.random.default_rng(5)
    known, first = 60, rng.integers(0, 400, 60)
    places = rng.uniform(0, 90, (known, 2))
    found = []
    for i in range(n):
        now = i // 2
        who = int(rng.choice(np.flatnonzero((first <= now) & (now < first + 400))))
        places[who] = np.clip(places[who] + rng.normal(0, 9, 2), 0, 90)
        name = f"unit {who}" if entity == "text" else (who - 30) * 10**15
        x, y = places[who]
        found.append((name, now, round(x, 1), int(y), "AB"[who % 2]))
    kind = pa.string() if entity == "text" else pa.int64()
    shape = [("who", kind), ("at", pa.int64()), ("x", pa.float64()), ("y", pa.int64())]
    whole = table(*found, shape=pa.schema([*shape, ("tenant", pa.string())]))
    if entity == "text":
        at = pa.array([n * 10**6 for n in whole["at"].to_pylist()], pa.int64()).cast(TIMESTAMP)
        whole = whole.set_column(1, "at", at)
    size = n // cuts
    return [whole.slice(max(i * size - 3, 0), size + 3 * (i > 0)) for i in range(cuts)]


@pytest.mark.parametrize("entity", ["text", "number"])
def test_a_static_frame(spark, entity):
    pieces = walks(entity)
    options = {"entity": "who", "on": ["x", "y"], "time": "at"}
    frame = spark.createDataFrame(pa.concat_tables(pieces)).repartition(3, "tenant")
    found = limen.spark.crossings(frame, RECTANGLES, **options)
    assert found.columns == [
        *("who", "query_id", "crossing", "at", "x", "y", "previous_x", "previous_y", "version")
    ]
    expected = rows(limen.crossings(pa.concat_tables(pieces), RECTANGLES, **options))
    assert rows(found.toArrow()) == expected and expected.total() > 500
    assert {row.version for row in found.collect()} == {1}
    held = {**options, **HOLDS, **FORGETS, "buckets": 5}
    found = limen.spark.crossings(frame, RECTANGLES, **held).toArrow()
    held.pop("buckets")
    assert rows(found) == engine(pieces, RECTANGLES, **held)


def test_a_static_frame_without_times(spark):
    """Readings are taken as they come: by part of the frame, and in order within."""
    numbers = pa.table({"id": [7, 7, -7, 7, -7], "x": [1.0, 40.0, 35.0, 20.0, None]})
    frame = spark.createDataFrame(numbers)
    found = limen.spark.crossings(frame, HOT, entity="id", keep_bad=True).toArrow()
    good = found.filter(pa.compute.is_null(found["reason"])).drop_columns("reason")
    assert rows(good) == rows(limen.crossings(numbers.slice(0, 4), HOT, entity="id"))
    (bad,) = found.filter(pa.compute.is_valid(found["reason"])).to_pylist()
    assert (bad["id"], bad["query_id"], bad["crossing"]) == (-7, None, None)
    assert (bad["x"], bad["previous_x"], bad["reason"]) == (None, None, "x: null")
    assert limen.spark.crossings(frame.limit(0), HOT, entity="id").collect() == []


@pytest.mark.parametrize(
    ("entity", "files", "partitions", "options"),
    [
        ("text", 1, 2, {}),
        ("number", 2, 3, {"buckets": 3}),
        ("number", 10, 1, {"buckets": 40}),
        ("text", 2, 2, {**HOLDS, **FORGETS, "buckets": 4}),
        ("number", 1, 1, {**HOLDS, **FORGETS, "buckets": 1}),
        ("number", 4, 2, HOLDS),
    ],
)
def test_a_stream_however_it_is_cut(spark, tmp_path, entity, files, partitions, options):
    pieces = walks(entity)
    feed = Feed(spark, tmp_path, RECTANGLES, shape=pieces[0].schema, on=["x", "y"], **options)
    feed.files = files
    before = spark.conf.get("spark.sql.shuffle.partitions")
    spark.conf.set("spark.sql.shuffle.partitions", partitions)
    try:
        feed.put(*pieces[:4])  # the first half, and after a restart the other
        feed.drain()
        feed.put(*pieces[4:])
        stream = feed.drain()
    finally:
        spark.conf.set("spark.sql.shuffle.partitions", before)
    assert sum(p.batchId is not None for p in stream.recentProgress if p.numInputRows) == max(
        1, 2 // files
    )
    whole = {**BY_TIME, "on": ["x", "y"], **options}
    whole.pop("buckets", None)
    expected = engine(pieces, RECTANGLES, **whole)
    assert rows(feed.table()) == expected and expected.total() > 200


def test_readings_at_one_time(feed):
    """Within a file and from batch to batch their order is that of arrival; files of one batch come in
    an order of Spark's."""
    feed.queries.add({f"q{i}": f"x = {i}" for i in range(5)})
    feed.say(("a", 7, 0.0), ("a", 7, 1.0), ("b", 7, 1.0), ("a", 7, 2.0))
    feed.say(("a", 7, 3.0))
    feed.drain()
    feed.say(("a", 7, 4.0))
    feed.drain()
    found = feed.rows("who", "x", "previous_x", "query_id", "crossing")
    steps = zip([None, 0, 1, 2, 3], [0, 1, 2, 3, 4], strict=True)
    expected = [("b", 1.0, None, "q1", "enter")]
    for before, now in steps:
        previous = None if before is None else float(before)
        expected.append(("a", float(now), previous, f"q{now}", "enter"))
        if before is not None:
            expected.append(("a", float(now), previous, f"q{before}", "exit"))
    assert found == sorted(expected, key=str)

    feed.files = 3
    for x in (0.0, 1.0, 2.0):
        feed.say(("c", 8, x))
    feed.drain()
    found = [row[1:3] for row in feed.rows("who", "x", "previous_x", "crossing") if row[0] == "c"]
    chains = [
        sorted([(o[0], None), (o[1], o[0]), (o[2], o[1])], key=str)
        for o in itertools.permutations((0.0, 1.0, 2.0))
    ]
    assert sorted(set(found), key=str) in chains


# -- bad readings ------------------------------------------------------------------------------------

NAN = float("nan")


def say_bad_ones(feed: Feed) -> None:
    feed.queries.add(HOT)
    feed.say(("a", 5, 31.0), ("a", 6, None), ("a", 7, NAN), (None, 8, 31.0), ("b", None, 31.0))
    feed.say(("a", 4, 0.0), ("a", 9, 31.0), ("c", 9, 31.0, None), ("d", 1, 32.0))
    feed.drain()
    feed.say(("a", 8, 0.0), ("b", 10, 5.0))


def test_bad_readings_are_counted(feed):
    say_bad_ones(feed)
    stream = feed.drain()
    assert feed.rows("who", "query_id", "crossing") == [
        ("a", "hot", "enter"),
        ("d", "hot", "enter"),
    ]
    assert feed.queries.quarantined(stream) == {0: 4, 1: 2, 2: 1}


def test_bad_readings_are_kept(spark, tmp_path):
    feed = Feed(spark, tmp_path, Catalog.open(tmp_path / "c", TYPES), keep_bad=True)
    say_bad_ones(feed)
    stream = feed.drain()
    found = feed.table().to_pylist()
    bad = [row for row in found if row["reason"] is not None]
    assert sorted(((r["who"], r["at"], str(r["x"]), r["reason"]) for r in bad), key=str) == [
        ("a", 4, "0.0", "at: late"),
        ("a", 6, "None", "x: null"),
        ("a", 7, "nan", "x: NaN"),
        ("a", 8, "0.0", "at: late"),
        ("b", None, "31.0", "at: null"),
        ("c", 9, "31.0", "tenant: null"),
        (None, 8, "31.0", "who: null"),
    ]
    assert {(r["query_id"], r["crossing"], r["previous_x"], r["version"]) for r in bad} == {
        (None, None, None, 1)
    }
    assert sorted(r["who"] for r in found if r["reason"] is None) == ["a", "d"]
    assert feed.queries.quarantined(stream) == {}


def test_readings_behind_the_clock_are_late(spark, tmp_path):
    catalog = Catalog.open(tmp_path / "c", TYPES)
    catalog.add(HOT)
    feed = Feed(spark, tmp_path, catalog, lateness=5, buckets=1)
    feed.say(("a", 100, 31.0))
    feed.say(("b", 94, 31.0), ("c", 95, 31.0))
    stream = feed.drain()
    assert feed.rows("who", "crossing") == [("a", "enter"), ("c", "enter")]
    assert catalog.quarantined(stream) == {1: 1}


@pytest.mark.parametrize("options", [{"ttl": 600}, {"dwell": 600}])
def test_time_is_that_of_all_readings(spark, tmp_path, options):
    """Also where nobody sends: late is late, who is silent is forgotten, who has stayed long is told."""
    feed = Feed(spark, tmp_path, HOT, lateness=60, keep_bad=True, buckets=8, **options)
    names = [
        next(n for n in NAMES if buckets_of(pa.chunked_array([[n]]), 8)[0] == b) for b in range(8)
    ]
    batches = [
        [(name, 0, 31.0) for name in names],
        [(names[0], 1800, 31.0)],
        [(names[1], 1200, 31.0), (names[2], 1900, float("nan"))],
        [(names[0], 1860, 5.0), (names[3], 1801, 31.0)],
        [],
    ]
    crosser = Crosser.of(SHAPE, HOT, **{**BY_TIME, "lateness": 60, **options})
    expected: Counter[Any] = Counter()
    late = []
    for batch in batches:
        if batch:
            feed.say(*batch)
            feed.drain()
            crossed = crosser.cross(table(*batch))
            expected += rows(crossed.crossings)
            late += [r for r in crossed.quarantine["reason"].to_pylist() if "late" in r]
    found = feed.table()
    good = found.filter(pa.compute.is_null(found["reason"])).drop_columns("reason")
    assert rows(good) == expected and expected.total() >= 9
    assert [r for r in found["reason"].to_pylist() if r and "late" in r] == late == ["at: late"]


# -- queries that come and go ------------------------------------------------------------------------


def everybody(at: int, x: float) -> list[tuple[str, int, float]]:
    return [(name, at, x) for name in NAMES]


def test_queries_come_and_go_in_silence(feed):
    """With Q of the batch's version for both values: who is in a new query leaves it without an enter."""
    with feed.running() as stream:
        feed.say(*everybody(1, 31.0))
        stream.processAllAvailable()  # no query at all
        assert feed.rows() == []
        feed.queries.add(HOT)
        feed.say(("room-0", 2, 32.0), ("room-1", 2, 20.0), ("new", 2, 31.0))
        stream.processAllAvailable()
        feed.queries.change({"cold": "x < 10"}, ["hot"])  # while they are inside
        feed.say(*((name, 3, 5.0) for name in NAMES[:3]), ("new", 3, 20.0))
        stream.processAllAvailable()
        feed.queries.add({"hot": "x >= 30"})
        feed.say(*everybody(4, 20.0))
        stream.processAllAvailable()
    assert feed.queries.bindings(stream) == {0: 0, 1: 1, 2: 2, 3: 3}
    assert feed.of_version(1) == [
        ("new", "hot", "enter"),
        ("room-1", "hot", "exit"),
        ("room-1", "mild", "enter"),
    ]
    assert feed.of_version(2) == [
        ("new", "mild", "enter"),
        ("room-0", "cold", "enter"),
        ("room-1", "cold", "enter"),
        ("room-1", "mild", "exit"),
        ("room-2", "cold", "enter"),
    ]
    assert len(feed.of_version(3)) == 3 + 37 + 40  # out of cold, out of hot, into mild


def follow(feed: Feed, steps: list[tuple[list[Any], Any, Any]], **options: Any) -> None:
    """Readings, and queries added and removed before them; a step is a batch, and as the engine says."""
    nothing = limen.QuerySet.of(HOT, SHAPE).take([])
    reference = Crosser.of(SHAPE, nothing, **BY_TIME, **options)
    expected: Counter[Any] = Counter()
    with feed.running() as stream:
        for readings, add, remove in steps:
            if add or remove:
                feed.queries.change(add, remove)
                expected += rows(reference.change(add, remove))
            expected += rows(reference.cross(table(*readings)).crossings)
            feed.say(*readings)
            stream.processAllAvailable()
            assert rows(feed.table()) == expected


def test_everybody_is_told_of_queries_that_come_and_go(spark, tmp_path):
    """Also those in buckets without a reading in the batch, and in a batch without any reading."""
    catalog = Catalog.open(tmp_path / "c", TYPES)
    feed = Feed(spark, tmp_path, catalog, **TOLD)
    steps: list[tuple[list[Any], Any, Any]] = [
        (everybody(1, 31.0), {}, ()),
        ([("room-3", 2, 20.0)], HOT, ()),
        ([], {}, ["mild"]),
        ([("room-5", 4, 0.0)], {"hot": "x >= 31", "mild": "x < 1"}, ["hot"]),
        ([("room-5", 5, 0.5)], {"hot": "x >= 32"}, ["hot"]),
        ([("room-5", 6, 0.5), ("other", 6, 40.0)], {}, ()),
    ]
    follow(feed, steps, **TOLD)
    assert feed.of_version(1).count(("room-3", "hot", "enter")) == 1  # and out of it again
    assert len(feed.of_version(1)) == 40 + 2
    assert feed.of_version(2) == [("room-3", "mild", "exit")]
    assert feed.of_version(3) == [("room-5", "hot", "exit"), ("room-5", "mild", "enter")]
    assert len(feed.of_version(4)) == 38 + 1


def test_a_query_that_expires_is_left(spark, tmp_path):
    for span in (4, 20, 60):  # on a busy machine it may be over before its first batch
        folder = tmp_path / str(span)
        catalog = Catalog.open(folder / "c", TYPES)
        feed = Feed(spark, folder, catalog, exit_on_removal=True, hysteresis=1)
        catalog.add({"long": "x > 30"})
        feed.say(("d", 0, 0.0))
        with feed.running() as stream:
            stream.processAllAvailable()  # so it is no start that the time is spent on
            catalog.add({"short": "x > 30"}, ttl=dt.timedelta(seconds=span))
            ends = time.monotonic() + span
            feed.say(("a", 1, 31.0), ("b", 1, 31.0))
            stream.processAllAvailable()
            feed.say(("a", 2, 29.5))  # within the margin
            stream.processAllAvailable()
            if time.monotonic() > ends:
                continue
            time.sleep(max(0, ends - time.monotonic()) + 0.2)
            feed.say(("c", 3, 31.0))
            stream.processAllAvailable()
        break
    assert catalog.history(1)[0].kind == "expiry"
    assert feed.of_version(3) == [
        ("a", "short", "exit"),
        ("b", "short", "exit"),
        ("c", "long", "enter"),
    ]


def test_what_is_held_ends_with_its_query(spark, tmp_path):
    """Pending enters and those that linger, of queries removed and replaced while others go on."""
    options = {"dwell": 10, "hysteresis": 2}
    feed = Feed(spark, tmp_path, Catalog.open(tmp_path / "c", TYPES), **options)
    more = {"warm": "x >= 28"}
    steps: list[tuple[list[Any], Any, Any]] = [
        ([("a", 1, 31.0), ("b", 1, 20.0)], {**HOT, **more}, ()),
        ([("a", 8, 29.0), ("b", 8, 26.0)], {}, ["warm"]),
        ([("a", 12, 29.0), ("b", 13, 26.0)], more, ()),
        ([("a", 14, 20.0), ("b", 14, 40.0)], {"hot": "x >= 39"}, ["hot"]),
        ([("a", 30, 20.0), ("b", 30, 38.0)], {}, ["mild"]),
    ]
    follow(feed, steps, **options)
    assert len(feed.rows()) >= 4


def test_a_fixed_set_of_queries(spark, tmp_path):
    feed = Feed(spark, tmp_path, limen.QuerySet.of(HOT, SHAPE))
    for at, x in enumerate((31.0, 20.0)):
        feed.say(*everybody(at, x))
        feed.drain()
    assert len(feed.rows()) == 40 + 80
    assert {row[0] for row in feed.rows("version")} == {1}


def test_two_operators_in_one_stream(feed):
    feed.queries.add(HOT)
    feed.say(("a", 1, 31.0), ("b", 1, None), ("c", 1, NAN))
    feed.say(("a", 2, 20.0))
    source = feed.source
    one = limen.spark.crossings(source, feed.queries, **BY_TIME, name="one", buckets=1)
    other = limen.spark.crossings(source, feed.queries, **BY_TIME, name="other", buckets=1)
    stream = feed.drain(one.unionByName(other))
    assert Counter(feed.rows("who", "query_id", "crossing")) == Counter(
        {("a", "hot", "enter"): 2, ("a", "hot", "exit"): 2, ("a", "mild", "enter"): 2}
    )
    assert feed.queries.quarantined(stream) == {0: 4}


# -- the checkpoint ----------------------------------------------------------------------------------

ELSEWHERE = """
import limen
options = {{"spark.driver.extraJavaOptions": {quick!r}}}
spark = limen.spark.session(cores=2, memory="1g", config=options)
readings = spark.readStream.schema("who string, at long, x double, tenant string")
found = limen.spark.crossings(
    readings.parquet({folder!r} + "/readings"), {folder!r} + "/c", entity="who", on="x", time="at"
)
stream = limen.spark.write_delta(
    found, {folder!r} + "/out", {folder!r} + "/checkpoint", availableNow=True
)
stream.awaitTermination()
spark.stop()
"""


def test_the_state_is_in_the_checkpoint(spark, feed):
    """Another process, with no copy of anything, goes on where this one stood; and then this one again,
    whose copies are of the past."""
    feed.queries.add(HOT)
    feed.say(*everybody(1, 31.0))
    feed.say(*everybody(2, 20.0)[:10])
    feed.drain()
    checkpoint = str(feed.folder / "checkpoint")
    kept = spark.read.format("statestore").option("stateVarName", "entries").load(checkpoint)
    assert kept.count() >= 10
    last = limen.spark.entities(spark, checkpoint).toArrow()
    assert sorted(last["x"].to_pylist()) == [20.0] * 10 + [31.0] * 30
    feed.say(*everybody(3, 22.0))
    script = ELSEWHERE.format(folder=str(feed.folder), quick=QUICK)
    subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, timeout=300)
    feed.say(*everybody(4, 5.0))
    feed.drain()
    expected = engine(
        [
            table(*everybody(1, 31.0)),
            table(*everybody(2, 20.0)[:10]),
            table(*everybody(3, 22.0)),
            table(*everybody(4, 5.0)),
        ],
        HOT,
        **BY_TIME,
    )
    assert rows(feed.table()) == expected
    assert len(list(feed.folder.glob("checkpoint/commits/[0-9]*"))) == 4


def test_with_a_fixed_set_bad_readings_are_counted_in_the_log(feed):
    feed.say(("a", 5, 31.0), ("a", 6, NAN), ("a", 7, NAN))
    script = ELSEWHERE.format(folder=str(feed.folder), quick=QUICK)
    script = script.replace(repr(str(feed.folder)) + ' + "/c"', repr(HOT))
    done = subprocess.run(
        [sys.executable, "-c", script], check=True, capture_output=True, text=True, timeout=300
    )
    told = [
        line for line in done.stderr.splitlines() if "readings were not taken; keep_bad" in line
    ]
    assert [line.split()[1] for line in told] == ["2"]
    assert feed.rows("who", "query_id", "crossing") == [("a", "hot", "enter")]


def test_another_ttl_from_the_next_start_on(spark, tmp_path):
    """It is no property of the checkpoint; workers with a copy do as told too."""
    catalog = Catalog.open(tmp_path / "c", TYPES)
    catalog.add(HOT)
    feed = Feed(spark, tmp_path, catalog, ttl=100, lateness=50)
    feed.say(*everybody(1, 31.0))
    feed.drain()
    feed = Feed(spark, tmp_path, catalog, ttl=5, lateness=50)
    feed.say(*everybody(20, 31.0))
    feed.drain()
    told = [("hot", "enter", 1), ("hot", "exit", 6), ("hot", "enter", 20)]
    found = Counter(feed.rows("query_id", "crossing", "at"))
    assert found == Counter({row: 40 for row in told})


def test_other_settings_than_the_checkpoints_are_refused(feed):
    feed.queries.declare({"y": "int64"})
    feed.queries.add(HOT)
    feed.shape = pa.schema([*SHAPE, ("y", pa.int64())])
    feed.put(table(("a", 1, 31.0, "A", 1), shape=feed.shape))
    feed.options["on"] = ["x"]

    def frame(source: Any = None, **options: Any) -> Any:
        readings = feed.source if source is None else source
        found = limen.spark.crossings(readings, feed.queries, **{**feed.options, **options})
        return found.selectExpr("CAST(who AS string) AS who", "query_id", "crossing")

    feed.drain(frame())
    feed.put(table(("a", 2, 20.0, "A", 1), shape=feed.shape))
    source = feed.source
    others = [
        (frame(buckets=17), r"buckets = 16, and is now asked for with buckets = 17"),
        (frame(on=["x", "y"]), r"dimensions = 1, on = .*dimensions = 2, on = .*int64"),
        (frame(source.withColumn("who", f.col("y"))), r"entity = .*string.*entity = .*int64"),
        (frame(source.withColumn("at", f.timestamp_seconds("at"))), r"int64.*timestamp"),
        (frame(time=None), r"time = .*at.*int64.*time = .*null"),
        (frame(dwell=5), r"dwell = none, .*dwell = 5"),
        (frame(hysteresis=2), r"hysteresis = \{\}.*hysteresis = \{.*x.*2"),
        (
            frame(exit_on_removal=True),
            r"catalog = .any. \(without .*catalog = .* \(with one of dwell, .*exit_on_removal",
        ),
    ]
    for other, message in others:
        with pytest.raises(Exception, match=f"(?s)state was made with.*{message}"):
            feed.drain(other)
    feed.drain(frame(buckets=16))
    assert feed.rows("who", "query_id", "crossing") == [
        ("a", "hot", "enter"),
        ("a", "hot", "exit"),
        ("a", "mild", "enter"),
    ]


@pytest.mark.parametrize("buckets", [64, None])
def test_a_fixed_set_is_guarded_too(spark, tmp_path, buckets):
    """The settings are the checkpoint's, whichever queries it goes on with, and whoever is read: that in
    no bucket of theirs there is a state makes no difference. What was refused can be mended."""
    feed = Feed(spark, tmp_path, HOT, buckets=3)
    feed.say(("a", 1, 31.0))
    feed.drain()
    feed = Feed(spark, tmp_path, {**HOT, "more": "x > 0"}, buckets=buckets)
    feed.say(("a", 2, 20.0))
    told = rf"(?s)state was made with buckets = 3, and .* buckets = {buckets or 16}"
    for _ in range(2):
        with pytest.raises(Exception, match=told):
            feed.drain()
    feed.options["entity"] = "tenant"
    feed.options["buckets"] = 3
    with pytest.raises(Exception, match=r'(?s)entity = \["who", .* entity = \["tenant", '):
        feed.drain(feed.frame().withColumnRenamed("tenant", "who"))
    feed.options["entity"] = "who"
    feed.drain()
    del feed.options["buckets"]
    feed.say(("a", 3, 31.0))
    feed.drain()
    hot = [("a", 1, "enter"), ("a", 2, "exit"), ("a", 3, "enter")]
    found = feed.rows("who", "at", "crossing", "query_id")
    assert [row[:3] for row in found if row[3] == "hot"] == hot


@pytest.mark.parametrize("kind", ["fixed set", "catalog"])
def test_keys_that_the_state_does_not_have(spark, tmp_path, kind):
    """The last readings' tenants are not known: with which queries would they have been?"""
    sets = [HOT, {**HOT, "A": "x > 2 AND tenant = 'A'"}]
    if kind == "catalog":
        catalogs = [
            Catalog.open(tmp_path / name, types)
            for name, types in (("one", {"x": "float64"}), ("other", TYPES))
        ]
        for catalog, queries in zip(catalogs, sets, strict=True):
            catalog.add(queries)
        sets = catalogs
    feed = Feed(spark, tmp_path, sets[0], buckets=2)
    feed.say(("a", 1, 31.0))
    feed.drain()
    feed.say(("a", 2, 32.0))
    feed.queries = sets[1]
    with pytest.raises(Exception, match=r'(?s)made with keys = \[\], .* keys = \[\["tenant", "str'):
        feed.drain()
    feed.queries = sets[0]
    feed.say(("a", 3, 20.0))
    feed.drain()
    assert feed.rows("at", "query_id", "crossing") == [
        (1, "hot", "enter"),
        (3, "hot", "exit"),
        (3, "mild", "enter"),
    ]


def test_what_is_held_belongs_to_its_queries(spark, tmp_path):
    """Workers that have a copy refuse others too. The same go on: in another order, and anew on disk."""
    feed = Feed(spark, tmp_path, HOT, hysteresis=2, buckets=1)
    feed.say(("a", 1, 31.0), ("a", 2, 29.0))
    feed.drain()
    feed.say(("a", 3, 29.5))
    feed.queries = {**HOT, "hot": "x >= 100"}
    with pytest.raises(Exception, match=r"(?s)state was made with catalog = .* with catalog = "):
        feed.drain()
    shutil.rmtree(frozen(limen.QuerySet.of(HOT, SHAPE)).path)
    feed.queries = dict(reversed(HOT.items()))
    feed.drain()
    checkpoint = str(tmp_path / "checkpoint")
    inside = limen.spark.inside(spark, checkpoint, HOT, "hot").collect()
    assert [(row.who, row.at, row.x) for row in inside] == [("a", 3, 29.5)]
    with pytest.raises(limen.QueryError, match=r"'z'.*field 'y': is not among what .* \(x\)"):
        limen.spark.inside(
            spark, checkpoint, limen.QuerySet.of({"z": "y > 1"}, {"y": "int64"}), "z"
        )
    with pytest.raises(limen.QueryError, match="no query has the id 'cold'"):
        limen.spark.inside(spark, checkpoint, HOT, "cold")
    feed.say(("a", 4, 20.0))
    feed.drain()
    expected = [("a", "hot", "enter"), ("a", "hot", "exit"), ("a", "mild", "enter")]
    assert feed.rows("who", "query_id", "crossing") == expected


def test_what_is_held_belongs_to_its_catalog(spark, tmp_path):
    catalogs = [Catalog.open(tmp_path / name, TYPES) for name in "ab"]
    for catalog, least in zip(catalogs, (30, 100), strict=True):
        catalog.add({"hot": f"x >= {least}"})
    feed = Feed(spark, tmp_path, catalogs[0], hysteresis=2, buckets=1)
    feed.say(("a", 1, 31.0))
    feed.drain()
    feed.queries = catalogs[1]
    feed.say(("a", 2, 29.5))
    with pytest.raises(Exception, match=r"(?s)state was made with catalog = .* with catalog = "):
        feed.drain()


def test_announcing_is_left_off_for_good(spark, tmp_path):
    """What queries did meanwhile was told to some entities and not to others."""
    feed = Feed(spark, tmp_path, Catalog.open(tmp_path / "c", TYPES), **TOLD)
    feed.queries.add(HOT)
    feed.say(*everybody(1, 31.0))
    feed.drain()
    feed.options = BY_TIME
    feed.queries.change({"more": "x > 30"}, ["hot"])
    feed.say(("room-1", 2, 31.0))
    feed.drain()
    assert feed.of_version(2) == []
    feed.options = {**BY_TIME, **TOLD}
    feed.say(*everybody(3, 31.0))
    with pytest.raises(Exception, match=r"(?s)state was made with catalog = .any.*with catalog = "):
        feed.drain()


def test_a_catalog_made_anew_in_its_place_is_another(spark, tmp_path):
    """To workers that have followed the first one, whose versions had the same numbers."""
    for name in "ab":
        folder = tmp_path / "again"
        shutil.rmtree(folder, ignore_errors=True)
        feed = Feed(spark, folder, Catalog.open(folder / "c", TYPES), buckets=1, **TOLD)
        feed.queries.add({f"{name}1": "x > 5"})
        feed.say(("a", 1, 9.0))
        feed.drain()
        feed.queries.change({f"{name}2": "x > 4"}, [f"{name}1"])
        feed.say(("a", 2, 9.0))
        feed.drain()
        assert feed.of_version(2) == [("a", f"{name}1", "exit"), ("a", f"{name}2", "enter")]


def test_what_is_watched_if_it_is_not_said(spark, tmp_path):
    """What queries ask a range of; of a catalog also what none asks of yet, but no key."""
    frame = spark.createDataFrame([("a", 3, 7, 2.5)], "who string, tenant int, x int, y double")
    queries = {"one": "x > 5 AND tenant = 3", "other": "x < 2"}
    catalog = Catalog.open(tmp_path / "c", {"y": "float64", "tenant": "int64", "x": "int64"})
    catalog.add(queries)
    for found, columns in ((queries, ["x"]), (catalog, ["x", "y"])):
        crossed = limen.spark.crossings(frame, found, entity="who")
        before = [f"previous_{name}" for name in columns]
        assert crossed.columns == ["who", "query_id", "crossing", *columns, *before, "version"]
        assert [row.query_id for row in crossed.collect()] == ["one"]
    assert list(limen.crossings(frame.toArrow(), queries, entity="who").column_names) == [
        *("who", "query_id", "crossing", "x", "previous_x")
    ]


def test_odd_names_of_columns(spark):
    names = ["the `who`", "a.b", "at time", "x y"]
    frame = spark.createDataFrame([("a", 1, 1, 7.0)], "w string, k int, t long, v double").toDF(
        *names
    )
    queries = [limen.Query("q", {"x y": limen.Range(5, None), "a.b": 1})]
    found = limen.spark.crossings(
        frame, queries, entity=names[0], on="x y", time="at time"
    ).collect()
    assert [(row["the `who`"], row.query_id, row["at time"], row["x y"]) for row in found] == [
        ("a", "q", 1, 7.0)
    ]


# -- refused at the start ----------------------------------------------------------------------------


def test_a_session_without_rocksdb_is_refused(spark, tmp_path):
    plain = spark.newSession()
    plain.conf.set(
        "spark.sql.streaming.stateStore.providerClass",
        "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider",
    )
    feed = Feed(plain, tmp_path, HOT)
    with pytest.raises(LimenError, match="keeps its state in RocksDB: make the session by limen"):
        feed.frame()
    frame = plain.createDataFrame([("a", 31.0)], "who string, x double")
    found = limen.spark.crossings(frame, HOT, entity="who").collect()
    assert [(row.who, row.query_id, row.crossing) for row in found] == [("a", "hot", "enter")]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"entity": "whose"}, "entity: the readings have no column 'whose'"),
        ({"on": ["z"]}, "on: the readings have no column 'z'"),
        ({"on": []}, r"on=\[...\] is empty"),
        ({"on": ["tenant"]}, "'tenant' is string, which has no borders"),
        ({"entity": "x", "on": "x"}, "'x' is the entity and cannot be watched too"),
        ({"time": "tenant"}, "'tenant' is string; a timestamp, date"),
        ({"ttl": 5}, "ttl needs lateness="),
        ({"time": None, "dwell": 5}, "dwell needs time="),
        ({"dwell": -1}, "dwell: -1 is negative"),
        ({"hysteresis": {"y": 1}}, "hysteresis: 'y' is not watched"),
        ({"name": None}, "name=None: the name of the operator is needed"),
        ({"buckets": 0}, "buckets=0 is not a number from 1 to"),
        ({"buckets": True}, "buckets=True is not a number"),
        ({"buckets": 2.5}, "buckets=2.5 is not a number"),
        ({"buckets": "8"}, "buckets='8' is not a number"),
        ({"buckets": 1 << 21}, "buckets=2097152 is not a number"),
    ],
)
def test_wrong_options_are_refused_before_anything_starts(spark, tmp_path, options, message):
    feed = Feed(spark, tmp_path, {**HOT, "mine": "x > 1 AND tenant = 'A'"}, **options)
    with pytest.raises(LimenError, match=message):
        feed.frame()


@pytest.mark.parametrize("what", [table(("a", 1, 31.0)), None])
def test_what_is_no_frame_of_sparks_is_refused(what):
    told = f"a frame of Spark's is needed, not a {type(what).__name__}; .* for tables"
    with pytest.raises(LimenError, match=told):
        limen.spark.crossings(what, HOT, **BY_TIME)
    with pytest.raises(LimenError, match=told):
        limen.spark.match(what, HOT)


def test_queries_that_cannot_be_watched_are_refused(spark, tmp_path):
    frame = spark.createDataFrame([("a", 31.0)], "who string, x double")
    with pytest.raises(limen.QueryError, match="unknown attribute 'y'"):
        limen.spark.crossings(frame, {"q": "y > 4"}, entity="who")
    catalog = Catalog.open(tmp_path / "c", {"x": "float64", "y": "int64"})
    catalog.add({"fine": "x > 30"})
    assert limen.spark.crossings(frame, catalog, entity="who", on="x").count() == 1
    catalog.add({"other": "x > 30 AND y = 4"})
    with pytest.raises(limen.QueryError, match=r"'other'.*'y'.*cannot be watched: crossings are"):
        limen.spark.crossings(frame, catalog, entity="who", on="x")
    reserved = frame.withColumnRenamed("who", "version")
    with pytest.raises(LimenError, match="'version' has the name of one of the result's"):
        limen.spark.crossings(reserved, HOT, entity="version")


# -- catalogs that change under a stream -------------------------------------------------------------


def test_a_query_that_cannot_be_watched_is_left_out(feed):
    """It comes while the stream runs: the batch that it is bound to must not fail for ever."""
    feed.queries.declare({"speed": "int64"})
    feed.queries.add(HOT)
    feed.say(*everybody(1, 31.0))
    found = feed.frame()
    feed.drain(found)
    feed.queries.add({"fast": "x > 1 AND speed > 5"})
    feed.say(*everybody(2, 10.0))
    feed.drain(found)
    assert {row[0] for row in feed.rows("query_id")} == {"hot", "mild"}
    feed.queries.remove(["fast"])
    feed.say(*everybody(3, 31.0))
    feed.drain()
    assert len(feed.rows("query_id")) == 5 * len(everybody(1, 0.0))  # hot, hot, mild, mild, hot


def test_a_vacuumed_catalog_and_a_stream_that_holds(feed):
    feed.options["hysteresis"] = 5
    feed.queries.add(HOT)
    feed.say(*everybody(1, 31.0), *everybody(2, 27.0))
    feed.drain()
    for number in range(2):
        feed.queries.add({f"q{number}": "x > 1000"})
    feed.queries.compact()
    feed.queries.vacuum()
    feed.say(*everybody(3, 28.0), *everybody(4, 10.0))
    feed.drain()
    crossings = Counter(feed.rows("query_id", "crossing"))
    n = len(everybody(1, 0.0))
    assert crossings["hot", "enter"] == crossings["hot", "exit"] == n
