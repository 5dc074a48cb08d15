"""The tests' side of `crash_driver.py`: a world of events and queries, drivers that are started and
killed with all their processes, and the judge of what they have left behind.
"""

from __future__ import annotations

import itertools
import json
import math
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from crash_driver import ATTRIBUTES, LIVE, STARTED, change, random_body, where
from deltalake import DeltaTable

from limen.catalog import Catalog
from limen.model import QuerySet, describe
from limen.testing.oracle import Condition, matching

DRIVER = Path(__file__).with_name("crash_driver.py")
GAVE_UP = "Python worker failed to connect back"  # in ten seconds, which cannot be set
SHAPE = pa.schema(
    [("event", pa.int64()), ("symbol", pa.string()), ("price", pa.float64()), ("qty", pa.int64())]
)
Queries = dict[str, list[Condition]]


class World:
    """A catalog, files of events, and what streams make of them; all in one folder."""

    shape, rows = SHAPE, 6  # of a file

    def __init__(self, folder: Path, files: int = 0) -> None:
        self.folder = folder
        self._numbers = itertools.count()
        for name in ("events", "tmp"):
            (folder / name).mkdir(parents=True)
        self.feed(files)
        self.catalog = Catalog.open(folder / "catalog", ATTRIBUTES)
        rng = random.Random(1)
        self.change({f"first.{i}": random_body(rng) for i in range(LIVE)})

    def feed(self, files: int) -> None:
        """Some files more, for streams to find."""
        for _ in range(files):
            number = next(self._numbers)
            table = pa.Table.from_pylist(self.events(number), self.shape)
            made = self.folder / "tmp" / f"{number:04}.parquet"
            pq.write_table(table, made)
            os.utime(made, (1_700_000_000 + number,) * 2)  # Spark takes them by their times
            made.rename(self.folder / "events" / made.name)

    def events(self, number: int) -> list[dict[str, Any]]:
        """Of a file."""
        rng = random.Random(number)
        return [random_event(rng, number * self.rows + row) for row in range(self.rows)]

    def change(self, add: Queries, remove: tuple[str, ...] = ()) -> int:
        return change(self.catalog, self.folder, add, remove)

    # -- what the streams have left --------------------------------------------------------------

    def checkpoint(self, emit: str) -> Path:
        return self.folder / f"{emit}.ckpt"

    def stream_id(self, emit: str) -> str:
        return str(json.loads((self.checkpoint(emit) / "metadata").read_text())["id"])

    def bindings(self, emit: str) -> dict[int, int]:
        with suppress(FileNotFoundError):
            return self.catalog.bindings(self.stream_id(emit))
        return {}

    def committed(self, emit: str) -> set[int]:
        """The batches that Spark knows to be done."""
        folder = self.checkpoint(emit) / "commits"
        return {int(p.name) for p in folder.glob("[0-9]*")}

    def open(self, streams: Iterable[str]) -> int:
        """How many of the streams have a batch that is bound and not done."""
        return sum(bool(self.bindings(s).keys() - self.committed(s)) for s in streams)

    def transaction(self, emit: str) -> int | None:
        """The last batch that is in the table."""
        return DeltaTable(str(self.folder / emit)).transaction_version(self.stream_id(emit))

    def files_of_batches(self, emit: str) -> dict[int, list[Path]]:
        """By the offsets of the batches, which are numbers of entries in the source's own log."""
        checkpoint, entries = self.checkpoint(emit), {}
        for log in (checkpoint / "sources" / "0").glob("[0-9]*"):
            for line in log.read_text().splitlines()[1:]:
                entry = json.loads(line)
                entries[entry["path"]] = entry["batchId"]
        found, before = {}, -1
        offsets = {int(p.name): p for p in (checkpoint / "offsets").glob("[0-9]*")}
        for batch in sorted(offsets):
            until = json.loads(offsets[batch].read_text().splitlines()[2])["logOffset"]
            paths = [path for path, at in entries.items() if before < at <= until]
            found[batch] = [self.folder / "events" / path.rpartition("/")[2] for path in paths]
            before = until
        return found

    def models(self) -> list[Queries]:
        """The queries of each version, by the notes of those who changed them.

        A change without a receipt may be in or not: its driver was killed in between.
        """
        facts = [json.loads(line) for line in (self.folder / "notes").read_text().splitlines()]
        changes = {fact["name"]: fact for fact in facts if "add" in fact}
        receipts = {fact["version"]: fact["name"] for fact in facts if "version" in fact}
        kinds = {event.version: event.kind for event in self.catalog.history()}
        models: list[Queries] = [{}]
        for version in range(1, self.catalog.version + 1):
            if kinds[version] == "compaction":
                assert version not in receipts
                models.append(models[-1])
                continue
            added = self.catalog.changes(version - 1, version).added.ids.to_pylist()
            (name,) = changes.keys() & set(added)
            assert receipts.pop(version, name) == name
            change = changes.pop(name)
            kept = {who: body for who, body in models[-1].items() if who not in change["remove"]}
            new = {who: [tuple(c) for c in body] for who, body in change["add"].items()}
            models.append({**kept, **new})
        assert not receipts, "a change is gone although there is a receipt"
        return models

    # -- the judge -------------------------------------------------------------------------------

    def check_catalog(self, models: list[Queries], versions: set[int]) -> None:
        for version in versions | {self.catalog.version}:
            entries = {entry.id: entry.where for entry in self.catalog.list(version=version)}
            wheres = {who: where(body) for who, body in models[version].items()}
            expected = QuerySet.of(wheres, ATTRIBUTES)
            ids = expected.ids.to_pylist()
            texts = {who: sorted(describe(expected, i).split(" AND ")) for i, who in enumerate(ids)}
            assert {who: sorted(text.split(" AND ")) for who, text in entries.items()} == texts

    def check(self, emit: str) -> None:
        """The table holds what it should: for every batch, its events by the version it is bound to."""
        bindings, files = self.bindings(emit), self.files_of_batches(emit)
        assert list(bindings) == sorted(files) == sorted(self.committed(emit))
        assert list(bindings.values()) == sorted(bindings.values()), "a version went back"
        read = [path.name for paths in files.values() for path in paths]
        assert sorted(read) == sorted(p.name for p in (self.folder / "events").iterdir())
        models = self.models()
        self.check_catalog(models, set(bindings.values()))
        expected: Counter[str] = Counter()
        for batch, paths in files.items():
            version = bindings[batch]
            for path in paths:
                for event in pq.read_table(path).to_pylist():
                    expected.update(map(str, answers(event, models[version], version, emit)))
        rows = DeltaTable(str(self.folder / emit)).to_pyarrow_table().to_pylist()
        found = Counter(str(settled(row)) for row in rows)
        lost, more = expected - found, found - expected
        assert not lost and not more, (len(lost), len(more), list(lost)[:3], list(more)[:3])
        assert expected.total() > 0 and any("null" in row for row in found)


def random_event(rng: random.Random, number: int) -> dict[str, Any]:
    event = {
        "event": number,
        "symbol": rng.choice("ABCD"),
        "price": rng.randrange(0, 400) / 4,
        "qty": rng.randrange(20),
    }
    for name, bad in (("symbol", None), ("price", None), ("price", math.nan), ("qty", None)):
        if rng.random() < 0.06:
            event[name] = bad
    return event


def answers(event: dict[str, Any], queries: Queries, version: int, emit: str) -> Iterator[Any]:
    """The rows that an event should give, by the oracle."""
    needed = {name for body in queries.values() for name, _, _ in body}
    reasons = set()
    for name in needed:
        if event[name] is None:
            reasons.add(f"{name}: null")
        elif isinstance(event[name], float) and math.isnan(event[name]):
            reasons.add(f"{name}: NaN")
    result = "query_id" if emit == "rows" else "query_ids"
    row = {**event, "version": version, "reason": None}
    if reasons:
        yield settled({**row, result: None, "reason": "; ".join(reasons)})
    elif emit == "ids":
        yield settled({**row, result: list(matching(event, queries))})
    else:
        for who in matching(event, queries):
            yield settled({**row, result: who})


def settled(row: dict[str, Any]) -> list[tuple[str, Any]]:
    """In a form that compares: lists and reasons in order."""
    kept = dict(row)
    if kept.get("query_ids") is not None:
        kept["query_ids"] = sorted(kept["query_ids"])
    if kept["reason"] is not None:
        kept["reason"] = sorted(kept["reason"].split("; "))
    return sorted(kept.items())


class Run:
    """A driver and all that it starts: one session of the operating system.

    One that Spark gave up, since a Python process of its own was too long in starting, is started again:
    it is one more driver that has died.
    """

    driver = DRIVER

    def __init__(self, world: World, *arguments: object) -> None:
        self._world = world
        self._words = [sys.executable, str(self.driver), str(world.folder), *map(str, arguments)]
        self._starts = 0
        self._start()

    def _start(self) -> None:
        tmp = self._world.folder / "tmp"
        self._starts += 1
        self.log = tmp / f"{time.monotonic_ns()}.log"
        environment = {
            **os.environ,
            "LIMEN_CACHE": str(self._world.folder / "cache"),
            "TMPDIR": str(tmp),
        }
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                self._words, stdout=log, stderr=log, env=environment, start_new_session=True
            )

    def __enter__(self) -> Run:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def has_ended(self) -> bool:
        """By itself, and well."""
        code = self.process.poll()
        if code is None:
            return False
        said = self.log.read_text()
        if code != 0 and GAVE_UP in said and self._starts < 5:
            self.kill()
            self._start()
            return False
        assert code == 0, said
        return True

    def until(self, happened: Callable[[], object], seconds: float = 120) -> None:
        end = time.monotonic() + seconds
        while not happened():
            assert not self.has_ended(), f"the driver has ended:\n{self.log.read_text()}"
            assert time.monotonic() < end, f"nothing happens:\n{self.log.read_text()}"
            time.sleep(0.1)

    def until_started(self) -> None:
        self.until(lambda: STARTED in self.log.read_text())

    def finish(self, seconds: float = 240) -> None:
        """Let it come to its end, and see that it leaves nobody behind."""
        end = time.monotonic() + seconds
        while not self.has_ended():
            assert time.monotonic() < end, f"it does not end:\n{self.log.read_text()}"
            time.sleep(0.1)
        while self.others():
            assert time.monotonic() < end, f"left behind: {self.others()}"
            time.sleep(0.1)

    def kill(self) -> None:
        """End all of its processes at once, and see that none is left."""
        pid, end = self.process.pid, time.monotonic() + 30
        if self.process.returncode is None:
            os.killpg(pid, signal.SIGKILL)  # driver and JVM
            self.process.wait()
        while others := self.others():  # Python's workers have a group of their own
            for other in others:
                with suppress(ProcessLookupError):
                    os.kill(other, signal.SIGKILL)
            assert time.monotonic() < end, f"cannot be killed: {others}"
            time.sleep(0.005)

    def others(self) -> dict[int, tuple[int, str]]:
        """The processes of the session that run: their parents and commands."""
        found = {}
        for folder in Path("/proc").glob("[0-9]*"):
            with suppress(FileNotFoundError, ProcessLookupError):
                name, _, rest = (folder / "stat").read_text().rpartition(")")
                state, parent, _, session = rest.split()[:4]
                if int(session) == self.process.pid and state not in "ZX":
                    command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                    found[int(folder.name)] = int(parent), command or name
        return found
