"""A stream in a process of its own, which the tests kill: events from files, matched against a catalog
that keeps changing, into a Delta table.

What is changed in the catalog is noted before it is tried, and its version when there is a receipt.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import random
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from limen.catalog import Catalog
from limen.testing.oracle import Condition

ATTRIBUTES = {"symbol": "string", "price": "float64", "qty": "int64"}
EVENTS = "event long, symbol string, price double, qty long"
LIVE = 20  # queries of a driver, about
STARTED = "started"
QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xlog:disable"  # for a JVM to start, not to run
POINTS = ("bound", "written", "committed")  # where a batch can be held


def change(
    catalog: Catalog, folder: Path, add: Mapping[str, list[Condition]], remove: Iterable[str] = ()
) -> int:
    """Change the catalog; the first query to be added is one that never was, and names the change."""
    name, gone = next(iter(add)), list(remove)
    _note(folder, {"name": name, "add": dict(add), "remove": gone})
    receipt = catalog.change({who: where(body) for who, body in add.items()}, gone)
    assert receipt.added == len(add) and receipt.removed == len(gone)
    _note(folder, {"name": name, "version": receipt.version})
    return receipt.version


def _note(folder: Path, fact: object) -> None:
    handle = os.open(folder / "notes", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    os.write(handle, f"{json.dumps(fact)}\n".encode())
    os.close(handle)


def random_body(rng: random.Random) -> list[Condition]:
    lo = rng.randrange(0, 80) / 2
    body: list[Condition] = [("price", ">=", lo), ("price", "<", lo + rng.randrange(1, 60))]
    if rng.random() < 0.5:
        body.append(("symbol", "=", rng.choice("ABCD")))
    if rng.random() < 0.4:
        body.append(("qty", ">", rng.randrange(-1, 18)))
    return body[rng.choice((0, 0, 1)) :]


def where(body: Iterable[Condition]) -> str:
    return " AND ".join(f"{name} {symbol} {value!r}" for name, symbol, value in body)


def keep_changing(folder: Path, lane: str, seed: int) -> None:
    """Add, remove and replace queries of one's own lane; another driver does so in another."""
    rng = random.Random(seed)
    catalog = Catalog.open(folder / "catalog")
    live = [str(entry.id) for entry in catalog.list() if str(entry.id).startswith(lane)]
    for number in itertools.count():
        gone = rng.sample(live, rng.randrange(9 if len(live) > LIVE else min(3, len(live) + 1)))
        add = {f"{lane}.{seed}.{number}.{i}": random_body(rng) for i in range(rng.randrange(1, 4))}
        add |= {who: random_body(rng) for who in gone[1:] if rng.random() < 0.3}  # replaced
        change(catalog, folder, add, gone)
        live = [*(who for who in live if who not in gone), *add]
        time.sleep(rng.uniform(0, 0.3))


def hold(point: str, batch: int, marker: Path) -> None:
    """Let the sink stand still at a point of a batch, once."""
    from limen.spark import delta_sink
    from limen.spark.worker import batch_of_task

    def reached(here: str, at: int) -> None:
        if (here, at) != (point, batch):
            return
        beside = marker.with_suffix(f".{os.getpid()}")
        beside.write_text(str(os.getpid()))
        with suppress(FileExistsError):  # a batch has several tasks: the first of them is held
            marker.hardlink_to(beside)
            time.sleep(600)

    class Writer(delta_sink.DeltaWriter):
        def write(self, iterator: Any) -> Any:
            at = batch_of_task()[1]
            first = list(itertools.islice(iterator, 1))  # so the match has begun
            reached("bound", at)
            written = super().write(itertools.chain(first, iterator))
            reached("written", at)
            return written

        def commit(self, messages: Any, batchId: int) -> None:  # noqa: N803
            super().commit(messages, batchId)
            reached("committed", batchId)

    class Sink(delta_sink.DeltaSink):
        def streamWriter(self, schema: Any, overwrite: bool) -> Any:  # noqa: N802
            plain = super().streamWriter(schema, overwrite)
            return Writer(plain.path, plain.schema)

    delta_sink.DeltaSink = Sink


def drive(schema: str, streams: Iterable[str], operator: Callable[[Any, Path, str], Any]) -> None:
    """Run the streams that the command line names, each into a table of its name.

    `operator` makes a stream's result of its source, the catalog and its name.
    """
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("streams", nargs="+", choices=streams)
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--java-options", default="")
    parser.add_argument("--files", type=int, default=2, help="in a batch")
    parser.add_argument("--seed", type=int, help="of changes to the catalog; none if not given")
    parser.add_argument("--drain", action="store_true", help="end when nothing is left to read")
    parser.add_argument("--hold", choices=POINTS)
    parser.add_argument("--batch", type=int)
    given = parser.parse_args()

    from limen.spark import session, write_delta

    config = {"spark.sql.streaming.minBatchesToRetain": 10_000}
    if given.java_options:
        config["spark.driver.extraJavaOptions"] = given.java_options
    if given.master.startswith("local-cluster"):
        config["spark.executor.extraJavaOptions"] = QUICK
    spark = session(master=given.master, memory="512m", config=config)
    if given.hold:
        hold(given.hold, given.batch, given.folder / given.hold)
    reader = spark.readStream.schema(schema).option("maxFilesPerTrigger", given.files)
    trigger = {"availableNow": True} if given.drain else {}
    running = []
    for name in given.streams:
        source = reader.parquet(str(given.folder / "events"))
        found = operator(source, given.folder / "catalog", name)
        running.append(write_delta(found, given.folder / name, **trigger))
    print(STARTED, flush=True)
    if given.seed is not None:
        arguments = given.folder, given.streams[0], given.seed
        threading.Thread(target=_or_die, args=arguments, daemon=True).start()
    for stream in running:
        stream.awaitTermination()
    spark.stop()


def _or_die(folder: Path, lane: str, seed: int) -> None:
    try:
        keep_changing(folder, lane, seed)
    except BaseException:
        traceback.print_exc()
        os._exit(1)


def matched(events: Any, catalog: Path, emit: str) -> Any:
    from limen.spark import match

    return match(events, catalog, emit, keep_bad=True, version_column="version")


if __name__ == "__main__":
    drive(EVENTS, ("rows", "ids"), matched)
