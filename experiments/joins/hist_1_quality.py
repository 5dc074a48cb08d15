"""Histograms of intervals: equi-width, by stabbing groups, optimal (Fig. 25)."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from limen.partitions.canonical import canonical
from limen.partitions.histograms import Histogram, optima
from limen.plotting.style import BLUE, GREEN, ORANGE, VERMILION
from limen.reproduce import Check, Verdict

from ..judging import BLACK, TIE, Results, logarithmic, number, span

CLAIM = "HIST-1"
PAPER = (
    "With 20 buckets HIST-SSI has a mean relative error of 14.9 % where HIST-EQW has over 70 %; HIST-EQW "
    "needs 50 buckets for the same. HIST-SSI is better than HIST-EQW at any size and HIST-OPT the best, "
    "but HIST-OPT takes 6.5 hours for a tenth of the intervals that HIST-SSI takes a minute for."
)
SCALES: dict[str, dict[str, Any]] = {
    "full": {
        "scale": "the paper's: 100,000 intervals, 20..70 buckets, 5,000 values; HIST-OPT of samples of "
        "10,000",
        "n": 100_000,
        "sample": 10_000,
        "samples": 4,
        "buckets": [20, 30, 40, 50, 60, 70],
    },
    "quick": {
        "scale": "intervals divided by 10, samples too: 10,000 and 1,000",
        "n": 10_000,
        "sample": 1000,
        "samples": 2,
        "buckets": [20, 40, 70],
    },
}
DOMAIN, UNIT = 10_000, 1000  # values are thousandths, which stand for the paper's real numbers
VALUES = 5000
ROUNDS = 5
DEVIATION = {"printed": 2000.0, "few groups": 2000.0**0.5}
BUILD: dict[str, Callable[..., Histogram]] = {
    "eqw": Histogram.equi_width,
    "shared": Histogram.ssi,
    "mapped": lambda lo, hi, k: Histogram.ssi(lo, hi, k, "mapped"),
    "all": lambda lo, hi, k: Histogram.ssi(lo, hi, k, "mapped", relative_to="all"),
}
LOOKS = {
    "eqw": ("HIST-EQW", ORANGE, "s", "-"),
    "shared": ("HIST-SSI, buckets by size", BLUE, "o", "-"),
    "mapped": ("HIST-SSI, buckets by error", GREEN, "^", "--"),
    "all": ("the same, error relative to all", BLACK, ".", "--"),
    "opt": ("HIST-OPT, of samples", VERMILION, "*", "-"),
}


def intervals(n: int, deviation: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Intervals in the domain; what is not, or has a length below 0, is drawn again."""
    rng = np.random.default_rng(seed)
    kept: list[np.ndarray] = []
    while sum(len(one) for one in kept) < n:
        middle, length = rng.normal(5000, 1500, n), rng.normal(1000, deviation, n)
        both = np.column_stack([middle - length / 2, middle + length / 2])
        kept.append(both[(both[:, 0] >= 0) & (both[:, 1] <= DOMAIN) & (length >= 0)])
    lo, hi = np.rint(np.concatenate(kept)[:n] * UNIT).astype(np.int64).T.copy()
    return lo, hi


def cases(parameters: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for reading in DEVIATION:
        found.append({"name": f"{reading}: errors", "reading": reading, "kind": "errors"})
        found += [
            {"name": f"{reading}: sample {i + 1}", "reading": reading, "kind": "sample", "seed": i}
            for i in range(parameters["samples"])
        ]
        found.append({"name": f"{reading}: times", "reading": reading, "kind": "times"})
    return found


def run(parameters: dict[str, Any], case: dict[str, Any]) -> dict[str, Any]:
    lo, hi = intervals(parameters["n"], DEVIATION[case["reading"]], seed=1)
    if case["kind"] == "times":
        return _times(parameters, lo, hi)
    if case["kind"] == "sample":
        rng = np.random.default_rng(100 + case["seed"])
        some = rng.choice(len(lo), parameters["sample"], replace=False)
        lo, hi = lo[some], hi[some]
    made = {
        name: [build(lo, hi, k) for k in parameters["buckets"]] for name, build in BUILD.items()
    }
    if case["kind"] == "sample":
        made["opt"] = optima(lo, hi, parameters["buckets"])
    xs = np.random.default_rng(2).integers(0, DOMAIN * UNIT + 1, VALUES)
    begun = np.searchsorted(np.sort(lo), xs, "right")
    true = begun - np.searchsorted(np.sort(hi), xs, "left")
    return {
        "groups": len(canonical(lo, hi)),
        "pieces": [one.pieces for one in made["shared"]],
        "mean": {
            name: [
                float(np.mean(np.abs(one.estimate(xs) - true) / np.maximum(true, 1)))
                for one in mine
            ]
            for name, mine in made.items()
        },
        "root": {name: [one.error(lo, hi).root for one in mine] for name, mine in made.items()},
    }


def _times(parameters: dict[str, Any], lo: np.ndarray, hi: np.ndarray) -> dict[str, Any]:
    """Seconds of a processor to build: HIST-SSI of more and more intervals, HIST-OPT of a sample."""
    sizes = [len(lo) // 8, len(lo) // 4, len(lo) // 2, len(lo)]
    fewest, most = parameters["buckets"][0], parameters["buckets"][-1]
    few = slice(0, parameters["sample"])
    Histogram.optimal(lo[:50], hi[:50], 3)
    return {
        "sizes": sizes,
        "ssi": {
            method: {
                str(k): [_seconds(BUILD[method], lo[:n], hi[:n], k) for n in sizes]
                for k in (fewest, most)
            }
            for method in ("shared", "mapped")
        },
        "opt": {
            str(k): _seconds(Histogram.optimal, lo[few], hi[few], k, rounds=1)
            for k in (fewest, most)
        },
    }


def _seconds(
    build: Callable[..., Histogram], lo: np.ndarray, hi: np.ndarray, k: int, rounds: int = ROUNDS
) -> float:
    """The median of some rounds, after one that does not count if there are several."""
    taken = []
    for _ in range(rounds + (rounds > 1)):
        begun = time.process_time()
        build(lo, hi, k)
        taken.append(time.process_time() - begun)
    return statistics.median(taken[-rounds:])


# -- judging -----------------------------------------------------------------------------------------


def _of(results: Results, reading: str, kind: str) -> list[dict[str, Any]]:
    return [r for case, r in results if (case["reading"], case["kind"]) == (reading, kind)]


def _opt(results: Results, reading: str) -> np.ndarray:
    """HIST-OPT's mean error over the samples, by number of buckets."""
    return np.mean([r["mean"]["opt"] for r in _of(results, reading, "sample")], axis=0)


def _percent(error: float) -> str:
    return f"{number(100 * error)} %"


def verdict(parameters: dict[str, Any], results: Results) -> Verdict:
    buckets = parameters["buckets"]
    (printed,), (few,) = (_of(results, reading, "errors") for reading in DEVIATION)
    ssi, eqw = printed["mean"]["shared"], printed["mean"]["eqw"]
    reached = [k for k, error in zip(buckets, eqw, strict=True) if error <= ssi[0]]
    checks = [
        Check.of(
            f"HIST-SSI with {buckets[0]} buckets has a mean relative error of about 15 %",
            0.10 < ssi[0] < 0.20,
            "14.9 %",
            _percent(ssi[0]),
            direction=ssi[0] < eqw[0],
        ),
        Check.of(
            f"HIST-EQW with {buckets[0]} has over 70 %",
            eqw[0] > 0.7,
            "over 70 %",
            _percent(eqw[0]),
            direction=eqw[0] > 2 * ssi[0],
        ),
        Check.of(
            f"HIST-EQW needs 50 buckets to do as well as HIST-SSI with {buckets[0]}",
            bool(reached) and 40 <= reached[0] <= 60,
            "50",
            str(reached[0]) if reached else f"more than {buckets[-1]}",
            direction=not reached or reached[0] > buckets[0],
        ),
        _ahead("HIST-SSI is better than HIST-EQW at every size", printed),
        _ahead(f"so it is with {few['groups']} groups, all taken apart but the smallest", few),
        _best(results),
        *_times_judged(parameters, results),
    ]
    opt = _opt(results, "printed")
    first, last = (
        f"HIST-SSI {_percent(ssi[at])}, HIST-EQW {_percent(eqw[at])}, HIST-OPT {_percent(opt[at])}"
        for at in (0, -1)
    )
    return Verdict(
        checks,
        f"{buckets[0]} buckets: {first}; {buckets[-1]}: {last}",
        _note(buckets, printed, few),
    )


def _note(buckets: list[int], printed: dict[str, Any], few: dict[str, Any]) -> str:
    mean, root = few["mean"], few["root"]
    return (
        "The paper does not say what becomes of lengths below 0 and of intervals beyond the domain: they "
        "are drawn again here. As printed, lengths come close to 0, and so the intervals form "
        f"{printed['groups']} groups, not 18. No group has a claim to two buckets, and all of them are "
        "put together, which makes HIST-SSI a dynamic programme over at most 512 runs of pieces. If "
        f"2,000 is the variance of the lengths, there are {few['groups']} groups, and HIST-SSI is the "
        f"paper's. It then has {_percent(mean['shared'][0])} with {buckets[0]} buckets: the groups at "
        "the rim, where few intervals make for large relative errors, get few buckets by their size. "
        "Buckets by error, and error relative to the count of all intervals, not the group's, bring it "
        f"from {_percent(mean['shared'][-1])} to {_percent(mean['all'][-1])} with {buckets[-1]}, where "
        f"HIST-EQW has {_percent(mean['eqw'][-1])}. What is minimised is the mean square: its root is "
        f"{span(root['eqw'])} for HIST-EQW there, {span(root['shared'])} for HIST-SSI. Buckets are those "
        f"handed out; the sum of the groups' histograms has {few['pieces'][0]} to {few['pieces'][-1]} "
        "pieces."
    )


def _ahead(says: str, result: dict[str, Any]) -> Check:
    """By the mean error; in direction, if by the one that is minimised."""
    times = {
        by: [a / b for a, b in zip(result[by]["eqw"], result[by]["shared"], strict=True)]
        for by in ("mean", "root")
    }
    return Check.of(
        says,
        min(times["mean"]) > 1,
        "all the time",
        f"HIST-EQW / HIST-SSI: {span(times['mean'])}; by the root of the mean square "
        f"{span(times['root'])}",
        direction=min(times["root"]) > 1,
    )


def _best(results: Results) -> Check:
    samples = [r for reading in DEVIATION for r in _of(results, reading, "sample")]
    behind = {
        by: [
            other / best
            for r in samples
            for name in BUILD
            for other, best in zip(r[by][name], r[by]["opt"], strict=True)
        ]
        for by in ("mean", "root")
    }
    return Check.of(
        "HIST-OPT is the best, on every sample and at every size",
        min(behind["mean"]) > 1 / TIE,
        "consistently",
        f"the others' errors are {span(behind['mean'])} times as large; by the root of the mean square "
        f"{span(behind['root'])}",
        direction=min(behind["root"]) > 1 / TIE,
    )


def _times_judged(parameters: dict[str, Any], results: Results) -> list[Check]:
    times = [r for reading in DEVIATION for r in _of(results, reading, "times")]
    every = [one for r in times for by in r["ssi"].values() for one in by.values()]
    growth = [one[-1] / one[0] / 8 for one in every]
    ahead = [r["opt"][k] / by[k][-1] for r in times for by in r["ssi"].values() for k in r["opt"]]
    opt = [seconds for r in times for seconds in r["opt"].values()]
    n, sample = parameters["n"], parameters["sample"]
    return [
        Check.of(
            "HIST-SSI is built in nearly linear time",
            max(growth) < 1.5,
            "O(n) and little more",
            f"8 times the intervals take {span(8 * g for g in growth)} times as long; {n:,} take "
            f"{span(1000 * one[-1] for one in every)} ms",
            direction=max(growth) < 4,
        ),
        Check.of(
            f"HIST-OPT of {sample:,} intervals takes over 100 times as long as HIST-SSI of {n:,}",
            min(ahead) > 100,
            "6.5 hours, a minute",
            f"{span(ahead)} times: {span(opt)} s",
            direction=min(ahead) > 1,
        ),
    ]


def draw(parameters: dict[str, Any], results: Results, figure: Any) -> None:
    panels = figure.subplots(1, 2, sharey=True)
    for axes, reading in zip(panels, DEVIATION, strict=True):
        (errors,) = _of(results, reading, "errors")
        lines = errors["mean"] | {"opt": _opt(results, reading)}
        for name, (told, colour, marker, dashes) in LOOKS.items():
            ys = [100 * error for error in lines[name]]
            axes.plot(
                parameters["buckets"],
                ys,
                dashes,
                color=colour,
                marker=marker,
                ms=5,
                lw=1.5,
                label=told,
            )
        told = "deviation" if reading == "printed" else "variance"
        axes.set_title(f"{told} of lengths 2,000: {errors['groups']} groups")
        axes.set_xlabel("buckets")
        axes.set_xticks(parameters["buckets"])
        logarithmic(axes)
    panels[0].set_ylabel("mean relative error (%)")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, fontsize=9)
