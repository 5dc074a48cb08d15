"""The demo's picture: throughput batch by batch, and how many queries cover each price."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import numpy as np
import numpy.typing as npt
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from limen.plotting.style import (
    BLUE,
    GREEN,
    ORANGE,
    VERMILION,
    heading,
    short_numbers,
    style,
)

MESH = 1200


class PriceRanges(Protocol):
    @property
    def symbol(self) -> npt.NDArray[np.int32]: ...
    @property
    def lo(self) -> npt.NDArray[np.float64]: ...
    @property
    def hi(self) -> npt.NDArray[np.float64]: ...


def draw(
    rates: Sequence[float],
    found: Sequence[int],
    seconds: Sequence[float],
    adds_at: int,
    removes_at: int,
    queries: PriceRanges,
    path: Path,
) -> None:
    with style():
        figure = Figure(figsize=(12, 10), dpi=100)
        FigureCanvasAgg(figure)
        heading(
            figure,
            f"{len(queries.lo):,} standing queries, {len(rates)} batches of trades",
            f"{sum(found):,} matches in {sum(seconds):.1f} s of matching",
        )
        above, below = figure.subplots(2, 1)
        batches = np.arange(1, len(rates) + 1)
        matches = np.array(found) / np.array(seconds)
        above.plot(batches, matches, "o-", color=ORANGE, lw=2, ms=4, label="matches/s")
        above.plot(batches, rates, "o-", color=BLUE, lw=2, ms=4, label="events/s")
        above.set_yscale("log")
        above.set_xlim(0.5, len(rates) + 0.5)
        least, most = min(*rates, *matches), max(*rates, *matches)
        above.set_ylim(max(least, 1) / 3, most * 4)
        for at, colour, told in (
            (adds_at, GREEN, "queries added"),
            (removes_at, VERMILION, "queries removed"),
        ):
            above.axvline(at - 0.5, color=colour, lw=1.5, ls="--")
            above.annotate(
                told,
                (at - 0.5, 0.97),
                xycoords=("data", "axes fraction"),
                xytext=(5, 0),
                textcoords="offset points",
                va="top",
                color=colour,
            )
        above.set_title("Throughput of matching")
        above.set_xlabel("batch")
        above.set_ylabel("per second")
        above.xaxis.set_major_locator(MaxNLocator(integer=True))
        above.legend(loc="lower right", ncols=2)
        short_numbers(above)

        mesh = np.geomspace(queries.lo.min(), queries.hi.max(), MESH)
        named = queries.symbol >= 0
        for mask, colour, told in (
            (named, BLUE, "with a symbol"),
            (~named, ORANGE, "for any symbol"),
        ):
            depth = covering(mesh, queries.lo[mask], queries.hi[mask])
            below.fill_between(mesh, depth, color=colour, alpha=0.15, step="mid", lw=0)
            below.step(mesh, depth, where="mid", color=colour, lw=1.3, label=f"queries {told}")
        below.set_xscale("log")
        below.set_yscale("symlog", linthresh=10)
        below.set_ylim(bottom=0)
        below.set_xlim(mesh[0], mesh[-1])
        below.set_title("How many queries have a range that covers the price")
        below.set_xlabel("price")
        below.set_ylabel("queries")
        below.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
        below.legend(loc="upper left")
        short_numbers(below)
        figure.savefig(path)


def covering(
    mesh: npt.NDArray[np.float64], lo: npt.NDArray[np.float64], hi: npt.NDArray[np.float64]
) -> npt.NDArray[np.int64]:
    """How many of the closed ranges contain each value."""
    begun = np.searchsorted(np.sort(lo), mesh, "right")
    ended = np.searchsorted(np.sort(hi), mesh, "left")
    return begun - ended
