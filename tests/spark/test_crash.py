"""kill -9 in mid-stream, again and again: nothing is lost, nothing comes twice, versions stay."""

from __future__ import annotations

import random
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.append(str(Path(__file__).parent))  # pytest's importlib mode leaves it out
from crash_driver import POINTS
from crash_runs import Run, World

KILLS = 24


def killed(world: World, emit: str, files: int, java_options: str) -> list[set[int]]:
    """Start a stream and kill it, again and again; returns which batches each kill left open."""
    rng = random.Random(emit)
    options = (emit, "--files", files, "--java-options", java_options)
    left: list[set[int]] = [set()]
    for number in range(KILLS // 2):
        world.feed(4)
        bound, done = world.bindings(emit).keys(), world.committed(emit)
        with Run(world, *options, "--seed", number) as run:
            run.until_started()
            if number % 3 == 1:
                run.until(lambda before=bound: left[-1] or world.bindings(emit).keys() > before)
            elif number % 3 == 2:
                run.until(lambda before=done: world.committed(emit) > before)
            time.sleep(rng.uniform(0, 1.2))
        left.append(world.bindings(emit).keys() - world.committed(emit))
    with Run(world, *options, "--files", 8, "--drain") as run:
        run.finish()
    return left[1:]


def test_killed_at_random(tmp_path: Path, java_options: str) -> None:
    """Two streams on a catalog that both change; whatever they are doing at the time is cut off."""
    world = World(tmp_path / "world")
    with ThreadPoolExecutor() as lanes:
        both = [
            lanes.submit(killed, world, emit, files, java_options)
            for emit, files in (("rows", 2), ("ids", 1))
        ]
        left = [batches for lane in both for batches in lane.result()]
    assert len(left) == KILLS
    assert sum(map(bool, left)) >= 4, "hardly a batch was replayed"
    world.check("rows")
    world.check("ids")


def test_killed_at_every_step_of_one_batch(tmp_path: Path, java_options: str) -> None:
    """The batch is tried four times, each time with a newer catalog: it keeps its first version."""
    world = World(tmp_path / "world", files=6)
    batch, first = 1, 0
    for number, point in enumerate(POINTS):
        arguments = ("rows", "--hold", point, "--batch", batch, "--java-options", java_options)
        with Run(world, *arguments) as run:
            run.until((world.folder / point).exists)
        assert world.bindings("rows").keys() - world.committed("rows") == {batch}
        first = first or world.bindings("rows")[batch]
        assert world.bindings("rows")[batch] == first == 1
        in_table = world.transaction("rows")
        assert in_table == (batch if point == "committed" else batch - 1)
        newest = world.change({f"late.{number}": [("price", ">=", 0)]}, (f"first.{number}",))
        assert newest > first
    with Run(world, "rows", "--drain", "--java-options", java_options) as run:
        run.finish()
    world.check("rows")
    assert world.bindings("rows") == {0: first, batch: first, 2: newest}
