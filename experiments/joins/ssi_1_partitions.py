"""Stabbing partitions: the smallest, and two ways to stay near it (Lemmas 1 and 3, Theorem 5)."""

from __future__ import annotations

from typing import Any

import numpy as np

from limen.kernels.refined import RESET
from limen.partitions.canonical import canonical
from limen.partitions.lazy import LazyPartition
from limen.partitions.partition import Changes, Partition
from limen.partitions.refined import RefinedPartition
from limen.plotting.style import BLUE, GREEN, GREY, ORANGE, VERMILION
from limen.reproduce import Verdict

from ..exact import held, same
from .histories import (
    KINDS,
    Array,
    Interval,
    Present,
    Update,
    apply,
    every_multiset,
    greedy,
    history,
    places,
)

CLAIM = "SSI-1"
PAPER = (
    "The greedy partition is smallest (Lemma 1). The lazy strategy and the refined algorithm keep it "
    "within (1 + epsilon) times that at all times (Lemma 3, Theorem 5). A refined update touches at most "
    "one group before the reconstruction, which gives exactly the greedy partition."
)
SCALES: dict[str, dict[str, Any]] = {
    "full": {
        "scale": "all 65,779 sets of up to 5 intervals over 6 points; sets of 1,000,000; 7 histories of "
        "3,000 updates at 4 values of epsilon, looked at after each update",
        "points": 6,
        "most": 5,
        "n": 1_000_000,
        "updates": 3000,
        "size": 240,
        "epsilons": [0.25, 0.5, 1.0, 3.0],
    },
    "quick": {
        "scale": "all 3,875 sets of up to 4 intervals over 5 points; sets of 20,000; 7 histories of 150 "
        "updates at 3 values of epsilon, looked at after each update",
        "points": 5,
        "most": 4,
        "n": 20_000,
        "updates": 150,
        "size": 50,
        "epsilons": [0.25, 1.0, 3.0],
    },
}
SHAPES = ["even", "clustered", "nested", "equal", "disjoint"]
DRAWN = ("random", 1.0)
STRATEGIES = {"lazy": LazyPartition, "refined": RefinedPartition}


def cases(parameters: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {"name": "all small sets"},
        *({"name": f"a large set, {shape}", "shape": shape} for shape in SHAPES),
        *(
            {"name": f"{kind}, epsilon={epsilon:g}", "kind": kind, "epsilon": epsilon}
            for kind in KINDS
            for epsilon in parameters["epsilons"]
        ),
    ]


def run(parameters: dict[str, Any], case: dict[str, Any]) -> dict[str, Any]:
    if "kind" in case:
        return followed(parameters, case["kind"], case["epsilon"])
    if "shape" in case:
        return large(case["shape"], parameters["n"])
    return small(parameters["points"], parameters["most"])


# -- the canonical partition ----------------------------------------------------------------------


def small(points: int, most: int) -> dict[str, Any]:
    """The library's partition of every set, against the best of all partitions and against greedy."""
    sets = smallest = same_groups = 0
    for intervals in every_multiset(points, most):
        lo, hi = (np.array(side) for side in zip(*intervals, strict=True))
        found = canonical(lo, hi)
        sets += 1
        smallest += len(found) != by_trying(intervals)
        same_groups += not _is_greedy(intervals, found.groups(), found.points.tolist())
    return {"sets": sets, "not smallest": smallest, "not greedy": same_groups}


def by_trying(intervals: tuple[Interval, ...]) -> int:
    """The fewest groups with a common point each, of all ways to put the intervals into groups."""
    n = len(intervals)
    best = [0] + [n] * ((1 << n) - 1)
    for some in range(1, 1 << n):
        first = some & -some
        rest = others = some ^ first
        while True:  # the group of the first one: it, with any of the rest
            group = others | first
            mine = [intervals[i] for i in range(n) if group >> i & 1]
            if max(lo for lo, _ in mine) <= min(hi for _, hi in mine):
                best[some] = min(best[some], best[some ^ group] + 1)
            if not others:
                break
            others = (others - 1) & rest
    return best[-1]


def _is_greedy(intervals: tuple[Interval, ...], groups: Array, points: list[int]) -> bool:
    order = sorted(range(len(intervals)), key=lambda i: intervals[i][0])
    wanted, at = greedy([intervals[i] for i in order])
    return groups[order].tolist() == wanted and points == at


def drawn_set(shape: str, n: int) -> tuple[Array, Array]:
    rng = np.random.default_rng([3, n])
    if shape == "clustered":
        middle = rng.integers(0, 1000, n) ** 2 * 1000
        lo, hi = middle - rng.integers(0, 100_000, n), middle + rng.integers(0, 100_000, n)
    elif shape == "nested":
        reach = rng.permutation(n)
        lo, hi = -reach, reach
    elif shape == "equal":
        lo, hi = np.full(n, 7), np.full(n, 9)
    elif shape == "disjoint":
        lo = 10 * rng.permutation(n)
        hi = lo + rng.integers(0, 10, n)
    else:
        lo = rng.integers(0, 10 * n, n)
        hi = lo + rng.integers(0, 200, n)
    return lo, hi


def large(shape: str, n: int) -> dict[str, Any]:
    """As many disjoint intervals as there are groups are proof that fewer groups do not do."""
    lo, hi = drawn_set(shape, n)
    found = canonical(lo, hi)
    points = found.points[found.groups()]
    apart, last = 0, -(10**18)
    for i in np.argsort(hi, kind="stable").tolist():  # the greatest set of disjoint ones
        if lo[i] > last:
            apart, last = apart + 1, int(hi[i])
    return {
        "n": n,
        "groups": len(found),
        "disjoint": apart,
        "not stabbed": int(((points < lo) | (points > hi)).sum()),
    }


# -- partitions that are kept ---------------------------------------------------------------------


class Kept:
    """A partition in step with a history, and what was wrong with it so far."""

    def __init__(self, partition: Partition, size: int) -> None:
        self.partition = partition
        self.wrong = dict.fromkeys(("too many", "no partition", "not greedy"), 0)
        self.most = 0.0  # groups, times tau
        self.touched: list[int] = []  # groups, by update: those told of before the reconstruction
        self.untold = 0  # updates that changed the group of an interval, and not the one told
        self.told: set[int] = set()
        self.reset = False
        self._group = np.full(size, -1)
        partition.subscribe(self._hear)

    def _hear(self, changes: Changes) -> None:
        self.reset |= bool((changes.what == RESET).any())
        self.told |= set(changes.group[changes.what != RESET].tolist())

    def take(self, update: Update, present: Present, tau: int) -> bool:
        """Returns whether there was a reconstruction."""
        partition = self.partition
        before = partition.reconstructions
        self.told, self.reset = set(), False
        apply(partition, update)
        rebuilt = partition.reconstructions > before
        groups, ids = partition.groups(), present.ids
        of = partition.group_of(ids)
        self.wrong["too many"] += len(groups.group) > (1 + partition.epsilon) * tau
        self.most = max(self.most, len(groups.group) / max(1, tau))
        mine = places(present, groups, of)
        self.wrong["no partition"] += mine is None or len(partition) != len(present)
        now = np.full(len(self._group), -1)
        now[ids] = of
        if rebuilt:
            wanted, points = present.greedy()
            as_greedy = mine is not None and np.array_equal(mine, wanted[ids])
            self.wrong["not greedy"] += not as_greedy or groups.point.tolist() != points
        else:
            self.touched.append(len(self.told) if not self.reset else len(groups.group))
            others = now != self._group
            others[update.id] = False
            where = now if update.adds else self._group
            self.untold += bool(others.any()) or int(where[update.id]) not in self.told
        self._group = now
        return rebuilt


def followed(parameters: dict[str, Any], kind: str, epsilon: float) -> dict[str, Any]:
    updates, size = parameters["updates"], parameters["size"]
    present = Present(size)
    kept = {name: Kept(make(epsilon), size) for name, make in STRATEGIES.items()}
    trace: dict[str, list[int]] = {"tau": [], "lazy": [], "refined": []}
    rebuilt: dict[str, list[int]] = {"lazy": [], "refined": []}
    for step, update in enumerate(history(kind, updates, size)):
        present.take(update)
        tau = present.tau()
        trace["tau"].append(tau)
        for name, one in kept.items():
            if one.take(update, present, tau):
                rebuilt[name].append(step)
            trace[name].append(one.partition.stabbing_number)
    return {
        "updates": updates,
        "wrong": {name: one.wrong for name, one in kept.items()},
        "most": {name: one.most for name, one in kept.items()},
        "touched": max(kept["refined"].touched),
        "quiet": len(kept["refined"].touched),
        "untold": kept["refined"].untold,
        "rebuilt": rebuilt if (kind, epsilon) == DRAWN else {},
        "rebuilds": {name: len(steps) for name, steps in rebuilt.items()},
        "trace": trace if (kind, epsilon) == DRAWN else {},
    }


# -- the verdict ----------------------------------------------------------------------------------


def verdict(
    parameters: dict[str, Any], results: list[tuple[dict[str, Any], dict[str, Any]]]
) -> Verdict:
    tried = results[0][1]
    sets = [result for case, result in results if "shape" in case]
    runs = [result for case, result in results if "kind" in case]
    updates = sum(result["updates"] for result in runs)
    rebuilds = {name: sum(r["rebuilds"][name] for r in runs) for name in STRATEGIES}

    def wrong(name: str, *what: str) -> int:
        return sum(result["wrong"][name][one] for result in runs for one in what)

    checks = [
        same(
            "No partition of a small set has fewer groups",
            "Lemma 1",
            tried["sets"],
            tried["not smallest"],
            "sets, of each all partitions",
        ),
        same(
            "It is the one of the greedy algorithm, group by group",
            "section 2.1",
            tried["sets"],
            tried["not greedy"],
            "sets",
        ),
        same(
            "A large set has as many disjoint intervals as groups, so no fewer do",
            "Lemma 1",
            len(sets),
            sum(one["groups"] != one["disjoint"] or one["not stabbed"] > 0 for one in sets),
            f"sets of {parameters['n']:,}",
            ", ".join(f"{one['groups']:,}" for one in sets) + " groups",
        ),
        *(
            same(
                f"The {told} stays within (1 + epsilon) tau, and is a stabbing partition",
                source,
                updates,
                wrong(name, "too many", "no partition"),
                "updates",
                f"{rebuilds[name]:,} reconstructions",
            )
            for name, told, source in (
                ("lazy", "lazy strategy", "Lemma 3"),
                ("refined", "refined algorithm", "Theorem 5"),
            )
        ),
        same(
            "A refined update touches at most one group before the reconstruction",
            "one (Theorem 5)",
            sum(result["quiet"] for result in runs),
            sum(result["untold"] + (result["touched"] > 1) for result in runs),
            "updates without one",
            f"{max(result['touched'] for result in runs)} group at most is told of, and no interval of "
            "another has moved",
        ),
        same(
            "Its reconstruction gives exactly the greedy partition",
            "the same points and groups (A.2)",
            rebuilds["refined"],
            wrong("refined", "not greedy"),
            "reconstructions",
        ),
    ]
    more = rebuilds["lazy"] / max(1, rebuilds["refined"])
    least = min(parameters["epsilons"])
    told = ", ".join(f"{name} {_most(results, name, least):.3g}" for name in STRATEGIES)
    return Verdict(
        checks,
        f"{held(checks)}; at most so many times the smallest at epsilon = {least:g}: {told}; the lazy "
        f"strategy is rebuilt {more:.2g} times as often as the refined one.",
        "The smallest number is computed after each update by a plain pass over all intervals, not by "
        "the library. Both strategies have the paper's improvements: an interval goes to a group "
        "that it meets, and a reconstruction waits until there may be too many groups. For the refined "
        "one, Limen does not count deletions (the paper's tau_0 - m, which a single large group uses "
        "up), but the groups that have lost the interval that ends at their point; the others prove how "
        "many are needed. So it waits longer, and the bound is the same. The proof of Lemma 3 is for "
        "epsilon tau_0 / (epsilon + 2) updates; A.2 counts at most epsilon tau_0 / 3 insertions in a "
        "reconstruction, which is the same for epsilon = 1 only.",
    )


def _most(results: list[tuple[dict[str, Any], dict[str, Any]]], name: str, epsilon: float) -> float:
    return max(
        float(result["most"][name]) for case, result in results if case.get("epsilon") == epsilon
    )


# -- the figure -----------------------------------------------------------------------------------


def draw(
    parameters: dict[str, Any], results: list[tuple[dict[str, Any], dict[str, Any]]], figure: Any
) -> None:
    left, right = figure.subplots(1, 2, width_ratios=[1.7, 1])
    kind, epsilon = DRAWN
    result = next(r for case, r in results if (case.get("kind"), case.get("epsilon")) == DRAWN)
    trace = result["trace"]
    steps = np.arange(1, len(trace["tau"]) + 1)
    tau = np.array(trace["tau"])
    left.plot(steps, (1 + epsilon) * tau, "--", color=GREY, lw=1, label="(1 + ε) τ")
    for name, colour in (("lazy", ORANGE), ("refined", BLUE)):
        left.plot(steps, trace[name], color=colour, lw=1.1, label=name)
        marks = np.array(result["rebuilt"][name], dtype=int)
        told = f"reconstructions, {name}"
        ys = np.full(len(marks), -0.03 if name == "lazy" else -0.06) * (1 + epsilon) * tau.max()
        left.plot(marks + 1, ys, "|", color=colour, ms=7, label=told)
    left.plot(steps, tau, color=GREEN, lw=1.3, label="τ, the fewest")
    left.set_title(f"Groups, {kind} history, ε = {epsilon:g}")
    left.set_xlabel("updates")
    left.set_ylabel("groups")
    left.legend(fontsize=9, ncols=2, loc="upper left")
    left.set_ylim(top=1.35 * (1 + epsilon) * tau.max())
    epsilons = parameters["epsilons"]
    right.plot(epsilons, [1 + e for e in epsilons], "--", color=GREY, lw=1, label="1 + ε")
    for name, colour, side, marker in (
        ("lazy", ORANGE, 0.97, "^"),
        ("refined", BLUE, 1.03, "o"),
    ):
        some = [(c["epsilon"], r["most"][name]) for c, r in results if "kind" in c]
        xs, ys = zip(*some, strict=True)
        xs = [x * side for x in xs]
        right.plot(xs, ys, marker, color=colour, ms=5, alpha=0.8, label=f"{name}, a history each")
    right.axhline(1, color=VERMILION, lw=0.8)
    right.set_xscale("log", base=2)
    right.set_xticks(epsilons, [f"{e:g}" for e in epsilons])
    right.minorticks_off()
    right.set_title("The most groups, times τ")
    right.set_xlabel("ε")
    right.legend(fontsize=9)
