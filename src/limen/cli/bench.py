"""`limen bench`: a benchmark against its rivals, side by side, as a table or as JSON.

A benchmark is a module in the benchmarks folder with `run(quick, progress) -> dict`; the name on the
command line is the file's, with - for _.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import json
import sys
from collections.abc import Mapping
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any

import typer

HEADINGS = ["rival", "ours", "theirs", "unit", "ratio", "goal", "holds"]


def bench(
    name: Annotated[str | None, typer.Argument(help="Which one; leave out for a list.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Smaller sizes, fewer repeats.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Measure against other libraries, both sides in one run; alone, list the benchmarks."""
    known = benchmarks(folder())
    if name is None:
        _list(known)
        return
    found = known.get(name.replace("-", "_"))
    if found is None:
        raise ValueError(f"there is no benchmark {name!r}; there are: {_names(known)}")
    result = _run(found, quick)
    if as_json:
        print(json.dumps(result, indent=2, default=str))
    else:
        _show(result)


def folder() -> Path:
    """Where the benchmarks are: in an installed package, else beside the sources."""
    package = Path(__file__).parents[1]
    installed = package / "_benchmarks"
    return installed if installed.is_dir() else package.parents[1] / "benchmarks"


def benchmarks(where: Path) -> dict[str, Path]:
    """Modules of the folder that have a `run`, by name."""
    found = {}
    for path in sorted(where.glob("*.py")):
        if not path.stem.startswith("_") and "\ndef run(" in path.read_text(encoding="utf-8"):
            found[path.stem] = path
    if not found:
        raise ValueError("no benchmarks are installed; they come with the source of limen")
    return found


def _names(known: Mapping[str, Path]) -> str:
    return ", ".join(name.replace("_", "-") for name in known)


def _list(known: Mapping[str, Path]) -> None:
    width = max(len(name) for name in known)
    for name, path in known.items():
        told = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
        print(f"{name.replace('_', '-'):<{width}}  {told.partition(chr(10))[0]}".rstrip())


def _run(path: Path, quick: bool) -> dict[str, Any]:
    from rich.console import Console

    console = Console(stderr=True)
    try:
        module = _load(path)
        if not console.is_terminal:
            return dict(module.run(quick, lambda text: print(text, file=sys.stderr, flush=True)))
        with console.status(f"{path.stem.replace('_', '-')}: starting") as status:
            return dict(module.run(quick, status.update))
    except ImportError as error:
        raise ValueError(
            f"limen bench needs the rivals: pip install 'limen[rivals]' ({error.name or error} "
            "is missing)"
        ) from None


def _load(path: Path) -> ModuleType:
    """The module, of a package made of its folder, so that it can import its neighbours."""
    package = importlib.util.module_from_spec(ModuleSpec("limen_benchmarks", None, is_package=True))
    package.__path__ = [str(path.parent)]
    sys.modules["limen_benchmarks"] = package
    return importlib.import_module(f"limen_benchmarks.{path.stem}")


def _show(result: Mapping[str, Any]) -> None:
    """A row for each rival, under the case that it is of: wide enough for 80 columns."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(highlight=False, soft_wrap=True)
    console.print(f"limen bench {result['bench']}", style="bold", markup=False)
    rows = list(result["rows"])
    cells = [_cells(row) for row in rows]
    widths = [max(len(row[i]) for row in [HEADINGS, *cells]) for i in range(len(HEADINGS))]
    for start, case in _cases(rows):
        table = Table(
            title=Text(case), title_justify="left", title_style="", box=None, pad_edge=False
        )
        for heading, width in zip(HEADINGS, widths, strict=True):
            texts = heading in ("rival", "unit", "holds")
            table.add_column(
                heading, justify="left" if texts else "right", min_width=width, header_style="dim"
            )
        for row, told in zip(rows[start:], cells[start:], strict=True):
            if str(row["case"]) != case:
                break
            failed = row.get("holds") is False
            table.add_row(*map(Text, told), style="bold red" if failed else None)
        console.print()
        console.print(table)
    console.print()
    console.print(_machine(result["machine"]), markup=False)


def _cases(rows: list[Mapping[str, Any]]) -> list[tuple[int, str]]:
    """Where the rows of each case begin."""
    names = [str(row["case"]) for row in rows]
    return [(i, name) for i, name in enumerate(names) if i == 0 or name != names[i - 1]]


def _cells(row: Mapping[str, Any]) -> list[str]:
    holds = row.get("holds")
    spread = f" ({_spread(row['spread'])})" if row.get("spread") else ""
    return [
        str(row["rival"]),
        _number(row["ours"]),
        _number(row["theirs"]),
        str(row["unit"]),
        _number(row["ratio"]) + spread,
        _number(row.get("goal")),
        "" if holds is None else "yes" if holds else "NO",
    ]


def _number(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return "" if value is None else str(value)
    if value and not 0.01 <= abs(value) < 100_000:
        return f"{value:.3g}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def _spread(value: object) -> str:
    if isinstance(value, (list, tuple)):
        return "..".join(_number(end) for end in value)
    return f"±{_number(value)}" if isinstance(value, (int, float)) else str(value)


def _machine(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {told}" for key, told in value.items())
    return str(value)
