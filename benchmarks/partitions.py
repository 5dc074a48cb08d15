"""Stabbing partitions: made, kept while intervals come and go, hotspots, histograms.

Intervals come at `Sites`, which are apart and in demand by Zipf or evenly, or `Even`ly over a domain. A
partition is kept by a `Churn`: batches of inserts and of as many deletes, of intervals drawn beforehand,
on a partition that stays as large as it was. So a partition that is measured again is one that has been
in use, not one just laid out.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from limen.kernels import avl
from limen.kernels.compiled import compiled
from limen.partitions.canonical import canonical
from limen.partitions.histograms import Histogram
from limen.partitions.hotspots import Hotspots
from limen.partitions.lazy import LazyPartition
from limen.partitions.partition import Partition
from limen.partitions.refined import RefinedPartition

from .side_by_side import Row, compare, result, row, seconds
from .workloads import I64

CELL = 1 << 20  # from a site to the next
RATE = 0.3  # million updates a second
WITHIN = 1.5  # times the sort
FASTER = 100  # HIST-SSI than HIST-OPT on a tenth
EVEN = 2  # times as long, at most, does a step of the lazy strategy's formula take at another size

SCALES: dict[str, dict[str, Any]] = {
    "full": {
        "canonical": 10_000_000,
        "n": 1_000_000,
        "groups": 1000,  # few and large ones
        "few": 100,  # as it grows
        "small": 10,  # intervals in a small one
        "epsilons": [0.5, 1.0],
        "batch": 1000,
        "rebuilds": 2,  # in every repetition
        "most": 6_000_000,  # updates, if there are fewer reconstructions
        "grown": [10_000, 100_000, 1_000_000, 10_000_000],
        "grown_updates": 1_000_000,
        "lazy": [
            [100_000, 100],
            [100_000, 1000],
            [1_000_000, 100],
            [1_000_000, 1000],
            [1_000_000, 10_000],
        ],
        "alphas": [0.01, 0.001],
        "hot_updates": 300_000,
        "ssi": 100_000,
        "optimal": 10_000,
        "buckets": [20, 70],
        "repeats": 5,
    },
    "quick": {
        "canonical": 1_000_000,
        "n": 100_000,
        "groups": 100,
        "few": 100,
        "small": 10,
        "epsilons": [0.5, 1.0],
        "batch": 1000,
        "rebuilds": 2,
        "most": 600_000,
        "grown": [10_000, 100_000, 1_000_000],
        "grown_updates": 100_000,
        "lazy": [[100_000, 100], [100_000, 1000], [300_000, 1000]],
        "alphas": [0.01, 0.001],
        "hot_updates": 30_000,
        "ssi": 100_000,
        "optimal": 2000,
        "buckets": [20],
        "repeats": 3,
    },
}

Ids = npt.NDArray[np.int32]


def run(quick: bool, progress: Callable[[str], None]) -> dict[str, Any]:
    scale = SCALES["quick" if quick else "full"]
    rows: list[Row] = []
    for told, part in (
        ("the canonical partition", made),
        ("updates", kept),
        ("growth", grown),
        ("the lazy strategy", lazily),
        ("hotspots", hot),
        ("histograms", histograms),
    ):
        progress(told)
        rows += part(scale, quick)
    return result("partitions", rows)


# -- intervals ------------------------------------------------------------------------------------


class Shape(Protocol):
    def draw(self, rng: np.random.Generator, n: int) -> tuple[I64, I64]: ...


class Sites:
    """Intervals around sites, all of which contain theirs and no other; demand by Zipf, 0 is even."""

    def __init__(self, sites: int, beta: float = 1.0) -> None:
        shares = np.arange(1, sites + 1, dtype=np.float64) ** -beta
        self._up_to = np.cumsum(shares / shares.sum())
        self._at = CELL * np.random.default_rng(1).permutation(sites)

    def draw(self, rng: np.random.Generator, n: int) -> tuple[I64, I64]:
        ranks = np.searchsorted(self._up_to[:-1], rng.random(n), "right")
        at = self._at[ranks]
        return at - rng.integers(0, CELL // 2, n), at + rng.integers(0, CELL // 2, n)


class Even:
    """Begins even over a domain, lengths too; a group has about this many."""

    def __init__(self, n: int, together: int) -> None:
        self._domain, self._longest = 1000 * n, 2000 * together

    def draw(self, rng: np.random.Generator, n: int) -> tuple[I64, I64]:
        lo = rng.integers(0, self._domain, n)
        return lo, lo + rng.integers(self._longest // 2, self._longest, n)


# -- the canonical partition ----------------------------------------------------------------------


@compiled
def _in_order(order: I64, lo: I64, hi: I64) -> int:
    """A pass over the intervals in the order found: the ends of each are looked at."""
    most = lo[order[0]] if len(order) else 0
    for i in range(len(order)):
        most = max(most, hi[order[i]] - lo[order[i]])
    return most


@compiled
def _as_they_lie(lo: I64, hi: I64) -> int:
    most = lo[0] if len(lo) else 0
    for i in range(len(lo)):
        most = max(most, hi[i] - lo[i])
    return most


def made(scale: dict[str, Any], quick: bool) -> list[Row]:
    """Within 1.5 times the sort that it needs and a pass: theirs / ours is 0.67 or more."""
    n, rows = scale["canonical"], []
    rng = np.random.default_rng(2)
    equal = np.full(n, 5, np.int64)
    for name, (lo, hi) in {
        "even": Even(n, 10).draw(rng, n),
        "clustered": Sites(1000).draw(rng, n),
        "all equal": (equal, equal + 10),
    }.items():
        groups = len(canonical(lo, hi))

        def sorted_pass() -> int:
            return int(_in_order(np.argsort(lo), lo, hi))

        def plain_pass() -> int:
            np.argsort(lo)
            return int(_as_they_lie(lo, hi))

        for rival, theirs in (
            ("argsort, then a pass in that order", sorted_pass),
            ("argsort, then a pass as they lie", plain_pass),
        ):
            rows.append(
                compare(
                    f"canonical partition, n={n:,}, {name}, {groups:,} groups",
                    rival,
                    lambda: canonical(lo, hi),
                    theirs,
                    work=n / 1e6,
                    unit="M intervals/s",
                    goal=round(1 / WITHIN, 3),
                    repeats=scale["repeats"],
                )
            )
    return rows


# -- updates --------------------------------------------------------------------------------------


class Step(NamedTuple):
    come: Ids
    lo: I64
    hi: I64
    go: Ids


class Churn:
    """A partition of n intervals; equal seeds have equal histories."""

    def __init__(self, partition: Partition, shape: Shape, n: int, batch: int) -> None:
        self.partition, self._shape, self._batch = partition, shape, min(batch, n)
        self._rng = np.random.default_rng(3)
        self._live = self._rng.permutation(n).astype(np.int32)
        self._spare = np.arange(n, n + self._batch, dtype=np.int32)
        self._steps: list[Step] = []
        partition.build(np.arange(n), *shape.draw(self._rng, n))
        self.prepare(2 * self._batch)
        self.go()

    def prepare(self, updates: int) -> int:
        """Draw about so many updates, half of them inserts; returns how many."""
        batches = max(1, updates // (2 * self._batch))
        for _ in range(batches):
            lo, hi = self._shape.draw(self._rng, self._batch)
            places = self._rng.choice(len(self._live), self._batch, replace=False)
            gone, come = self._live[places], self._spare
            self._live[places] = come
            self._spare = gone
            self._steps.append(Step(come, lo, hi, gone))
        return 2 * batches * self._batch

    def go(self) -> None:
        partition = self.partition
        for come, lo, hi, gone in self._steps:
            partition.insert(come, lo, hi)
            partition.delete(gone)
        self._steps.clear()

    def timed(self, updates: int) -> float:
        """Seconds an update."""
        many = self.prepare(updates)
        return seconds(self.go) / many

    def steps_down(self) -> float:
        """To an interval, from above: places looked at to find its group, and the height of its tree."""
        partition = self.partition
        assert isinstance(partition, RefinedPartition)
        groups = partition.groups()
        high = partition.state.nodes[partition.state.roots[groups.group], avl.HEIGHT]
        return math.log2(max(2, len(groups.group))) + float(np.average(high, weights=groups.size))


def shapes(scale: dict[str, Any], n: int) -> dict[str, Shape]:
    few, small = min(scale["groups"], n), scale["small"]
    return {f"{few:,} sites by Zipf": Sites(few), "many small groups": Even(n, small)}


def kept(scale: dict[str, Any], quick: bool) -> list[Row]:
    n, rows = scale["n"], []
    for name, shape in shapes(scale, n).items():
        for epsilon in scale["epsilons"]:
            churn = Churn(RefinedPartition(epsilon), shape, n, scale["batch"])
            partition = churn.partition
            groups, updates = partition.stabbing_number, 0
            while partition.reconstructions < scale["rebuilds"] and updates < scale["most"]:
                updates += churn.prepare(scale["most"] // 50)
                churn.go()
            updates = updates * 5 // 4  # the first ones were on a partition just laid out
            times, rebuilt = [], []
            for _ in range(scale["repeats"]):
                before = partition.reconstructions
                times.append(churn.timed(updates))
                rebuilt.append(partition.reconstructions - before)
            told = (
                f"{min(rebuilt)} to {max(rebuilt)}" if min(rebuilt) < max(rebuilt) else rebuilt[0]
            )
            rows.append(
                row(
                    f"refined partition, n={n:,}, {name}, epsilon={epsilon:g}: {updates:,} updates with "
                    f"{told} reconstructions of {groups:,} groups",
                    "the goal",
                    [(time, 1e-6 / RATE) for time in times],
                    work=1e-6,
                    unit="M updates/s",
                    goal=1,
                    reconstructions=rebuilt,
                )
            )
    return rows


def grown(scale: dict[str, Any], quick: bool) -> list[Row]:
    """How much longer an update takes as the partition grows.

    Either the groups grow, or their number. A small epsilon, so that there are reconstructions.
    """
    rows, sizes = [], scale["grown"]
    few, small = scale["few"], scale["small"]
    makes: dict[str, Callable[[int], Shape]] = {
        f"{few:,} sites by Zipf": lambda n: Sites(few),
        "many small groups": lambda n: Even(n, small),
    }
    for name, make in makes.items():
        churns = {}
        for n in sizes:
            churns[n] = Churn(RefinedPartition(0.1), make(n), n, scale["batch"])
            churns[n].timed(scale["grown_updates"])
        first, steps = churns[sizes[0]], churns[sizes[0]].steps_down()
        for n in sizes[1:]:
            churn = churns[n]
            before = churn.partition.reconstructions
            pairs = [
                (churn.timed(scale["grown_updates"]), first.timed(scale["grown_updates"]))
                for _ in range(scale["repeats"])
            ]
            longer = statistics.median(ours / theirs for ours, theirs in pairs)
            log, down = math.log(n) / math.log(sizes[0]), churn.steps_down()
            rows.append(
                row(
                    f"refined update, {name}, n={n:,}: {longer:.2f} times as long, log n {log:.2f}, "
                    f"steps down {down:.1f} for {steps:.1f}",
                    f"itself at n={sizes[0]:,}",
                    pairs,
                    work=1e-6,
                    unit="M updates/s",
                    times_as_long=round(longer, 3),
                    log_n=round(log, 3),
                    steps_down=[round(down, 1), round(steps, 1)],
                    groups=churn.partition.stabbing_number,
                    reconstructions=churn.partition.reconstructions - before,
                    bytes_per_interval=round(_bytes(churn.partition) / n),
                )
            )
        del churns, first
    return rows


def _bytes(partition: Partition) -> int:
    assert isinstance(partition, RefinedPartition)
    return partition.nbytes


# -- other ways -----------------------------------------------------------------------------------


def lazily(scale: dict[str, Any], quick: bool) -> list[Row]:
    """Refined against lazy, and lazy against its formula: n log n / (epsilon tau_0) steps an update.

    If it follows the formula a step takes as long at every size: the last row has the longest time of a
    step and the shortest, over sizes at which the formula itself is many times as large.
    """
    rows, epsilon = [], 1.0
    quotients: list[list[float]] = []  # by size and repetition
    formula: list[float] = []
    for n, groups in scale["lazy"]:
        batch = max(50, groups // 10)
        lazy, refined = (
            Churn(make(epsilon), Sites(groups, 0.0), n, batch)
            for make in (LazyPartition, RefinedPartition)
        )
        updates = max(4 * groups, 4 * batch)
        lazy.timed(updates), refined.timed(updates)
        before = [one.partition.reconstructions for one in (lazy, refined)]
        pairs = [(refined.timed(updates), lazy.timed(updates)) for _ in range(scale["repeats"])]
        rebuilt = [
            one.partition.reconstructions - b
            for one, b in zip((lazy, refined), before, strict=True)
        ]
        steps = n * math.log2(n) / (epsilon * groups)
        quotients.append([theirs * 1e9 / steps for _, theirs in pairs])
        quotient = statistics.median(quotients[-1])
        formula.append(steps)
        rows.append(
            row(
                f"refined update, n={n:,}, {groups:,} groups, epsilon={epsilon:g}, calls of {batch:,}: "
                f"lazy {rebuilt[0]:,} reconstructions, refined {rebuilt[1]:,}; lazy takes "
                f"{quotient:.2g} ns times n log n / (epsilon tau)",
                "the lazy strategy",
                pairs,
                work=1e-6,
                unit="M updates/s",
                reconstructions=rebuilt,
                formula_steps=round(steps, 1),
                ns_a_step=round(quotient, 4),
            )
        )
    rows.append(_evenness(quotients, max(formula) / min(formula)))
    return rows


def _evenness(quotients: list[list[float]], grows: float) -> Row:
    """How many times as long a step of the formula takes at one size as at another."""
    middles = [statistics.median(times) for times in quotients]
    each = [max(times) / min(times) for times in zip(*quotients, strict=True)]
    ratio = statistics.median(each)
    return {
        "case": "lazy update, ns a step of its formula n log n / (epsilon tau): the most of "
        f"{len(middles)} sizes over the least, where the formula grows {grows:,.0f}-fold",
        "rival": "itself at another size",
        "ours": round(max(middles), 4),
        "theirs": round(min(middles), 4),
        "unit": "ns a step",
        "ratio": round(ratio, 3),
        "spread": [round(min(each), 3), round(max(each), 3)],
        "goal": f"<= {EVEN:g}",
        "holds": ratio <= EVEN,
    }


def hot(scale: dict[str, Any], quick: bool) -> list[Row]:
    n, rows = scale["n"], []
    for name, shape in shapes(scale, n).items():
        for alpha in scale["alphas"]:
            alone = Churn(RefinedPartition(1.0), shape, n, scale["batch"])
            tracked = Hotspots(alpha, 1.0)
            churn = Churn(tracked, shape, n, scale["batch"])
            alone.timed(scale["hot_updates"]), churn.timed(scale["hot_updates"])
            pairs = [
                (churn.timed(scale["hot_updates"]), alone.timed(scale["hot_updates"]))
                for _ in range(scale["repeats"])
            ]
            found = tracked.hot()
            share = int(found.size.sum()) / n
            rows.append(
                row(
                    f"hotspots, n={n:,}, {name}, alpha={alpha:g}: {len(found.group):,} hot groups with "
                    f"{100 * share:.0f} % of the intervals, {tracked.moves.each:.2g} moves an update",
                    "the partition alone",
                    pairs,
                    work=1e-6,
                    unit="M updates/s",
                    moves=tracked.moves._asdict(),
                )
            )
    return rows


# -- histograms -----------------------------------------------------------------------------------


def normal(n: int, spread: float) -> tuple[I64, I64]:
    """Appendix B's: mid-points Normal(5000, 1500), lengths Normal(1000, spread), within 0..10000.

    In thousandths, for the paper's real numbers. What is not within, or has no length, is drawn anew.
    """
    rng = np.random.default_rng(4)
    lo, hi = np.zeros(0, np.int64), np.zeros(0, np.int64)
    while len(lo) < n:
        middle, length = rng.normal(5000, 1500, 2 * n), rng.normal(1000, spread, 2 * n)
        first = np.rint(1000 * (middle - length / 2)).astype(np.int64)
        last = np.rint(1000 * (middle + length / 2)).astype(np.int64)
        good = (length > 0) & (first >= 0) & (last <= 1000 * 10_000)
        lo, hi = np.concatenate([lo, first[good]]), np.concatenate([hi, last[good]])
    return lo[:n].copy(), hi[:n].copy()


def histograms(scale: dict[str, Any], quick: bool) -> list[Row]:
    """The paper does not say whether 2000 is the lengths' deviation or its square; both are here."""
    rows = []
    n, few = scale["ssi"], scale["optimal"]
    for told, spread in (("deviation 2000", 2000.0), ("variance 2000", math.sqrt(2000))):
        lo, hi = normal(n, spread)
        groups = len(canonical(lo, hi))
        Histogram.optimal(lo[:100], hi[:100], 5)
        for buckets in scale["buckets"]:
            once = [seconds(lambda: Histogram.optimal(lo[:few], hi[:few], buckets))]
            once += _again(once[0], lambda: Histogram.optimal(lo[:few], hi[:few], buckets))
            for method in ("shared", "mapped"):
                Histogram.ssi(lo, hi, buckets, method=method)
                ours = [
                    seconds(lambda: Histogram.ssi(lo, hi, buckets, method=method)) for _ in once
                ]
                rows.append(
                    row(
                        f"HIST-SSI ({method}) of {n:,} intervals, lengths of {told}, {groups:,} groups, "
                        f"{buckets} buckets",
                        f"HIST-OPT of {few:,}",
                        list(zip(ours, once, strict=True)),
                        work=1.0,
                        unit="histograms/s",
                        goal=FASTER if not quick else None,
                    )
                )
    return rows


def _again(first: float, call: Callable[[], object]) -> Iterable[float]:
    """Two more times, if it does not take long."""
    return [seconds(call) for _ in range(2 if first < 20 else 1)]
