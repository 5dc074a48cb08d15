"""The production index: containment-encoded intervals over a grid fitted to the queries.

Semantics as in `protocol.py`; queries may further be divided into groups (an equality key), each with
a domain and a grid of its own, and a value then probes one group. The algorithm is in
`kernels/cei.py`, `kernels/grid.py`, `kernels/cells.py` and `kernels/containment.py`; after the CEI
paper, sections 3.1-3.4.

The grid is fitted anew when the index has doubled or shrunk to a quarter since, when updates have left
as much unused memory behind as there was, when it runs out of spare groups, when updates crowd into
one cell, and when a changed mapped index is saved: amortised, a constant number of rewrites a query.

Not for several threads at once: a probe uses working space of the index.

A batch is probed in its own order: bringing it into the order of the cells first, and the answers back,
cost more than the prefetches leave to save (10**7 queries, 10 hits: 71 against 78 ns a value).

`save` writes the arrays with checksums, `load` maps them: processes on one machine then share one
copy, and updates to a mapped index stay private. What is part of something larger is saved with it
(`parts`, `of_parts`).
"""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

import numpy as np

from limen.indexes import saved
from limen.indexes.protocol import I32, I64, Hits, QueryTable, checked, plain, with_room
from limen.indexes.spare import Spare
from limen.kernels import cei as kernel
from limen.kernels import tally
from limen.kernels.containment import level_starts
from limen.kernels.grid import fit, locate_many, sample_ends
from limen.kernels.memory import LINE_WORDS, aligned_words
from limen.kernels.radix import locality_order

ENDS_PER_CELL = 2  # at least; at most twice that, widths being powers of two
PAD_WORDS = 2 * LINE_WORDS  # reads may go past the end of what they need
SLACK_WORDS = 16  # asked for ahead, a query: memory costs nothing until it is touched
FEW = 256  # values from which the length of an answer is estimated
CROWDED = 64  # queries within one cell that are compared one by one
WIDE_STEP, NARROW_STEP = 4, 3  # bits between levels, for narrow and for wide queries
TALLY_BITS = 4  # counting cuts a cell into at most 2**TALLY_BITS parts

_NO_I32 = np.empty(0, np.int32)
_NO_I64 = np.empty(0, np.int64)


class _Spares:
    """Buffers for what a batch of probes needs and returns."""

    def __init__(self) -> None:
        self.cells, self.ids, self.counts = Spare(np.int32), Spare(np.int32), Spare(np.int32)
        self.offsets = Spare(np.int64)


class CEI:
    name: ClassVar[str] = "cei"

    _ix: kernel.Arrays
    _tail: int  # words of private memory in use
    _top: int  # the highest level in use
    _roots: int  # groups that the grid has room for
    _fitted: int  # queries that were in when the grid was fitted
    _since_fit: int
    _fitted_words: int  # words of private memory in use then
    _tallies: tuple[I64, tally.Tallies] | None  # made once enough was counted to pay for them
    _counted: int  # values counted since the last change

    def __init__(self) -> None:
        self._table = QueryTable()
        self._groups = _NO_I32
        self._n_groups = 1
        self._scratch, self._spare = kernel.scratch(), _Spares()
        self._refit()

    def __len__(self) -> int:
        return self._table.size

    # -- updates ---------------------------------------------------------------------------------

    def build(self, ids: I32, lo: I64, hi: I64, groups: I32 | None = None) -> None:
        """Hold these queries and no others; groups[i] >= 0 is the group of ids[i], 0 if not given."""
        ids, lo, hi = checked(ids, lo, hi)
        by_group = _checked_groups(ids, groups)
        table = QueryTable()
        table.add(ids, lo, hi)
        self._table, self._groups, self._n_groups = table, _NO_I32, 1
        self._remember_groups(ids, by_group)
        self._refit()

    def insert(self, ids: I32, lo: I64, hi: I64, groups: I32 | None = None) -> None:
        ids, lo, hi = checked(ids, lo, hi)
        by_group = _checked_groups(ids, groups)
        self._table.add(ids, lo, hi)
        self._remember_groups(ids, by_group)
        roots_needed = int(by_group.max()) + 1 if len(by_group) else 1
        outgrown = self._table.size > 2 * self._fitted + 64 or roots_needed > self._roots
        if outgrown or self._tail > 2 * (self._fitted_words + len(self._ix.mem)):
            self._refit()
            return
        crowd = self._put(ids, lo, hi, by_group)
        self._since_fit += len(ids)
        if crowd > CROWDED and self._since_fit > self._fitted // 16:
            self._refit()

    def delete(self, ids: I32) -> None:
        ids = self._table.check_in(ids)
        if not len(ids):
            return
        lo, hi = self._table.lo[ids], self._table.hi[ids]
        groups = self._group_of(ids)
        adds, touched, n = self._plan(lo, hi, groups, self._locality(lo, groups))
        self._make_room(adds, touched, n, gaining=False)
        dead = np.zeros(len(self._table.live), np.bool_)
        dead[ids] = True
        self._tail = kernel.take(self._ix, self._scratch, touched, n, dead, self._tail)
        self._table.remove(ids)
        self._tallies, self._counted = None, 0
        if self._table.size < self._fitted // 4:
            self._refit()

    def _remember_groups(self, ids: I32, groups: I32) -> None:
        if len(groups):
            self._n_groups = max(self._n_groups, int(groups.max()) + 1)
            self._groups = with_room(self._groups, len(self._table.live))
            self._groups[ids] = groups
        elif len(self._groups):
            self._groups = with_room(self._groups, len(self._table.live))
            self._groups[ids] = 0

    def _group_of(self, ids: I32) -> I32:
        return self._groups[ids] if len(self._groups) else _NO_I32

    def _refit(self) -> None:
        """Fit the grid to the queries that are in and lay them out anew."""
        ids = self._table.ids()
        lo, hi, groups = self._table.lo[ids], self._table.hi[ids], self._group_of(ids)
        spare = 0 if self._n_groups == 1 else max(64, self._n_groups // 4)
        self._roots = self._n_groups + spare
        points, starts, weights = sample_ends(groups, self._roots, lo, hi)
        nodes, cells = fit(points, starts, weights, ENDS_PER_CELL)
        step = _step(nodes, lo, hi, groups)
        levels = level_starts(cells, step)
        own = aligned_words(cells * LINE_WORDS + PAD_WORDS + SLACK_WORDS * len(ids))
        heads = np.zeros((levels[-1] - levels[1], 2), np.int64)
        self._ix = kernel.Arrays(
            nodes, levels, _NO_I32, _NO_I64, own, own.view(np.int64), _NO_I64, heads, step
        )
        self._tail = cells * LINE_WORDS
        self._top = 0
        self._tallies, self._counted = None, 0
        self._put(ids, lo, hi, groups)
        self._fitted, self._since_fit, self._fitted_words = len(ids), 0, self._tail

    def _plan(self, lo: I64, hi: I64, groups: I32, order: I32) -> tuple[I32, I32, int]:
        n_cells = int(self._ix.levels[1])
        adds = np.zeros(3 * n_cells + int(self._ix.levels[-1]), np.int32)
        touched = np.empty(int(self._ix.levels[-1]), np.int32)
        n = kernel.plan(self._ix, self._scratch, groups, lo, hi, order, adds, touched)
        return adds, touched, n

    def _put(self, ids: I32, lo: I64, hi: I64, groups: I32) -> int:
        """Put queries into the arrays; returns how many there are within the fullest cell touched."""
        self._tallies, self._counted = None, 0
        order = self._locality(lo, groups)
        adds, touched, n = self._plan(lo, hi, groups, order)
        self._make_room(adds, touched, n, gaining=True)
        self._tail = kernel.grow(self._ix, self._scratch, adds, touched, n, self._tail)
        top = kernel.fill(self._ix, self._scratch, ids, groups, lo, hi, order, adds)
        self._top = max(self._top, top)
        return kernel.settle(self._ix, self._scratch, touched, n)

    def _locality(self, lo: I64, groups: I32) -> I32:
        return locality_order(self._locate(lo, groups), int(self._ix.levels[1]).bit_length())

    def _locate(self, xs: I64, groups: I32) -> I32:
        cells = np.empty(len(xs), np.int32)
        locate_many(self._ix.nodes, groups, xs, cells)
        return cells

    def _make_room(self, adds: I32, touched: I32, n: int, *, gaining: bool) -> None:
        """Lengthen the private memory and the scratch space to what an update will need."""
        words, largest = kernel.room(self._ix, self._scratch, adds, touched, n, gaining)
        if largest > len(self._scratch.words):
            self._scratch = self._scratch._replace(words=np.empty(largest, np.int32))
        needed = self._tail + words + PAD_WORDS
        if needed <= len(self._ix.own):
            return
        own = aligned_words((needed + needed // 2 + 1) & ~1)
        own[: self._tail] = self._ix.own[: self._tail]
        self._ix = self._ix._replace(own=own, own64=own.view(np.int64))

    # -- probes ----------------------------------------------------------------------------------

    def stab(self, x: int, group: int = 0) -> I32:
        groups = np.array([group], np.int32) if group else None
        return self.stab_many(np.array([x]), groups)[1]

    def stab_many(
        self, xs: I64, groups: I32 | None = None, *, per_value: float | None = None
    ) -> Hits:
        """Offsets and ids; `per_value` is what `hits_per_value` gave, if it was asked already."""
        if per_value is None:
            per_value = self.hits_per_value(xs, groups)
        xs, by_group = self._checked_values(xs, groups)
        n = len(xs)
        cells = self._spare.cells.empty(n)[:n]
        locate_many(self._ix.nodes, by_group, xs, cells)
        offsets = self._spare.offsets.empty(n + 1)[: n + 1]
        offsets[0] = 0
        out = self._spare.ids.empty(int(1.1 * per_value * n) + 1024)
        done = 0
        while True:
            done = kernel.report(self._ix, self._top, xs, cells, done, offsets, out)
            if done == n:
                return offsets, out[: offsets[-1]]
            larger = np.empty(2 * len(out) + self._table.size + LINE_WORDS, np.int32)
            larger[: offsets[done]] = out[: offsets[done]]
            out = larger

    def hits_per_value(self, xs: I64, groups: I32 | None = None) -> float:
        """The mean number of queries found, from a few of the values."""
        some = slice(None, None, max(1, len(xs) // FEW))
        xs, by_group = self._checked_values(xs[some], None if groups is None else groups[some])
        return float(self._count(xs, by_group, None).mean()) if len(xs) else 0.0

    def count_many(self, xs: I64, groups: I32 | None = None) -> I32:
        xs, by_group = self._checked_values(xs, groups)
        self._counted += len(xs)
        if self._tallies is None and self._counted > int(self._ix.levels[1]) // 8:
            layout, parts = tally.part_layout(self._ix.nodes, TALLY_BITS)
            tallies = np.empty(parts, np.uint32)
            most = tally.tally(self._ix, self._scratch, self._top, layout, tallies)
            small = most < np.iinfo(np.uint16).max
            self._tallies = layout, tallies.astype(np.uint16) if small else tallies
        return self._count(xs, by_group, self._tallies)

    def _count(self, xs: I64, groups: I32, tallies: tuple[I64, tally.Tallies] | None) -> I32:
        found = self._spare.counts.empty(len(xs))[: len(xs)]
        layout, parts = tallies or (np.empty((0, 2), np.int64), np.empty(0, np.uint16))
        tally.count(self._ix, self._scratch, self._top, layout, parts, groups, xs, found)
        return found

    def _checked_values(self, xs: I64, groups: I32 | None) -> tuple[I64, I32]:
        xs = plain(xs, np.int64)
        if groups is None:
            return xs, _NO_I32
        by_group = plain(groups, np.int32)
        if len(by_group) != len(xs):
            raise ValueError(f"xs and groups differ in length: {len(xs)}, {len(by_group)}")
        return xs, np.where(by_group < self._roots, by_group, np.int32(-1)).astype(np.int32)

    # -- size, shape, disk -----------------------------------------------------------------------

    @property
    def nbytes(self) -> int:
        arrays = self._ix.nodes, self._ix.levels, self._ix.mem, self._ix.moved, self._ix.heads
        held = sum(array.nbytes for array in arrays) + 4 * self._tail
        if self._tallies is not None:
            held += sum(a.nbytes for a in self._tallies)
        return held + self._table.nbytes + self._groups.nbytes

    @property
    def shape(self) -> dict[str, int]:
        """Numbers of groups, grid nodes, cells and levels in use."""
        return {
            "groups": self._n_groups,
            "nodes": len(self._ix.nodes),
            "cells": int(self._ix.levels[1]),
            "levels": self._top + 1,
        }

    def cells_of(self, xs: I64, groups: I32 | None = None) -> I32:
        """The cell in which each value lies."""
        return self._locate(*self._checked_values(xs, groups))

    @property
    def mapped(self) -> bool:
        """Is a part of the index in saved files?"""
        return len(self._ix.mem) > 0

    def save(self, folder: str | Path, *, durable: bool = True) -> None:
        """Write the index to a new folder, whole or not at all."""
        arrays, facts = self.parts()
        saved.write(Path(folder), self.name, arrays, facts, durable=durable)

    @classmethod
    def load(cls, folder: str | Path, *, verify: bool = True) -> CEI:
        """Map a saved index; with verify=False the checksums are not read (the sizes are)."""
        return cls.of_parts(*saved.read(Path(folder), cls.name, verify=verify))

    def parts(self, rows: int = 0) -> tuple[saved.Arrays, saved.Facts]:
        """What is saved of the index, with room for ids below `rows` if that is more than usual."""
        if self.mapped:
            self._refit()
        used = self._tail + PAD_WORDS
        n = len(self._table.live)
        rows = max(rows, saved.spare_rows(n))
        arrays: saved.Arrays = {
            "nodes": self._ix.nodes,
            "levels": self._ix.levels,
            "memory": self._ix.own[:used],
            "heads": self._ix.heads,
            "lo": saved.padded(self._table.lo, n, rows),
            "hi": saved.padded(self._table.hi, n, rows),
            "live": saved.padded(self._table.live, n, rows),
            "groups": saved.padded(self._groups, n, rows) if len(self._groups) else _NO_I32,
        }
        facts: saved.Facts = {
            "size": self._table.size,
            "top": self._top,
            "groups": self._n_groups,
            "roots": self._roots,
            "step": self._ix.step,
        }
        return arrays, facts

    @classmethod
    def of_parts(cls, arrays: saved.Arrays, facts: saved.Facts) -> CEI:
        index = cls.__new__(cls)
        index._table = QueryTable()
        index._table.lo, index._table.hi = arrays["lo"], arrays["hi"]
        index._table.live, index._table.size = arrays["live"], facts["size"]
        index._groups, index._n_groups = arrays["groups"], facts["groups"]
        index._roots, index._top = facts["roots"], facts["top"]
        mem, own = arrays["memory"], aligned_words(PAD_WORDS)
        index._ix = kernel.Arrays(
            arrays["nodes"],
            arrays["levels"],
            mem,
            mem.view(np.int64),
            own,
            own.view(np.int64),
            np.zeros(int(arrays["levels"][1]), np.int64),
            arrays["heads"],
            facts["step"],
        )
        index._tail, index._scratch, index._spare = 0, kernel.scratch(), _Spares()
        index._tallies, index._counted = None, 0
        index._fitted, index._since_fit, index._fitted_words = index._table.size, 0, 0
        return index


def _step(nodes: I64, lo: I64, hi: I64, groups: I32) -> int:
    """Bits between two levels: fewer, longer levels where queries are narrow, to spare visits."""
    some = slice(None, None, max(1, len(lo) // 4096))
    ends = [np.empty(len(lo[some]), np.int32) for _ in (lo, hi)]
    for values, cells in zip((lo, hi), ends, strict=True):
        locate_many(nodes, groups[some], values[some], cells)
    width = np.median(ends[1] - ends[0]) if len(ends[0]) else 0
    return WIDE_STEP if width <= 1 << (WIDE_STEP + 1) else NARROW_STEP


def _checked_groups(ids: I32, groups: I32 | None) -> I32:
    if groups is None:
        return _NO_I32
    by_group = plain(groups, np.int32)
    if len(by_group) != len(ids):
        raise ValueError(f"ids and groups differ in length: {len(ids)}, {len(by_group)}")
    if len(by_group) and by_group.min() < 0:
        raise ValueError(f"id {ids[by_group.argmin()]}: group {by_group.min()} is negative")
    return by_group
