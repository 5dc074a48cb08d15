"""How the indexes of the papers cut one query, and what they look at for one value.

A row for every way to cut; indexes that cut alike share one. All constructs are drawn, on so many tracks
that none lies over another: a value crosses every track once, so the height of a row is the number
of lists that a search may have to look at. The pieces of the query are filled and carry their labels.
An interval skip list has no constructs: its row shows towers and edges, the query's own among them.
`searches.py` draws what a search reads.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import PatchCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle

from limen.indexes import create
from limen.indexes.bounded import Paper
from limen.indexes.is_list import ISList
from limen.indexes.protocol import I64
from limen.indexes.registry import OVER_A_DOMAIN, takes_length
from limen.kernels import is_list
from limen.model import LimenError
from limen.plotting.style import BLUE, GREEN, GREY, ORANGE, VERMILION, style

NAMES = (
    *("ui", "dlist", "sci", "sci-bc", "lci", "lci-bc", "lci-bv", "lci-bv-dt", "cei-plain"),
    ISList.name,
)
WIDEST = 256  # values that can be told apart in a picture
MOST_TRACKS = 48  # else one a length
OTHERS = 12  # queries in the skip list besides the one that is drawn
SEED = 10

INK, FAINT, OVER = "#2B3138", "#E3E7EB", "#9BD5C1"
WIDTH = 1200  # pixels, as is all that follows
LEFT, RIGHT = 45, 25
HEAD, GAP, FOOT, BAR = 122, 42, 42, 24
LABEL = 15  # the height of a piece
DIGIT = 6.3


class Scene(NamedTuple):
    """What is drawn: a query over a domain, and a value; a value has a cell of width 1."""

    domain: range
    length: int | None
    ends: str
    lo: int
    hi: int
    value: float

    @property
    def closed(self) -> bool:
        return self.ends == "closed"

    @property
    def at(self) -> int:
        """The cell of the value."""
        return int(np.floor(self.value))

    @property
    def shift(self) -> float:
        """Where a cell begins: an integer is in the middle of its cell, a unit begins at it."""
        return 0.5 if self.closed else 0.0

    def told(self, lo: int, hi: int) -> str:
        return f"[{lo}, {hi}]" if self.closed else f"[{lo}, {hi})"


class Row(NamedTuple):
    """The constructs of the indexes that cut alike, the tracks they lie on, the query's pieces."""

    names: list[str]
    found: I64  # label, first and last value
    tracks: dict[int, int]  # by label; 0 is the lowest
    room: bool  # to draw all constructs
    pieces: list[tuple[int, int, int]]


class Skips(NamedTuple):
    """An interval skip list: nodes with their heights, edges as level, key, key."""

    nodes: dict[int, int]
    edges: list[tuple[int, int, int]]
    marked: list[tuple[int, int, int]]
    over: list[tuple[int, int, int]]  # where a search for the value looks; a node: twice its key


def scene(
    names: Sequence[str],
    domain: range,
    length: int | None,
    ends: str,
    query: tuple[int, int],
    value: float | None,
) -> Scene:
    """What is asked for, checked: ValueError as the indexes give it, LimenError for the rest."""
    for name in names:
        made = create(name, domain=domain, length=length if takes_length(name) else None, ends=ends)
        if name not in NAMES:
            raise LimenError(
                f"{name} has no constructs that are the same for all queries; "
                f"a picture can show: {', '.join(NAMES)}"
            )
        try:
            made.insert(np.array([0]), np.array([query[0]]), np.array([query[1]]))
        except ValueError as error:
            raise LimenError(str(error).replace("id 0", "the query", 1)) from None
    if len(domain) > WIDEST:
        raise LimenError(f"a picture has room for {WIDEST} values, not for {len(domain):,}")
    lo, hi = query
    if value is None:
        value = (lo + hi) // 2 if ends == "closed" else (lo + hi) / 2
    last = domain[-1] if ends == "closed" else domain.stop
    if not (domain[0] <= value <= last) or value == domain.stop:
        raise LimenError(f"the value {value:g} is not within the domain")
    if ends == "closed" and value != int(value):
        raise LimenError(f"with closed ends values are integers, {value:g} is not")
    if not any(takes_length(name) for name in names):
        length = None
    return Scene(domain, length, ends, lo, hi, value)


# -- what there is to draw -----------------------------------------------------------------------


def rows_of(names: Sequence[str], scene: Scene) -> list[Row]:
    """One for every way to cut."""
    rows: list[Row] = []
    for name in (n for n in NAMES if n in names and n in OVER_A_DOMAIN):
        length = scene.length if takes_length(name) else None
        index = create(name, domain=scene.domain, length=length, ends=scene.ends)
        assert isinstance(index, Paper)
        longest = scene.length if takes_length(name) and scene.length else 1
        found = OVER_A_DOMAIN[name].constructs(len(scene.domain), longest, int(scene.closed))
        found[:, 1:] += scene.domain.start
        alike = [row for row in rows if np.array_equal(row.found, found)]
        if alike:
            alike[0].names.append(name)
        else:
            pieces = index.pieces(scene.lo, scene.hi)
            tracks, room = tracks_of(found, scene.at)
            rows.append(Row([name], found, tracks, room, pieces))
    return rows


def tracks_of(found: I64, value: int) -> tuple[dict[int, int], bool]:
    """A track for each label, the longest constructs on the uppermost; and whether all have room.

    Constructs of one length lie on as many tracks as they cover values, in such an order that those
    over the value make a slope; or if that makes too many tracks, on one, where only those that begin
    at multiples of their length can be drawn. A point has a track apart from the unit at the same
    place.
    """
    seen: Counter[tuple[int, int]] = Counter()
    places = []
    for label, first, last in found.tolist():
        size = last - first + 1
        places.append((label, size, -seen[first, size], (value - first) % size))
        seen[first, size] += 1
    room = len({place[1:] for place in places}) <= MOST_TRACKS
    if not room:
        places = [(label, size, again, 0) for label, size, again, _ in places]
    number = {at: i for i, at in enumerate(sorted({place[1:] for place in places}))}
    return {label: number[size, again, at] for label, size, again, at in places}, room


def some_queries(scene: Scene, others: int) -> tuple[I64, I64]:
    """First and last values: of the query that is drawn, then of random ones."""
    rng = np.random.default_rng(SEED)
    size = len(scene.domain)
    lo = rng.integers(0, size, others + 1) + scene.domain.start
    hi = np.minimum(lo + rng.integers(0, max(1, size // 2), len(lo)), scene.domain[-1])
    lo[0], hi[0] = scene.lo, scene.hi if scene.closed else scene.hi - 1
    return lo, hi


def skips_of(scene: Scene) -> Skips:
    """The list with some random queries and the one that is drawn, which has id 0."""
    lo, hi = some_queries(scene, OTHERS)
    ids = np.roll(np.arange(len(lo), dtype=np.int32), -1)
    most = 2 * len(lo) + 2
    ix = is_list.empty(
        int(scene.closed), nodes=most, slots=most * is_list.MAX_HEIGHT, entries=most**2
    )
    put = is_list.put(ix, ids, lo, hi, 0)
    assert put == len(ids)
    nodes, edges, marked = {}, [], []
    for x in range(1, int(ix.state[is_list.NODES])):
        nodes[int(ix.key[x])] = int(ix.height[x])
        for level in range(int(ix.height[x])):
            at = ix.slot[x] + level
            if ix.forward[at]:
                edge = level, int(ix.key[x]), int(ix.key[ix.forward[at]])
                edges.append(edge)
                if 0 in _list_at(ix, int(ix.marks[at])):
                    marked.append(edge)
    met = nodes.get(scene.at, 0)  # a search that meets its value goes no further down
    over = [edge for edge in edges if edge[1] < scene.at < edge[2] and edge[0] >= met]
    if met:
        over.append((met - 1, scene.at, scene.at))
    return Skips(nodes, edges, sorted(marked, key=lambda edge: edge[1]), over)


def _list_at(ix: is_list.Arrays, entry: int) -> list[int]:
    found = []
    while entry:
        found.append(int(ix.entries[entry, 0]))
        entry = int(ix.entries[entry, 1])
    return found


# -- the picture ---------------------------------------------------------------------------------


def draw(names: Sequence[str], scene: Scene, path: Path) -> None:
    """PNG or SVG by the path's extension."""
    rows = rows_of(names, scene)
    skips = skips_of(scene) if ISList.name in names else None
    heights = [_height(1 + max(row.tracks.values())) for row in rows]
    if skips:
        heights.append(_height(max(skips.nodes.values())))
    total = HEAD + BAR + sum(heights) + GAP * len(heights) + FOOT
    with style():
        figure = Figure(figsize=(WIDTH / 100, total / 100), dpi=100)
        FigureCanvasAgg(figure)
        top = HEAD
        axes = _panel(figure, top, BAR, total, scene)
        _heading(figure, axes, scene, total)
        _query(axes, scene)
        top += BAR + GAP
        for row, height in zip(rows, heights, strict=False):
            axes = _panel(figure, top, height, total, scene)
            _constructs(axes, row, scene, height)
            top += height + GAP
        if skips:
            axes = _panel(figure, top, heights[-1], total, scene)
            _towers(axes, skips, scene, heights[-1])
        axes.tick_params(labelbottom=True)
        figure.savefig(path)


def _height(tracks: int) -> int:
    return (
        tracks * next(px for most, px in ((8, 18), (20, 9), (64, 5), (WIDEST, 2)) if tracks <= most)
        + 6
    )


def _panel(figure: Figure, top: int, height: int, total: int, scene: Scene) -> Axes:
    axes = figure.add_axes(
        (LEFT / WIDTH, 1 - (top + height) / total, 1 - (LEFT + RIGHT) / WIDTH, height / total)
    )
    axes.set_xlim(scene.domain.start - scene.shift, scene.domain.stop - scene.shift)
    wide = max(len(str(scene.domain.start)), len(str(scene.domain.stop))) > 2
    step = next(s for s in (1, 2, 4, 8, 16) if len(scene.domain) <= (24 if wide else 40) * s)
    axes.set_xticks(range(scene.domain.start, scene.domain.stop + (not scene.closed), step))
    axes.set_yticks([])
    axes.tick_params(labelbottom=False, length=0)
    axes.grid(False)
    axes.set_facecolor("white")
    axes.spines[:].set_visible(False)
    axes.axvline(scene.value, color=VERMILION, lw=1.3, zorder=2.5)
    return axes


def _heading(figure: Figure, axes: Axes, scene: Scene, total: int) -> None:
    values = scene.told(scene.domain[0], scene.domain[-1] + (not scene.closed))
    longest = f", constructs up to length {scene.length}" if scene.length else ""
    figure.text(
        20 / WIDTH,
        1 - 18 / total,
        f"One query, {scene.told(scene.lo, scene.hi)}, as each index holds it",
        fontsize=15,
        weight="bold",
        va="top",
    )
    figure.text(
        20 / WIDTH,
        1 - 50 / total,
        f"The values are {values}{longest}; a search for {scene.value:g} looks at the lists that "
        "the red line crosses",
        fontsize=11,
        va="top",
        color=GREY,
    )
    figure.legend(
        handles=[
            Patch(color=BLUE, label="piece of the query, with its label"),
            Patch(fc=BLUE, ec=GREEN, lw=2, label="piece over the value"),
            Patch(color=OVER, label="other constructs over it"),
            Patch(color=FAINT, label="all others"),
            Line2D([], [], color=ORANGE, lw=1.6, ls=(0, (4, 2)), label="guiding post"),
        ],
        loc="upper left",
        bbox_to_anchor=(20 / WIDTH, 1 - 72 / total),
        ncols=5,
        fontsize=10,
        borderpad=0,
        borderaxespad=0,
        handlelength=1.6,
        columnspacing=2.2,
    )


def _query(axes: Axes, scene: Scene) -> None:
    axes.set_ylim(0, 1)
    end = scene.hi + (1 if scene.closed else 0)
    start = scene.lo - scene.shift
    axes.add_patch(
        Rectangle((start, 0.1), end - scene.shift - start, 0.8, color=INK, lw=0, zorder=2)
    )
    axes.annotate(
        "the query",
        (start, 0.5),
        xytext=(8, -1),
        textcoords="offset points",
        color="white",
        va="center",
        fontsize=10,
        zorder=6,
    )
    axes.annotate(
        f"{scene.value:g}",
        (scene.value, 1),
        xytext=(0, 3),
        textcoords="offset points",
        ha="center",
        color=VERMILION,
        weight="bold",
        fontsize=10.5,
        annotation_clip=False,
    )


def _constructs(axes: Axes, row: Row, scene: Scene, height: int) -> None:
    n = 1 + max(row.tracks.values())
    axes.set_ylim(0, n)
    over = {label for label, a, b in row.found.tolist() if a <= scene.at <= b}
    _titles(
        axes,
        _said(row.names, scene, row.room),
        len(row.pieces),
        len(over),
        f"{len(row.found):,} constructs",
    )
    if "cei-plain" in row.names:
        assert scene.length
        for post in range(0, len(scene.domain) + 1, scene.length):
            axes.axvline(
                post + scene.domain.start - scene.shift,
                color=ORANGE,
                lw=1.6,
                ls=(0, (4, 2)),
                ymax=1.04,
                zorder=4,
                clip_on=False,
            )
    thick = 0.8 if height / n > 12 else 0.66
    boxes: dict[str, list[Rectangle]] = {FAINT: [], OVER: []}
    for label, a, b in row.found.tolist():
        if not row.room and (a - scene.domain.start) % (b - a + 1):
            continue
        box = _box(scene, a, b, row.tracks[label] + (1 - thick) / 2, thick)
        boxes[OVER if label in over else FAINT].append(box)
    for colour, drawn in boxes.items():
        axes.add_collection(PatchCollection(drawn, facecolor=colour, lw=0, zorder=2))
    tall = max(thick, min(LABEL / (height / n), 4))
    for label, a, b in row.pieces:
        b = min(b, scene.domain[-1])  # the construct of a lone point may run on
        y = row.tracks[label] + 0.5 - tall / 2
        edge: dict[str, Any] = (
            {"ec": GREEN, "lw": 2.0} if label in over else {"ec": "white", "lw": 0.8}
        )
        axes.add_patch(_box(scene, a, b, y, tall, fc=BLUE, zorder=3, clip_on=False, **edge))
        _label(axes, scene, str(label), (a + b + 1) / 2 - scene.shift, y + tall / 2, b - a + 1)


def _box(scene: Scene, a: int, b: int, y: float, height: float, **look: Any) -> Rectangle:
    gap = 0.04 * max(1.0, len(scene.domain) / 32)
    x = a - scene.shift + gap
    return Rectangle((x, y), b - a + 1 - 2 * gap, height, **look)


def _label(axes: Axes, scene: Scene, text: str, x: float, y: float, cells: float) -> None:
    """The text, or if there is no room for that, the last word, or nothing."""
    room = cells * (WIDTH - LEFT - RIGHT) / len(scene.domain)
    if room <= DIGIT * len(text) + 6:
        text = text.rpartition(" ")[2]
    if room > DIGIT * len(text) + 6:
        axes.text(
            x, y, text, color="white", fontsize=8.5, ha="center", va="center_baseline", zorder=6
        )


def _towers(axes: Axes, skips: Skips, scene: Scene, height: int) -> None:
    top = max(skips.nodes.values())
    axes.set_ylim(0, top)
    _titles(
        axes,
        f"is-list: edges between the ends of queries, {OTHERS} others among them",
        len(skips.marked),
        len(skips.over),
        f"{len(skips.nodes)} nodes",
    )
    half = 0.13 * max(1.0, len(scene.domain) / 48)
    for key, levels in skips.nodes.items():
        axes.add_patch(
            Rectangle(
                (key - half, 0.06),
                2 * half,
                levels - 0.12,
                color=GREY,
                lw=0,
                zorder=4,
                clip_on=False,
            )
        )
    for edge in skips.edges:
        level, a, b = edge
        colour = OVER if edge in skips.over else FAINT
        axes.plot([a, b], [level + 0.5] * 2, color=colour, lw=4, solid_capstyle="butt", zorder=2)
    tall = LABEL / (height / top)
    for edge in skips.marked:
        level, a, b = edge
        look: dict[str, Any] = (
            {"ec": GREEN, "lw": 2.0} if edge in skips.over else {"ec": "white", "lw": 0.8}
        )
        y = level + 0.5 - tall / 2
        axes.add_patch(Rectangle((a + half, y), b - a - 2 * half, tall, fc=BLUE, zorder=3, **look))
        _label(axes, scene, f"level {level}", (a + b) / 2, y + tall / 2, b - a - 2 * half)
    for level, a, b in skips.over:
        if a == b:
            axes.add_patch(
                Rectangle((a - half, 0.06), 2 * half, level + 0.88, color=GREEN, lw=0, zorder=4)
            )


def _said(names: list[str], scene: Scene, all_drawn: bool) -> str:
    powers = [str(1 << level) for level in range((scene.length or 1).bit_length())]
    if len(powers) > 5:
        powers[3:-1] = ["..."]
    lengths = f"lengths {', '.join(powers)}"
    what = {
        "ui": "a list for every unit" + (" and every value" if scene.closed else ""),
        "dlist": "a list for every value",
        "sci": f"all lengths 1 to {scene.length}, from every value on",
        "lci": f"{lengths}, from every value on",
        "cei-plain": f"{lengths}, each in the next, between guiding posts",
    }
    first = next(key for key in what if names[0].startswith(key))
    some = "" if all_drawn else " (a part is drawn)"
    return f"{', '.join(names)}: {what[first]}{some}"


def _titles(axes: Axes, left: str, pieces: int, lists: int, what: str) -> None:
    names, _, said = left.partition(": ")
    counts = f"{counted(pieces, 'piece')}, {counted(lists, 'list')} over the value, {what}"
    two_titles(axes, names, said, counts)


def two_titles(axes: Axes, names: str, said: str, counts: str) -> None:
    title = axes.set_title(names, pad=7)
    axes.annotate(
        said,
        (1, 1),
        xycoords=(title, "axes fraction"),
        xytext=(10, 7),
        textcoords="offset points",
        va="baseline",
        color=GREY,
        annotation_clip=False,
    )
    axes.set_title(counts, loc="right", weight="normal", fontsize=11, color=INK, pad=7)


def counted(n: int, what: str) -> str:
    return f"{n} {what}" if n == 1 else f"{n} {what}s"
