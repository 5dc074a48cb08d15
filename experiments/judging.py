"""How timed claims are judged and drawn; nothing here has a part in what is measured.

Results are those of `timing.py`: by order and index the times of the rounds, and the sizes.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator, NullFormatter

from limen.plotting.style import BLUE, GREEN, GREY, ORANGE, VERMILION, short
from limen.reproduce import Check

Results = list[tuple[dict[str, Any], dict[str, Any]]]
TOLD = {
    "random": "with the report",
    "sorted": "values in order",
    "laid": "lists laid out",
    "single": "a call for each value",
    "find": "finding lists alone",
}
TIE = 1.02  # what is less apart is not told apart here


class Ratio(NamedTuple):
    middle: float
    least: float
    most: float

    def __str__(self) -> str:
        return f"{number(self.middle)} ({number(self.least)}..{number(self.most)})"


def ratio(result: dict[str, Any], of: str, to: str, order: str = "random") -> Ratio:
    """How many times as long a search of one takes as one of the other."""
    pairs = zip(result[order][of], result[order][to], strict=True)
    ratios = [a / b for a, b in pairs]
    return Ratio(statistics.median(ratios), min(ratios), max(ratios))


def slower(
    says: str,
    paper: str,
    results: Sequence[dict[str, Any]],
    slow: str,
    fast: str,
    judged: str = "random",
    *,
    least: float = TIE,
    most: float = math.inf,
) -> Check:
    """A check that one index takes longer than another at every point, in the order that is judged.

    At the last point it must be `least` times as long, and nowhere more than `most` times. It holds in
    direction if it is so at most of the points.
    """
    times = {
        order: [ratio(result, slow, fast, order).middle for result in results]
        for order in TOLD
        if all(slow in result.get(order, ()) for result in results)
    }
    usual = times.pop(judged)
    beside = "; ".join(f"{TOLD[order]} {span(times[order])}" for order in times)
    return Check.of(
        says,
        all(TIE < t <= most for t in usual) and usual[-1] >= least,
        paper,
        f"{LOOKS[slow][0]} / {LOOKS[fast][0]}: {', '.join(map(number, usual))} ({beside})",
        direction=sum(t > TIE for t in usual) > len(usual) / 2,
    )


def ns(result: dict[str, Any], name: str, order: str = "random") -> float:
    return statistics.median(result[order][name])


def span(values: Iterable[float]) -> str:
    """The least and the greatest of some numbers, in short."""
    found = list(values)
    return f"{number(min(found))} to {number(max(found))}"


def number(value: float) -> str:
    return f"{value:.3g}" if value < 10 else f"{value:,.0f}"


# -- pictures ------------------------------------------------------------------------------------

PURPLE, SKY, BLACK = "#CC79A7", "#56B4E9", "#2B3138"
LOOKS = {
    "ui": ("UI", GREY, "s"),
    "dlist": ("Dlist", GREY, "s"),
    "lci": ("LCI", ORANGE, "^"),
    "lci-bc": ("LCI-BC", SKY, "v"),
    "lci-bv": ("LCI-BV", PURPLE, "D"),
    "lci-bv-dt": ("LCI-BV(DT)", GREEN, "P"),
    "sci": ("SCI", BLACK, "X"),
    "sci-bc": ("SCI-BC", VERMILION, "h"),
    "cei-plain": ("CEI", BLUE, "o"),
    "is-list": ("IS-lists", VERMILION, "*"),
    "cei": ("Limen's CEI", BLACK, "."),
}


def lines(
    axes: Axes,
    points: Sequence[tuple[float, dict[str, float]]],
    *,
    named: dict[str, str] | None = None,
) -> None:
    """A line an index, over the values of x; an index may be missing at some of them."""
    for name in LOOKS:
        mine = [(x, values[name]) for x, values in points if name in values]
        if mine:
            label, colour, marker = LOOKS[name]
            xs, ys = zip(*mine, strict=True)
            dashed = "--" if name == "cei" else "-"
            axes.plot(
                xs,
                ys,
                dashed,
                color=colour,
                marker=marker,
                ms=5,
                lw=1.5,
                label=(named or {}).get(name, label),
            )


def doubling(axes: Axes, ticks: Sequence[float], label: str) -> None:
    """A logarithmic axis with these values on it."""
    axes.set_xscale("log", base=2)
    axes.set_xticks(list(ticks), [short(tick) for tick in ticks], rotation=0, fontsize=9)
    axes.minorticks_off()
    axes.set_xlabel(label)


def logarithmic(axes: Axes) -> None:
    """A logarithmic vertical axis with plain numbers on it."""
    axes.set_yscale("log")
    low, high = axes.get_ylim()
    steps = (1.0, 2.0, 5.0) if high / low < 300 else (1.0,)
    axes.yaxis.set_major_locator(LogLocator(subs=steps))
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:,g}")
    axes.yaxis.set_minor_formatter(NullFormatter())


def model_mb(
    results: Results, names: Sequence[str], x: str
) -> list[tuple[float, dict[str, float]]]:
    """Storage by the papers' count, in MB."""
    return [
        (case[x], {n: result["sizes"][n]["model"] / 1e6 for n in names if n in result["sizes"]})
        for case, result in results
    ]


def microseconds(
    results: Results, names: Sequence[str], x: str, order: str = "random"
) -> list[tuple[float, dict[str, float]]]:
    return [
        (case[x], {n: ns(result, n, order) / 1000 for n in names if n in result[order]})
        for case, result in results
    ]
