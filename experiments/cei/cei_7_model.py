"""The storage model, and what of a search depends on the number of queries (sections 3.3 and 4)."""

from __future__ import annotations

from typing import Any

from limen.reproduce import Check, Verdict

from ..judging import (
    Results,
    doubling,
    lines,
    logarithmic,
    microseconds,
    ns,
    number,
)
from ..timing import half_open, measured

CLAIM = "CEI-7"
PAPER = (
    "An index takes 4N + 8 n mu bytes; the time to find the lists over a value does not depend on n, "
    "only reporting their ids grows with it."
)
SCALES = {
    "full": {
        "scale": "the paper's: r = 1,048,576, W = 200, L = 16, n = 5,000..640,000, 50,000 searches",
        "r": 1_048_576,
        "w": 200,
        "L": 16,
        "sizes": [5000, 20_000, 80_000, 320_000, 640_000],
        "searches": 50_000,
    },
    "quick": {
        "scale": "n and r divided by 100: r = 10,486, n = 50..6,400; 2,000 searches",
        "r": 10_486,
        "w": 200,
        "L": 16,
        "sizes": [50, 800, 6400],
        "searches": 2000,
    },
}
CONSTRUCTS = ["ui", "lci-bv-dt", "cei-plain"]
NAMES = {"ui": "UI", "lci-bv-dt": "LCI", "cei-plain": "CEI", "is-list": "IS-lists"}


def cases(parameters: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"name": f"n={n:,}", "n": n} for n in parameters["sizes"]]


def run(parameters: dict[str, Any], case: dict[str, Any]) -> dict[str, Any]:
    queries = half_open(case["n"], parameters["r"], parameters["w"], parameters["searches"])
    return measured([*CONSTRUCTS, "is-list"], queries, parameters["L"], find=True)


def verdict(parameters: dict[str, Any], results: Results) -> Verdict:
    checks = []
    first, last = results[0][1], results[-1][1]
    for name in CONSTRUCTS:
        bytes_ = [
            result["sizes"][name]["nbytes"] / result["sizes"][name]["model"]
            for _, result in results
        ]
        checks.append(
            Check.of(
                f"{NAMES[name]}: the arrays take what the model says",
                all(abs(b - 1) < 0.05 for b in bytes_),
                "4N + 8 n mu",
                f"{min(bytes_):.4f} to {max(bytes_):.4f} times that",
            )
        )
    grown: dict[str, tuple[float, float]] = {}
    for name in CONSTRUCTS:
        find = ns(last, name, "find") / ns(first, name, "find")
        whole = ns(last, name) / ns(first, name)
        grown[name] = find, whole
        checks.append(
            Check.of(
                f"{NAMES[name]}: finding the lists does not depend on n",
                0.5 < find < 2,
                "independent of n",
                f"{number(find)} times from n = {parameters['sizes'][0]:,} to "
                f"{parameters['sizes'][-1]:,}, search and report {number(whole)} times",
                direction=find < whole / 2,
            )
        )
    find, whole = grown["cei-plain"]
    skip = ns(last, "is-list", "find") / ns(first, "is-list", "find")
    return Verdict(
        checks,
        f"with {number(last['hits'] / first['hits'])} times as many ids to report, CEI's search takes "
        f"{number(whole)} times as long, finding its lists {number(find)} times",
        "Measured bytes leave out the table of the queries by id (17 bytes a query), which the paper's "
        "programs do without: they are given the interval again to delete it. CEI's arrays have 2L heads "
        "a segment where the paper counts 2L - 1. Heads are read whether there is a list or not; what "
        "differs with n is how often the processor guesses right that there is none. IS-lists, drawn "
        f"beside, depend on n in finding too: {number(skip)} times over the same n.",
    )


def draw(parameters: dict[str, Any], results: Results, figure: Any) -> None:
    left, right = figure.subplots(1, 2)
    names = [*CONSTRUCTS, "is-list"]
    for name in CONSTRUCTS:
        points = [(case["n"], {name: r["sizes"][name]["nbytes"] / 1e6}) for case, r in results]
        lines(left, points, named={**NAMES, name: f"{NAMES[name]}, measured"})
        left.plot(
            [case["n"] for case, _ in results],
            [r["sizes"][name]["model"] / 1e6 for _, r in results],
            ":",
            color="black",
            lw=2.5,
            alpha=0.5,
            label="4N + 8 n mu" if name == CONSTRUCTS[-1] else None,
        )
    left.set_title("storage: measured on the model's lines")
    left.set_ylabel("index storage (MB)")
    lines(right, microseconds(results, names, "n", "find"), named=NAMES)
    for line in right.get_lines():
        line.set_linestyle("--")
    before = len(right.get_lines())
    lines(right, microseconds(results, names, "n"), named=NAMES)
    for line in right.get_lines()[before:]:
        line.set_label("_")
    right.set_title("finding lists (dashed), and the whole search")
    right.set_ylabel("average time (µs)")
    for axes in (left, right):
        logarithmic(axes)
        axes.legend(fontsize=9)
        doubling(axes, parameters["sizes"], "number of queries n")
