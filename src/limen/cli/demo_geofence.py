"""`limen demo geofence`: vehicles that drive through a city and a hundred thousand fences, on Spark.

A seeded city feeds Spark; what the vehicles enter and leave is written to a Delta table, batch by batch.
A third of the way fences are added, after two thirds others removed: whoever stands in one enters it when
it comes and leaves it when it goes. At the end the whole table is read back and judged by the raw bounds
of the fences, and for a sample of vehicles everything is compared with brute force over all fences.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from limen.cli import demo_stage
from limen.cli.demo_stage import PACE, Change, Followed, doing

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa
    from rich.console import Console, RenderableType

    from limen.catalog import Catalog
    from limen.testing.city import BruteForce, City, Fences

CHANGED = 5_000  # fences that come, and that go
SECONDS = 20  # of the city in a batch, if not said
CHECKED = 12  # vehicles
DRAWN = 60
ON = ["x", "y"]


def geofence(
    vehicles: Annotated[int, typer.Option(min=10, help="Moving points.")] = 5_000,
    fences: Annotated[int, typer.Option(min=100, help="Standing rectangles.")] = 100_000,
    batches: Annotated[int, typer.Option(min=6, help="Batches of readings.")] = 30,
    readings: Annotated[
        int | None,
        typer.Option(
            min=10, help="Readings in a batch.", show_default=f"{SECONDS} of each vehicle"
        ),
    ] = None,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The folder for the catalog and the crossings.")
    ] = Path("out/geofence"),
) -> None:
    """Thousands of vehicles and a hundred thousand fences on Spark: who enters and leaves which."""
    from rich.console import Console

    console = Console(highlight=False, soft_wrap=True)
    output.mkdir(parents=True, exist_ok=True)
    spark = demo_stage.start_spark(console, output / "spark.log")

    from limen.testing.city import BruteForce, City

    _compile(console)
    city = City(vehicles=vehicles)
    drawn = city.fences(fences)
    catalog, version = _catalog(console, drawn, output)
    try:
        _index(console, catalog)
        run = Run(console, city, catalog, BruteForce(drawn, version), batches)
        table, first = output / "crossings", output / "warm-up"
        each = readings or SECONDS * vehicles
        with demo_stage.patient() as pause:
            demo_stage.warm_up(
                console,
                lambda: _start(spark, run, 2 * vehicles, 2, first, availableNow=True),
                first,
                pause,
            )
            run.query = _start(spark, run, each, batches, table, **PACE)
            try:
                with demo_stage.display(console, run):
                    run.follow(pause)
            except KeyboardInterrupt:
                console.print(f"stopped; {len(run.done)} batches are in {table}")
                raise
            finally:
                run.query.stop()
        run.summarise()
        found = check(console, run, table)
        _show(console, run, found, output)
    finally:
        demo_stage.forget(catalog)


# -- before the stream ---------------------------------------------------------------------------


def _compile(console: Console) -> None:
    """Have every kernel ready before anything is timed; Spark's workers find them on disk.

    Theirs are for an index that is mapped, and for one that was mapped and has changed.
    """
    import tempfile

    import pyarrow as pa

    from limen.engine.buckets import buckets_of
    from limen.engine.crosser import Crosser
    from limen.engine.monitor import Monitor
    from limen.engine.watch import Watch
    from limen.kernels.compiled import CACHE
    from limen.model import QuerySet
    from limen.testing.city import ATTRIBUTES, SCHEMA, City

    if not any(Path(CACHE).rglob("*.nbi")):
        console.print("compiling kernels, once (up to a minute)")
    city = City(1, 500)
    watch = Watch.of(
        SCHEMA,
        ATTRIBUTES,
        entity="vehicle",
        on=ON,
        time="at",
        exit_on_removal=True,
        enter_on_add=True,
    )
    with doing(console, "loading kernels"), tempfile.TemporaryDirectory() as folder:
        Monitor(QuerySet.of(city.fences(4000).frame()), ON).save(Path(folder) / "index")
        crosser = Crosser(Monitor.load(Path(folder) / "index"), watch)
        for first in (0, 1000):
            readings = pa.Table.from_batches(city.readings(first, first + 1000))
            buckets_of(readings.column("vehicle"), 16)
            crosser.cross(readings)
            crosser.change(city.fences(200, 4000 + first).frame(), range(first, first + 200))
        crosser.cross(pa.Table.from_batches(city.readings(2000, 3000)))


def _catalog(console: Console, drawn: Fences, output: Path) -> tuple[Catalog, int]:
    """A fresh catalog with all fences, and its version."""
    from limen.catalog import Catalog
    from limen.testing.city import ATTRIBUTES

    for name in ("catalog", "crossings", "crossings.ckpt"):
        shutil.rmtree(output / name, ignore_errors=True)
    frame = drawn.frame()
    started = time.perf_counter()
    with doing(console, f"putting {len(frame):,} fences into a catalog"):
        catalog = Catalog.open(output / "catalog", ATTRIBUTES, ids="int64")
        receipt = catalog.add(frame)
    took = time.perf_counter() - started
    console.print(
        f"{receipt.added:,} fences in the catalog: {took:.1f} s, version {receipt.version}\n"
        f"  such as {drawn.sql(0)}"
    )
    return catalog, receipt.version


def _index(console: Console, catalog: Catalog) -> None:
    """Build the index that all workers of this machine map, as the first of them would."""
    from limen.engine.versions import Versions, monitor

    started = time.perf_counter()
    with doing(console, "building the index"):
        index = Versions(catalog, monitor(ON, {}, [])).at(catalog.version)
    took = time.perf_counter() - started
    console.print(
        f"the index of their borders: {took:.1f} s, {index.nbytes / len(index):.0f} bytes a fence"
    )


def _start(spark: Any, run: Run, readings: int, batches: int, table: Path, **trigger: Any) -> Any:
    """Feed, cross, write: the running query."""
    from limen.spark import crossings, write_delta
    from limen.testing.city import FORMAT, counted, feed

    spark.dataSource.register(feed())
    city = run.city
    options = {"seed": city.seed, "vehicles": city.vehicles}
    options |= {"rows_per_batch": readings, "rows": readings * batches}
    found = crossings(
        spark.readStream.format(FORMAT).options(**options).load(),
        run.catalog,
        entity="vehicle",
        on=ON,
        time="at",
        exit_on_removal=True,
        enter_on_add=True,
    )
    return write_delta(counted(found), table, **trigger)


# -- the stream ----------------------------------------------------------------------------------


class Batch(NamedTuple):
    """A batch that is done, as Spark reports it."""

    number: int
    first: int  # its readings, up to, not including, last
    last: int
    began: float  # seconds since 1970
    seconds: float
    enters: int
    exits: int

    @property
    def readings(self) -> int:
        return self.last - self.first


class Run(Followed[Batch]):
    """The stream so far."""

    def __init__(
        self,
        console: Console,
        city: City,
        catalog: Catalog,
        brute_force: BruteForce,
        batches: int,
    ) -> None:
        super().__init__(console, catalog, batches)
        self.city, self.brute_force = city, brute_force
        self._first = len(catalog)
        self._changed = min(CHANGED, self._first // 20)

    def _batch(self, progress: Any) -> Batch:
        observed = progress["observedMetrics"]["limen"]
        return Batch(*demo_stage.stretch(progress), observed["enters"], observed["exits"])

    def _add(self) -> Change:
        import numpy as np

        more = self.city.fences(self._changed, self._first)
        started = time.perf_counter()
        receipt = self.catalog.add(more.frame())
        took = time.perf_counter() - started
        self.brute_force.add(more, receipt.version)
        ids = np.arange(self._first, self._first + self._changed)
        return self._changed_by(receipt, ids, f"added {receipt.added:,} fences", took)

    def _remove(self) -> Change:
        import pyarrow as pa

        ids = self.rng.choice(self._first, self._changed, replace=False)
        started = time.perf_counter()
        receipt = self.catalog.remove(pa.array(ids))
        took = time.perf_counter() - started
        self.brute_force.remove(ids, receipt.version)
        return self._changed_by(receipt, ids, f"removed {receipt.removed:,} fences", took)

    def _line(self, batch: Batch) -> str:
        return (
            f"batch {batch.number:>3}: {batch.readings / batch.seconds:,.0f} readings/s, "
            f"{batch.enters:,} enters, {batch.exits:,} exits, "
            f"version {self.bound.get(batch.number, '?')}"
        )

    @property
    def fences(self) -> int:
        """In force now."""
        come, gone = self.added is not None, self.removed is not None
        return self._first + (come - gone) * self._changed

    @property
    def readings(self) -> int:
        return sum(batch.readings for batch in self.done.values())

    @property
    def enters(self) -> int:
        return sum(batch.enters for batch in self.done.values())

    @property
    def exits(self) -> int:
        return sum(batch.exits for batch in self.done.values())

    def summarise(self) -> None:
        took = self.seconds()
        bad = sum(self.catalog.quarantined(self.query).values())
        self._console.print(
            f"{self.readings:,} readings of {self.city.vehicles:,} vehicles, {bad:,} quarantined, "
            f"{self.enters:,} enters and {self.exits:,} exits in {took:.1f} s: "
            f"{self.readings / took:,.0f} readings/s"
        )

    def __rich__(self) -> RenderableType:
        done = sorted(self.done.values())
        rates = [batch.readings / batch.seconds for batch in done]
        version = str(max(self.bound.values())) if self.bound else ""
        rate = f"{rates[-1]:,.0f}" if rates else ""
        rows = [
            ("batches", f"{len(done)} of {self.batches}", "catalog version", version),
            ("vehicles", f"{self.city.vehicles:,}", "fences", f"{self.fences:,}"),
            ("readings", f"{self.readings:,}", "readings/s", rate),
            ("enters", f"{self.enters:,}", "exits", f"{self.exits:,}"),
        ]
        return demo_stage.panel(rows, rates, self.batches, "readings/s")


# -- after the stream ----------------------------------------------------------------------------


class Crossings(NamedTuple):
    """The table of crossings, in the order of vehicle, fence, second and version."""

    vehicle: npt.NDArray[np.int64]
    fence: npt.NDArray[np.int64]
    second: npt.NDArray[np.int64]
    version: npt.NDArray[np.int64]
    entered: npt.NDArray[np.bool_]
    x: npt.NDArray[np.float64]
    y: npt.NDArray[np.float64]
    previous_x: npt.NDArray[np.float64]  # NaN where there is none
    previous_y: npt.NDArray[np.float64]

    @classmethod
    def of(cls, table: pa.Table) -> Crossings:
        import numpy as np
        import pyarrow.compute as pc

        from limen.testing.city import seconds_of

        def column(name: str) -> Any:
            return table.column(name).to_numpy()

        keys = column("vehicle"), column("query_id"), seconds_of(table.column("at"))
        entered = pc.equal(table.column("crossing"), "enter").to_numpy()
        places = (column(name) for name in ("x", "y", "previous_x", "previous_y"))
        columns = *keys, column("version"), entered, *places
        order = np.lexsort(columns[3::-1])
        return cls(*(values[order] for values in columns))

    def some(self, which: npt.NDArray[np.bool_]) -> Crossings:
        columns: Iterable[Any] = self
        return Crossings(*(column[which] for column in columns))

    @property
    def standing(self) -> npt.NDArray[np.bool_]:
        """Whether the fence came or went and not the vehicle."""
        same: npt.NDArray[np.bool_] = (self.x == self.previous_x) & (self.y == self.previous_y)
        return same


class Tracks(NamedTuple):
    """The good readings of some vehicles, in order."""

    vehicle: npt.NDArray[np.int64]
    second: npt.NDArray[np.int64]
    reading: npt.NDArray[np.int64]
    x: npt.NDArray[np.float64]
    y: npt.NDArray[np.float64]

    def of(self, vehicle: int) -> Tracks:
        columns: Iterable[Any] = self
        return Tracks(*(column[self.vehicle == vehicle] for column in columns))


class Found(NamedTuple):
    crossings: Crossings
    tracks: Tracks  # of the vehicles that are checked or drawn
    checked: list[int]


def check(console: Console, run: Run, table: Path) -> Found:
    """The whole table by the bounds of the fences, a sample of vehicles by brute force."""
    import numpy as np
    from deltalake import DeltaTable

    with doing(console, f"reading {table} back"):
        crossings = Crossings.of(DeltaTable(table).to_pyarrow_dataset().to_table())
        _judge(run, crossings)
    console.print(
        f"read back: {len(crossings.fence):,} crossings, each of them once, right by the bounds of its "
        "fence, enter and exit in turn"
    )
    everybody = run.rng.permutation(run.city.vehicles)
    checked = np.sort(everybody[:CHECKED]).tolist()
    with doing(console, f"checking {CHECKED} vehicles against brute force"):
        bad, tracks = _history(run, everybody[: max(CHECKED, DRAWN)])
        told = sum(run.catalog.quarantined(run.query).values())
        if bad != told:
            raise ValueError(f"{bad:,} readings are bad, but {told:,} were quarantined")
        mine = crossings.some(np.isin(crossings.vehicle, checked))
        pairs = sum(_compare(run, one, tracks.of(one), mine) for one in checked)
    console.print(
        f"checked all readings of {len(checked)} vehicles against all "
        f"{len(run.brute_force.all.x_lo):,} fences by brute force, each by its batch's version: "
        f"{len(mine.fence):,} crossings of {pairs:,} pairs of a vehicle and a fence, all equal"
    )
    return Found(crossings, tracks, checked)


def _judge(run: Run, found: Crossings) -> None:
    """Every row of the table, by what it says itself."""
    import numpy as np

    assert run.added is not None and run.removed is not None
    for kind, told, rows in (
        ("enters", run.enters, int(found.entered.sum())),
        ("exits", run.exits, int((~found.entered).sum())),
    ):
        if told != rows:
            raise ValueError(f"Spark counted {told:,} {kind}, but {rows:,} are in the table")
    same = (found.vehicle[1:] == found.vehicle[:-1]) & (found.fence[1:] == found.fence[:-1])
    again = same & (found.second[1:] == found.second[:-1])
    if (again & (found.entered[1:] == found.entered[:-1])).any():
        raise ValueError("the table holds some crossing twice")
    in_turn = np.append(True, ~same | ~found.entered[:-1])[: len(found.entered)]
    if not np.array_equal(found.entered, in_turn):
        raise ValueError("a vehicle left a fence that it was not in, or entered one that it was in")
    standing = found.standing
    now = run.brute_force.holds(found.fence, found.x, found.y)
    before = run.brute_force.holds(found.fence, found.previous_x, found.previous_y)
    if not np.where(standing, now, (now == found.entered) & (before != found.entered)).all():
        raise ValueError("a crossing is not one by the bounds of its fence")
    firsts = np.array([batch.first for batch in sorted(run.done.values())])
    bound = np.array([run.bound[number] for number in sorted(run.done)])
    reading = found.second * run.city.vehicles + found.vehicle
    batch = np.searchsorted(firsts, reading, "right") - 1
    changed = np.where(found.entered, run.added.receipt.version, run.removed.receipt.version)
    if not np.where(standing, found.version >= changed, found.version == bound[batch]).all():
        raise ValueError("a reading was taken under another version than its batch is bound to")
    for version in np.unique(found.version).tolist():
        fences = found.fence[(found.version == version) & ~(standing & ~found.entered)]
        if not run.brute_force.in_force(version)[fences].all():
            raise ValueError("a fence was crossed before it was added or after it was removed")


def _history(run: Run, vehicles: npt.NDArray[np.int64]) -> tuple[int, Tracks]:
    """How many readings are bad, and the good ones of these vehicles."""
    import numpy as np
    import pyarrow as pa

    from limen.testing.city import bad_readings

    bad, parts = 0, []
    for part in run.city.readings(0, run.readings):
        amiss = bad_readings(part)
        bad += int(amiss.sum())
        wanted = ~amiss & np.isin(part.column("vehicle").to_numpy(), vehicles)
        parts.append(part.filter(pa.array(wanted)))
    table = pa.Table.from_batches(parts)
    vehicle, reading, x, y = (
        table.column(name).to_numpy() for name in ("vehicle", "reading", "x", "y")
    )
    return bad, Tracks(vehicle, reading // run.city.vehicles, reading, x, y)


def _compare(run: Run, vehicle: int, track: Tracks, found: Crossings) -> int:
    """One vehicle by brute force; returns how many fences it has crossed."""
    import numpy as np

    firsts = [batch.first for batch in sorted(run.done.values())]
    versions = [run.bound[number] for number in sorted(run.done)]
    batch = np.searchsorted(firsts, track.reading, "right") - 1
    expected = {
        (one.fence, int(track.second[one.reading]), one.entered, one.version)
        for one in run.brute_force.crossings(track.x, track.y, batch, versions)
    }
    rows = found.some(found.vehicle == vehicle)
    columns = rows.fence, rows.second, rows.entered, rows.version
    there = list(zip(*(column.tolist() for column in columns), strict=True))
    if len(there) != len(expected) or set(there) != expected:
        missed, extra = sorted(expected - set(there)), sorted(set(there) - expected)
        raise ValueError(
            f"vehicle {vehicle}: the table has {len(there)} crossings, brute force {len(expected)}; "
            f"missed: {missed[:5]}, in excess: {extra[:5]} (fence, second, entered, version)"
        )
    return len({fence for fence, *_ in expected})


def _show(console: Console, run: Run, found: Found, output: Path) -> None:
    """A crossing of an added fence, the picture, and where things are."""
    assert run.added is not None and run.removed is not None
    rows = found.crossings
    for row in (rows.entered & (rows.fence >= run.added.ids[0]) & ~rows.standing).nonzero()[0][:1]:
        fence = int(rows.fence[row])
        console.print(
            f"vehicle {rows.vehicle[row]} came from ({rows.previous_x[row]:.1f}, "
            f"{rows.previous_y[row]:.1f}) to ({rows.x[row]:.1f}, {rows.y[row]:.1f}) and so into an "
            f"added fence\n  {fence}: {run.brute_force.all.sql(fence)}",
            markup=False,
        )
    told = f"the crossings (a Delta table) and the catalog of the fences are in {output}"
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        told += "; a picture needs matplotlib: pip install 'limen[plot]'"
    else:
        from limen.plotting.geofence import draw

        draw(
            sorted(run.done.values()),
            run.brute_force.all,
            run.added,
            run.removed,
            found.tracks,
            rows,
            run.city.vehicles,
            output / "geofence.png",
        )
        told += ", with a picture, geofence.png"
    console.print(
        f"{told}; to look at them:\n"
        f"  limen queries history {output / 'catalog'}\n"
        f"  python -c \"import deltalake as d; print(d.DeltaTable('{output / 'crossings'}')"
        f'.to_pyarrow_dataset().head(5).to_pandas().to_string())"',
        markup=False,
    )
