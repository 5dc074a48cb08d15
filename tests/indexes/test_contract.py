"""What every index promises, run over the registry, the kinds of ends and domains: answers, updates,
bad input.
"""

from __future__ import annotations

import itertools
import math
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from limen.indexes import INDEXES, IntervalIndex, create
from limen.indexes.bounded import Paper
from limen.indexes.registry import OVER_A_DOMAIN, takes_length
from limen.testing.oracle import stabbed
from limen.testing.strategies import INT64, ordinal_ranges, ordinals

SMALL = range(-13, 46)  # no multiple of any length


class Setup(NamedTuple):
    """An index to make; ranges in these tests are the integers lo..hi, whatever the kind of ends."""

    name: str
    ends: str
    domain: range | None = None
    length: int | None = None

    def create(self) -> IntervalIndex:
        return create(self.name, domain=self.domain, length=self.length, ends=self.ends)

    @property
    def half_open(self) -> bool:
        return self.ends == "half-open"

    @property
    def limits(self) -> tuple[int, int]:
        first, last = (self.domain[0], self.domain[-1]) if self.domain else INT64
        return first, min(last, INT64[1] - self.half_open)

    def values(self) -> st.SearchStrategy[int]:
        return st.integers(SMALL[0] - 2, SMALL[-1] + 2) if self.domain else ordinals()

    def ranges(self) -> st.SearchStrategy[tuple[int, int]]:
        if self.domain:
            value = st.integers(self.domain[0], self.domain[-1])
            return st.tuples(value, value).map(lambda p: (min(p), max(p)))
        last = self.limits[1]
        return ordinal_ranges().map(lambda p: (min(p[0], last), min(p[1], last)))

    def within(self, lo: int, hi: int) -> tuple[int, int]:
        """The range, brought into the domain."""
        first, last = self.limits
        return min(max(lo, first), last), min(max(hi, first), last)


def setups() -> list[Setup]:
    found = []
    for name, ends in itertools.product(INDEXES, ("closed", "half-open")):
        lengths = (1, 8, 32) if takes_length(name) else (None,)
        found += [Setup(name, ends, SMALL, length) for length in lengths]
        if name not in OVER_A_DOMAIN:
            found.append(Setup(name, ends))
    return found


def over(found: list[Setup]) -> pytest.MarkDecorator:
    names = [f"{s.name} {s.ends} {s.length or ('' if s.domain else 'int64')}" for s in found]
    return pytest.mark.parametrize("setup", found, ids=names)


every_setup = over(setups())
over_int64 = over([setup for setup in setups() if not setup.domain])
over_a_domain = over([setup for setup in setups() if setup.domain])
fewer = settings(max_examples=settings.default.max_examples // 10)  # there are many of these setups
every_name = pytest.mark.parametrize("name", INDEXES)
every_end = pytest.mark.parametrize("ends", ["closed", "half-open"])

Ranges = dict[int, tuple[int, int]]


@st.composite
def histories(draw: st.DrawFn, setup: Setup) -> tuple[list, list[int]]:
    one = setup.ranges()
    step = st.one_of(
        st.tuples(st.just("insert"), st.lists(one, min_size=1, max_size=12)),
        st.tuples(st.just("delete"), st.lists(st.integers(0, 40), min_size=1, max_size=8)),
        st.tuples(st.just("build"), st.lists(one, max_size=12)),
        st.tuples(st.just("compact"), st.none()),
    )
    extra = st.lists(setup.values(), max_size=10)
    return draw(st.lists(step, min_size=1, max_size=8)), draw(extra)


def arrays(setup: Setup, ranges: Ranges) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    ids = np.array(list(ranges), np.int32)
    ends = np.array(list(ranges.values()), np.int64).reshape(-1, 2)
    return ids, ends[:, 0], ends[:, 1] + setup.half_open


def probes(ranges: Ranges, extra: list[int]) -> np.ndarray:
    """Both ends of every range, their neighbours, and more."""
    near = {e + d for ends in ranges.values() for e in ends for d in (-1, 0, 1)}
    wanted = near | set(extra) | {*INT64, 0}
    return np.array(sorted(x for x in wanted if INT64[0] <= x <= INT64[1]), np.int64)


def check(setup: Setup, index: IntervalIndex, ranges: Ranges, xs: np.ndarray) -> None:
    rows = [(who, *ends) for who, ends in ranges.items()]
    expected = [stabbed(int(x), rows) for x in xs]
    assert answers(index, xs) == expected
    counts = [len(found) for found in expected]
    assert index.count_many(xs).tolist() == counts
    times = 1 + 64 // len(xs) if len(xs) else 1
    assert index.count_many(np.repeat(xs, times)).tolist() == np.repeat(counts, times).tolist()
    assert len(index) == len(ranges)
    if setup.half_open:
        check_reals(index, rows, xs)
    if isinstance(index, Paper) and not ranges:
        assert index.entries == 0 and not index.lists_many(xs).any()


def check_reals(index: IntervalIndex, rows: list[tuple[int, int, int]], xs: np.ndarray) -> None:
    """Between the integers, and where there is nothing."""
    reals = [float(x) + d for x in xs[abs(xs) < 2**40] for d in (0.0, 0.5, 1 - 2**-10)]
    reals += [2.0**62, -(2.0**63), 2.0**63, -1e300, 0.0, -0.0, 5e-324, -5e-324]
    expected = [stabbed(math.floor(x), rows) for x in reals] + [[]] * 3
    nowhere = [math.nan, math.inf, -math.inf]
    assert answers(index, np.array(reals + nowhere)) == expected
    assert index.count_many(np.array(reals + nowhere)).tolist() == [len(e) for e in expected]


def answers(index: IntervalIndex, xs: np.ndarray) -> list[list[int]]:
    offsets, ids = index.stab_many(xs)
    assert len(offsets) == len(xs) + 1 and offsets[-1] == len(ids)
    return [sorted(ids[a:b].tolist()) for a, b in itertools.pairwise(offsets)]


@over_int64
@given(data=st.data())
def test_histories_agree_with_the_oracle(setup: Setup, data: st.DataObject) -> None:
    follow(setup, data)


@over_a_domain
@fewer
@given(data=st.data())
def test_histories_within_a_domain(setup: Setup, data: st.DataObject) -> None:
    follow(setup, data)


def follow(setup: Setup, data: st.DataObject) -> None:
    history, extra = data.draw(histories(setup))
    index, ranges, fresh = setup.create(), {}, 0
    for step, body in history:
        if step == "delete":
            gone = [list(ranges)[i % len(ranges)] for i in body] if ranges else []
            gone = list(dict.fromkeys(gone))
            index.delete(np.array(gone, np.int32))
            for who in gone:
                del ranges[who]
        elif step == "compact":
            if isinstance(index, Paper):
                index.compact()
        else:
            new = {fresh + i: ends for i, ends in enumerate(body)}
            fresh += len(body)
            if step == "build":
                ranges = new
                index.build(*arrays(setup, new))
            else:
                ranges |= new
                index.insert(*arrays(setup, new))
        check(setup, index, ranges, probes(ranges, extra))


@every_setup
@fewer
@given(data=st.data())
def test_build_equals_one_insert_at_a_time(setup: Setup, data: st.DataObject) -> None:
    by_id = dict(enumerate(data.draw(st.lists(setup.ranges(), max_size=60))))
    xs = data.draw(st.lists(setup.values(), max_size=30))
    built, grown = setup.create(), setup.create()
    built.build(*arrays(setup, by_id))
    for who, ends in by_id.items():
        grown.insert(*arrays(setup, {who: ends}))
    for index in (built, grown):
        check(setup, index, by_id, probes(by_id, xs))


@every_setup
@pytest.mark.parametrize(
    "case", ["all equal", "all disjoint", "all nested", "one covers all", "points", "one point"]
)
def test_shapes(setup: Setup, case: str) -> None:
    n = 300
    ranges = {
        "all equal": [(10, 20)] * n,
        "all disjoint": [(100 * i, 100 * i + 40) for i in range(n)],
        "all nested": [(i, 2 * n - i) for i in range(n)],
        "one covers all": [INT64] + [(i, i + 3) for i in range(n)],
        "points": [(7 * i, 7 * i) for i in range(n)],
        "one point": [(5, 5)] * n,
    }[case]
    by_id = {who: setup.within(*ends) for who, ends in enumerate(ranges)}
    index = setup.create()
    index.build(*arrays(setup, by_id))
    xs = probes(by_id, [])[:: 3 if len(by_id) > 100 else 1]
    check(setup, index, by_id, xs)
    index.delete(np.arange(0, n, 2, dtype=np.int32))
    for who in range(0, n, 2):
        del by_id[who]
    check(setup, index, by_id, xs)


@every_setup
def test_empty(setup: Setup) -> None:
    index = setup.create()
    offsets, ids = index.stab_many(np.array([1, 2], np.int64))
    assert offsets.tolist() == [0, 0, 0] and len(ids) == 0
    assert index.count_many(np.array([INT64[0], INT64[1]])).tolist() == [0, 0]
    assert len(index) == 0 and index.nbytes >= 0
    index.build(*arrays(setup, {3: (1, 2)}))
    offsets, ids = index.stab_many(np.empty(0, np.int64))
    assert offsets.tolist() == [0] and len(ids) == 0
    assert index.stab(2).tolist() == [3] and index.stab(3).tolist() == []


@every_setup
@pytest.mark.parametrize(
    ("call", "arguments", "message"),
    [
        ("insert", ([5], [3], [2]), "id 5: lo 3 is above hi 2"),
        ("insert", ([1], [0], [1]), "id 1 is already in the index"),
        ("insert", ([6, 6], [0, 0], [1, 1]), "id 6 is given twice"),
        ("insert", ([-1], [0], [1]), "id -1 is negative"),
        ("insert", ([6, 7], [0], [1]), "differ in length: 2, 1, 1"),
        ("build", ([5], [3], [2]), "id 5: lo 3 is above hi 2"),
        ("build", ([5, 5], [1, 1], [2, 2]), "id 5 is given twice"),
        ("delete", ([9],), "id 9 is not in the index"),
        ("delete", ([1, 1],), "id 1 is given twice"),
        ("delete", ([1, -2],), "id -2 is not in the index"),
    ],
)
def test_bad_input_changes_nothing(setup: Setup, call: str, arguments: tuple, message: str) -> None:
    index, by_id = setup.create(), {1: (0, 10), 2: (5, 8)}
    index.build(*arrays(setup, by_id))
    with pytest.raises(ValueError, match=message):
        getattr(index, call)(*(np.array(a, np.int64) for a in arguments))
    check(setup, index, by_id, probes(by_id, []))


@every_name
@every_end
@pytest.mark.parametrize("call", ["build", "insert"])
@pytest.mark.parametrize(("lo", "hi"), [(-14, 3), (40, 46), (-20, 60), (-20, -18), (50, 51)])
def test_a_query_outside_the_domain_is_refused(
    name: str, ends: str, call: str, lo: int, hi: int
) -> None:
    setup = Setup(name, ends, SMALL)
    index, by_id = setup.create(), {1: (0, 10), 2: (-13, 45)}
    index.build(*arrays(setup, by_id))
    told = {
        "closed": (f"[{lo}, {hi}]", "[-13, 45]"),
        "half-open": (f"[{lo}, {hi + 1})", "[-13, 46)"),
    }
    with pytest.raises(ValueError) as caught:
        getattr(index, call)(*arrays(setup, {7: (1, 2), 8: (lo, hi)}))
    query, domain = told[ends]
    assert str(caught.value) == f"id 8: {query} is not within the domain {domain}"
    check(setup, index, by_id, probes(by_id, []))


@every_name
def test_a_closed_range_may_be_a_point_and_a_half_open_one_may_not(name: str) -> None:
    one = np.array([4]), np.array([7]), np.array([7])
    closed = create(name, domain=SMALL)
    closed.insert(*one)
    assert closed.count_many(np.array([6, 7, 8])).tolist() == [0, 1, 0]
    half_open = create(name, domain=SMALL, ends="half-open")
    with pytest.raises(ValueError, match=r"id 4: \[7, 7\) holds nothing"):
        half_open.insert(*one)
    assert len(half_open) == 0


@every_name
@every_end
@pytest.mark.parametrize(
    ("length", "message"),
    [
        (12, "length 12 is not a power of two"),
        (0, "length 0 is not a power of two"),
        (-4, "length -4 is not a power of two"),
        (8.0, "length 8.0 is not an integer"),
        ("8", "length '8' is not an integer"),
        (64, "length 64 is larger than the domain, which has 59 values"),
    ],
)
def test_lengths(name: str, ends: str, length: int, message: str) -> None:
    if not takes_length(name):
        message = f"{name} has no constructs of different lengths: leave length out"
    with pytest.raises(ValueError, match=message):
        create(name, domain=SMALL, length=length, ends=ends)


@every_name
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"domain": range(0, 10, 2)}, r"steps of 1, not range\(0, 10, 2\)"),
        ({"domain": range(5, 5)}, r"steps of 1, not range\(5, 5\)"),
        ({"domain": (0, 10)}, r"steps of 1, not \(0, 10\)"),
        ({"domain": range(2**64)}, "is not within int64"),
        ({"domain": SMALL, "ends": "open"}, "ends are closed or half-open, not 'open'"),
    ],
)
def test_bad_domains_and_ends(name: str, arguments: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        create(name, **arguments)


@pytest.mark.parametrize("name", sorted(OVER_A_DOMAIN))
def test_constructs_need_a_domain_that_can_be_listed(name: str) -> None:
    with pytest.raises(ValueError, match=rf"{name} needs a domain: create\('{name}', domain="):
        create(name)
    with pytest.raises(ValueError, match=f"is too large for {name}"):
        create(name, domain=range(2**40))


@every_name
def test_unknown_name(name: str) -> None:
    with pytest.raises(ValueError, match=f"no index named 'x{name}'; there are: .*cei"):
        create(f"x{name}")


@every_setup
@pytest.mark.parametrize(
    ("call", "arguments", "message"),
    [
        ("stab_many", ([1.9],), "integers are needed, not float64"),
        ("stab_many", (["a"],), "integers are needed, not <U1"),
        ("stab_many", ([[1, 2]],), "an array of one dimension is needed, not of 2"),
        ("stab", (2**64,), "does not fit int64|integers are needed"),
        ("stab_many", ([2**64 - 1],), "18446744073709551615 does not fit int64"),
        ("count_many", ([2**63],), "does not fit int64"),
        ("insert", ([2**32 + 5], [0], [1]), "4294967301 does not fit int32"),
        ("insert", ([5], [0.5], [1.5]), "integers are needed, not float64"),
        ("delete", ([2**32 + 1],), "does not fit int32"),
    ],
)
def test_nothing_is_cast_silently(setup: Setup, call: str, arguments: tuple, message: str) -> None:
    if setup.half_open and arguments == ([1.9],):
        pytest.skip("real values are values here")
    index = setup.create()
    index.build(*arrays(setup, {1: (0, 10)}))
    given = arguments if call == "stab" else tuple(np.array(a) for a in arguments)
    with pytest.raises(ValueError, match=message):
        getattr(index, call)(*given)
    assert index.count_many(np.array([5])).tolist() == [1] and len(index) == 1


@every_setup
def test_the_papers_count_of_storage(setup: Setup) -> None:
    index = setup.create()
    if not isinstance(index, Paper):
        pytest.skip("not as in a paper")
    before = index.model_nbytes
    index.insert(*arrays(setup, {1: (0, 10), 2: (3, 40), 3: (5, 5)}))
    after = index.model_nbytes
    assert after - before >= 8 * index.entries >= 24
    if setup.name != "is-list":
        assert after - before == 8 * index.entries
        for lo, hi in ((0, 10), (5, 5)):
            pieces = index.pieces(lo, hi + setup.half_open)
            covered = {x for _, first, last in pieces for x in range(first, last + 1)}
            beyond = {hi + 1} if lo == hi and not setup.half_open else set()  # passed over
            assert set(range(lo, hi + 1)) <= covered <= set(range(lo, hi + 1)) | beyond
    index.delete(np.array([1, 2, 3], np.int32))
    assert index.entries == 0 and index.model_nbytes == before


@every_name
def test_one_real_value_is_refused_where_ends_are_closed(name: str) -> None:
    for domain in (None, SMALL):
        if domain or name not in OVER_A_DOMAIN:
            index = create(name, domain=domain)
            with pytest.raises(ValueError, match="integers are needed, not float64"):
                index.stab(9.5)
