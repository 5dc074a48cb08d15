"""How many of a set of intervals contain a value, as steps; and which values are to come."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from limen.indexes.protocol import plain
from limen.kernels.step_functions import evenly_below, steps, weigh
from limen.model import INT64_MAX, INT64_MIN

F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]


class Values:
    """phi: how the values to come are distributed."""

    def __init__(self, first: int, last: int, sample: npt.ArrayLike | None = None) -> None:
        """As the sample; without one, uniform over the integers first..last."""
        self.first, self.last = first, last
        self._sample = None if sample is None else np.sort(plain(sample, np.int64))
        if self._sample is not None and not len(self._sample):
            raise ValueError("a sample of values needs at least one")

    @classmethod
    def among(cls, lo: I64, hi: I64, sample: npt.ArrayLike | None = None) -> Values:
        """Uniform between the ends of intervals, where they have ends, unless there is a sample.

        An interval that is open to a side has no end there.
        """
        ends = [x for x in (lo[lo != INT64_MIN], hi[hi != INT64_MAX]) if len(x)]
        if not ends and sample is not None and np.size(sample):
            ends = [plain(sample, np.int64)]
        if not ends:
            return cls(INT64_MIN, INT64_MAX, sample)
        return cls(min(int(x.min()) for x in ends), max(int(x.max()) for x in ends), sample)

    def as_far_as(self, first: int, last: int) -> Values:
        """With ends as far out as these; a sample stays as it is."""
        found = Values(first, last)
        found._sample = self._sample
        return found

    def below(self, xs: I64) -> F64:
        """The share of values below each x."""
        if self._sample is not None:
            return np.searchsorted(self._sample, xs, "left") / len(self._sample)
        return evenly_below(xs, self.first, self.last, 0)

    def up_to(self, xs: I64) -> F64:
        """The share of values below or at each x."""
        if self._sample is not None:
            return np.searchsorted(self._sample, xs, "right") / len(self._sample)
        return evenly_below(xs, self.first, self.last, 1)

    def by_piece(self, firsts: I64) -> F64:
        """The share of values from each of `firsts`, which are in order, to before the next."""
        return mass_of(self.below(firsts))

    def between(self, firsts: I64, lasts: I64) -> F64:
        """The share of values in each range, both ends included."""
        return self.up_to(lasts) - self.below(firsts)


class Steps(NamedTuple):
    """f: pieces from INT64_MIN on, with the share of values below each."""

    firsts: I64
    heights: I64
    below: F64

    @classmethod
    def of(cls, lo: I64, hi: I64, values: Values) -> Steps:
        """lo and hi are in order, each by itself."""
        firsts, heights = steps(lo, hi)
        if not len(firsts) or firsts[0] != INT64_MIN:
            firsts = np.concatenate([np.array([INT64_MIN], np.int64), firsts])
            heights = np.concatenate([np.zeros(1, np.int64), heights])
        return cls(firsts, heights, values.below(firsts))

    @property
    def weights(self) -> F64:
        """By which the square of an error counts."""
        return mass_of(self.below) / np.maximum(self.heights, 1).astype(np.float64) ** 2

    @property
    def reach(self) -> slice:
        """The pieces between the first and the last that are not 0."""
        if not self.heights.any():
            return slice(0, 0)
        return slice(int(self.heights[0] == 0), len(self.heights) - int(self.heights[-1] == 0))

    def weigh(self, firsts: I64, below: F64, last: int, phi: Values) -> F64:
        """Of other pieces, the sums of phi / f**2; the last of them ends with `last`."""
        end = float(phi.up_to(np.array([last], np.int64))[0])
        return weigh(firsts, below, last, end, self.firsts, self.below, self.heights)

    def means(self, edges: I64, otherwise: F64) -> F64:
        """The mean of f by bucket, over the values expected; where none are, or a piece lies across an
        edge, another number."""
        at = np.searchsorted(self.firsts, edges)
        if at[-1] == len(self.firsts) or (self.firsts[at] != edges).any():
            return otherwise.copy()
        each = mass_of(self.below)
        mass = np.add.reduceat(each, at)
        summed = np.add.reduceat(each * self.heights, at)
        return np.where(mass > 0, summed / np.where(mass > 0, mass, 1), otherwise)

    def at(self, xs: I64) -> I64:
        return self.heights[np.searchsorted(self.firsts, xs, "right") - 1]


def mass_of(below: F64) -> F64:
    """The share of values in each piece, of those below each."""
    found = np.empty(len(below), np.float64)
    found[:-1] = below[1:] - below[:-1]
    found[-1] = 1.0 - below[-1]
    return found


def lasts_of(firsts: I64) -> I64:
    """The last x of each piece: before the next begins."""
    found = np.full(len(firsts), INT64_MAX, np.int64)
    found[:-1] = firsts[1:] - 1
    return found


class Runs(NamedTuple):
    """Buckets: x from, x to, value."""

    firsts: I64
    lasts: I64
    values: F64


def added_up(runs: Sequence[Runs]) -> tuple[I64, F64]:
    """The edges of the sum of these buckets over all of int64, and its values."""
    firsts = np.concatenate([np.array([INT64_MIN], np.int64), *(run.firsts for run in runs)])
    values = np.concatenate([np.zeros(1), *(run.values for run in runs)])
    lasts = np.concatenate([np.array([INT64_MAX], np.int64), *(run.lasts for run in runs)])
    ending = lasts != INT64_MAX
    xs = np.concatenate([firsts, lasts[ending] + 1])
    changes = np.concatenate([values, -values[ending]])
    edges, at = np.unique(xs, return_inverse=True)
    return edges, np.cumsum(np.bincount(at, changes, len(edges)))


def means_of(heights: F64, weights: F64, ends: I64) -> F64:
    """The weighted mean of each run of pieces; the plain mean, if they have no weight."""
    if len(ends) < 2:
        return np.empty(0, np.float64)
    begins = ends[:-1]
    w = np.add.reduceat(weights, begins)
    means = np.add.reduceat(weights * heights, begins) / np.where(w > 0, w, 1)
    flat = np.add.reduceat(heights, begins) / np.diff(ends)
    return np.where(w > 0, means, flat)
