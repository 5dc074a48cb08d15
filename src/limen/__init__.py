"""Limen: millions of standing range queries over data streams."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from limen import spark
    from limen.archive import Archive
    from limen.catalog import Catalog
    from limen.engine import (
        Crossed,
        Crosser,
        HotspotTracker,
        Matched,
        Matcher,
        QuarantineWarning,
        crossings,
        hotspots,
        match,
    )
    from limen.model import EventError, LimenError, Query, QueryError, QuerySet, Range

__version__ = "0.1.0"

__all__ = [
    "Archive",
    "Catalog",
    "Crossed",
    "Crosser",
    "EventError",
    "HotspotTracker",
    "LimenError",
    "Matched",
    "Matcher",
    "QuarantineWarning",
    "Query",
    "QueryError",
    "QuerySet",
    "Range",
    "crossings",
    "hotspots",
    "match",
    "spark",
]

_ENGINE = {
    "Crossed",
    "Crosser",
    "HotspotTracker",
    "Matched",
    "Matcher",
    "QuarantineWarning",
    "crossings",
    "hotspots",
    "match",
}


def __getattr__(name: str) -> object:
    """Names are imported when they are first used: `limen --help` must not wait for numba."""
    if name not in __all__:
        raise AttributeError(f"module 'limen' has no attribute {name!r}")
    if name == "spark":
        return import_module("limen.spark")
    home = (
        name.lower() if name in ("Archive", "Catalog") else "engine" if name in _ENGINE else "model"
    )
    found = getattr(import_module(f"limen.{home}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
