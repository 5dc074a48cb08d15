"""What is done to an archive by processes that are killed in the middle of it, and the server of these.

The server has imported all and used nothing (deltalake cannot be used on both sides of a fork), so a
process costs a fork and not the start of an interpreter. It is told jobs as lines of JSON: an operation,
and a time after which to kill or a place to die at. It forks, kills, waits, and tells how it ended.

It is a server of its own, since multiprocessing has one fork server for all tests, and whoever uses it
first says what it has imported.
"""

from __future__ import annotations

import gc
import itertools
import json
import os
import pathlib
import select
import signal
import sys
import time
import traceback
from collections.abc import Callable
from datetime import timedelta
from typing import Any, NamedTuple

import pyarrow as pa

from limen.archive import Archive, files, table
from limen.archive.table import DeltaTable
from limen.delta import commits
from limen.testing.joined import Joined

STEPS, EVERY = 8, 10
WINDOW = STEPS * EVERY
STREAM = "a stream"
HANGS = 60.0  # seconds that no job takes

Op = list[Any]  # the name of an operation and what it is given


class World(NamedTuple):
    """An archive that is killed at, and the results that it is given."""

    path: str
    layout: str
    counted: bool = False
    grace: float = 2.0

    @property
    def joined(self) -> Joined:
        return Joined(
            rows=240, steps=STEPS, every=EVERY, keys=12, row_bytes=64, counted=self.counted
        )

    def results(self, step: int) -> pa.Table:
        return self.joined.update(step) if step else self.joined.initial()

    def batch(self, number: int) -> pa.Table:
        """Of a stream: all that is generated in two fifths of a step, in no order, some of it late."""
        first, last = number * EVERY * 2 // 5, (number + 1) * EVERY * 2 // 5
        parts = []
        for step in range(max(first - 1, 1) // EVERY, last // EVERY + 2):
            rows = self.results(step) if step else self.results(0).slice(0, 0)
            parts += [row for row in rows.to_pylist() if first < _arrives(row) <= last]
        return pa.Table.from_pylist(parts[::-1], self.joined.schema)

    def make(self) -> Archive:
        joined = self.joined
        return Archive.open(
            self.path,
            joined.schema,
            key="key",
            window=WINDOW,
            every=EVERY,
            layout=self.layout,
            counts=joined.counts if self.counted else None,
            grace=timedelta(seconds=self.grace),
        )


def _arrives(row: dict[str, Any]) -> int:
    """When a stream has the result: at its generation, or a while later."""
    return row["generated"] + (EVERY + 5 if row["key"] == 3 else 0)


def perform(archive: Archive, world: World, op: Op) -> Any:
    """One operation, in whatever process."""
    what, given = op
    if what == "update":
        counts = world.joined.seen(given) if world.counted else None
        return archive.update(given * EVERY, world.results(given), counts=counts).version
    if what == "invalidate":
        return archive.invalidate(given)
    if what == "migrate":
        return archive.migrate(given).version
    if what == "vacuum":
        return archive.vacuum(timedelta(seconds=given))
    assert what == "take_in"
    return archive.take_in(STREAM, given, world.batch(given))


# -- dying ---------------------------------------------------------------------------------------

PLACES: dict[str, tuple[Any, str]] = {
    "write": (files, "write"),
    "rename": (pathlib.Path, "rename"),  # of a file that is written under another name
    "unlink": (pathlib.Path, "unlink"),
    "write_beside": (table.Table, "write_beside"),
    "to_disk": (table, "to_disk"),
    "commit": (table, "commit"),
    "transaction": (DeltaTable, "create_write_transaction"),
    "to_disk of the log": (commits, "to_disk"),
    "look": (table.Table, "_look"),
    "sweep": (table.Table, "sweep"),
    "delete": (table, "_delete"),
}


def die(when: str, place: str, call: int) -> None:
    """At the given call of a function, before or after it."""
    owner, name = PLACES[place]
    original: Callable[..., Any] = getattr(owner, name)
    calls = itertools.count(1)  # of two threads, maybe

    def dying(*args: Any, **kwargs: Any) -> Any:
        this = next(calls)
        if when == "before" and this == call:
            os.kill(os.getpid(), signal.SIGKILL)
        found = original(*args, **kwargs)
        if when == "after" and this == call:
            os.kill(os.getpid(), signal.SIGKILL)
        return found

    setattr(owner, name, dying)


# -- the server ----------------------------------------------------------------------------------


def work(job: dict[str, Any], say: Callable[[Any], object]) -> None:
    """In a process of its own: open, say so, do it, say what came of it."""
    world = World(*job["world"])
    what, given = job["op"]
    archive = None if what == "make" else Archive.open(world.path)
    say("begun")
    if "at" in job:
        die(*job["at"])
    if archive is None:
        say(world.make().version)
    elif what == "all":
        say([perform(archive, world, op) for op in given])
    else:
        say(perform(archive, world, job["op"]))


def fork(job: dict[str, Any]) -> tuple[int, int]:
    """The process that does a job, and where it is heard."""
    hear, say = os.pipe()
    process = os.fork()
    if process:
        os.close(say)
        return process, hear
    status = 1
    try:
        os.close(hear)
        work(job, lambda what: os.write(say, json.dumps(what).encode() + b"\n"))
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


def serve(job: dict[str, Any]) -> dict[str, Any]:
    """Do a job, kill its process when its time has come, and tell how it ended and what it said."""
    process, hear = fork(job)
    with os.fdopen(hear, "rb", buffering=0) as hearing:
        said = hearing.read(len(b'"begun"\n'))
        began = time.monotonic()
        ready, _, _ = select.select([hearing], [], [], job.get("after", HANGS))
        if not ready:
            os.kill(process, signal.SIGKILL)
        said += hearing.readall()
    seconds = time.monotonic() - began
    status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    lines = [json.loads(line) for line in said.splitlines()]
    return {"status": status, "said": lines, "seconds": seconds}


if __name__ == "__main__":
    World("", "").results(0)  # pyarrow imports much, and only with the first table
    gc.freeze()  # what is not looked through is not copied for each process
    for line in sys.stdin:
        print(json.dumps(serve(json.loads(line))), flush=True)
