"""kill -9 of whoever changes an archive, at random and at places that matter, with a reader looking on.

What an archive must hold after every operation is known beforehand, from a list that is filtered in full
(`Plain`). So a reader has only to say where in this history it is: never between two states, never back,
never ahead of the operation that is tried.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from deltalake import DeltaTable

from limen.archive import Archive, ArchiveError, Snapshot
from limen.archive.table import BESIDE, DAY, SWEPT

from .crash_driver import EVERY, STEPS, STREAM, Op, World, perform

DRIVER = Path(__file__).with_name("crash_driver.py")
KILLS = int(os.environ.get("LIMEN_KILLS", "34"))  # of the updates of each of six layouts: 204
AT_MOST = 5  # kills of one operation, which then comes to its end
MEASURED = 8  # operations, of each kind one or more
KEYS = 12
PAUSE = 0.02  # of the reader, seconds
KILLED = -9

LAYOUTS = {  # and one to migrate to
    "Rebuild2x2": "NoRebuild3x2",
    "NoRebuild2x3": "LazyRebuild3x2",
    "LazyNoRebuild3x2": "Rebuild2x2",
    "CountRebuild2x3": "CountNoRebuild3x2",
    "WATA4": "ChronologicalRebuild2x2",
    "R-ins4": "LazyNoRebuild3x3",
}

FEWER = ["Rebuild2x2", "LazyNoRebuild3x2", "CountRebuild2x3"]


class End(NamedTuple):
    """How a process ended, and what it had said before."""

    status: int
    said: list[Any]
    seconds: float  # from when it had opened the archive


class Server:
    """Forks a process for each operation (`crash_driver.py`)."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(DRIVER)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def do(
        self,
        world: World,
        op: Op,
        after: float | None = None,
        at: tuple[str, str, int] | None = None,
    ) -> End:
        """`after`: seconds to the kill; `at`: before or after which call of what it dies."""
        job = {"world": world, "op": op}
        job |= {k: v for k, v in {"after": after, "at": at}.items() if v is not None}
        assert self.process.stdin and self.process.stdout
        print(json.dumps(job), file=self.process.stdin, flush=True)
        end = End(**json.loads(self.process.stdout.readline()))
        assert end.status in (0, KILLED) and end.said[:1] == ["begun"], (op, end)
        return end._replace(said=end.said[1:])


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    server = Server()
    yield server
    server.process.communicate()
    assert server.process.returncode == 0


# -- what must be there --------------------------------------------------------------------------

State = tuple[int | None, list[tuple[Any, ...]]]  # a time, and the results that are alive


class Plain:
    """The archive as a list."""

    def __init__(self, world: World) -> None:
        self.world, self.time, self.newest = world, None, 0
        self.given: list[dict[str, Any]] = []
        self.waiting: list[dict[str, Any]] = []  # of a stream, until the next update
        self.invalid: list[tuple[list[int], int]] = []
        self.seen: dict[str, int] = {}
        self.names = world.joined.schema.names
        self.counts = world.joined.counts if world.counted else {}

    def after(self, op: Op) -> State:
        what, given = op
        if what == "update":
            self.time = given * EVERY
            self.given += self.world.results(given).to_pylist()
            self.seen = self.world.joined.seen(given)
        elif what == "take_in":
            self.waiting += self.world.batch(given).to_pylist()
            self.newest = max([self.newest, *(row["generated"] for row in self.waiting)])
            if self.newest // EVERY * EVERY != self.time:
                self.time = self.newest // EVERY * EVERY
                self.given += [row for row in self.waiting if row["generated"] <= self.time]
                self.waiting = [row for row in self.waiting if row["generated"] > self.time]
        elif what == "invalidate":
            self.invalid.append((given, self.time))
        return self.time, sorted(
            tuple(row[name] for name in self.names) for row in self.given if self.is_alive(row)
        )

    def is_alive(self, row: dict[str, Any]) -> bool:
        if row["generated"] > self.time:
            return False
        if any(row["key"] in keys and row["generated"] <= until for keys, until in self.invalid):
            return False
        if not self.counts:
            return row["expires"] > self.time
        return all(row[name] > self.seen[who] - size for who, (name, size) in self.counts.items())


def history_of(world: World, ops: list[Op]) -> list[State]:
    """The states of an archive: before all operations, and after each."""
    plain = Plain(world)
    return [(None, []), *(plain.after(op) for op in ops)]


def state_of(world: World, snapshot: Snapshot) -> State:
    names = world.joined.schema.names
    columns = snapshot.scan(columns=names).to_pydict()
    rows = sorted(zip(*(columns[name] for name in names), strict=True))
    return snapshot.time, rows


class Reader(threading.Thread):
    """Takes one snapshot after the other and finds each in the history."""

    def __init__(self, world: World, history: list[State]) -> None:
        super().__init__()
        self.world, self.history = world, history
        self.at, self.newest = 0, 0  # the place in the history, and the last that can be there
        self.looks = 0
        self.error: BaseException | None = None
        self.enough = threading.Event()

    def run(self) -> None:
        try:
            archive = Archive.open(self.world.path)
            while not self.enough.wait(PAUSE):
                self.look(archive)
                self.looks += 1
                if self.looks % 7 == 0:
                    archive = Archive.open(self.world.path)
        except BaseException as error:
            self.error = error

    def look(self, archive: Archive) -> None:
        began = time.monotonic()
        try:
            snapshot = archive.snapshot()
            state = state_of(self.world, snapshot)
            key = self.looks % KEYS
            probed = snapshot.probe(key, columns=["body"]).column("body").to_pylist()
        except ArchiveError as error:
            if "is gone" in str(error) and time.monotonic() - began > self.world.grace:
                return  # it was too slow
            raise
        assert sorted(probed) == sorted(row[-1] for row in state[1] if row[0] == key)
        newest = self.newest
        while self.at <= newest and self.history[self.at] != state:
            self.at += 1
        assert self.at <= newest, f"a snapshot of version {snapshot.version} is no whole state"

    def __enter__(self) -> Reader:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.enough.set()
        self.join()
        if self.error is not None:
            raise self.error


# -- files ---------------------------------------------------------------------------------------


def on_disk(path: str) -> set[str]:
    """All files that are not of Delta's log."""
    inside = (p.relative_to(path) for p in Path(path).rglob("*") if p.is_file())
    return {str(p) for p in inside if p.parts[0] != "_delta_log"}


def named(path: str, *versions: int) -> set[str]:
    """What commits name: results they add, and files beside the table."""
    found = set()
    for version in versions:
        for line in Path(path, "_delta_log", f"{version:020}.json").read_text().splitlines():
            action = json.loads(line)
            info = action.get("commitInfo", {}).get("limen", {})
            beside = [*info.get("pending", []), info.get("invalid")]
            found |= {f"{BESIDE}/{name}" for name in beside if name}
            if "add" in action:
                found.add(action["add"]["path"])
    return found


def age_strays(archive: Archive) -> int:
    """Make what no version has named a day older; nobody is writing now."""
    strays = on_disk(str(archive.path)) - named(str(archive.path), *range(archive.version + 1))
    for name in strays:
        os.utime(archive.path / name, (time.time() - DAY - 60,) * 2)
    return len(strays)


def check_clean(archive: Archive) -> int:
    """After a vacuum nothing is left but what the newest version uses; returns how many were strays."""
    strays = age_strays(archive)
    archive.vacuum(timedelta(0))
    path = str(archive.path)
    live = {str(Path(uri).relative_to(path)) for uri in DeltaTable(path).file_uris()}
    beside = {name for name in named(path, archive.version) if name.startswith(BESIDE)}
    assert on_disk(path) - {f"{BESIDE}/{SWEPT}"} == live | beside
    return strays


# -- at random -----------------------------------------------------------------------------------


class Trial:
    """Operations on an archive, each tried and killed until it is in."""

    def __init__(self, server: Server, world: World, ops: list[Op], seed: str) -> None:
        self.server, self.world, self.ops = server, world, ops
        self.history = history_of(world, ops)
        self.chance = random.Random(seed)
        self.archive = world.make()
        self.twin = world._replace(path=f"{world.path}, undisturbed")
        self.times: dict[str, float] = {}  # that operations take
        self.done = self.strays = 0
        self.kills: Counter[str] = Counter()
        self.unsaid: Counter[str] = Counter()  # those that were in when their process was killed

    def run(self, kills: int) -> None:
        what = self.ops[0][0]
        with Reader(self.world, self.history) as reader:
            self.measure()
            while self.kills[what] < kills or self.done <= MEASURED:
                reader.newest = self.done + 1
                op = self.ops[self.done]
                most = AT_MOST if op[0] == what else 2
                for attempt in range(most + 1):
                    if self.attempt(op, attempt < most):
                        break
                self.done += 1
                assert reader.error is None
        assert reader.looks > kills and reader.at > 0
        self.check()

    def measure(self) -> None:
        """Begin the twin, to see how long operations take."""
        self.twin.make()
        for op in self.ops[:MEASURED]:
            end = self.server.do(self.twin, op)
            assert end.status == 0
            self.times[op[0]] = end.seconds

    def attempt(self, op: Op, kill: bool) -> bool:
        """Is it in?"""
        before, after = self.history[self.done : self.done + 2]
        version = self.archive.version
        if op[0] == "vacuum":
            self.strays += age_strays(self.archive)
        when = self.chance.uniform(0, 1.1 * self.times[op[0]]) if kill else None
        end = self.server.do(self.world, op, when)
        opened = Archive.open(self.world.path)
        is_in = opened.version > version
        assert opened.version - version == is_in
        for archive in (opened, self.archive):
            assert state_of(self.world, archive.snapshot()) == (after if is_in else before)
        if end.status != KILLED:
            assert is_in == (op[0] != "vacuum")
            self.times[op[0]] = end.seconds
            return True
        self.kills[op[0]] += 1
        if is_in:
            self.unsaid[op[0]] += 1
            repeat(self.archive, self.world, op)
            assert state_of(self.world, self.archive.snapshot()) == after
        return is_in

    def check(self) -> None:
        """The same as undisturbed and as a list, and with nothing left behind."""
        end = self.server.do(self.twin, ["all", self.ops[MEASURED : self.done]])
        assert end.status == 0
        state = self.history[self.done]
        assert state_of(self.world, Archive.open(self.twin.path).snapshot()) == state
        assert state_of(self.world, self.archive.snapshot()) == state
        assert len(state[1]) > 20
        self.strays += check_clean(self.archive)
        assert self.strays, "no crash has left anything"
        assert state_of(self.world, Archive.open(self.world.path).snapshot()) == state


def repeat(archive: Archive, world: World, op: Op) -> None:
    """An operation that is in, once more: nothing is doubled."""
    version, files = archive.version, on_disk(world.path)
    if op[0] == "update":
        with pytest.raises(ArchiveError, match=f"the update at {op[1] * EVERY} is done already"):
            perform(archive, world, op)
    elif op[0] == "take_in":
        assert perform(archive, world, op) is False
    else:
        assert perform(archive, world, op) == version + 1
        return
    assert archive.version == version and on_disk(world.path) == files


def plan(other: str) -> list[Op]:
    """Updates, and all else between them: more than are needed, unless most kills come too late."""
    ops: list[Op] = []
    for step in range(4 * KILLS):
        ops.append(["update", step])
        if step % 8 == 2:
            ops.append(["invalidate", [step % KEYS, 7 * step % KEYS]])
        if step % 12 == 3:
            ops.append(["vacuum", 2.0])
        if step in (4, 20, 40):
            ops.append(["migrate", other])
    return ops


@pytest.mark.parametrize("layout", LAYOUTS)
def test_killed_at_random(server: Server, tmp_path: Path, layout: str) -> None:
    world = World(str(tmp_path / "archive"), layout, counted=layout.startswith("Count"))
    trial = Trial(server, world, plan(LAYOUTS[layout]), layout)
    trial.run(KILLS)


@pytest.mark.parametrize("layout", ["NoRebuild2x2", "LazyRebuild3x2"])
def test_a_stream_is_killed_at_random(server: Server, tmp_path: Path, layout: str) -> None:
    """Each batch is taken in once, however often it is tried."""
    world = World(str(tmp_path / "archive"), layout)
    trial = Trial(server, world, [["take_in", batch] for batch in range(2 * KILLS)], layout)
    trial.run(KILLS // 2)
    assert Archive.open(world.path).done(STREAM) == trial.done - 1


# -- at certain places ---------------------------------------------------------------------------

Place = tuple[str, str, int]  # before or after which call of what

IN_UPDATES: dict[Place, bool] = {  # and whether it is in then
    ("before", "rename", 1): False,
    ("after", "write", 1): False,
    ("after", "to_disk", 1): False,
    ("before", "commit", 1): False,
    ("before", "transaction", 1): False,
    ("after", "transaction", 1): True,
    ("after", "to_disk of the log", 1): True,
    ("after", "commit", 1): True,
    ("before", "look", 1): True,
    ("before", "sweep", 1): True,
    ("before", "delete", 1): True,
    ("after", "delete", 1): True,
    ("after", "sweep", 1): True,
}


def die_at(
    server: Server, world: World, op: Op, at: Place, is_in: bool, states: list[State]
) -> None:
    """An operation dies somewhere and is tried again: `states` are before and after it."""
    before, after = states
    archive = Archive.open(world.path)
    version = archive.version
    assert server.do(world, op, at=at).status == KILLED, f"it did not get {at}"
    opened = Archive.open(world.path)
    assert opened.version == archive.snapshot().version == version + is_in
    for one in (opened, archive):
        assert state_of(world, one.snapshot()) == (after if is_in else before)
    if is_in:
        repeat(archive, world, op)
    else:
        perform(archive, world, op)
    for one in (opened, archive):
        assert state_of(world, one.snapshot()) == after


@pytest.mark.parametrize("layout", LAYOUTS)
def test_an_update_is_there_or_not(server: Server, tmp_path: Path, layout: str) -> None:
    """Without grace, so that every update also deletes what those before it have replaced."""
    world = World(str(tmp_path / "archive"), layout, layout.startswith("Count"), grace=0)
    ops: list[Op] = [["update", step] for step in range(STEPS + len(IN_UPDATES))]
    history = history_of(world, ops)
    archive = world.make()
    with Reader(world, history) as reader:
        for number, op in enumerate(ops[:STEPS]):
            reader.newest = number + 1
            perform(archive, world, op)
        for number, (at, is_in) in enumerate(IN_UPDATES.items(), STEPS):
            reader.newest = number + 1
            die_at(server, world, ops[number], at, is_in, history[number : number + 2])
    assert reader.looks and reader.at > 0
    assert check_clean(archive) > 0
    assert state_of(world, Archive.open(world.path).snapshot()) == history[-1]


IN_OTHERS: dict[str, dict[Place, bool]] = {
    "invalidate": {
        ("before", "write_beside", 1): False,
        ("after", "write_beside", 1): False,
        ("before", "transaction", 1): False,
        ("after", "transaction", 1): True,
    },
    "migrate": {
        ("after", "write", 1): False,
        ("after", "write", 4): False,
        ("after", "unlink", 6): False,
        ("before", "transaction", 1): False,
        ("after", "transaction", 1): True,
    },
}


@pytest.mark.parametrize("what", ["invalidate", "migrate"])
@pytest.mark.parametrize("layout", FEWER)
def test_another_change_is_there_or_not(
    server: Server, tmp_path: Path, layout: str, what: str
) -> None:
    world = World(str(tmp_path / "archive"), layout, layout.startswith("Count"))
    ops: list[Op] = [["update", step] for step in range(4)]
    for turn in range(len(IN_OTHERS[what])):
        there = [layout, LAYOUTS[layout]]
        ops.append([what, [turn, turn + 3] if what == "invalidate" else there[1 - turn % 2]])
    ops.append(["update", 4])
    history = history_of(world, ops)
    archive = world.make()
    with Reader(world, history) as reader:
        reader.newest = len(ops)
        for op in ops[:4]:
            perform(archive, world, op)
        for number, (at, is_in) in enumerate(IN_OTHERS[what].items(), 4):
            die_at(server, world, ops[number], at, is_in, history[number : number + 2])
        perform(archive, world, ops[-1])
    assert check_clean(archive) > 0
    assert state_of(world, Archive.open(world.path).snapshot()) == history[-1]


IN_BATCHES: dict[int, tuple[Place, bool]] = {  # by the number of the batch
    5: (("after", "write_beside", 1), False),  # waits with others
    6: (("after", "transaction", 1), True),
    7: (("after", "write_beside", 1), False),  # brings an update with it
    8: (("before", "transaction", 1), False),
    9: (("after", "write", 1), False),
    11: (("before", "look", 1), True),
    12: (("before", "commit", 1), False),
    14: (("after", "transaction", 1), True),
    17: (("before", "sweep", 1), True),
}


@pytest.mark.parametrize("layout", ["Rebuild2x2", "LazyNoRebuild3x2"])
def test_a_batch_is_in_or_not(server: Server, tmp_path: Path, layout: str) -> None:
    world = World(str(tmp_path / "archive"), layout)
    ops: list[Op] = [["take_in", batch] for batch in range(20)]
    history = history_of(world, ops)
    assert {history[n][0] == history[n + 1][0] for n in IN_BATCHES} == {True, False}
    archive = world.make()
    with Reader(world, history) as reader:
        for number, op in enumerate(ops):
            reader.newest = number + 1
            if number in IN_BATCHES:
                at, is_in = IN_BATCHES[number]
                die_at(server, world, op, at, is_in, history[number : number + 2])
            else:
                assert perform(archive, world, op) is True
            assert archive.done(STREAM) == number
    assert check_clean(archive) > 0
    assert state_of(world, Archive.open(world.path).snapshot()) == history[-1]


@pytest.mark.parametrize("layout", FEWER)
def test_a_vacuum_dies(server: Server, tmp_path: Path, layout: str) -> None:
    """Of what is to be deleted some is, and the next one deletes the rest."""
    world = World(str(tmp_path / "archive"), layout, layout.startswith("Count"), grace=600)
    ops: list[Op] = [["update", step] for step in range(STEPS)]
    ops[6:6] = [["invalidate", [1, 2]], ["migrate", LAYOUTS[layout]]]
    state = history_of(world, ops)[-1]
    archive = world.make()
    for op in ops:
        perform(archive, world, op)
    server.do(world, ["update", STEPS], at=("after", "write", 1))
    age_strays(archive)
    files = on_disk(world.path)
    for at, fewer in {("before", "delete", 1): 0, ("after", "delete", 1): 1}.items():
        assert server.do(world, ["vacuum", 0], at=at).status == KILLED
        assert len(files) - len(on_disk(world.path)) == fewer
        files = on_disk(world.path)
        assert state_of(world, Archive.open(world.path).snapshot()) == state
    assert server.do(world, ["vacuum", 0], at=("after", "delete", 3)).status == KILLED
    assert len(files) - len(on_disk(world.path)) == 3
    check_clean(archive)
    assert state_of(world, Archive.open(world.path).snapshot()) == state


def test_an_update_that_nobody_was_told_of_is_not_done_again(
    server: Server, tmp_path: Path
) -> None:
    """Its process died right after the commit: to repeat it is refused, with nothing changed."""
    world = World(str(tmp_path / "archive"), "NoRebuild2x2")
    ops: list[Op] = [["update", 0], ["update", 1], ["update", 2]]
    history = history_of(world, ops)
    perform(world.make(), world, ops[0])
    end = server.do(world, ops[1], at=("after", "transaction", 1))
    assert end.status == KILLED and end.said == []
    archive, files = Archive.open(world.path), on_disk(world.path)
    with pytest.raises(
        ArchiveError, match=r"the update at 10 is done already; the next one is at 20"
    ):
        perform(archive, world, ops[1])
    assert archive.snapshot().version == 2 and on_disk(world.path) == files
    assert state_of(world, archive.snapshot()) == history[2]
    perform(archive, world, ops[2])
    assert state_of(world, archive.snapshot()) == history[3]


@pytest.mark.parametrize("left", ["nothing", "an empty log", "a commit that was not finished"])
def test_a_crash_in_making_it_does_not_bar_the_next(tmp_path: Path, left: str) -> None:
    """deltalake writes a commit under another name, then links it to its own."""
    world = World(str(tmp_path / "archive"), "Rebuild2x2")
    log = tmp_path / "archive" / "_delta_log"
    if left != "nothing":
        log.mkdir(parents=True)
    if left == "a commit that was not finished":
        (log / "00000000000000000000.json#1").write_bytes(b'{"protocol"')
    with pytest.raises(ArchiveError, match="there is no archive at"):
        Archive.open(world.path)
    archive = world.make()
    perform(archive, world, ["update", 0])
    assert state_of(world, archive.snapshot()) == history_of(world, [["update", 0]])[-1]


def test_making_it_is_killed_at_random(server: Server, tmp_path: Path) -> None:
    chance = random.Random("making")
    for turn in range(10):
        world = World(str(tmp_path / f"archive {turn}"), "Rebuild2x2")
        server.do(world, ["make", None], chance.uniform(0, 0.03))
        assert state_of(world, world.make().snapshot()) == (None, [])


def test_an_unfinished_commit_does_not_bar_the_next(tmp_path: Path) -> None:
    world = World(str(tmp_path / "archive"), "Rebuild2x2")
    ops: list[Op] = [["update", 0], ["update", 1]]
    archive = world.make()
    perform(archive, world, ops[0])
    left = tmp_path / "archive" / "_delta_log" / "00000000000000000002.json#1"
    left.write_bytes(b'{"commitInfo"')
    perform(Archive.open(world.path), world, ops[1])
    assert state_of(world, archive.snapshot()) == history_of(world, ops)[-1]


def test_a_look_that_fails_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a reader holds is of one version, also after a file could not be opened."""
    world = World(str(tmp_path / "archive"), "Rebuild2x2")
    ops: list[Op] = [["update", 0], ["update", 1]]
    archive = world.make()
    perform(archive, world, ops[0])
    reader = Archive.open(world.path)
    perform(archive, world, ops[1])
    with monkeypatch.context() as patch:

        def fail(*_: object) -> None:
            raise ArchiveError("too many open files")

        patch.setattr("limen.archive.table.open_file", fail)
        with pytest.raises(ArchiveError, match="too many open files"):
            reader.snapshot()
    assert state_of(world, reader.snapshot()) == history_of(world, ops)[-1]
