"""`limen queries`: a catalog of standing queries, made, changed and looked at.

Each command is one call of `limen.catalog.Catalog`. What is written is read and checked first, so a
refused query leaves no new catalog and no new attribute behind. Receipts and tables go to stdout,
remarks to stderr.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import re
import sys
import time
from datetime import UTC, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from datetime import datetime

    import pyarrow as pa

    from limen.catalog import Entry, Receipt
    from limen.cli.query_files import QueryFile
    from limen.model import QuerySet

SHOWN = 20  # rows of a table, if not said
UNITS = {"d": 86_400, "h": 3600, "m": 60, "s": 1}

queries = typer.Typer(no_args_is_help=True, help="Keep standing queries in a catalog.")

Folder = Annotated[str, typer.Argument(metavar="CATALOG", help="The folder of the catalog.")]
Attributes = Annotated[
    list[str] | None,
    typer.Option(
        "--attribute",
        "-a",
        metavar="NAME=TYPE",
        help="An attribute that queries may name, such as price=float64; as often as needed. With "
        "them the catalog is made if it is not there.",
    ),
]
Ttl = Annotated[
    str | None, typer.Option(metavar="TIME", help="How long they stand: 1h30m, 45s, 2d.")
]
Replace = Annotated[
    bool, typer.Option("--replace", help="Replace ids that are in with another body.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON lines instead of a table.")]


@queries.callback()
def _queries() -> None:
    """Keep standing queries in a catalog."""


@queries.command()
def add(
    catalog: Folder,
    query_id: Annotated[str, typer.Argument(metavar="ID", help="The id of the query.")],
    where: Annotated[
        str, typer.Argument(metavar="WHERE", help="SQL: symbol = 'IBM' AND price < 50.")
    ],
    attribute: Attributes = None,
    ttl: Ttl = None,
    replace: Replace = False,
) -> None:
    """Add one query."""
    import pyarrow as pa

    from limen.catalog import Catalog
    from limen.cli.query_files import id_texts
    from limen.model import QuerySet

    given, lasting = _attributes(attribute), _duration(ttl, "--ttl")
    there = Catalog.open(catalog) if _exists(catalog) or not given else None
    text = pa.array([query_id])
    ids = id_texts(text) if there is None else _ids_like(text, there.id_type)
    known = given if there is None else {**there.attributes, **given}
    found = QuerySet.of({ids[0].as_py(): where}, known)
    _print_receipt(_take_in(catalog, given, found, lasting, replace))


@queries.command("import")
def import_(
    catalog: Folder,
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="Queries, as `limen match` reads them.")
    ],
    attribute: Attributes = None,
    bounds: Annotated[
        str, typer.Option(help="The kind of a frame's ranges that do not say: [] [) (] ().")
    ] = "[]",
    ttl: Ttl = None,
    replace: Replace = False,
) -> None:
    """Add all queries of a file in one commit; a new catalog takes the types of columns of bounds."""
    from limen.catalog import Catalog
    from limen.cli.query_files import QueryFile
    from limen.model import LimenError, QueryError

    started = time.monotonic()
    given, lasting = _attributes(attribute), _duration(ttl, "--ttl")
    with _status(f"reading {file}"):
        read = QueryFile(file)
        if _exists(catalog):
            there = Catalog.open(catalog)
            found = read.query_set({**there.attributes, **given}, bounds)
            found = _with_ids_like(found, there.id_type, file)
        else:
            given = _types_of(read, given)
            found = read.query_set(given, bounds)
    try:
        with _status(f"committing {len(found):,} queries"):
            receipt = _take_in(catalog, given, found, lasting, replace)
    except QueryError as error:
        raise LimenError(f"{file}: {error}") from None
    _print_receipt(receipt)
    took = time.monotonic() - started
    print(f"{len(found):,} queries read and committed in {took:.1f} s", file=sys.stderr)


@queries.command()
def remove(
    catalog: Folder,
    ids: Annotated[list[str] | None, typer.Argument(metavar="[ID]...", help="Their ids.")] = None,
    file: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="FILE",
            help="A file with the column id (csv, parquet, JSON lines), or any other with an id a "
            "line; - is the standard input.",
        ),
    ] = None,
) -> None:
    """Remove queries in one commit; if one is not there, none is removed."""
    import pyarrow as pa

    from limen.catalog import Catalog
    from limen.model import LimenError

    if not ids and file is None:
        raise LimenError("name the ids to remove, or a file of them with --from")
    there = Catalog.open(catalog)
    parts = [_ids_like(pa.array(ids or [], pa.string()), there.id_type)]
    if file is not None:
        parts.append(_ids_like(_ids_from(file), there.id_type))
    if parts[0].type != parts[-1].type:
        raise LimenError(f"{file}: ids of this catalog are {parts[0].type}, not {parts[-1].type}")
    _print_receipt(there.remove(pa.concat_arrays(parts)))


@queries.command("list")
def list_(
    catalog: Folder,
    limit: Annotated[
        int | None, typer.Option(min=0, help=f"How many; {SHOWN}, or all with --json.")
    ] = None,
    version: Annotated[int | None, typer.Option(help="As of this version.")] = None,
    as_json: AsJson = False,
) -> None:
    """The queries, in the order of their ids."""
    from limen.catalog import Catalog

    there = Catalog.open(catalog)
    if as_json:
        _print_json(
            {**e._asdict(), "expires": _iso(e.expires)} for e in there.list(limit, version=version)
        )
        return
    total = len(there if version is None else there.snapshot(version))
    found = there.list(SHOWN if limit is None else limit, version=version)
    rows = [[str(e.id), e.where, str(e.since), _utc(e.expires)] for e in found]
    _print_table(["id", "where", "since", "expires (UTC)"], rows, numbers={"since"})
    _print_rest(len(rows), total, "query" if total == 1 else "queries")


@queries.command()
def show(
    catalog: Folder,
    query_id: Annotated[str, typer.Argument(metavar="ID", help="The id of the query.")],
) -> None:
    """One query in full."""
    import pyarrow as pa

    from limen.catalog import Catalog
    from limen.model import LimenError

    there = Catalog.open(catalog)
    who = _ids_like(pa.array([query_id]), there.id_type)[0].as_py()
    entry = there.get(who)
    if entry is None:
        raise LimenError(f"no query has the id {who!r}")
    came = there.history(there.version - entry.since + 1)[-1:]
    when = f", {_utc(came[0].time)} UTC" if came and came[0].version == entry.since else ""
    print(f"id       {_printable(str(entry.id))}")
    print(f"where    {_printable(entry.where)}")
    print(f"since    version {entry.since}{when}")
    print(f"expires  {_utc(entry.expires) + ' UTC' if entry.expires else 'never'}")
    _print_table(["attribute", "type", "least", "greatest"], _ranges(entry, there.attributes))


@queries.command()
def history(
    catalog: Folder,
    limit: Annotated[
        int | None, typer.Option(min=1, help=f"How many; {SHOWN}, or all with --json.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """The versions, newest first: what was done, and how many queries were then in force."""
    from limen.catalog import Catalog

    there = Catalog.open(catalog)
    found = there.history(limit if limit or as_json else SHOWN)
    headings = ["version", "time", "what", "added", "removed", "queries"]
    if as_json:
        lines = ((e.version, _iso(e.time), *e[2:]) for e in found)
        _print_json(dict(zip(headings, line, strict=True)) for line in lines)
        return
    rows = [[str(e.version), _utc(e.time), e.kind, *map(_number, e[3:])] for e in found]
    headings[1] = "time (UTC)"
    _print_table(headings, rows, numbers={"version", "added", "removed", "queries"})
    _print_rest(len(rows), found[0].version + 1 if found else 0, "versions")


@queries.command()
def compact(catalog: Folder) -> None:
    """Fold all change records into one file, which is quicker to open."""
    from limen.catalog import Catalog
    from limen.model import LimenError

    there = Catalog.open(catalog)
    before, version = there.version, there.compact()
    if version is None:
        raise LimenError(f"{there.path}: another writer came between; try again")
    print(f"version {version}: {'compacted' if version > before else 'nothing to compact'}")


@queries.command()
def vacuum(
    catalog: Folder,
    older_than: Annotated[
        str, typer.Option(metavar="TIME", help="Keep what versions of this last time use.")
    ] = "7d",
) -> None:
    """Delete files that only older versions use; those versions can then no longer be read."""
    from limen.catalog import Catalog

    kept = _duration(older_than, "--older-than")
    assert kept is not None
    deleted = Catalog.open(catalog).vacuum(kept)
    print(f"{deleted:,} {'file' if deleted == 1 else 'files'} deleted")


# -- what comes in -----------------------------------------------------------------------------------


def _exists(catalog: str) -> bool:
    from limen.catalog.log import FOLDER

    return (Path(catalog).expanduser() / FOLDER).is_dir()


def _attributes(given: list[str] | None) -> dict[str, pa.DataType]:
    from limen.model import LimenError, attribute_type

    found: dict[str, pa.DataType] = {}
    for part in given or []:
        name, equals, kind = (word.strip() for word in part.partition("="))
        if not equals or not name or not kind:
            raise LimenError(f"--attribute: {part!r} is not of the form name=type")
        try:
            told = attribute_type(kind)
        except LimenError as error:
            raise LimenError(f"--attribute {name}: {error}") from None
        if found.setdefault(name, told) != told:
            raise LimenError(f"--attribute: {name!r} is given two types")
    return found


def _types_of(file: QueryFile, given: dict[str, pa.DataType]) -> dict[str, pa.DataType]:
    """The attributes of a new catalog. A guess would stay for ever: only columns of bounds are asked."""
    from limen.model import LimenError

    if not file.has_conditions:
        used = file.uses(None)
        return {**file.own_types({n: k for n, k in given.items() if n in used}), **given}
    if not given:
        asked = " ".join(f"--attribute {name}=TYPE" for name in file.uses(None))
        raise LimenError(f"the catalog is new and conditions do not say types: give {asked}")
    return given


def _duration(text: str | None, option: str) -> timedelta | None:
    """
    >>> print(_duration("1h30m", "--ttl"))
    1:30:00
    """
    from limen.model import LimenError

    if text is None:
        return None
    if not re.fullmatch(r"(\d+(\.\d+)?[dhms])+", text):
        raise LimenError(f"{option} {text!r}: write a time as 1h30m, 45s or 2d")
    parts = re.findall(r"([\d.]+)([dhms])", text)
    try:
        return timedelta(seconds=sum(float(number) * UNITS[unit] for number, unit in parts))
    except OverflowError:
        raise LimenError(f"{option} {text!r} is too long") from None


def _ids_like(ids: pa.Array, kind: pa.DataType) -> pa.Array:
    """Ids as the catalog has them: text of a number is a number where ids are numbers."""
    import numpy as np
    import pyarrow as pa

    from limen.cli.cells import parsed
    from limen.model import LimenError

    if kind != pa.int64() or ids.type != pa.string():
        return ids
    found, bad = parsed(ids, kind)
    if bad.any():
        wrong = ids[int(np.argmax(bad))].as_py()
        raise LimenError(f"{wrong!r} is not an id of this catalog: its ids are int64")
    return found


def _with_ids_like(found: QuerySet, kind: pa.DataType, file: Path) -> QuerySet:
    """Numbers of a csv file are text where ids are text."""
    import pyarrow as pa

    from limen.cli.event_files import format_of

    if kind == pa.string() and found.ids.type == pa.int64() and format_of(file) == "csv":
        return dataclasses.replace(found, ids=found.ids.cast(kind))
    return found


def _ids_from(file: str) -> pa.Array:
    import pyarrow as pa

    from limen.cli.event_files import format_of
    from limen.cli.query_files import QueryFile
    from limen.model import LimenError

    if file != "-":
        try:
            format_of(Path(file))
        except LimenError:
            pass  # any other file has an id a line
        else:
            return QueryFile(Path(file)).ids()
    try:
        text = sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise LimenError(f"{file} cannot be read: not UTF-8") from None
    return pa.array([line for line in text.splitlines() if line.strip()], pa.string())


def _take_in(
    path: str,
    given: Mapping[str, pa.DataType],
    found: QuerySet,
    ttl: timedelta | None,
    replace: bool,
) -> Receipt:
    """Add checked queries, after making the catalog or declaring attributes where that is needed."""
    from limen.catalog import Catalog
    from limen.model import QueryError, type_name

    new = not _exists(path)
    catalog = Catalog.open(path, given or None, ids=found.ids.type)
    if new:
        parts = [f"{name}: {type_name(kind)}" for name, kind in catalog.attributes.items()]
        ids = type_name(catalog.id_type)
        print(f"made the catalog {path} (ids: {ids}; {', '.join(parts)})", file=sys.stderr)
    gone = _differing(found, catalog.snapshot()) if replace else ()
    try:
        return catalog.change(found, gone, ttl=ttl)
    except QueryError as error:
        if "another body" not in error.reason:
            raise
        hint = f"{error.reason}; --replace replaces it"
        raise QueryError(hint, error.row, error.query_id, error.field) from None


def _differing(found: QuerySet, there: QuerySet) -> pa.Array:
    """The ids that are in both with different bodies."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    if found.ids.type != there.ids.type:
        return pa.array([], there.ids.type)
    at = pc.index_in(found.ids, value_set=there.ids)
    rows = np.flatnonzero(at.is_valid().to_numpy(zero_copy_only=False))
    new, old = found.take(rows), there.take(at.drop_null().to_numpy())
    differs = np.zeros(len(rows), np.bool_)
    for name, kind in {**new.attributes, **old.attributes}.items():
        for one, other in zip(_body(new, name, kind), _body(old, name, kind), strict=True):
            both_null = pc.and_(one.is_null(), other.is_null())
            same = pc.or_(both_null, pc.fill_null(pc.equal(one, other), False))
            differs |= ~same.to_numpy(zero_copy_only=False)
    return new.ids.filter(pa.array(differs))


def _body(found: QuerySet, name: str, kind: pa.DataType) -> list[pa.Array]:
    """What the queries say of an attribute, also where none of them names it."""
    import pyarrow as pa

    from limen.model import INT64_MAX, INT64_MIN, is_key

    n = len(found)
    if is_key(kind):
        return [found.keys.get(name, pa.nulls(n, kind))]
    lo, hi = found.lo.get(name), found.hi.get(name)
    ends = zip((lo, hi), (INT64_MIN, INT64_MAX), strict=True)
    return [pa.repeat(open_end, n) if end is None else pa.array(end) for end, open_end in ends]


# -- what goes out -----------------------------------------------------------------------------------


def _status(text: str) -> contextlib.AbstractContextManager[object]:
    from rich.console import Console
    from rich.text import Text

    console = Console(stderr=True)
    return console.status(Text(text)) if console.is_terminal else contextlib.nullcontext()


def _print_receipt(receipt: Receipt) -> None:
    changed = receipt.added or receipt.removed
    told = (
        f"{receipt.added:,} added, {receipt.removed:,} removed" if changed else "nothing to change"
    )
    print(f"version {receipt.version}: {told}")


def _ranges(entry: Entry, attributes: Mapping[str, pa.DataType]) -> Iterator[list[str]]:
    """A line an attribute: the least and the greatest value that the query takes."""
    from limen.model import QuerySet, extremes, type_name, value_of

    query = QuerySet.of({entry.id: entry.where}, attributes)
    for name, kind in attributes.items():
        least = greatest = "any"
        if name in query.lo:
            low, high = extremes(kind)
            lo, hi = int(query.lo[name][0]), int(query.hi[name][0])
            least = str(value_of(lo, kind)) if lo > low else "any"
            greatest = str(value_of(hi, kind)) if hi < high else "any"
        elif name in query.keys:
            least = greatest = str(query.keys[name][0].as_py())
        yield [name, type_name(kind), least, greatest]


def _print_table(
    headings: list[str], rows: Iterable[list[str]], numbers: Iterable[str] = ()
) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table()
    for heading in headings:
        table.add_column(heading, justify="right" if heading in numbers else "left")
    for row in rows:
        table.add_row(*(Text(_printable(cell)) for cell in row))
    Console().print(table)


def _print_rest(shown: int, total: int, what: str) -> None:
    if shown < total:
        print(f"{shown:,} of {total:,} {what}; --limit N shows more, --json all")


def _print_json(lines: Iterable[Mapping[str, Any]]) -> None:
    for line in lines:
        print(json.dumps(line, ensure_ascii=False))


def _printable(text: str) -> str:
    return text if text.isprintable() else repr(text)


def _number(value: int | None) -> str:
    return "" if value is None else f"{value:,}"


def _utc(moment: datetime | None) -> str:
    return "" if moment is None else f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S}"


def _iso(moment: datetime | None) -> str | None:
    return None if moment is None else moment.astimezone(UTC).isoformat()
