"""HIST-SSI: the buckets of the stabbing groups (appendix B.2).

All intervals of a group contain its point, so how many of them contain x rises up to the point and falls
beyond it; of a monotone function the best histogram is the best clustering of its heights, weighted by
phi / height**2 (Lemma 5). The groups' histograms are added up.
"""

from __future__ import annotations

import numpy as np

from limen.kernels.kmeans import centres, even_runs, layer, lloyd, sums, total
from limen.kernels.step_functions import cuts, fall, least_costs, rise
from limen.model import INT64_MAX
from limen.partitions.canonical import Canonical
from limen.partitions.counts import F64, I64, Runs, Steps, Values, lasts_of, means_of

MICRO = 512  # runs to which the points of a part are reduced before exact clustering
ROUNDS = 500  # of the iterative k-means; it is seldom more than a few dozen


def runs_of_groups(
    groups: Canonical,
    lo: I64,
    hi: I64,
    buckets: int,
    exact: Steps,
    phi: Values,
    *,
    by_error: bool,
    relative_to_all: bool,
) -> list[Runs]:
    """The buckets of each part, shared out by the errors or by size."""
    parts, rest = taken_apart(groups, lo[groups.order], hi, buckets, exact, phi)
    if relative_to_all:
        for part in parts:
            part.weigh(exact, phi)
    if by_error and (rest is None or buckets <= MICRO // 2):
        share_out_by_error(parts, rest, buckets)
    else:
        share_out(parts, rest, buckets)
    runs = [part.runs() for part in parts]
    return runs if rest is None else [*runs, rest.runs()]


class Part:
    """One side of a group: its pieces from the stabbing point outward, so that heights fall."""

    def __init__(self, pieces: tuple[I64, I64, I64], phi: Values, size: float) -> None:
        self.firsts, self.lasts, heights = pieces
        self.size = size  # intervals, by which buckets are shared out
        self.heights = heights.astype(np.float64)
        self.weights = phi.between(self.firsts, self.lasts) / self.heights**2
        self.before = sums(self.heights, self.weights)
        self.ends = np.array([0, len(heights)], np.int64)

    def __len__(self) -> int:
        return len(self.heights)

    def weigh(self, exact: Steps, phi: Values) -> None:
        """Let errors be relative to the count of all intervals."""
        order = slice(None, None, 1 if self.firsts[0] <= self.firsts[-1] else -1)
        firsts = np.ascontiguousarray(self.firsts[order])
        found = exact.weigh(firsts, phi.below(firsts), self.lasts.max(), phi)
        self.weights = found[order].copy()
        self.before = sums(self.heights, self.weights)

    def cluster(self, ends: I64) -> None:
        """Iterative k-means from these runs on."""
        lloyd(self.heights, self.before, ends, ROUNDS)
        self.ends = ends

    @property
    def cost(self) -> float:
        return float(total(self.before, self.ends))

    def runs(self) -> Runs:
        one, other = self.ends[:-1], self.ends[1:] - 1
        return Runs(
            np.minimum(self.firsts[one], self.firsts[other]),
            np.maximum(self.lasts[one], self.lasts[other]),
            centres(self.heights, self.before, self.ends),
        )


class _Layers:
    """The least cost of a part with one bucket, two, ...: a layer when it is asked for.

    Exact for at most `micro` runs of its points instead of the points: the idea of Har-Peled and
    Mazumdar.
    """

    def __init__(self, part: Part, micro: int) -> None:
        self._micro = even_runs(part.heights, part.weights, micro)
        self._before = np.ascontiguousarray(part.before[self._micro])
        none = np.full(len(self._micro), np.inf)
        none[0] = 0.0
        self._costs, self._begins = layer(self._before, none)
        self._path = [self._begins]
        self.cost = float(self._costs[-1])

    def gain(self) -> float:
        """What one bucket more takes off the cost; costs are convex, so gains never grow."""
        self._costs, begins = layer(self._before, self._costs)
        self._path.append(begins)
        before, self.cost = self.cost, float(self._costs[-1])
        return before - self.cost

    def ends(self, k: int) -> I64:
        """Of the best k runs. Some may be empty, when fewer cost as little: other points get these."""
        found = [len(self._micro) - 1]
        for begins in reversed(self._path[:k]):
            found.append(int(begins[found[-1]]))
        ends = self._micro[np.unique(np.array(found, np.int64))]
        if len(ends) <= k:
            others = np.setdiff1d(np.arange(self._micro[-1]), ends)
            ends = np.sort(np.concatenate([ends, others[: k + 1 - len(ends)]]))
        return ends


class Rest:
    """All groups that are not taken apart, as one function that need not be monotone."""

    def __init__(self, rest: Steps, weights: F64, size: int) -> None:
        inner = rest.reach
        self.size = size
        self.firsts, self.lasts = rest.firsts[inner], lasts_of(rest.firsts)[inner]
        self.heights = rest.heights[inner].astype(np.float64)
        self.weights = weights[inner].copy()
        self._micro = even_runs(self.heights, self.weights, MICRO)
        self._sums = np.add.reduceat(self.weights, self._micro[:-1])
        self._means = means_of(self.heights, self.weights, self._micro)
        self.ends = self._micro[[0, -1]]
        self.table = np.empty((0, 0))

    def __len__(self) -> int:
        return len(self.heights)

    def costs(self, most: int) -> F64:
        """The least costs with 1..most buckets, apart from what the reduction to runs has cost."""
        self.table = least_costs(self._sums, self._means, most)
        found: F64 = self.table[1:, -1]
        return found

    def cluster(self, k: int) -> None:
        self.ends = self._micro[cuts(self._sums, self._means, self.table, k)]

    def spread(self, k: int) -> None:
        """The best k buckets; evenly, if they are many."""
        if k > MICRO // 2:
            self.ends = even_runs(self.heights, self.weights, k)
        else:
            self.costs(k)
            self.cluster(k)

    @property
    def cost(self) -> float:
        each = np.repeat(means_of(self.heights, self.weights, self.ends), np.diff(self.ends))
        return float(self.weights @ (self.heights - each) ** 2)

    def runs(self) -> Runs:
        means = means_of(self.heights, self.weights, self.ends)
        return Runs(self.firsts[self.ends[:-1]], self.lasts[self.ends[1:] - 1], means)


def taken_apart(
    groups: Canonical, begins: I64, hi: I64, buckets: int, exact: Steps, phi: Values
) -> tuple[list[Part], Rest | None]:
    """The parts that get buckets of their own, and what is left; `begins` are the lo in order."""
    if not len(groups):
        return [], None
    ends = hi[groups.order]
    sides = 1 + (np.maximum.reduceat(ends, groups.starts[:-1]) > groups.points)
    own = groups.sizes * buckets >= sides * len(begins)
    if sides.sum() <= buckets:
        own[:] = True
    parts = []
    for g in np.flatnonzero(own).tolist():
        mine = slice(groups.starts[g], groups.starts[g + 1])
        size = (mine.stop - mine.start) / int(sides[g])
        parts.append(Part(rise(begins[mine], groups.points[g]), phi, size))
        if sides[g] == 2:
            parts.append(Part(fall(np.sort(ends[mine])), phi, size))
    if own.all():
        return parts, None
    if not own.any():
        rest, weights = exact, exact.weights
    else:
        others = np.repeat(~own, groups.sizes)
        rest = Steps.of(begins[others], np.sort(ends[others]), phi)
        weights = exact.weigh(rest.firsts, rest.below, INT64_MAX, phi)
    return parts, Rest(rest, weights, int(groups.sizes[~own].sum()))


def share_out(parts: list[Part], rest: Rest | None, buckets: int) -> None:
    """Buckets in proportion to the sizes (by the method of Sainte-Lague), one to each at least."""
    all_parts: list[Part | Rest] = [*parts, *([] if rest is None else [rest])]
    if not all_parts:
        return
    sizes = np.array([part.size for part in all_parts], np.float64)
    most = np.array([len(part) for part in all_parts])
    given = np.ones(len(all_parts), np.int64)
    for _ in range(buckets - len(all_parts)):
        claims = np.where(given < most, sizes / (2 * given + 1), 0.0)
        first = int(claims.argmax())
        if not claims[first]:
            break
        given[first] += 1
    for part, k in zip(parts, given.tolist(), strict=False):
        part.cluster(even_runs(part.heights, part.weights, k))
    if rest is not None:
        rest.spread(int(given[-1]))


def share_out_by_error(parts: list[Part], rest: Rest | None, buckets: int) -> None:
    """Each bucket to the part that gains most by it: the best that can be done, as gains only fall.

    What is left over from the groups is not monotone and its gains may grow, so every number of buckets
    for it is compared.
    """
    layers = [_Layers(part, max(MICRO, 2 * buckets)) for part in parts]
    costs = [sum(layer.cost for layer in layers)]
    gains = np.array([layer.gain() for layer in layers])
    room = np.array([len(part) - 1 for part in parts], np.int64)
    order: list[int] = []
    for _ in range(min(buckets - len(parts) - (rest is not None), int(room.sum()))):
        first = int(np.where(room > 0, gains, -1.0).argmax())
        order.append(first)
        costs.append(costs[-1] - float(gains[first]))
        gains[first] = layers[first].gain()
        room[first] -= 1
    if rest is not None:
        most = min(buckets - len(parts), len(rest))
        for_parts = np.minimum(buckets - len(parts) - np.arange(1, most + 1), len(costs) - 1)
        k = int((rest.costs(most) + np.array(costs)[for_parts]).argmin()) + 1
        rest.cluster(k)
        order = order[: for_parts[k - 1]]
    given = 1 + np.bincount(np.array(order, np.int64), minlength=len(parts))
    for part, layered, k in zip(parts, layers, given.tolist(), strict=True):
        part.cluster(layered.ends(k))
