"""A matcher on disk: whole or absent, verified, shared, and changed in private."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from limen import Matcher, QuerySet
from limen.indexes.cei import CEI
from limen.indexes.saved import MANIFEST, DamagedIndexError, spare_rows

UNJITTED = os.environ.get("NUMBA_DISABLE_JIT") == "1"
TYPES = {
    "symbol": "string",
    "open": "bool",
    "tenant": "int64",
    "price": "decimal(9,2)",
    "at": "timestamp[us, tz=Europe/Zurich]",
}
QUERIES = {
    "a": "symbol = 'IBM' AND price > 5",
    "b": "symbol = 'KO' AND tenant = 7 AND price BETWEEN 1 AND 200",
    "é": "open = true",
    "d": "at >= TIMESTAMP '2024-01-01 00:00:00+00:00'",
    "e": "symbol = 'KO' AND open = false AND tenant = 8 AND price < 9",
}


def events() -> pa.Table:
    n = 24
    table = pa.table(
        {
            "symbol": ["IBM", "KO", "x"] * (n // 3),
            "open": [True, False] * (n // 2),
            "tenant": [7, 8, 9] * (n // 3),
            "price": pa.array(range(n), pa.int32())
            .cast(pa.decimal128(12, 2))
            .cast(pa.decimal128(9, 2)),
            "at": pa.array(range(n), pa.int64()).cast(pa.timestamp("us", "UTC")),
            "n": range(n),
        }
    )
    return table.set_column(4, "at", table["at"].cast(pa.timestamp("us", "Europe/Zurich")))


def answers(matcher: Matcher, table: pa.Table) -> list[Any]:
    matched, quarantine = matcher.match(table, "ids", ["n"])
    lists = [(n, sorted(ids)) for n, ids in zip(*matched.to_pydict().values(), strict=True)]
    return [lists, quarantine.to_pylist()]


def mixed() -> Matcher:
    return Matcher(QuerySet.of(QUERIES, TYPES))


def several(n: int, text: bool) -> QuerySet:
    ids = [f"q{i}" for i in range(n)] if text else list(range(n))
    lo = np.arange(n) * 0.5
    return QuerySet.of(pa.table({"id": ids, "price_lo": lo, "price_hi": lo + 3}))


def test_everything_comes_back(tmp_path: Path) -> None:
    matcher = mixed()
    matcher.save(tmp_path / "m")
    loaded = Matcher.load(tmp_path / "m")
    assert len(matcher.paths) > 2
    assert loaded.queries() == matcher.queries()
    assert list(loaded.attributes.items()) == list(matcher.attributes.items())
    assert loaded.paths == matcher.paths and repr(loaded) == repr(matcher)
    for kind, path in matcher._paths.items():
        assert loaded._paths[kind].verified == path.verified
    assert answers(loaded, events()) == answers(matcher, events())
    with pytest.raises(ValueError, match="the id is in already with another body"):
        loaded.add(QuerySet.of({"a": "symbol = 'IBM' AND price > 6"}, TYPES))
    assert loaded.add(QuerySet.of(QUERIES, TYPES)) == 0


@pytest.mark.parametrize(
    "queries",
    [
        QuerySet.empty("string"),
        QuerySet.empty("int64"),
        QuerySet.of({1: "symbol = 'KO'", 2: "symbol = 'IBM' AND open = true"}, TYPES),
        QuerySet.of({i: f"tenant = {i % 3} AND price > {i}" for i in range(9)}, TYPES),
        QuerySet.of(
            {f"{i}": f"symbol = 'S{i % 3}' AND tenant = {i % 2} AND price > 1" for i in range(9)},
            TYPES,
        ),
    ],
    ids=["no text ids", "no int ids", "keys only", "a point for a key", "two keys"],
)
def test_sets_of_every_kind_continue(queries: QuerySet, tmp_path: Path) -> None:
    matcher = Matcher(queries)
    matcher.save(tmp_path / "m", durable=False)
    loaded = Matcher.load(tmp_path / "m", verify=False)
    assert loaded.queries() == queries and len(loaded) == len(queries)
    text = queries.ids.type == pa.string()
    more = {("x" if text else 100): "symbol = 'new' AND tenant = 5 AND price < 3"}
    for one in (matcher, loaded):
        one.add(QuerySet.of(more, TYPES))
        one.remove(queries.ids.slice(0, 1))
    assert loaded.queries() == matcher.queries() and loaded.paths == matcher.paths
    assert answers(loaded, events()) == answers(matcher, events())


def test_a_changed_matcher_can_be_saved(tmp_path: Path) -> None:
    matcher = mixed()
    matcher.remove(["a", "d"])
    matcher.add(QuerySet.of({"a": "price > 3", "f": "symbol = 'x' AND price > 2"}, TYPES))
    expected = answers(matcher, events())
    for step in range(3):
        matcher.save(tmp_path / f"{step}")
        assert answers(matcher, events()) == expected  # saving it changed nothing
        matcher = Matcher.load(tmp_path / f"{step}")
        assert answers(matcher, events()) == expected
        matcher.remove(["f"])
        matcher.add(QuerySet.of({"f": "symbol = 'x' AND price > 2"}, TYPES))


def test_every_damaged_byte_is_noticed(tmp_path: Path) -> None:
    folder = tmp_path / "m"
    mixed().save(folder)
    rng = np.random.default_rng(7)
    paths = sorted(folder.iterdir())
    assert len(paths) > 30
    for path in paths:
        whole = path.read_bytes()
        for at in rng.integers(0, len(whole), 3):
            flipped = bytearray(whole)
            flipped[at] ^= 1 << int(rng.integers(8))
            path.write_bytes(flipped)
            with pytest.raises(DamagedIndexError, match=path.name):
                Matcher.load(folder)
        path.write_bytes(whole[:-1])
        with pytest.raises(DamagedIndexError, match=path.name):
            Matcher.load(folder)
        path.unlink()
        with pytest.raises(DamagedIndexError, match=rf"{path.name}.*missing"):
            Matcher.load(folder)
        path.write_bytes(whole)
    assert len(Matcher.load(folder)) == len(QUERIES)


def test_folders_of_another_kind_are_refused(tmp_path: Path) -> None:
    index = CEI()
    index.build(np.arange(3), np.arange(3), np.arange(3) + 1)
    index.save(tmp_path / "cei")
    with pytest.raises(DamagedIndexError, match="cei: holds 'cei' of format 3, not 'matcher'"):
        Matcher.load(tmp_path / "cei")
    mixed().save(tmp_path / "m")
    with pytest.raises(DamagedIndexError, match="m: holds 'matcher' of format 3, not 'cei'"):
        CEI.load(tmp_path / "m")
    with pytest.raises(FileExistsError, match="already there"):
        mixed().save(tmp_path / "m")
    assert json.loads((tmp_path / "m" / MANIFEST).read_bytes().split(b"\n", 1)[1])["format"] == 3


KILLED = """
import os, sys
import numpy as np
from limen import Matcher, QuerySet
files, save, rename = int(sys.argv[2]), np.save, os.rename
def one_more(path, array):
    global files
    if files == 0:
        os._exit(9)
    files -= 1
    save(path, array)
np.save, os.rename = one_more, lambda *_: os._exit(9)
Matcher(QuerySet.of({"a": "x > 1 AND s = 'KO'"}, {"x": "int64", "s": "string"})).save(sys.argv[1])
"""


@pytest.mark.parametrize("files", [0, 5, 1000])
def test_a_save_that_was_killed_leaves_nothing_to_load(files: int, tmp_path: Path) -> None:
    folder = tmp_path / "m"
    killed = subprocess.run([sys.executable, "-c", KILLED, str(folder), str(files)], check=False)
    assert killed.returncode == 9
    with pytest.raises(DamagedIndexError, match="holds no saved index"):
        Matcher.load(folder)
    (part,) = tmp_path.iterdir()
    if files < 1000:  # else all was there but its name
        with pytest.raises(DamagedIndexError, match="holds no saved index"):
            Matcher.load(part)
    mixed().save(folder)
    assert len(Matcher.load(folder)) == len(QUERIES)


def by_slot(matcher: Matcher) -> list[np.ndarray]:
    """Every array that is as long as the queries are many."""
    slots = matcher._slots
    found = [slots.live, slots.path_of, *slots.ranges.values(), *slots.key_codes.values()]
    found += [value for value in vars(slots.ids).values() if isinstance(value, np.ndarray)]
    for path in matcher._paths.values():
        table = path.index._table
        found += [table.lo, table.hi, table.live, path.index._groups, path.index._ix.mem]
    return found


def private_bytes() -> int:
    lines = Path("/proc/self/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("Anonymous:"))


@pytest.mark.parametrize("text", [True, False])
def test_small_changes_to_a_mapped_matcher_stay_small(text: bool, tmp_path: Path) -> None:
    n = 2000 if UNJITTED else 200_000
    Matcher(several(n, text)).save(tmp_path / "m", durable=False)
    queries = several(n + 200, text)
    gone = queries.ids.take(pa.array(range(0, n, n // 100)))
    loaded = Matcher.load(tmp_path / "m")
    before, arrays = private_bytes(), by_slot(loaded)
    loaded.add(queries.take(range(n, n + 100)))
    loaded.remove(gone)
    loaded.add(queries.take(range(n + 100, n + 200)))
    assert all(now is then for now, then in zip(by_slot(loaded), arrays, strict=True))
    assert all(not array.flags.owndata or array.nbytes <= 4096 for array in arrays)
    if not UNJITTED:
        assert private_bytes() - before < loaded.nbytes // 2
    other = Matcher.load(tmp_path / "m")
    assert len(other) == n and len(loaded) == n + 200 - len(gone)
    table = pa.table({"price": [0.0, n / 4, n / 2 + 20]})
    for matcher in (loaded, other):
        fresh = Matcher(matcher.queries()).match(table, "count").matches
        assert matcher.match(table, "count").matches == fresh


@pytest.mark.parametrize("text", [True, False])
def test_growth_past_the_spare_room(text: bool, tmp_path: Path) -> None:
    n = 200
    everything = several(2 * spare_rows(n), text)
    Matcher(everything.take(range(n))).save(tmp_path / "m")
    loaded = Matcher.load(tmp_path / "m")
    for start in range(n, len(everything), 301):
        loaded.add(everything.take(range(start, min(start + 301, len(everything)))))
    assert loaded.queries() == everything
    assert (loaded._slots.find(everything.ids) == np.arange(len(everything))).all()
    table = pa.table({"price": np.arange(0, 3000, 7.5)})
    found = loaded.match(table, "count").matches
    assert found == Matcher(everything).match(table, "count").matches
    assert len(Matcher.load(tmp_path / "m")) == n
