"""Values, bounds and queries: what a range means, fixed once.

Every value becomes an int64 ordinal and every bound kind a closed pair of ordinals, at the edge of
the system; nothing inside it sees types or bound kinds again.
"""

from limen.model.bound_columns import ordinal_ranges
from limen.model.bounds import BOUND_KINDS, UNCONSTRAINED, Range, ordinal_range
from limen.model.describe import describe
from limen.model.errors import EventError, LimenError, QueryError
from limen.model.margins import widened
from limen.model.ordinals import (
    INT64_MAX,
    INT64_MIN,
    REASONS,
    column_of,
    extremes,
    ordinals,
    value_of,
    values_of,
)
from limen.model.queries import QuerySet
from limen.model.sql import parse_where
from limen.model.types import attribute_type, is_key, is_ordinal, lossless, type_name
from limen.model.where import Query

__all__ = [
    "BOUND_KINDS",
    "INT64_MAX",
    "INT64_MIN",
    "REASONS",
    "UNCONSTRAINED",
    "EventError",
    "LimenError",
    "Query",
    "QueryError",
    "QuerySet",
    "Range",
    "attribute_type",
    "column_of",
    "describe",
    "extremes",
    "is_key",
    "is_ordinal",
    "lossless",
    "ordinal_range",
    "ordinal_ranges",
    "ordinals",
    "parse_where",
    "type_name",
    "value_of",
    "values_of",
    "widened",
]
