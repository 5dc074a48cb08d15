"""A join of two sliding windows, with Spark's own join: each result knows when it expires.

A result is generated when the later of its two parents comes, if the earlier is still in its window then,
and expires with the first of them that leaves its window.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

from limen.model import LimenError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def window_join(
    left: DataFrame,
    right: DataFrame,
    on: str | Sequence[str],
    *,
    times: tuple[str, str],
    windows: tuple[timedelta, timedelta],
    delay: timedelta | None = None,
    generated: str = "generated",
    expires: str = "expires",
) -> DataFrame:
    """The pairs of rows that are in their windows together, with `generated` and `expires`.

    `on`: the columns that are equal in both. `times`: the column of each side with the time of a row;
    `windows`: for how long a row of each side counts. `delay`: how late rows of a stream may come;
    Spark then forgets rows that no other can join any more. Streams that have watermarks already keep
    them.
    """
    from pyspark.sql import functions as f

    names = [on] if isinstance(on, str) else list(on)
    if not names:
        raise LimenError("window_join needs a column that both sides have in common: on=")
    sides = []
    for side, frame, time in zip(("left", "right"), (left, right), times, strict=True):
        for column in (*names, time):
            if column not in frame.columns:
                raise LimenError(
                    f"the {side} side has no column {column!r}; it has {', '.join(frame.columns)}"
                )
        late = delay is not None and frame.isStreaming
        sides.append(frame.withWatermark(time, _interval(delay)) if late else frame)
    both = (set(left.columns) & set(right.columns)) - set(names)
    clash = sorted(both | ({*left.columns, *right.columns} & {generated, expires}))
    if clash:
        raise LimenError(f"a column would occur twice: {', '.join(clash)}; rename it on one side")
    for size in windows:
        if not isinstance(size, timedelta) or size <= timedelta(0):
            raise LimenError(f"windows={windows!r}: each is a timedelta of some length")
    renamed = sides[1].withColumnsRenamed({name: f"__{name}" for name in names})
    at, other = f.col(times[0]), f.col(times[1])
    ends = [at + f.expr(f"INTERVAL {_interval(windows[0])}")]
    ends.append(other + f.expr(f"INTERVAL {_interval(windows[1])}"))
    joins = [f.col(name) == f.col(f"__{name}") for name in names]
    joins += [other < ends[0], at < ends[1]]
    condition = joins[0]
    for one in joins[1:]:
        condition = condition & one
    joined = sides[0].join(renamed, condition).drop(*(f"__{name}" for name in names))
    return joined.withColumns({generated: f.greatest(at, other), expires: f.least(*ends)})


def _interval(length: timedelta | None) -> str:
    assert length is not None
    return f"{length // timedelta(microseconds=1)} microseconds"
