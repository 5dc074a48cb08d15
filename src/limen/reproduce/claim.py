"""A claim of a paper as an experiment: a module `experiments/<paper>/<anything>.py` that defines

    a docstring                                   its first line is the title
    CLAIM = "CEI-4"
    PAPER = "Storage falls as L grows."           what the paper says, in a sentence or two
    SCALES = {"quick": {...}, "full": {...}}      parameters; each has a text "scale"
    def cases(parameters): ...                    a list of dicts, each with a short "name"
    def run(parameters, case): ...                measures one of them, gives a dict
    def verdict(parameters, results): ...         gives a `Verdict`; results are [(case, result), ...]
    def draw(parameters, results, figure): ...    into a matplotlib Figure (constrained layout)

Parameters, cases and results are JSON, also when nothing was read from disk: a tuple arrives as a list.
So an experiment cannot tell a result just measured from one that was kept. The folder is loaded as a
package, so that experiments can import their neighbours (`from ..common import x`).
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import json
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any, Literal, NamedTuple

Parameters = dict[str, Any]
Case = dict[str, Any]
Result = dict[str, Any]
Results = list[tuple[Case, Result]]
Kind = Literal["holds", "direction", "fails"]

SCALES = ("quick", "full")
WORDS: dict[Kind, str] = {
    "holds": "holds",
    "direction": "holds in direction, not in size",
    "fails": "does not hold",
}
SHORT: dict[Kind, str] = {"holds": "holds", "direction": "in direction", "fails": "does not hold"}
PACKAGE = "limen_experiments"


@dataclass(frozen=True)
class Check:
    """One statement of a claim: what the paper gives for it, and what was measured.

    >>> Check.of("CEI is smaller at every L", True, paper="Fig. 15", measured="by 3.1x or more").result
    'holds'
    """

    says: str
    paper: str
    measured: str
    result: Kind

    def __post_init__(self) -> None:
        _texts(self, "says", "paper", "measured")
        if self.result not in WORDS:
            raise ValueError(f"a check's result is {', '.join(WORDS)}, not {self.result!r}")

    @classmethod
    def of(
        cls, says: str, holds: bool, paper: str = "", measured: str = "", direction: bool = False
    ) -> Check:
        """It holds; if not, perhaps its direction does, though not its size; else it fails."""
        return cls(
            says, paper, measured, "holds" if holds else "direction" if direction else "fails"
        )


@dataclass(frozen=True)
class Verdict:
    """What became of a claim: its checks, what was measured in a sentence, and what else to say of it.

    >>> Verdict([Check.of("twice", False, "2", "1.5", direction=True)], "1.5 times").word
    'holds in direction, not in size'
    """

    checks: Sequence[Check]
    measured: str
    note: str = ""

    def __post_init__(self) -> None:
        _texts(self, "measured", "note")
        if not self.checks or not all(isinstance(check, Check) for check in self.checks):
            raise TypeError("a verdict has a list of checks, one or more")

    @property
    def kind(self) -> Kind:
        """The worst of the checks'."""
        return max((check.result for check in self.checks), key=list(WORDS).index)

    @property
    def word(self) -> str:
        return WORDS[self.kind]


def _texts(it: object, *names: str) -> None:
    for name in names:
        if not isinstance(getattr(it, name), str):
            raise TypeError(
                f"{name} of a {type(it).__name__} is a text, not {getattr(it, name)!r:.40}"
            )


class Experiment(NamedTuple):
    """What a module defines, known to be of the right kind."""

    paper: str  # what the paper says
    scales: dict[str, Parameters]
    cases: Callable[[Parameters], list[Case]]
    run: Callable[[Parameters, Case], Result]
    verdict: Callable[[Parameters, Results], Verdict]
    draw: Callable[[Parameters, Results, Any], None]


@dataclass(frozen=True)
class Claim:
    """An experiment before its module is loaded: loading may take a while, or fail."""

    id: str
    title: str
    path: Path

    @property
    def group(self) -> str:
        """The folder of its paper."""
        return self.path.parent.name

    @property
    def names(self) -> set[str]:
        """What stands for it on the command line, in small letters."""
        return {self.id.lower(), self.id.partition("-")[0].lower(), self.group.lower()}

    def load(self) -> Experiment:
        _package(self.path.parents[1])
        module = importlib.import_module(f"{PACKAGE}.{self.group}.{self.path.stem}")
        return Experiment(
            _defined(module, "PAPER", str),
            _scales(module),
            *(_function(module, name) for name in ("cases", "run", "verdict", "draw")),
        )


def _package(folder: Path) -> None:
    """Make a package of the folder, unless it is one already."""
    known = sys.modules.get(PACKAGE)
    if known is not None and list(known.__path__) == [str(folder)]:
        return
    forget()
    first = folder / "__init__.py"
    spec = (
        importlib.util.spec_from_file_location(
            PACKAGE, first, submodule_search_locations=[str(folder)]
        )
        if first.exists()
        else ModuleSpec(PACKAGE, None, is_package=True)
    )
    assert spec is not None
    package = importlib.util.module_from_spec(spec)
    package.__path__ = [str(folder)]
    sys.modules[PACKAGE] = package
    if spec.loader is not None:
        try:
            spec.loader.exec_module(package)
        except BaseException:
            forget()
            raise


def forget() -> None:
    """Have experiments loaded anew, as their sources are now."""
    for name in [name for name in sys.modules if name.partition(".")[0] == PACKAGE]:
        del sys.modules[name]
    importlib.invalidate_caches()


def _defined(module: ModuleType, name: str, kind: type[Any]) -> Any:
    found = getattr(module, name, None)
    if not isinstance(found, kind):
        told = "is missing" if found is None else f"is {found!r:.40}"
        raise ValueError(f"{name} {told}; it must be a {kind.__name__}")
    return found


def _function(module: ModuleType, name: str) -> Callable[..., Any]:
    found = getattr(module, name, None)
    if not callable(found):
        raise ValueError(f"there is no function {name}")
    return found  # type: ignore[no-any-return]


def _scales(module: ModuleType) -> dict[str, Parameters]:
    scales = _defined(module, "SCALES", dict)
    if set(scales) != set(SCALES):
        raise ValueError(f"SCALES must have {' and '.join(SCALES)}, not {', '.join(scales)}")
    for scale, parameters in scales.items():
        if not isinstance(parameters, dict) or not isinstance(parameters.get("scale"), str):
            raise ValueError(f'SCALES: {scale} must be a dict with a text "scale"')
    return {scale: plain(parameters, f"SCALES: {scale}") for scale, parameters in scales.items()}


def plain(value: Any, what: str) -> Any:
    """The value as it comes back from JSON. Numbers and arrays of numpy become Python's."""

    def known(part: Any) -> Any:
        if hasattr(part, "tolist"):
            return part.tolist()
        raise TypeError(f"{what} is not JSON: it has a {type(part).__name__}")

    return json.loads(json.dumps(value, default=known))


# -- finding them --------------------------------------------------------------------------------


def folder() -> Path:
    """Where the experiments are: in an installed package, else beside the sources."""
    package = Path(__file__).parents[1]
    installed = package / "_experiments"
    return installed if installed.is_dir() else package.parents[1] / "experiments"


def find(where: Path) -> list[Claim]:
    """All claims of the folder, in order. Nothing is loaded, so a broken module does no harm here."""
    found: dict[str, Claim] = {}
    for path in where.glob("*/*.py"):
        text = path.read_text(encoding="utf-8")
        if (line := re.search(r"^CLAIM\b.*", text, re.M)) is None:
            continue
        literal = re.match(r"CLAIM(?:: \S+)?\s*=\s*[\"']([A-Z]+-\d+)[\"']", line[0])
        if literal is None:
            raise ValueError(f'{path}: {line[0]}: CLAIM must be written like CLAIM = "CEI-4"')
        if literal[1] in found:
            raise ValueError(f"{literal[1]} is claimed twice: {found[literal[1]].path} and {path}")
        found[literal[1]] = Claim(literal[1], first_line(text), path)
    if not found:
        raise ValueError("no experiments are installed; they come with the source of limen")
    order = _order(where / "__init__.py")

    def place(claim: Claim) -> tuple[int, str, str, int]:
        listed = order.index(claim.group) if claim.group in order else len(order)
        prefix, _, number = claim.id.partition("-")
        return listed, claim.group, prefix, int(number)

    return sorted(found.values(), key=place)


def choose(claims: Sequence[Claim], words: Sequence[str]) -> list[Claim]:
    """Those that the words name, by id or by paper; no words name all of them."""
    for word in words:
        if not any(word.lower() in claim.names for claim in claims):
            known = ", ".join(claim.id for claim in claims)
            raise ValueError(f"there is no claim {word!r}; there are: {known}")
    wanted = {word.lower() for word in words}
    return [claim for claim in claims if not wanted or wanted & claim.names]


def heading(claims: Sequence[Claim], group: str) -> str:
    """The name of a paper: the first line of its folder's `__init__.py`, else the folder's name."""
    first = next(claim.path for claim in claims if claim.group == group).parent / "__init__.py"
    return (first_line(first.read_text(encoding="utf-8")) if first.exists() else "") or group


def first_line(text: str) -> str:
    """Of a module's docstring, as a heading."""
    try:
        told = ast.get_docstring(ast.parse(text)) or ""
    except SyntaxError:
        return ""
    return told.partition("\n")[0].strip().removesuffix(".")


def _order(path: Path) -> list[str]:
    if not path.exists():
        return []
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        target = node.targets[0] if isinstance(node, ast.Assign) else None
        if isinstance(target, ast.Name) and target.id == "ORDER" and isinstance(node, ast.Assign):
            return list(ast.literal_eval(node.value))
    return []
