"""Spark: a well-set session, and the engine as operators from DataFrame to DataFrame.

Importing this needs no PySpark: the functions import it when they run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

# Not by a lazy __getattr__: the modules have the functions' names, and whoever imported a module
# first would find it here in the function's place.
from limen.spark.crossings import crossings
from limen.spark.match import match, quarantine
from limen.spark.session import session
from limen.spark.state import entities, inside

if TYPE_CHECKING:
    from limen.spark.delta_sink import write_delta

__all__ = ["crossings", "entities", "inside", "match", "quarantine", "session", "write_delta"]


def __getattr__(name: str) -> Any:
    if name != "write_delta":
        raise AttributeError(f"module 'limen.spark' has no attribute {name!r}")
    from limen.spark.delta_sink import write_delta  # defines subclasses of PySpark's classes

    return write_delta
