"""`crossings`: a table of readings and a set of queries in, what was entered and left out."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from datetime import timedelta

import pyarrow as pa

from limen.engine.crosser import Crosser
from limen.engine.matcher import QuarantineWarning, as_table

Span = timedelta | float


def crossings(
    readings: object,
    queries: object,
    *,
    entity: str,
    on: Sequence[str] | str | None = None,
    time: str | None = None,
    dwell: Span | None = None,
    hysteresis: Mapping[str, object] | object = None,
    ttl: Span | None = None,
    lateness: Span | None = None,
    bounds: str = "[]",
) -> pa.Table:
    """For each entity, the queries that its readings enter and leave, one row each.

    `readings`: an Arrow table or what can be read as one. `queries`: whatever `QuerySet.of` takes; their
    ranges are on the columns `on` (all of theirs if not said), anything else they say is an equality.
    `entity`: the column that says whose reading it is; `time`: when it was taken (without it, readings
    are taken as they come). Readings with a null or NaN, and late ones, are left out with a
    `QuarantineWarning`; `Crosser.of(...)` returns them.

    `dwell`: an enter is reported only after so long inside, at that time. `hysteresis`: a margin around
    the range that must be left too before an exit counts; a number, or {column: number}. `ttl`: after
    so long without a reading an entity is forgotten, and leaves everything; needs `lateness`, which
    says how far behind the newest reading another may be.

    >>> readings = pa.table({"room": ["a", "a", "b", "a"], "temp": [19.0, 31.5, 35.0, 22.0]})
    >>> found = crossings(readings, {"hot": "temp >= 30"}, entity="room")
    >>> for row in found.to_pylist():
    ...     print(*row.values())
    a hot enter 31.5 19.0
    b hot enter 35.0 None
    a hot exit 22.0 31.5
    """
    table = as_table(readings)
    made = Crosser.of(
        table.schema,
        queries,
        entity=entity,
        on=on,
        time=time,
        dwell=dwell,
        hysteresis=hysteresis,
        ttl=ttl,
        lateness=lateness,
        bounds=bounds,
    )
    found, bad = made.cross(table)
    if len(bad):
        reason = bad.column(bad.num_columns - 1)[0].as_py()
        warnings.warn(
            f"{len(bad):,} of {len(table):,} readings were not taken (the first: {reason}); "
            "limen.Crosser.of(...).cross(readings).quarantine has them with their reasons",
            QuarantineWarning,
            stacklevel=2,
        )
    return found
