"""Streams of crossings in one process, which the tests kill: readings from files, watched for the queries
of a catalog that keeps changing, each into a Delta table of its own."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parent))  # as Spark's workers come from elsewhere
from crash_driver import drive

READINGS = "who string, id long, at long, symbol string, price double, qty long"
FOLLOWS = {"exit_on_removal": True, "enter_on_add": True}
CLOCK = {"ttl": 500, "lateness": 200}
STREAMS: dict[str, dict[str, Any]] = {
    "plain": {"entity": "who", "buckets": 5},
    "kept": {"entity": "id", "keep_bad": True},
    "told": {"entity": "who", **FOLLOWS, "buckets": 3},
    "held": {"entity": "id", "buckets": 1, "dwell": 40, "hysteresis": {"price": 5}, **CLOCK},
    "all": {"entity": "id", **FOLLOWS, "keep_bad": True, "buckets": 1},
}


def crossed(readings: Any, catalog: Path, name: str) -> Any:
    from limen.spark import crossings

    return crossings(readings, catalog, on=["price", "qty"], time="at", **STREAMS[name])


if __name__ == "__main__":
    drive(READINGS, STREAMS, crossed)
