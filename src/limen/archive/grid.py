"""What can be told of a snapshot beyond its results: the grid of its sub-indices with what the next
update does to each, and what waits."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from limen.archive import layouts
from limen.archive.errors import ArchiveError
from limen.archive.files import DataFile
from limen.archive.layouts import Cell
from limen.archive.reader import Snapshot
from limen.archive.table import BESIDE
from limen.archive.writer import SLACK

INSERT, LOOK, DROP = "insert", "look", "drop"


class Tile(NamedTuple):
    """A sub-index, and what the next update does with it."""

    row: int
    column: int
    rows: int  # of results that lie there
    alive: int  # of these, those that count
    files: int
    bytes: int
    next: list[str]  # INSERT, LOOK, DROP


def tiles_of(snapshot: Snapshot) -> list[Tile]:
    """All sub-indices, row by row."""
    inserted, examined, dropped = _next_update(snapshot)
    alive: dict[Cell, int] = {}
    for file in snapshot.files:
        alive[file.cell] = alive.get(file.cell, 0) + _alive(snapshot, file)
    found = []
    for sub in snapshot.sub_indices():
        cell = (sub.row, sub.column)
        marks = {INSERT: sub.row in inserted, LOOK: cell in examined, DROP: sub.row in dropped}
        planned = [what for what, due in marks.items() if due]
        found.append(Tile(*cell, sub.rows, alive.get(cell, 0), sub.files, sub.bytes, planned))
    return found


def _next_update(snapshot: Snapshot) -> tuple[set[int], set[Cell], set[int]]:
    """Rows that it inserts into, sub-indices that it looks through, rows that it throws away."""
    state, shape = snapshot.state, snapshot.shape
    if state.origin is None:  # the initial stage fills all
        return set(), set(), set()
    slack, step = SLACK if shape.count_based else 0, state.step + 1
    plan = layouts.update(state.layout, shape.steps, state.stretches, step, step, slack)
    return set(plan.rows.values()), plan.examined, plan.dropped


def _alive(snapshot: Snapshot, file: DataFile) -> int:
    """How many results of a file count; it is only read if its times do not tell."""
    shape, state = snapshot.shape, snapshot.state
    if not (shape.count_based or len(snapshot.invalid)):
        if file.expires[0] > state.time(shape):
            return file.rows
        if file.expires[1] <= state.time(shape):
            return 0
    return len(replace(snapshot, files=[file]).scan(columns=[shape.key]))


def waiting(snapshot: Snapshot) -> int:
    """Results of streams whose interval is not yet over."""
    found = 0
    for name in snapshot.state.pending:
        path = snapshot.path / BESIDE / name
        try:
            found += pq.read_metadata(path).num_rows
        except (OSError, pa.ArrowException) as error:
            raise ArchiveError(f"{path}: the archive is damaged: {error}") from None
    return found
