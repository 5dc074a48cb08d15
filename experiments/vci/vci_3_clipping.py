"""Storage of the five schemes as L grows: what clipping a bitmap saves (Fig. 5)."""

from __future__ import annotations

from typing import Any

from limen.reproduce import Check, Verdict

from ..judging import (
    Results,
    doubling,
    lines,
    logarithmic,
    number,
    span,
)
from ..timing import closed, storage

CLAIM = "VCI-3"
PAPER = (
    "Clipping the bitmaps decides; LCI needs less than SCI; SCI-BC needs less than LCI for L up to 128; "
    "LCI-BC and LCI-BV are hardly distinguishable and the lowest."
)
SCALES = {
    "full": {
        "scale": "the paper's: R = 5,000, W = 500, n = 10,000, L = 2..256",
        "n": 10_000,
        "r": 5000,
        "w": 500,
        "lengths": [2, 4, 8, 16, 32, 64, 128, 256],
    },
    "quick": {
        "scale": "n divided by 5: R = 5,000, W = 500, n = 2,000, fewer L",
        "n": 2000,
        "r": 5000,
        "w": 500,
        "lengths": [2, 16, 128, 256],
    },
}
SCHEMES = ["sci", "lci", "sci-bc", "lci-bc", "lci-bv"]
CLIPPED = ["sci", "lci"]
HARD_TO_TELL = 0.02  # of the highest line at that L, on one scale with it


def cases(parameters: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"name": f"L={length}", "L": length} for length in parameters["lengths"]]


def run(parameters: dict[str, Any], case: dict[str, Any]) -> dict[str, Any]:
    queries = closed(parameters["n"], parameters["r"], parameters["w"], searches=1)
    return {"sizes": storage(SCHEMES, queries, case["L"])}


def verdict(parameters: dict[str, Any], results: Results) -> Verdict:
    def size(result: dict[str, Any], name: str) -> float:
        return float(result["sizes"][name]["model"])

    def saved(name: str) -> str:
        return span(size(r, name) / size(r, f"{name}-bc") for _, r in results)

    def below(one: str, other: str, some: Results) -> bool:
        return all(size(r, one) < size(r, other) for _, r in some)

    short = [(case, r) for case, r in results if case["L"] <= 128]
    crossing = [case["L"] for case, r in results if size(r, "sci-bc") >= size(r, "lci")]
    apart = [(size(r, "lci-bc") - size(r, "lci-bv")) / size(r, "sci") for _, r in results]
    twice = [size(r, "lci-bc") / size(r, "lci-bv") for _, r in results]
    best = [
        case["L"]
        for case, r in results
        if size(r, "lci-bc") <= min(size(r, name) for name in ("sci", "lci", "sci-bc"))
    ]
    more = [
        (r["sizes"][name]["nbytes"] - r["sizes"][name]["model"]) / parameters["r"]
        for _, r in results
        for name in SCHEMES
    ]
    checks = [
        Check.of(
            "clipping is critically important for SCI and LCI",
            below("sci-bc", "sci", results)
            and below("lci-bc", "lci", results)
            and all(size(results[-1][1], n) > 5 * size(results[-1][1], f"{n}-bc") for n in CLIPPED),
            "far lower",
            f"SCI / SCI-BC {saved('sci')}, LCI / LCI-BC {saved('lci')} times",
        ),
        Check.of(
            "LCI needs less storage than SCI",
            below("lci", "sci", [(c, r) for c, r in results if c["L"] > 2]),
            "generally",
            f"SCI / LCI {span(size(r, 'sci') / size(r, 'lci') for _, r in results)} times "
            "(at L = 2 both have the same constructs)",
        ),
        Check.of(
            "SCI-BC needs less storage than LCI for L up to 128",
            below("sci-bc", "lci", short),
            "for L <= 128",
            f"LCI / SCI-BC {span(size(r, 'lci') / size(r, 'sci-bc') for _, r in short)} times; "
            + (f"more from L = {crossing[0]} on" if crossing else "less at every L here"),
        ),
        Check.of(
            "LCI-BC and LCI-BV are the lowest",
            len(best) == len(results),
            "both are the best",
            f"the two lowest at L = {', '.join(map(str, best))} (at L = 2 SCI-BC is the same as LCI-BC)",
            direction=bool(best),
        ),
        Check.of(
            "LCI-BC and LCI-BV are hardly distinguishable",
            all(a < HARD_TO_TELL for a in apart),
            "on the figure's scale",
            f"{span(100 * a for a in apart)} % of the highest line apart; by themselves LCI-BC takes "
            f"{span(twice)} times LCI-BV",
        ),
        Check.of(
            "the arrays take what is counted, but that rows of bits are whole words",
            all(0 <= m < 9 for m in more),
            "",
            f"{min(more):.2f} to {max(more):.2f} bytes a value more",
        ),
    ]
    last = results[-1][1]
    told = ", ".join(f"{name.upper()} {number(size(last, name) / 1e6)}" for name in SCHEMES)
    return Verdict(
        checks,
        f"MB at L = {results[-1][0]['L']}: {told}",
        "Storage is 4 bytes a construct, 8 an entry and the bits, as the CEI paper counts it; the VCI "
        "paper gives no formula. Measured arrays have rows of bits in whole words of 64.",
    )


def draw(parameters: dict[str, Any], results: Results, figure: Any) -> None:
    left, right = figure.subplots(1, 2)
    points = [
        (case["L"], {name: r["sizes"][name]["model"] / 1e6 for name in SCHEMES})
        for case, r in results
    ]
    for axes in (left, right):
        lines(axes, points)
        doubling(axes, parameters["lengths"], "maximum construct length L")
        axes.set_ylabel("total storage (MB)")
    left.set_title("Fig. 5: storage of the five schemes")
    left.set_ylim(0, 3 * max(values["lci"] for _, values in points))
    right.set_title("the same on a logarithmic scale")
    logarithmic(right)
    left.legend(fontsize=9)
