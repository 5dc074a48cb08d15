"""`limen plot`: pictures.

`queries` shows where standing queries lie and how the index holds them, `hotspots` where they crowd,
`pieces` how the indexes of the papers cut one query, `searches` what they read to find it, `archive`
how window results lie in the sub-indices of an archive.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from limen.catalog import Catalog
    from limen.plotting.hotspots import Step

plots = typer.Typer(
    no_args_is_help=True, help="Draw pictures of queries and indexes (needs matplotlib)."
)

Domain = Annotated[str, typer.Option(help="The least and the greatest value there is.")]
Length = Annotated[int, typer.Option(help="Of the longest construct, a power of two.")]
Ends = Annotated[str, typer.Option(help="closed: the query is [LO, HI]; half-open: [LO, HI).")]
Value = Annotated[
    float | None, typer.Option(help="The value to search for; the middle of the query.")
]
On = Annotated[
    str | None,
    typer.Option(help="The attribute; by default the one that most queries constrain."),
]
Types = Annotated[str | None, typer.Option(help="Types of attributes: price=float64,day=date.")]
Bounds = Annotated[
    str, typer.Option(help="The kind of a frame's ranges that do not say: [] [) (] ().")
]
Output = Annotated[Path, typer.Option("--output", "-o", help="The picture: .png or .svg.")]


@plots.callback()
def _plots() -> None:
    """Draw pictures of queries and indexes (needs matplotlib)."""


@plots.command()
def queries(
    queries: Annotated[Path, typer.Argument(help="Queries: csv, parquet or JSON lines.")],
    on: On = None,
    output: Output = Path("queries.png"),
    types: Types = None,
    bounds: Bounds = "[]",
) -> None:
    """Where the queries lie, how many contain each value, and the cells of their index."""
    _check_output(output)
    from limen.cli.match import given_types
    from limen.cli.query_files import QueryFile
    from limen.plotting.queries import attribute_of, draw

    file = QueryFile(queries)
    query_set = file.query_set(file.own_types(given_types(types)), bounds)
    attribute, why = attribute_of(query_set, on)
    draw(query_set, attribute, output)
    print(f"{output}: {attribute} of {len(query_set):,} queries{why}")


@plots.command()
def hotspots(
    queries: Annotated[
        Path, typer.Argument(help="Queries: csv, parquet or JSON lines; or a catalog.")
    ],
    on: On = None,
    alpha: Annotated[
        float, typer.Option(help="The share of the queries that makes a group a hotspot.")
    ] = 0.01,
    output: Output = Path("hotspots.png"),
    types: Types = None,
    bounds: Bounds = "[]",
) -> None:
    """The queries in groups that have a value in common, the hotspots, and how these moved.

    Time is the order of the queries in the file, or the versions of the catalog.
    """
    _check_output(output)
    from limen.catalog import Catalog
    from limen.cli.match import given_types
    from limen.cli.query_files import QueryFile
    from limen.model import LimenError
    from limen.plotting.hotspots import draw, steps_of_queries
    from limen.plotting.queries import attribute_of

    if not 0 < alpha <= 1:
        raise LimenError(f"--alpha is a share above 0 and up to 1, not {alpha:g}")
    if queries.is_dir():
        for option, given in (("--types", types), ("--bounds", None if bounds == "[]" else bounds)):
            if given is not None:
                raise LimenError(f"{option} is for files: a catalog says by itself, leave it out")
        catalog = Catalog.open(queries)
        query_set, time = catalog.snapshot(), "version"
        attribute, why = attribute_of(query_set, on)
        steps = _versions(catalog)
    else:
        file = QueryFile(queries)
        query_set = file.query_set(file.own_types(given_types(types)), bounds)
        time = "queries"
        attribute, why = attribute_of(query_set, on)
        steps = steps_of_queries(query_set)
    told = draw(steps, query_set, attribute, alpha, output, time)
    print(f"{output}: {told}{why}")


@plots.command()
def pieces(
    names: Annotated[
        list[str] | None,
        typer.Argument(help="Indexes, such as lci cei-plain; all that cut queries if none."),
    ] = None,
    query: Annotated[str, typer.Option(help="The query, LO:HI.")] = "3:22",
    domain: Domain = "0:31",
    length: Length = 8,
    ends: Ends = "half-open",
    value: Value = None,
    output: Output = Path("pieces.png"),
) -> None:
    """What each index cuts a query into, and the lists that a search for a value looks at."""
    _check_output(output)
    from limen.plotting.pieces import NAMES, draw, scene

    first, last = _two_integers("--domain", domain)
    lo, hi = _two_integers("--query", query)
    chosen = list(dict.fromkeys(names or NAMES))
    drawn = scene(chosen, range(first, last + 1), length, ends, (lo, hi), value)
    draw(chosen, drawn, output)
    print(f"{output}: {drawn.told(lo, hi)} in {', '.join(chosen)}")


@plots.command()
def searches(
    query: Annotated[str, typer.Option(help="A query that is in, LO:HI.")] = "3:22",
    domain: Domain = "0:31",
    length: Length = 8,
    ends: Ends = "half-open",
    value: Value = None,
    output: Output = Path("searches.png"),
) -> None:
    """Which bits or lists the four kinds of LCI read to find the queries over a value."""
    _check_output(output)
    from limen.plotting.pieces import scene
    from limen.plotting.searches import LCI, draw

    first, last = _two_integers("--domain", domain)
    asked = _two_integers("--query", query)
    drawn = scene([LCI], range(first, last + 1), length, ends, asked, value)
    draw(drawn, output)
    print(f"{output}: a search for {drawn.value:g}")


@plots.command()
def archive(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="The folder of the archive.")],
    version: Annotated[int | None, typer.Option(min=0, help="As of this version.")] = None,
    output: Output = Path("archive.png"),
) -> None:
    """The grid of an archive's sub-indices, and its results by generation and expiration."""
    _check_output(output)
    from limen.archive.grid import tiles_of
    from limen.cli.archive import snapshot_of
    from limen.plotting.archive import draw

    snapshot = snapshot_of(folder, version)
    told = draw(snapshot, tiles_of(snapshot), output)
    print(f"{output}: {told}")


def _versions(catalog: Catalog) -> Iterator[Step]:
    """The changes from version to version, as far back as there are; of several if they are many."""
    import numpy as np

    from limen.plotting.hotspots import MOMENTS, Step

    first = catalog.history()[-1].version
    snapshot = catalog.snapshot(first)
    yield Step(first, snapshot.ids.slice(0, 0), snapshot)
    marks = np.unique(np.linspace(first, catalog.version, MOMENTS).astype(int)).tolist()
    for before, after in itertools.pairwise(marks):
        changes = catalog.changes(before, after)
        yield Step(after, changes.removed, changes.added)


def _two_integers(option: str, text: str) -> tuple[int, int]:
    from limen.model import LimenError

    first, _, last = text.partition(":")
    try:
        ends = int(first), int(last)
    except ValueError:
        raise LimenError(f"{option} {text}: two integers are needed, such as 3:22") from None
    if ends[0] > ends[1]:
        raise LimenError(f"{option} {text}: {ends[0]} is above {ends[1]}")
    return ends


def _check_output(output: Path) -> None:
    """That a picture can be drawn there."""
    from limen.model import LimenError

    if output.suffix.lower() not in (".png", ".svg"):
        raise LimenError(f"--output {output}: a picture is .png or .svg")
    if not output.parent.is_dir():
        raise LimenError(f"--output {output}: there is no folder {output.parent}")
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise LimenError("limen plot needs matplotlib: pip install 'limen[plot]'") from None
