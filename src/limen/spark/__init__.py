"""Spark: a well-set session, and the engine as operators from DataFrame to DataFrame.

Importing this needs no PySpark: the functions import it when they run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

# Not by a lazy __getattr__: the modules have the functions' names, and whoever imported a module
# first would find it here in the function's place.
from limen.spark.crossings import crossings
from limen.spark.match import match, quarantine
from limen.spark.read_archive import read_archive
from limen.spark.session import session
from limen.spark.state import entities, inside
from limen.spark.window_join import window_join

if TYPE_CHECKING:
    from limen.spark.archive_writer import archive_sink
    from limen.spark.delta_sink import write_delta

__all__ = [
    "archive_sink",
    "crossings",
    "entities",
    "inside",
    "match",
    "quarantine",
    "read_archive",
    "session",
    "window_join",
    "write_delta",
]


def __getattr__(name: str) -> Any:
    """The sinks define subclasses of PySpark's classes."""
    if name == "write_delta":
        from limen.spark.delta_sink import write_delta

        return write_delta
    if name == "archive_sink":
        from limen.spark.archive_writer import archive_sink

        return archive_sink
    raise AttributeError(f"module 'limen.spark' has no attribute {name!r}")
