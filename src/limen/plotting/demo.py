"""The demo's picture: throughput, what became of the queries that changed, how many cover each price."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from limen.plotting.style import (
    BLUE,
    GREEN,
    ORANGE,
    VERMILION,
    heading,
    short,
    short_numbers,
    style,
)

MESH = 1200
I64 = npt.NDArray[np.int64]
F64 = npt.NDArray[np.float64]


class Batch(Protocol):
    @property
    def began(self) -> float: ...
    @property
    def seconds(self) -> float: ...
    @property
    def events(self) -> int: ...
    @property
    def matches(self) -> int: ...


class PriceRanges(Protocol):
    @property
    def symbol(self) -> npt.NDArray[np.int32]: ...
    @property
    def lo(self) -> F64: ...
    @property
    def hi(self) -> F64: ...


def draw(
    batches: Sequence[Batch],
    added: tuple[int, I64],
    removed: tuple[int, I64],
    queries: PriceRanges,
    path: Path,
) -> None:
    """`added`, `removed`: the first batch that saw the change, and by batch how many matches the queries
    had that it added or removed."""
    start = batches[0].began
    edges = np.array([*(b.began for b in batches), batches[-1].began + batches[-1].seconds]) - start
    events, matches = (np.array([getattr(b, n) for b in batches]) for n in ("events", "matches"))
    took = float(edges[-1])
    with style():
        figure = Figure(figsize=(12, 10), dpi=100)
        FigureCanvasAgg(figure)
        heading(
            figure,
            f"{len(queries.lo):,} standing queries over a stream of trades on Spark",
            f"{events.sum():,} events, {matches.sum():,} matches in {took:.0f} s, from the source to "
            f"the Delta table: {short(round(events.sum() / took, -3))} events/s, "
            f"{short(round(matches.sum() / took, -4))} matches/s",
        )
        figure.subplots_adjust(hspace=0.36, top=0.895)
        speed, changed, covered = figure.subplots(3, 1, height_ratios=(3, 2.4, 3))
        _speed(speed, edges, events, matches)
        _changed(changed, edges, added, removed)
        for axes in (speed, changed):
            axes.set_xlim(0, took)
            for (batch, _), colour in ((added, GREEN), (removed, VERMILION)):
                axes.axvline(edges[batch], color=colour, lw=1.5, ls="--")
        _covered(covered, queries)
        figure.savefig(path)


def _speed(axes: Axes, edges: F64, events: I64, matches: I64) -> None:
    rates = events / np.diff(edges)
    axes.stairs(rates, edges, fill=True, color=BLUE, alpha=0.18)
    axes.stairs(rates, edges, color=BLUE, lw=1.6)
    axes.set_ylim(0, rates.max() * 1.12)
    axes.set_title("Throughput, batch by batch")
    axes.set_ylabel("events/s")
    short_numbers(axes)
    an_event = max(matches.sum(), 1) / events.sum()
    right = axes.secondary_yaxis(
        "right", functions=(lambda y: y * an_event, lambda y: y / an_event)
    )
    right.set_ylabel(f"matches/s, at {an_event:.1f} an event")
    right.yaxis.set_major_formatter(lambda value, _: short(value))


def _changed(axes: Axes, edges: F64, added: tuple[int, I64], removed: tuple[int, I64]) -> None:
    top = max(added[1].max(), removed[1].max(), 1) * 1.3
    for (batch, counts), colour, told in (
        (added, GREEN, "added"),
        (removed, VERMILION, "removed"),
    ):
        axes.stairs(counts, edges, color=colour, lw=1.8, baseline=None)
        axes.annotate(
            f"{told}: from batch {batch}",
            (edges[batch], 0.95),
            xycoords=("data", "axes fraction"),
            xytext=(6, 0),
            textcoords="offset points",
            va="top",
            color=colour,
        )
    axes.set_ylim(-0.03 * top, top)
    axes.set_title(
        "Matches in a batch: of the queries that were added, and of those that were removed"
    )
    axes.set_xlabel("seconds since the stream began")
    axes.set_ylabel("matches")
    short_numbers(axes)


def _covered(axes: Axes, queries: PriceRanges) -> None:
    mesh = np.geomspace(queries.lo.min(), queries.hi.max(), MESH)
    named = queries.symbol >= 0
    for mask, colour, told in (
        (named, BLUE, "with a symbol"),
        (~named, ORANGE, "for any symbol"),
    ):
        depth = covering(mesh, queries.lo[mask], queries.hi[mask])
        axes.fill_between(mesh, depth, color=colour, alpha=0.15, step="mid", lw=0)
        axes.step(mesh, depth, where="mid", color=colour, lw=1.3, label=f"queries {told}")
    axes.set_xscale("log")
    axes.set_yscale("symlog", linthresh=10)
    axes.set_ylim(bottom=0)
    axes.set_xlim(mesh[0], mesh[-1])
    axes.set_title("How many queries have a range that covers the price")
    axes.set_xlabel("price")
    axes.set_ylabel("queries")
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.legend(loc="upper left")
    short_numbers(axes)


def covering(mesh: F64, lo: F64, hi: F64) -> I64:
    """How many of the closed ranges contain each value."""
    begun = np.searchsorted(np.sort(lo), mesh, "right")
    ended = np.searchsorted(np.sort(hi), mesh, "left")
    return begun - ended
