"""A cell alone: what it holds survives growing, pruning and sorting, and reports what it should."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from limen.kernels import cells as cell
from limen.kernels.memory import aligned_words

FIRST, LAST = 0, 1000  # the span of the cell
ends = st.integers(FIRST, LAST)
members = st.lists(
    st.one_of(
        st.just((cell.FULL, FIRST, LAST)),
        ends.map(lambda e: (cell.OPENS, e, LAST)),
        ends.map(lambda e: (cell.CLOSES, FIRST, e)),
        st.tuples(ends, ends).map(lambda p: (cell.WITHIN, min(p), max(p))),
    ),
    max_size=60,
)
Members = list[tuple[int, int, int]]


def laid_out(rows: Members) -> tuple[np.ndarray, np.ndarray]:
    """Memory with one cell at word 0 holding the rows, ids being their numbers."""
    mem = aligned_words(2048)
    mem64 = mem.view(np.int64)
    counts = np.bincount([kind for kind, _, _ in rows], minlength=4).astype(np.int64)
    need = cell.words(counts)
    data = 2 if need <= cell.INLINE_WORDS else 64
    cell.write(mem, mem64, 0, counts, data, max(need, cell.INLINE_WORDS))
    for kind in range(4):
        mine = [(who, lo, hi) for who, (k, lo, hi) in enumerate(rows) if k == kind]
        for j, (who, lo, hi) in enumerate(mine):
            mem[cell.ids_at(data, counts, kind) + j] = who
            if kind != cell.FULL:
                at = cell.ends_at(data, counts, kind) + j
                mem64[at] = hi if kind == cell.CLOSES else lo
                if kind == cell.WITHIN:
                    mem64[at + len(mine)] = hi
    for kind in (cell.OPENS, cell.CLOSES):
        at, ids = cell.ends_at(data, counts, kind), cell.ids_at(data, counts, kind)
        cell.sort_ends(mem, mem64, at, ids, counts[kind], kind == cell.CLOSES)
    return mem, mem64


def found(mem: np.ndarray, mem64: np.ndarray, x: int) -> list[int]:
    out = np.empty(512, np.int32)
    n = cell.report(mem, mem64, 0, x, out, 0)
    assert n == cell.count(mem, mem64, 0, x, np.empty(4, np.int64))
    return sorted(out[:n].tolist())


def expected(rows: Members, x: int) -> list[int]:
    return [who for who, (_, lo, hi) in enumerate(rows) if lo <= x <= hi]


@given(members, st.lists(ends, min_size=1, max_size=8))
def test_a_cell_reports_what_contains_the_value(rows: Members, xs: list[int]) -> None:
    mem, mem64 = laid_out(rows)
    for x in xs:
        assert found(mem, mem64, x) == expected(rows, x)


@given(members, st.sets(st.integers(0, 59)), st.lists(ends, min_size=1, max_size=5))
def test_pruning_leaves_the_others(rows: Members, gone: set[int], xs: list[int]) -> None:
    mem, mem64 = laid_out(rows)
    dead = np.zeros(64, np.bool_)
    dead[list(gone)] = True
    old, new = np.empty(4, np.int64), np.empty(4, np.int64)
    data, capacity = cell.read(mem, mem64, 0, old)
    aside = mem[data : data + cell.words(old)].copy()
    cell.prune(aside, old, dead, mem, data, new)
    cell.write(mem, mem64, 0, new, data, capacity)
    for x in xs:
        assert found(mem, mem64, x) == [who for who in expected(rows, x) if who not in gone]


@given(members, st.tuples(*[st.integers(0, 5)] * 4))
def test_spreading_keeps_every_section(rows: Members, gains: tuple[int, ...]) -> None:
    mem, mem64 = laid_out(rows)
    old = np.empty(4, np.int64)
    data, _ = cell.read(mem, mem64, 0, old)
    new = old + np.array(gains)
    wide = aligned_words(2048)
    cell.spread(mem, data, old, wide, 0, new)
    wide64 = wide.view(np.int64)
    for kind in range(4):
        at, to = cell.ids_at(data, old, kind), cell.ids_at(0, new, kind)
        assert wide[to : to + old[kind]].tolist() == mem[at : at + old[kind]].tolist()
        if kind != cell.FULL:
            at, to = cell.ends_at(data, old, kind), cell.ends_at(0, new, kind)
            assert wide64[to : to + old[kind]].tolist() == mem64[at : at + old[kind]].tolist()


@given(members, st.integers(0, 5))
def test_room_behind_full_is_spreading_in_place(rows: Members, gain: int) -> None:
    mem, mem64 = laid_out(rows)
    old = np.empty(4, np.int64)
    data, _ = cell.read(mem, mem64, 0, old)
    new = old + np.array([gain, 0, 0, 0])
    wide = aligned_words(2048)
    cell.spread(mem, data, old, wide, 0, new)
    cell.make_room_behind_full(mem, data, old, gain)
    gap = slice(cell.ids_at(0, new, cell.FULL) + old[0], cell.ids_at(0, new, cell.OPENS))
    wide[gap] = mem[data + gap.start : data + gap.stop]
    assert mem[data : data + cell.words(new)].tolist() == wide[: cell.words(new)].tolist()


@given(st.lists(st.integers(-(2**63), 2**63 - 1), max_size=90), st.booleans())
def test_ends_are_sorted_with_their_ids(keys: list[int], descending: bool) -> None:
    n = len(keys)
    mem = aligned_words(512)
    mem64 = mem.view(np.int64)
    mem64[:n] = np.array(keys, np.int64)
    mem[300 : 300 + n] = np.arange(n)
    cell.sort_ends(mem, mem64, 0, 300, n, descending)
    assert mem64[:n].tolist() == sorted(keys, reverse=descending)
    assert [keys[i] for i in mem[300 : 300 + n]] == mem64[:n].tolist()


def test_no_room_is_said_and_nothing_reported() -> None:
    mem, mem64 = laid_out([(cell.FULL, FIRST, LAST)] * 20)
    assert cell.report(mem, mem64, 0, 5, np.empty(40, np.int32), 0) == -1
