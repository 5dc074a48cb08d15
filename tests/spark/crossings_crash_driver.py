"""Streams of crossings in one process, which the tests kill: readings from files, watched for the queries
of a catalog that keeps changing, each into a Delta table of its own."""

from __future__ import annotations

import argparse
import sys
import threading
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parent))  # as Spark's workers come from elsewhere
from crash_driver import POINTS, STARTED, _or_die, hold

READINGS = "who string, id long, at long, symbol string, price double, qty long"
STREAMS: dict[str, dict[str, Any]] = {
    "plain": {"entity": "who", "buckets": 5},
    "kept": {"entity": "id", "keep_bad": True},
    "told": {"entity": "who", "exit_on_removal": True, "enter_on_add": True, "buckets": 3},
}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("streams", nargs="+", choices=STREAMS)
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--java-options", default="")
    parser.add_argument("--files", type=int, default=1, help="in a batch")
    parser.add_argument("--seed", type=int, help="of changes to the catalog; none if not given")
    parser.add_argument("--drain", action="store_true", help="end when no readings are left")
    parser.add_argument("--hold", choices=POINTS)
    parser.add_argument("--batch", type=int)
    given = parser.parse_args()

    from limen.spark import crossings, session, write_delta

    config = {"spark.sql.streaming.minBatchesToRetain": 10_000}
    if given.java_options:
        config["spark.driver.extraJavaOptions"] = given.java_options
    spark = session(master=given.master, memory="512m", config=config)
    if given.hold:
        hold(given.hold, given.batch, given.folder / given.hold)
    source = spark.readStream.schema(READINGS).option("maxFilesPerTrigger", given.files)
    trigger = {"availableNow": True} if given.drain else {}
    running = []
    for name in given.streams:
        found = crossings(
            source.parquet(str(given.folder / "events")),
            given.folder / "catalog",
            on=["price", "qty"],
            time="at",
            **STREAMS[name],
        )
        running.append(write_delta(found, given.folder / name, **trigger))
    print(STARTED, flush=True)
    if given.seed is not None:
        arguments = given.folder, "lane", given.seed
        threading.Thread(target=_or_die, args=arguments, daemon=True).start()
    for stream in running:
        stream.awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main()
