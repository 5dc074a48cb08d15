"""A folder of fake experiments, written anew for each test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from limen.reproduce import claim, store

FAKE = '''"""A fake of {id}.

More.
"""

from limen.reproduce import Check, Verdict

CLAIM = "{id}"
PAPER = "{id} is so."
SCALES = {{"quick": {{"scale": "a tenth", "n": 2}}, "full": {{"scale": "the paper's", "n": 3}}}}


def cases(parameters):
    return [{{"name": f"case {{i}}", "i": i}} for i in range(parameters["n"])]


def run(parameters, case):
    with open({log!r}, "a") as log:
        print("{id}", case["i"], file=log)
    return {{"squared": case["i"] ** 2}}


def verdict(parameters, results):
    total = sum(result["squared"] for _, result in results)
    return Verdict([Check.of("it adds up", True, "", str(total))], f"{{total}} in all")


def draw(parameters, results, figure):
    figure.subplots().plot([result["squared"] for _, result in results])
'''


class Fakes:
    """The folder, and which cases were run."""

    def __init__(self, folder: Path) -> None:
        self.folder, self._log = folder / "experiments", folder / "log"

    def write(self, path: str, id: str, change: tuple[str, str] = ("", "")) -> Path:
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        text = FAKE.format(id=id, log=str(self._log))
        assert change[0] in text
        file.write_text(text.replace(*change) if change[0] else text)
        claim.forget()
        return file

    def text(self, path: str, text: str) -> None:
        (self.folder / path).parent.mkdir(parents=True, exist_ok=True)
        (self.folder / path).write_text(text)
        claim.forget()

    def ran(self) -> list[str]:
        """The cases that were run since the last look."""
        told = self._log.read_text().splitlines() if self._log.exists() else []
        self._log.unlink(missing_ok=True)
        return told

    def find(self) -> list[claim.Claim]:
        return claim.find(self.folder)


@pytest.fixture
def fakes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Fakes]:
    # A file that changes within a second, its size unchanged, would be taken from its bytecode.
    monkeypatch.setattr("sys.dont_write_bytecode", True)
    monkeypatch.setattr(
        store, "SOURCES", tmp_path / "limen"
    )  # the real ones may be edited meanwhile
    yield Fakes(tmp_path)
    claim.forget()


@pytest.fixture
def one(fakes: Fakes) -> Callable[..., claim.Claim]:
    """A claim, some of its text replaced."""

    def write(old: str = "", new: str = "") -> claim.Claim:
        fakes.write("cei/fake.py", "CEI-4", (old, new))
        return fakes.find()[0]

    return write
