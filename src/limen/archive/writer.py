"""An update: what has expired leaves, what is new comes in, one sub-index after the other, one commit.

A sub-index is a few files. A layout that reclusters has one: it is read, what has gone is left out, what
is new is sorted in, and it is written again. One that does not leaves files as they are: new results are
another file (a bucket of every key, in the paper's words), and a file is only written again, without what
has gone, when expired results are looked for. At MOST_FILES the smallest takes in what is new, so that a
probe does not have to look at ever more of them.

Never more than one sub-index is in memory, beside the new results themselves.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from limen.archive import files, layouts
from limen.archive.errors import ArchiveError
from limen.archive.files import DataFile
from limen.archive.layouts import Cell, Layout, Schedule
from limen.archive.shape import I64, Shape
from limen.archive.state import Invalid, State, alive
from limen.archive.table import Table

MOST_FILES = 3  # of a sub-index that is not reclustered
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


class Writer:
    """The next version of a table, not yet committed."""

    def __init__(self, table: Table) -> None:
        self._table, self.shape = table, table.shape
        self.work = Work()
        self._written: list[DataFile] = []

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
        invalid = self._table.invalid
        keep = alive(results, self.shape, after, invalid)
        if keep is not None:
            self.work.expired = int(len(keep) - keep.sum())
            results = results.filter(pa.array(keep))
        self._apply(plan, after, invalid, results)
        looked = {cell for cell in self.work.touched if self._looked_at(cell, plan, after.layout)}
        after = after.looked(looked, after.step)
        self.work.inserted = len(results)
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
        places = place(results, state, plan, self.shape)
        self.work.touched = plan.touched(state.layout)
        for cell in sorted(self.work.touched):
            new = results.take(pa.array(np.flatnonzero(places == number(cell, state.layout))))
            there = old.get(cell, [])
            if state.layout.recluster:
                self._recluster(cell, there, new, cell in plan.examined, state, invalid)
            else:
                if cell in plan.examined:
                    there = self._without_gone(cell, there, state, invalid)
                self._append(cell, there, new, state, invalid)

    def _recluster(
        self,
        cell: Cell,
        there: list[DataFile],
        new: pa.Table,
        examined: bool,
        state: State,
        invalid: Invalid,
    ) -> None:
        """One file of all that is there and new."""
        due = examined or len(invalid)
        if not len(new) and not (
            due and any(self._may_have_gone(f, state, invalid) for f in there)
        ):
            return
        kept = [self._kept(file, state, invalid) for file in there]
        whole = files.joined([*(part for part, _ in kept), new], self.shape.schema)
        if not len(new) and len(kept) == 1 and not kept[0][1]:
            return
        self.work.drops += there
        self.work.deleted += sum(gone for _, gone in kept)
        if len(whole):
            is_sorted = not len(new) and len(kept) == 1
            self._write(cell, whole if is_sorted else files.in_order(whole, self.shape))

    def _without_gone(
        self, cell: Cell, there: list[DataFile], state: State, invalid: Invalid
    ) -> list[DataFile]:
        """The files without what has gone; those without any are left as they are."""
        left = []
        for file in there:
            if not self._may_have_gone(file, state, invalid):
                left.append(file)
                continue
            rows, gone = self._kept(file, state, invalid)
            if gone:
                self.work.drops.append(file)
                self.work.deleted += gone
                if len(rows):
                    left.append(self._write(cell, rows))
            else:
                left.append(file)
        return left

    def _append(
        self, cell: Cell, there: list[DataFile], new: pa.Table, state: State, invalid: Invalid
    ) -> None:
        if not len(new):
            return
        if len(there) >= MOST_FILES:
            smallest = min(there, key=lambda file: file.rows)
            rows, gone = self._kept(smallest, state, invalid)
            self.work.deleted += gone
            written = [file.path for file in self.work.adds]
            if smallest.path in written:  # just now, so it is not yet anybody's
                del self.work.adds[written.index(smallest.path)]
                (self._table.path / smallest.path).unlink()
            else:
                self.work.drops.append(smallest)
            new = files.joined([rows, new], self.shape.schema)
        self._write(cell, files.in_order(new, self.shape))

    def _may_have_gone(self, file: DataFile, state: State, invalid: Invalid) -> bool:
        """Can a result of the file have expired or be invalid? From what is known without a look."""
        if self.shape.count_based or file.expires[0] <= state.time(self.shape):
            return True
        return bool((invalid.since >= self._table.state.last_look(file.cell)).any())

    def _kept(self, file: DataFile, state: State, invalid: Invalid) -> tuple[pa.Table, int]:
        """What is alive in a file, and how many are not."""
        if not self.shape.count_based and file.expires[1] <= state.time(self.shape):
            return self.shape.schema.empty_table(), file.rows
        self.work.bytes_read += file.size
        rows = files.read(self._table.path, file)
        keep = alive(rows, self.shape, state, invalid)
        return (rows, 0) if keep is None else (rows.filter(pa.array(keep)), int((~keep).sum()))

    def _write(self, cell: Cell, rows: pa.Table) -> DataFile:
        file = self._piece(cell, rows)
        self.work.adds.append(file)
        self.work.bytes_written += file.size
        return file

    def _piece(self, cell: Cell, rows: pa.Table) -> DataFile:
        file = files.write(self._table.path, cell, rows, self.shape)
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
            rows, gone = self._kept(file, before, self._table.invalid)
            self.work.deleted += gone
            places = place(rows, after, plan, self.shape)
            for cell in cells(layout):
                part = rows.take(pa.array(np.flatnonzero(places == number(cell, layout))))
                if len(part):
                    pieces.setdefault(cell, []).append(self._piece(cell, part))
        for cell, parts in sorted(pieces.items()):
            if len(parts) == 1:
                self.work.adds += parts
                self.work.bytes_written += parts[0].size
                continue
            whole = files.joined(
                [files.read(self._table.path, f) for f in parts], self.shape.schema
            )
            self._write(cell, files.in_order(whole, self.shape))
            for part_file in parts:
                (self._table.path / part_file.path).unlink()
        self.work.touched = set(pieces)
        return after.looked(set(cells(layout)), before.step)

    def discard(self) -> None:
        """Delete the files that were written: there is no commit of them."""
        for file in self._written:
            (self._table.path / file.path).unlink(missing_ok=True)


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
