"""A picture of standing queries on one attribute: the ranges, the depth, and the index's cells.

Three panels over one axis of values. The ranges: a sample, sorted by where they begin. The depth: how
many queries contain each value, counted by the index itself on a fine mesh. The cells: how wide they
are and how many queries each holds; the grid is fitted to the queries, so cells are narrow where
queries crowd. What lies beyond the drawn values (a few far ends, open ends) runs to the edge.
"""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as pt
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import LineCollection
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter, date2num
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from limen.indexes.cei import CEI
from limen.model import (
    INT64_MAX,
    INT64_MIN,
    LimenError,
    QuerySet,
    extremes,
    ordinals,
    value_of,
    values_of,
)
from limen.plotting.style import BLUE, GREEN, ORANGE, VERMILION, heading, short_numbers, style

SAMPLE = 400  # ranges drawn
MESH = 4000  # values at which depth is counted
FINE = 200_000  # ordinals at which cells are looked up
BINS = 300
CALENDAR = date2num([datetime(1, 1, 1), datetime(9999, 12, 31)])  # type: ignore[no-untyped-call]
HUGE = 1e300  # values beyond are drawn at the edge: their differences overflow
MARGIN = 0.05  # of the axis, where ranges run on beyond it
LOG_SPAN = 300  # a log axis where the middle of the ends spans this factor

F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]


class View(NamedTuple):
    """What is drawn: the values between two ordinals, on a linear or a log axis."""

    attribute: str
    kind: pa.DataType
    first: int
    last: int
    log: bool

    def positions(self, found: I64) -> F64:
        """Where ordinals lie on the axis."""
        at = values_of(found, self.kind)
        if not pt.is_timestamp(self.kind):
            return at
        return at / 86_400  # matplotlib counts days since 1970

    def mesh(self, n: int) -> I64:
        """Ordinals evenly over the axis, both ends in."""
        if not pt.is_floating(self.kind) and self.last - self.first < n:
            return np.arange(self.first, self.last + 1)
        low, high = values_of(np.array([self.first, self.last]), self.kind)
        at = np.geomspace(low, high, n) if self.log else np.linspace(low, high, n)
        found = np.clip(nearest(at, self.kind), self.first, self.last)
        found[0], found[-1] = self.first, self.last
        return np.unique(found)


def nearest(at: F64, kind: pa.DataType) -> I64:
    """Ordinals near positions of `values_of`."""
    if pt.is_floating(kind):
        return ordinals(pa.array(at).cast(kind), kind)[0]
    if pt.is_uint64(kind):
        shifted: I64 = np.clip(at, 0, 2.0**64 - 2048).astype(np.uint64).view(np.int64)
        return shifted ^ np.int64(INT64_MIN)
    scale = 1.0
    if pt.is_decimal(kind):
        scale = 10.0**kind.scale
    elif pt.is_timestamp(kind):
        scale = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}[kind.unit]
    return np.clip(np.rint(at * scale), -(2.0**63), 2.0**63 - 1024).astype(np.int64)


def attribute_of(queries: QuerySet, asked: str | None) -> tuple[str, str]:
    """The attribute to draw, and why that one if nobody asked."""
    counts = {name: int(np.count_nonzero(_constrained(queries, name))) for name in queries.lo}
    if asked is not None:
        if asked not in counts:
            there = ", ".join(counts) or "none"
            kind = "takes equality only" if asked in queries.keys else "is in no query's ranges"
            raise LimenError(f"--on: {asked!r} {kind}; attributes with ranges: {there}")
        return asked, ""
    if not counts:
        raise LimenError("no query has a range, so there is nothing to draw")
    chosen = max(counts, key=lambda name: counts[name])
    if len(counts) == 1:
        return chosen, ""
    return chosen, f" (of {len(counts)} attributes the one that most constrain; --on takes another)"


def draw(queries: QuerySet, attribute: str, path: Path) -> None:
    """Draw the queries that constrain the attribute; PNG or SVG by the path's extension."""
    rows = np.flatnonzero(_constrained(queries, attribute))
    lo, hi = queries.lo[attribute][rows], queries.hi[attribute][rows]
    index = CEI()
    index.build(np.arange(len(rows), dtype=np.int32), lo, hi)
    bytes_per_query = index.nbytes / len(rows)
    shape = index.shape
    view = view_of(attribute, queries.attributes[attribute], lo, hi)
    with style():
        figure = Figure(figsize=(12, 10), dpi=100)
        FigureCanvasAgg(figure)
        of_all = f" of {len(queries):,}" if len(rows) < len(queries) else ""
        heading(
            figure,
            f"{len(rows):,}{of_all} standing queries on {attribute}",
            f"CEI index: {bytes_per_query:,.0f} bytes a query, {_counted(shape['cells'], 'cell')}, "
            f"{_counted(shape['levels'], 'level')}",
        )
        panels = figure.subplots(3, 1, sharex=True, height_ratios=(1.25, 1, 1))
        _ranges(panels[0], view, lo, hi)
        _depth(panels[1], view, index)
        _cells(panels[2], view, index, lo, hi)
        label_axis(panels[2], view)
        figure.savefig(path)


def view_of(attribute: str, kind: pa.DataType, lo: I64, hi: I64) -> View:
    """From the least to the greatest end, without the outermost thousandth if that is far away.

    Infinities are no ends, unless there are no others.
    """
    ends = np.sort(np.concatenate([lo[lo != INT64_MIN], hi[hi != INT64_MAX]]))
    finite = np.isfinite(values_of(ends, kind))
    ends = ends[finite] if finite.any() else ends
    if pt.is_floating(kind):
        huge = min(HUGE, float(np.finfo(kind.to_pandas_dtype()).max) / 2)  # room for margins
        ends = np.clip(ends, *nearest(np.array([-huge, huge]), kind))
    inner = ends[len(ends) // 1000], ends[-1 - len(ends) // 1000]
    whole = values_of(ends[[0, -1]], kind)
    middle = values_of(np.array(inner), kind)
    far = not np.isfinite(whole).all() or np.ptp(whole) > 4 * np.ptp(middle) > 0
    first, last = (int(inner[0]), int(inner[1])) if far else (int(ends[0]), int(ends[-1]))
    low, high = values_of(np.quantile(ends, (0.02, 0.98), method="nearest"), kind)
    least = values_of(np.array([first]), kind)[0]
    log = bool(not _is_time(kind) and least > 0 and high > LOG_SPAN * low)
    beyond = bool((lo < first).any()), bool((hi > last).any())
    first, last = _with_margins(kind, first, last, log, beyond)
    return View(attribute, kind, first, last, log)


def _with_margins(
    kind: pa.DataType, first: int, last: int, log: bool, beyond: tuple[bool, bool]
) -> tuple[int, int]:
    """Room on the sides where ranges run on, and around a single value."""
    smallest, greatest = extremes(kind)
    if first == last:
        return max(first - 1, smallest), min(last + 1, greatest)
    low, high = values_of(np.array([first, last]), kind)
    if log:
        outer = np.array([low * (low / high) ** MARGIN, high * (high / low) ** MARGIN])
    else:
        outer = np.array([low - MARGIN * (high - low), high + MARGIN * (high - low)])
    if not np.isfinite(outer).all():
        return first, last
    least, most = nearest(outer, kind).tolist()
    return (
        max(min(first, least), smallest) if beyond[0] else first,
        min(max(last, most), greatest) if beyond[1] else last,
    )


def _ranges(axes: Axes, view: View, lo: I64, hi: I64) -> None:
    some = np.random.default_rng(0).choice(len(lo), min(SAMPLE, len(lo)), replace=False)
    some = some[np.lexsort((hi[some], lo[some]))]
    starts = view.positions(np.maximum(lo[some], view.first))
    ends = view.positions(np.minimum(hi[some], view.last))
    height = np.arange(len(some))
    left, right = lo[some] < view.first, hi[some] > view.last
    segments = np.stack([np.stack([starts, height], 1), np.stack([ends, height], 1)], 1)
    axes.add_collection(LineCollection(list(segments), colors=BLUE, linewidths=1.6, alpha=0.8))
    # A range may be narrower than a pixel: its beginning is marked.
    axes.plot(starts[~left], height[~left], ".", color=BLUE, ms=2.5)
    edge = view.positions(np.array([view.first, view.last]))
    for mask, at, marker in ((left, edge[0], "<"), (right, edge[1], ">")):
        rows = height[mask]
        axes.plot(np.full(len(rows), at), rows, marker, color=VERMILION, ms=4, clip_on=False)
    drawn = "all" if len(some) == len(lo) else f"a sample of {len(some)}"
    arrows = "; arrows: they run on" if left.any() or right.any() else ""
    axes.set_title(f"Ranges ({drawn}, by their beginning{arrows})")
    axes.set_ylabel("query")
    axes.set_ylim(-0.02 * len(some) - 1, 1.02 * len(some))
    axes.set_yticks([])


def _depth(axes: Axes, view: View, index: CEI) -> None:
    mesh = view.mesh(MESH)
    depth = index.count_many(mesh)
    at = view.positions(mesh)
    axes.fill_between(at, depth, step="mid", color=GREEN, alpha=0.2, lw=0)
    axes.step(at, depth, where="mid", color=GREEN, lw=1.4)
    top = int(depth.argmax())
    axes.plot(at[top], depth[top], "o", color=VERMILION, ms=7)
    on_left = top < 0.7 * len(at)
    axes.annotate(
        f"at most {depth[top]:,}, at {_said(view, int(mesh[top]))}",
        (at[top], depth[top]),
        xytext=(10 if on_left else -10, 4),
        textcoords="offset points",
        ha="left" if on_left else "right",
        color=VERMILION,
    )
    axes.set_ylim(0, max(1.0, 1.18 * float(depth[top])))
    axes.yaxis.set_major_locator(MaxNLocator(6, integer=True))
    axes.set_title("Stabbing depth (queries that contain the value)")
    axes.set_ylabel("queries")
    short_numbers(axes)


def _cells(axes: Axes, view: View, index: CEI, lo: I64, hi: I64) -> None:
    """The width of the cells along the axis, and how many query ends a cell holds."""
    mesh = view.mesh(FINE)
    cells = index.cells_of(mesh).astype(np.int64)
    at = view.positions(mesh)
    edges = (np.geomspace if view.log else np.linspace)(at[0], at[-1], BINS + 1)
    middles = np.sqrt(edges[1:] * edges[:-1]) if view.log else (edges[1:] + edges[:-1]) / 2
    # Cells are numbered in the order of values: what a stretch has of them is a difference.
    passed = np.searchsorted(at, edges, "right").clip(1, len(at)) - 1
    per_bin = np.diff(cells[passed])
    begins = np.append(at[np.flatnonzero(np.diff(cells, prepend=-1))], at[-1])
    around = np.searchsorted(begins[:-1], middles, "right") - 1
    many = per_bin > 16  # then their mean, else the cell in the middle
    width = np.where(many, np.diff(edges) / np.maximum(per_bin, 1), np.diff(begins)[around])
    ends = np.sort(view.positions(np.concatenate([lo, hi])))
    in_bin, in_cell = (np.diff(np.searchsorted(ends, marks)) for marks in (edges, begins))
    held = np.where(many, in_bin / np.maximum(per_bin, 1), in_cell[around])

    axes.stairs(width, edges, color=ORANGE, lw=2, baseline=None)
    if width.max() > 20 * width.min():
        axes.set_yscale("log")
    else:
        axes.set_ylim(0, 1.25 * width.max())
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.set_title("Cells of the index: the grid is fitted to where ranges begin and end")
    unit = "days" if _is_time(view.kind) else view.attribute
    axes.set_ylabel(f"width of a cell ({unit})", color="#A66F00")
    other = axes.twinx()
    other.grid(False)
    other.plot(middles, held, ".", color=BLUE, ms=4, alpha=0.8)
    other.set_ylabel("query ends in a cell", color=BLUE)
    other.set_ylim(0, max(4.0, 1.25 * float(np.quantile(held, 0.99))))
    other.spines.right.set_visible(True)


def label_axis(axes: Axes, view: View) -> None:
    low, high = view.positions(np.array([view.first, view.last]))
    if view.log:
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
        axes.set_xlim(low, high)
    else:
        margin = 0.01 * (high - low)
        left, right = low - margin, high + margin
        if _is_time(view.kind):
            left, right = max(left, CALENDAR[0]), min(right, CALENDAR[1])
        axes.set_xlim(left, right)
    if _is_time(view.kind):
        locator = AutoDateLocator()  # type: ignore[no-untyped-call]
        axes.xaxis.set_major_locator(locator)
        formatter = ConciseDateFormatter(locator)  # type: ignore[no-untyped-call]
        axes.xaxis.set_major_formatter(formatter)
    axes.set_xlabel(view.attribute, fontsize=12)


def _said(view: View, found: int) -> str:
    value = value_of(found, view.kind)
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _counted(n: int, what: str) -> str:
    return f"{n:,} {what}" if n == 1 else f"{n:,} {what}s"


def _is_time(kind: pa.DataType) -> bool:
    return bool(pt.is_date32(kind) or pt.is_timestamp(kind))


def _constrained(queries: QuerySet, name: str) -> npt.NDArray[np.bool_]:
    found: npt.NDArray[np.bool_] = (queries.lo[name] != INT64_MIN) | (queries.hi[name] != INT64_MAX)
    return found
