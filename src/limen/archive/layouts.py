"""How results are partitioned by generation and by expiration: every layout of the window-results paper.

Time is cut into *steps* of one refresh interval: step j is the interval that ends with update j, so the
initial stage is update 0 and holds the steps 1 - p to 0. A result is in the sub-index (row, column): the
row is that of the step in which it was generated, the column that of the step in which it expires.

A layout is four choices: how steps of generation are assigned to rows, how steps of expiration are to
columns, whether an update clusters anew what it touches, and how many rows and columns there are.

* ``round-robin``: step j goes to (j - 1) mod n, so no two updates in a row meet the same one.
* ``chronological``: n stretches of a window, each a row or column for a while.
* ``lazy``: chronological rows that only grow; the oldest is left alone until all of it has expired,
  and then thrown away whole (rows only).

`Schedule` is Appendix B: what an update drops, where it looks for expired results, where it inserts.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from numbers import Integral, Real
from typing import NamedTuple

from limen.archive.errors import ArchiveError

ROUND_ROBIN, CHRONOLOGICAL, LAZY = "round-robin", "chronological", "lazy"
MOST_PARTITIONS = 1024

Cell = tuple[int, int]  # row and column of a sub-index


class Choices(NamedTuple):
    generation: str
    expiration: str
    recluster: bool
    rivals: str = ""  # "rows": one column; "columns": one row


LAYOUTS = {
    "Rebuild": Choices(ROUND_ROBIN, ROUND_ROBIN, True),
    "NoRebuild": Choices(ROUND_ROBIN, ROUND_ROBIN, False),
    "LazyRebuild": Choices(LAZY, ROUND_ROBIN, True),
    "LazyNoRebuild": Choices(LAZY, ROUND_ROBIN, False),
    "CountRebuild": Choices(ROUND_ROBIN, CHRONOLOGICAL, True),
    "CountNoRebuild": Choices(ROUND_ROBIN, CHRONOLOGICAL, False),
    "ChronologicalRebuild": Choices(CHRONOLOGICAL, CHRONOLOGICAL, True),
    "ChronologicalNoRebuild": Choices(CHRONOLOGICAL, CHRONOLOGICAL, False),
    "R-ins": Choices(CHRONOLOGICAL, CHRONOLOGICAL, True, "rows"),
    "R-exp": Choices(CHRONOLOGICAL, CHRONOLOGICAL, True, "columns"),
    "D-ins": Choices(CHRONOLOGICAL, CHRONOLOGICAL, False, "rows"),
    "D-exp": Choices(CHRONOLOGICAL, CHRONOLOGICAL, False, "columns"),
    "WATA": Choices(LAZY, CHRONOLOGICAL, False, "rows"),
}
ALIASES = {
    "chronological": "ChronologicalRebuild",
    "reindex": "R-ins",
    "del": "D-ins",
    **{name.lower(): name for name in LAYOUTS},
}
_NAME = re.compile(r"([A-Za-z-]*[A-Za-z])\s*(?:(\d+)(?:\s*x\s*(\d+))?)?")


@dataclass(frozen=True)
class Layout:
    """
    >>> Layout.of("NoRebuild4x4")
    Layout('NoRebuild4x4')
    >>> Layout.of("R-ins9").rows, Layout.of("R-ins9").columns
    (9, 1)
    """

    name: str
    rows: int
    columns: int

    @classmethod
    def of(cls, text: str | Layout) -> Layout:
        """A layout by its name as the paper writes it: ``Rebuild4x4``, ``R-ins9``, ``WATA 4``."""
        if isinstance(text, Layout):
            return text
        found = _NAME.fullmatch(text.strip()) if isinstance(text, str) else None
        name = ALIASES.get(found[1].lower()) if found else None
        if found is None or name is None:
            raise ArchiveError(
                f"there is no layout {text!r}; there are {', '.join(LAYOUTS)}, each with its rows "
                "and columns, such as NoRebuild4x4, or with one number, such as R-ins9"
            )
        rivals = LAYOUTS[name].rivals
        if rivals and (found[2] is None or found[3] is not None):
            raise ArchiveError(f"{text!r}: {name} has one number of partitions, such as {name}4")
        if not rivals and found[3] is None:
            raise ArchiveError(f"{text!r}: {name} has rows and columns, such as {name}4x4")
        one, other = int(found[2]), int(found[3] or 1)
        return cls(name, *((1, one) if rivals == "columns" else (one, other)))

    def __post_init__(self) -> None:
        if self.name not in LAYOUTS:
            raise ArchiveError(f"there is no layout {self.name!r}; there are {', '.join(LAYOUTS)}")
        if not (type(self.rows) is type(self.columns) is int):
            raise ArchiveError(f"{self}: rows and columns are integers")
        if min(self.rows, self.columns) < 1 or self.rows * self.columns > MOST_PARTITIONS:
            raise ArchiveError(f"{self}: an archive has 1 to {MOST_PARTITIONS} sub-indices")
        rivals = self.choices.rivals
        if rivals and (self.columns if rivals == "rows" else self.rows) > 1:
            raise ArchiveError(f"{self.name} has {rivals} only, not {self.rows} x {self.columns}")
        if self.is_lazy and self.rows < 2:
            raise ArchiveError(f"{self}: a lazy layout has at least two rows")

    def __str__(self) -> str:
        one = {"rows": f"{self.rows}", "columns": f"{self.columns}"}
        return self.name + one.get(LAYOUTS[self.name].rivals, f"{self.rows}x{self.columns}")

    def __repr__(self) -> str:
        return f"Layout({str(self)!r})"

    @property
    def choices(self) -> Choices:
        return LAYOUTS[self.name]

    @property
    def is_lazy(self) -> bool:
        return self.choices.generation == LAZY

    @property
    def recluster(self) -> bool:
        return self.choices.recluster

    @property
    def touched(self) -> int:
        """Sub-indices that an update over time-based windows accesses (section 3.2)."""
        return self.rows + self.columns - (2 if self.is_lazy else 1)

    def check(self, steps: int, count_based: bool) -> None:
        """`steps`: updates until the window has rolled over, p."""
        if self.is_lazy and count_based:
            raise ArchiveError(
                f"{self}: the lazy layouts are for windows of time; take CountRebuild or "
                "CountNoRebuild for windows of a number of rows"
            )
        if max(self.rows, self.columns) > steps:
            raise ArchiveError(
                f"{self}: a window has {steps} updates, so at most {steps} rows and columns"
            )

    def column_of(self, step: int, steps: int) -> int:
        return _partition(self.choices.expiration, step, self.columns, steps)


def _partition(how: str, step: int, partitions: int, steps: int) -> int:
    if how == ROUND_ROBIN:
        return (step - 1) % partitions
    return (step - 1) % steps * partitions // steps


Stretch = tuple[int, int]  # first and last step of a row


class Schedule(NamedTuple):
    """What one or several updates in a row do to the sub-indices, in this order.

    Of a lazy layout, the row that is the oldest *after* an update is left alone: in the update that
    throws a row away this is the next one, as Fig. 5 has it and section 3.2 counts, G + E - 2 in every
    update. Algorithm 3, read by the letter, would then examine all rows but the one thrown away.
    """

    dropped: set[int]  # rows thrown away whole
    examined: set[Cell]  # where results are looked at one by one
    rows: dict[int, int]  # step of generation: the row where its results go
    stretches: list[Stretch]  # of a lazy layout's rows, afterwards

    def touched(self, layout: Layout) -> set[Cell]:
        """All that is accessed: examined, or open to new results."""
        into = set(self.rows.values()) | self.dropped
        return self.examined | {(row, c) for row in into for c in range(layout.columns)}


def initial(layout: Layout, steps: int, at: int = 0) -> Schedule:
    """The initial stage, at update 0 or a later one: all that was generated in the window before it."""
    inside = range(at + 1 - steps, at + 1)
    if not layout.is_lazy:
        how = layout.choices.generation
        return Schedule(
            set(), set(), {s: _partition(how, s, layout.rows, steps) for s in inside}, []
        )
    whole, more = divmod(steps - 1, layout.rows - 1)
    sizes = [whole + (row < more) for row in range(layout.rows - 1)] + [1]
    stretches, begin = [], inside[0]
    for size in sizes:
        stretches.append((begin, begin + size - 1))
        begin += size
    rows = {s: row for row, (a, b) in enumerate(stretches) for s in range(a, b + 1)}
    return Schedule(set(), set(), rows, stretches)


def update(
    layout: Layout,
    steps: int,
    stretches: list[Stretch],
    first: int,
    last: int,
    slack: int = 0,
) -> Schedule:
    """The updates `first` to `last`, which are one in most cases.

    Fewer than a window of them do what each would do. From a window on, all of before has expired, but
    for windows of a number of rows: everything is examined, and what is new is laid out as in an
    initial stage, so the cost is that of a window however many steps were left out.

    `slack`: count-based windows expire within so many steps of the estimate, so the columns of these
    steps are examined too (the paper's range R).
    """
    if last - first + 1 >= steps:
        everything = {(r, c) for r in range(layout.rows) for c in range(layout.columns)}
        return initial(layout, steps, last)._replace(examined=everything)
    plan = Schedule(set(), set(), {}, list(stretches))
    for step in range(first, last + 1):
        _plan_one(plan, layout, steps, step, slack)
    plan.examined.difference_update({cell for cell in plan.examined if cell[0] in plan.dropped})
    return plan


def _plan_one(plan: Schedule, layout: Layout, steps: int, step: int, slack: int) -> None:
    left_alone = None
    if layout.is_lazy:
        stretches = plan.stretches
        oldest, newest = stretches.index(min(stretches)), stretches.index(max(stretches))
        if stretches[oldest][1] <= step - steps:  # all of it has expired by now
            plan.dropped.add(oldest)
            stretches[oldest], newest = (step, step), oldest
        else:
            stretches[newest] = (stretches[newest][0], step)
        plan.rows[step] = newest
        left_alone = stretches.index(min(stretches))
    else:
        plan.rows[step] = _partition(layout.choices.generation, step, layout.rows, steps)
    for due in range(step - slack, step + slack + 1):
        column = layout.column_of(due, steps)
        plan.examined.update((r, column) for r in range(layout.rows) if r != left_alone)


class Choice(NamedTuple):
    layout: Layout
    why: str


SMALL = 2 * 10**9  # bytes of a window; the paper's small window has 0.5 GB, its large one 5
MANY = 10  # queries between two updates


def choose(
    window_bytes: float,
    queries: float,
    *,
    count_based: bool = False,
    space: bool = False,
    probes_first: bool = False,
    steps: int = 36,
) -> Choice:
    """Section 5.8 as a rule.

    `window_bytes`: the size of all results of a window; `queries`: probes and scans between two
    updates; `space`: half as much again may be used; `probes_first`: quick probes are crucial.

    >>> print(choose(5e8, 2).layout, choose(5e8, 1000).layout, choose(5e9, 2).layout)
    NoRebuild4x4 Rebuild2x2 NoRebuild3x3
    """
    for what, value in (("window_bytes", window_bytes), ("queries", queries)):
        if isinstance(value, bool) or not isinstance(value, Real) or not value >= 0:
            raise ArchiveError(f"{what}={value!r}: a number is needed, and not less than zero")
    if isinstance(steps, bool) or not isinstance(steps, Integral) or steps < 1:
        raise ArchiveError(f"steps={steps!r}: the number of updates of a window is needed")
    large, many = window_bytes > SMALL, queries > MANY
    size = f"a {'large' if large else 'small'} window ({window_bytes / 1e9:.3g} GB)"
    load = f"{'many' if many else 'few'} queries between updates ({queries:g})"
    if not large and not many:
        name, side, so = "NoRebuild", 4, "low update times matter most"
        if space and not count_based:
            name, so = (
                "LazyNoRebuild",
                "updates are quickest if expired results may lie for a while",
            )
    elif not large:
        name, side, so = "Rebuild", 2, "probes and scans must be quick"
    elif not many:
        name, side, so = (
            "NoRebuild",
            3,
            "fewer sub-indices keep probes short while updates stay cheap",
        )
    elif probes_first:
        name, side, so = "Rebuild", 2, "quick probes are asked for, although updates recluster much"
    else:
        name, side, so = "NoRebuild", 2, "it balances updates that would recluster much with probes"
    if count_based:
        name = f"Count{name}"
        so += "; chronological columns keep estimated expirations together"
    side = max(1, min(side, steps))
    if name.startswith("Lazy") and side < 2:
        name = "NoRebuild"
    return Choice(Layout(name, side, side), f"{size} and {load}: {so}")
