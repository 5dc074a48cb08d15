"""`limen demo`: a million standing queries, a stream of trades on Spark, queries that come and go.

A seeded market feeds Spark; every batch is matched against the queries that the catalog holds and written
to a Delta table. A third of the way queries are added, after two thirds others removed. At the end the
whole table is read back and judged: every trade is there once or is bad, matched under the version that
its batch is bound to; and a sample of the answers is compared with brute force over the raw bounds.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from rich.console import Console, RenderableType

    from limen.catalog import Catalog, Receipt
    from limen.cli.demo_check import Found
    from limen.testing.market import BruteForce, Market, Queries

CHANGED = 10_000  # queries that come, and that go
# A batch of few events would be over before anybody has seen it; one of many takes longer anyway.
PACE = {"processingTime": "300 milliseconds"}
LOOK = 0.1  # seconds between looks at the stream
BARS = "▁▂▃▄▅▆▇█"


def demo(
    queries: Annotated[int, typer.Option(min=100, help="Standing queries.")] = 1_000_000,
    batches: Annotated[int, typer.Option(min=6, help="Batches of events.")] = 40,
    events: Annotated[int, typer.Option(min=10, help="Events in a batch.")] = 100_000,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The folder for the catalog and the matches.")
    ] = Path("out/demo"),
) -> None:
    """A million standing queries over a stream of trades on Spark, checked against brute force."""
    from rich.console import Console

    console = Console(highlight=False, soft_wrap=True)
    output.mkdir(parents=True, exist_ok=True)
    spark = _session(console, output / "spark.log")

    from limen.testing.market import BruteForce, Market

    _compile(console)
    market = Market()
    drawn = market.queries(queries)
    catalog, version = _catalog(console, market, drawn, output)
    try:
        _index(console, catalog)
        run = Run(console, market, catalog, BruteForce(drawn, version), batches)
        with _patient() as pause:
            _warm_up(console, spark, run, output / "warm-up", pause)
            run.query = _start(spark, run, events, batches, output / "matches", **PACE)
            try:
                with _display(console, run):
                    run.follow(pause)
            except KeyboardInterrupt:
                console.print(f"stopped; {len(run.done)} batches are in {output / 'matches'}")
                raise
            finally:
                run.query.stop()
        run.summarise()
        from limen.cli.demo_check import check

        found = check(console, run, output / "matches")
        _show(console, run, found, drawn, output)
    finally:
        _forget(catalog)


# -- before the stream ---------------------------------------------------------------------------


@contextmanager
def doing(console: Console, what: str) -> Iterator[None]:
    with console.status(what) if console.is_terminal else nullcontext():
        yield


@contextmanager
def _patient() -> Iterator[Callable[[], None]]:
    """A pause between two looks at a stream. Ctrl-C has its effect there and not in the middle of a
    call to the JVM, which would complain."""
    asked: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: asked.append(number))

    def pause() -> None:
        time.sleep(LOOK)
        if asked:
            raise KeyboardInterrupt

    try:
        yield pause
    finally:
        signal.signal(signal.SIGINT, before)


def _session(console: Console, log: Path) -> Any:
    """Spark, with the errors of its JVM and of its workers in a file."""
    from limen.spark import session

    started = time.perf_counter()
    sys.stderr.flush()
    terminal = os.dup(2)
    with doing(console, "starting Spark"), log.open("w") as file:
        os.dup2(file.fileno(), 2)  # the JVM inherits it
        try:
            spark = session("limen demo")
        finally:
            os.dup2(terminal, 2)
            os.close(terminal)
    took = time.perf_counter() - started
    console.print(f"Spark {spark.version} on {spark.conf.get('spark.master')}: {took:.1f} s")
    return spark


def _compile(console: Console) -> None:
    """Have every kernel ready before anything is timed; Spark's workers find them on disk."""
    import numpy as np
    import pyarrow as pa

    from limen.engine import Matcher
    from limen.kernels.compiled import CACHE
    from limen.model import QuerySet
    from limen.testing.market import ANY, Market, Queries

    if not any(Path(CACHE).rglob("*.nbi")):
        console.print("compiling kernels, once (up to a minute)")
    market = Market(1)
    first, second = market.queries(4000), market.queries(400, 4000)
    with doing(console, "loading kernels"):
        matcher = Matcher(QuerySet.of(first.frame(market.names)))
        matcher.add(QuerySet.of(second.frame(market.names)))
        whatever = np.full(1, ANY, np.int32), np.zeros(1), np.full(1, 1e9), np.zeros(1, np.int64)
        matcher.add(QuerySet.of(Queries(4400, *whatever).frame(market.names)))
        matcher.remove(range(400))
        matcher.match(pa.Table.from_batches(market.trades(0, 1000)), emit="ids")


def _catalog(console: Console, market: Market, drawn: Queries, output: Path) -> tuple[Catalog, int]:
    """A fresh catalog with all queries, and its version."""
    from limen.catalog import Catalog
    from limen.testing.market import ATTRIBUTES

    for name in ("catalog", "matches", "matches.ckpt"):
        shutil.rmtree(output / name, ignore_errors=True)
    frame = drawn.frame(market.names)
    started = time.perf_counter()
    with doing(console, f"putting {len(frame):,} queries into a catalog"):
        catalog = Catalog.open(output / "catalog", ATTRIBUTES, ids="int64")
        receipt = catalog.add(frame)
    took = time.perf_counter() - started
    console.print(
        f"{receipt.added:,} standing queries in the catalog: {took:.1f} s, version {receipt.version}"
    )
    for row in (0, 1):
        console.print(f"  such as {drawn.sql(row, market.names)}", markup=False)
    return catalog, receipt.version


def _index(console: Console, catalog: Catalog) -> None:
    """Build the index that all workers of this machine map, as the first of them would."""
    from limen.engine.versions import MATCHER, Versions

    started = time.perf_counter()
    with doing(console, "building the index"):
        matcher = Versions(catalog, MATCHER).at(catalog.version)
    took = time.perf_counter() - started
    console.print(
        f"the index over them: {took:.1f} s, {matcher.nbytes / len(matcher):.0f} bytes a query"
    )


def _forget(catalog: Catalog) -> None:
    """The index lies in the user's cache, where nobody would look for it again."""
    from limen.engine.versions import forget

    forget(catalog)


def _warm_up(
    console: Console, spark: Any, run: Run, matches: Path, pause: Callable[[], None]
) -> None:
    """Have the workers running, with kernels loaded and the index mapped: a short stream before."""
    started = time.perf_counter()
    with doing(console, "starting Spark's workers"):
        query = _start(spark, run, 20_000, 1, matches, availableNow=True)
        try:
            while query.isActive:
                pause()
        finally:
            query.stop()
            shutil.rmtree(matches, ignore_errors=True)
            shutil.rmtree(matches.with_name(f"{matches.name}.ckpt"), ignore_errors=True)
    took = time.perf_counter() - started
    console.print(f"Spark's workers have started and mapped the index: {took:.1f} s")


def _start(spark: Any, run: Run, events: int, batches: int, matches: Path, **trigger: Any) -> Any:
    """Feed, match, write: the running query."""
    from limen.spark import match, write_delta
    from limen.testing.feed import FORMAT, MarketFeed
    from limen.testing.market import SCHEMA

    spark.dataSource.register(MarketFeed)
    options = {"seed": run.market.seed, "rows_per_batch": events, "rows": events * batches}
    trades = spark.readStream.format(FORMAT).options(**options).load()
    found = match(
        trades, run.catalog, "ids", SCHEMA.names, version_column="version", metrics="limen"
    )
    return write_delta(found, matches, **trigger)


# -- the stream ----------------------------------------------------------------------------------


class Batch(NamedTuple):
    """A batch that is done, as Spark reports it."""

    number: int
    first: int  # its trades, up to, not including, last
    last: int
    began: float  # seconds since 1970
    seconds: float
    matches: int
    quarantined: int

    @classmethod
    def of(cls, progress: Any) -> Batch:
        source, observed = progress["sources"][0], progress["observedMetrics"]["limen"]
        first, last = (
            (json.loads(source[end]) or {"trade": 0})["trade"]  # null: from the first one on
            for end in ("startOffset", "endOffset")
        )
        return cls(
            progress["batchId"],
            first,
            last,
            datetime.fromisoformat(progress["timestamp"]).timestamp(),
            max(progress["durationMs"]["triggerExecution"], 1) / 1000,
            observed["matches"] or 0,
            observed["quarantined"],
        )

    @property
    def events(self) -> int:
        return self.last - self.first


class Change(NamedTuple):
    """Queries that came or went, and the first batch that saw it."""

    receipt: Receipt
    batch: int
    ids: npt.NDArray[np.int64]


class Run:
    """The stream so far."""

    def __init__(
        self,
        console: Console,
        market: Market,
        catalog: Catalog,
        brute_force: BruteForce,
        batches: int,
    ) -> None:
        import numpy as np

        self.rng = np.random.default_rng(11)
        self.market, self.catalog, self.brute_force = market, catalog, brute_force
        self.batches, self._console = batches, console
        self.query: Any = None  # the running one
        self._queries = len(catalog)
        self._changed = min(CHANGED, self._queries // 10)
        self.done: dict[int, Batch] = {}
        self.bound: dict[int, int] = {}
        self.added: Change | None = None
        self.removed: Change | None = None

    def follow(self, pause: Callable[[], None]) -> None:
        """Look at the stream until all batches are done; change the queries on the way."""
        while len(self.done) < self.batches:
            self._look()
            if self.added is None and len(self.done) >= self.batches // 3:
                self.added = self._add()
            if self.removed is None and len(self.done) >= 2 * self.batches // 3:
                self.removed = self._remove()
            pause()

    def _look(self) -> None:
        active = self.query.isActive
        last = self.query.lastProgress
        if last is not None and last["batchId"] not in self.done:
            missed = last["batchId"] != len(self.done)
            for progress in self.query.recentProgress if missed else [last]:
                if progress["batchId"] not in self.done and progress["numInputRows"]:
                    self._take(Batch.of(progress))
        if not active and len(self.done) < self.batches:
            reason = str(self.query.exception() or "somebody stopped it").partition("\n\n")[0]
            raise ValueError(f"the stream ended after {len(self.done)} batches: {reason}")

    def _take(self, batch: Batch) -> None:
        self.done[batch.number] = batch
        self.bound |= self.catalog.bindings(self.query)
        last = len(self.done) == self.batches
        if not self._console.is_terminal and (
            last or batch.number % max(self.batches // 10, 1) == 0
        ):
            self._console.print(self._line(batch))

    def _add(self) -> Change:
        import numpy as np

        more = self.market.queries(self._changed, self._queries)
        started = time.perf_counter()
        receipt = self.catalog.add(more.frame(self.market.names))
        took = time.perf_counter() - started
        self.brute_force.add(more, receipt.version)
        ids = np.arange(more.first_id, more.first_id + self._changed)
        return self._changed_by(receipt, ids, f"added {receipt.added:,} queries", took)

    def _remove(self) -> Change:
        import pyarrow as pa

        ids = self.rng.choice(self._queries, self._changed, replace=False)
        started = time.perf_counter()
        receipt = self.catalog.remove(pa.array(ids))
        took = time.perf_counter() - started
        self.brute_force.remove(ids, receipt.version)
        return self._changed_by(receipt, ids, f"removed {receipt.removed:,} queries", took)

    def _changed_by(
        self, receipt: Receipt, ids: npt.NDArray[np.int64], what: str, took: float
    ) -> Change:
        try:
            batch = receipt.wait(self.query)
        except TimeoutError:
            self._look()  # if the stream has failed, that is the error to show
            raise
        self._console.print(
            f"{what} in {took:.2f} s: version {receipt.version}, in force from batch {batch} on"
        )
        return Change(receipt, batch, ids)

    def _line(self, batch: Batch) -> str:
        return (
            f"batch {batch.number:>3}: {batch.events / batch.seconds:,.0f} events/s, "
            f"{batch.matches / batch.seconds:,.0f} matches/s, {batch.quarantined} quarantined, "
            f"version {self.bound.get(batch.number, '?')}"
        )

    @property
    def events(self) -> int:
        return sum(batch.events for batch in self.done.values())

    @property
    def matches(self) -> int:
        return sum(batch.matches for batch in self.done.values())

    @property
    def quarantined(self) -> int:
        return sum(batch.quarantined for batch in self.done.values())

    def seconds(self) -> float:
        """From the start of the first batch to the end of the last."""
        last = max(self.done.values())
        return last.began + last.seconds - min(self.done.values()).began

    def summarise(self) -> None:
        took = self.seconds()
        self._console.print(
            f"{self.events:,} events, {self.quarantined:,} quarantined, {self.matches:,} matches "
            f"({self.matches / self.events:.1f} an event) in {took:.1f} s: "
            f"{self.events / took:,.0f} events/s, {self.matches / took:,.0f} matches/s"
        )

    def __rich__(self) -> RenderableType:
        from rich.panel import Panel
        from rich.table import Table

        done = sorted(self.done.values())
        rates = [batch.events / batch.seconds for batch in done]
        found = f"{done[-1].matches / done[-1].seconds:,.0f}" if done else ""
        grid = Table.grid(padding=(0, 2))
        for _ in range(2):
            grid.add_column(style="dim")
            grid.add_column(justify="right", min_width=14)
        version = str(max(self.bound.values())) if self.bound else ""
        grid.add_row("batches", f"{len(done)} of {self.batches}", "catalog version", version)
        grid.add_row("events/s", f"{rates[-1]:,.0f}" if rates else "", "matches/s", found)
        grid.add_row("events", f"{self.events:,}", "matches", f"{self.matches:,}")
        grid.add_row("quarantined", f"{self.quarantined:,}", "", "")
        whole = Table.grid()
        whole.add_row(grid)
        most = min(self.batches, 60)
        whole.add_row(f"[cyan]{sparkline(rates[-most:]):<{most}}[/] [dim]events/s[/]")
        return Panel(whole, title="limen demo", title_align="left", expand=False)


def sparkline(values: list[float]) -> str:
    """Heights against the largest of them, from zero."""
    top = max(values, default=1.0) or 1.0
    return "".join(BARS[min(int(value / top * len(BARS)), len(BARS) - 1)] for value in values)


def _display(console: Console, run: Run) -> Any:
    from rich.live import Live

    return (
        Live(run, console=console, refresh_per_second=8) if console.is_terminal else nullcontext()
    )


# -- after the stream ----------------------------------------------------------------------------


def _show(console: Console, run: Run, found: Found, drawn: Queries, output: Path) -> None:
    """The first match of an added query, the picture, and where things are."""
    assert run.added is not None and run.removed is not None
    if (row := found.first_of_added) is not None:
        who = min(one for one in row["query_ids"] if one >= run.added.ids[0])
        entry = run.catalog.get(who)
        assert entry is not None
        console.print(
            f"the first match of an added query: trade {row['trade']:,}, {row['symbol']} at "
            f"{row['price']:.4f}\n  by query {who}: {entry.where}",
            markup=False,
        )
    told = f"the matches (a Delta table) and the catalog of the queries are in {output}"
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        told += "; a picture needs matplotlib: pip install 'limen[plot]'"
    else:
        from limen.plotting.demo import draw

        changes = (run.added.batch, found.of_added), (run.removed.batch, found.of_removed)
        draw(sorted(run.done.values()), *changes, drawn, output / "demo.png")
        told += ", with a picture, demo.png"
    console.print(
        f"{told}; to look at them:\n"
        f"  limen queries history {output / 'catalog'}\n"
        f"  python -c \"import deltalake as d; print(d.DeltaTable('{output / 'matches'}')"
        f'.to_pyarrow_dataset().head(5).to_pandas().to_string())"',
        markup=False,
    )
