"""`limen demo`: a million standing queries, a stream of trades, queries that come and go.

A seeded market trades in batches; the engine matches each batch against all queries in force. A third
of the way queries are added, after two thirds others removed. At the end a sample of the answers is
compared with brute force over the raw bounds, and a picture and the last matches are kept.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa
    from rich.console import Console, RenderableType

    from limen.cli.market import BruteForce, Market, Queries
    from limen.engine import Matcher

CHANGED = 10_000  # queries that come, and that go
CHECKED_BATCHES, CHECKED_EVENTS = 8, 25
KEPT_BATCHES = 3
BARS = "▁▂▃▄▅▆▇█"


def demo(
    queries: Annotated[int, typer.Option(min=100, help="Standing queries.")] = 1_000_000,
    batches: Annotated[int, typer.Option(min=3, help="Batches of events.")] = 40,
    events: Annotated[int, typer.Option(min=10, help="Events in a batch.")] = 100_000,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The folder for the picture and the matches.")
    ] = Path("out/demo"),
) -> None:
    """A million standing queries over a stream of trades, checked against brute force."""
    from rich.console import Console

    console = Console(highlight=False, soft_wrap=True)
    output.mkdir(parents=True, exist_ok=True)
    _compile(console)

    from limen.cli.market import Market

    market = Market()
    drawn = market.queries(queries)
    matcher = _build(console, market, drawn)
    stream = Stream(market, matcher, drawn, batches, console)
    with _display(console, stream):
        for _ in range(batches):
            stream.step(events)
    stream.summarise()
    _check(console, stream)
    _keep(console, stream, drawn, output)


def _compile(console: Console) -> None:
    """Have every kernel ready before anything is timed."""
    import numpy as np

    from limen.cli.market import ANY, Market, Queries
    from limen.engine import Matcher
    from limen.kernels.compiled import CACHE
    from limen.model import QuerySet

    if not any(Path(CACHE).rglob("*.nbi")):
        console.print("compiling kernels, once (up to a minute)")
    market = Market(1)
    first, second = market.queries(4000), market.queries(400, 4000)
    matcher = Matcher(QuerySet.of(first.frame(market.names)))
    matcher.add(QuerySet.of(second.frame(market.names)))
    whatever = np.full(1, ANY, np.int32), np.zeros(1), np.full(1, 1e9), np.zeros(1, np.int64)
    matcher.add(QuerySet.of(Queries(4400, *whatever).frame(market.names)))
    matcher.remove(range(400))
    matcher.match(market.events(1000)[0], emit="ids")


def _build(console: Console, market: Market, drawn: Queries) -> Matcher:
    from limen.engine import Matcher
    from limen.model import QuerySet

    frame = drawn.frame(market.names)
    told = f"building the index of {len(frame):,} queries"
    started = time.perf_counter()
    if console.is_terminal:
        with console.status(told):
            matcher = Matcher(QuerySet.of(frame))
    else:
        matcher = Matcher(QuerySet.of(frame))
    took = time.perf_counter() - started
    console.print(
        f"{len(matcher):,} standing queries in {took:.1f} s: {len(matcher) / took:,.0f} queries/s, "
        f"{matcher.nbytes / len(matcher):.0f} bytes a query"
    )
    for row in (0, 1):
        console.print(f"  such as {drawn.sql(row, market.names)}", markup=False)
    return matcher


class Sample(NamedTuple):
    """Events of a batch and the ids that the engine reported for them."""

    batch: int
    events: list[dict[str, Any]]
    found: list[list[int]]


class Stream:
    """The batches so far; batches are numbered from 1."""

    def __init__(
        self, market: Market, matcher: Matcher, drawn: Queries, batches: int, console: Console
    ) -> None:
        import numpy as np

        from limen.cli.market import BruteForce

        self._rng = np.random.default_rng(11)
        self._market, self._matcher, self._console = market, matcher, console
        self.brute_force: BruteForce = BruteForce(drawn)
        self._first_added = len(drawn.lo)
        self._changed = min(CHANGED, len(drawn.lo) // 10)
        self._added: Queries | None = None
        self._seen_added = False
        self._removed: npt.NDArray[np.bool_] | None = None
        self.batches, self.batch = batches, 0
        self.adds_at, self.removes_at = 1 + batches // 3, 1 + 2 * batches // 3
        checked = min(CHECKED_BATCHES, batches)
        self.checked = set((1 + self._rng.choice(batches, checked, replace=False)).tolist())
        self.events = self.matches = self.quarantined = 0
        self.seconds: list[float] = []
        self.sizes: list[int] = []
        self.found: list[int] = []
        self.samples: list[Sample] = []
        self.kept: list[pa.Table] = []

    def step(self, n: int) -> None:
        """One batch: draw it, change the queries if it is time, match it."""
        self.batch += 1
        events, bad = self._market.events(n)
        if self.batch == self.adds_at:
            self._add()
        if self.batch == self.removes_at:
            self._remove()
        started = time.perf_counter()
        matches, quarantine = self._matcher.match(events, emit="ids")
        self.seconds.append(time.perf_counter() - started)
        self._judge(len(events), int(bad.sum()), len(matches), len(quarantine))
        offsets, ids = _lists(matches)
        self.events += n
        self.sizes.append(n)
        self.found.append(len(ids))
        self.matches += len(ids)
        self.quarantined += len(quarantine)
        if self._added is not None and not self._seen_added:
            self._show_added(matches, offsets, ids)
        if self._removed is not None and self._removed[ids].any():
            raise ValueError(f"batch {self.batch}: a removed query was reported")
        if self.batch in self.checked:
            self._sample(events, bad, offsets, ids)
        if self.batch > self.batches - KEPT_BATCHES:
            self.kept.append(matches)
        if not self._console.is_terminal and (self.batch % 5 == 0 or self.batch == self.batches):
            self._console.print(self._line())

    def _judge(self, events: int, bad: int, matched: int, quarantined: int) -> None:
        if quarantined != bad or matched + quarantined != events:
            raise ValueError(
                f"batch {self.batch}: of {events:,} events {bad:,} are bad, but {quarantined:,} "
                f"were quarantined and {matched:,} matched"
            )

    def _add(self) -> None:
        from limen.model import QuerySet

        more = self._market.queries(self._changed, self._first_added)
        started = time.perf_counter()
        count = self._matcher.add(QuerySet.of(more.frame(self._market.names)))
        took = time.perf_counter() - started
        self.brute_force.add(more, self.batch)
        self._added = more
        self._console.print(
            f"added {count:,} queries in {took:.2f} s: in force from batch {self.batch} on"
        )

    def _remove(self) -> None:
        import numpy as np

        ids = self._rng.choice(self._first_added, self._changed, replace=False)
        started = time.perf_counter()
        count = self._matcher.remove(ids.tolist())
        took = time.perf_counter() - started
        self.brute_force.remove(ids, self.batch)
        self._removed = np.zeros(self._first_added + self._changed, np.bool_)
        self._removed[ids] = True
        self._console.print(
            f"removed {count:,} queries in {took:.2f} s: none of them matches from batch "
            f"{self.batch} on"
        )

    def _show_added(
        self, matches: pa.Table, offsets: npt.NDArray[np.int64], ids: npt.NDArray[np.int64]
    ) -> None:
        import numpy as np

        hits = np.flatnonzero(ids >= self._first_added)
        if not len(hits) or self._added is None:
            return
        self._seen_added = True
        row = int(np.searchsorted(offsets, hits[0], "right")) - 1
        event = matches.slice(row, 1).to_pylist()[0]
        who = int(ids[hits[0]])
        body = self._added.sql(who - self._first_added, self._market.names)
        self._console.print(
            f"  the first match of an added query: {event['symbol']} at {event['price']:.4f} "
            f"(volume {event['volume']}) in batch {self.batch}\n"
            f"  by query {who}: {body}",
            markup=False,
        )

    def _sample(
        self,
        events: pa.Table,
        bad: npt.NDArray[np.bool_],
        offsets: npt.NDArray[np.int64],
        ids: npt.NDArray[np.int64],
    ) -> None:
        import numpy as np
        import pyarrow as pa

        good = np.flatnonzero(~bad)
        ranks = np.sort(self._rng.choice(len(good), min(CHECKED_EVENTS, len(good)), replace=False))
        rows = events.take(pa.array(good[ranks])).to_pylist()
        found = [ids[offsets[rank] : offsets[rank + 1]].tolist() for rank in ranks.tolist()]
        self.samples.append(Sample(self.batch, rows, found))

    def _line(self) -> str:
        return (
            f"batch {self.batch:>3} of {self.batches}: "
            f"{self.sizes[-1] / self.seconds[-1]:,.0f} events/s, "
            f"{self.found[-1] / self.seconds[-1]:,.0f} matches/s, "
            f"{len(self._matcher):,} queries in force"
        )

    def summarise(self) -> None:
        took = sum(self.seconds)
        self._console.print(
            f"{self.events:,} events, {self.quarantined:,} quarantined, {self.matches:,} matches "
            f"({self.matches / self.events:.1f} an event) in {took:.1f} s: "
            f"{self.events / took:,.0f} events/s, {self.matches / took:,.0f} matches/s"
        )

    def __rich__(self) -> RenderableType:
        from rich.panel import Panel
        from rich.table import Table

        grid = Table.grid(padding=(0, 2))
        grid.add_column(style="dim")
        grid.add_column(justify="right", min_width=14)
        grid.add_column(style="dim")
        grid.add_column(justify="right", min_width=14)
        rates = [size / took for size, took in zip(self.sizes, self.seconds, strict=True)]
        took = max(self.seconds[-1] if self.seconds else 1.0, 1e-9)
        last = self.found[-1] if self.found else 0
        grid.add_row(
            "batch", f"{self.batch} of {self.batches}", "queries", f"{len(self._matcher):,}"
        )
        grid.add_row(
            "events/s", f"{rates[-1]:,.0f}" if rates else "", "matches/s", f"{last / took:,.0f}"
        )
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


def _display(console: Console, stream: Stream) -> Any:
    from contextlib import nullcontext

    from rich.live import Live

    if not console.is_terminal:
        return nullcontext()
    return Live(stream, console=console, refresh_per_second=8)


def _lists(matches: pa.Table) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Offsets and ids of the last column."""
    import numpy as np

    lists = matches.column(matches.num_columns - 1).combine_chunks()
    counts = lists.value_lengths().to_numpy(zero_copy_only=False)
    return np.concatenate([[0], np.cumsum(counts, dtype=np.int64)]), lists.flatten().to_numpy()


def _check(console: Console, stream: Stream) -> None:
    events = sum(len(sample.events) for sample in stream.samples)
    where = f"{events} events of {len(stream.samples)} batches"
    if console.is_terminal:
        with console.status(f"checking {where} against brute force"):
            _compare(stream)
    else:
        _compare(stream)
    console.print(f"checked {where} against brute force: all equal")


def _compare(stream: Stream) -> None:
    for batch, events, found in stream.samples:
        for event, ids in zip(events, found, strict=True):
            expected = stream.brute_force.matching(batch, **event)
            if len(ids) != len(expected) or set(ids) != expected:
                missed, extra = sorted(expected - set(ids)), sorted(set(ids) - expected)
                raise ValueError(
                    f"batch {batch}, event {event}: the engine reports {len(ids)} queries, brute "
                    f"force {len(expected)}; missed: {missed[:5]}, in excess: {extra[:5]}"
                )


def _keep(console: Console, stream: Stream, drawn: Queries, output: Path) -> None:
    import pyarrow as pa

    from limen.cli.result_files import ResultFile

    matches = output / "matches.parquet"
    with ResultFile(matches) as file:
        file.write(pa.concat_tables(stream.kept))
    told = f"matches of the last {len(stream.kept)} batches: {matches}"
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        console.print(f"{told}; the picture needs matplotlib: pip install 'limen[plot]'")
        return
    from limen.plotting.demo import draw

    picture = output / "demo.png"
    rates = [size / took for size, took in zip(stream.sizes, stream.seconds, strict=True)]
    draw(rates, stream.found, stream.seconds, stream.adds_at, stream.removes_at, drawn, picture)
    console.print(f"{told}; picture: {picture} (open it in any viewer)", soft_wrap=True)
