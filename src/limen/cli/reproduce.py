"""`limen reproduce`: the papers' claims, each an experiment with a verdict and a figure.

What a case gives is kept in OUT, so a run that was stopped goes on where it was. The report holds every
claim that has results there. A claim that does not hold is a finding; only an experiment that fails to
run makes the exit code 1.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rich.progress import Progress

    from limen.reproduce.claim import Claim, Kind
    from limen.reproduce.runner import Outcome, Step
    from limen.reproduce.store import Store

COLOURS: dict[Kind, str] = {"holds": "green", "direction": "yellow", "fails": "red"}


def reproduce(
    claims: Annotated[
        list[str] | None,
        typer.Argument(help="Such as CEI-4, or CEI for a whole paper; none for a list."),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Small sizes, minutes.")] = False,
    full: Annotated[
        bool, typer.Option("--full", help="The papers' sizes: what claims run at by default.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
    out: Annotated[
        Path, typer.Option("--out", help="The folder for results, figures and the report.")
    ] = Path("out/reproduce"),
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Measure again what is kept of an earlier run.")
    ] = False,
) -> None:
    """Check the papers' claims: a verdict and a figure for each, and a report; alone, list them."""
    from limen.reproduce import claim
    from limen.reproduce.store import Store

    if quick and full:
        raise ValueError("--quick and --full: choose one of them")
    known = claim.find(claim.folder())
    chosen = claim.choose(known, claims or [])
    claim.forget()
    store = Store(out, claim.folder())
    if claims or quick or full:
        _run(known, chosen, "quick" if quick else "full", store, fresh, as_json)
    elif as_json or fresh:
        raise ValueError(
            f"--{'json' if as_json else 'fresh'} is for a run: name claims, or give --quick or --full"
        )
    else:
        _list(known, store)


# -- the list ------------------------------------------------------------------------------------


def _list(claims: Sequence[Claim], store: Store) -> None:
    from rich.console import Console
    from rich.text import Text

    from limen.reproduce.claim import SCALES, heading

    console = Console(highlight=False, soft_wrap=True)
    wide = max(len(claim.id) for claim in claims)
    scales = SCALES[::-1]
    console.print(f"  {'':{wide}}  {'full':14} {'quick':14}".rstrip(), style="dim")
    for group in dict.fromkeys(claim.group for claim in claims):
        console.print(heading(claims, group), style="bold", markup=False)
        for claim in claims:
            if claim.group == group:
                line = Text(f"  {claim.id:{wide}}  ")
                for told, colour in (_state(claim, scale, store) for scale in scales):
                    line.append(f"{told:14} ", colour)
                line.append(claim.title)
                line.rstrip()
                console.print(line)


def _state(claim: Claim, scale: str, store: Store) -> tuple[str, str]:
    """The verdict on kept results or how many there are, and a colour."""
    from limen.reproduce.claim import SHORT
    from limen.reproduce.runner import ExperimentError, judged, plan

    if not store.has(scale, claim.id):
        return "-", "dim"
    try:
        with redirect_stdout(sys.stderr):
            planned = plan(claim, scale, store)
            found = [one for one in planned.measured() if one is not None]
            if len(found) < len(planned.cases):
                return (f"{len(found)} of {len(planned.cases)} cases" if found else "-"), "dim"
            kind = judged(planned, found).verdict.kind
    except ExperimentError:
        return "broken", "red"
    return SHORT[kind], COLOURS[kind]


# -- a run ---------------------------------------------------------------------------------------


def _run(
    known: Sequence[Claim],
    chosen: Sequence[Claim],
    scale: str,
    store: Store,
    fresh: bool,
    as_json: bool,
) -> None:
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise ValueError("limen reproduce needs matplotlib: pip install 'limen[plot]'") from None
    store.out.mkdir(parents=True, exist_ok=True)
    with TemporaryFile(dir=store.out):  # not after the first case that it cannot be written
        pass
    from limen.reproduce import runner
    from limen.reproduce.report import duration, figure_of, write_report

    failures: list[str] = []
    outcomes: list[Outcome] = []
    figures: list[Path] = []
    report = None
    with redirect_stdout(sys.stderr):  # what an experiment prints is not our answer
        try:
            with _display() as display:
                for one in runner.run(chosen, scale, store, display.step, fresh):
                    try:
                        if isinstance(one, runner.ExperimentError):
                            raise one
                        figures.append(figure_of(one, store.out))
                    except runner.ExperimentError as failed:
                        failures.append(str(failed))
                        continue
                    outcomes.append(one)
                    display.say(f"{one.claim.id}: {one.verdict.word} ({duration(one.seconds)})")
        except KeyboardInterrupt:
            again = "the same command without --fresh" if fresh else "the same command"
            print(
                f"stopped; the finished cases are kept in {store.out}, {again} goes on from there",
                file=sys.stderr,
            )
            raise
        others = [claim for claim in known if claim not in chosen]
        every = [*outcomes, *_kept(others, scale, store)]
        if every:
            report = write_report(known, every, scale, store.out)
    if as_json:
        told = [_told(one, path) for one, path in zip(outcomes, figures, strict=True)]
        print(json.dumps(told, indent=2, ensure_ascii=False))
    else:
        _show(outcomes)
        if report is not None:
            print(f"\nreport: {report}")
    for failure in failures:
        print(f"limen: {failure}", file=sys.stderr)
    if failures:
        raise typer.Exit(1)


def _kept(claims: Sequence[Claim], scale: str, store: Store) -> Iterator[Outcome]:
    """What the report has besides, of earlier runs."""
    from limen.reproduce import runner
    from limen.reproduce.report import figure_of

    for one in runner.kept(claims, scale, store):
        try:
            if isinstance(one, runner.ExperimentError):
                raise one
            figure_of(one, store.out)
            yield one
        except runner.ExperimentError as failed:
            print(f"left out of the report: {failed}", file=sys.stderr)


def _told(outcome: Outcome, figure: Path) -> dict[str, str]:
    return {
        "claim": outcome.claim.id,
        "verdict": outcome.verdict.word,
        "paper": outcome.plan.experiment.paper,
        "measured": outcome.verdict.measured,
        "scale": outcome.scale,
        "figure": str(figure),
        "note": outcome.verdict.note,
    }


def _show(outcomes: Sequence[Outcome]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    if not outcomes:
        return
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 1, 0))
    table.add_column("claim", no_wrap=True)
    table.add_column("verdict", max_width=19)  # holds in direction,
    table.add_column("measured", overflow="fold", ratio=1)
    for outcome in outcomes:
        verdict = outcome.verdict
        table.add_row(
            Text(outcome.claim.id),
            Text(verdict.word, COLOURS[verdict.kind]),
            Text(verdict.measured),
        )
    Console(highlight=False).print(table)


# -- progress ------------------------------------------------------------------------------------


class Display:
    """How far a run is: a bar below the lines on a terminal, else only lines."""

    def __init__(self, bar: Progress | None) -> None:
        self._bar = bar
        self._task: Any = None if bar is None else bar.add_task("", total=None)

    def say(self, text: str) -> None:
        if self._bar is None:
            print(text, file=sys.stderr, flush=True)
        else:
            self._bar.console.print(text, markup=False, highlight=False)

    def step(self, step: Step) -> None:
        if not step.name:
            self.say(
                f"{step.claim}: {step.number} of {step.cases} cases kept from an earlier run, "
                "--fresh measures again"
            )
        elif self._bar is None:
            self.say(f"{step.claim}, case {step.number} of {step.cases}: {step.name}")
        if self._bar is not None:
            told = f"{step.claim}: {step.name}" if step.name else step.claim
            self._bar.update(self._task, completed=step.done, total=step.total, description=told)


@contextmanager
def _display() -> Iterator[Display]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
    from rich.table import Column

    console = Console(stderr=True)
    if not console.is_terminal:
        yield Display(None)
        return
    text = TextColumn("{task.description}", markup=False, table_column=Column(no_wrap=True))
    columns = BarColumn(20), MofNCompleteColumn(), TextColumn("cases"), TimeElapsedColumn(), text
    with Progress(*columns, console=console, transient=True) as bar:
        yield Display(bar)
