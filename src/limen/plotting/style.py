"""How all pictures look: light, colour-blind-safe (Okabe and Ito), readable at 1200 x 1000 pixels."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

BLUE, ORANGE, GREEN, VERMILION, GREY = "#0072B2", "#E69F00", "#009E73", "#D55E00", "#5F6B76"

_SETTINGS: dict[Any, Any] = {
    "figure.facecolor": "white",
    "axes.facecolor": "#FBFBFC",
    "axes.edgecolor": "#B8BEC5",
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#E4E7EA",
    "grid.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.labelcolor": "#2B3138",
    "text.color": "#2B3138",
    "xtick.color": "#5F6B76",
    "ytick.color": "#5F6B76",
    "font.family": "DejaVu Sans",
    "font.size": 11,
    "axes.titlesize": 11.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "legend.frameon": False,
    "svg.hashsalt": "limen",
}


@contextmanager
def style() -> Iterator[None]:
    with mpl.rc_context(_SETTINGS):
        yield


def short_numbers(axes: Axes) -> None:
    """1,200,000 as 1.2M on the vertical axis; counts have no fractions."""
    axes.yaxis.set_major_formatter(lambda value, _: short(value))


def short(value: float) -> str:
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:g}{letter}"
    return f"{value:g}"


def heading(figure: Figure, title: str, below: str = "") -> None:
    """A title at the left edge, with a line of facts under it; the panels get the rest."""
    figure.subplots_adjust(left=0.075, right=0.925, top=0.885, bottom=0.065, hspace=0.22)
    figure.text(0.02, 0.98, title, fontsize=15, weight="bold", va="top")
    figure.text(0.02, 0.95, below, fontsize=11, va="top", color=GREY)
