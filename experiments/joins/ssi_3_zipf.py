"""How many intervals the largest groups have, if sizes are Zipf's (Fig. 2)."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from limen.partitions.canonical import canonical
from limen.plotting.style import BLUE, GREEN, GREY, ORANGE, VERMILION
from limen.reproduce import Check, Verdict

from ..exact import same

CLAIM = "SSI-3"
PAPER = (
    "Of 5,000 stabbing groups whose sizes are Zipf's, the 500 largest (10 %) have about 70 % of all "
    "queries at beta = 1, and more with a larger beta (Fig. 2)."
)
SCALES: dict[str, dict[str, Any]] = {
    "full": {
        "scale": "the paper's: 5,000 groups, beta = 1.0..1.2; 3,000,000 intervals",
        "groups": 5000,
        "n": 3_000_000,
        "betas": [1.0, 1.05, 1.1, 1.15, 1.2],
    },
    "quick": {
        "scale": "the paper's 5,000 groups, beta = 1.0..1.2; 300,000 intervals",
        "groups": 5000,
        "n": 300_000,
        "betas": [1.0, 1.1, 1.2],
    },
}
TOP = 500
TOLD, ABOUT = 0.70, 0.05  # "about 70 %"
CELL = 1 << 20  # a group's intervals are within one, and contain its middle

Array = npt.NDArray[Any]


def cases(parameters: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"name": f"beta={beta:g}", "beta": beta} for beta in parameters["betas"]]


def run(parameters: dict[str, Any], case: dict[str, Any]) -> dict[str, Any]:
    groups, n = parameters["groups"], parameters["n"]
    formula = by_formula(groups, case["beta"])
    sizes = handed_out(formula, n)
    lo, hi = drawn(sizes)
    found = canonical(lo, hi)
    largest = np.sort(found.sizes)[::-1]
    covered = np.cumsum(largest) / n
    return {
        "groups": len(found),
        "sizes differ": int((largest != np.sort(sizes)[::-1]).sum())
        if len(found) == groups
        else groups,
        "formula": np.cumsum(formula).tolist(),
        "found": covered.tolist(),
        "largest": int(largest[0]),
        "least": int(largest[-1]),
    }


def by_formula(groups: int, beta: float) -> Array:
    """The share of the k-th largest group: k ** -beta, of all of them 1."""
    shares = np.arange(1, groups + 1, dtype=np.float64) ** -beta
    return shares / shares.sum()


def handed_out(shares: Array, n: int) -> Array:
    """Whole sizes, n in all: what is left by rounding down goes where most was cut off."""
    exact = shares * n
    sizes = exact.astype(np.int64)
    most = np.argsort(sizes - exact)[: n - int(sizes.sum())]
    sizes[most] += 1
    return sizes


def drawn(sizes: Array, seed: int = 1) -> tuple[Array, Array]:
    """Intervals in any order: the groups at random places, each interval with random ends around one."""
    rng = np.random.default_rng(seed)
    middle = CELL * rng.permutation(len(sizes)) + CELL // 2
    mine = rng.permutation(np.repeat(middle, sizes))
    return mine - rng.integers(0, CELL // 2, len(mine)), mine + rng.integers(
        0, CELL // 2, len(mine)
    )


# -- the verdict ----------------------------------------------------------------------------------


def verdict(
    parameters: dict[str, Any], results: list[tuple[dict[str, Any], dict[str, Any]]]
) -> Verdict:
    groups = parameters["groups"]
    formula, found = (
        np.array([result[which] for _, result in results]) for which in ("formula", "found")
    )
    top = formula[:, TOP - 1]
    off = float(np.abs(formula - found).max()) if found.shape == formula.shape else 1.0
    betas = ", ".join(f"{beta:g}" for beta in parameters["betas"])
    checks = [
        Check.of(
            f"The {TOP} largest have about 70 % at beta = 1",
            abs(top[0] - TOLD) <= ABOUT,
            "about 70 %",
            f"{100 * top[0]:.1f} % by the formula, {100 * found[0, TOP - 1]:.1f} % of the intervals",
            direction=bool(top[0] > 0.5),
        ),
        Check.of(
            "The coverage increases with beta, at every k",
            bool((np.diff(formula[:, :-1], axis=0) > 0).all()),
            "increases",
            f"{', '.join(f'{100 * t:.1f}' for t in top)} % at beta = {betas}",
        ),
        same(
            "The canonical partition has the groups that were drawn, and their sizes",
            f"{groups:,} groups",
            len(results),
            sum(r["groups"] != groups or r["sizes differ"] > 0 for _, r in results),
            "sets",
            "largest groups " + ", ".join(f"{r['largest']:,}" for _, r in results),
        ),
        Check.of(
            "The groups found cover what the formula says, at every k",
            off < 0.002,
            "",
            f"at most {100 * off:.2g} points of 100 apart",
        ),
    ]
    return Verdict(
        checks,
        f"of {groups:,} groups the {TOP} largest cover {100 * top[0]:.1f} % at beta = 1 and "
        f"{100 * top[-1]:.1f} % at beta = {parameters['betas'][-1]:g}.",
        "The formula is the sum of k ** -beta over the first k groups, divided by that over all. At "
        f"beta = 1 it gives {100 * top[0]:.1f} %, a little more than the text says. The sizes drawn are "
        "rounded to whole intervals, which is the difference between the two curves.",
    )


# -- the figure -----------------------------------------------------------------------------------


def draw(
    parameters: dict[str, Any], results: list[tuple[dict[str, Any], dict[str, Any]]], figure: Any
) -> None:
    axes = figure.subplots()
    colours = [BLUE, ORANGE, GREEN, VERMILION, GREY]
    ks = np.arange(1, parameters["groups"] + 1)
    for (case, result), colour in zip(results, colours, strict=False):
        axes.plot(
            ks,
            100 * np.array(result["formula"]),
            color=colour,
            lw=1.6,
            label=f"β = {case['beta']:g}",
        )
        found = 100 * np.array(result["found"])
        some = np.unique(np.geomspace(1, len(found), 22).astype(int)) - 1
        axes.plot(ks[some], found[some], "o", color=colour, ms=4)
    axes.axvline(TOP, color=GREY, lw=0.8, ls=":")
    axes.set(xlim=(0, parameters["groups"]), ylim=(0, 101))
    axes.set_title("Fig. 2: intervals in the k largest of 5,000 groups")
    axes.set_xlabel("k (dots: the groups that the canonical partition finds)")
    axes.set_ylabel("% of all intervals")
    axes.legend()
