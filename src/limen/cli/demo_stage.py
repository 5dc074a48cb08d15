"""What the demos share: the session, the stream that they follow, and what a terminal shows of it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import time
from abc import abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, TypeVar

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from rich.console import Console, RenderableType

    from limen.catalog import Catalog, Receipt

# A batch of few events would be over before anybody has seen it; one of many takes longer anyway.
PACE = {"processingTime": "300 milliseconds"}
LOOK = 0.1  # seconds between looks at the stream
BARS = "▁▂▃▄▅▆▇█"


@contextmanager
def doing(console: Console, what: str) -> Iterator[None]:
    with console.status(what) if console.is_terminal else nullcontext():
        yield


@contextmanager
def patient() -> Iterator[Callable[[], None]]:
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


def start_spark(console: Console, log: Path) -> Any:
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


def forget(catalog: Catalog) -> None:
    """The index lies in the user's cache, where nobody would look for it again."""
    from limen.engine.versions import forget

    forget(catalog)


def warm_up(
    console: Console, start: Callable[[], Any], table: Path, pause: Callable[[], None]
) -> None:
    """Have the workers running, with kernels loaded and the index mapped: a short stream before."""
    started = time.perf_counter()
    with doing(console, "starting Spark's workers"):
        query = start()
        try:
            while query.isActive:
                pause()
        finally:
            query.stop()
            shutil.rmtree(table, ignore_errors=True)
            shutil.rmtree(table.with_name(f"{table.name}.ckpt"), ignore_errors=True)
    took = time.perf_counter() - started
    console.print(f"Spark's workers have started and mapped the index: {took:.1f} s")


def stretch(progress: Any) -> tuple[int, int, int, float, float]:
    """Of a batch as Spark reports it: its number, its first event and the one after its last, when it
    began (seconds since 1970), and how many seconds it took."""
    source = progress["sources"][0]
    first, last = (
        (json.loads(source[end]) or {"trade": 0})["trade"]  # null: from the first one on
        for end in ("startOffset", "endOffset")
    )
    began = datetime.fromisoformat(progress["timestamp"]).timestamp()
    seconds = max(progress["durationMs"]["triggerExecution"], 1) / 1000
    return progress["batchId"], first, last, began, seconds


class Done(Protocol):
    """A batch that is done."""

    @property
    def number(self) -> int: ...
    @property
    def began(self) -> float: ...
    @property
    def seconds(self) -> float: ...


B = TypeVar("B", bound=Done)


class Change(NamedTuple):
    """Queries that came or went, and the first batch that saw it."""

    receipt: Receipt
    batch: int
    ids: npt.NDArray[np.int64]


class Followed(Generic[B]):
    """The stream so far: its batches, their versions, and the changes of the queries on the way."""

    def __init__(self, console: Console, catalog: Catalog, batches: int) -> None:
        import numpy as np

        self.rng = np.random.default_rng(11)
        self.catalog, self.batches, self._console = catalog, batches, console
        self.query: Any = None  # the running one
        self.done: dict[int, B] = {}
        self.bound: dict[int, int] = {}
        self.added: Change | None = None
        self.removed: Change | None = None

    @abstractmethod
    def _batch(self, progress: Any) -> B:
        """A batch as Spark reports it."""

    @abstractmethod
    def _add(self) -> Change: ...

    @abstractmethod
    def _remove(self) -> Change: ...

    @abstractmethod
    def _line(self, batch: B) -> str:
        """What is said of a batch where nothing can be shown."""

    @abstractmethod
    def __rich__(self) -> RenderableType: ...

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
                    self._take(self._batch(progress))
        if not active and len(self.done) < self.batches:
            reason = str(self.query.exception() or "somebody stopped it").partition("\n\n")[0]
            raise ValueError(f"the stream ended after {len(self.done)} batches: {reason}")

    def _take(self, batch: B) -> None:
        self.done[batch.number] = batch
        self.bound |= self.catalog.bindings(self.query)
        last = len(self.done) == self.batches
        if not self._console.is_terminal and (
            last or batch.number % max(self.batches // 10, 1) == 0
        ):
            self._console.print(self._line(batch))

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

    def seconds(self) -> float:
        """From the start of the first batch to the end of the last."""
        last = self.done[max(self.done)]
        return last.began + last.seconds - self.done[min(self.done)].began


def sparkline(values: list[float]) -> str:
    """Heights against the largest of them, from zero."""
    top = max(values, default=1.0) or 1.0
    return "".join(BARS[min(int(value / top * len(BARS)), len(BARS) - 1)] for value in values)


def panel(
    rows: list[tuple[str, str, str, str]], rates: list[float], most: int, unit: str
) -> RenderableType:
    """Two columns of figures, and below them the rates as a line."""
    from rich.panel import Panel
    from rich.table import Table

    grid = Table.grid(padding=(0, 2))
    for _ in range(2):
        grid.add_column(style="dim")
        grid.add_column(justify="right", min_width=14)
    for row in rows:
        grid.add_row(*row)
    whole = Table.grid()
    whole.add_row(grid)
    most = min(most, 60)
    whole.add_row(f"[cyan]{sparkline(rates[-most:]):<{most}}[/] [dim]{unit}[/]")
    return Panel(whole, title="limen demo", title_align="left", expand=False)


def display(console: Console, run: Followed[Any]) -> Any:
    from rich.live import Live

    return (
        Live(run, console=console, refresh_per_second=8) if console.is_terminal else nullcontext()
    )
