"""Storage and search time as the longest construct L grows (Figs. 15 and 16)."""

from __future__ import annotations

import itertools
from typing import Any

from limen.reproduce import Check, Verdict

from ..judging import (
    Results,
    doubling,
    lines,
    logarithmic,
    microseconds,
    model_mb,
    ns,
    number,
    ratio,
    slower,
    span,
)
from ..timing import half_open, measured

CLAIM = "CEI-4"
PAPER = (
    "The storage of CEI falls as L grows, its search time grows slowly with L while LCI's grows fast, "
    "and CEI beats LCI in both at every L, for a large and a small domain."
)
SCALES = {
    "full": {
        "scale": "the paper's: n = 100,000, W = 200, r = 1,048,576 and 65,536, 50,000 searches",
        "n": 100_000,
        "w": 200,
        "r": [1_048_576, 65_536],
        "lengths": [2, 4, 8, 16, 32, 64, 128],
        "searches": 50_000,
    },
    "quick": {
        "scale": "n, r and the searches divided by 50: n = 2,000, W = 200, r = 20,972 and 1,311",
        "n": 2000,
        "w": 200,
        "r": [20_972, 1311],
        "lengths": [2, 16, 128],
        "searches": 1000,
    },
}
PAPERS = ["ui", "lci-bv-dt", "cei-plain"]
LCI = {"lci-bv-dt": "LCI"}


def cases(parameters: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {"name": f"r={r:,} L={length}", "r": r, "L": length}
        for r in parameters["r"]
        for length in parameters["lengths"]
    ]


def run(parameters: dict[str, Any], case: dict[str, Any]) -> dict[str, Any]:
    queries = half_open(parameters["n"], case["r"], parameters["w"], parameters["searches"])
    return measured([*PAPERS, "cei"], queries, case["L"], find=True)


def verdict(parameters: dict[str, Any], results: Results) -> Verdict:
    checks, told = [], []
    for r in parameters["r"]:
        mine = [result for case, result in results if case["r"] == r]
        checks += _storage(f"r = {r:,}", parameters["lengths"], mine)
        checks += _times(f"r = {r:,}", parameters["lengths"], mine)
        first, last = (ratio(result, "lci-bv-dt", "cei-plain") for result in (mine[0], mine[-1]))
        told.append(f"{first} to {last} times at r = {r:,}")
    return Verdict(
        checks,
        f"LCI takes {' and '.join(told)} as long as CEI, from the least to the largest L",
        "LCI is the one of the CEI paper: lists without bitmaps over the 2L - 1 constructs of a point "
        "(lci-bv-dt). Storage is the paper's count, 4N + 8 n mu: at the small r the heads of CEI weigh "
        "little, and as BestPartition needs a few constructs more than LCI's cuts (CEI-3), CEI "
        "takes slightly more, not less. To find the lists costs what the paper says, slowly more with "
        "L for CEI and fast for LCI (lower row). But the report goes with it, and of that the wait for "
        "the next entry of a linked list: finding is "
        f"{_shares(results, 'cei-plain')} of a search with CEI and "
        f"{_shares(results, 'lci-bv-dt')} with LCI. So fewer entries count, and more, shorter lists, "
        "whose waits overlap: CEI's time falls with L, and LCI is ahead where the report outweighs the "
        "finding.",
    )


def _shares(results: Results, name: str) -> str:
    found = [100 * ns(r, name, "find") / ns(r, name) for _, r in results]
    return f"{min(found):.0f} to {max(found):.0f} %"


def _size(result: dict[str, Any], name: str) -> float:
    return float(result["sizes"][name]["model"]) / 1e6


def _storage(where: str, lengths: list[int], results: list[dict[str, Any]]) -> list[Check]:
    cei = [_size(result, "cei-plain") for result in results]
    shares = [_size(result, "lci-bv-dt") / _size(result, "cei-plain") for result in results]
    return [
        Check.of(
            f"{where}: CEI's storage falls as L grows",
            all(a > b for a, b in itertools.pairwise(cei)),
            "falls at every L",
            f"{cei[0]:.3g} MB at L = {lengths[0]}, least {min(cei):.3g} at "
            f"L = {lengths[cei.index(min(cei))]}, {cei[-1]:.3g} at L = {lengths[-1]}",
            direction=cei[-1] < cei[0],
        ),
        Check.of(
            f"{where}: CEI needs less storage than LCI at every L",
            all(s > 1 for s in shares),
            "at every L",
            "LCI / CEI: " + ", ".join(f"{s:.3g}" for s in shares),
            direction=sum(s > 1 for s in shares) > len(shares) / 2,
        ),
        Check.of(
            f"{where}: UI has the highest storage",
            all(_size(r, "ui") > max(_size(r, n) for n in PAPERS[1:]) for r in results),
            "at every L",
            f"{span(_size(r, 'ui') / _size(r, 'cei-plain') for r in results)} times CEI's",
        ),
    ]


def _times(where: str, lengths: list[int], results: list[dict[str, Any]]) -> list[Check]:
    def growth(name: str, order: str) -> float:
        return ns(results[-1], name, order) / ns(results[0], name, order)

    cei, lci = growth("cei-plain", "random"), growth("lci-bv-dt", "random")
    find = {name: growth(name, "find") for name in ("cei-plain", "lci-bv-dt")}
    far = f"from L = {lengths[0]} to {lengths[-1]}"
    return [
        Check.of(
            f"{where}: CEI's search time grows slowly with L",
            1 <= cei < 3,
            "increases only slightly",
            f"{number(cei)} times {far} (finding lists alone {number(find['cei-plain'])})",
            direction=0.9 < cei < 1,
        ),
        Check.of(
            f"{where}: LCI's search time grows much faster than CEI's",
            lci > max(1, 2 * cei),
            "much more quickly",
            f"LCI {number(lci)} times, CEI {number(cei)} {far} (finding lists alone "
            f"{number(find['lci-bv-dt'])} and {number(find['cei-plain'])})",
            direction=lci > cei,
        ),
        slower(
            f"{where}: CEI searches faster than LCI at every L",
            "at every L",
            results,
            "lci-bv-dt",
            "cei-plain",
        ),
    ]


def draw(parameters: dict[str, Any], results: Results, figure: Any) -> None:
    figure.set_size_inches(11, 10.5)
    panels = figure.subplots(3, 2, sharex=True)
    for column, r in enumerate(parameters["r"]):
        mine = [(case, result) for case, result in results if case["r"] == r]
        top, middle, low = (row[column] for row in panels)
        lines(top, model_mb(mine, PAPERS, "L"), named=LCI)
        lines(middle, microseconds(mine, [*PAPERS, "cei"], "L"), named=LCI)
        lines(low, microseconds(mine, PAPERS, "L", "find"), named=LCI)
        top.set_title(f"Fig. {15 + column}(a): storage, r = {r:,}")
        middle.set_title(f"Fig. {15 + column}(b): search and report")
        low.set_title("finding the lists, without the report")
        top.set_ylabel("index storage (MB)")
        middle.set_ylabel("average search time (µs)")
        low.set_ylabel("average time (µs)")
        for axes in (top, middle, low):
            logarithmic(axes)
        doubling(low, parameters["lengths"], "maximum construct length L")
    panels[1][0].legend(fontsize=9)
