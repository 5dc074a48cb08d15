"""Positions, frames and spans of RS lists, against counting and plain loops over the borders."""

from __future__ import annotations

import itertools
from random import Random
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from limen.kernels.bmq import LANES
from limen.kernels.borders import (
    BLOCK,
    ENDLESS,
    LEAST_GAP,
    RSLists,
    apart,
    key_of,
    locate_many,
    make_frames,
    moved,
    nearest,
    pack_keys,
    stepped,
)
from limen.testing.strategies import INT64, ordinals

Ranges = dict[int, tuple[int, int]]  # of one list, by query
TOPS = {np.uint16: 2**16 - 1, np.uint32: 2**32 - 1, np.int64: 2**64 - 1}
SPREADS = (3, 60, 60_000, 2**31, 2**62)  # of the values of a list

fewer = settings(max_examples=settings.default.max_examples // 2)


# -- RS lists by plain loops ---------------------------------------------------------------------


class Built(NamedTuple):
    rs: RSLists
    lists: list[Ranges]
    keys: list[int]  # of all lists
    ids: list[int]
    starts: list[int]
    most: int  # ids are below

    def at(self, of: int, p: int) -> list[int]:
        """The queries at a position, by the borders below it."""
        there = {q for q, (lo, _) in self.lists[of].items() if lo == INT64[0]}
        for q in self.ids[self.starts[of] : p]:
            if q >= 0:
                there.add(q)
            else:
                there.remove(~q)
        return sorted(there)

    def position(self, of: int, x: int) -> int:
        begin, end = self.starts[of], self.starts[of + 1]
        return begin + sum(key <= x for key in self.keys[begin:end])


def build(lists: list[Ranges], random: Random, width: type | None = None) -> Built:
    """Ties lie in any order; keys are as narrow as they can be, or of the width that is given."""
    keys, ids, starts, open_ids, opens = [], [], [0], [], [0]
    for ranges in lists:
        borders = [(lo, q) for q, (lo, _) in ranges.items() if lo > INT64[0]]
        borders += [(hi + 1, ~q) for q, (_, hi) in ranges.items() if hi < INT64[1]]
        random.shuffle(borders)
        borders.sort(key=lambda border: border[0])
        keys += [key for key, _ in borders]
        ids += [q for _, q in borders]
        starts.append(len(keys))
        open_ids += [q for q, (lo, _) in ranges.items() if lo == INT64[0]]
        opens.append(len(open_ids))
    bases, most = [], 0
    for i in range(0, len(keys) + 1, BLOCK):
        bases.append(min(keys[i : i + BLOCK], default=0))
        most = max(most, max(keys[i : i + BLOCK], default=0) - bases[-1])
    narrowest = next(t for t, top in TOPS.items() if most <= top)
    kind = narrowest if width is None or TOPS[width] < TOPS[narrowest] else width
    if kind is np.int64:
        bases = [0] * len(bases)
    packed = [key - bases[i // BLOCK] for i, key in enumerate(keys)]
    ceiling = max((q for ranges in lists for q in ranges), default=-1) + 1
    begins = np.array(starts, np.int64)
    frames = make_frames(
        np.array(ids, np.int32),
        begins,
        np.array(open_ids, np.int32),
        np.array(opens, np.int64),
        ceiling,
    )
    rs = RSLists(
        np.array(packed, kind),
        np.array(bases, np.int64),
        np.array([TOPS[kind]], np.uint64),
        np.array(ids + [0] * LANES, np.int32),
        begins,
        *frames,
    )
    return Built(rs, lists, keys, ids, starts, ceiling)


def crowd(random: Random, n: int, spread: int, first: int = 0) -> Ranges:
    """Ranges close together: points, narrow and wide ones, some without an end."""
    origin = random.choice([0, -spread // 2, INT64[0], INT64[1] - spread])
    widths = random.choice([[0], [0, spread // 50 + 2], [spread // 50 + 2, spread], [spread]])
    found = {}
    for q in random.sample(range(first, first + n), n):
        lo = origin + random.randint(0, spread)
        hi = min(lo + random.randint(0, random.choice(widths)), origin + spread)
        kind = random.randint(0, 30)
        found[q] = (INT64[0] if kind == 0 else lo, INT64[1] if kind == 1 else hi)
    return found


@st.composite
def builds(draw: st.DrawFn, most: int = 160, width: type | None = None) -> Built:
    """Several lists: of the same queries, as dimensions are, or each of its own, as groups are."""
    size = st.one_of(st.integers(0, 5), st.integers(0, most))
    sizes = draw(st.lists(size, min_size=1, max_size=4))
    spread, shared = draw(st.sampled_from(SPREADS)), draw(st.booleans())
    random = Random(draw(st.integers(0, 2**32)))
    lists, first = [], 0
    for n in sizes:
        lists.append(crowd(random, n, spread, first))
        first += 0 if shared else n
    return build(lists, random, width)


def probes(built: Built, random: Random, n: int) -> list[int]:
    """Borders, their neighbours, and more."""
    near = {key + d for key in built.keys for d in (-1, 0, 1)} | {0, *INT64}
    near = sorted(x for x in near if INT64[0] <= x <= INT64[1])
    return [*random.sample(near, min(n, len(near))), *INT64]


# -- positions -----------------------------------------------------------------------------------


@pytest.mark.parametrize("width", TOPS)
@fewer
@given(data=st.data())
def test_a_position_is_the_number_of_borders_at_or_below(width: type, data: st.DataObject) -> None:
    built = data.draw(builds(width=width))
    random = Random(len(built.keys))
    for of, (first, end) in enumerate(itertools.pairwise(built.starts)):
        for x in probes(built, random, 12):
            expected = built.position(of, x)
            begin, stop, value = np.int64(first), np.int64(end), np.int64(x)
            for p in {first, end, expected, random.randint(first, end), random.randint(first, end)}:
                assert moved(built.rs, begin, stop, np.int64(p), value) == expected
                assert stepped(built.rs, begin, stop, np.int64(p), value) == expected


@given(builds(), st.integers(0, 3))
def test_many_values_are_located_each_in_its_list(built: Built, first: int) -> None:
    random = Random(first)
    first = min(first, len(built.lists) - 1)
    xs = probes(built, random, 60)
    lists = [random.randint(-1, len(built.lists) - 1 - first) for _ in xs]
    at = np.full(len(xs), -7, np.int32)
    locate_many(built.rs, first, np.array(lists, np.int32), np.array(xs, np.int64), at)
    expected = [
        built.position(first + of, x) if of >= 0 else -1 for of, x in zip(lists, xs, strict=True)
    ]
    assert at.tolist() == expected


@pytest.mark.parametrize("spread", SPREADS)
@pytest.mark.parametrize("width", TOPS)
def test_a_list_of_many_blocks(spread: int, width: type) -> None:
    """Long steps and short ones, forwards and backwards."""
    random = Random(spread)
    built = build([crowd(random, 1000, spread, i * 1000) for i in range(2)], random, width)
    for _ in range(300):
        of, x = random.randint(0, 1), random.choice(built.keys) + random.randint(-1, 1)
        first, end = built.starts[of], built.starts[of + 1]
        p = random.randint(first, end)
        found = moved(built.rs, np.int64(first), np.int64(end), np.int64(p), np.int64(x))
        assert found == built.position(of, x)


@given(builds())
def test_keys_come_back(built: Built) -> None:
    for i in range(0, len(built.keys), 7):
        assert key_of(built.rs, np.int64(i)) == built.keys[i]


def test_no_value_lies_beyond_the_greatest() -> None:
    """A query up to the greatest value has no end border; one from the least has no begin."""
    built = build([{0: INT64, 1: (INT64[1], INT64[1]), 2: (INT64[0], INT64[0])}], Random(0))
    assert sorted(zip(built.keys, built.ids, strict=True)) == [(INT64[0] + 1, ~2), (INT64[1], 1)]
    at = np.empty(4, np.int32)
    xs = np.array([INT64[0], INT64[0] + 1, INT64[1] - 1, INT64[1]], np.int64)
    locate_many(built.rs, 0, np.zeros(4, np.int32), xs, at)
    assert at.tolist() == [0, 1, 1, 2]
    assert [built.at(0, p) for p in at.tolist()] == [[0, 2], [0], [0], [0, 1]]


@example(keys=[])
@example(keys=[5] * BLOCK)
@example(keys=[INT64[0]] * BLOCK + [INT64[1]])
@example(keys=[INT64[0], INT64[1]])
@example(keys=[-1, INT64[1]])
@example(keys=[0, INT64[1]])
@given(keys=st.lists(ordinals(), max_size=200))
def test_keys_are_packed(keys: list[int]) -> None:
    bases = np.full(len(keys) // BLOCK + 1, -7, np.int64)
    most = pack_keys(np.array(keys, np.int64), bases)
    blocks = [keys[i : i + BLOCK] for i in range(0, len(keys) + 1, BLOCK)]
    greatest = max(max(block, default=0) - min(block, default=0) for block in blocks)
    assert most == (greatest if greatest <= INT64[1] else -1)
    if most >= 0:
        assert bases.tolist() == [min(block, default=0) for block in blocks]


# -- frames and spans ----------------------------------------------------------------------------


def frames_of(built: Built, of: int) -> list[tuple[int, list[int]]]:
    """Position and ids of each frame of a list."""
    rs = built.rs
    return [
        (int(rs.frame_at[f]), rs.frame_ids[rs.frame_starts[f] : rs.frame_starts[f + 1]].tolist())
        for f in range(rs.frames[of], rs.frames[of + 1])
    ]


@given(builds())
def test_frames_hold_the_queries_at_their_positions(built: Built) -> None:
    rs = built.rs
    assert rs.frames[0] == rs.frame_starts[0] == 0 and rs.frames[-1] == len(rs.frame_at)
    assert rs.frame_starts[-1] == len(rs.frame_ids)
    for of, (first, end) in enumerate(itertools.pairwise(built.starts)):
        there = built.at(of, first)
        due = first if there else first + LEAST_GAP
        for at, ids in frames_of(built, of):
            assert at == due and (at < end or at == first)
            assert sorted(ids) == built.at(of, at)
            borders = built.ids[:end]
            ends = [borders.index(~q, first) if ~q in borders[first:] else ENDLESS for q in ids]
            assert ends == sorted(ends)
            due = at + max(LEAST_GAP, 2 * len(ids))
        assert due >= end and (frames_of(built, of) or not there)  # none is missing


@given(builds())
def test_what_the_queries_at_a_position_usually_cost(built: Built) -> None:
    for of in range(len(built.lists)):
        sizes = [len(ids) for _, ids in frames_of(built, of)]
        each = sum(sizes) // len(sizes) if sizes else 0
        usual = each + max(LEAST_GAP, 2 * each) // 2 if sizes else 0
        assert built.rs.usual[of] == usual


@given(builds())
def test_the_last_frame_before_a_block(built: Built) -> None:
    assert len(built.rs.frame_of) == len(built.keys) // BLOCK + 1
    for block, frame in enumerate(built.rs.frame_of.tolist()):
        before = [i for i, at in enumerate(built.rs.frame_at.tolist()) if at <= block * BLOCK]
        assert frame == (before[-1] if before else -1)


@given(builds())
def test_spans(built: Built) -> None:
    least = [ENDLESS] * (len(built.keys) // BLOCK + 1)
    widest = []
    for of, (first, end) in enumerate(itertools.pairwise(built.starts)):
        place = {q: i for i, q in enumerate(built.ids[first:end], first)}
        widest.append(0)
        for q in built.lists[of]:
            span = ENDLESS
            if q in place and ~q in place:
                span = place[~q] - place[q]
                for border in (place[q], place[~q]):
                    least[border // BLOCK] = min(least[border // BLOCK], span)
            widest[of] = max(widest[of], span)
    assert built.rs.spans.tolist() == least
    assert built.rs.widest.tolist() == widest


@fewer
@given(builds())
def test_the_nearest_frame(built: Built) -> None:
    random = Random(len(built.keys))
    for of, (first, end) in enumerate(itertools.pairwise(built.starts)):
        frames = frames_of(built, of)
        for p in {first, end, *(random.randint(first, end) for _ in range(12))}:
            frame, at, cost = nearest(built.rs, of, np.int64(p))
            begin = int(built.rs.frames[of])
            before = [(i, f) for i, f in enumerate(frames, begin) if f[0] <= p]
            behind = [(i, f) for i, f in enumerate(frames, begin) if f[0] > p]
            expected = (-1, first, p - first)
            if before:
                i, (place, ids) = before[-1]
                expected = (i, place, p - place + len(ids))
            if behind:
                i, (place, ids) = behind[0]
                if 4 * (place - p + len(ids)) < expected[2]:
                    expected = (i, place, place - p + len(ids))
            assert (frame, at, cost) == expected


def test_a_frame_behind_is_nearer_where_many_have_ended() -> None:
    wide = {q: (q, 1000 + q if q < 44 else 5000) for q in range(48)}
    points = {q: (2 * q + 2000, 2 * q + 2000) for q in range(48, 88)}
    built = build([wide | points], Random(0))
    frames = [(at, len(ids)) for at, ids in frames_of(built, 0)]
    assert frames == [(16, 16), (48, 48), (144, 4), (160, 4)]
    assert nearest(built.rs, 0, np.int64(70)) == (1, 48, 70)
    assert nearest(built.rs, 0, np.int64(142)) == (2, 144, 6)
    assert nearest(built.rs, 0, np.int64(150)) == (2, 144, 10)


def test_the_end_of_a_list_is_not_the_begin_of_the_next() -> None:
    """Their positions are the same; their frames are not."""
    first = {q: (q, 1000 + q) for q in range(LEAST_GAP // 2)}
    built = build([first, {q: (INT64[0], q) for q in range(3)}, {}, {5: INT64}], Random(0))
    assert built.starts == [0, LEAST_GAP, LEAST_GAP + 3, LEAST_GAP + 3, LEAST_GAP + 3]
    ends = [nearest(built.rs, of, np.int64(built.starts[of + 1])) for of in range(4)]
    assert ends == [
        (-1, 0, LEAST_GAP),
        (0, LEAST_GAP, 6),
        (-1, LEAST_GAP + 3, 0),
        (1, LEAST_GAP + 3, 1),
    ]
    assert nearest(built.rs, 1, np.int64(LEAST_GAP)) == (0, LEAST_GAP, 3)


@fewer
@given(builds(), st.integers(0, 2**32))
def test_borders_that_are_apart_belong_to_different_queries(built: Built, seed: int) -> None:
    random = Random(seed)
    for first, end in itertools.pairwise(built.starts):
        for _ in range(12 if end > first else 0):
            begin = random.randint(first, end - 1)
            stop = random.randint(begin + 1, min(end, begin + random.choice([3, 20, 200])))
            blocks = range(begin // BLOCK, (stop - 1) // BLOCK + 1)
            told = apart(built.rs, np.int64(begin), np.int64(stop))
            assert told == all(built.rs.spans[block] >= stop - begin for block in blocks)
            met = [q if q >= 0 else ~q for q in built.ids[begin:stop]]
            assert not told or len(set(met)) == len(met)
