"""Ways to try Spark in processes of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

sys.path.append(str(Path(__file__).parent))  # pytest's importlib mode leaves it out
from crash_driver import QUICK
from crash_runs import Run, World

NOTES = "Streaming TransformWithStateInPandas Python worker"  # with which Spark cannot be quiet


@pytest.fixture
def alone(tmp_path: Path) -> Callable[..., Any]:
    """Runs a script in a process of its own, since a process has one JVM.

    Gives what the script puts into `answer`. It must write nothing else and leave its folder empty.
    """
    folder = tmp_path / "cwd"
    folder.mkdir()

    def run(script: str, **environment: str | None) -> Any:
        variables = {k: v for k, v in {**os.environ, **environment}.items() if v is not None}
        done = subprocess.run(
            [sys.executable, "-c", f"{script}\nimport json\nprint(json.dumps(answer))"],
            env=variables,
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        said = [line for line in done.stderr.splitlines() if line and NOTES not in line]
        assert said == []
        assert list(folder.iterdir()) == []
        return json.loads(done.stdout)

    return run


@pytest.fixture
def no_java(tmp_path: Path) -> str:
    """A PATH with every command but java."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for path in os.environ["PATH"].split(os.pathsep):
        for command in Path(path).iterdir() if Path(path).is_dir() else ():
            link = folder / command.name
            if command.name != "java" and not link.is_symlink():
                link.symlink_to(command)
    return str(folder)


@pytest.fixture(scope="session")
def java_options(tmp_path_factory: pytest.TempPathFactory) -> str:
    """For drivers that are to be killed: quick to start.

    A run without a kill comes first; its JVM leaves an archive of its classes, which halves a start.
    """
    folder = tmp_path_factory.mktemp("quiet")
    world, archive = World(folder / "world", files=3), folder / "classes.jsa"
    options = f"{QUICK} -XX:ArchiveClassesAtExit={archive}"
    with Run(world, "rows", "--drain", "--java-options", options) as run:
        run.finish()
    world.check("rows")
    return f"{QUICK} -XX:SharedArchiveFile={archive}" if archive.exists() else QUICK
