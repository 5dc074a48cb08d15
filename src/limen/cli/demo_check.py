"""The judgement at the end of the demo: its table of matches, read back.

Of the whole table: every trade is there once or is bad, matched under the version that its batch is bound
to, and no query matches before it came or after it went. Of a sample of its rows: they are what brute
force over the raw bounds finds. Whatever differs ends the demo with an error.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from rich.console import Console

    from limen.cli.demo import Run

CHECKED_BATCHES, CHECKED_TRADES = 8, 25


class Found(NamedTuple):
    """What the table of matches holds, batch by batch."""

    trades: npt.NDArray[np.int64]  # all of them, in order
    rows: npt.NDArray[np.int64]
    matches: npt.NDArray[np.int64]
    of_added: npt.NDArray[np.int64]  # matches of the queries that were added
    of_removed: npt.NDArray[np.int64]  # matches of the queries that were removed
    first_of_added: dict[str, Any] | None  # the first row with one of them
    sample: dict[int, dict[str, Any]]  # rows by trade


def check(console: Console, run: Run, matches: Path) -> Found:
    """The whole table by counts and versions, a sample of its rows by brute force."""
    from limen.cli.demo import doing

    with doing(console, f"reading {matches} back"):
        bad = _bad(run)
        sample = _sample(run, bad)
        found = _read(run, matches, [trade for trades in sample.values() for trade in trades])
        _judge(run, bad, found)
    console.print(
        f"read back: of {run.events:,} events each is in the table once or was quarantined as bad"
    )
    where = f"{sum(map(len, sample.values()))} events of {len(sample)} batches"
    with doing(console, f"checking {where} against brute force"):
        for number, trades in sample.items():
            for trade in trades:
                _compare(run, number, trade, found.sample[trade])
    console.print(f"checked {where} against brute force, each by its batch's version: all equal")
    return found


def _bad(run: Run) -> npt.NDArray[np.bool_]:
    """For every trade, whether it is bad."""
    import numpy as np

    from limen.testing.market import bad_trades

    return np.concatenate([bad_trades(part) for part in run.market.trades(0, run.events)])


def _sample(run: Run, bad: npt.NDArray[np.bool_]) -> dict[int, list[int]]:
    """Trades to check, by batch: batches about the changes, and others at random."""
    import numpy as np

    assert run.added is not None and run.removed is not None
    about = {change.batch - before for change in (run.added, run.removed) for before in (0, 1)}
    others = [number for number in run.rng.permutation(run.batches).tolist() if number not in about]
    chosen = sorted([*about, *others][:CHECKED_BATCHES])
    found = {}
    for number in chosen:
        batch = run.done[number]
        good = batch.first + np.flatnonzero(~bad[batch.first : batch.last])
        n = min(CHECKED_TRADES, len(good))
        found[number] = np.sort(run.rng.choice(good, n, replace=False)).tolist()
    return found


def _read(run: Run, matches: Path, wanted: list[int]) -> Found:
    """One pass over the table."""
    import numpy as np
    import pyarrow as pa
    from deltalake import DeltaTable

    assert run.added is not None and run.removed is not None
    firsts = np.array([batch.first for batch in sorted(run.done.values())])
    bound = np.array([run.bound[number] for number in sorted(run.done)])
    added, removed = run.added.ids[0], np.zeros(run.added.ids[-1] + 1, np.bool_)
    removed[run.removed.ids] = True
    trades, sample, first = [], {}, None
    counts = np.zeros((4, len(firsts)), np.int64)
    for part in DeltaTable(matches).to_pyarrow_dataset().to_batches():
        trade, lists = part.column("trade").to_numpy(), part.column("query_ids")
        batch = np.searchsorted(firsts, trade, "right") - 1
        if not np.array_equal(part.column("version").to_numpy(), bound[batch]):
            raise ValueError("a trade was matched under another version than its batch is bound to")
        lengths, ids = lists.value_lengths().to_numpy(), lists.flatten().to_numpy()
        row = np.repeat(np.arange(len(trade)), lengths)
        of_added = row[ids >= added]
        for kind, rows in enumerate((np.arange(len(trade)), row, of_added, row[removed[ids]])):
            counts[kind] += np.bincount(batch[rows], minlength=len(firsts))
        trades.append(trade)
        if len(of_added):
            one = part.slice(of_added[trade[of_added].argmin()], 1).to_pylist()[0]
            first = one if first is None or one["trade"] < first["trade"] else first
        for row_ in part.filter(pa.array(np.isin(trade, wanted))).to_pylist():
            sample[row_["trade"]] = row_
    rows, all_, came, went = counts
    return Found(np.sort(np.concatenate(trades)), rows, all_, came, went, first, sample)


def _judge(run: Run, bad: npt.NDArray[np.bool_], found: Found) -> None:
    import numpy as np

    assert run.added is not None and run.removed is not None
    for number, batch in sorted(run.done.items()):
        amiss = int(bad[batch.first : batch.last].sum())
        if batch.quarantined != amiss or found.rows[number] + amiss != batch.events:
            raise ValueError(
                f"batch {number}: of {batch.events:,} events {amiss:,} are bad, but "
                f"{batch.quarantined:,} were quarantined and {found.rows[number]:,} are in the table"
            )
        if found.matches[number] != batch.matches:
            raise ValueError(
                f"batch {number}: Spark counted {batch.matches:,} matches, but "
                f"{found.matches[number]:,} are in the table"
            )
    if not np.array_equal(found.trades, np.flatnonzero(~bad)):
        raise ValueError("the table holds some trade twice, and another not at all")
    if found.of_added[: run.added.batch].any():
        raise ValueError("a query matched before the version in which it was added")
    if found.of_removed[run.removed.batch :].any():
        raise ValueError("a query matched after the version in which it was removed")


def _compare(run: Run, batch: int, trade: int, row: dict[str, Any]) -> None:
    event = next(run.market.trades(trade, trade + 1)).to_pylist()[0]
    if any(row[name] != value for name, value in event.items()):
        raise ValueError(f"batch {batch}: trade {event} is {row} in the table")
    what = {name: event[name] for name in ("symbol", "price", "volume")}
    expected = run.brute_force.matching(run.bound[batch], **what)
    ids = row["query_ids"]
    if len(ids) != len(expected) or set(ids) != expected:
        missed, extra = sorted(expected - set(ids)), sorted(set(ids) - expected)
        raise ValueError(
            f"batch {batch}, trade {trade}, {what}: the table has {len(ids)} queries, brute force "
            f"{len(expected)}; missed: {missed[:5]}, in excess: {extra[:5]}"
        )
