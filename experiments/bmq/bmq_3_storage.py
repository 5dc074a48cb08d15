"""Storage of BMQ-Index and of the indexes that DiffRMQ needs (Fig. 9)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from limen.plotting.style import BLUE, ORANGE, VERMILION, short
from limen.reproduce import Check, Verdict

from ..judging import BLACK, Results, logarithmic, number, span
from ..timing import Queries, storage
from .workload import Fed, bmq, queries

CLAIM = "BMQ-3"
PAPER = (
    "BMQ-Index takes 2 N + Nd words, whatever the width of the queries; CEI takes much more, and rapidly "
    "more as queries grow wider; IS-lists take more too, and depend less on the width."
)
SCALES: dict[str, dict[str, Any]] = {
    "full": {
        "scale": "the paper's: D = 1,000,000, 2,000 streams, N = 10,000..100,000 at W = 0.1 %, "
        "W = 0.01..0.1 % at N = 100,000; CEI with L = 16",
        "domain": 1_000_000,
        "streams": 2000,
        "length": 16,
        "sizes": [10_000 * i for i in range(1, 11)],
        "widths": [0.01 * i for i in range(1, 11)],
    },
    "quick": {
        "scale": "N, D and the streams divided by 10, queries as wide as the paper's: D = 100,000, "
        "N = 1,000..10,000, W = 0.1..1 %",
        "domain": 100_000,
        "streams": 200,
        "length": 16,
        "sizes": [1000, 5000, 10_000],
        "widths": [0.1, 0.5, 1.0],
    },
}
WORD = 8
RS_LIST = ("keys", "bases", "top", "ids", "starts", "marks", "open_ids", "open_lists")
RIVALS = {"cei-plain": "CEI", "is-list": "IS-lists"}
LOOKS = {
    "bmq": ("BMQ-Index", BLUE, "o", "-"),
    "words": ("2 N + Nd words of 8 bytes", BLUE, "", ":"),
    "rs-list": ("the same without frames", BLUE, ".", "--"),
    "cei-plain": ("CEI, L = 16", ORANGE, "^", "-"),
    "is-list": ("IS-lists", VERMILION, "*", "-"),
    "cei": ("Limen's CEI", BLACK, ".", "--"),
}


def cases(parameters: dict[str, Any]) -> list[dict[str, Any]]:
    n, w = parameters["sizes"][-1], parameters["widths"][-1]
    points = [(size, w) for size in parameters["sizes"]]
    points += [(n, width) for width in parameters["widths"][:-1]]
    return [{"name": f"N={n:,} W={w:g} %", "N": n, "W": w} for n, w in points]


def run(parameters: dict[str, Any], case: dict[str, Any]) -> dict[str, Any]:
    lo, hi = queries(case["N"], case["W"] / 100, parameters["domain"])
    index = bmq(lo, hi)
    fed = Fed(index, parameters["streams"])
    fed.feed(np.zeros((1, parameters["streams"], 1), np.int64))
    arrays, _ = index.parts()
    domain = range(int(hi.max()) + 1)
    same = Queries(lo[:, 0].copy(), hi[:, 0].copy(), lo[:1, 0], domain, "closed")
    rivals = storage([*RIVALS, "cei"], same, parameters["length"])
    return {
        "bmq": index.nbytes,
        "rs-list": sum(arrays[name].nbytes for name in RS_LIST),
        "table": fed.streams.nbytes + fed.places.nbytes,
        "words": WORD * (2 * case["N"] + parameters["streams"]),
        "rivals": rivals,
    }


def taken(result: dict[str, Any], name: str) -> float:
    """Bytes; of the rivals as measured, without their table of the queries by id."""
    if name in ("bmq", "rs-list"):
        return float(result[name] + result["table"])
    return float(result["words"] if name == "words" else result["rivals"][name]["nbytes"])


def _sweeps(parameters: dict[str, Any], results: Results) -> tuple[Results, Results]:
    n, w = parameters["sizes"][-1], parameters["widths"][-1]
    by_width = [point for point in results if point[0]["N"] == n]
    return (
        [point for point in results if point[0]["W"] == w],
        sorted(by_width, key=lambda point: float(point[0]["W"])),
    )


def verdict(parameters: dict[str, Any], results: Results) -> Verdict:
    by_number, by_width = _sweeps(parameters, results)

    def spread(name: str) -> float:
        found = [taken(r, name) for _, r in by_width]
        return max(found) / min(found)

    def grown(name: str) -> float:
        return taken(by_width[-1][1], name) / taken(by_width[0][1], name)

    words = [taken(r, "bmq") / r["words"] for _, r in by_number]
    ours = [taken(r, "cei") / taken(r, "bmq") for _, r in results]
    frames = [1 - (r["rs-list"] / r["bmq"]) for _, r in results]
    checks = [
        Check.of(
            "BMQ-Index takes 2 N + Nd words",
            all(1 / 2 < w < 2 for w in words) and max(words) / min(words) < 1.25,
            "2 N + Nd (section 3.4)",
            f"{span(words)} times that at 8 bytes a word, N = {parameters['sizes'][0]:,} to "
            f"{parameters['sizes'][-1]:,}",
            direction=max(words) / min(words) < 1.25,
        ),
        Check.of(
            "its RS list and stream table take the same whatever the width",
            spread("rs-list") < 1.01,
            "constant (Fig. 9(b))",
            f"{number(spread('rs-list'))} times from the least to the greatest; with the frames, which "
            f"the paper does not have, {number(spread('bmq'))} times",
            direction=spread("rs-list") < 1.25,
        ),
        *(_below(label, name, results) for name, label in RIVALS.items()),
        Check.of(
            "the storage of CEI increases rapidly with the width",
            grown("cei-plain") > 2,
            "rapidly (Fig. 9(b))",
            f"{number(grown('cei-plain'))} times from W = {by_width[0][0]['W']:g} to "
            f"{by_width[-1][0]['W']:g} %",
            direction=grown("cei-plain") > 1.1,
        ),
        Check.of(
            "that of IS-lists is less affected",
            1 / 1.1 < grown("is-list") < grown("cei-plain"),
            "less",
            f"{number(grown('is-list'))} times",
        ),
    ]
    last = by_number[-1][1]
    told = ", ".join(
        f"{LOOKS[name][0]} {number(taken(last, name) / 1e6)}"
        for name in ("bmq", "cei-plain", "is-list", "cei")
    )
    return Verdict(
        checks,
        f"MB at N = {parameters['sizes'][-1]:,} and W = {parameters['widths'][-1]:g} %: {told}",
        "Storage is that of the arrays, with BMQ-Index's stream table and without the rivals' table of "
        "the queries by id, which DiffRMQ does not need. A border takes less than a word here: 4 bytes "
        f"of an id and 2 or 4 of its place. The frames are {span(100 * f for f in frames)} % of it. "
        "The paper does not give the L of its CEI; with the 16 of CEI's own paper a wide query is in "
        "many lists, as it says, with a larger L in fewer. CEI is judged as its paper has it; the index "
        f"that Limen uses takes {span(ours)} times as much as BMQ-Index.",
    )


def _below(label: str, name: str, results: Results) -> Check:
    times = [taken(r, name) / taken(r, "bmq") for _, r in results]
    counted = [r["rivals"][name]["model"] / r["words"] for _, r in results]
    return Check.of(
        f"BMQ-Index takes less than {label}, at every N and W",
        min(*times, *counted) > 1,
        "much less (Fig. 9)",
        f"{label} / BMQ-Index: {span(times)}; as the papers count, {span(counted)}",
        direction=sum(t > 1 for t in times) > len(times) / 2,
    )


def draw(parameters: dict[str, Any], results: Results, figure: Any) -> None:
    panels = figure.subplots(1, 2)
    titles = ("Fig. 9(a): the effect of N", "Fig. 9(b): the effect of W")
    for axes, mine, by, title, label in zip(
        panels,
        _sweeps(parameters, results),
        ("N", "W"),
        titles,
        ("number of queries", "width of queries (%)"),
        strict=True,
    ):
        xs = [case[by] for case, _ in mine]
        for name, (told, colour, marker, dashes) in LOOKS.items():
            ys = [taken(r, name) / 1e6 for _, r in mine]
            axes.plot(xs, ys, dashes, color=colour, marker=marker, ms=5, lw=1.5, label=told)
        axes.set_title(title)
        axes.set_xlabel(label)
        axes.set_ylabel("index storage (MB)")
        axes.set_xticks(xs[:: max(1, len(xs) // 5)], list(_ticks(xs[:: max(1, len(xs) // 5)])))
        logarithmic(axes)
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, fontsize=9)


def _ticks(xs: list[float]) -> Iterator[str]:
    return (short(round(x, 4)) for x in xs)
