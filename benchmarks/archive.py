"""The archive's layouts beside the papers' older ones, at the window-results paper's small window.

All archives hold the same results and are updated in turn, one round after the other; a ratio is that of
two of them within a round. REINDEX and DEL are given the number of sub-indices that is best for them.
"""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np

from limen.archive import Archive
from limen.testing.joined import Joined

from .side_by_side import Row, result, row, seconds

ROWS, QUICK_ROWS = 500_000, 10_000  # alive; the paper's small window
UPDATES, PROBES = 6, 32  # measured; so many keys are probed after each update
TIMES = 5  # that probes and scans are done; the quickest counts
OURS = ("Rebuild4x4", "NoRebuild4x4", "NoRebuild2x4", "NoRebuild1x5", "LazyNoRebuild4x4")
RIVALS = {  # by insertion, as the paper has them, and by expiration, which it has as slower
    "REINDEX": ("R-ins1", "R-ins2", "R-ins4", "R-ins9", "R-ins16"),
    "DEL": ("D-ins1", "D-ins2", "D-ins4", "D-ins9", "D-ins16"),
    "REINDEX by expiration": ("R-exp4", "R-exp9"),
    "DEL by expiration": ("D-exp4", "D-exp9", "D-exp16"),
}
FASTER, CLOSE = 3.0, round(1 / 1.1, 3)
COPIES = 4  # of the largest sub-index touched: read, decoding, decoded, kept by the allocator

Times = dict[str, dict[str, list[float]]]  # by layout and by what is timed


def run(quick: bool, progress: Callable[[str], None]) -> dict[str, Any]:
    joined = Joined(rows=QUICK_ROWS if quick else ROWS)
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as name:
        times = measured(Path(name), joined, 2 if quick else UPDATES, progress)
    for rival, layouts in RIVALS.items():
        best = min(layouts, key=lambda layout: float(np.median(times[layout]["update"])))
        for ours in OURS:
            rows += compared(ours, f"{rival} ({best})", times[ours], times[best], joined)
    progress("memory of an update at two sizes of the window")
    rows.append(memory(joined.rows // 5, joined.rows))
    return result("archive", rows)


def measured(folder: Path, joined: Joined, updates: int, progress: Callable[[str], None]) -> Times:
    names = [*OURS, *(layout for layouts in RIVALS.values() for layout in layouts)]
    archives, times = {}, {name: {"update": [], "probe": [], "scan": []} for name in names}
    first = joined.initial()
    for name in names:
        progress(f"building {name}, {len(first):,} results")
        archives[name] = opened(folder / name, joined, name)
        archives[name].update(0, first)
    del first
    rng = np.random.default_rng(1)
    for step in range(1, updates + 1):
        progress(f"update {step} of {updates}, in turn")
        new, keys = joined.update(step), rng.integers(0, joined.keys, PROBES).tolist()
        turn = [*names[step % len(names) :], *names[: step % len(names)]]
        for name in turn:
            archive = archives[name]
            gc.collect()
            os.sync()  # nothing of the one before is still to be written
            begin = time.perf_counter()
            receipt = archive.update(step * joined.every, new)
            times[name]["update"].append(time.perf_counter() - begin)
            if receipt.touched != archive.layout.touched:
                raise AssertionError(f"{name}: {receipt.touched} sub-indices were touched")
        os.sync()
        for name in turn:
            archive = archives[name]
            archive.probe(keys[0])
            probes = [seconds(lambda: [archive.probe(k) for k in keys]) for _ in range(TIMES)]
            times[name]["probe"].append(min(probes))
        scan(archives[turn[0]])  # the first gets its memory anew
        for name in turn:
            archive = archives[name]
            times[name]["scan"].append(min(seconds(lambda: scan(archive)) for _ in range(TIMES)))
    return times


def opened(folder: Path, joined: Joined, layout: str) -> Archive:
    return Archive.open(
        folder,
        joined.schema,
        key="key",
        window=joined.window,
        every=joined.every,
        layout=layout,
        grace=timedelta(0),
    )


def scan(archive: Archive) -> int:
    return sum(len(part) for part in archive.scan_batches())


def compared(
    ours: str,
    rival: str,
    our: dict[str, list[float]],
    their: dict[str, list[float]],
    joined: Joined,
) -> list[Row]:
    work = {"update": (1.0, "updates/s"), "probe": (PROBES, "probes/s"), "scan": (1.0, "scans/s")}
    goals = {"update": FASTER, "probe": CLOSE, "scan": CLOSE}
    found = []
    for what, (amount, unit) in work.items():
        pairs = list(zip(our[what], their[what], strict=True))
        case = f"{what} of {joined.rows:,} results of {joined.row_bytes:,} bytes, {ours}"
        found.append(row(case, rival, pairs, work=amount, unit=unit, goal=goals[what]))
    return found


def memory(small: int, large: int) -> Row:
    """How the peak memory of an update, above that of the process before it, grows with the window.

    In processes of their own. What it grows by is compared with what the largest sub-index does.
    """
    less, more = (peak(n) for n in (small, large))
    ours, theirs = (more[what] - less[what] for what in ("peak", "largest"))
    return {
        "case": f"memory of an update, NoRebuild4x4: {less['peak']:.0f} MB over a window of "
        f"{less['window']:.0f} MB and {more['peak']:.0f} MB over one of {more['window']:.0f} MB; what "
        "it grows by",
        "rival": "the largest sub-index touched",
        "ours": round(ours, 1),
        "theirs": round(theirs, 1),
        "unit": "MB",
        "ratio": round(theirs / ours, 3),
        "spread": [round(theirs / ours, 3)] * 2,
        "goal": f">= {1 / COPIES:g}",
        "holds": COPIES * theirs >= ours,
    }


def peak(rows: int) -> dict[str, float]:
    done = subprocess.run(
        [sys.executable, "-c", PEAK, str(rows)], capture_output=True, text=True, check=True
    )
    found: dict[str, float] = json.loads(done.stdout)
    return found


PEAK = """
import gc, json, resource, sys, tempfile
from datetime import timedelta
import pyarrow as pa
from limen.archive import Archive
from limen.testing.joined import Joined

joined = Joined(rows=int(sys.argv[1]))
with tempfile.TemporaryDirectory() as folder:
    archive = Archive.open(folder + "/a", joined.schema, key="key", window=joined.window,
                           every=joined.every, layout="NoRebuild4x4", grace=timedelta(0))
    for step in range(1 - joined.steps, 1):  # little by little, so that building is no peak
        archive.update(step * joined.every, joined.update(step))
    new = joined.update(1)
    gc.collect()
    pa.default_memory_pool().release_unused()
    def now():
        with open("/proc/self/status") as status:
            facts = dict(line.split(":", 1) for line in status)
        return {name: int(facts[name].split()[0]) / 1024 for name in ("VmRSS", "VmHWM")}
    with open("/proc/self/clear_refs", "w") as reset:
        reset.write("5")
    before = now()["VmRSS"]
    archive.update(joined.every, new)
    sizes = [part.bytes / 1e6 for part in archive.sub_indices()]
    print(json.dumps({"peak": now()["VmHWM"] - before, "largest": max(sizes), "window": sum(sizes)}))
"""
