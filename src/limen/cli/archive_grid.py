"""The grid of an archive's sub-indices on the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich import box
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from limen.archive.grid import DROP, INSERT, LOOK, Tile
from limen.cli.words import in_bytes, many, short

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from limen.archive import Layout, Snapshot

TILE = 9  # characters of a sub-index that is drawn with its numbers
TALLEST = 8  # rows of a grid that is drawn with its numbers
BAR = 7  # characters of the largest sub-index's bar
SHADES, BLUES = "░▒▓█", ("#9ECAE1", "#6BAED6", "#2171B5", "#08519C")
SIGNS = {INSERT: "+", LOOK: "?", DROP: "x"}


def drawn(tiles: Sequence[Tile], layout: Layout, console: Console) -> RenderableType:
    """The grid with its numbers if it is small, else in shades."""
    fits = layout.rows <= TALLEST and layout.columns * (TILE + 3) + 6 <= console.width
    title = "rows by generation, columns by expiration, each with its results alive"
    grid = [tiles[i : i + layout.columns] for i in range(0, len(tiles), layout.columns)]
    most = max((tile.alive for tile in tiles), default=0)
    if fits:
        return Group(title, _numbers(grid, most))
    return Group(f"{title}: the darker the more", *_shades(grid, most, console.width))


def _numbers(grid: Sequence[Sequence[Tile]], most: int) -> RenderableType:
    table = Table(box=box.SQUARE, show_lines=True)
    table.add_column("", justify="right", vertical="middle")
    for tile in grid[0]:
        table.add_column(str(tile.column), width=TILE, justify="right")
    for line in grid:
        table.add_row(str(line[0].row), *(_tile(tile, most) for tile in line))
    return table


def _tile(tile: Tile, most: int) -> Text:
    """Results alive, those that have gone but lie there, bytes, a bar, the signs of the next update."""
    share = tile.alive / most if most else 0
    text = Text(f"{short(tile.alive)}\n")
    gone = tile.rows - tile.alive
    if gone:
        text.append(f"{short(gone)} gone\n", "dim")
    text.append(f"{in_bytes(tile.bytes) if tile.files else ''}\n", "dim")
    text.append("█" * (round(BAR * share) or (tile.alive > 0)), _shade(share)[1])
    text.append(f"\n{_signs(tile)}", "bold yellow")
    return text


def _shades(grid: Sequence[Sequence[Tile]], most: int, width: int) -> Iterator[Text]:
    """A line a row: a shade and the signs of each sub-index, and the row's sums.

    Columns that a line has no room for come in further blocks.
    """
    wide, columns = len(str(len(grid) - 1)), len(grid[0])
    block = max(1, (width - wide - 30) // 3)
    for begin in range(0, columns, block):
        if columns > block:
            yield Text(f"columns {begin} to {min(begin + block, columns) - 1}")
        for line in grid:
            text = Text(f"{line[0].row:>{wide}} ")
            for tile in line[begin : begin + block]:
                sign, style = _shade(tile.alive / most) if tile.alive else ("·", "dim")
                text.append(sign, style)
                text.append(f"{_signs(tile).replace(' ', ''):<2}", "bold yellow")
            alive = sum(tile.alive for tile in line[begin : begin + block])
            size = sum(tile.bytes for tile in line[begin : begin + block])
            text.append(f" {alive:,} alive, {in_bytes(size)}", "dim")
            yield text


def _shade(share: float) -> tuple[str, str]:
    at = min(3, int(4 * share))
    return SHADES[at], BLUES[at]


def _signs(tile: Tile) -> str:
    return " ".join(SIGNS[what] for what in tile.next)


def legend(tiles: Sequence[Tile]) -> str:
    told = {
        INSERT: "inserts new results here",
        LOOK: "looks here for expired ones",
        DROP: "throws all of this away first",
    }
    due = {what for tile in tiles for what in tile.next}
    parts = [f"{SIGNS[what]} {words}" for what, words in told.items() if what in due]
    touched = sum(bool(tile.next) for tile in tiles)
    return (
        f"the next update touches {touched} of {many(len(tiles), 'sub-index')}: {', '.join(parts)}"
    )


def small(snapshot: Snapshot) -> RenderableType:
    table = Table(box=box.SQUARE, show_header=False, show_lines=True)
    rows: dict[int, list[str]] = {}
    for sub in snapshot.sub_indices():
        table.add_column(justify="right") if sub.row == 0 else None
        rows.setdefault(sub.row, []).append(short(sub.rows))
    for line in rows.values():
        table.add_row(*line)
    return table
