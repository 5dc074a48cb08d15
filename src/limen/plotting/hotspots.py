"""A picture of hotspots: the queries in their groups, the groups' sizes, and how the hotspots moved.

Three panels over one axis of values. The ranges: a sample of every hotspot, one colour each, over the
line of its stabbing point, and of the scattered queries. The sizes: every group at its point, with the
lines above which one becomes hot and below which it ceases to be. The moves: time runs upwards, and every
hotspot of the time is a dot at its point, the larger the more queries it has.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure

from limen.engine.hotspots import HotspotTracker
from limen.model import LimenError, QuerySet
from limen.plotting.queries import View, label_axis, view_of
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

I64 = npt.NDArray[np.int64]

COLOURS = (BLUE, ORANGE, GREEN, VERMILION, "#CC79A7", "#56B4E9")
MOMENTS = 200  # times at which the hotspots are looked at
DRAWN = 30  # ranges of a hotspot, at most
HOTTEST = 24  # hotspots whose ranges are drawn, at most
SCATTERED = 150  # scattered ranges


class Step(NamedTuple):
    """A change of the query set, and the time to write at it."""

    at: int
    removed: pa.Array
    added: QuerySet


def steps_of_queries(queries: QuerySet) -> Iterator[Step]:
    """As if they came in their order, some at a time."""
    none = queries.ids.slice(0, 0)
    for rows in np.array_split(np.arange(len(queries)), min(MOMENTS, max(1, len(queries)))):
        yield Step(int(rows[-1]) + 1 if len(rows) else 0, none, queries.take(rows))


class Moment(NamedTuple):
    at: int
    points: I64
    shares: npt.NDArray[np.float64]


def draw(
    steps: Iterable[Step], queries: QuerySet, on: str, alpha: float, path: Path, time: str
) -> str:
    """Play the steps, which lead to the queries, and draw; returns a sentence on what is drawn.

    `time` says what the steps' times are.
    """
    tracker = HotspotTracker(queries.take([]), on, alpha=alpha)
    moments = []
    for step in steps:
        tracker.remove(step.removed)
        tracker.add(step.added)
        hot = tracker.hot()
        points = tracker.inside(hot.group)
        moments.append(Moment(step.at, points, hot.size / max(1, len(tracker))))
    if not len(tracker):
        raise LimenError(f"no query constrains {on}, so there is nothing to draw")
    groups, hot = tracker.groups(), tracker.hot()
    share = 100 * hot.size.sum() / len(tracker)
    told = (
        f"{len(hot.group):,} of {len(groups.group):,} groups are hotspots and hold {share:.3g} % of "
        f"{len(tracker):,} queries on {on}"
    )
    view = view_of(on, tracker.kind, *tracker.all_ranges())
    with style():
        figure = Figure(figsize=(12, 11), dpi=100)
        FigureCanvasAgg(figure)
        moved = tracker.moves
        heading(
            figure,
            f"Hotspots of {on}: queries with a value in common",
            f"{told}; {moved.promotions:,} promoted and {moved.demotions:,} demoted on the way",
        )
        panels = figure.subplots(3, 1, sharex=True, height_ratios=(1.3, 1, 1.1))
        colours = {group: COLOURS[i % len(COLOURS)] for i, group in enumerate(hot.group.tolist())}
        _ranges(panels[0], view, tracker, colours)
        _sizes(panels[1], view, tracker, colours, alpha)
        _moves(panels[2], view, moments, time)
        label_axis(panels[2], view)
        figure.savefig(path)
    return told


def _ranges(axes: Axes, view: View, tracker: HotspotTracker, colours: dict[int, str]) -> None:
    """The ranges of a group lie one above the other, those that begin first lowest."""
    hot, all_groups = tracker.hot(), tracker.groups()
    hottest = hot.group[np.argsort(-hot.size, kind="stable")[:HOTTEST]]
    height = 0
    for group in hot.group[np.isin(hot.group, hottest)].tolist():
        lo, hi = tracker.ranges(group)
        some = np.unique(np.linspace(0, len(lo) - 1, DRAWN).astype(np.int64))
        _lines(axes, view, lo[some], hi[some], height, colours[group], 1.4)
        point = view.positions(tracker.inside(np.array([group])))
        axes.plot([point[0]] * 2, [height - 2, height + len(some) + 1], color="black", lw=1.2)
        height += len(some) + 6
    scattered = all_groups.group[~np.isin(all_groups.group, hot.group)]
    if len(scattered):
        rng = np.random.default_rng(0)
        chosen = rng.choice(scattered, min(SCATTERED, len(scattered)), replace=False)
        ends = [tracker.ranges(group) for group in chosen.tolist()]
        lo, hi = np.array([[one[0][0], one[1][0]] for one in ends]).T
        order = np.argsort(lo, kind="stable")
        _lines(axes, view, lo[order], hi[order], height, GREY, 0.8)
        height += len(order)
    drawn = f" (of the {HOTTEST} largest)" if len(hot.group) > HOTTEST else ""
    axes.set_title(f"Ranges of the hotspots{drawn}, with their points; grey: of scattered queries")
    axes.set_ylim(-3, height + 3)
    axes.set_yticks([])


def _lines(
    axes: Axes, view: View, lo: I64, hi: I64, height: int, colour: str, width: float
) -> None:
    begin = view.positions(np.clip(lo, view.first, view.last))
    end = view.positions(np.clip(hi, view.first, view.last))
    at = height + np.arange(len(lo))
    segments = np.stack([np.stack([begin, at], 1), np.stack([end, at], 1)], 1)
    axes.add_collection(LineCollection(list(segments), colors=colour, linewidths=width, alpha=0.85))
    axes.plot(begin, at, ".", color=colour, ms=1.5 * width)


def _sizes(
    axes: Axes, view: View, tracker: HotspotTracker, colours: dict[int, str], alpha: float
) -> None:
    groups = tracker.groups()
    points, hot = view.positions(tracker.inside(groups.group)), np.isin(groups.group, list(colours))
    axes.plot(points[~hot], groups.size[~hot], ".", color=GREY, ms=4, alpha=0.6)
    for group, point, size in zip(
        groups.group[hot].tolist(), points[hot], groups.size[hot].tolist(), strict=True
    ):
        axes.vlines(point, 0.5, size, color=colours[group], lw=1.5)
        axes.plot(point, size, "o", color=colours[group], ms=6)
    n = len(tracker)
    least, most = 0.7, 2 * max(float(groups.size.max()), alpha * n)
    for level, name, line, side in (
        (alpha * n, "becomes\nhot", "-", "bottom"),
        (alpha * n / 2, "ceases\nto be", ":", "top"),
    ):
        axes.axhline(level, color=VERMILION, lw=1.1, ls=line)
        if level > least:  # beside the panel, where no group is
            axes.annotate(
                name,
                (1, level),
                (5, 0),
                xycoords=axes.get_yaxis_transform(),
                textcoords="offset points",
                va=side,
                fontsize=10,
                color=VERMILION,
            )
    axes.set_yscale("log")
    axes.set_ylim(least, most)
    axes.set_title(
        f"Size of every group, at its stabbing point: hot from {100 * alpha:g} % of the queries on, "
        f"until less than {50 * alpha:g} %"
    )
    axes.set_ylabel("queries")
    short_numbers(axes)
    between = {2, 5, 20, 50} if most < 100 else set()  # said besides the powers of ten
    axes.yaxis.set_minor_formatter(lambda x, _: short(x) if round(x, 6) in between else "")


def _moves(axes: Axes, view: View, moments: list[Moment], time: str) -> None:
    at = np.repeat([moment.at for moment in moments], [len(one.points) for one in moments])
    points = np.concatenate([moment.points for moment in moments])
    shares = np.concatenate([moment.shares for moment in moments])
    inside = (points >= view.first) & (points <= view.last)
    sizes = 6 + 400 * shares[inside]
    axes.scatter(
        view.positions(points[inside]),
        at[inside],
        s=sizes,
        color=BLUE,
        alpha=0.45,
        lw=0,
        clip_on=False,
    )
    axes.margins(y=0.1)  # for the largest dots
    axes.set_title("How they moved: the hotspots at every time, the larger the more queries")
    axes.set_ylabel(time)
    short_numbers(axes)
