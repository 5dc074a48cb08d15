"""Storage and search time as queries become more, with interval skip lists (Figs. 18 and 19)."""

from __future__ import annotations

from typing import Any

from limen.reproduce import Check, Verdict

from ..judging import (
    TIE,
    Results,
    doubling,
    lines,
    logarithmic,
    microseconds,
    model_mb,
    ns,
    number,
    ratio,
    short,
    slower,
    span,
)
from ..timing import half_open, measured

CLAIM = "CEI-6"
PAPER = (
    "CEI searches faster than LCI and IS-lists and is very close to UI, which is the fastest; IS-lists "
    "are the slowest. With a large domain IS-lists need the least storage while queries are few and lose "
    "that as n grows; with a small one they have no such advantage."
)
SCALES = {
    "full": {
        "scale": "the paper's: W = 200, L = 16, r = 1,048,576 and 65,536, n = 5,000..640,000, "
        "50,000 searches, fewer where they would report more than 20,000,000 ids",
        "r": [1_048_576, 65_536],
        "w": 200,
        "L": 16,
        "sizes": [5000, 10_000, 20_000, 40_000, 80_000, 160_000, 320_000, 640_000],
        "searches": 50_000,
    },
    "quick": {
        "scale": "n, r and the searches divided by 100: r = 10,486 and 655, n = 50..6,400",
        "r": [10_486, 655],
        "w": 200,
        "L": 16,
        "sizes": [50, 400, 6400],
        "searches": 500,
    },
}
PAPERS = ["ui", "lci-bv-dt", "cei-plain", "is-list"]
LCI = {"lci-bv-dt": "LCI"}


def cases(parameters: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {"name": f"r={r:,} n={n:,}", "r": r, "n": n}
        for r in parameters["r"]
        for n in parameters["sizes"]
    ]


def run(parameters: dict[str, Any], case: dict[str, Any]) -> dict[str, Any]:
    queries = half_open(case["n"], case["r"], parameters["w"], parameters["searches"])
    return measured([*PAPERS, "cei"], queries, parameters["L"], find=True)


def verdict(parameters: dict[str, Any], results: Results) -> Verdict:
    checks, told = [], []
    large, small = ([result for case, result in results if case["r"] == r] for r in parameters["r"])
    for r, mine in zip(parameters["r"], (large, small), strict=True):
        checks += _times(f"r = {r:,}", mine)
        others = [("LCI", "lci-bv-dt"), ("IS-lists", "is-list"), ("UI", "ui")]
        times = ", ".join(f"{label} {ratio(mine[-1], n, 'cei-plain')}" for label, n in others)
        told.append(f"{times} at r = {r:,}")
    last = large[-1]
    more = last["sizes"]["ui"]["entries"] / last["sizes"]["cei-plain"]["entries"]
    one = {name: ns(last, name, "single") / 1000 for name in ("cei-plain", "is-list", "cei")}
    return Verdict(
        checks + _storage(parameters["sizes"], large, small),
        f"times as long as CEI takes at n = {parameters['sizes'][-1]:,}: {'; '.join(told)}",
        "The paper's machine ran out of memory for UI and IS-lists at the larger n; here all points are "
        "there. The paper's order of the four is the order in which they find their lists. With the "
        "report it is another one on this machine, where an entry of a linked list that is in no cache "
        f"is a long wait: UI, with {number(more)} times the entries of CEI in one long list a value, is "
        "the fastest only while it is small, and LCI, whose many short lists can be waited for at the "
        "same time, overtakes CEI (see CEI-4). Storage is the paper's count; for IS-lists it is 8 bytes "
        "a node, a level and a marker. Limen's own index profits from batches: with a call of Python's "
        f"for each value it takes {number(one['cei'])} µs at the large r and the largest n, CEI as in "
        f"the paper {number(one['cei-plain'])} and IS-lists {number(one['is-list'])}.",
    )


def _times(where: str, results: list[dict[str, Any]]) -> list[Check]:
    fastest = [min(ratio(r, other, "ui").middle for other in PAPERS[1:]) for r in results]
    slowest = [min(ratio(r, "is-list", other).middle for other in PAPERS[:-1]) for r in results]
    close = [ratio(r, "cei-plain", "ui").middle for r in results]
    found = [ratio(r, "cei-plain", "ui", "find").middle for r in results]
    return [
        *(
            slower(
                f"{where}: CEI searches faster than {label} at every n",
                "at every n",
                results,
                name,
                "cei-plain",
            )
            for name, label in (("lci-bv-dt", "LCI"), ("is-list", "IS-lists"))
        ),
        Check.of(
            f"{where}: UI is the fastest",
            all(f > 1 / TIE for f in fastest),
            "the best search time",
            f"the best of the others / UI: {', '.join(map(number, fastest))}",
            direction=sum(f > 1 / TIE for f in fastest) > len(fastest) / 2,
        ),
        Check.of(
            f"{where}: CEI is very close to UI",
            all(1 / 1.5 < c < 1.5 for c in close),
            "very close",
            f"CEI / UI: {', '.join(map(number, close))} (finding lists alone {span(found)})",
            direction=all(c < 1.5 for c in close),
        ),
        Check.of(
            f"{where}: IS-lists are the slowest",
            all(s > 1 / TIE for s in slowest),
            "the highest search time",
            f"IS-lists / the slowest of the others: {', '.join(map(number, slowest))}",
            direction=sum(s > 1 / TIE for s in slowest) > len(slowest) / 2,
        ),
    ]


def _storage(
    sizes: list[int], large: list[dict[str, Any]], small: list[dict[str, Any]]
) -> list[Check]:
    def size(result: dict[str, Any], name: str) -> float:
        return float(result["sizes"][name]["model"])

    def least(result: dict[str, Any]) -> str:
        return min(PAPERS, key=lambda name: size(result, name))

    def share(result: dict[str, Any]) -> float:
        return size(result, "is-list") / size(result, "cei-plain")

    crossing = [n for n, result in zip(sizes, large, strict=True) if share(result) > 1]
    return [
        Check.of(
            f"large r: IS-lists have the least storage at n = {sizes[0]:,}",
            least(large[0]) == "is-list",
            "better while n is relatively small",
            f"IS-lists / CEI: {number(share(large[0]))}",
        ),
        Check.of(
            "large r: as n grows, CEI's storage falls below that of IS-lists",
            share(large[-1]) > 1,
            "the advantage disappears",
            f"IS-lists / CEI at n = {sizes[-1]:,}: {number(share(large[-1]))}; above 1 from "
            f"n = {short(crossing[0]) if crossing else 'none'} on",
            direction=share(large[-1]) > share(large[0]),
        ),
        Check.of(
            "small r: IS-lists have no advantage in storage",
            all(share(result) > 1 for result in small),
            "disappears",
            "IS-lists / CEI: " + ", ".join(number(share(result)) for result in small),
            direction=share(small[-1]) > 1,
        ),
    ]


def draw(parameters: dict[str, Any], results: Results, figure: Any) -> None:
    figure.set_size_inches(11, 8)
    panels = figure.subplots(2, 2, sharex=True)
    for column, r in enumerate(parameters["r"]):
        mine = [(case, result) for case, result in results if case["r"] == r]
        top, low = panels[0][column], panels[1][column]
        lines(top, model_mb(mine, PAPERS, "n"), named=LCI)
        lines(low, microseconds(mine, [*PAPERS, "cei"], "n"), named=LCI)
        top.set_title(f"Fig. {18 + column}(a): storage, r = {r:,}")
        low.set_title(f"Fig. {18 + column}(b): search and report")
        top.set_ylabel("index storage (MB)")
        low.set_ylabel("average search time (µs)")
        for axes in (top, low):
            logarithmic(axes)
        doubling(low, parameters["sizes"], "number of queries n")
    panels[1][0].legend(fontsize=9)
