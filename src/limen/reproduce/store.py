"""Results on disk, so that a run that was killed goes on where it was.

A file a case, OUT/<scale>/<claim>/<digest>/<case>.json, and it is there whole or not at all. The digest
covers whatever could change a result (the parameters, the sources of limen, what the claim's module
measures and what experiments share, the versions of numpy and numba): results of anything else count
as absent, and go when the claim has been measured anew. A damaged file is absent too. How results
are judged and drawn (`verdict`, `draw`, experiments/judging.py) is not covered: that is done anew
every time.
"""

from __future__ import annotations

import ast
import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

from limen.reproduce.claim import Case, Claim, Parameters, Result

SOURCES = Path(__file__).parents[1]
NOT_MEASURED = {"_benchmarks", "_experiments", "cli", "plotting", "reproduce", "judging.py"}
JUDGING = {"PAPER", "verdict", "draw"}  # of a claim's module


class Measured(NamedTuple):
    """The result of a case, and of which run it is."""

    result: Result
    seconds: float
    at: str  # UTC, ISO 8601
    machine: str


class Store:
    """A folder of results, as the present sources see it."""

    def __init__(self, out: Path, experiments: Path) -> None:
        self.out = out
        basis = hashlib.sha256()
        for folder in (SOURCES, experiments):
            for path in _sources(folder):
                data = path.read_bytes()
                if folder != experiments or b"\nCLAIM" not in data:
                    basis.update(f"{path.relative_to(folder)} {len(data)}\n".encode() + data)
        basis.update(f"numpy {version('numpy')} numba {version('numba')}".encode())
        self._basis = basis.digest()

    def kept(self, scale: str, claim: Claim, parameters: Parameters) -> Kept:
        told = json.dumps(parameters, sort_keys=True) + _measuring(claim.path)
        digest = hashlib.sha256(self._basis + told.encode()).hexdigest()[:16]
        return Kept(self.out / scale / claim.id / digest)

    def has(self, scale: str, claim: str) -> bool:
        """Whether there is anything, of the present sources or not."""
        return (self.out / scale / claim).is_dir()


class Kept:
    """The results of a claim at a scale."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def get(self, number: int, case: Case) -> Measured | None:
        try:
            told = json.loads(self._path(number).read_bytes())
            found = Measured(**{name: told[name] for name in Measured._fields})
            sound = told["case"] == case and isinstance(found.result, dict)
            return found if sound and isinstance(found.seconds, float) else None
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def put(self, number: int, case: Case, measured: Measured) -> None:
        write(self._path(number), json.dumps({"case": case, **measured._asdict()}).encode())

    def forget(self) -> None:
        shutil.rmtree(self.folder.parent, ignore_errors=True)

    def forget_others(self) -> None:
        """Remove the results of other sources or parameters, and what killed runs left half written."""
        for path in self.folder.parent.glob("*"):
            if path != self.folder:
                shutil.rmtree(path, ignore_errors=True)
        for path in self.folder.glob("*.tmp"):
            path.unlink(missing_ok=True)

    def _path(self, number: int) -> Path:
        return self.folder / f"{number}.json"


def write(path: Path, data: bytes) -> None:
    """The whole file or none of it, whenever the process is killed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    half = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    half.write_bytes(data)
    os.replace(half, path)


def _measuring(path: Path) -> str:
    """The module without what only judges and draws."""
    text = path.read_text(encoding="utf-8")
    try:
        module = ast.parse(text)
    except SyntaxError:
        return text
    kept = []
    for node in module.body:
        names = {getattr(node, "name", "")}
        if isinstance(node, ast.Assign):
            names = {target.id for target in node.targets if isinstance(target, ast.Name)}
        prose = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        beside = isinstance(node, ast.ImportFrom) and node.module == "judging"
        if not prose and not beside and not names & JUDGING:
            kept.append(ast.unparse(node))
    return "\n".join(kept)


def _sources(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.rglob("*")):
        parts = path.relative_to(folder).parts
        ours = "__pycache__" not in parts and parts[0] not in NOT_MEASURED
        if ours and not path.name.startswith(".") and path.is_file():
            yield path
