"""What the timed claims share: the papers' queries, several indexes measured in turn, their pictures.

All indexes of a case hold the same queries and are searched for the same values in the same run, one
after the other, several rounds of it; a comparison is the median of the ratios within the rounds, with
the least and the greatest. A search gives the ids found, as in the papers. Every index goes through
the same batch call and looks up one value after the other: only the production index (`cei`) makes
use of the batch.

Measured are three orders. "random": the values in random order and the entries of the lists where
insertion has put them, as in the papers. "sorted": the same with the values in order. "laid": the
values in random order again, but every list in one stretch of memory (`compact`): today following a
list costs a wait for memory at each entry, which the papers' machines hardly knew, and this takes it out.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator, NullFormatter

from limen.indexes import create
from limen.indexes.bounded import Paper
from limen.indexes.registry import takes_length
from limen.plotting.style import BLUE, GREEN, GREY, ORANGE, VERMILION, short
from limen.reproduce import Check

Results = list[tuple[dict[str, Any], dict[str, Any]]]
ORDERS = ("random", "sorted", "laid")
BESIDE = {"sorted": "values in order", "laid": "lists laid out", "find": "finding lists alone"}
IDS = 10_000_000  # that one call may return
MOST, FEWEST = 20_000_000, 1000  # ids that a round of searches may return, but so many searches
ROUNDS, LONG = 5, 10.0  # rounds, and seconds after which three are enough


class Queries(NamedTuple):
    lo: np.ndarray
    hi: np.ndarray
    xs: np.ndarray
    domain: range
    ends: str


def half_open(n: int, r: int, w: int, searches: int, seed: int = 1) -> Queries:
    """CEI, section 5: begins uniform in 1..r-1, lengths in 1..W, values real between 1 and r."""
    rng = np.random.default_rng(seed)
    lo = rng.integers(1, r, n)
    hi = np.minimum(lo + rng.integers(1, w + 1, n), r)
    return Queries(lo, hi, rng.uniform(1, r, searches), range(r), "half-open")


def closed(n: int, r: int, w: int, searches: int, seed: int = 1) -> Queries:
    """VCI, section 5.2: begins uniform in 1..R-1, lengths in 1..W, cut off at R, values integers."""
    rng = np.random.default_rng(seed)
    lo = rng.integers(1, r, n)
    hi = np.minimum(lo + rng.integers(1, w + 1, n), r)
    return Queries(lo, hi, rng.integers(1, r + 1, searches), range(1, r + 1), "closed")


def built(name: str, queries: Queries, length: int | None) -> Any:
    index = create(
        name,
        domain=queries.domain,
        length=length if takes_length(name) else None,
        ends=queries.ends,
    )
    index.build(np.arange(len(queries.lo), dtype=np.int32), queries.lo, queries.hi)
    return index


def storage(names: Iterable[str], queries: Queries, length: int | None) -> dict[str, Any]:
    """Bytes of each index, without a search."""
    return {name: _bytes(built(name, queries, length), len(queries.lo)) for name in names}


def _bytes(index: Any, n: int) -> dict[str, Any]:
    """As the papers count, as measured, and what of that is the table of the queries by id.

    The papers' own programs are given the interval of a query again to delete it.
    """
    table = 17 * n
    held = {"nbytes": index.nbytes - table}
    if isinstance(index, Paper):
        held |= {"model": index.model_nbytes, "entries": index.entries}
    return held


def measured(
    names: Sequence[str], queries: Queries, length: int | None, find: bool = False
) -> dict[str, Any]:
    """Search times of each index in turn, in ns a value, and their bytes."""
    indexes = {name: built(name, queries, length) for name in names}
    some = queries.xs[:: max(1, len(queries.xs) // 256)]
    hits = float(indexes[names[0]].count_many(some).mean())
    values = queries.xs[: max(FEWEST, int(MOST / max(hits, 1)))]
    papers = {name: index for name, index in indexes.items() if isinstance(index, Paper)}
    found: dict[str, Any] = {}
    for order in ORDERS:
        xs = np.sort(values) if order == "sorted" else values
        if order == "laid":
            for index in papers.values():
                index.compact()
        calls = {name: _searching(index.stab_many, xs, hits) for name, index in indexes.items()}
        found[order] = _in_turn(calls, len(xs))
    if find:
        calls = {name: _searching(i.lists_many, values, 1) for name, i in papers.items()}
        found["find"] = _in_turn(calls, len(values))
    sizes = {name: _bytes(index, len(queries.lo)) for name, index in indexes.items()}
    return {"hits": hits, "sizes": sizes, **found}


def _searching(search: Callable[[Any], Any], xs: np.ndarray, hits: float) -> Callable[[], None]:
    step = max(1, int(IDS / max(hits, 1)))
    parts = [xs[i : i + step] for i in range(0, len(xs), step)]

    def call() -> None:
        for part in parts:
            search(part)

    return call


def _in_turn(calls: dict[str, Callable[[], None]], values: int) -> dict[str, list[float]]:
    times: dict[str, list[float]] = {name: [] for name in calls}
    began = time.perf_counter()
    for call in calls.values():
        call()
    for done in range(ROUNDS):
        if done >= 3 and time.perf_counter() - began > LONG:
            break
        for name, call in calls.items():
            begin = time.perf_counter()
            call()
            times[name].append((time.perf_counter() - begin) / values * 1e9)
    return times


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


def slower(says: str, paper: str, results: Sequence[dict[str, Any]], slow: str, fast: str) -> Check:
    """A check that one index takes longer than another at every point.

    It holds if that is so as in the paper, in direction if it is so for most of the points or wherever
    the lists are laid out.
    """
    times = {
        order: [ratio(result, slow, fast, order).middle for result in results]
        for order in (*ORDERS, "find")
        if all(slow in result.get(order, ()) for result in results)
    }
    usual, laid = times["random"], times["laid"]
    told = ", ".join(number(t) for t in usual)
    beside = "; ".join(
        f"{BESIDE[order]} {span(times[order])}" for order in times if order in BESIDE
    )
    return Check.of(
        says,
        all(t > 1 for t in usual),
        paper,
        f"{LOOKS[slow][0]} / {LOOKS[fast][0]}: {told} ({beside})",
        direction=sum(t > 1 for t in usual) > len(usual) / 2 or all(t > 1 for t in laid),
    )


def ns(result: dict[str, Any], name: str, order: str = "random") -> float:
    return statistics.median(result[order][name])


def span(values: Iterable[float]) -> str:
    """The least and the greatest of some numbers, in short."""
    found = list(values)
    return f"{number(min(found))} to {number(max(found))}"


def number(value: float) -> str:
    return f"{value:.2g}" if value < 10 else f"{value:,.0f}"


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
