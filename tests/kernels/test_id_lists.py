"""What all indexes over virtual constructs have in common: cuts, lists, searches, nothing left over."""

from __future__ import annotations

from types import ModuleType

import numpy as np
import pytest

from limen.kernels import (
    cei_plain,
    dlist,
    id_lists,
    lci,
    lci_bc,
    lci_bv,
    lci_bv_dt,
    sci,
    sci_bc,
    ui,
)

from . import constructs_by_hand as by_hand

KERNELS = [cei_plain, dlist, lci, lci_bc, lci_bv, lci_bv_dt, sci, sci_bc, ui]
every_kernel = pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.__name__.split(".")[-1])
both_ends = pytest.mark.parametrize("closed", [0, 1])


@every_kernel
@both_ends
@pytest.mark.parametrize("length", [1, 2, 4, 16])
def test_pieces_are_constructs_that_make_up_the_query(
    kernel: ModuleType, closed: int, length: int
) -> None:
    """Each position once, if the passed-over ends are left out."""
    ix, known = by_hand.empty(kernel, closed, length), by_hand.defined(kernel, closed, length)
    for lo, hi in by_hand.all_ranges():
        met: list[int] = []
        pieces = by_hand.cut(kernel, ix, lo, hi)
        for label, first, last in pieces:
            assert known[label if label >= 0 else ~label] == set(range(first, last + 1))
            met += range(first, last + 1 - (label < 0))
        assert sorted(met) == list(range(lo, hi + 1)), (lo, hi)
        assert len(pieces) <= kernel.layout(by_hand.R, length, closed).pieces


@every_kernel
@both_ends
def test_searches(kernel: ModuleType, closed: int) -> None:
    """Every range of a small domain at once, then half of them, then none."""
    ix, ranges = by_hand.empty(kernel, closed), dict(enumerate(by_hand.all_ranges()))
    known = by_hand.defined(kernel, closed)
    for who, ends in ranges.items():
        by_hand.put(kernel, ix, who, *ends)
    for gone in [[], list(ranges)[::2], list(ranges)[1::2]]:
        for who in gone:
            by_hand.take(kernel, ix, who, *ranges.pop(who))
        found = [[w for w, (p, q) in ranges.items() if p <= x <= q] for x in range(by_hand.R)]
        assert by_hand.search(kernel, ix, id_lists.REPORT, room=300) == found
        assert by_hand.search(kernel, ix, id_lists.COUNT) == [len(ids) for ids in found]
        lists = [
            sum(x in covers and ix.head[label] != 0 for label, covers in known.items())
            for x in range(by_hand.R)
        ]
        assert by_hand.search(kernel, ix, id_lists.FIND) == lists
    assert ix.state[id_lists.HELD] == 0 and not ix.head.any() and not ix.bits.any()


def test_entries_are_used_again() -> None:
    ix = by_hand.empty(ui, 0)
    for who in range(200):
        by_hand.put(ui, ix, who, 0, 9)
        by_hand.take(ui, ix, who, 0, 9)
    assert ix.state.tolist() == [11, ix.state[id_lists.FREE], 0]


def test_new_ids_come_first() -> None:
    ix = by_hand.empty(dlist, 1)
    for who in (7, 3, 5):
        by_hand.put(dlist, ix, who, 2, 2)
    out, offsets = np.empty(3, np.int32), np.zeros(2, np.int64)
    assert dlist.search(ix, np.array([2]), 0, offsets, out, id_lists.REPORT) == 1
    assert out.tolist() == [5, 3, 7]


def test_a_list_laid_out_is_one_stretch() -> None:
    ix = by_hand.empty(dlist, 1)
    for who in range(6):
        by_hand.put(dlist, ix, who, who % 2, 3)
    laid = np.zeros((ix.state[id_lists.HELD] + 1, 2), np.int32)
    before = by_hand.search(dlist, ix, id_lists.REPORT, room=64)
    assert id_lists.lay_out(ix.head, ix.entries, laid, 1) == len(laid)
    assert by_hand.search(dlist, ix._replace(entries=laid), id_lists.REPORT, room=64) == before
    assert laid[ix.head[1] :][:6].tolist() == [[5, 5], [4, 6], [3, 7], [2, 8], [1, 9], [0, 0]]
