"""Storage and search time as queries grow wider, with interval skip lists (Fig. 17)."""

from __future__ import annotations

from typing import Any

from limen.reproduce import Check, Verdict

from ..judging import (
    LOOKS,
    Results,
    doubling,
    lines,
    logarithmic,
    microseconds,
    model_mb,
    number,
    ratio,
    slower,
)
from ..timing import half_open, measured

CLAIM = "CEI-5"
PAPER = (
    "Every index over virtual constructs searches faster than IS-lists at every W; at W = 10 CEI takes "
    "about 1/20 of their time. IS-lists need more storage than LCI and CEI, and less than UI when W is "
    "large."
)
SCALES = {
    "full": {
        "scale": "the paper's: r = 65,536, n = 50,000, L = 16, W = 10..320, 50,000 searches",
        "n": 50_000,
        "r": 65_536,
        "L": 16,
        "widths": [10, 20, 40, 80, 160, 320],
        "searches": 50_000,
    },
    "quick": {
        "scale": "n, r and the searches divided by 25: r = 2,621, n = 2,000",
        "n": 2000,
        "r": 2621,
        "L": 16,
        "widths": [10, 40, 320],
        "searches": 2000,
    },
}
CONSTRUCTS = ["ui", "lci-bv-dt", "cei-plain"]
PAPERS = [*CONSTRUCTS, "is-list"]
LCI = {"lci-bv-dt": "LCI"}


def cases(parameters: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"name": f"W={width}", "W": width} for width in parameters["widths"]]


def run(parameters: dict[str, Any], case: dict[str, Any]) -> dict[str, Any]:
    queries = half_open(parameters["n"], parameters["r"], case["W"], parameters["searches"])
    return measured([*PAPERS, "cei"], queries, parameters["L"], find=True)


def verdict(parameters: dict[str, Any], results: Results) -> Verdict:
    def size(result: dict[str, Any], name: str) -> float:
        return float(result["sizes"][name]["model"])

    every = [result for _, result in results]
    narrow, wide = every[0], every[-1]
    first, last = parameters["widths"][0], parameters["widths"][-1]
    factor = ratio(narrow, "is-list", "cei-plain")
    found = ratio(narrow, "is-list", "cei-plain", "find")
    more = [size(r, "is-list") / max(size(r, "lci-bv-dt"), size(r, "cei-plain")) for r in every]
    less = [size(r, "ui") / size(r, "is-list") for r in (narrow, wide)]
    checks = [
        *(
            slower(
                f"{LCI.get(name, LOOKS[name][0])} searches faster than IS-lists at every W",
                "at every W",
                every,
                "is-list",
                name,
            )
            for name in CONSTRUCTS
        ),
        Check.of(
            f"at W = {first} IS-lists take about 20 times as long as CEI",
            factor.middle >= 15,
            "almost 20",
            f"{factor}; finding lists alone {found}",
            direction=factor.middle > 1,
        ),
        Check.of(
            "IS-lists need more storage than LCI and CEI",
            all(m > 1 for m in more),
            "at every W",
            "IS-lists / the larger of the two: " + ", ".join(number(m) for m in more),
            direction=sum(m > 1 for m in more) > len(more) / 2,
        ),
        Check.of(
            f"IS-lists need less storage than UI at W = {last}",
            less[1] > 1,
            "when W is large",
            f"UI / IS-lists: {number(less[1])}, and {number(less[0])} at W = {first}",
        ),
    ]
    return Verdict(
        checks,
        f"IS-lists take {factor} times as long as CEI at W = {first} and "
        f"{ratio(wide, 'is-list', 'cei-plain')} times at W = {last}",
        "The paper ran the C++ program of the inventors of IS-lists against its own; here both are "
        "compiled alike and keep their ids in the same linked lists, so that the figure tells what the "
        f"structures differ by. To find the lists takes IS-lists {found} times as long at W = {first}; "
        "the report, the same ids for all, makes it less. UI has one list to find, but many "
        "times the entries, and following one long list is a wait for memory at every id (see CEI-4).",
    )


def draw(parameters: dict[str, Any], results: Results, figure: Any) -> None:
    left, right = figure.subplots(1, 2)
    lines(left, model_mb(results, PAPERS, "W"), named=LCI)
    lines(right, microseconds(results, [*PAPERS, "cei"], "W"), named=LCI)
    left.set_title("Fig. 17(a): storage")
    right.set_title("Fig. 17(b): search and report")
    left.set_ylabel("index storage (MB)")
    right.set_ylabel("average search time (µs)")
    for axes in (left, right):
        logarithmic(axes)
        doubling(axes, parameters["widths"], "maximum query width W")
    right.legend(fontsize=9)
