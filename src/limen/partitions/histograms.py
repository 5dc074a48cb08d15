"""Histograms over intervals: about how many of them contain a value (appendix B).

f(x) is the number of intervals that contain x; a histogram is a step function h with few pieces. How far
it is off is measured relative to f, over the distribution phi of the values to come:

    E**2 = sum over x of phi(x) * (h(x) - f(x))**2 / max(f(x), 1)**2

(where nothing contains x the paper's quotient is not defined; it is taken relative to 1 there). Without
a sample of the values phi is uniform between the least and the greatest end.

Buckets are counted as the paper does: those that the parts of the groups are given. Where parts overlap
their sum changes more often than either, and each group ends somewhere: `pieces` counts what the sum has.

Cost, of n intervals and k buckets: sorting and a few passes for HIST-SSI, k * n**2 for HIST-OPT.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from numbers import Integral
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from limen.indexes.protocol import plain
from limen.kernels.step_functions import cuts, extremes, least_costs
from limen.model import INT64_MAX, INT64_MIN
from limen.partitions.canonical import canonical, refuse_upside_down
from limen.partitions.counts import (
    F64,
    I64,
    Runs,
    Steps,
    Values,
    added_up,
    lasts_of,
    means_of,
)
from limen.partitions.hist_ssi import runs_of_groups

Method = Literal["shared", "mapped"]
Relative = Literal["group", "all"]

MASK = 2**64 - 1


class Error(NamedTuple):
    """Of estimates, relative to the true counts: the mean, and the root of the paper's E**2."""

    mean: float
    root: float


class Span(NamedTuple):
    """From the least to the greatest end of intervals; empty if `last` is before `first`."""

    first: int
    last: int


class Histogram:
    """Buckets over all of int64: bucket b has the values from edges[b] to before edges[b + 1].

    Invariant, also after inserts and deletes: least <= the true count <= most in every bucket, and
    least <= value <= most. At build least and most are the true extremes. Deleting what was never
    inserted breaks it.

    >>> found = Histogram.ssi([1, 2, 8, 3], [5, 9, 9, 4], 6)
    >>> found.estimate([0, 3, 7, 9]).tolist()
    [0.0, 3.0, 1.0, 2.0]
    >>> found.insert([0], [3])
    >>> least, most = found.bounds([1, 3, 9])
    >>> least.tolist(), most.tolist()
    ([2, 3, 2], [2, 4, 2])
    """

    def __init__(
        self,
        edges: I64,
        value: F64,
        exact: Steps,
        values: Values,
        intervals: int,
        buckets: int,
        asked: int,
    ) -> None:
        """`value` may be NaN where no values are expected; `asked`: the buckets that could have been."""
        self.edges = edges
        self.least, self.most = extremes(exact.firsts, exact.heights, edges)
        value = np.where(np.isnan(value), (self.least + self.most) / 2, value)
        self.value = np.clip(value, self.least, self.most)
        self.values = values
        self.intervals = intervals
        self.buckets = buckets
        self._asked = asked
        self.mass = values.by_piece(edges)
        self._mean = exact.means(edges, self.value)
        self._lean = self.value / np.where(self._mean > 0, self._mean, 1)
        known = None if len(exact.firsts) == 1 else Span(values.first, values.last)
        self._built = self._known = known
        inner = exact.reach
        begins, ends = exact.firsts[inner][:1], lasts_of(exact.firsts)[inner][-1:]
        self.pieces = int(((edges >= begins) & (edges <= ends)).sum()) if len(begins) else 0

    def __len__(self) -> int:
        """The number of buckets, as the paper counts them."""
        return self.buckets

    def __repr__(self) -> str:
        return (
            f"Histogram({self.intervals:,} intervals, {self.buckets} buckets, {self.pieces} pieces)"
        )

    # -- building ------------------------------------------------------------------------------------

    @classmethod
    def equi_width(
        cls,
        lo: npt.ArrayLike,
        hi: npt.ArrayLike,
        buckets: int,
        values: npt.ArrayLike | None = None,
    ) -> Histogram:
        """HIST-EQW: buckets of equal width between the least and the greatest end.

        A bucket's value is the mean of f over it, so that `share` is exact at build. Intervals that are
        open to a side are counted in the outermost bucket there.
        """
        buckets = _whole(buckets)
        lo, hi, phi = _checked(lo, hi, values)
        exact = Steps.of(np.sort(lo), np.sort(hi), phi)
        edges = _evenly(phi, buckets, exact)
        starts = _union(edges, exact.firsts)
        shares = phi.by_piece(starts)
        bucket = np.searchsorted(edges, starts, "right") - 1
        mass = np.bincount(bucket, shares, len(edges))
        summed = np.bincount(bucket, shares * exact.at(starts), len(edges))
        mean = np.full(len(edges), np.nan)
        np.divide(summed, mass, out=mean, where=mass > 0)
        return cls(edges, mean, exact, phi, len(lo), buckets, buckets)

    @classmethod
    def optimal(
        cls,
        lo: npt.ArrayLike,
        hi: npt.ArrayLike,
        buckets: int,
        values: npt.ArrayLike | None = None,
    ) -> Histogram:
        """HIST-OPT: no histogram with as many buckets has a smaller E. Quadratic in the intervals."""
        return optima(lo, hi, [buckets], values)[0]

    @classmethod
    def ssi(
        cls,
        lo: npt.ArrayLike,
        hi: npt.ArrayLike,
        buckets: int,
        method: Method = "shared",
        values: npt.ArrayLike | None = None,
        relative_to: Relative = "group",
    ) -> Histogram:
        """HIST-SSI: the sum of histograms of the stabbing groups.

        "shared": a group gets buckets in proportion to its size, half of them on each side of its point,
        and iterative k-means places them. "mapped": one clustering of all parts at once, as of points
        moved so far apart that no cluster has points of two parts; so it is decided by the errors how
        many buckets a part gets. That costs little more and is never much worse in the sum of the
        parts' errors.

        These are relative to the "group", as in the paper, or to "all" intervals: then no buckets are
        spent on the far ends of a group where others outnumber it (with 11 groups and 50 buckets, E is
        0.14 instead of 0.24).

        A part needs a bucket of its own. Where there are more parts than buckets, only groups that are
        entitled to two or more by their size are taken apart; all others are put together, and what they
        add up to gets its share of the buckets by dynamic programming over at most MICRO runs of its
        pieces, its error taken relative to the count of all intervals. More than half as many buckets
        are not placed by that but evenly, and shared out by size.
        """
        buckets = _whole(buckets)
        lo, hi, phi = _checked(lo, hi, values)
        if method not in ("shared", "mapped"):
            raise ValueError(f"method is 'shared' or 'mapped', not {method!r}")
        if relative_to not in ("group", "all"):
            raise ValueError(f"errors are relative to the 'group' or to 'all', not {relative_to!r}")
        groups = canonical(lo, hi)
        exact = Steps.of(lo[groups.order], np.sort(hi), phi)
        runs = runs_of_groups(
            groups,
            lo,
            hi,
            buckets,
            exact,
            phi,
            by_error=method == "mapped",
            relative_to_all=relative_to == "all",
        )
        edges, value = added_up(runs)
        handed = sum(len(run.values) for run in runs)
        return cls(edges, value, exact, phi, len(lo), handed, buckets)

    # -- asking --------------------------------------------------------------------------------------

    def _bucket(self, xs: npt.ArrayLike) -> npt.NDArray[np.intp]:
        return np.searchsorted(self.edges, plain(xs, np.int64), "right") - 1

    def estimate(self, xs: npt.ArrayLike) -> F64:
        """About how many intervals contain each x."""
        return self.value[self._bucket(xs)]

    def bounds(self, xs: npt.ArrayLike) -> tuple[I64, I64]:
        """For each x, how many intervals contain it at least and at most."""
        bucket = self._bucket(xs)
        return self.least[bucket], self.most[bucket]

    def share(self) -> float:
        """The part of the intervals that a value is expected to lie in, by these estimates."""
        return float(self.mass @ self.value) / self.intervals if self.intervals else 0.0

    @property
    def looseness(self) -> float:
        """The mean width of the bounds, by the mean estimate, over the values that are expected.

        Every insert and delete adds to it, and nothing but building anew takes off: do that when it is
        some times what it was at first. It is infinite where nothing is expected and something may be.
        """
        width, count = float(self.mass @ (self.most - self.least)), float(self.mass @ self.value)
        if not width:
            return 0.0
        return width / count if count else inf

    def error(
        self, lo: npt.ArrayLike, hi: npt.ArrayLike, values: npt.ArrayLike | None = None
    ) -> Error:
        """How far estimates are from the counts of these intervals, over all values.

        Without a sample of values, over those that the histogram was built for.
        """
        first, last = plain(lo, np.int64), plain(hi, np.int64)
        refuse_upside_down(first, last)
        phi = self.values if values is None else Values.among(first, last, values)
        exact = Steps.of(np.sort(first), np.sort(last), phi)
        starts = _union(self.edges, exact.firsts)
        mass, f = phi.by_piece(starts), exact.at(starts)
        off = np.abs(self.estimate(starts) - f) / np.maximum(f, 1)
        return Error(float(mass @ off), float(np.sqrt(mass @ off**2)))

    # -- keeping -------------------------------------------------------------------------------------

    def insert(self, lo: npt.ArrayLike, hi: npt.ArrayLike) -> None:
        """The mean count of a bucket grows by the share of its values that each interval covers, and its
        value, which is least off in relation to the counts and so below their mean, in proportion.

        Edges stay where they are between the least and the greatest end so far. Beyond, where one bucket
        without an end would tell nothing, the new ends make edges, about as far apart as there would be
        buckets for all (at most `buckets` and a few on each side), and values are expected there as well.
        `looseness` says when to build anew. Cost: a bisection an end, and a pass over the buckets.
        """
        first, last = plain(lo, np.int64), plain(hi, np.int64)
        refuse_upside_down(first, last)
        self._reach_out(first, last)
        inner, touched, covered, n = self._covered(first, last)
        self.least += inner
        self.most += inner + touched
        self._settle(covered, n)

    def delete(self, lo: npt.ArrayLike, hi: npt.ArrayLike) -> None:
        """Take out intervals that were built or inserted with the same ends."""
        inner, touched, covered, n = self._covered(lo, hi)
        if n > self.intervals:
            raise ValueError(f"{n} intervals to delete, but there are only {self.intervals}")
        self.least = np.maximum(self.least - inner - touched, 0)
        self.most = np.maximum(self.most - inner, 0)
        self._settle(-covered, -n)

    def _reach_out(self, lo: I64, hi: I64) -> None:
        """Make edges where these end beyond all ends so far; of a cell as wide as a bucket would be if
        all were evenly cut, only the one next to what was built with, and the outermost."""
        begins, beyond = lo[lo != INT64_MIN], hi[hi != INT64_MAX] + 1
        at = np.concatenate([begins, beyond])
        if not len(at):
            return
        least = min(int(begins.min(initial=INT64_MAX)), int(beyond.min(initial=INT64_MAX)) - 1)
        most = max(int(begins.max(initial=INT64_MIN)), int(beyond.max(initial=INT64_MIN + 1)) - 1)
        if self._known is None or self._built is None:
            self._built = self._known = Span(least, least - 1)
        before, built = self._known, self._built
        known = Span(min(before.first, least), max(before.last, most))
        if known == before:
            return
        apart = max(1, -(-(known.last - known.first) // self._asked))
        edges = self.edges[1:]
        kept = [self.edges[:1], edges[(edges > built.first) & (edges <= built.last)]]
        above = np.unique(np.concatenate([at[at > before.last], edges[edges > built.last]]))
        if known.last > before.last:
            above = np.union1d(above, np.array([before.last + 1], np.int64))
        below = np.unique(np.concatenate([at[at < before.first], edges[edges <= built.first]]))
        if known.first < before.first:
            below = np.union1d(below, np.array([before.first], np.int64))
        kept += [above[_first_of_cells(above, built.last + 1, apart)], above[-1:]]
        below = below[::-1]
        kept += [below[_first_of_cells(below, built.first, apart)], below[-1:]]
        self._known, self.values = known, self.values.as_far_as(*known)
        self._cut(np.unique(np.concatenate(kept)))

    def _cut(self, edges: I64) -> None:
        """Go over to other edges: what is cut has the same in all parts, what is joined its mean."""
        starts = _union(self.edges, edges)
        old, at = np.searchsorted(self.edges, starts, "right") - 1, np.searchsorted(starts, edges)
        new = np.searchsorted(edges, starts, "right") - 1
        mass, width = self.values.by_piece(starts), _width(starts, lasts_of(starts))
        weight = np.where((np.add.reduceat(mass, at) > 0)[new], mass, width)
        weight /= np.add.reduceat(weight, at)[new]
        self._mean = np.add.reduceat(weight * self._mean[old], at)
        self._lean = np.add.reduceat(weight * self._lean[old], at)
        self.least = np.minimum.reduceat(self.least[old], at)
        self.most = np.maximum.reduceat(self.most[old], at)
        self.edges, self.mass = edges, self.values.by_piece(edges)
        if self._known is not None:
            inside = (edges >= self._known.first) & (edges <= self._known.last)
            self.pieces = int(np.count_nonzero(inside))

    def _settle(self, covered: F64, n: int) -> None:
        self.intervals += n
        self.most = np.minimum(self.most, self.intervals)
        self.least = np.minimum(self.least, self.most)
        self._mean = np.maximum(self._mean + covered, 0)
        lean = np.where(self._lean > 0, self._lean, 1)
        self.value = np.clip(self._mean * lean, self.least, self.most)

    def _covered(self, lo: npt.ArrayLike, hi: npt.ArrayLike) -> tuple[I64, I64, F64, int]:
        """By bucket: intervals that cover it all, that cover some of it, and the sum of their shares."""
        first, last = plain(lo, np.int64), plain(hi, np.int64)
        refuse_upside_down(first, last)
        size, lasts = len(self.edges), lasts_of(self.edges)
        a, b = self._bucket(first), self._bucket(last)
        from_edge, to_edge = first == self.edges[a], last == lasts[b]
        begin, end = a + ~from_edge, b + to_edge
        whole = begin < end
        changes = np.bincount(begin[whole], minlength=size + 1)
        changes -= np.bincount(end[whole], minlength=size + 1)
        inner = np.cumsum(changes)[:size]
        some_a = ~from_edge
        some_b = ~to_edge & ~(some_a & (a == b))
        buckets = np.concatenate([a[some_a], b[some_b]])
        firsts = np.concatenate([first[some_a], np.maximum(first[some_b], self.edges[b[some_b]])])
        ends = np.concatenate([np.minimum(last[some_a], lasts[a[some_a]]), last[some_b]])
        shares = self._share_of(buckets, firsts, ends)
        touched = np.bincount(buckets, minlength=size)
        covered = np.bincount(buckets, shares, size).astype(np.float64) + inner
        return inner.astype(np.int64), touched.astype(np.int64), covered, len(first)

    def _share_of(self, buckets: npt.NDArray[np.intp], firsts: I64, lasts: I64) -> F64:
        """Of a bucket's values, those in a range within it; of its width, if it has no values."""
        mass = self.mass[buckets]
        edges, ends = self.edges[buckets], lasts_of(self.edges)[buckets]
        by_width = _width(firsts, lasts) / _width(edges, ends)
        by_mass = self.values.between(firsts, lasts) / np.where(mass > 0, mass, 1)
        return np.where(mass > 0, np.minimum(by_mass, 1), by_width)


def optima(
    lo: npt.ArrayLike,
    hi: npt.ArrayLike,
    buckets: Sequence[int],
    values: npt.ArrayLike | None = None,
) -> list[Histogram]:
    """HIST-OPT for several numbers of buckets, for the cost of the largest."""
    if not isinstance(buckets, (Sequence, np.ndarray)) or not len(buckets):
        raise ValueError(f"a list of numbers of buckets is needed, not {buckets!r}")
    buckets = [_whole(number) for number in buckets]
    lo, hi, phi = _checked(lo, hi, values)
    exact = Steps.of(np.sort(lo), np.sort(hi), phi)
    inner = exact.reach
    firsts, weights = exact.firsts[inner], np.ascontiguousarray(exact.weights[inner])
    heights = exact.heights[inner].astype(np.float64)
    table = least_costs(weights, heights, min(max(buckets), len(heights)))
    made = []
    for number in buckets:
        ends = cuts(weights, heights, table, min(number, len(heights)))
        value = means_of(heights, weights, ends)
        run = Runs(firsts[ends[:-1]], lasts_of(exact.firsts)[inner][ends[1:] - 1], value)
        edges, summed = added_up([run])
        made.append(Histogram(edges, summed, exact, phi, len(lo), number, number))
    return made


# -- small things ------------------------------------------------------------------------------------


def _checked(
    lo: npt.ArrayLike, hi: npt.ArrayLike, values: npt.ArrayLike | None
) -> tuple[I64, I64, Values]:
    first, last = plain(lo, np.int64), plain(hi, np.int64)
    refuse_upside_down(first, last)
    return first, last, Values.among(first, last, values)


def _whole(buckets: object) -> int:
    """A number of buckets."""
    if not isinstance(buckets, Integral) or isinstance(buckets, bool):
        raise ValueError(f"the number of buckets is an integer, not {buckets!r}")
    if buckets < 1:
        raise ValueError(f"a histogram needs a bucket, not {buckets}")
    return int(buckets)


def _union(one: I64, other: I64) -> I64:
    both: I64 = np.sort(np.concatenate([one, other]))
    new = np.ones(len(both), np.bool_)
    new[1:] = both[1:] != both[:-1]
    return both[new]


def _first_of_cells(xs: I64, begin: int, width: int) -> npt.NDArray[np.intp]:
    """Of xs further and further from `begin`, to either side, the first in each cell of this width."""
    away = xs.astype(np.uint64) - np.array([begin & MASK], np.uint64)
    if len(xs) and int(xs[-1]) < begin:
        away = np.array([begin & MASK], np.uint64) - xs.astype(np.uint64)
    return np.unique(away // np.array([width], np.uint64), return_index=True)[1]


def _evenly(phi: Values, buckets: int, exact: Steps) -> I64:
    """Edges of equal widths between the least and the greatest end, and where f is 0 beyond them."""
    span = phi.last - phi.first + 1
    edges = [phi.first + span * b // buckets for b in range(buckets)]
    inner = exact.reach
    if inner.start < inner.stop:
        edges[0] = min(edges[0], int(exact.firsts[inner.start]))
        edges += exact.firsts[inner.stop : inner.stop + 1].tolist()
    return np.unique(np.array([INT64_MIN, *edges], np.int64))


def _width(firsts: I64, lasts: I64) -> F64:
    return (lasts.astype(np.uint64) - firsts.astype(np.uint64)).astype(np.float64) + 1
