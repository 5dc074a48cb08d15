"""`limen plot`: pictures.

`queries` shows where standing queries lie and how the index holds them, `pieces` how the indexes of the
papers cut one query, `searches` what they read to find it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

plots = typer.Typer(
    no_args_is_help=True, help="Draw pictures of queries and indexes (needs matplotlib)."
)

Domain = Annotated[str, typer.Option(help="The least and the greatest value there is.")]
Length = Annotated[int, typer.Option(help="Of the longest construct, a power of two.")]
Ends = Annotated[str, typer.Option(help="closed: the query is [LO, HI]; half-open: [LO, HI).")]
Value = Annotated[
    float | None, typer.Option(help="The value to search for; the middle of the query.")
]
Output = Annotated[Path, typer.Option("--output", "-o", help="The picture: .png or .svg.")]


@plots.callback()
def _plots() -> None:
    """Draw pictures of queries and indexes (needs matplotlib)."""


@plots.command()
def queries(
    queries: Annotated[Path, typer.Argument(help="Queries: csv, parquet or JSON lines.")],
    on: Annotated[
        str | None,
        typer.Option(help="The attribute; by default the one that most queries constrain."),
    ] = None,
    output: Output = Path("queries.png"),
    types: Annotated[
        str | None, typer.Option(help="Types of attributes: price=float64,day=date.")
    ] = None,
    bounds: Annotated[
        str, typer.Option(help="The kind of a frame's ranges that do not say: [] [) (] ().")
    ] = "[]",
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
