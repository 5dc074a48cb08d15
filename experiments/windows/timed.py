"""What the timed claims on archives share: layouts measured in turn, and how that is judged.

All layouts of a case hold the same results and take the same updates in the same run: update j of every
layout, one after the other (who begins changes from round to round), then a few probes of random keys
and every few rounds a scan. A comparison is the median of the ratios within the rounds, with the least
and the greatest. Results are made outside of the clock; an update is on disk when its time ends. Before
probes and scans are timed one is made that is not: the first gets its memory anew.

What an update costs varies over a cycle if a layout is chronological or lazy: a row or column is filled,
then another. So such archives begin in mid-cycle: they are made empty as long before time 0 as it takes.
That is not yet the mean: a few updates in mid-cycle move up to a quarter more than that (LazyRebuild5x5),
and those after a fresh build a seventh less (NoRebuild4x4, whose files are not yet many). So updates are
compared by `even`: times scaled to the bytes of a whole window, which `counted` gives as "whole".

Times are noisy. Beside them stands what does not depend on the clock: sub-indices touched, bytes read and
written by an update, as its receipt has them. `counted` collects only these, over many updates of a
smaller archive.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import timedelta
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
from matplotlib.axes import Axes

from limen.archive import Archive
from limen.archive.layouts import CHRONOLOGICAL, LAZY, Layout
from limen.plotting.style import BLUE, GREEN, GREY, ORANGE, VERMILION
from limen.reproduce import Check
from limen.testing.joined import Joined

from ..judging import BLACK, PURPLE, SKY, TIE, Ratio, number, ratio

Result = dict[str, Any]
Pair = tuple[Result, str, str]  # of a result: who is slow, who is fast
COSTS = ("touched", "read", "written", "inserted")


@dataclass(frozen=True)
class Run:
    """An archive of a case. `invalid`: so many keys lose their results before each update."""

    name: str
    layout: str
    workload: Joined
    invalid: int = 0


def workload(parameters: dict[str, Any], **more: Any) -> Joined:
    return Joined(rows=parameters["rows"], row_bytes=parameters["row_bytes"], **more)


def runs(layouts: Iterable[str], work: Joined) -> list[Run]:
    return [Run(name, name, work) for name in layouts]


# -- measuring -------------------------------------------------------------------------------------


def measured(
    every: Sequence[Run], rounds: int, probes: int, scan_every: int = 0, seed: int = 1
) -> Result:
    """Seconds of updates, of a probe and of scans by round and archive, and what the updates did."""
    rng = np.random.default_rng(seed)
    with ExitStack() as stack:
        archives = _opened(every, rounds, stack)
        found = _Found([run.name for run in every])
        for j in range(1, rounds + 1):
            new = {run.workload: run.workload.update(j) for run in every}
            asked, invalid = _drawn(rng, every[0].workload.keys, probes, every)
            for run in _turned(every, j):
                archive = archives[run.name]
                if run.invalid:
                    lost = invalid[: run.invalid]
                    found.clock(run, "invalidate", lambda a=archive, k=lost: a.invalidate(k))
                    found.note(run, "left", sum(len(archive.probe(key)) for key in lost))
                receipt = found.clock(run, "update", _updating(archive, run, j, new[run.workload]))
                found.receipt(run, receipt)
                found.note(run, "held", sum(one.bytes for one in archive.sub_indices()))
            _probing(archives[every[0].name], asked)()
            for run in _turned(every, j):
                rows = found.clock(run, "probe", _probing(archives[run.name], asked), len(asked))
                found.note(run, "rows", rows)
            if scan_every and (j - 1) % scan_every == 0:
                _scanning(archives[every[0].name])()
                for run in _turned(every, j // scan_every):
                    rows = found.clock(run, "scan", _scanning(archives[run.name]))
                    found.note(run, "scanned", rows)
    return found.all


def counted(every: Sequence[Run], updates: int) -> Result:
    """What so many updates did, one archive after the other: none of it depends on the clock."""
    found = _Found([run.name for run in every])
    for run in every:
        with ExitStack() as stack:
            archive = _opened([run], updates, stack)[run.name]
            for j in range(1, updates + 1):
                found.receipt(run, _updating(archive, run, j, run.workload.update(j))())
                found.note(run, "held", sum(one.bytes for one in archive.sub_indices()))
    return found.all


def and_whole(
    found: Result, parameters: dict[str, Any], layouts: Iterable[str], **more: Any
) -> Result:
    """With what all updates of a window do, if so many are asked for."""
    if not parameters["updates"]:
        return found
    work = workload(parameters | {"rows": parameters["counted_rows"]}, **more)
    return found | {"whole": counted(runs(layouts, work), parameters["updates"])}


class _Found:
    """Lists by what was measured and by archive."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names
        self.all: Result = {}

    def note(self, run: Run, what: str, value: float) -> None:
        lists = self.all.setdefault(what, {})
        lists.setdefault(run.name, []).append(value)

    def clock(self, run: Run, what: str, call: Callable[[], Any], parts: int = 1) -> Any:
        begin = time.perf_counter()
        value = call()
        self.note(run, what, (time.perf_counter() - begin) / parts)
        return value

    def receipt(self, run: Run, receipt: Any) -> None:
        facts = (receipt.touched, receipt.bytes_read, receipt.bytes_written, receipt.inserted)
        for what, value in zip(COSTS, facts, strict=True):
            self.note(run, what, value)


def _opened(every: Sequence[Run], rounds: int, stack: ExitStack) -> dict[str, Archive]:
    """The archives at time 0, each with a whole window."""
    folder = Path(stack.enter_context(TemporaryDirectory(prefix="limen-windows-")))
    found = {}
    for run in every:
        work = run.workload
        archive = Archive.open(
            folder / str(len(found)),
            work.schema,
            key="key",
            window=work.window,
            every=work.every,
            layout=run.layout,
            counts=work.counts if work.counted else None,
            grace=timedelta(0),
        )
        before = work.steps + _age(Layout.of(run.layout), work.steps, rounds)
        archive.update(-before * work.every, counts=_counts(work, -before))
        archive.update(0, _initial(work), counts=_counts(work, 0), catch_up=True)
        found[run.name] = archive
    return found


@lru_cache(maxsize=1)
def _initial(work: Joined) -> pa.Table:
    return work.initial()


def _counts(work: Joined, step: int) -> dict[str, int] | None:
    """Rows that counted windows have seen; before the first results they came at the steady rate."""
    if not work.counted:
        return None
    if step >= 0:
        return work.seen(step)
    sizes = {who: size for who, (_, size) in work.counts.items()}
    return {who: seen + step * sizes[who] // work.steps for who, seen in work.seen(0).items()}


def _age(layout: Layout, steps: int, rounds: int) -> int:
    """Updates after which the rounds lie in the middle of a cycle."""
    cycles = [1.0]
    if layout.choices.generation == LAZY:
        cycles.append((steps - 1) / (layout.rows - 1))
    if layout.choices.generation == CHRONOLOGICAL:
        cycles.append(steps / layout.rows)
    if layout.choices.expiration == CHRONOLOGICAL and layout.columns > 1:
        cycles.append(steps / layout.columns)
    return max(0, round((max(cycles) - rounds) / 2))


def _drawn(
    rng: np.random.Generator, keys: int, probes: int, every: Sequence[Run]
) -> tuple[list[int], list[int]]:
    """Keys to probe and keys that lose their results, from either half of the keys if there are such."""
    most = max(run.invalid for run in every)
    first = keys // 2 if most else 0
    lost = rng.choice(first, most, replace=False).tolist() if most else []
    return rng.integers(first, keys, probes).tolist(), lost


def _turned(every: Sequence[Run], by: int) -> list[Run]:
    at = by % len(every)
    return [*every[at:], *every[:at]]


def _updating(archive: Archive, run: Run, step: int, new: pa.Table) -> Callable[[], Any]:
    at, counts = step * run.workload.every, _counts(run.workload, step)
    return lambda: archive.update(at, new, counts=counts)


def _probing(archive: Archive, keys: Sequence[int]) -> Callable[[], int]:
    return lambda: sum(len(archive.probe(key)) for key in keys)


def _scanning(archive: Archive) -> Callable[[], int]:
    return lambda: sum(len(part) for part in archive.scan_batches())


# -- judging ---------------------------------------------------------------------------------------


def moved(result: Result, name: str) -> float:
    """Bytes that an update reads and writes, on average."""
    both = zip(result["read"][name], result["written"][name], strict=True)
    return statistics.mean(a + b for a, b in both)


def more_bytes(result: Result, of: str, to: str) -> float:
    """Times as many bytes: over a whole window, if that was counted."""
    whole = result.get("whole", result)
    return moved(whole, of) / max(1.0, moved(whole, to))


def even(result: Result, of: str, to: str) -> Ratio:
    """Times as long an update takes, scaled from the bytes of those timed to those of a whole window."""
    timed = moved(result, of) / max(1.0, moved(result, to))
    scale = more_bytes(result, of, to) / timed
    return Ratio(*(scale * r for r in ratio(result, of, to, "update")))


def level(result: Result, name: str, steady: str) -> float:
    """Seconds of an update likewise; `steady` moves the same at every update."""
    return even(result, name, steady).middle * seconds(result, steady)


def touched(result: Result, name: str) -> float:
    return statistics.mean(result["touched"][name])


def seconds(result: Result, name: str, what: str = "update") -> float:
    return float(statistics.median(result[what][name]))


def same(results: Iterable[Result]) -> Check:
    """That all archives of a case have found the same results."""
    wrong = total = 0
    for result in results:
        for what in ("rows", "scanned"):
            lists = list(result.get(what, {}).values())
            wrong += sum(len(set(row)) > 1 for row in zip(*lists, strict=True))
            total += sum(map(sum, lists))
    return Check.of(
        "all layouts give the same results",
        wrong == 0,
        "",
        f"{wrong} rounds differ; {total:,} results",
    )


def faster(
    says: str,
    paper: str,
    pairs: Sequence[Pair],
    what: str = "update",
    *,
    least: float = TIE,
    most: float = math.inf,
    tie: float = TIE,
) -> Check:
    """A check that the second of each pair is faster, the last of them by `least` or more.

    Nowhere by more than `most`. It holds in direction if it is so for most of them, by `tie` or more.
    """
    times = [even(*pair) if what == "update" else ratio(*pair, what) for pair in pairs]
    middles = [one.middle for one in times]
    told = f"times as long: {listed(pairs, times)}{raw(pairs) if what == 'update' else ''}"
    return Check.of(
        says,
        all(tie < m <= most for m in middles) and middles[-1] >= least,
        paper,
        told,
        direction=sum(m > tie for m in middles) > len(middles) / 2,
    )


def raw(pairs: Sequence[Pair]) -> str:
    """What stands beside times of updates: the bytes, and the times before they were scaled."""
    told = f"; as many bytes: {', '.join(number(more_bytes(*pair)) for pair in pairs)}"
    if any("whole" in result for result, *_ in pairs):
        plain = [number(ratio(*pair, "update").middle) for pair in pairs]
        told += f"; times as measured: {', '.join(plain)}"
    return told


def listed(pairs: Sequence[Pair], values: Iterable[object]) -> str:
    """Each value with the pair it is of."""
    said = [
        f"{slow} / {fast} {value}" for (_, slow, fast), value in zip(pairs, values, strict=True)
    ]
    return ", ".join(said)


def spread(ratios: Sequence[float]) -> Ratio:
    return Ratio(statistics.median(ratios), min(ratios), max(ratios))


# -- pictures --------------------------------------------------------------------------------------

LOOKS = {
    "Rebuild": (BLUE, "o", "-"),
    "NoRebuild": (GREEN, "s", "-"),
    "LazyRebuild": (SKY, "^", "-"),
    "LazyNoRebuild": (PURPLE, "v", "-"),
    "CountRebuild": (BLUE, "o", "-"),
    "CountNoRebuild": (GREEN, "s", "-"),
    "ChronologicalRebuild": (BLACK, "D", ":"),
    "R-ins": (VERMILION, "*", "--"),
    "D-ins": (ORANGE, "P", "--"),
    "WATA": (GREY, "X", "--"),
}
SHORT = {"ChronologicalRebuild": "Chronological"}


def of_family(name: str) -> str:
    return Layout.of(name).name


def lines(axes: Axes, points: Sequence[tuple[int, dict[str, float]]]) -> None:
    """A line a kind of layout over n."""
    for family, (colour, marker, dashes) in LOOKS.items():
        mine = [(n, y) for n, values in points for name, y in values.items() if name == family]
        if mine:
            xs, ys = zip(*mine, strict=True)
            axes.plot(
                xs,
                ys,
                dashes,
                color=colour,
                marker=marker,
                ms=5,
                lw=1.5,
                label=SHORT.get(family, family),
            )


def bars(axes: Axes, named: Sequence[tuple[str, float, float, float]]) -> None:
    """A bar an archive, with its least and its greatest."""
    for i, (name, middle, least, most) in enumerate(named):
        axes.bar(i, middle, color=LOOKS[of_family(name)][0], width=0.7)
        axes.plot([i, i], [least, most], color=BLACK, lw=1.2)
    axes.set_xticks(range(len(named)), [name for name, *_ in named], rotation=60, ha="right")
    axes.tick_params(axis="x", labelsize=8.5)
    axes.grid(axis="x", visible=False)


def beside(
    result: Result, name: str, to: str, what: str = "update"
) -> tuple[str, float, float, float]:
    """An archive's bar: its time as a multiple of another's."""
    return name, *(even(result, name, to) if what == "update" else ratio(result, name, to, what))
