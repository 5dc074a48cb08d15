"""Histograms against counting, and against every histogram there is."""

from __future__ import annotations

from itertools import combinations, pairwise

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from limen.kernels.kmeans import even_runs, lloyd
from limen.partitions.canonical import canonical
from limen.partitions.counts import Steps, Values
from limen.partitions.hist_ssi import Part, Rest, share_out, share_out_by_error
from limen.partitions.hist_ssi import taken_apart as apart
from limen.partitions.histograms import Histogram, optima
from limen.testing.strategies import INT64, ordinal_ranges, ordinals

Rows = list[tuple[int, int]]
BUILD = {
    "equi-width": Histogram.equi_width,
    "optimal": Histogram.optimal,
    "shared": Histogram.ssi,
    "mapped": lambda lo, hi, k, values=None: Histogram.ssi(lo, hi, k, "mapped", values),
    "shared by all": lambda lo, hi, k, values=None: Histogram.ssi(
        lo, hi, k, "shared", values, "all"
    ),
    "mapped by all": lambda lo, hi, k, values=None: Histogram.ssi(
        lo, hi, k, "mapped", values, "all"
    ),
}
builds = pytest.mark.parametrize("build", BUILD.values(), ids=BUILD.keys())
rows = st.lists(ordinal_ranges(), max_size=14)
small = st.lists(
    st.tuples(st.integers(0, 14), st.integers(0, 6)).map(lambda r: (r[0], r[0] + r[1])),
    min_size=1,
    max_size=9,
)
samples = st.none() | st.lists(ordinals(), min_size=1, max_size=8)

compiled = pytest.mark.skipif(
    numba.config.DISABLE_JIT, reason="quadratic programmes take minutes as plain Python"
)


def count(rows: Rows, x: int) -> int:
    return sum(lo <= x <= hi for lo, hi in rows)


def near(rows: Rows) -> list[int]:
    around = {x + d for row in rows for x in row for d in (-1, 0, 1)} | {*INT64, 0}
    return sorted(x for x in around if INT64[0] <= x <= INT64[1])


def columns(rows: Rows) -> tuple[np.ndarray, np.ndarray]:
    return np.array([r[0] for r in rows], np.int64), np.array([r[1] for r in rows], np.int64)


def holds(found: Histogram, rows: Rows, xs: list[int]) -> None:
    least, most = found.bounds(xs)
    estimates = found.estimate(xs)
    for i, x in enumerate(xs):
        assert least[i] <= count(rows, x) <= most[i]
        assert least[i] <= estimates[i] <= most[i]
    assert found.intervals == len(rows)


@builds
@given(rows, st.integers(1, 12), samples)
def test_counts_are_within_the_bounds(
    build: object, rows: Rows, k: int, sample: list[int] | None
) -> None:
    found = build(*columns(rows), k, values=sample)  # type: ignore[operator]
    xs = near([*rows, *((x, x) for x in found.edges.tolist())])
    holds(found, rows, xs)
    edges = [*found.edges.tolist(), INT64[1] + 1]
    for b, (first, beyond) in enumerate(pairwise(edges)):
        counts = [count(rows, x) for x in xs if first <= x < beyond]
        assert (found.least[b], found.most[b]) == (min(counts), max(counts))
    assert len(found) <= k
    assert 0 <= found.share() <= 1


@builds
@settings(max_examples=150)
@given(rows, st.integers(1, 6), st.data())
def test_counts_stay_within_the_bounds(
    build: object, rows: Rows, k: int, data: st.DataObject
) -> None:
    found = build(*columns(rows), k)  # type: ignore[operator]
    rows = list(rows)
    for _ in range(3):
        more = data.draw(st.lists(ordinal_ranges(), max_size=6))
        found.insert(*columns(more))
        rows += more
        gone = data.draw(st.lists(st.sampled_from(range(len(rows))), unique=True)) if rows else []
        found.delete(*columns([rows[i] for i in gone]))
        rows = [row for i, row in enumerate(rows) if i not in gone]
        holds(found, rows, near([*rows, *more, *((x, x) for x in found.edges.tolist())]))


@given(rows, samples)
def test_with_enough_buckets_it_is_exact(rows: Rows, sample: list[int] | None) -> None:
    xs = near(rows)
    for build in (name for key, name in BUILD.items() if key != "equi-width"):
        found = build(*columns(rows), 4 * len(rows) + 1, values=sample)
        assert found.estimate(xs).tolist() == [count(rows, x) for x in xs]
        assert found.error(*columns(rows)) == (0, 0)


@given(small, st.lists(st.integers(0, 21), min_size=1, max_size=9))
def test_equi_width_is_the_mean_and_its_share_exact(rows: Rows, sample: list[int]) -> None:
    first, last = min(r[0] for r in rows), max(r[1] for r in rows)
    for k in (1, 2, 5):
        even = Histogram.equi_width(*columns(rows), k)
        span = range(first, last + 1)
        assert even.share() == pytest.approx(
            sum(count(rows, x) for x in span) / len(span) / len(rows)
        )
        cuts = [*sorted({first + len(span) * b // k for b in range(k)}), last + 1]
        for a, b in pairwise(cuts):
            mean = sum(count(rows, x) for x in range(a, b)) / (b - a)
            assert even.estimate([a])[0] == pytest.approx(mean)
        weighed = Histogram.equi_width(*columns(rows), k, values=sample)
        met = sum(count(rows, x) for x in sample) / len(sample)
        assert weighed.share() == pytest.approx(met / len(rows))


def squared_error(rows: Rows, sample: list[int], estimate: dict[int, float]) -> float:
    return sum(
        (estimate[x] - count(rows, x)) ** 2 / max(count(rows, x), 1) ** 2 / len(sample)
        for x in sample
    )


@given(small, st.integers(1, 4))
def test_no_histogram_is_better_than_the_optimal(rows: Rows, k: int) -> None:
    """Of those that are 0 outside; every way to cut what is inside into k buckets."""
    first, last = min(r[0] for r in rows), max(r[1] for r in rows)
    xs = list(range(first, last + 1))
    changes = [x for x in xs[1:] if count(rows, x) != count(rows, x - 1)]
    best = np.inf
    for inner in combinations(changes, min(k - 1, len(changes))):
        estimate: dict[int, float] = {}
        for a, b in pairwise([first, *inner, last + 1]):
            weight = {x: 1 / max(count(rows, x), 1) ** 2 for x in range(a, b)}
            mean = sum(w * count(rows, x) for x, w in weight.items()) / sum(weight.values())
            estimate |= dict.fromkeys(weight, mean)
        best = min(best, squared_error(rows, xs, estimate))
    found = Histogram.optimal(*columns(rows), k)
    assert found.error(*columns(rows)).root ** 2 == pytest.approx(best, abs=1e-9)
    assert found.pieces <= k
    for build in BUILD.values():
        other = build(*columns(rows), k)
        if other.pieces <= k:
            assert other.error(*columns(rows)).root ** 2 >= best - 1e-9


@builds
@given(small, st.integers(1, 5), st.lists(st.integers(-2, 23), min_size=1, max_size=9))
def test_the_error_is_that_of_the_values(
    build: object, rows: Rows, k: int, sample: list[int]
) -> None:
    found = build(*columns(rows), k, values=sample)  # type: ignore[operator]
    estimate = dict(zip(sample, found.estimate(sample).tolist(), strict=True))
    error = found.error(*columns(rows))
    assert error.root**2 == pytest.approx(squared_error(rows, sample, estimate), abs=1e-9)
    mean = sum(abs(estimate[x] - count(rows, x)) / max(count(rows, x), 1) for x in sample)
    assert error.mean == pytest.approx(mean / len(sample), abs=1e-9)
    assert found.error(*columns(rows), values=sample) == error
    by_hand = sum(found.estimate(sample)) / len(sample) / len(rows)
    assert found.share() == pytest.approx(by_hand)


@pytest.mark.parametrize("relative_to", ["group", "all"])
@given(small, st.integers(1, 30))
def test_mapped_costs_no_more_than_shared(relative_to: str, rows: Rows, k: int) -> None:
    assert _cost(rows, k, "mapped", relative_to) <= _cost(rows, k, "shared", relative_to) + 1e-9


def _cost(rows: Rows, k: int, method: str, relative_to: str) -> float:
    """The sum of the parts' squared errors, as the two methods leave them."""
    lo, hi = columns(rows)
    groups, phi = canonical(lo, hi), Values.among(lo, hi)
    exact = Steps.of(np.sort(lo), np.sort(hi), phi)
    parts, rest = apart(groups, lo[groups.order], hi, k, exact, phi)
    for part in parts if relative_to == "all" else []:
        part.weigh(exact, phi)
    by_error = method == "mapped"
    (share_out_by_error if by_error else share_out)(parts, rest, k)
    assert sum(len(part.ends) - 1 for part in (*parts, *([rest] if rest else []))) <= k
    return sum(part.cost for part in (*parts, *([rest] if rest else [])))


def workload(n: int, deviation: float) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(7)
    middle, length = rng.normal(5e6, 1.5e6, n), np.abs(rng.normal(1e6, deviation, n))
    return (middle - length / 2).astype(np.int64), (middle + length / 2).astype(np.int64)


@compiled
@pytest.mark.parametrize("deviation", [5e4, 2e6])
def test_many_intervals(deviation: float) -> None:
    """Parts with more points than the exact clustering sees, and groups by the hundred."""
    lo, hi = workload(6000, deviation)
    opt20, opt50 = optima(lo[:1500], hi[:1500], [20, 50])
    assert opt20.error(lo[:1500], hi[:1500]).root > opt50.error(lo[:1500], hi[:1500]).root
    for k in (20, 50):
        roots = {}
        for method, to in (("shared", "group"), ("mapped", "group"), ("mapped", "all")):
            found = Histogram.ssi(lo, hi, k, method, relative_to=to)  # type: ignore[arg-type]
            assert found.buckets == k <= found.pieces
            roots[method, to] = found.error(lo, hi).root
        assert roots["mapped", "all"] <= 1.001 * min(roots.values())
        assert roots["mapped", "all"] < Histogram.equi_width(lo, hi, k).error(lo, hi).root


def test_nothing_and_one() -> None:
    for build in BUILD.values():
        empty = build([], [], 3)
        assert empty.estimate([0, INT64[0], INT64[1]]).tolist() == [0, 0, 0]
        assert empty.share() == 0 and empty.pieces == 0
        empty.insert([5], [9])
        holds(empty, [(5, 9)], [4, 5, 9, 10])
        one = build([5], [9], 3)
        assert one.estimate([4, 5, 9, 10]).tolist() == [0, 1, 1, 0]
        assert one.share() == 1 and one.error([5], [9]) == (0, 0)
        everything = build([INT64[0]] * 2, [INT64[1]] * 2, 2)
        assert everything.estimate([INT64[0], 0, INT64[1]]).tolist() == [2, 2, 2]
        assert everything.share() == 1


def test_what_is_refused() -> None:
    with pytest.raises(ValueError, match="needs a bucket, not 0"):
        Histogram.ssi([1], [2], 0)
    for build in BUILD.values():
        for bad in (2.5, "3", True, None, float("nan"), [2]):
            with pytest.raises(ValueError, match="the number of buckets is an integer, not"):
                build([1], [2], bad)  # type: ignore[operator]
        assert build([INT64[0] + 1], [INT64[1] - 1], np.int64(3)).estimate([0]) == [1]  # type: ignore[operator]
    with pytest.raises(ValueError, match="a list of numbers of buckets is needed"):
        optima([1], [2], [])
    with pytest.raises(ValueError, match="interval 0: lo 3 is above hi 2"):
        Histogram.optimal([3], [2], 1)
    with pytest.raises(ValueError, match="'shared' or 'mapped', not 'k'"):
        Histogram.ssi([1], [2], 1, "k")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="'group' or to 'all', not 'k'"):
        Histogram.ssi([1], [2], 1, relative_to="k")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="at least one"):
        Histogram.equi_width([1], [2], 1, values=[])
    with pytest.raises(ValueError, match="2 intervals to delete, but there are only 1"):
        Histogram.ssi([1], [2], 1).delete([1, 1], [2, 2])
    assert repr(Histogram.ssi([1], [2], 4)) == "Histogram(1 intervals, 1 buckets, 1 pieces)"


@compiled
@pytest.mark.parametrize("kind", ["ssi", "optimal", "equi_width"])
@pytest.mark.parametrize("kept", [500, 50, 0])
def test_estimates_follow_deletions(kind: str, kept: int) -> None:
    """They stay near those of a histogram made anew, and within what there is."""
    rng = np.random.default_rng(1)
    middle, half = rng.normal(5000, 800, 1000), rng.exponential(200, 1000)
    lo, hi = (middle - half).astype(np.int64), (middle + half).astype(np.int64)
    rest, gone = slice(None, kept), slice(kept, None)
    found = getattr(Histogram, kind)(lo, hi, 30)
    found.delete(lo[gone], hi[gone])
    assert found.intervals == kept and found.most.max() <= kept and 0 <= found.share() <= 1
    if kept:
        exact = np.count_nonzero(
            (lo[rest] <= np.arange(3000, 7000)[:, None])
            & (np.arange(3000, 7000)[:, None] <= hi[rest]),
            axis=1,
        )
        off = np.abs(found.estimate(np.arange(3000, 7000)) - exact).mean()
        assert off < {500: 0.1, 50: 0.2}[kept] * exact.mean()
    else:
        assert not found.value.any()


def counts(lo: np.ndarray, hi: np.ndarray, xs: np.ndarray) -> np.ndarray:
    begun = np.searchsorted(np.sort(lo), xs, "right")
    return begun - np.searchsorted(np.sort(hi), xs, "left")


@compiled
@pytest.mark.parametrize("kind", ["ssi", "equi_width"])
def test_estimates_follow_insertions(kind: str) -> None:
    lo, hi = workload(6000, 5e4)
    half, xs = slice(None, 3000), np.arange(10**6, 9 * 10**6, 10**4)
    found = getattr(Histogram, kind)(lo[half], hi[half], 30)
    before = found.estimate(xs)
    found.insert(lo[3000:], hi[3000:])
    assert (found.estimate(xs) >= before).all()
    exact = counts(lo, hi, xs)
    off = np.abs(found.estimate(xs) - exact).mean()
    anew = getattr(Histogram, kind)(lo, hi, 30).estimate(xs)
    assert off < 1.5 * np.abs(anew - exact).mean()
    assert off < np.abs(before - exact).mean() / 3


@pytest.mark.parametrize("method", ["shared", "mapped"])
def test_what_comes_and_goes_again_leaves_the_estimates(method: str) -> None:
    """They are below the mean of a bucket, as a relative error wants it, and stay so."""
    lo, hi = workload(600, 5e4)
    found = Histogram.ssi(lo, hi, 6, method=method)  # type: ignore[arg-type]
    before, inside = found.value.copy(), found.mass > 0
    found.insert(lo[:50], hi[:50])
    found.delete(lo[:50], hi[:50])
    assert found.value == pytest.approx(before)
    exact = Steps.of(np.sort(lo), np.sort(hi), found.values)
    means = exact.means(found.edges, found.value)
    assert (before[inside] < 0.9 * means[inside]).all()


def test_buckets_are_shared_out_by_size() -> None:
    """Nine times as many intervals: nine times as many buckets, half of them on each side."""
    parts, rest = taken_apart(*around((270, 30)), 40)
    share_out(parts, rest, 40)
    assert rest is None
    assert [len(part.ends) - 1 for part in parts] == [18, 18, 2, 2]


def around(sizes: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Groups far from each other, of so many intervals."""
    rng = np.random.default_rng(3)
    points = [np.repeat(4 * 10**6 * i, n) for i, n in enumerate(sizes)]
    ends = [rng.integers(1, 10**6, (2, n)) for n in sizes]
    lo = np.concatenate([p - before for p, (before, _) in zip(points, ends, strict=True)])
    return lo, np.concatenate([p + after for p, (_, after) in zip(points, ends, strict=True)])


def taken_apart(lo: np.ndarray, hi: np.ndarray, buckets: int) -> tuple[list[Part], Rest | None]:
    groups, phi = canonical(lo, hi), Values.among(lo, hi)
    exact = Steps.of(np.sort(lo), np.sort(hi), phi)
    return apart(groups, lo[groups.order], hi, buckets, exact, phi)


@pytest.mark.parametrize("buckets", [8, 9, 11, 14, 19])
def test_no_other_shares_are_fairer(buckets: int) -> None:
    """Sainte-Lague: of all ways to give each part one at least, the sum of k**2 / size is the least."""
    parts, rest = taken_apart(*around((100, 41, 17)), buckets)
    share_out(parts, rest, buckets)
    assert rest is None and len(parts) == 6
    sizes, given = [part.size for part in parts], [len(part.ends) - 1 for part in parts]
    cuts = combinations(range(1, buckets), len(parts) - 1)
    ways = [np.diff([0, *cut, buckets]) for cut in cuts]
    assert sum(given) == buckets
    assert np.square(given) @ (1 / np.array(sizes)) == pytest.approx(
        min(np.square(way) @ (1 / np.array(sizes)) for way in ways)
    )


def test_the_buckets_of_a_part_are_as_good_as_rounds_make_them() -> None:
    """One more round of k-means changes nothing; and it was not so from the beginning."""
    parts, rest = taken_apart(*around((270, 90, 30)), 40)
    share_out(parts, rest, 40)
    for part in parts:
        ends = part.ends.copy()
        assert lloyd(part.heights, part.before, ends, 1) == 0
        assert ends.tolist() == part.ends.tolist()
    first = [even_runs(p.heights, p.weights, len(p.ends) - 1) for p in parts]
    assert any(one.tolist() != p.ends.tolist() for one, p in zip(first, parts, strict=True))


def test_what_is_put_together_counts_relative_to_all_intervals() -> None:
    """Also to those of the groups that are taken apart, which lie over it."""
    ends = [(-i, 20 + 2 * i) for i in range(1, 21)] + [(v, v + 1) for v in range(24, 60, 3)]
    lo, hi = columns(ends)
    parts, rest = taken_apart(lo, hi, 4)
    assert parts and rest is not None
    first, last = int(lo.min()), int(hi.max())
    for begin, end, weight in zip(rest.firsts, rest.lasts, rest.weights, strict=True):
        inside = range(max(begin, first), min(end, last) + 1)
        relative = sum(1 / max(count(ends, x), 1) ** 2 for x in inside)
        assert weight == pytest.approx(relative / (last - first + 1))


# -- beyond the ends that there were ---------------------------------------------------------------


@builds
def test_intervals_where_there_were_none(build: object) -> None:
    found = build([], [], 20)  # type: ignore[operator]
    found.insert([0] * 1000, [100] * 1000)
    assert found.estimate([-1, 0, 50, 100, 101]).tolist() == [0, 1000, 1000, 1000, 0]
    assert found.share() == 1 and found.looseness == 0
    found = build([0] * 10, [100] * 10, 20)  # type: ignore[operator]
    found.insert([200] * 1000, [300] * 1000)
    found.insert([-500] * 100, [-400] * 100)
    xs = [-501, -500, -400, -399, -1, 0, 100, 150, 200, 300, 301]
    assert found.estimate(xs).tolist() == [0, 100, 100, 0, 0, 10, 10, 0, 1000, 1000, 0]
    assert [x.tolist() for x in found.bounds([250, -450])] == [[1000, 100]] * 2
    assert found.share() == pytest.approx((101 * 1110) / 801 / 1110)


@compiled
@pytest.mark.parametrize("kind", ["ssi", "equi_width"])
@pytest.mark.parametrize("way", [1, -1])
def test_all_intervals_move_on(kind: str, way: int) -> None:
    """They come beyond and go, in batches; what is expected there is of the order of what is there."""
    lo, hi = workload(6000, 5e4)
    found = getattr(Histogram, kind)(lo, hi, 30)
    shift = way * 15 * 10**6
    for rows in np.array_split(np.arange(6000), 12):
        found.insert(lo[rows] + shift, hi[rows] + shift)
        found.delete(lo[rows], hi[rows])
    anew = getattr(Histogram, kind)(lo + shift, hi + shift, 30)
    assert anew.share() / 4 < found.share() < anew.share()
    xs = np.arange(10**6, 9 * 10**6, 10**4) + shift
    exact = counts(lo + shift, hi + shift, xs)
    assert np.abs(found.estimate(xs) - exact).mean() < 0.25 * exact.mean()
    assert found.estimate([0, 40 * 10**6 * way]).tolist() == pytest.approx([0, 0], abs=60)
    assert found.looseness > 4 * anew.looseness


@pytest.mark.parametrize("way", [1, -1])
def test_one_by_one_beyond(way: int) -> None:
    """As with times: each ends a little later than all before. Edges stay few."""
    found, rows = Histogram.ssi([0], [0], 16), [(0, 0)]
    for t in range(1, 400):
        rows.append((t, t + 30) if way > 0 else (-t - 30, -t))
        found.insert(*columns(rows[-1:]))
        assert len(found.edges) <= 16 + 6
    holds(found, rows, near(rows))
    xs = [way * x for x in range(40, 390)]
    exact = np.array([count(rows, x) for x in xs])
    assert np.abs(found.estimate(xs) - exact).mean() < 0.15 * exact.mean()


def test_as_far_as_values_go() -> None:
    """At the ends of int64, and from one of them to the other."""
    least, most = INT64
    for first in ([], [(3, 5)], [(least, 7)], [(least, most)], [(most, most)], [(least, least)]):
        for buckets in (1, 4):
            found, rows = Histogram.ssi(*columns(first), buckets), list(first)
            for row in (
                (most, most),
                (least, least),
                (most - 1, most - 1),
                (least + 1, 0),
                (0, most),
            ):
                found.insert(*columns([row]))
                rows.append(row)
                holds(found, rows, near(rows))
            assert (np.diff(found.edges.astype(object)) > 0).all()
            found.delete(*columns(rows))
            assert not found.estimate(near(rows)).any()


def test_looseness_says_when_to_build_anew() -> None:
    lo, hi = workload(600, 5e4)
    found = Histogram.ssi(lo, hi, 20)
    width = (found.most - found.least) @ found.mass / (found.value @ found.mass)
    seen = [found.looseness]
    assert seen == [pytest.approx(width)]
    for _ in range(5):
        found.insert(lo[:50], hi[:50])
        found.delete(lo[:50], hi[:50])
        seen.append(found.looseness)
    assert seen == sorted(seen) and seen[-1] > 2 * seen[0]
    assert Histogram.ssi(lo, hi, 20).looseness == seen[0]
    assert Histogram.ssi([], [], 20).looseness == 0
    found.delete(lo[:300], hi[:300])
    found.delete(lo[300:], hi[300:])
    assert found.looseness in (0, np.inf)


@compiled
def test_more_buckets_than_are_placed_one_by_one() -> None:
    """Many groups and many buckets: no cubic time, and exact where every piece has one."""
    lo = np.arange(2000) * 30
    for method in ("shared", "mapped"):
        found = Histogram.ssi(lo, lo + 50, 1500, method=method)
        assert found.buckets <= 1500
        assert found.error(lo, lo + 50).mean < 0.5
