"""kill -9 of streams of crossings, again and again, and of an executor: every reading is taken once, and
what entities enter and leave is what plain loops say, for each batch by the queries it was bound to."""

from __future__ import annotations

import math
import os
import random
import signal
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable

sys.path.append(str(Path(__file__).parent))  # pytest's importlib mode leaves it out
from crash_driver import ATTRIBUTES, POINTS, QUICK, where
from crash_runs import Queries, Run, World
from crossings_crash_driver import STREAMS
from test_executor_loss import executor_of

from limen import Crosser, QuerySet
from limen.testing.oracle import matching, usable

KILLS = int(os.environ.get("LIMEN_KILLS", "10"))  # of a driver with five streams
SHAPE = pa.schema(
    [
        ("who", pa.string()),
        ("id", pa.int64()),
        ("at", pa.int64()),
        ("symbol", pa.string()),
        ("price", pa.float64()),
        ("qty", pa.int64()),
    ]
)
ON = ("price", "qty")
NEEDED = ("symbol", "at", *ON)
MOMENTS = 100  # in a file


class Crossed(World):
    """Readings of entities that move about. Files have times of their own, so their order is theirs."""

    shape, rows = SHAPE, 15

    def events(self, number: int) -> list[dict[str, Any]]:
        rng = random.Random(number)
        moments = sorted(rng.randrange(MOMENTS // 2) for _ in range(self.rows))  # with ties
        readings = [random_reading(rng, number * MOMENTS + at) for at in moments]
        rng.shuffle(readings)
        return readings

    def check(self, *streams: str) -> None:
        models = self.models()
        bound = {version for stream in streams for version in self.bindings(stream).values()}
        self.check_catalog(models, bound)
        for stream in streams:
            self.check_stream(stream, models)

    def check_stream(self, stream: str, models: list[Queries]) -> None:
        bindings, files = self.bindings(stream), self.files_of_batches(stream)
        read = [path.name for paths in files.values() for path in paths]
        assert sorted(read) == sorted(p.name for p in (self.folder / "events").iterdir())
        expected: Counter[str] = Counter()
        bad: dict[int, int] = {}
        options = STREAMS[stream]
        oracle = Uninterrupted(**options) if "dwell" in options else Oracle(**options)
        for batch in sorted(files):
            readings = [row for path in files[batch] for row in pq.read_table(path).to_pylist()]
            crossings, quarantine = oracle.batch(readings, models, bindings[batch])
            expected.update(map(str, crossings))
            if oracle.keep_bad:
                expected.update(map(str, quarantine))
            elif quarantine:
                bad[batch] = len(quarantine)
        assert self.catalog.quarantined(self.stream_id(stream)) == bad
        table = DeltaTable(str(self.folder / stream)).to_pyarrow_table().to_pylist()
        found = Counter(str(oracle.comparable(row)) for row in table)
        lost, more = expected - found, found - expected
        assert not lost and not more, (len(lost), len(more), list(lost)[:3], list(more)[:3])
        assert expected.total() > 20 and (bad or any("null" in row for row in found))
        alternate(table, models, oracle)


class Oracle:
    """Plain loops: who was where last, and what two evaluations of all queries differ in."""

    def __init__(
        self,
        entity: str,
        buckets: int = 0,
        keep_bad: bool = False,
        exit_on_removal: bool = False,
        enter_on_add: bool = False,
    ) -> None:
        del buckets
        assert exit_on_removal == enter_on_add
        self.entity, self.keep_bad, self.told = entity, keep_bad, exit_on_removal
        self.last: dict[Any, dict[str, Any]] = {}
        self.version: int | None = None

    def batch(
        self, readings: list[dict[str, Any]], models: list[Queries], version: int
    ) -> tuple[list[Any], list[Any]]:
        found, bad = [], []
        queries = models[version]
        if self.told and self.version not in (None, version):
            for who, last in self.last.items():
                before, now = (matching(last, models[v]) for v in (self.version, version))
                found += self._rows(who, now - before, before - now, last, last, version)
        self.version = version
        needed = {*NEEDED, self.entity}
        good = [reading for reading in readings if usable(reading, needed)]
        for reading in readings:
            if reading not in good:
                reasons = [self._reason(name, reading[name]) for name in needed]
                bad.append(self._bad(reading, sorted(filter(None, reasons)), version))
        good.sort(key=lambda reading: reading["at"])
        for reading in good:
            who = reading[self.entity]
            last = self.last.get(who)
            if last is not None and reading["at"] < last["at"]:
                bad.append(self._bad(reading, ["at: late"], version))
                continue
            before = set() if last is None else matching(last, queries)
            now = matching(reading, queries)
            found += self._rows(who, now - before, before - now, reading, last, version)
            self.last[who] = reading
        return found, bad

    def _rows(
        self, who: Any, entered: set[Any], left: set[Any], now: Any, last: Any, version: int
    ) -> list[Any]:
        values = {name: now[name] for name in ON}
        previous = {f"previous_{name}": None if last is None else last[name] for name in ON}
        row = {self.entity: who, "at": now["at"], **values, **previous, "version": version}
        return [
            self.comparable({**row, "query_id": query, "crossing": crossing, "reason": None})
            for crossing, queries in (("enter", entered), ("exit", left))
            for query in queries
        ]

    def _bad(self, reading: dict[str, Any], reasons: list[str], version: int) -> Any:
        row = {name: reading[name] for name in (self.entity, "at", *ON)}
        nothing = ("query_id", "crossing", *(f"previous_{name}" for name in ON))
        row |= dict.fromkeys(nothing)
        return self.comparable({**row, "version": version, "reason": "; ".join(reasons)})

    @staticmethod
    def _reason(name: str, value: Any) -> str | None:
        if value is None:
            return f"{name}: null"
        return f"{name}: NaN" if isinstance(value, float) and math.isnan(value) else None

    def comparable(self, row: dict[str, Any]) -> list[tuple[str, Any]]:
        reasons = row.get("reason")
        kept = {**row, "reason": None if reasons is None else sorted(reasons.split("; "))}
        return sorted(kept.items())


class Uninterrupted:
    """Where pairs are held and entities forgotten: what the engine, judged by loops elsewhere, says of
    the same batches in one process. The stream has one bucket, and so one clock, as the engine has.
    """

    keep_bad = told = False

    def __init__(self, entity: str, buckets: int, **options: Any) -> None:
        assert buckets == 1
        self.entity, self.options = entity, {**options, "on": ON, "time": "at", "keys": "symbol"}
        self.crosser: Crosser | None = None
        self.queries: Queries = {}

    def batch(
        self, readings: list[dict[str, Any]], models: list[Queries], version: int
    ) -> tuple[list[Any], list[Any]]:
        now, before = models[version], self.queries
        added = {who: where(body) for who, body in now.items() if before.get(who) != body}
        if self.crosser is None:
            queries = QuerySet.of(added, ATTRIBUTES)
            self.crosser = Crosser.of(SHAPE, queries, entity=self.entity, **self.options)
        else:
            gone = [who for who, body in before.items() if now.get(who) != body]
            assert not len(self.crosser.change(added, gone))
        self.queries = now
        found, bad = self.crosser.cross(pa.Table.from_pylist(readings, SHAPE))
        more = {"version": version, "reason": None}
        return [self.comparable({**row, **more}) for row in found.to_pylist()], bad.to_pylist()

    @staticmethod
    def comparable(row: dict[str, Any]) -> list[tuple[str, Any]]:
        return sorted({**row, "reason": None}.items())


def random_reading(rng: random.Random, at: int) -> dict[str, Any]:
    number = rng.randrange(25)
    late = rng.random() < 0.06 and at >= 3 * MOMENTS
    reading = {
        "who": f"entity {number}",
        "id": number - 12,
        "at": at - 3 * MOMENTS + MOMENTS // 2 if late else at,  # of a time that no file has else
        "symbol": rng.choice("ABCD"),
        "price": rng.randrange(0, 400) / 4,
        "qty": rng.randrange(20),
    }
    for name, bad in (("symbol", None), ("price", None), ("price", math.nan), ("qty", None)):
        if rng.random() < 0.02:
            reading[name] = bad
    for name in ("who", "id", "at"):
        if rng.random() < 0.01:
            reading[name] = None
    return reading


def alternate(
    table: list[dict[str, Any]], models: list[Queries], oracle: Oracle | Uninterrupted
) -> None:
    """Of every entity and query, enter and exit in turn for as long as the query lives.

    Where all that changes is told, a query that comes again goes on; by default it is another.
    """
    of_pair: dict[Any, list[Any]] = {}
    for row in table:
        if row["crossing"] is not None:
            life = 0 if oracle.told else began(models, row["query_id"], row["version"])
            pair = row[oracle.entity], row["query_id"], life
            of_pair.setdefault(pair, []).append(row)
    for pair, crossings in of_pair.items():
        steps: dict[Any, int] = {}  # what happens at one time may be there in any order
        for row in crossings:
            moment = row["version"], row["at"]
            steps[moment] = steps.get(moment, 0) + (1 if row["crossing"] == "enter" else -1)
        at, seen = 0, [0]
        for moment in sorted(steps):
            at += steps[moment]
            seen.append(at)
        assert max(seen) - min(seen) <= 1, (pair, crossings)
        assert not oracle.told or min(seen) == 0, (pair, crossings)


def began(models: list[Queries], query: str, version: int) -> int:
    """Since which version the query is as it is."""
    while version > 0 and models[version - 1].get(query) == models[version][query]:
        version -= 1
    return version


class Start(Run):
    driver = Path(__file__).with_name("crossings_crash_driver.py")


def test_killed_at_random(tmp_path: Path, java_options: str) -> None:
    """Streams of all kinds on a catalog that keeps changing; whatever they are doing then is cut off."""
    world = Crossed(tmp_path / "world")
    rng = random.Random("kills")
    options = (*STREAMS, "--java-options", java_options)
    left = 0
    for number in range(KILLS):
        world.feed(6)
        done = {stream: world.committed(stream) for stream in STREAMS}
        with Start(world, *options, "--seed", number, "--files", 1 + number % 2) as run:
            run.until_started()
            if number % 3 == 0:
                time.sleep(rng.uniform(0, 3))
            elif number % 3 == 1:
                end = time.monotonic() + 20  # they may all be done between two looks
                run.until(lambda end=end: world.open(STREAMS) > 2 or time.monotonic() > end)
            else:
                run.until(lambda done=done: all(world.committed(s) > done[s] for s in STREAMS))
                time.sleep(rng.uniform(0, 1.2))
        left += world.open(STREAMS)
    assert left, "no batch was replayed"
    with Start(world, *options, "--files", 12, "--drain") as run:
        run.finish()
    world.check(*STREAMS)
    print(f"{KILLS * len(STREAMS)} restarts, {left} batches replayed")


def test_killed_at_every_step_of_one_batch(tmp_path: Path, java_options: str) -> None:
    """The batch is tried four times: state that was written and not committed, or committed in the table
    and not in the checkpoint, is not taken for what was."""
    world = Crossed(tmp_path / "world", files=8)
    batch, first = 1, 0
    for number, point in enumerate(POINTS):
        arguments = ("told", "--hold", point, "--batch", batch, "--files", 2)
        with Start(world, *arguments, "--java-options", java_options) as run:
            run.until((world.folder / point).exists)
        assert world.bindings("told").keys() - world.committed("told") == {batch}
        first = first or world.bindings("told")[batch]
        assert world.bindings("told")[batch] == first == 1
        assert world.transaction("told") == (batch if point == "committed" else batch - 1)
        world.change({f"late.{number}": [("price", ">=", 0)]}, (f"first.{number}",))
    with Start(world, "told", "--drain", "--files", 2, "--java-options", java_options) as run:
        run.finish()
    world.check("told")
    assert world.bindings("told") == {0: 1, 1: 1, 2: 4, 3: 4}


def test_an_executor_is_killed(tmp_path: Path) -> None:
    """In the middle of a batch: its buckets go on elsewhere, from what the state store holds."""
    world, batch = Crossed(tmp_path / "world", files=8), 1
    arguments = ("told", "--master", "local-cluster[2,1,1024]", "--drain", "--hold", "bound")
    with Start(world, *arguments, "--batch", batch, "--java-options", QUICK) as run:
        marker = world.folder / "bound"
        run.until(marker.exists, 240)
        assert world.bindings("told").keys() - world.committed("told") == {batch}
        newest = world.change({"late": [("price", ">=", 0)]}, ("first.0",))
        os.kill(executor_of(run, int(marker.read_text())), signal.SIGKILL)
        run.finish()
    world.check("told")
    assert world.bindings("told") == {0: 1, batch: 1, 2: newest, 3: newest}
