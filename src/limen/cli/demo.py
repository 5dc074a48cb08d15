"""`limen demo`: a million standing queries, a stream of trades on Spark, queries that come and go.

A seeded market feeds Spark; every batch is matched against the queries that the catalog holds and written
to a Delta table. A third of the way queries are added, after two thirds others removed. At the end the
whole table is read back and judged: every trade is there once or is bad, matched under the version that
its batch is bound to; and a sample of the answers is compared with brute force over the raw bounds.
"""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from limen.cli import demo_stage
from limen.cli.demo_stage import PACE, Change, Followed
from limen.cli.demo_stage import doing as doing
from limen.cli.demo_stage import sparkline as sparkline

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from limen.catalog import Catalog
    from limen.cli.demo_check import Found
    from limen.testing.market import BruteForce, Market, Queries

CHANGED = 10_000  # queries that come, and that go


demos = typer.Typer()


@demos.callback(invoke_without_command=True)
def demo(
    context: typer.Context,
    queries: Annotated[int, typer.Option(min=100, help="Standing queries.")] = 1_000_000,
    batches: Annotated[int, typer.Option(min=6, help="Batches of events.")] = 40,
    events: Annotated[int, typer.Option(min=10, help="Events in a batch.")] = 100_000,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The folder for the catalog and the matches.")
    ] = Path("out/demo"),
) -> None:
    """A million standing queries over a stream of trades on Spark, checked against brute force.

    `limen demo geofence` is another one: vehicles that enter and leave fences.
    """
    if context.invoked_subcommand is not None:
        _refuse_options(context)
        return
    from rich.console import Console

    console = Console(highlight=False, soft_wrap=True)
    output.mkdir(parents=True, exist_ok=True)
    spark = demo_stage.start_spark(console, output / "spark.log")

    from limen.testing.market import BruteForce, Market

    _compile(console)
    market = Market()
    drawn = market.queries(queries)
    catalog, version = _catalog(console, market, drawn, output)
    try:
        _index(console, catalog)
        run = Run(console, market, catalog, BruteForce(drawn, version), batches)
        with demo_stage.patient() as pause:
            first = output / "warm-up"
            demo_stage.warm_up(
                console,
                lambda: _start(spark, run, 20_000, 1, first, availableNow=True),
                first,
                pause,
            )
            run.query = _start(spark, run, events, batches, output / "matches", **PACE)
            try:
                with demo_stage.display(console, run):
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
        demo_stage.forget(catalog)


def _refuse_options(context: typer.Context) -> None:
    """Options before the name of another demo are not that demo's."""
    for name in context.params:
        source = context.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            raise typer.BadParameter(
                f"--{name} is of the demo without a name; options of {context.invoked_subcommand} "
                "come after it"
            )


# -- before the stream ---------------------------------------------------------------------------


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
        observed = progress["observedMetrics"]["limen"]
        matches, quarantined = observed["matches"] or 0, observed["quarantined"]
        return cls(*demo_stage.stretch(progress), matches, quarantined)

    @property
    def events(self) -> int:
        return self.last - self.first


class Run(Followed[Batch]):
    """The stream so far."""

    def __init__(
        self,
        console: Console,
        market: Market,
        catalog: Catalog,
        brute_force: BruteForce,
        batches: int,
    ) -> None:
        super().__init__(console, catalog, batches)
        self.market, self.brute_force = market, brute_force
        self._queries = len(catalog)
        self._changed = min(CHANGED, self._queries // 10)

    def _batch(self, progress: Any) -> Batch:
        return Batch.of(progress)

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

    def summarise(self) -> None:
        took = self.seconds()
        self._console.print(
            f"{self.events:,} events, {self.quarantined:,} quarantined, {self.matches:,} matches "
            f"({self.matches / self.events:.1f} an event) in {took:.1f} s: "
            f"{self.events / took:,.0f} events/s, {self.matches / took:,.0f} matches/s"
        )

    def __rich__(self) -> RenderableType:
        done = sorted(self.done.values())
        rates = [batch.events / batch.seconds for batch in done]
        found = f"{done[-1].matches / done[-1].seconds:,.0f}" if done else ""
        version = str(max(self.bound.values())) if self.bound else ""
        rows = [
            ("batches", f"{len(done)} of {self.batches}", "catalog version", version),
            ("events/s", f"{rates[-1]:,.0f}" if rates else "", "matches/s", found),
            ("events", f"{self.events:,}", "matches", f"{self.matches:,}"),
            ("quarantined", f"{self.quarantined:,}", "", ""),
        ]
        return demo_stage.panel(rows, rates, self.batches, "events/s")


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
