"""Limen: millions of standing range queries over data streams."""

from limen.engine import Matched, Matcher, QuarantineWarning, match
from limen.model import EventError, LimenError, Query, QueryError, QuerySet, Range

__version__ = "0.1.0"

__all__ = [
    "EventError",
    "LimenError",
    "Matched",
    "Matcher",
    "QuarantineWarning",
    "Query",
    "QueryError",
    "QuerySet",
    "Range",
    "match",
]
