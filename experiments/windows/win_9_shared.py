"""One result for queries with shorter windows (section 3.4)."""

from __future__ import annotations

import tempfile
from collections import defaultdict
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from limen.archive import Archive
from limen.plotting.style import BLUE, GREEN, GREY, ORANGE, VERMILION
from limen.reproduce import Check, Verdict

from ..exact import held, same
from ..judging import logarithmic

CLAIM = "WIN-9"
PAPER = (
    "A join result serves queries with shorter windows: if all are shortened alike, without what expires "
    "soon (20/20 for 16/16, 16/18/20 for 14/16/18); if not, by one timestamp more for each window that "
    "is another (j windows of 20 for the last one of 10). Extra timestamps may cost more than a second "
    "result; that is left open."
)
SCALES: dict[str, dict[str, Any]] = {
    "full": {
        "scale": "five joins of two, three and four windows in seven layouts, three windows of updates; "
        "bytes of 50,000 results",
        "rate": 3.0,
        "windows": 3,
        "probes": 5,
        "layouts": [
            "Rebuild2x2",
            "NoRebuild4x4",
            "LazyRebuild3x2",
            "LazyNoRebuild3x3",
            "ChronologicalRebuild2x4",
            "R-ins4",
            "WATA4",
        ],
        "results": 50_000,
        "bodies": [0, 8, 32, 100, 300, 1000],
    },
    "quick": {
        "scale": "five joins of two, three and four windows in a layout, one window of updates; "
        "bytes of 2,000 results",
        "rate": 1.0,
        "windows": 1,
        "probes": 1,
        "layouts": ["LazyRebuild3x2"],
        "results": 2000,
        "bodies": [0, 32, 300],
    },
}
TICKS = 10  # of a unit of the paper's windows
EVERY = 2 * TICKS
STAMP = 8  # bytes


class Join(NamedTuple):
    """Windows of a result that is kept, those of a query on it, and which of them have timestamps."""

    long: list[int]
    short: list[int]
    stamped: list[int]


JOINS = {
    "20/20 -> 16/16": Join([20, 20], [16, 16], []),
    "16/18/20 -> 14/16/18": Join([16, 18, 20], [14, 16, 18], []),
    "20/20/20 -> 20/20/10": Join([20, 20, 20], [20, 20, 10], [2]),
    "20/20/20/20 -> 20/20/20/10": Join([20, 20, 20, 20], [20, 20, 20, 10], [3]),
    "16/18/20 -> 12/18/10": Join([16, 18, 20], [12, 18, 10], [0, 2]),
}

Streams = list[list[tuple[int, int]]]  # of each: (time, key), in order of time
Pairs = set[tuple[int, ...]]  # a row's number of every stream


def cases(parameters: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        *(
            {"name": f"{join}, {layout}", "kind": "join", "join": join, "layout": layout}
            for join in JOINS
            for layout in parameters["layouts"]
        ),
        {"name": "bytes", "kind": "bytes"},
    ]


def run(parameters: dict[str, Any], case: dict[str, Any]) -> dict[str, Any]:
    if case["kind"] == "bytes":
        return cost(parameters["results"], parameters["bodies"])
    return shared(JOINS[case["join"]], case["layout"], parameters)


# -- the join, by definition ---------------------------------------------------------------------


def streams(number: int, rate: float, until: int) -> Streams:
    """Rows at any time from the first to the last, about as many results for any number of windows."""
    rng = np.random.default_rng([9, number])
    found = []
    for _ in range(number):
        rows = int(rate * until / TICKS)
        times = np.sort(rng.integers(1, until + 1, rows))
        keys = rng.integers(0, round(8 * rate), rows)
        found.append(list(zip(times.tolist(), keys.tolist(), strict=True)))
    return found


def joined(rows: Streams, sizes: list[int], now: int) -> Pairs:
    """The join of the windows as they are: each has the rows of the last so many units."""
    windows: list[dict[int, list[int]]] = []
    for stream, size in zip(rows, sizes, strict=True):
        by_key: dict[int, list[int]] = defaultdict(list)
        for number, (time, key) in enumerate(stream):
            if now - size * TICKS < time <= now:
                by_key[key].append(number)
        windows.append(by_key)
    return {
        found
        for key in windows[0]
        for found in product(*(window.get(key, []) for window in windows))
    }


def as_results(rows: Streams, join: Join, found: Pairs) -> pa.Table:
    """With key, generation, expiration, the rows' numbers and the timestamps that are kept."""
    listed = sorted(found)
    number = len(rows)
    times = [[rows[i][one[i]][0] for one in listed] for i in range(number)]
    ends = [[t + join.long[i] * TICKS for t in times[i]] for i in range(number)]
    columns: dict[str, list[int]] = {"key": [rows[0][one[0]][1] for one in listed]}
    columns["generated"] = [max(row) for row in zip(*times, strict=True)]
    columns["expires"] = [min(row) for row in zip(*ends, strict=True)]
    columns |= {f"row_{i}": [one[i] for one in listed] for i in range(number)}
    columns |= {f"time_{i}": times[i] for i in join.stamped}
    return pa.table({name: pa.array(values, pa.int64()) for name, values in columns.items()})


# -- from the archive ----------------------------------------------------------------------------


def shared(join: Join, layout: str, parameters: dict[str, Any]) -> dict[str, Any]:
    """After every update: what the archive gives for the query, against the join of its windows."""
    longest, number = max(join.long) * TICKS, len(join.long)
    least = min(join.long) * TICKS
    updates = parameters["windows"] * least // EVERY
    rows = streams(number, parameters["rate"], longest + updates * EVERY)
    found: dict[str, Any] = {"updates": [], "wrong": 0, "probes": 0, "probes wrong": 0}
    with tempfile.TemporaryDirectory() as folder:
        archive: Archive | None = None
        for step in range(updates + 1):
            now = longest + step * EVERY
            alive = joined(rows, join.long, now)
            fresh = alive if step == 0 else {one for one in alive if born(rows, one) > now - EVERY}
            table = as_results(rows, join, fresh)
            archive = archive or opened(f"{folder}/joined", table.schema, join, layout, least)
            archive.update(now, table)
            wanted = joined(rows, join.short, now)
            given = asked(archive, join)
            found["wrong"] += numbers(given.scan(), number) != wanted
            for key in sorted({rows[0][one[0]][1] for one in wanted})[: parameters["probes"]]:
                mine = {one for one in wanted if rows[0][one[0]][1] == key}
                found["probes"] += 1
                found["probes wrong"] += numbers(given.probe(key), number) != mine
            found["updates"].append([len(alive), len(wanted), *without(archive, join, wanted)])
    return found


def born(rows: Streams, one: tuple[int, ...]) -> int:
    return max(rows[i][number][0] for i, number in enumerate(one))


def opened(path: str, schema: pa.Schema, join: Join, layout: str, least: int) -> Archive:
    return Archive.open(
        path,
        schema,
        key="key",
        window=least,
        every=EVERY,
        layout=layout,
        stamps={f"w{i}": (f"time_{i}", join.long[i] * TICKS) for i in join.stamped},
    )


def asked(archive: Archive, join: Join) -> Any:
    if join.stamped:
        return archive.window({f"w{i}": join.short[i] * TICKS for i in join.stamped})
    return archive.window(min(join.short) * TICKS)


def numbers(table: pa.Table, number: int) -> Pairs | None:
    """The rows' numbers; None if a result comes twice."""
    listed = list(zip(*(table.column(f"row_{i}").to_pylist() for i in range(number)), strict=True))
    return set(listed) if len(set(listed)) == len(listed) else None


def without(archive: Archive, join: Join, wanted: Pairs) -> list[int]:
    """Where windows are shortened unequally: how many are missing and too many without timestamps.

    Every window is shortened by as much as the most, or by as much as the least.
    """
    if not join.stamped:
        return [0, 0]
    gaps = [long - short for long, short in zip(join.long, join.short, strict=True)]
    least = min(join.long)
    few, many = (
        numbers(archive.window((least - gap) * TICKS).scan(), len(gaps)) or set()
        for gap in (max(gaps), min(gaps))
    )
    return [len(wanted - few), len(many - wanted)]


# -- bytes ---------------------------------------------------------------------------------------


def cost(results: int, bodies: list[int]) -> dict[str, Any]:
    """Bytes of an archive without and with a timestamp, and of a second one for the shorter window.

    Windows of 20 and 20, and of 20 and 10 for the query: the second window's rows are of even ages.
    """
    rng = np.random.default_rng(10)
    window = 2000
    ages = rng.integers(0, window, (2, results))
    times = window - ages
    plain = {
        "key": rng.integers(0, 100, results),
        "generated": times.max(axis=0),
        "expires": times.min(axis=0) + window,
    }
    second = times[1] > window // 2
    half = dict(plain)
    half["expires"] = np.minimum(times[0] + window, times[1] + window // 2)
    found: dict[str, Any] = {"bodies": bodies, "plain": [], "stamped": [], "second": []}
    for length in bodies:
        body = pa.array([rng.bytes(length) for _ in range(results)], pa.binary())
        long = pa.table({**plain, "body": body})
        stamped = long.append_column("second", pa.array(times[1]))
        short = pa.table({**half, "body": body}).filter(pa.array(second))
        found["plain"].append(held_in(long, window))
        found["stamped"].append(held_in(stamped, window))
        found["second"].append(held_in(short, window))
    return found | {"share": float(second.mean()), "results": results}


def held_in(table: pa.Table, window: int) -> int:
    with tempfile.TemporaryDirectory() as folder:
        archive = Archive.open(
            f"{folder}/joined",
            table.schema,
            key="key",
            window=window,
            every=window // 10,
            layout="Rebuild2x2",
        )
        archive.update(window, table)
        return sum(one.bytes for one in archive.sub_indices())


# -- the verdict ---------------------------------------------------------------------------------


def verdict(
    parameters: dict[str, Any], results: list[tuple[dict[str, Any], dict[str, Any]]]
) -> Verdict:
    checks = []
    for name, join in JOINS.items():
        mine = [result for case, result in results if case.get("join") == name]
        looked = sum(len(one["updates"]) for one in mine)
        probes = sum(one["probes"] for one in mine)
        kept = sum(row[0] for one in mine for row in one["updates"])
        shown = sum(row[1] for one in mine for row in one["updates"])
        stamps = len(join.stamped)
        how = (
            f"with {stamps} timestamp{'s' * (stamps > 1)} more" if stamps else "by expiration alone"
        )
        checks.append(
            same(
                f"{name}, {how}: the join of the shorter windows",
                "exactly",
                looked + probes,
                sum(one["wrong"] + one["probes wrong"] for one in mine),
                "scans and probes",
                f"{shown:,} of {kept:,} results kept, layouts: {len(mine)}",
            )
        )
    few, many, wanted = _without(results)
    checks.append(
        Check.of(
            "Unequal shortening does need the timestamps",
            few > 0 and many > 0,
            "necessary",
            f"shortened alike by the most, {few / wanted:.0%} of the query's results are missing; by the "
            f"least, there are {many / wanted:.0%} too many",
        )
    )
    (bytes_of,) = (result for case, result in results if case["kind"] == "bytes")
    more = [s - p for s, p in zip(bytes_of["stamped"], bytes_of["plain"], strict=True)]
    each = max(more) / bytes_of["results"]
    ratios = [extra / second for extra, second in zip(more, bytes_of["second"], strict=True)]
    return Verdict(
        checks,
        f"{held(checks)}; a timestamp takes {each:.1f} bytes a result on disk at most, {ratios[0]:.0%} "
        f"of what a second result takes without any contents and {ratios[-1]:.1%} with "
        f"{bytes_of['bodies'][-1]} bytes.",
        "The open question: a timestamp takes 8 bytes of every result that is kept (less on disk, as "
        "files are compressed), a second result all bytes of its own rows, key and times included. If a "
        "window is shortened to a share a of what it was, a second result has about a share a of the "
        f"rows (here {bytes_of['share']:.0%}), so k timestamps cost more only where a times the bytes "
        "of a row is less than 8 k. A row has a key and two times at least, 24 bytes, so that one window "
        "of half the size would not do; but on disk key and times are packed closer than a third time: "
        f"with nothing else in a row the timestamp takes {ratios[0]:.0%} of a second result, and the "
        f"paper's fear comes true there if anywhere. With {bytes_of['bodies'][-1]:,} bytes it takes "
        f"{ratios[-1]:.1%}. What a second result saves is time: a probe of the shorter window alone "
        "reads fewer rows. A row of time t is in a window of size S until t + S, when it counts no more; "
        "of windows of unequal sizes the archive's is the shortest.",
    )


def _without(results: list[tuple[dict[str, Any], dict[str, Any]]]) -> tuple[int, int, int]:
    rows = [
        row
        for case, result in results
        if case["kind"] == "join" and JOINS[case["join"]].stamped
        for row in result["updates"]
    ]
    return sum(r[2] for r in rows), sum(r[3] for r in rows), sum(r[1] for r in rows)


# -- the figure ----------------------------------------------------------------------------------


def draw(
    parameters: dict[str, Any], results: list[tuple[dict[str, Any], dict[str, Any]]], figure: Any
) -> None:
    figure.set_size_inches(11, 4.8)
    lines, bars = figure.subplots(1, 2)
    layout = parameters["layouts"][0]
    colours = [BLUE, GREEN, ORANGE, VERMILION, GREY]
    for (name, _), colour in zip(JOINS.items(), colours, strict=True):
        mine = next(r for c, r in results if c.get("join") == name and c["layout"] == layout)
        shares = [100 * row[1] / max(1, row[0]) for row in mine["updates"]]
        lines.plot(range(len(shares)), shares, "o-", color=colour, ms=3, lw=1.3, label=name)
    lines.set(ylim=(0, 105), xlabel="update", ylabel="% of the results kept")
    lines.set_title("results of the shorter windows")
    lines.legend(fontsize=8, ncols=2, loc="lower left")
    (found,) = (result for case, result in results if case["kind"] == "bytes")
    n, at = found["results"], np.arange(len(found["bodies"]))
    more = [(s - p) / n for s, p in zip(found["stamped"], found["plain"], strict=True)]
    for values, shift, colour, label in (
        (more, -0.2, BLUE, "a timestamp more"),
        ([second / n for second in found["second"]], 0.2, ORANGE, "a second result"),
    ):
        bars.bar(at + shift, values, 0.38, color=colour, label=label)
    bars.axhline(STAMP, color=GREY, lw=1, ls=":")
    bars.set_xticks(at, [str(length) for length in found["bodies"]])
    bars.set_xlabel("bytes of a result beside key and times")
    logarithmic(bars)
    bars.set_title("bytes on disk, for each result kept")
    bars.legend(fontsize=9, loc="upper left")
