"""The geofence demo's picture: the city, a few of its blocks from near, enters and exits by batch."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import LineCollection, PatchCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle

from limen.plotting.style import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    VERMILION,
    heading,
    short,
    short_numbers,
    style,
)

SAMPLE = 6000  # fences in the view of the whole city
POINTS = 3000  # crossings there
NEAR = 500.0  # metres, a side of the view from near
CROWD = 40  # fences that it should have
DARK, FAINT = "#2B3138", "#A9B2BB"
Bools = npt.NDArray[np.bool_]
F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]


class Batch(Protocol):
    @property
    def began(self) -> float: ...
    @property
    def seconds(self) -> float: ...
    @property
    def readings(self) -> int: ...
    @property
    def enters(self) -> int: ...
    @property
    def exits(self) -> int: ...


class Fences(Protocol):
    """Row i is the fence i."""

    @property
    def x_lo(self) -> F64: ...
    @property
    def x_hi(self) -> F64: ...
    @property
    def y_lo(self) -> F64: ...
    @property
    def y_hi(self) -> F64: ...


class Change(Protocol):
    @property
    def batch(self) -> int: ...
    @property
    def ids(self) -> I64: ...


class Tracks(Protocol):
    """Readings, those of a vehicle in order."""

    @property
    def vehicle(self) -> I64: ...
    @property
    def x(self) -> F64: ...
    @property
    def y(self) -> F64: ...


class Crossings(Protocol):
    @property
    def vehicle(self) -> I64: ...
    @property
    def fence(self) -> I64: ...
    @property
    def entered(self) -> Bools: ...
    @property
    def x(self) -> F64: ...
    @property
    def y(self) -> F64: ...


def draw(
    batches: Sequence[Batch],
    fences: Fences,
    added: Change,
    removed: Change,
    tracks: Tracks,
    crossings: Crossings,
    vehicles: int,
    path: Path,
) -> None:
    """`fences`: all that ever were; `tracks`: of a sample of the vehicles; `crossings`: all."""
    took = batches[-1].began + batches[-1].seconds - batches[0].began
    readings, enters, exits = (
        np.array([getattr(b, n) for b in batches]) for n in ("readings", "enters", "exits")
    )
    colours = np.full(len(fences.x_lo), GREY, object)
    colours[added.ids], colours[removed.ids] = GREEN, ORANGE
    of_tracks = np.isin(crossings.vehicle, np.unique(tracks.vehicle))
    with style():
        figure = Figure(figsize=(12, 10), dpi=100)
        FigureCanvasAgg(figure)
        kept = len(fences.x_lo) - len(added.ids)
        heading(
            figure,
            f"{vehicles:,} vehicles enter and leave {kept:,} fences, on Spark",
            f"{readings.sum():,} readings, {enters.sum():,} enters and {exits.sum():,} exits in "
            f"{took:.0f} s, from the source to the Delta table: "
            f"{short(round(readings.sum() / took, -2))} readings/s",
        )
        rows = figure.add_gridspec(
            2, 2, height_ratios=(2.5, 0.95), hspace=0.31, wspace=0.16, top=0.88, bottom=0.07
        )
        rows.update(left=0.065, right=0.975)
        city, near, counts = (
            figure.add_subplot(rows[at]) for at in ((0, 0), (0, 1), (1, slice(2)))
        )
        corner = _crowded(fences, colours, tracks)
        _city(city, fences, tracks, crossings, of_tracks, corner)
        _near(near, fences, colours, tracks, crossings, of_tracks, corner)
        _counts(counts, enters, exits, added, removed)
        figure.savefig(path)


def _crowded(
    fences: Fences, colours: npt.NDArray[np.object_], tracks: Tracks
) -> tuple[float, float]:
    """The lower left corner of a square around a place on a track: with about CROWD fences, of all
    colours, and with many tracks and readings."""
    places = np.linspace(0, len(tracks.x) - 1, 600).astype(np.int64)
    middle_x, middle_y = (fences.x_lo + fences.x_hi) / 2, (fences.y_lo + fences.y_hi) / 2
    best, corner = (len(fences.x_lo), 0, 0, 0), (0.0, 0.0)
    for x, y in zip(tracks.x[places] - NEAR / 2, tracks.y[places] - NEAR / 2, strict=True):
        near = np.flatnonzero(_touching(fences, x, y))
        there = tracks.vehicle[_within(tracks.x, tracks.y, x, y)]
        kinds = len(set(colours[near[_within(middle_x[near], middle_y[near], x, y)]]))
        found = abs(len(near) - CROWD) // 10, -kinds, -len(np.unique(there)), -len(there)
        if found < best:
            best, corner = found, (float(x), float(y))
    return corner


def _touching(fences: Fences, x: float, y: float) -> Bools:
    """Which fences have a part in the square."""
    found: Bools = (fences.x_lo < x + NEAR) & (fences.x_hi > x)
    return found & (fences.y_lo < y + NEAR) & (fences.y_hi > y)


def _within(xs: F64, ys: F64, x: float, y: float) -> Bools:
    found: Bools = (x <= xs) & (xs <= x + NEAR) & (y <= ys) & (ys <= y + NEAR)
    return found


def _city(
    axes: Axes,
    fences: Fences,
    tracks: Tracks,
    crossings: Crossings,
    of_tracks: Bools,
    corner: tuple[float, float],
) -> None:
    rng = np.random.default_rng(0)
    some = rng.choice(len(fences.x_lo), min(SAMPLE, len(fences.x_lo)), replace=False)
    _fences(axes, fences, some, np.full(len(fences.x_lo), FAINT, object), 0.5, 1000)
    lines = [
        np.column_stack([tracks.x[mine], tracks.y[mine]]) / 1000
        for mine in (tracks.vehicle == one for one in np.unique(tracks.vehicle))
    ]
    axes.add_collection(LineCollection(lines, colors=DARK, linewidths=0.9))
    rows = np.flatnonzero(of_tracks)
    rows = rng.choice(rows, min(POINTS, len(rows)), replace=False)
    colours = np.where(crossings.entered[rows], BLUE, VERMILION)
    axes.scatter(crossings.x[rows] / 1000, crossings.y[rows] / 1000, 5, colours, lw=0, zorder=3)
    axes.add_patch(
        Rectangle(
            (corner[0] / 1000, corner[1] / 1000),
            NEAR / 1000,
            NEAR / 1000,
            fill=False,
            ec="black",
            lw=2.2,
            zorder=4,
        )
    )
    axes.set_aspect("equal", adjustable="box")
    axes.set_xlim(-0.3, 30.3)
    axes.set_ylim(-0.3, 30.3)
    axes.set_title(f"The city: {short(len(some))} of the fences, {len(lines)} vehicles' tracks")
    axes.set_xlabel("km")
    axes.set_ylabel("km")


def _near(
    axes: Axes,
    fences: Fences,
    colours: npt.NDArray[np.object_],
    tracks: Tracks,
    crossings: Crossings,
    of_tracks: Bools,
    corner: tuple[float, float],
) -> None:
    x, y = corner
    _fences(axes, fences, np.flatnonzero(_touching(fences, x, y)), colours, 1.0, 1)
    for one in np.unique(tracks.vehicle[_within(tracks.x, tracks.y, x, y)]):
        mine = tracks.vehicle == one
        axes.plot(tracks.x[mine], tracks.y[mine], color=DARK, lw=1.1, marker=".", ms=2.5)
    there = of_tracks & _within(crossings.x, crossings.y, x, y)
    for entered, colour, marker in ((True, BLUE, "o"), (False, VERMILION, "s")):
        mine = there & (crossings.entered == entered)
        axes.scatter(
            crossings.x[mine], crossings.y[mine], 32, colour, marker=marker, lw=0, zorder=3
        )
    axes.set_aspect("equal", adjustable="box")
    axes.set_xlim(x, x + NEAR)
    axes.set_ylim(y, y + NEAR)
    ticks = np.arange(0, NEAR + 1, 100)
    axes.set_xticks(x + ticks, [f"{tick:g}" for tick in ticks])
    axes.set_yticks(y + ticks, [f"{tick:g}" for tick in ticks])
    axes.set_title("In the black square: all fences, every second")
    axes.set_xlabel("m")
    what = [
        Line2D([], [], color=DARK, marker=".", ms=4, label="track"),
        Line2D([], [], color=BLUE, marker="o", lw=0, label="enter"),
        Line2D([], [], color=VERMILION, marker="s", lw=0, label="exit"),
        Line2D([], [], color=GREY, label="fence"),
        Line2D([], [], color=GREEN, label="added"),
        Line2D([], [], color=ORANGE, label="removed"),
    ]
    axes.legend(
        handles=what,
        loc="upper center",
        bbox_to_anchor=(0.48, -0.085),
        ncols=6,
        columnspacing=1.0,
        handlelength=1.3,
        handletextpad=0.5,
    )


def _fences(
    axes: Axes,
    fences: Fences,
    rows: I64,
    colours: npt.NDArray[np.object_],
    width: float,
    unit: float,
) -> None:
    boxes = [
        Rectangle((x / unit, y / unit), (x_hi - x) / unit, (y_hi - y) / unit)
        for x, x_hi, y, y_hi in zip(
            fences.x_lo[rows], fences.x_hi[rows], fences.y_lo[rows], fences.y_hi[rows], strict=True
        )
    ]
    edges = list(colours[rows])
    axes.add_collection(PatchCollection(boxes, facecolors="none", edgecolors=edges, lw=width))


def _counts(axes: Axes, enters: I64, exits: I64, added: Change, removed: Change) -> None:
    edges = np.arange(len(enters) + 1)
    axes.stairs(enters, edges, color=BLUE, lw=1.8, label="enters", baseline=None)
    axes.stairs(exits, edges, color=VERMILION, lw=1.8, label="exits", baseline=None)
    top = max(int(enters.max()), int(exits.max()), 1) * 1.15
    for change, colour, told in ((added, GREEN, "added"), (removed, ORANGE, "removed")):
        axes.axvline(change.batch, color=colour, lw=1.5, ls="--")
        axes.annotate(
            f"{len(change.ids):,} fences {told}: from batch {change.batch}",
            (change.batch, 0.95),
            xycoords=("data", "axes fraction"),
            xytext=(6, 0),
            textcoords="offset points",
            va="top",
            color=colour,
        )
    axes.set_ylim(0, top)
    axes.set_xlim(0, len(enters))
    axes.set_title("Enters and exits in a batch; in the first, vehicles enter what they begin in")
    axes.set_xlabel("batch")
    axes.set_ylabel("crossings")
    axes.legend(loc="lower right", ncols=2)
    short_numbers(axes)
