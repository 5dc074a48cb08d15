"""Rules of the house: who imports whom, examples that run, a lock file that names no host."""

from __future__ import annotations

import ast
import doctest
import importlib
import pkgutil
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import limen

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "limen"

# A part may import itself and these.
MAY_IMPORT = {
    "model": set(),
    "kernels": set(),
    "indexes": {"kernels", "model"},
    "borders": {"indexes", "kernels"},
    "partitions": {"indexes", "kernels", "model"},
    "engine": {"borders", "catalog", "indexes", "kernels", "model", "partitions"},
    "plotting": {"archive", "engine", "indexes", "kernels", "model", "partitions"},
    "delta": set(),
    "catalog": {"delta", "model"},
    "archive": {"delta", "model"},
    "spark": {
        "archive",
        "borders",
        "catalog",
        "engine",
        "indexes",
        "kernels",
        "model",
        "partitions",
    },
    "reproduce": {"plotting"},
    "cli": {
        "archive",
        "borders",
        "catalog",
        "delta",
        "plotting",
        "engine",
        "indexes",
        "kernels",
        "model",
        "partitions",
        "reproduce",
        "spark",
        "testing",
    },
    "testing": {"model"},
    "": {"archive", "catalog", "engine", "model", "spark"},
}
SPARK = {"spark", "pipeline", "testing"}


def modules() -> list[Path]:
    return sorted(SOURCE.rglob("*.py"))


def imports(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute here"
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(SOURCE)))
def test_imports_go_one_way(path: Path) -> None:
    parts = path.relative_to(SOURCE).parts
    part = parts[0] if len(parts) > 1 else ""
    for name in imports(path):
        pieces = name.split(".")
        assert pieces[0] != "pyspark" or part in SPARK, f"{path} imports pyspark"
        if pieces[0] == "limen" and len(pieces) > 1 and (SOURCE / pieces[1]).is_dir():
            assert pieces[1] == part or pieces[1] in MAY_IMPORT[part], f"{path} imports {name}"
    if part == "testing" and path.name == "oracle.py":
        assert not any(name.startswith("limen") for name in imports(path))


def test_kernels_need_numpy_and_numba_only() -> None:
    allowed = {"numpy", "numba", "llvmlite", "limen", *sys.stdlib_module_names}
    for path in (SOURCE / "kernels").glob("*.py"):
        assert {name.split(".")[0] for name in imports(path)} <= allowed


@pytest.mark.parametrize("name", [m.name for m in pkgutil.walk_packages(limen.__path__, "limen.")])
def test_docstring_examples(name: str) -> None:
    failed, _ = doctest.testmod(importlib.import_module(name))
    assert failed == 0


DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda p: p.name)
def test_examples_in_documents(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT / "docs" / "examples")
    failed, _ = doctest.testfile(str(path), module_relative=False)
    assert failed == 0


def console_examples() -> list[tuple[str, list[tuple[str, str]]]]:
    """The `$ limen` commands of every console block, each with the output shown below it."""
    found = []
    for path in DOCUMENTS:
        for block in re.findall(r"```console\n(.*?)```", path.read_text(), re.S):
            steps = []
            for example in re.split(r"^\$ ", block, flags=re.M)[1:]:
                command, _, output = example.partition("\n")
                if command.startswith("limen "):
                    steps.append((command, output.strip()))
            if steps:
                found.append((path.name, steps))
    return found


@pytest.mark.parametrize(("document", "steps"), console_examples())
def test_console_examples(document: str, steps: list[tuple[str, str]], tmp_path: Path) -> None:
    """The commands of a block run in one folder, one after the other."""
    for file in (ROOT / "docs" / "examples").iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    for command, output in steps:
        words = [str(Path(sys.executable).parent / "limen"), *shlex.split(command)[1:]]
        done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert as_shown(done.stdout) == as_shown(output), command


def as_shown(output: str) -> str:
    """Without what is different in every run: the time of day."""
    lines = "\n".join(line.rstrip() for line in output.strip().splitlines())
    return re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", "YYYY-MM-DD hh:mm:ss", lines)


def test_the_lock_file_names_no_host_and_every_hash() -> None:
    text = (ROOT / "requirements.txt").read_text()
    assert not re.search(r"https?:|file:/|index-url|find-links|trusted-host", text)
    pinned = re.findall(r"^[a-z0-9][\w.-]*==", text, re.M)
    blocks = re.split(r"^(?=[a-z0-9][\w.-]*==)", text, flags=re.M)[1:]
    assert len(pinned) == len(blocks) > 10
    assert all("--hash=sha256:" in block for block in blocks)


def test_every_algorithm_has_a_test_file() -> None:
    tested = {path.name for path in (ROOT / "tests").rglob("test_*.py")}
    for path in (SOURCE / "kernels").glob("*.py"):
        if path.name not in ("__init__.py", "compiled.py"):
            assert f"test_{path.name}" in tested, f"{path.name} has no test file of its name"
