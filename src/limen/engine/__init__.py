"""One process: a version of the query set and a batch of events give the results."""

from limen.engine.crosser import Crossed, Crosser
from limen.engine.crossings import crossings
from limen.engine.hotspots import HotspotTracker, hotspots
from limen.engine.matcher import Matched, Matcher, QuarantineWarning, match

__all__ = [
    "Crossed",
    "Crosser",
    "HotspotTracker",
    "Matched",
    "Matcher",
    "QuarantineWarning",
    "crossings",
    "hotspots",
    "match",
]
