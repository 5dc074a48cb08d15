"""A picture of a doubly partitioned archive: its grid of sub-indices, and its results in time.

Left, a tile a sub-index, the darker the more results of it are alive, with frames around what the next
update inserts into, looks through or throws away. Right, results by the times of their generation and of
their expiration, in the colours of their sub-indices, which the tiles wear at their side: so one sees how
partitions interleave. A result is above the diagonal (it expires after its generation), at most a window
above it, and alive above the line of now. The next update adds the strip right of now, and what lies in
the strip above now expires with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgb
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle

from limen.archive import files
from limen.model import LimenError
from limen.plotting.style import BLUE, GREEN, GREY, ORANGE, VERMILION, short, style

if TYPE_CHECKING:
    from limen.archive import Snapshot
    from limen.archive.grid import Tile
    from limen.archive.shape import Shape

F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]

HUES = (BLUE, ORANGE, GREEN, VERMILION, "#CC79A7", "#56B4E9")
POINTS = 12_000  # results drawn, about
WRITTEN = 10  # rows or columns of a grid whose tiles have room for numbers
MESH = 40  # steps of a window whose borders are drawn
DAY = 86_400_000_000  # microseconds
MARKS = {
    "insert": (ORANGE, "-", "inserts new results"),
    "look": ("black", (0, (2, 1.2)), "looks for expired ones"),
    "drop": (VERMILION, ":", "throws away first"),
}


def draw(snapshot: Snapshot, tiles: Sequence[Tile], path: Path) -> str:
    """Draw; returns a sentence on what is drawn."""
    if snapshot.state.origin is None:
        raise LimenError(f"{snapshot.path}: no update has been made, so there is nothing to draw")
    layout = snapshot.layout
    alive = sum(tile.alive for tile in tiles)
    results = f"{alive:,} {'result' if alive == 1 else 'results'}"
    told = f"{results} in {layout.rows} x {layout.columns} sub-indices of {layout}"
    choices = layout.choices
    how = "clustered anew" if layout.recluster else "not clustered anew"
    below = (
        f"{results} alive at {snapshot.time}; rows {choices.generation} by generation, columns "
        f"{choices.expiration} by expiration, {how} by updates"
    )
    with style():
        figure = Figure(figsize=(15, 8), dpi=100)
        FigureCanvasAgg(figure)
        figure.subplots_adjust(left=0.05, right=0.98, top=0.84, bottom=0.17, wspace=0.17)
        figure.text(0.02, 0.975, f"{layout}", fontsize=15, weight="bold", va="top")
        figure.text(0.02, 0.93, below, fontsize=11, va="top", color=GREY)
        grid, plane = figure.subplots(1, 2, width_ratios=(1, 1.25))
        colours = _colours(layout.rows, layout.columns)
        _draw_grid(grid, tiles, colours)
        _draw_plane(plane, snapshot, colours)
        figure.savefig(path)
    return told


def _colours(rows: int, columns: int) -> F64:
    """A colour a sub-index: the hue is its row's, the paler the further right."""
    if rows <= len(HUES):
        hues = np.array([to_rgb(hue) for hue in HUES[:rows]])
    else:
        hues = colormaps["turbo"](np.linspace(0.05, 0.95, rows))[:, :3]
    pale = np.linspace(0, 0.72, columns)[None, :, None] if columns > 1 else np.zeros((1, 1, 1))
    found: F64 = hues[:, None, :] * (1 - pale) + pale
    return found


# -- the grid ----------------------------------------------------------------------------------------


def _draw_grid(axes: Axes, tiles: Sequence[Tile], colours: F64) -> None:
    rows, columns, _ = colours.shape
    most = max(1, *(tile.alive for tile in tiles))
    numbers = max(rows, columns) <= WRITTEN
    for tile in tiles:
        share = tile.alive / most
        axes.add_patch(_box(tile, 0, facecolor=colormaps["Blues"](0.04 + 0.66 * share)))
        swatch = colours[tile.row, tile.column]
        axes.add_patch(Rectangle((tile.column, tile.row), 0.09, 1, facecolor=swatch, lw=0))
        if numbers:
            _write(axes, tile, "white" if share > 0.72 else "#2B3138", max(rows, columns))
    for inset, (what, (colour, line, _)) in zip((0.035, 0.08, 0.125), MARKS.items(), strict=True):
        for tile in tiles:
            if what in tile.next:
                axes.add_patch(
                    _box(tile, inset, fill=False, edgecolor=colour, ls=line, lw=2 if numbers else 1)
                )
    axes.set_xlim(-0.02, columns + 0.02)
    axes.set_ylim(rows + 0.02, -0.02)
    _ticks(axes, rows, columns)
    axes.set_title("Sub-indices, the darker the more results are alive")
    due = [what for what in MARKS if any(what in tile.next for tile in tiles)]
    handles = [
        Patch(fill=False, edgecolor=MARKS[what][0], ls=MARKS[what][1], lw=2, label=MARKS[what][2])
        for what in due
    ]
    axes.legend(
        handles=handles,
        title="the next update",
        loc="upper center",
        bbox_to_anchor=(0.5, -0.09),
        ncols=3,
        fontsize=10,
        title_fontsize=10,
    )


def _box(tile: Tile, inset: float, **how: object) -> Rectangle:
    """A tile, or a frame inside of it, right of its colour."""
    left = tile.column + (0.09 + inset * 0.9 if inset else 0)
    wide = 0.91 - 1.8 * inset if inset else 1
    return Rectangle(
        (left, tile.row + inset),
        wide,
        1 - 2 * inset,
        **{"edgecolor": "white", "lw": 1.2, **how},  # type: ignore[arg-type]
    )


def _write(axes: Axes, tile: Tile, colour: str, side: int) -> None:
    """The sizes; of those that have gone only if there are any."""
    gone = tile.rows - tile.alive
    lines = [f"{tile.alive:,}" if tile.alive < 100_000 else short(round(tile.alive, -3))]
    if side <= 6:
        lines += [f"{gone:,} gone"] if gone else []
        lines += [_size(tile.bytes)] if tile.files else []
    axes.text(
        tile.column + 0.545,
        tile.row + 0.5,
        "\n".join(lines),
        ha="center",
        va="center",
        color=colour,
        fontsize=11 if side <= 4 else 9 if side <= 6 else 7.5,
    )


def _size(size: float) -> str:
    for unit, letters in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if size >= unit:
            return f"{size / unit:.3g} {letters}"
    return f"{size} B"


def _ticks(axes: Axes, rows: int, columns: int) -> None:
    across, down = (range(0, n, -(-n // 16)) for n in (columns, rows))
    axes.set_xticks([c + 0.5 for c in across], [str(c) for c in across])
    axes.set_yticks([r + 0.5 for r in down], [str(r) for r in down])
    axes.tick_params(length=0)
    axes.grid(False)
    axes.set_xlabel("column, by expiration")
    axes.set_ylabel("row, by generation")
    for side in axes.spines.values():
        side.set_visible(False)


# -- the plane of times ------------------------------------------------------------------------------


def _draw_plane(axes: Axes, snapshot: Snapshot, colours: F64) -> None:
    shape, state = snapshot.shape, snapshot.state
    now, step = state.time(shape), shape.every
    generated, expires, cells = _sample(snapshot)
    first = min(int(generated.min(initial=now)), now - shape.window)
    lowest = min(int(expires.min(initial=now)), now - step)
    x, y = _places(generated, shape), _places(expires, shape)
    ends = _places(np.array([first - step // 2, now + 2 * step]), shape)
    band = _places(np.array([first - step // 2, now]), shape)
    above = band + _length(shape.window, shape)
    axes.fill_between(band, band, above, color="#EEF1F4", lw=0, zorder=0)
    axes.plot(band, band, color=GREY, lw=1, ls="--", zorder=1)
    axes.plot(band, above, color=GREY, lw=1, ls="--", zorder=1)
    here, one = _places(np.array([now]), shape)[0], _length(step, shape)
    axes.add_patch(
        Rectangle((here, here), one, _length(shape.window, shape) + one, fc=ORANGE, alpha=0.25)
    )
    axes.add_patch(Rectangle((ends[0], here), here - ends[0], one, fc="black", alpha=0.13))
    size = float(np.clip(30_000 / max(1, len(x)), 2, 14))
    axes.scatter(x, y, s=size, c=colours[cells[:, 0], cells[:, 1]], lw=0, zorder=2)
    axes.axhline(here, color=VERMILION, lw=1.6, zorder=3)
    if shape.steps <= MESH:
        _mesh(axes, shape, now, first, lowest)
    axes.set_xlim(ends[0], ends[1])
    low = _places(np.array([lowest - step // 2]), shape)[0]
    axes.set_ylim(low, here + _length(shape.window + step, shape))
    _label(axes, shape)
    part = "Results" if len(x) == sum(f.rows for f in snapshot.files) else "A sample of results"
    axes.set_title(f"{part} in time, in the colours of their sub-indices")
    _explain(axes)


def _sample(snapshot: Snapshot) -> tuple[I64, I64, I64]:
    """Generation, expiration and sub-index of some results, those that have gone included."""
    shape = snapshot.shape
    share = POINTS / max(1, sum(file.rows for file in snapshot.files))
    rng = np.random.default_rng(0)
    parts = []
    for file in snapshot.files:
        rows = files.read(file, None, [shape.generated, shape.expires])
        some = np.flatnonzero(rng.random(len(rows)) < share)
        times = [shape.numbers(rows, name)[some] for name in (shape.generated, shape.expires)]
        parts.append((*times, np.tile(np.array(file.cell, np.int64), (len(some), 1))))
    none = np.empty(0, np.int64)
    generated, expires, cells = zip((none, none, np.empty((0, 2), np.int64)), *parts, strict=True)
    order = rng.permutation(sum(map(len, generated)))  # no sub-index covers the others
    return (
        np.concatenate(generated)[order],
        np.concatenate(expires)[order],
        np.concatenate(cells)[order],
    )


def _mesh(axes: Axes, shape: Shape, now: int, first: int, lowest: int) -> None:
    """The borders of steps, at which partitions change."""
    back = np.arange(now, first - shape.every, -shape.every)
    up = np.arange(now, now + shape.window + shape.every + 1, shape.every)
    down = np.arange(now, lowest - shape.every, -shape.every)
    for at in _places(np.concatenate([back, [now + shape.every]]), shape):
        axes.axvline(at, color="#D5DAE0", lw=0.6, zorder=0.5)
    for at in _places(np.concatenate([up, down]), shape):
        axes.axhline(at, color="#D5DAE0", lw=0.6, zorder=0.5)
    axes.grid(False)


def _places(times: I64, shape: Shape) -> F64:
    """Where times lie on an axis: days if they are timestamps."""
    return times / DAY if shape.in_timestamps else times.astype(np.float64)


def _length(duration: int, shape: Shape) -> float:
    return duration / DAY if shape.in_timestamps else float(duration)


def _label(axes: Axes, shape: Shape) -> None:
    guessed = " (estimated)" if shape.count_based else ""
    zone = " (UTC)" if shape.in_timestamps else ""
    axes.set_xlabel(f"generated{zone}")
    axes.set_ylabel(f"expires{guessed}{zone}")
    if shape.in_timestamps:
        for axis in (axes.xaxis, axes.yaxis):
            locator = AutoDateLocator(maxticks=8)  # type: ignore[no-untyped-call]
            axis.set_major_locator(locator)
            axis.set_major_formatter(ConciseDateFormatter(locator))  # type: ignore[no-untyped-call]


def _explain(axes: Axes) -> None:
    handles = [
        Line2D([], [], color=VERMILION, lw=1.6, label="now: alive above"),
        Line2D([], [], color=GREY, lw=1, ls="--", label="a lifetime of 0, and of a window"),
        Patch(fc=ORANGE, alpha=0.25, label="comes next"),
        Patch(fc="black", alpha=0.13, label="expires next"),
    ]
    axes.legend(
        handles=handles,
        loc="upper center",
        bbox_to_anchor=(0.5, -0.09),
        ncols=4,
        fontsize=10,
        columnspacing=1.4,
    )
