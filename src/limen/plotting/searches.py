"""How the four kinds of LCI find the lists over one value: the bits or heads of lists that they read."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import PatchCollection
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Polygon, Rectangle

from limen.indexes import create
from limen.indexes.bounded import Paper
from limen.indexes.registry import OVER_A_DOMAIN
from limen.plotting.pieces import (
    DIGIT,
    FAINT,
    INK,
    LEFT,
    OVER,
    RIGHT,
    WIDEST,
    WIDTH,
    Scene,
    counted,
    some_queries,
    two_titles,
)
from limen.plotting.style import BLUE, GREY, style

SEARCHED = 40  # queries besides the one that is drawn
STRIP, STRIP_GAP, STRIP_HEAD, STRIP_FOOT = 30, 66, 138, 34
WASTE = "#F2C79A"
LCI = "lci"


class Segment(NamedTuple):
    """The constructs of LCI as a search sees them, by label."""

    levels: int
    least: int  # label of the covering segment: below 0 if the value is one of the first
    greatest: int
    active: npt.NDArray[np.bool_]  # its list is not empty
    over: npt.NDArray[np.bool_]  # it covers the value

    @property
    def bits(self) -> int:
        """Of a clipped bitmap."""
        return self.greatest - self.least + 1

    @property
    def labels(self) -> range:
        return range(max(0, self.least), self.greatest + 1)


def segment_of(scene: Scene) -> Segment:
    """With the query and some random ones in."""
    assert scene.length
    closed = int(scene.closed)
    index = create(LCI, domain=scene.domain, length=scene.length, ends=scene.ends)
    assert isinstance(index, Paper)
    found = OVER_A_DOMAIN[LCI].constructs(len(scene.domain), scene.length, closed)
    active = np.zeros(len(found), np.bool_)
    for first, last in np.column_stack(some_queries(scene, SEARCHED)).tolist():
        pieces = index.pieces(first, last + 1 - closed)
        active[[label for label, _, _ in pieces]] = True
    at = scene.at - scene.domain.start
    over = (found[:, 1] <= at) & (at <= found[:, 2])
    levels = scene.length.bit_length()
    least = (at - scene.length + 1 - closed) * levels + levels - 1
    return Segment(levels, least, (at + 1) * levels - 1, active, over)


def draw(scene: Scene, path: Path) -> None:
    """What the four kinds of LCI read for one value; PNG or SVG by the path's extension."""
    found = segment_of(scene)
    every, near = range(len(found.active)), found.labels
    total = STRIP_HEAD + 4 * STRIP + 3 * STRIP_GAP + STRIP_FOOT
    hits = counted(int((found.active & found.over).sum()), "list")
    read = int(found.over.sum())
    colours = {
        "lci": [BLUE if on else FAINT for on in found.active & found.over],
        "lci-bv": [
            (BLUE if over else WASTE) if on else FAINT
            for on, over in zip(found.active, found.over, strict=True)
        ],
        "lci-bv-dt": [
            (BLUE if on else OVER) if over else "white"
            for on, over in zip(found.active, found.over, strict=True)
        ],
    }
    divided = counted(int(found.active[near.start : near.stop].sum()), "division")
    with style():
        figure = Figure(figsize=(WIDTH / 100, total / 100), dpi=100)
        FigureCanvasAgg(figure)
        _heading(figure, scene, total)
        a, b, c, d = (_strip(figure, i, every if i == 0 else near, total) for i in range(4))
        _cells(a, every, colours["lci"])
        _cells(b, near, colours["lci"], {label: str(label) for label in near})
        _cells(c, near, colours["lci-bv"], {label: str(label) for label in near})
        told = {label: f"+{label - found.least}" for label in near if found.over[label]}
        _cells(d, near, colours["lci-bv-dt"], told)
        two_titles(a, "lci", "a bit for every construct", f"{len(every):,} bits read, {hits} found")
        two_titles(
            b, "lci-bc", "the covering segment only", f"{found.bits:,} bits read, {hits} found"
        )
        two_titles(
            c,
            "lci-bv",
            "no bits: the heads of the lists, and a division where a list is not empty",
            f"{len(near):,} heads read, {divided}, {hits} found",
        )
        two_titles(
            d,
            "lci-bv-dt",
            "the heads at the distances of the table",
            f"{read} heads read, {hits} found",
        )
        _zoom(figure, a, b, near)
        for axes in (b, c, d):
            _beginnings(axes, found, scene, labelled=axes is d)
        figure.savefig(path)


def _strip(figure: Figure, number: int, labels: range, total: int) -> Axes:
    top = STRIP_HEAD + number * (STRIP + STRIP_GAP)
    axes = figure.add_axes(
        (LEFT / WIDTH, 1 - (top + STRIP) / total, 1 - (LEFT + RIGHT) / WIDTH, STRIP / total)
    )
    axes.set_xlim(labels.start, labels.stop)
    axes.set_ylim(0, 1)
    axes.set_xticks([])
    axes.set_yticks([])
    axes.grid(False)
    axes.set_facecolor("white")
    axes.spines[:].set_visible(False)
    return axes


def _heading(figure: Figure, scene: Scene, total: int) -> None:
    figure.text(
        20 / WIDTH,
        1 - 18 / total,
        f"How LCI finds the lists over {scene.value:g}",
        fontsize=15,
        weight="bold",
        va="top",
    )
    values = scene.told(scene.domain[0], scene.domain[-1] + (not scene.closed))
    figure.text(
        20 / WIDTH,
        1 - 50 / total,
        f"{SEARCHED + 1} queries over {values}, constructs up to length {scene.length}; a box is a "
        "construct, in the order of labels",
        fontsize=11,
        va="top",
        color=GREY,
    )
    figure.legend(
        handles=[
            Patch(color=BLUE, label="over the value, with queries: found"),
            Patch(color=WASTE, label="with queries, but not over the value"),
            Patch(color=OVER, label="over the value, without queries"),
            Patch(color=FAINT, label="read in vain"),
        ],
        loc="upper left",
        bbox_to_anchor=(20 / WIDTH, 1 - 74 / total),
        ncols=4,
        fontsize=10,
        borderpad=0,
        borderaxespad=0,
        handlelength=1.6,
        columnspacing=2.2,
    )


def _cells(
    axes: Axes, labels: range, colours: list[str], told: dict[int, str] | None = None
) -> None:
    room = (WIDTH - LEFT - RIGHT) / len(labels)
    gap = max(0.08, 1.5 / room) if len(labels) <= WIDEST else 0.0
    boxes = [Rectangle((label + gap / 2, 0), 1 - gap, 1) for label in labels]
    drawn = [colours[label] for label in labels]
    axes.add_collection(PatchCollection(boxes, facecolor=drawn, lw=0, zorder=2))
    for label, text in (told or {}).items():
        if room > DIGIT * len(text) + 4:
            ink = "white" if colours[label] == BLUE else INK
            axes.text(
                label + 0.5, 0.5, text, color=ink, fontsize=8.5, ha="center", va="center_baseline"
            )


def _zoom(figure: Figure, above: Axes, below: Axes, near: range) -> None:
    """From the covering segment among all labels to the strip that has nothing else."""
    corners = []
    for axes, y, order in ((above, 0, 1), (below, 1, -1)):
        for x in (near.start, near.stop)[::order]:
            at = axes.transData.transform((x, y))
            corners.append(figure.transFigure.inverted().transform(at))
    figure.add_artist(
        Polygon(
            corners, closed=True, fc="#F1F4F7", ec="none", transform=figure.transFigure, zorder=0
        )
    )


def _beginnings(axes: Axes, found: Segment, scene: Scene, *, labelled: bool) -> None:
    """Where the constructs that begin at the next value begin."""
    near = found.labels
    for begin in range(near.start // found.levels, near.stop // found.levels):
        first = max(near.start, begin * found.levels)
        axes.plot([first] * 2, [-0.25, 0], color=GREY, lw=1, clip_on=False)
        room = (WIDTH - LEFT - RIGHT) / len(near) * ((begin + 1) * found.levels - first)
        if labelled and room > 24:
            axes.annotate(
                f"{'begin at ' if room > 80 else ''}{begin + scene.domain.start}",
                (first, 0),
                xytext=(3, -12),
                textcoords="offset points",
                fontsize=9,
                color=GREY,
                annotation_clip=False,
            )
