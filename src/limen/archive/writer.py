"""An update: what has expired leaves, what is new comes in, one sub-index after the other, one commit.

A sub-index is a few files. A layout that reclusters has one: it is read, what has gone is left out, what
is new is sorted in, and it is written again. One that does not leaves files as they are: new results are
another file (a bucket of every key, in the paper's words), and a file is only written again, without what
has gone, when expired results are looked for. Those that are written again, and what is new, become one
file: it takes no more bytes, and a probe has fewer to look at. The smallest takes in what is new if it is
not much longer, unless the next update writes it again anyway, and in any case at MOST_FILES.

Never more than one sub-index is in memory, beside the new results themselves. Where there are only new
ones, nothing else need be in memory, so a second thread writes these files.
"""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from limen.archive import files, layouts
from limen.archive.errors import ArchiveError
from limen.archive.files import DataFile
from limen.archive.layouts import Cell, Layout, Schedule
from limen.archive.shape import I64, Mask, Shape
from limen.archive.state import Invalid, State, alive
from limen.archive.table import Table

MOST_FILES = 4  # of a sub-index that is not reclustered
MUCH = 1.5  # times what is new, for a file that takes it in
MOST_PARTS = 8  # of new results that are left where they lie
SLACK = 1  # steps by which the estimated expiration of a count-based window may be off


@dataclass
class Work:
    """Files of a new version, and what was done to get them."""

    adds: list[DataFile] = field(default_factory=list)
    drops: list[DataFile] = field(default_factory=list)
    inserted: int = 0
    expired: int = 0  # had gone before they came in
    deleted: int = 0
    touched: set[Cell] = field(default_factory=set)
    bytes_read: int = 0
    bytes_written: int = 0


class Part(NamedTuple):
    """Of a sub-index: a file's rows, which of them stay, and how many of the file do not."""

    rows: pa.Table
    stay: Mask
    gone: int


class New(NamedTuple):
    """Of a sub-index: where its new results are in a table, in order."""

    table: pa.Table
    places: I64

    def rows(self) -> pa.Table:
        return self.table.take(pa.array(self.places))


class Writer:
    """The next version of a table, not yet committed."""

    def __init__(self, table: Table) -> None:
        self._table, self.shape = table, table.shape
        self.work = Work()
        self._written: list[DataFile] = []
        self._waiting: list[Future[DataFile | None]] = []  # for files that are written beside
        self._next: set[Cell] = set()  # sub-indices that the next update looks through

    def update(self, state: State, results: pa.Table, now: int) -> State:
        """To the update at time `now`: all of `state` but the time is of before it."""
        if state.origin is None:
            after = replace(state, origin=now, step=0)
            plan = layouts.initial(state.layout, self.shape.steps)
            after = replace(after, stretches=plan.stretches)
        else:
            step = (now - state.origin) // self.shape.every
            slack = SLACK if self.shape.count_based else 0
            plan = layouts.update(
                state.layout, self.shape.steps, state.stretches, state.step + 1, step, slack
            )
            after = replace(state, step=step, stretches=plan.stretches)
        step = after.step + 1
        following = layouts.update(after.layout, self.shape.steps, plan.stretches, step, step)
        self._next = following.examined
        invalid = self._table.invalid
        self._apply(plan, after, invalid, results)
        looked = {cell for cell in self.work.touched if self._looked_at(cell, plan, after.layout)}
        after = after.looked(looked, after.step)
        return after

    def _looked_at(self, cell: Cell, plan: Schedule, layout: Layout) -> bool:
        return layout.recluster or cell in plan.examined or cell[0] in plan.dropped

    def _apply(self, plan: Schedule, state: State, invalid: Invalid, results: pa.Table) -> None:
        old: dict[Cell, list[DataFile]] = {}
        for file in self._table.files:
            if file.cell[0] in plan.dropped:
                self.work.drops.append(file)
                self.work.deleted += file.rows
            else:
                old.setdefault(file.cell, []).append(file)
        arrived = []
        for table in _in_few_parts(results):
            stay = alive(table, self.shape, state, invalid)
            order = files.order_of([table], self.shape, stay)
            arrived.append((table, order, place(table, state, plan, self.shape)[order]))
            self.work.inserted += len(order)
            self.work.expired += len(table) - len(order)
        self.work.touched = plan.touched(state.layout)
        with ThreadPoolExecutor(1, "limen-archive") as self._beside:
            for cell in sorted(self.work.touched, key=lambda cell: (cell in plan.examined, cell)):
                at = number(cell, state.layout)
                new = [New(table, order[cells == at]) for table, order, cells in arrived]
                new = [some for some in new if len(some.places)]
                put = self._recluster if state.layout.recluster else self._extend
                put(cell, old.get(cell, []), new, cell in plan.examined, state, invalid)
        for written in self._waiting:
            self._add(written.result())

    def _recluster(
        self,
        cell: Cell,
        there: list[DataFile],
        new: list[New],
        examined: bool,
        state: State,
        invalid: Invalid,
    ) -> None:
        """One file of all that is there and new."""
        due = examined or len(invalid)
        if not new and not (due and any(self._may_have_gone(f, state, invalid) for f in there)):
            return
        parts = [self._part(file, state, invalid) for file in there]
        if new or len(parts) > 1 or parts[0].gone:
            self._replace(cell, there, parts, new)

    def _extend(
        self,
        cell: Cell,
        there: list[DataFile],
        new: list[New],
        examined: bool,
        state: State,
        invalid: Invalid,
    ) -> None:
        """A file of what is new and of the files that have to be written again; the others stay."""
        due = [f for f in there if examined and self._may_have_gone(f, state, invalid)]
        parts = [self._part(file, state, invalid) for file in due]
        again = [file for file, part in zip(due, parts, strict=True) if part.gone]
        parts = [part for part in parts if part.gone]
        if new and there and not again:
            least = min(there, key=lambda file: file.rows)
            alike = least.rows <= MUCH * sum(len(some.places) for some in new)
            if len(there) >= MOST_FILES or (alike and not self._is_next(least, state)):
                again, parts = [least], [self._part(least, state, invalid)]
        if new or again:
            self._replace(cell, again, parts, new)

    def _replace(
        self, cell: Cell, files_gone: list[DataFile], parts: list[Part], new: list[New]
    ) -> None:
        """One file of what stays of these and what is new, in their place."""
        self.work.drops += files_gone
        self.work.deleted += sum(part.gone for part in parts)
        if files_gone:
            self._add(self._merged(cell, parts, new))
        else:  # nothing of a sub-index is in memory for it
            self._waiting.append(self._beside.submit(self._merged, cell, parts, new))

    def _merged(self, cell: Cell, parts: list[Part], new: list[New]) -> DataFile | None:
        tables = [*(part.rows for part in parts), *(some.rows() for some in new)]
        stay = [part.stay for part in parts]
        stay += [np.ones(len(some.places), np.bool_) for some in new]
        order = files.order_of(tables, self.shape, np.concatenate(stay))
        return self._piece(cell, tables, order) if len(order) else None

    def _is_next(self, file: DataFile, state: State) -> bool:
        """Will the next update write it again?"""
        due = file.expires[0] <= state.time(self.shape) + self.shape.every
        return due and file.cell in self._next

    def _may_have_gone(self, file: DataFile, state: State, invalid: Invalid) -> bool:
        """Can a result of the file have expired or be invalid? From what is known without a look."""
        if self.shape.count_based or file.expires[0] <= state.time(self.shape):
            return True
        return bool((invalid.since >= self._table.state.last_look(file.cell)).any())

    def _part(self, file: DataFile, state: State, invalid: Invalid) -> Part:
        if not self.shape.count_based and file.expires[1] <= state.time(self.shape):
            return Part(self.shape.schema.empty_table(), np.empty(0, np.bool_), file.rows)
        self.work.bytes_read += file.size
        rows = files.read(file)
        stay = alive(rows, self.shape, state, invalid)
        stay = np.ones(len(rows), np.bool_) if stay is None else stay
        return Part(rows, stay, int((~stay).sum()))

    def _add(self, file: DataFile | None) -> None:
        if file is not None:
            self.work.adds.append(file)
            self.work.bytes_written += file.size

    def _piece(self, cell: Cell, tables: list[pa.Table], order: I64) -> DataFile:
        file = files.write(self._table.path, cell, tables, self.shape, order)
        self._written.append(file)
        return file

    # -- another layout --------------------------------------------------------------------------

    def migrate(self, layout: Layout) -> State:
        """All results in another layout: each file is cut up, then each new sub-index put together.

        What is invalid is left out, but stays listed in the state: late results may still come.
        """
        before = self._table.state
        layout.check(self.shape.steps, self.shape.count_based)
        after = replace(before, layout=layout, examined=[], stretches=[])
        if before.origin is None:
            return after
        plan = layouts.initial(layout, self.shape.steps, before.step)
        after = replace(after, stretches=plan.stretches)
        self.work.drops = list(self._table.files)
        pieces: dict[Cell, list[DataFile]] = {}
        for file in self._table.files:
            part = self._part(file, before, self._table.invalid)
            self.work.deleted += part.gone
            places = place(part.rows, after, plan, self.shape)
            for cell in cells(layout):
                order = np.flatnonzero(part.stay & (places == number(cell, layout)))
                if len(order):
                    pieces.setdefault(cell, []).append(self._piece(cell, [part.rows], order))
        for cell, parts in sorted(pieces.items()):
            if len(parts) == 1:
                self.work.adds += parts
                self.work.bytes_written += parts[0].size
                continue
            tables = [files.read(part_file) for part_file in parts]
            self._add(self._piece(cell, tables, files.order_of(tables, self.shape)))
            for part_file in parts:
                (self._table.path / part_file.path).unlink()
        self.work.touched = set(pieces)
        return after.looked(set(cells(layout)), before.step)

    def discard(self) -> None:
        """Delete the files that were written: there is no commit of them."""
        for file in self._written:
            (self._table.path / file.path).unlink(missing_ok=True)


def _in_few_parts(results: pa.Table) -> list[pa.Table]:
    """Each in one piece of memory; copied only if there are many."""
    parts = results.to_batches()
    if len(parts) > MOST_PARTS:
        parts = results.combine_chunks().to_batches()
    return [pa.Table.from_batches([part]) for part in parts]


def cells(layout: Layout) -> Iterable[Cell]:
    return ((row, column) for row in range(layout.rows) for column in range(layout.columns))


def number(cell: Cell, layout: Layout) -> int:
    return cell[0] * layout.columns + cell[1]


def place(results: pa.Table, state: State, plan: Schedule, shape: Shape) -> I64:
    """The number of the sub-index that each result goes to.

    A late one goes where those of the oldest step of this update go: it is gone before they are.
    """
    if not len(results):
        return np.empty(0, np.int64)
    steps = sorted(plan.rows)
    generated = state.step_of(shape.numbers(results, shape.generated), shape)
    rows = np.array([plan.rows[s] for s in range(steps[0], steps[-1] + 1)], np.int64)
    row = rows[np.clip(generated - steps[0], 0, len(rows) - 1)]
    due = state.step_of(shape.numbers(results, shape.expires), shape)
    due = np.clip(due, state.step + 1, state.step + shape.steps)
    columns = np.array(
        [state.layout.column_of(state.step + 1 + i, shape.steps) for i in range(shape.steps)],
        np.int64,
    )
    return row * state.layout.columns + columns[due - state.step - 1]


def estimated(results: pa.Table, shape: Shape, state: State, now: int) -> pa.Table:
    """With expirations guessed from how quickly the counted windows move (section 4.2)."""
    left = np.full(len(results), float(shape.window))
    for who, side in shape.counts.items():
        places = shape.numbers(results, side.column)
        ahead = places > state.counts[who]
        if ahead.any():
            row = int(ahead.argmax())
            raise ArchiveError(
                f"result row {row}: place {int(places[row])} in window {who!r}, which has seen "
                f"{state.counts[who]} rows"
            )
        rows_left = places + side.size - state.counts[who]
        rows, passed = state.rates[who]
        rate = rows / passed if rows else side.size / shape.window
        left = np.minimum(left, rows_left / rate)
    guess = now + np.clip(np.ceil(left), 1, shape.window).astype(np.int64)
    guess = np.minimum(guess, shape.reach[1])
    kind = shape.schema.field(shape.expires).type
    with_it = results.append_column(pa.field(shape.expires, kind), pa.array(guess).cast(kind))
    return with_it.select(shape.schema.names)
