"""kill -9 of an executor in mid-batch: its tasks run again elsewhere, and the answer is the same."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent))  # pytest's importlib mode leaves it out
from crash_driver import QUICK
from crash_runs import Run, World

EXECUTOR = "CoarseGrainedExecutorBackend"


def executor_of(run: Run, worker: int) -> int:
    """The JVM that a Python worker works for: its parent's parent, if not nearer."""
    processes = run.others()
    while EXECUTOR not in processes[worker][1]:
        worker = processes[worker][0]
    return worker


def test_an_executor_is_killed(tmp_path: Path) -> None:
    world, batch = World(tmp_path / "world", files=8), 1
    arguments = ("rows", "--master", "local-cluster[2,1,1024]", "--drain", "--hold", "bound")
    with Run(world, *arguments, "--batch", batch, "--java-options", QUICK) as run:
        marker = world.folder / "bound"
        run.until(marker.exists)
        assert world.bindings("rows").keys() - world.committed("rows") == {batch}
        newest = world.change({"late": [("price", ">=", 0)]}, ("first.0",))
        os.kill(executor_of(run, int(marker.read_text())), signal.SIGKILL)
        run.finish()
    world.check("rows")
    assert world.bindings("rows") == {0: 1, batch: 1, 2: newest, 3: newest}
