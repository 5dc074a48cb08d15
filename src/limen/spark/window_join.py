"""A join of two sliding windows, with Spark's own join: each result knows when it expires.

A result is generated when the later of its two parents comes, if the earlier is still in its window then,
and expires with the first of them that leaves its window.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from limen.model import LimenError

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


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

    `on`: the columns that are equal in both. `times`: the column of each side with the time of a row, a
    TIMESTAMP; `windows`: for how long a row of each side counts. `delay`: how late rows of a stream may
    come; Spark then forgets rows that no other can join any more. Streams that have watermarks already
    keep them.
    """
    from pyspark.sql import functions as f

    names = _names(on)
    for what, name in (("generated", generated), ("expires", expires)):
        if not isinstance(name, str) or not name:
            raise LimenError(f"{what}={name!r}: the name of a column is needed")
    _check(times, windows, delay)
    sides = []
    for side, frame, time in zip(("left", "right"), (left, right), times, strict=True):
        _check_columns(side, frame, names, time)
        late = delay is not None and frame.isStreaming
        sides.append(frame.withWatermark(_quoted(time), _interval(delay)) if late else frame)
    more = [name for name in right.columns if name not in names]
    columns = [*left.columns, *more]
    _check_differ([*columns, generated, expires])
    own = {name: _free(f"__{name}", columns) for name in names}  # of the right side

    def column(name: str) -> Column:
        return f.col(_quoted(name))

    at, other = column(times[0]), column(own.get(times[1], times[1]))
    ends = [at + f.expr(f"INTERVAL {_interval(windows[0])}")]
    ends.append(other + f.expr(f"INTERVAL {_interval(windows[1])}"))
    condition = (other < ends[0]) & (at < ends[1])
    for name in names:
        condition = (column(name) == column(own[name])) & condition
    joined = sides[0].join(sides[1].withColumnsRenamed(own), condition)
    made = [f.greatest(at, other).alias(generated), f.least(*ends).alias(expires)]
    return joined.select(*map(column, columns), *made)


def _names(on: Any) -> list[str]:
    names = [on] if isinstance(on, str) else list(on) if isinstance(on, (list, tuple)) else []
    if not names or not all(isinstance(name, str) for name in names):
        raise LimenError(
            f"on={on!r}: window_join needs a column that both sides have in common, or a list of them"
        )
    return list(dict.fromkeys(names))


def _check(times: Any, windows: Any, delay: Any) -> None:
    if not _is_pair(times) or not all(isinstance(time, str) for time in times):
        raise LimenError(
            f"times={times!r}: two columns are needed, with the times of each side's rows"
        )
    if not _is_pair(windows) or not all(
        isinstance(size, timedelta) and size > timedelta(0) for size in windows
    ):
        raise LimenError(f"windows={windows!r}: two timedeltas are needed, each of some length")
    if delay is not None and not (isinstance(delay, timedelta) and delay >= timedelta(0)):
        raise LimenError(f"delay={delay!r}: a timedelta is needed, and it must not be negative")


def _is_pair(given: Any) -> bool:
    return isinstance(given, (tuple, list)) and len(given) == 2


def _check_columns(side: str, frame: DataFrame, names: Sequence[str], time: str) -> None:
    from pyspark.sql.types import TimestampType

    for column in (*names, time):
        if column not in frame.columns:
            raise LimenError(
                f"the {side} side has no column {column!r}; it has {', '.join(frame.columns)}"
            )
    kind = frame.schema[time].dataType
    if not isinstance(kind, TimestampType):
        raise LimenError(
            f"the {side} side's time {time!r} is {kind.simpleString()}: a timestamp with a zone is "
            "needed; cast it to TIMESTAMP"
        )


def _check_differ(names: Sequence[str]) -> None:
    """Spark and Delta do not tell capitals from small letters."""
    lower = [name.lower() for name in names]
    clash = sorted({name for name in names if lower.count(name.lower()) > 1})
    if clash:
        raise LimenError(f"a column would occur twice: {', '.join(clash)}; rename it on one side")


def _free(name: str, taken: Sequence[str]) -> str:
    while name.lower() in {other.lower() for other in taken}:
        name = f"_{name}"
    return name


def _quoted(name: str) -> str:
    """A dot in a name is none of a field's."""
    return "`" + name.replace("`", "``") + "`"


def _interval(length: timedelta | None) -> str:
    assert length is not None
    return f"{length // timedelta(microseconds=1)} microseconds"
