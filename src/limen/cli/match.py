"""`limen match`: a file of events against a file of standing queries.

Events are read, matched and written in batches, so memory holds the queries and one batch. Results
go to a file, or the first of them to the terminal; events that cannot be matched go to quarantine
with the reason and are always counted.
"""

from __future__ import annotations

import re
import sys
import time
from collections import Counter
from contextlib import ExitStack
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa
    from rich.progress import Progress

    from limen.cli.event_files import Batch, EventFile
    from limen.cli.result_files import ResultFile


class Emit(StrEnum):
    ROWS = "rows"
    IDS = "ids"
    COUNT = "count"


def match(
    events: Annotated[Path, typer.Argument(help="Events: csv, parquet or JSON lines.")],
    queries: Annotated[
        Path,
        typer.Argument(
            help="Queries: csv or parquet with the columns id and where (SQL), or id and for an "
            "attribute such as price any of price_lo, price_hi, price_bounds, price; or JSON lines "
            'of {"id": ..., "where": ...}.'
        ),
    ],
    emit: Annotated[
        Emit,
        typer.Option(
            help="rows: one for each event and query that match; ids: each event with the list of "
            "its queries; count: each event with their number."
        ),
    ] = Emit.ROWS,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Write to this file (.parquet, .csv, .jsonl)."),
    ] = None,
    quarantine: Annotated[
        Path | None,
        typer.Option(
            help="Write the events that cannot be matched, with the reason, to this file."
        ),
    ] = None,
    columns: Annotated[
        str | None, typer.Option(help="Event columns to keep, with commas between; all by default.")
    ] = None,
    bounds: Annotated[
        str, typer.Option(help="The kind of a frame's ranges that do not say: [] [) (] ().")
    ] = "[]",
    types: Annotated[
        str | None,
        typer.Option(
            help="Types of text columns where the guess would be wrong: price=float64,day=date."
        ),
    ] = None,
    limit: Annotated[int, typer.Option(min=0, help="Rows to print without --output.")] = 20,
    force: Annotated[bool, typer.Option("--force", help="Overwrite existing files.")] = False,
) -> None:
    """For each event, the standing queries whose ranges contain it."""
    from limen.cli.event_files import open_events
    from limen.cli.query_files import QueryFile
    from limen.cli.result_files import ResultFile, check_target, refuse_separator

    inputs = [events, queries]
    for target, option in ((output, "--output"), (quarantine, "--quarantine")):
        if target is not None:
            check_target(target, option, inputs, force)
            inputs.append(target)

    started = time.monotonic()
    source = open_events(events)
    kept = _kept(columns, source, events, emit)
    query_file = QueryFile(queries)
    schema = _schema(source, query_file, types)
    query_set = query_file.query_set(schema, bounds)
    if emit is Emit.IDS and output is not None and output.suffix.lower() == ".csv":
        refuse_separator(query_set.ids)

    from limen.engine import Matcher

    matcher = Matcher(query_set)
    run = _Run(source, schema, kept, list(matcher.attributes))
    with ExitStack() as files:
        run.output = files.enter_context(ResultFile(output)) if output else None
        run.quarantine = files.enter_context(ResultFile(quarantine)) if quarantine else None
        run.limit = 0 if output else limit
        run.go(matcher, emit)
    if output is None:
        run.show_first()
    took = time.monotonic() - started
    print(
        f"{run.events:,} events, {run.quarantined:,} quarantined, {run.matches:,} matches "
        f"against {len(matcher):,} queries in {took:.1f} s",
        file=sys.stderr,
    )
    if run.quarantined and quarantine is None:
        print(run.why_quarantined(), file=sys.stderr)


def given_types(text: str | None) -> dict[str, pa.DataType]:
    """`price=float64,day=date` to types."""
    from limen.model import LimenError, attribute_type

    found = {}
    for part in _split(text or ""):
        name, equals, kind = part.partition("=")
        if not equals or not name.strip() or not kind.strip():
            raise LimenError(f"--types: {part!r} is not of the form attribute=type")
        found[name.strip()] = attribute_type(kind)
    return found


def _split(text: str) -> list[str]:
    """At commas outside of brackets: decimal(10,2) has one inside."""
    parts, depth = [""], 0
    for character in text:
        depth += (character in "([") - (character in ")]")
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return [part for part in parts if part.strip()]


def _kept(columns: str | None, source: EventFile, path: Path, emit: Emit) -> list[str]:
    from limen.engine.emit import COLUMN
    from limen.model import LimenError

    kept = source.names
    if columns is not None:
        kept = [name.strip() for name in columns.split(",") if name.strip()]
    if COLUMN[emit.value] in kept:
        raise LimenError(
            f"{path} has a column {COLUMN[emit.value]!r}, the name of the result's; name the columns "
            "to keep with --columns, without it"
        )
    for name in kept:
        if name not in source.names:
            there = ", ".join(source.names) or "none"
            raise LimenError(f"--columns: {path} has no column {name!r} (columns: {there})")
    return list(dict.fromkeys(kept))


def _schema(source: EventFile, queries: Any, types: str | None) -> pa.Schema:
    import pyarrow as pa

    from limen.cli.event_files import ParquetEvents
    from limen.model import LimenError

    given = given_types(types)
    for name in given if source.names else ():
        if name not in source.names:
            there = ", ".join(source.names) or "none"
            raise LimenError(f"--types: the events have no column {name!r} (columns: {there})")
    if not source.names:  # no event to say what there is
        return pa.schema(list(queries.own_types(given).items()))
    if isinstance(source, ParquetEvents):
        if given:
            raise LimenError("--types is for text; a parquet file says the types itself")
        return source.types({}, {})
    return source.types(queries.uses(source.names), given)


class _Run:
    """One pass over the events, and what it has seen."""

    output: ResultFile | None
    quarantine: ResultFile | None
    limit: int

    def __init__(
        self, source: EventFile, schema: pa.Schema, kept: list[str], needed: list[str]
    ) -> None:
        import pyarrow as pa

        self._source, self._kept, self._needed = source, kept, needed
        read = dict.fromkeys([*needed, *kept])
        self._types = pa.schema([field for field in schema if field.name in read])
        self._schema = pa.schema([pa.field(source.place, pa.int64()), *self._types])
        self.events = self.matches = self.quarantined = 0
        self._reasons: Counter[str] = Counter()
        self._examples: dict[str, str] = {}
        self._first: list[pa.Table] = []
        self._batch: Batch | None = None

    def go(self, matcher: Any, emit: Emit) -> None:
        from limen.engine.events import quarantine_of

        if self.quarantine is not None:
            raw = self._source.raw_schema(self._types).empty_table()
            self.quarantine.write(quarantine_of(raw, []))
        with _progress() as progress:
            bar = progress.add_task("", total=max(self._source.total, 1), told="")
            started = time.monotonic()
            tables = self._tables()
            for matched in matcher.match_batches(
                tables, emit.value, self._kept, schema=self._schema
            ):
                self._take(matched.matches, emit)
                self._set_apart_matched(matched.quarantine)
                rate = self.events / max(time.monotonic() - started, 1e-9)
                told = f"{self.events:,} events  {rate:,.0f}/s  {self.matches:,} matches"
                progress.update(bar, completed=self._source.done(), told=told)

    def _tables(self) -> Iterator[pa.Table]:
        import pyarrow as pa

        for batch in self._source.batches(self._types, self._needed):
            self._batch = batch
            self.events += len(batch.raw)
            if batch.bad:
                rows = pa.array([row for row, _ in batch.bad])
                self._set_apart(batch.raw.take(rows), [reason for _, reason in batch.bad])
            yield batch.table

    def _take(self, matches: pa.Table, emit: Emit) -> None:
        import pyarrow.compute as pc

        if emit is Emit.ROWS:
            self.matches += len(matches)
        else:
            last = matches.column(matches.num_columns - 1)
            counts = pc.list_value_length(last) if emit is Emit.IDS else last
            self.matches += pc.sum(counts).as_py() or 0
        if self.output is not None:
            self.output.write(matches)
        elif not self._first or self._shown() < self.limit:
            self._first.append(matches.slice(0, self.limit - self._shown()))

    def _shown(self) -> int:
        return sum(len(table) for table in self._first)

    def _set_apart_matched(self, bad: pa.Table) -> None:
        """Quarantined by the matcher: written as they stand in the file, found by their place."""
        if not len(bad):
            return
        import numpy as np
        import pyarrow as pa

        assert self._batch is not None
        raw = self._batch.raw
        places = raw.column(self._source.place).to_numpy()
        order = np.argsort(places, kind="stable")
        wanted = bad.column(self._source.place).to_numpy()
        rows = order[np.searchsorted(places, wanted, sorter=order)]
        reasons = bad.column(bad.num_columns - 1).to_pylist()
        self._set_apart(raw.take(pa.array(rows)), reasons)

    def _set_apart(self, rows: pa.Table, reasons: list[str]) -> None:
        from limen.engine.events import quarantine_of

        self.quarantined += len(rows)
        for reason in reasons:
            kind, value = re.fullmatch(r"(?s)([^'\"]*)(.*)", reason).groups()  # type: ignore[union-attr]
            self._reasons[kind] += 1
            self._examples.setdefault(kind, value)
        if self.quarantine is not None:
            self.quarantine.write(quarantine_of(rows, reasons))

    def why_quarantined(self) -> str:
        parts = []
        for kind, count in self._reasons.most_common(3):
            value = self._examples[kind]
            such = "such as " if value and count > 1 else ""
            parts.append(f"{kind}{such}{value} ({count:,})")
        more = len(self._reasons) - len(parts)
        told = "; ".join(parts)
        if more > 0:
            told += f"; and {more} other {'reason' if more == 1 else 'reasons'}"
        return (
            f"{self.quarantined:,} quarantined: {told}\n"
            "--quarantine FILE keeps them, with their reasons"
        )

    def show_first(self) -> None:
        import pyarrow as pa
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text

        if self.limit == 0:
            return
        matches = pa.concat_tables(self._first)
        table = Table()
        for field in matches.schema:
            numeric = pa.types.is_integer(field.type) or pa.types.is_floating(field.type)
            table.add_column(Text(field.name), justify="right" if numeric else "left")
        for row in matches.to_pylist():
            table.add_row(*(Text(_cell(value)) for value in row.values()))
        Console().print(table)
        shown, there = len(matches), self.matches
        if table.columns[-1].header != Text("query_id"):
            there = self.events - self.quarantined
        if shown < there:
            print(f"the first {shown:,} of {there:,} rows; --output FILE keeps them all")


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, list):
        more = len(value) - 6
        return " ".join(map(str, value[:6])) + (f" and {more:,} more" if more > 0 else "")
    text = str(value)
    return text if text.isprintable() else repr(text)


def _progress() -> Progress:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    return Progress(
        BarColumn(),
        TextColumn("{task.percentage:>3.0f}%"),
        TextColumn("{task.fields[told]}", markup=False),
        TimeRemainingColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )
