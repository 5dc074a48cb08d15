"""`limen plot`: pictures. `queries` shows where standing queries lie and how the index holds them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

plots = typer.Typer(no_args_is_help=True, help="Draw pictures of queries (needs matplotlib).")


@plots.callback()
def _plots() -> None:
    """Draw pictures of queries (needs matplotlib)."""


@plots.command()
def queries(
    queries: Annotated[Path, typer.Argument(help="Queries: csv, parquet or JSON lines.")],
    on: Annotated[
        str | None,
        typer.Option(help="The attribute; by default the one that most queries constrain."),
    ] = None,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The picture: .png or .svg.")
    ] = Path("queries.png"),
    types: Annotated[
        str | None, typer.Option(help="Types of attributes: price=float64,day=date.")
    ] = None,
    bounds: Annotated[
        str, typer.Option(help="The kind of a frame's ranges that do not say: [] [) (] ().")
    ] = "[]",
) -> None:
    """Where the queries lie, how many contain each value, and the cells of their index."""
    from limen.cli.match import given_types
    from limen.cli.query_files import QueryFile
    from limen.model import LimenError

    if output.suffix.lower() not in (".png", ".svg"):
        raise LimenError(f"--output {output}: a picture is .png or .svg")
    if not output.parent.is_dir():
        raise LimenError(f"--output {output}: there is no folder {output.parent}")
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise LimenError("limen plot needs matplotlib: pip install 'limen[plot]'") from None
    from limen.plotting.queries import attribute_of, draw

    file = QueryFile(queries)
    query_set = file.query_set(file.own_types(given_types(types)), bounds)
    attribute, why = attribute_of(query_set, on)
    draw(query_set, attribute, output)
    print(f"{output}: {attribute} of {len(query_set):,} queries{why}")
