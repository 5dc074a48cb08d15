"""The errors users see.

Each says what was wrong and where. A `QueryError` names the row, id and field as far as they are
known; the code that finds a fault knows the value, the code above it knows the place and adds it
with `at`. All of them survive pickling, since they also travel from worker processes.
"""

from __future__ import annotations


class LimenError(ValueError):
    """Anything Limen refuses."""


class QueryError(LimenError):
    """A query that cannot be accepted.

    >>> print(QueryError("lower bound 50 is above upper bound 40", 17, "q9", "price"))
    query row 17 (id 'q9'), field 'price': lower bound 50 is above upper bound 40
    """

    def __init__(
        self,
        reason: str,
        row: int | None = None,
        query_id: str | int | None = None,
        field: str | None = None,
    ) -> None:
        self.reason = reason
        self.row = row
        self.query_id = query_id
        self.field = field
        super().__init__(_place(row, query_id, field) + reason)

    def at(
        self,
        row: int | None = None,
        query_id: str | int | None = None,
        field: str | None = None,
    ) -> QueryError:
        """The same error with whatever it did not know yet of its place."""
        return QueryError(
            self.reason,
            self.row if self.row is not None else row,
            self.query_id if self.query_id is not None else query_id,
            self.field if self.field is not None else field,
        )


class EventError(LimenError):
    """An event table whose columns cannot be read as the attributes asked for."""

    def __init__(self, reason: str, column: str | None = None) -> None:
        self.reason = reason
        self.column = column
        super().__init__(reason if column is None else f"event column {column!r}: {reason}")


def _place(row: int | None, query_id: str | int | None, field: str | None) -> str:
    parts = []
    if row is not None:
        parts.append(f"query row {row}" + ("" if query_id is None else f" (id {query_id!r})"))
    elif query_id is not None:
        parts.append(f"query {query_id!r}")
    if field is not None:
        parts.append(f"field {field!r}")
    return ", ".join(parts) + ": " if parts else ""
