"""A catalog to begin with, a clock that stands still, and processes of one's own."""

from __future__ import annotations

import multiprocessing
import runpy
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import pytest

from limen.catalog import Catalog

WORKERS = Path(__file__).with_name("workers.py")
START = 1_800_000_000_000_000


class Clock:
    """Microseconds since 1970, as the catalog sees them."""

    now = START

    def __call__(self) -> int:
        return self.now

    def pass_by(self, seconds: float) -> None:
        self.now += round(seconds * 1e6)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr("limen.catalog.catalog._now", clock)
    return clock


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    return Catalog.open(tmp_path / "catalog", {"n": "int64", "x": "float64", "s": "string"})


class Started:
    """A process, and what it says."""

    def __init__(self, process: BaseProcess, here: Connection) -> None:
        self.process, self.here = process, here

    def told(self) -> list[Any]:
        """All that it says from now on, until it ends."""
        said = []
        try:
            while True:
                assert self.here.poll(60), "the process hangs"
                said.append(self.here.recv())
        except EOFError:
            self.process.join()
            return said


@pytest.fixture
def start() -> Iterator[Callable[..., Started]]:
    """Run a function of workers.py in a new process.

    The processes are forked from a server that has imported all and used nothing: deltalake cannot be
    used on both sides of a fork.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["pytest", "limen.catalog"])
    begun: list[Started] = []

    def start(job: str, *args: object) -> Started:
        here, there = context.Pipe()
        call = {"CALL": (job, there, args)}
        process = context.Process(target=runpy.run_path, args=(str(WORKERS), call, "worker"))
        process.start()
        there.close()
        begun.append(Started(process, here))
        return begun[-1]

    yield start
    for one in begun:
        one.process.kill()
        one.process.join()
        one.process.close()
        one.here.close()


@pytest.fixture
def race(start: Callable[..., Started]) -> Callable[[list[tuple[Any, ...]]], list[Started]]:
    """Run functions in processes of their own, all from the same moment on."""

    def race(calls: list[tuple[Any, ...]]) -> list[Started]:
        jobs = [start(*call) for call in calls]
        for job in jobs:
            assert job.here.poll(60) and job.here.recv() == "ready"
        for job in jobs:
            job.here.send("go")
        return jobs

    return race
