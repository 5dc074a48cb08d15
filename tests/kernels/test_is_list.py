"""The interval skip list: its markers against the invariant, by brute force; answers; leaks."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from limen.indexes.is_list import ISList
from limen.indexes.protocol import IntervalIndex
from limen.kernels import is_list as kernel
from limen.kernels.id_lists import COUNT, FIND, REPORT
from limen.testing.oracle import stabbed
from limen.testing.strategies import INT64, ordinal_ranges

UNJITTED = os.environ.get("NUMBA_DISABLE_JIT") == "1"
Ranges = dict[int, tuple[int, int]]
Sets = dict[tuple[int, int], list[int]]

near = st.integers(0, 24)
narrow = st.tuples(near, st.integers(0, 12)).map(lambda p: (p[0], p[0] + p[1]))
extremes = st.sampled_from([INT64[0], INT64[0] + 1, -1, 3, 9, INT64[1] - 1, INT64[1]])
wide = st.tuples(extremes, extremes).map(lambda p: (min(p), max(p)))
points = st.one_of(near, extremes).map(lambda x: (x, x))
some_ranges = st.lists(st.one_of(narrow, narrow, wide, points), min_size=1, max_size=10)
histories = st.lists(
    st.one_of(
        st.tuples(st.just("insert"), some_ranges),
        st.tuples(st.just("insert"), some_ranges),
        st.tuples(st.just("delete"), st.lists(st.integers(0, 40), min_size=1, max_size=8)),
        st.tuples(st.just("delete"), st.just([*range(100)])),
        st.tuples(st.just("build"), some_ranges),
    ),
    min_size=1,
    max_size=8,
)
seeds = st.integers(1, 2**62)


def arrays(ranges: Ranges) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    ids = np.array(list(ranges), np.int32)
    ends = np.array(list(ranges.values()), np.int64).reshape(-1, 2)
    return ids, ends[:, 0], ends[:, 1]


def small(closed: bool, seed: int) -> ISList:
    """An index whose pools have no room at all."""
    index = ISList(closed=closed)
    index._ix = kernel.empty(int(closed), nodes=1, slots=0, entries=1, seed=seed)
    return index


def fitting(rows: list[tuple[int, int]], closed: bool) -> list[tuple[int, int]]:
    """Without what a half-open index cannot hold."""
    top = INT64[1] - (0 if closed else 1)
    return [(min(lo, top), min(hi, top)) for lo, hi in rows]


# -- the structure, read out in plain Python -----------------------------------------------------


def chain(ix: kernel.Arrays, entry: int) -> Iterator[int]:
    while entry:
        yield int(ix.entries[entry, 0])
        entry = int(ix.entries[entry, 1])


def nodes_of(ix: kernel.Arrays) -> list[int]:
    """The nodes in order; every edge leads to the next node that is as high."""
    found = []
    x = int(ix.forward[0])
    while x:
        found.append(x)
        x = int(ix.forward[ix.slot[x]])
    keys = [int(ix.key[x]) for x in found]
    assert keys == sorted(set(keys))
    for i, x in enumerate([0, *found]):
        for level in range(ix.height[x]):
            behind = [y for y in found[i:] if ix.height[y] > level]
            assert ix.forward[ix.slot[x] + level] == (behind[0] if behind else 0)
    assert ix.state[kernel.TOP] == max((int(ix.height[x]) for x in found), default=0)
    return found


def held(ix: kernel.Arrays, nodes: list[int]) -> tuple[Sets, Sets]:
    """What the lists hold: by key and level, and by key."""
    edges, eq = {}, {}
    for x in nodes:
        key = int(ix.key[x])
        for level in range(ix.height[x]):
            edges[key, level] = sorted(chain(ix, int(ix.marks[ix.slot[x] + level])))
        eq[key, -1] = sorted(chain(ix, int(ix.eq[x])))
    return edges, eq


def expected(ix: kernel.Arrays, nodes: list[int], ranges: Ranges) -> tuple[Sets, Sets]:
    """What the invariant says that they hold."""
    key = {x: int(ix.key[x]) for x in nodes}
    edges = {
        (key[x], level): key[y] if (y := int(ix.forward[ix.slot[x] + level])) else None
        for x in nodes
        for level in range(ix.height[x])
    }
    on_edges: Sets = {edge: [] for edge in edges}
    on_nodes: Sets = {(k, -1): [] for k in key.values()}
    for who, (lo, hi) in sorted(ranges.items()):
        right = hi if ix.closed else hi + 1
        within = [
            (level, first, last)
            for (first, level), last in edges.items()
            if last is not None and lo <= first and last <= right
        ]
        touched = {lo} if lo == right else set()
        for level, first, last in within:
            if not any(i > level and a <= first and last <= b for i, a, b in within):
                on_edges[first, level].append(who)
                touched |= {first, last}
        for k in touched:
            if lo <= k <= hi:
                on_nodes[k, -1].append(who)
    return on_edges, on_nodes


def check_structure(index: ISList, ranges: Ranges) -> None:
    ix, state = index._ix, index._ix.state
    nodes = nodes_of(ix)
    ends = [end for lo, hi in ranges.values() for end in (lo, hi if ix.closed else hi + 1)]
    assert {int(ix.key[x]): int(ix.owners[x]) for x in nodes} == {k: ends.count(k) for k in ends}
    assert held(ix, nodes) == expected(ix, nodes, ranges)
    assert not ix.marks[: kernel.MAX_HEIGHT].any() and not ix.eq[0]
    # Nothing leaks: what was begun is in use or free.
    levels = sum(int(ix.height[x]) for x in nodes)
    used = sum(len(who) for lists in held(ix, nodes) for who in lists.values())
    free = len(list(chain(ix, int(state[kernel.FREE_ENTRY]))))
    assert free == state[kernel.FREE_ENTRIES] and used == index.entries
    assert used + free + 1 == state[kernel.ENTRIES] <= len(ix.entries)
    assert (len(nodes), levels) == (state[kernel.LIVE_NODES], state[kernel.LIVE_LEVELS])
    assert index.model_nbytes == 8 * (len(nodes) + levels + used)
    given_up = []
    for height in range(1, kernel.MAX_HEIGHT + 1):
        x = int(state[kernel.FREE_NODE + height])
        while x:
            assert ix.height[x] == height and ix.owners[x] == 0
            given_up.append(x)
            x = int(ix.forward[ix.slot[x]])
    assert sorted(nodes + given_up) == list(range(1, state[kernel.NODES]))
    slots = kernel.MAX_HEIGHT + sum(int(ix.height[x]) for x in nodes + given_up)
    assert slots == state[kernel.SLOTS] <= len(ix.forward)


def check_answers(index: ISList, ranges: Ranges, extra: list[int]) -> None:
    around = {e + d for ends in ranges.values() for e in ends for d in (-1, 0, 1, 2)}
    wanted = sorted(x for x in around | set(extra) if INT64[0] <= x <= INT64[1])
    xs = np.array(wanted, np.int64)
    rows = [(who, *ends) for who, ends in ranges.items()]
    found = [stabbed(x, rows) for x in wanted]
    offsets, ids = index.stab_many(xs)
    assert [sorted(ids[a:b].tolist()) for a, b in itertools.pairwise(offsets)] == found
    counts, lists = index.count_many(xs), index.lists_many(xs)
    assert counts.dtype == lists.dtype == np.int32
    assert counts.tolist() == [len(who) for who in found]
    assert ((lists > 0) == (counts > 0)).all() and (lists <= counts).all()
    assert len(index) == len(ranges)


@settings(max_examples=100 if UNJITTED else 300)
@given(history=histories, closed=st.booleans(), seed=seeds, one_by_one=st.booleans())
def test_markers_are_those_of_the_invariant(
    history: list, closed: bool, seed: int, one_by_one: bool
) -> None:
    index, ranges, fresh = small(closed, seed), {}, 0
    for step, body in history:
        if step == "delete":
            gone = list(dict.fromkeys(list(ranges)[i % len(ranges)] for i in body if ranges))
            for some in [[who] for who in gone] if one_by_one else [gone]:
                index.delete(np.array(some, np.int32))
                for who in some:
                    del ranges[who]
                check_structure(index, ranges)
        else:
            new = {fresh + i: ends for i, ends in enumerate(fitting(body, closed))}
            fresh += len(body)
            if step == "build":
                index.build(*arrays(new))
                ranges = dict(new)
                check_structure(index, ranges)
                new = {}
            for some in [{who: new[who]} for who in new] if one_by_one else [new]:
                index.insert(*arrays(some))
                ranges |= some
                check_structure(index, ranges)
        check_answers(index, ranges, [*range(-1, 40), *INT64])


@settings(max_examples=30 if UNJITTED else 100)
@given(
    rows=st.lists(ordinal_ranges(), min_size=1, max_size=60),
    closed=st.booleans(),
    seed=seeds,
    order=st.randoms(use_true_random=False),
)
def test_all_put_in_and_taken_out_again(rows: list, closed: bool, seed: int, order) -> None:
    ranges: Ranges = dict(enumerate(fitting(rows, closed)))
    index = small(closed, seed)
    index.insert(*arrays(ranges))
    check_structure(index, ranges)
    gone = list(ranges)
    order.shuffle(gone)
    for some in (gone[i : i + 7] for i in range(0, len(gone), 7)):
        index.delete(np.array(some, np.int32))
        for who in some:
            del ranges[who]
        check_structure(index, ranges)
        check_answers(index, ranges, [0])
    assert index.entries == index.model_nbytes == len(index) == 0
    begun = index._ix.state[kernel.NODES]
    index.insert(*arrays({3: (1, 2)}))
    check_structure(index, {3: (1, 2)})
    assert begun <= index._ix.state[kernel.NODES] <= begun + 2


@pytest.mark.parametrize("closed", [True, False])
def test_many_ranges(closed: bool) -> None:
    n = 400 if UNJITTED else 20_000
    rng = np.random.default_rng(5)
    lo = rng.integers(1, n // 2, n)
    hi = lo + rng.integers(0, 50, n)
    index = ISList(closed=closed)
    index.build(np.arange(n), lo, hi)
    xs = np.arange(-1, n // 2 + 60)

    def check(ids: np.ndarray) -> None:
        over = np.zeros(n, np.int64)
        np.add.at(over, lo[ids], 1)
        np.add.at(over, hi[ids] + 1, -1)
        assert (index.count_many(xs)[xs >= 0] == np.cumsum(over)[xs[xs >= 0]]).all()
        offsets, found = index.stab_many(xs)
        values = np.repeat(xs, np.diff(offsets))
        assert ((lo[found] <= values) & (values <= hi[found])).all()
        assert len(np.unique(values * n + found)) == len(found) == (hi - lo + 1)[ids].sum()

    check(np.arange(n))
    tight = index.nbytes
    gone = rng.permutation(n)[: n // 2]
    for some in np.array_split(gone, 5):
        index.delete(some)
    check(np.setdiff1d(np.arange(n), gone))
    index.insert(gone, lo[gone], hi[gone])
    check(np.arange(n))
    assert tight <= index.nbytes
    index.delete(np.arange(n))
    assert index.entries == 0 and not index.count_many(xs).any()


def test_heights_are_halved_from_level_to_level() -> None:
    n = 500 if UNJITTED else 20_000
    index = ISList()
    index.build(np.arange(n), np.arange(n), np.arange(n))
    heights = index._ix.height[1:]
    for height in (2, 3, 4):
        share = np.count_nonzero(heights >= height) / n
        assert abs(share - 2.0 ** (1 - height)) < 2 / n**0.5


def test_pools_do_not_change_what_is_drawn() -> None:
    rows = {i: (0, 40) if i < 50 else (i % 41, i % 41) for i in range(100)}
    roomy, tight = ISList(), small(True, kernel.SEED)
    roomy._ix = kernel.empty(1, nodes=100, slots=1000, entries=10_000)
    for who, ends in rows.items():
        for index in (roomy, tight):
            index.insert(*arrays({who: ends}))
        tight._ix = kernel.trim(tight._ix)
        check_structure(tight, {i: rows[i] for i in range(who + 1)})
    used = int(tight._ix.state[kernel.NODES])
    assert (roomy._ix.height[:used] == tight._ix.height[:used]).all()
    assert (roomy._ix.key[:used] == tight._ix.key[:used]).all()


@pytest.mark.parametrize("closed", [True, False])
def test_the_removal_of_a_node_can_need_more_entries_than_there_are(closed: bool) -> None:
    """Points lie under wide ranges, which are on more edges when a high node of a point is gone."""
    enlarged = 0
    for seed in range(1, 11):
        index = small(closed, seed << 40)
        ranges: Ranges = {i: (i % 3, 40 - i % 4) for i in range(20)}
        ranges |= {20 + i: (4 + i, 4 + i) for i in range(30)}
        index.insert(*arrays(ranges))
        for who in range(20, 50):
            index._ix = kernel.trim(index._ix)
            begun = len(index._ix.entries)
            index.delete(np.array([who]))
            del ranges[who]
            enlarged += len(index._ix.entries) > begun
            check_structure(index, ranges)
    assert enlarged > 0


def test_levels_are_given_up_and_used_again() -> None:
    index = small(True, 7)
    for turn in range(60):
        ranges = {i: ((5 * i + turn) % 23, (5 * i + turn) % 23 + i % 4) for i in range(12)}
        index.insert(*arrays(ranges))
        check_structure(index, ranges)
        index.delete(np.arange(1, 12))
        check_structure(index, {0: ranges[0]})
        index.delete(np.array([0]))
        check_structure(index, {})


def test_a_search_goes_on_where_room_was_lacking() -> None:
    ranges = {i: (i % 7, i % 7 + i % 4) for i in range(40)}
    index = ISList()
    index.build(*arrays(ranges))
    xs = np.arange(-1, 12)
    rows = [(who, *ends) for who, ends in ranges.items()]
    for room in range(0, 40):
        offsets, out = np.zeros(len(xs) + 1, np.int64), np.empty(room, np.int32)
        done, found = 0, []
        while True:
            before = done
            done = kernel.search(index._ix, xs, done, offsets, out, REPORT)
            found += [
                sorted(out[a:b].tolist()) for a, b in itertools.pairwise(offsets[before : done + 1])
            ]
            if done == len(xs):
                break
            larger = np.empty(len(out) + 5, np.int32)
            larger[: offsets[done]] = out[: offsets[done]]
            out = larger
        assert found == [stabbed(int(x), rows) for x in xs]
    totals = {}
    for mode in (FIND, COUNT, REPORT):
        offsets, out = np.zeros(len(xs) + 1, np.int64), np.empty(1000, np.int32)
        assert kernel.search(index._ix, xs, 0, offsets, out, mode) == len(xs)
        totals[mode] = offsets
    assert (totals[COUNT] == totals[REPORT]).all()
    assert (np.diff(totals[FIND]) <= np.diff(totals[COUNT])).all()
    offsets = np.zeros(len(xs) + 1, np.int64)
    offsets[4] = totals[COUNT][4]
    assert kernel.search(index._ix, xs, 4, offsets, np.empty(0, np.int32), COUNT) == len(xs)
    assert (offsets[4:] == totals[COUNT][4:]).all()


@settings(max_examples=20 if UNJITTED else 80)
@given(rows=some_ranges, closed=st.booleans(), seed=seeds)
def test_pieces_are_the_edges_of_a_range(rows: list, closed: bool, seed: int) -> None:
    ranges: Ranges = dict(enumerate(fitting(rows, closed)))
    index = small(closed, seed)
    index.insert(*arrays(ranges))
    edges, _ = held(index._ix, nodes_of(index._ix))
    for who, (lo, hi) in ranges.items():
        right = hi if closed else hi + 1
        found = index.pieces(lo, hi)
        if lo == right:
            assert found == [(-1, lo, lo)]
            continue
        assert {(first, level) for level, first, _ in found} == {
            edge for edge, ids in edges.items() if who in ids
        }
        assert [lo, *(last for _, _, last in found)] == [*(first for _, first, _ in found), right]


def test_pieces_need_nodes() -> None:
    index = ISList()
    for lo, hi in ((1, 1), (1, 2)):
        with pytest.raises(ValueError, match="no query ends at 1"):
            index.pieces(lo, hi)
    index.build(*arrays({0: (1, 5)}))
    with pytest.raises(ValueError, match="no query ends at 4"):
        index.pieces(1, 4)
    with pytest.raises(ValueError, match=f"no query ends at {2**70}"):
        index.pieces(1, 2**70)
    with pytest.raises(ValueError, match="lo 5 is above hi 1"):
        index.pieces(5, 1)


def test_bad_input_changes_nothing() -> None:
    ranges = {1: (0, 10), 2: (5, 8)}
    for closed in (True, False):
        index = ISList(closed=closed)
        index.build(*arrays(ranges))
        for call, arguments, message in (
            ("insert", ([5], [3], [2]), "id 5: lo 3 is above hi 2"),
            ("insert", ([1], [0], [1]), "id 1 is already in the index"),
            ("build", ([5, 5], [1, 1], [2, 2]), "id 5 is given twice"),
            ("delete", ([1, 9],), "id 9 is not in the index"),
            ("delete", ([1, 1],), "id 1 is given twice"),
        ):
            with pytest.raises(ValueError, match=message):
                getattr(index, call)(*(np.array(a, np.int64) for a in arguments))
        check_structure(index, ranges)
        check_answers(index, ranges, [])
    with pytest.raises(ValueError, match="id 4: there is nothing behind hi 9223372036854775807"):
        index.insert(np.array([3, 4]), np.array([1, 2]), np.array([7, INT64[1]]))
    check_structure(index, ranges)


def test_it_is_an_index() -> None:
    index: IntervalIndex = ISList()
    assert index.name == "is-list" and len(index) == 0 and index.nbytes > 0
    offsets, ids = index.stab_many(np.array([1, 2]))
    assert offsets.tolist() == [0, 0, 0] and len(ids) == 0
    index.build(*arrays({3: (1, 2)}))
    assert index.stab(2).tolist() == [3] and index.stab(3).tolist() == []
    assert index.stab_many(np.empty(0, np.int64))[0].tolist() == [0]
    with pytest.raises(ValueError, match="integers are needed"):
        index.count_many(np.array([1.5]))


def test_too_many_markers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel, "MOST", 64)
    with pytest.raises(MemoryError, match="at most"):
        ISList().insert(*arrays({i: (0, 1) for i in range(40)}))
