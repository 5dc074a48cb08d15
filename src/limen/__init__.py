"""Limen: millions of standing range queries over data streams."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
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

_ENGINE = {"Matched", "Matcher", "QuarantineWarning", "match"}


def __getattr__(name: str) -> object:
    """Names are imported when they are first used: `limen --help` must not wait for numba."""
    if name not in __all__:
        raise AttributeError(f"module 'limen' has no attribute {name!r}")
    found = getattr(import_module("limen.engine" if name in _ENGINE else "limen.model"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
