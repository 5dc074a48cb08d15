"""The experiment of Figs. 6 and 7: the same runs give the times and the storage."""

from __future__ import annotations

from typing import Any

from ..judging import Results
from ..timing import closed, measured

MODERATE = ["dlist", "lci", "lci-bc", "lci-bv", "lci-bv-dt", "is-list"]
LARGE = ["lci-bc", "lci-bv", "lci-bv-dt", "is-list"]  # the others need too much, says the paper
SCALES: dict[str, dict[str, Any]] = {
    "full": {
        "scale": "the paper's: R = 5,000 and 250,000, W = 200, L = 128, n = 1,000..1,024,000, "
        "10,000 searches, fewer where they would report more than 20,000,000 ids",
        "r": [5000, 250_000],
        "w": 200,
        "L": 128,
        "sizes": [1000 * 2**i for i in range(11)],
        "searches": 10_000,
    },
    "quick": {
        "scale": "R divided by 10, n by 100: R = 500 and 25,000, W = 200, L = 128, "
        "n = 10..10,240, 500 searches",
        "r": [500, 25_000],
        "w": 200,
        "L": 128,
        "sizes": [10, 320, 10_240],
        "searches": 500,
    },
}


def cases(parameters: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {"name": f"R={r:,} n={n:,}", "R": r, "n": n}
        for r in parameters["r"]
        for n in parameters["sizes"]
    ]


def names(parameters: dict[str, Any], case: dict[str, Any]) -> list[str]:
    return MODERATE if case["R"] == parameters["r"][0] else LARGE


def run(parameters: dict[str, Any], case: dict[str, Any]) -> dict[str, Any]:
    queries = closed(case["n"], case["R"], parameters["w"], parameters["searches"])
    return measured([*names(parameters, case), "cei"], queries, parameters["L"], find=True)


def of_domain(results: Results, r: int) -> Results:
    return [(case, result) for case, result in results if case["R"] == r]
