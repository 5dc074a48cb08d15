"""`limen archive`: an archive of the results of window queries, looked at, read and moved.

`info` draws the grid of sub-indices, rows by generation and columns by expiration, and marks what the
next update will do with each. `probe` and `scan` are the archive's own; what they find goes to the
terminal, as JSON lines, or to a file. Answers go to stdout, remarks to stderr.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
import sys
from datetime import datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from limen.cli.words import in_bytes, many

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import pyarrow as pa

    from limen.archive import Archive, Receipt, Snapshot
    from limen.archive.grid import Tile
    from limen.archive.shape import Shape
    from limen.archive.times import Duration, Moment

SHOWN = 20  # rows of a table, if not said

archives = typer.Typer(
    no_args_is_help=True, help="Look at, read and move an archive of window results."
)


class Order(StrEnum):
    KEY = "key"
    GENERATED = "generated"
    EXPIRES = "expires"


Folder = Annotated[Path, typer.Argument(metavar="FOLDER", help="The folder of the archive.")]
Version = Annotated[
    int | None, typer.Option(min=0, help="As of this version, if its files are still kept.")
]
Windows = Annotated[
    list[str] | None,
    typer.Option(
        "--window",
        metavar="[NAME=]SIZE",
        help="For a query with a shorter window: a number, or a time such as 1h30m if times are "
        "timestamps. NAME=SIZE, as often as needed, shortens one of several windows.",
    ),
]
Columns = Annotated[
    str | None, typer.Option(help="The columns to show, with commas between; all by default.")
]
Limit = Annotated[
    int | None,
    typer.Option(min=0, help=f"How many results; {SHOWN} in a table, else all."),
]
Output = Annotated[
    Path | None,
    typer.Option("--output", "-o", help="Write to this file (.parquet, .csv, .jsonl)."),
]
Force = Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON lines instead of a table.")]


@archives.callback()
def _archives() -> None:
    """Look at, read and move an archive of window results."""


@archives.command()
def info(
    folder: Folder,
    version: Version = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print it as JSON.")] = False,
) -> None:
    """What it is and holds, and the grid of its sub-indices."""
    from rich.console import Console

    from limen.archive.grid import tiles_of
    from limen.cli.archive_grid import drawn, legend

    snapshot = snapshot_of(folder, version)
    tiles = tiles_of(snapshot)
    if as_json:
        print(json.dumps(_facts(snapshot, tiles), indent=2, ensure_ascii=False))
        return
    for name, told in list(_told(snapshot, tiles)):
        print(f"{name:<12} {_printable(told)}")
    print()
    console = Console()
    console.print(drawn(tiles, snapshot.layout, console))
    if any(tile.next for tile in tiles):
        print(legend(tiles))


@archives.command()
def probe(
    folder: Folder,
    keys: Annotated[
        list[str] | None,
        typer.Argument(metavar="[KEY]...", help="The keys; after -- if one begins with a minus."),
    ] = None,
    between: Annotated[
        tuple[str, str] | None,
        typer.Option(metavar="LOW HIGH", help="All keys from one to another, both included."),
    ] = None,
    window: Windows = None,
    columns: Columns = None,
    limit: Limit = None,
    version: Version = None,
    output: Output = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """The results of some keys, in order of key and expiration."""
    from limen.archive import ArchiveError

    if bool(keys) == (between is not None):
        raise ArchiveError("name the keys, or two with --between")
    _check_output(output, folder, force)
    snapshot = _shortened(snapshot_of(folder, version), window)
    given = _keys(snapshot.shape, keys or between or ())
    wanted = _names(columns)
    if between is not None:
        found = snapshot.probe(between=(given[0], given[1]), columns=wanted)
        ranges = [(given[0], given[1])]
    else:
        found = snapshot.probe(given, columns=wanted)
        ranges = [(key, key) for key in given]
    shown = found if limit is None else found.slice(0, limit)
    _deliver(iter([shown]), found.schema, len(found), limit, output, as_json)
    print(f"{many(len(found), 'result')}; {_read(snapshot, ranges)}", file=sys.stderr)


@archives.command()
def scan(
    folder: Folder,
    order: Annotated[Order, typer.Option(help="What they are sorted by.")] = Order.KEY,
    window: Windows = None,
    columns: Columns = None,
    limit: Limit = None,
    version: Version = None,
    output: Output = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """All results; in order of the key they are read and written a part at a time."""
    _check_output(output, folder, force)
    snapshot = _shortened(snapshot_of(folder, version), window)
    wanted = _names(columns)
    nothing = dataclasses.replace(snapshot, files=[]).scan(columns=wanted)
    parts: Iterator[pa.Table]
    if order is Order.KEY:
        parts = snapshot.scan_batches(columns=wanted)
    else:
        parts = iter([snapshot.scan(order.value, columns=wanted)])
    most = SHOWN if limit is None and output is None and not as_json else limit
    # one more tells that there are more
    first = parts if most is None else _first(parts, most + 1)
    given = _deliver(first, nothing.schema, None, most, output, as_json)
    if most is not None and given > most:
        remark = f"the first {many(most, 'result')}; --limit N shows more, --output FILE keeps all"
    else:
        remark = f"{many(given, 'result')}; {_read(snapshot, None)}"
    print(remark, file=sys.stderr)


@archives.command()
def migrate(
    folder: Folder,
    layout: Annotated[
        str,
        typer.Argument(
            metavar="LAYOUT", help="Such as NoRebuild4x4 or R-ins9; auto takes the one that fits."
        ),
    ],
    window_bytes: Annotated[
        float | None,
        typer.Option(min=0, help="With auto: the size of a window; what it is now, if not said."),
    ] = None,
    queries: Annotated[
        float | None,
        typer.Option(
            min=0, help="With auto: probes and scans between two updates; 1, if not said."
        ),
    ] = None,
    space: Annotated[
        bool, typer.Option("--space", help="With auto: half as much space again may be used.")
    ] = False,
    probes_first: Annotated[
        bool, typer.Option("--probes-first", help="With auto: quick probes are crucial.")
    ] = False,
) -> None:
    """Change to another layout: built beside, switched to in one commit."""
    from limen.archive import ArchiveError, Layout

    archive = opened(folder)
    before = archive.snapshot()
    if layout == "auto":
        chosen = archive.fitting(
            window_bytes=window_bytes,
            queries=1 if queries is None else queries,
            space=space,
            probes_first=probes_first,
        )
        wanted = chosen.layout
        print(f"{wanted}: {chosen.why}")
    elif window_bytes is not None or queries is not None or space or probes_first:
        raise ArchiveError(
            f"--window-bytes, --queries, --space and --probes-first are for auto, not for {layout!r}"
        )
    else:
        wanted = Layout.of(layout)
    if wanted == before.layout:
        print(f"nothing to do: {folder} has the layout {wanted}")
        return
    receipt = archive.migrate(wanted)
    _print_move(before, archive.snapshot(), receipt)


@archives.command()
def vacuum(
    folder: Folder,
    older_than: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="Keep what versions of this last time use: 1h30m, 45s, 2d; the archive's time of "
            "grace, if not said.",
        ),
    ] = None,
) -> None:
    """Delete files that only older versions use; those versions can then no longer be read.

    The log is kept for a day, and then back to a checkpoint.
    """
    from limen.cli.queries import _duration

    kept = _duration(older_than, "--older-than")
    archive = opened(folder)
    before = {p: p.stat().st_size for p in archive.path.rglob("*") if p.is_file()}
    deleted = archive.vacuum(kept)
    freed = sum(size for path, size in before.items() if not path.exists())
    print(f"{many(deleted, 'file')} deleted, {in_bytes(freed)}")


# -- what is told ------------------------------------------------------------------------------------


def _told(snapshot: Snapshot, tiles: Sequence[Tile]) -> Iterator[tuple[str, str]]:
    from limen.archive.grid import waiting
    from limen.model import type_name

    shape, layout = snapshot.shape, snapshot.layout
    yield "archive", str(snapshot.path)
    yield "columns", ", ".join(f"{field.name}: {type_name(field.type)}" for field in shape.schema)
    guessed = " (estimated)" if shape.count_based else ""
    yield (
        "roles",
        f"key: {shape.key}, generated: {shape.generated}, expires: {shape.expires}{guessed}",
    )
    length, every = shape.length(shape.window), shape.length(shape.every)
    yield "window", f"{length}, updated every {every}: {many(shape.steps, 'step')}"
    for who, side in shape.stamps.items():
        yield f"  {who}", f"{shape.length(side.size)}, times in {side.column}"
    for who, side in shape.counts.items():
        seen = snapshot.state.counts.get(who, 0)
        yield f"  {who}", f"{many(side.size, 'row')}, places in {side.column}, {seen:,} seen"
    how = "clustered anew" if layout.recluster else "not clustered anew"
    yield "layout", f"{layout}: {layout.rows} x {layout.columns}"
    yield (
        "",
        f"generation {layout.choices.generation}, expiration {layout.choices.expiration}, {how}",
    )
    yield "time", "before the first update" if snapshot.time is None else str(snapshot.time)
    yield "version", str(snapshot.version)
    alive, rows = sum(tile.alive for tile in tiles), sum(tile.rows for tile in tiles)
    gone = f", {rows - alive:,} more that have gone lie there" if rows > alive else ""
    yield "results", f"{alive:,} alive{gone}"
    groups = sum(len(file.groups) for file in snapshot.files)
    size = in_bytes(sum(tile.bytes for tile in tiles))
    yield (
        "files",
        f"{many(len(snapshot.files), 'file')}, {many(groups, 'row group')}, {size}",
    )
    if len(snapshot.invalid):
        yield "invalidated", many(len(snapshot.invalid), "key")
    if snapshot.state.pending:
        yield "waiting", f"{many(waiting(snapshot), 'result')} of streams"
    for stream, batch in sorted(snapshot.state.done.items()):
        yield "stream", f"{stream}: up to batch {batch}"


def _facts(snapshot: Snapshot, tiles: Sequence[Tile]) -> dict[str, Any]:
    """The same for programs."""
    from limen.archive.grid import waiting
    from limen.model import type_name

    shape, layout = snapshot.shape, snapshot.layout
    choices = layout.choices
    return {
        "path": str(snapshot.path),
        "columns": {field.name: type_name(field.type) for field in shape.schema},
        "key": shape.key,
        "generated": shape.generated,
        "expires": shape.expires,
        "times": "timestamps" if shape.in_timestamps else "integers",
        "window": _plain(shape.length(shape.window)),
        "every": _plain(shape.length(shape.every)),
        "steps": shape.steps,
        "stamps": {
            who: {"column": side.column, "size": _plain(shape.length(side.size))}
            for who, side in shape.stamps.items()
        },
        "counts": {
            who: {**side._asdict(), "seen": snapshot.state.counts.get(who, 0)}
            for who, side in shape.counts.items()
        },
        "layout": {
            "name": str(layout),
            "rows": layout.rows,
            "columns": layout.columns,
            "generation": choices.generation,
            "expiration": choices.expiration,
            "recluster": choices.recluster,
            "lazy": layout.is_lazy,
        },
        "time": _plain(snapshot.time),
        "version": snapshot.version,
        "alive": sum(tile.alive for tile in tiles),
        "rows": sum(tile.rows for tile in tiles),
        "files": len(snapshot.files),
        "row_groups": sum(len(file.groups) for file in snapshot.files),
        "bytes": sum(tile.bytes for tile in tiles),
        "invalidated": len(snapshot.invalid),
        "waiting": waiting(snapshot),
        "streams": dict(sorted(snapshot.state.done.items())),
        "sub_indices": [tile._asdict() for tile in tiles],
    }


def _plain(value: Moment | Duration | None) -> int | float | str | None:
    """A time as ISO says it, a length in seconds; integers are what they are."""
    if isinstance(value, datetime):
        return value.isoformat()
    return value.total_seconds() if isinstance(value, timedelta) else value


def _print_move(before: Snapshot, after: Snapshot, receipt: Receipt) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from limen.cli.archive_grid import TALLEST, small

    console = Console()
    columns = before.layout.columns + after.layout.columns
    if max(before.layout.rows, after.layout.rows) <= TALLEST and 10 * columns < console.width - 4:
        side = Table.grid(padding=(0, 2))
        side.add_row(str(before.layout), "", str(after.layout))
        side.add_row(small(before), Text("->"), small(after))
        console.print(side)
    results = sum(file.rows for file in after.files)
    gone = f", {receipt.deleted:,} that had gone left out" if receipt.deleted else ""
    print(
        f"version {receipt.version}: {before.layout} to {after.layout}, {many(results, 'result')} in "
        f"{many(receipt.files_written, 'file')}{gone}; {in_bytes(receipt.bytes_read)} read, "
        f"{in_bytes(receipt.bytes_written)} written"
    )


# -- what comes in -----------------------------------------------------------------------------------


def opened(folder: Path) -> Archive:
    """The archive of a folder that must be there."""
    from limen.archive import Archive, ArchiveError
    from limen.delta import log

    path = folder.expanduser()
    if path.exists() and not path.is_dir():
        raise ArchiveError(f"{folder} is not a folder")
    if not path.is_dir():
        raise ArchiveError(f"there is no folder {folder}")
    if not log.begun(path):
        raise ArchiveError(f"{folder} is not an archive: it has no Delta log")
    return Archive.open(path)


def snapshot_of(folder: Path, version: int | None = None) -> Snapshot:
    from limen.archive import ArchiveError

    archive = opened(folder)
    if version is not None and version > archive.version:
        raise ArchiveError(
            f"{folder}: there is no version {version}; the newest is {archive.version}"
        )
    return archive.snapshot(version)


def _keys(shape: Shape, texts: Sequence[str]) -> list[Any]:
    """Keys as the archive has them. A timestamp without a zone is in UTC."""
    import pyarrow as pa
    import pyarrow.compute as pc

    from limen.archive import ArchiveError
    from limen.cli.cells import parsed
    from limen.model import type_name

    kind, given = shape.key_type, pa.array(texts, pa.string())
    # a number is not rounded on the way to a float32
    found, bad = parsed(given, pa.float64() if pa.types.is_float32(kind) else kind)
    if pa.types.is_timestamp(kind) and bad.any():
        unzoned, bad_too = parsed(given, pa.timestamp("us"))
        found, bad = pc.coalesce(found, unzoned.cast(kind)), bad & bad_too
    if bad.any():
        wrong = texts[int(bad.argmax())]
        raise ArchiveError(f"{wrong!r} is not a key: {shape.key!r} is {type_name(kind)} here")
    return list(found.to_pylist())


def _names(columns: str | None) -> list[str] | None:
    from limen.archive import ArchiveError

    if columns is None:
        return None
    names = list(dict.fromkeys(name.strip() for name in columns.split(",") if name.strip()))
    if not names:
        raise ArchiveError(f"--columns {columns!r}: name the columns, with commas between")
    return names


def _shortened(snapshot: Snapshot, windows: list[str] | None) -> Snapshot:
    """For the sizes of --window: one for all windows, or some by name."""
    from limen.archive import ArchiveError

    if not windows:
        return snapshot
    timed, sizes = snapshot.shape.in_timestamps, {}
    for text in windows:
        who, equals, size = text.rpartition("=")
        if bool(equals) != bool(who) or who in sizes:
            raise ArchiveError(f"--window {text!r}: write SIZE, or NAME=SIZE once for each window")
        sizes[who] = _size(size, text, timed)
    if "" not in sizes:
        return snapshot.window(sizes)
    if len(sizes) > 1:
        raise ArchiveError("--window: give one size for all windows, or NAME=SIZE for each")
    return snapshot.window(sizes[""])


def _size(size: str, text: str, timed: bool) -> Duration:
    """The size in the text of a --window."""
    from limen.archive import ArchiveError
    from limen.cli.queries import _duration

    if timed:
        found = _duration(size, "--window")
        assert found is not None
        return found
    if not size.isascii() or not size.isdigit():
        raise ArchiveError(f"--window {text!r}: times are integers here, so a window is a number")
    return int(size)


def _check_output(output: Path | None, folder: Path, force: bool) -> None:
    from limen.archive import ArchiveError
    from limen.cli.result_files import check_target

    if output is None:
        return
    check_target(output, "--output", [], force)
    if folder.resolve() in output.resolve().parents:
        raise ArchiveError(f"--output {output} is inside of the archive; name another place")


# -- what goes out -----------------------------------------------------------------------------------


def _deliver(
    parts: Iterator[pa.Table],
    schema: pa.Schema,
    total: int | None,
    most: int | None,
    output: Path | None,
    as_json: bool,
) -> int:
    """Results to a file, as JSON lines or as a table; returns how many there were.

    Those above `most` are counted only.
    """
    from limen.cli.result_files import json_lines

    counted = 0

    def counting() -> Iterator[pa.Table]:
        nonlocal counted
        for part in parts:
            left = len(part) if most is None else max(0, most - counted)
            counted += len(part)
            yield part.slice(0, left)

    if output is not None:
        _write(counting(), schema, output)
    elif as_json:
        for part in counting():
            for lines in json_lines(part):
                print(lines, end="")
    else:
        tables, shown = list(counting()), SHOWN if most is None else most
        _print_table(list(_first(tables, shown)), schema)
        shown = min(counted, shown)
        if total is not None and shown < total:
            print(
                f"the first {shown:,} of {total:,}; --limit N shows more, --output FILE keeps all"
            )
    return counted


def _first(parts: Iterable[pa.Table], most: int) -> Iterator[pa.Table]:
    """The first rows of several tables; no more tables are asked for than these need."""
    for part in parts:
        yield part.slice(0, most)
        most -= min(most, len(part))
        if not most:
            return


def _write(parts: Iterable[pa.Table], schema: pa.Schema, output: Path) -> None:
    """All parts have the schema of the first, with offsets that are long enough for any of them."""
    from limen.cli.result_files import ResultFile

    as_text = output.suffix.lower() == ".csv"
    with ResultFile(output) as file:
        for part in itertools.chain([schema.empty_table()], parts):
            file.write(_roomy(part, as_text))


def _roomy(table: pa.Table, as_text: bool) -> pa.Table:
    """With 64-bit offsets; csv has no bytes, so they are written as hexadecimal digits."""
    import pyarrow as pa
    import pyarrow.types as pt

    for i, field in enumerate(table.schema):
        column = table.column(i)
        if as_text and (pt.is_binary(field.type) or pt.is_large_binary(field.type)):
            column = pa.chunked_array(
                [
                    pa.array([b if b is None else b.hex() for b in c.to_pylist()], pa.string())
                    for c in column.chunks
                ],
                pa.string(),
            )
        long = {pa.string(): pa.large_string(), pa.binary(): pa.large_binary()}
        table = table.set_column(i, field.name, column.cast(long.get(column.type, column.type)))
    return table


def _print_table(parts: Sequence[pa.Table], schema: pa.Schema) -> None:
    import pyarrow as pa
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from limen.cli.result_files import python_rows

    table = Table()
    for field in schema:
        numeric = pa.types.is_integer(field.type) or pa.types.is_floating(field.type)
        table.add_column(Text(_printable(field.name)), justify="right" if numeric else "left")
    for part in parts:
        for row in python_rows(part):
            table.add_row(*(Text(_cell(value)) for value in row.values()))
    Console().print(table)


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bytes):
        more = f".. ({len(value):,} bytes)" if len(value) > 8 else ""
        return value[:8].hex() + more
    return _printable(str(value))


def _read(snapshot: Snapshot, ranges: Sequence[tuple[Any, Any]] | None) -> str:
    """How much of the archive a probe of these ranges, or a scan, has read."""
    groups: dict[str, set[int]] = {}
    everything = snapshot.named()
    for low, high in ranges or ():
        keys = snapshot.shape.keys_between((low, high))
        for file in everything:
            found = file.groups_of(*keys)
            if len(found):
                groups.setdefault(file.path, set()).update(found)
    if ranges is None:
        groups = {file.path: set(range(len(file.groups))) for file in everything}
    files = len(snapshot.files)
    all_groups = sum(len(file.groups) for file in snapshot.files)
    read = sum(map(len, groups.values()))
    return (
        f"{len(groups):,} of {many(files, 'file')} and {read:,} of "
        f"{many(all_groups, 'row group')} read"
    )


def _printable(text: str) -> str:
    return text if text.isprintable() else repr(text)
