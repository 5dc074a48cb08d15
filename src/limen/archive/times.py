"""Times and lengths of time as users say them, and as an archive has them.

Integers in a unit of the user's, or timestamps with a zone; inside they are int64, microseconds for
timestamps.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import pyarrow as pa

from limen.archive.errors import ArchiveError

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MOMENT = pa.timestamp("us", tz="UTC")
FARTHEST = 2**62  # times and windows lie within it, so that their sums are int64
FIRST, LAST = (  # of what a datetime can say
    (end.replace(tzinfo=UTC) - EPOCH) // timedelta(microseconds=1)
    for end in (datetime.min, datetime.max)
)

Moment = int | datetime
Duration = int | timedelta


def as_moment(value: Moment, timed: bool, what: str) -> int:
    """A time of the user's as an integer."""
    if timed:
        if not isinstance(value, datetime) or value.tzinfo is None:
            raise ArchiveError(f"{what}={value!r}: a datetime with a zone is needed here")
        if getattr(value, "nanosecond", 0):  # of a timestamp of pandas
            raise ArchiveError(f"{what}={value!r}: times are whole microseconds here")
        moment = (value - EPOCH) // timedelta(microseconds=1)
        if not FIRST <= moment <= LAST:  # in a zone that is ahead or behind
            raise ArchiveError(f"{what}={value!r} is out of range")
        return moment
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise ArchiveError(f"{what}={value!r}: times are integers here")
    if not -FARTHEST < value < FARTHEST:
        raise ArchiveError(f"{what}={value!r} is out of range")
    return int(value)


def as_duration(value: Duration, timed: bool, what: str) -> int:
    if timed:
        if not isinstance(value, timedelta):
            raise ArchiveError(
                f"{what}={value!r}: a timedelta is needed, since times are timestamps"
            )
        if getattr(value, "nanoseconds", 0):  # of a length of time of pandas
            raise ArchiveError(f"{what}={value!r}: times are whole microseconds here")
        value = value // timedelta(microseconds=1)
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise ArchiveError(f"{what}={value!r}: an integer is needed, since times are integers")
    if not 0 < value < FARTHEST:
        raise ArchiveError(f"{what}={value!r} is not a length of time")
    return int(value)


def as_wait(value: Duration, timed: bool, what: str) -> int:
    """A length of time that may be zero."""
    nothing = timedelta(0) if timed else 0
    return 0 if value == nothing else as_duration(value, timed, what)
