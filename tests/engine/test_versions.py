"""The matcher of any version: the same answers whatever base and history it came from."""

from __future__ import annotations

import os
import random
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from limen import Matcher
from limen.catalog import Catalog
from limen.engine import versions
from limen.engine.versions import KEPT_BASES, MATCHER, Versions
from limen.indexes.saved import MANIFEST
from limen.testing.oracle import Condition, matching

ATTRIBUTES = {"symbol": "string", "price": "float64", "qty": "int64"}
UNJITTED = os.environ.get("NUMBA_DISABLE_JIT") == "1"


def base_of(cache: Path, catalog: Catalog, version: int) -> Path:
    return cache / catalog.id / f"{version}-{catalog.fingerprint(version)}"


def body(number: int) -> list[Condition]:
    """Queries over one attribute, two or three; those with an odd number on their symbol alone."""
    price: list[Condition] = [("price", ">=", number % 9), ("price", "<", number % 9 + 3)]
    qty: list[Condition] = [("qty", "=", number % 4)] if number % 3 == 0 else [("qty", ">", 2)]
    symbol: list[Condition] = [("symbol", "=", "ABC"[number % 3])]
    if number % 2:
        return symbol
    return [price, price + qty, symbol + price, qty][number // 2 % 4]


def where(number: int) -> str:
    return " AND ".join(f"{name} {symbol} {value!r}" for name, symbol, value in body(number))


def events() -> pa.Table:
    n = 60
    rng = random.Random(3)
    prices = [rng.choice([None, float("nan"), *range(12)]) for _ in range(n)]
    return pa.table(
        {
            "n": range(n),
            "symbol": pa.array([rng.choice(["A", "B", "C", "D", None]) for _ in range(n)]),
            "price": pa.array(prices, pa.float64()),
            "qty": pa.array([rng.choice([None, 0, 1, 2, 3, 4]) for _ in range(n)], pa.int64()),
        }
    )


EVENTS = events()


def answers(matcher: Matcher) -> tuple[dict[int, list[str]], dict[int, set[str]]]:
    found, bad = matcher.match(EVENTS, "ids", ["n"])
    ids = {row["n"]: sorted(row["query_ids"]) for row in found.to_pylist()}
    return ids, {row["n"]: row["reason"] for row in bad.to_pylist()}


def filled(folder: Path, changes: int = 0, queries: int = 40) -> Catalog:
    """A catalog whose version 1 has so many queries, and every later one another."""
    catalog = Catalog.open(folder, ATTRIBUTES)
    catalog.add({f"q{i}": where(i) for i in range(queries)})
    for i in range(queries, queries + changes):
        catalog.add({f"q{i}": where(i)})
    return catalog


def bases(cache: Path, catalog: Catalog) -> list[int]:
    return sorted(int(p.name.partition("-")[0]) for p in (cache / catalog.id).glob("[0-9]*"))


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    return filled(tmp_path / "catalog", changes=3)


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


@contextmanager
def few(changes: int, share: int = 1000) -> Iterator[None]:
    with patch.object(versions, "FEW", changes), patch.object(versions, "SHARE", share):
        yield


# -- answers -----------------------------------------------------------------------------------


@st.composite
def histories(draw: st.DrawFn) -> list[tuple[set[int], set[int]] | None]:
    """Per version, what is added and what is removed (an id in both is replaced); None: compacted."""
    some = st.sets(st.integers(0, 30), max_size=12)
    return draw(st.lists(st.one_of(st.tuples(some, some), st.none()), min_size=1, max_size=8))


@settings(max_examples=10 if UNJITTED else 50)
@given(histories(), st.lists(st.integers(0, 100), min_size=1, max_size=12), st.integers(0, 20))
def test_any_version_in_any_order(
    history: list[tuple[set[int], set[int]] | None], asked: list[int], few_changes: int
) -> None:
    with TemporaryDirectory() as folder, few(few_changes, share=4):
        catalog = Catalog.open(Path(folder) / "catalog", ATTRIBUTES)
        models: list[dict[str, list[Condition]]] = [{}]
        for round_, step in enumerate(history):
            model = dict(models[-1])
            if step is None:
                catalog.compact()
            else:
                gone = [f"q{i}" for i in step[1] if f"q{i}" in model]
                new = {f"q{i}": i + round_ for i in step[0] if f"q{i}" not in model.keys() - gone}
                model = {who: model[who] for who in model.keys() - gone}
                model |= {who: body(number) for who, number in new.items()}
                catalog.change({who: where(number) for who, number in new.items()}, gone)
            while len(models) <= catalog.version:
                models.append(model)
        held = Versions(catalog, MATCHER, Path(folder) / "cache")
        for number in [*asked, 0, catalog.version]:
            version = number % (catalog.version + 1)
            fresh = Matcher(catalog.snapshot(version))
            assert answers(held.at(version)) == answers(fresh)
            ids, bad = answers(fresh)
            for event in EVENTS.to_pylist():
                if event["n"] not in bad:
                    assert ids[event["n"]] == sorted(matching(event, models[version]))


def test_the_version_held_costs_nothing(catalog: Catalog, cache: Path) -> None:
    held = Versions(catalog, MATCHER, cache)
    matcher = held.at(2)
    with (
        patch.object(Matcher, "load", side_effect=AssertionError),
        patch.object(Catalog, "changes", side_effect=AssertionError),
    ):
        assert held.at(2) is matcher


# -- which base --------------------------------------------------------------------------------


def test_few_changes_go_on_top_of_the_base_and_many_make_another(tmp_path: Path) -> None:
    catalog, cache = filled(tmp_path / "catalog", changes=12), tmp_path / "cache"
    with few(5):
        one, other = Versions(catalog, MATCHER, cache), Versions(catalog, MATCHER, cache)
        for version in (1, 2, 6):
            one.at(version)
            assert bases(cache, catalog) == [1]
        other.at(6)  # in one step
        assert bases(cache, catalog) == [1]
        one.at(7)  # the sixth change
        assert bases(cache, catalog) == [1, 7]
        other.at(8)  # too far from 1, not from 7
        other.at(3)
        assert bases(cache, catalog) == [1, 7]
        for held in (one, other):
            assert answers(held.at(8)) == answers(Matcher(catalog.snapshot(8)))


def test_a_share_of_the_queries_is_few(tmp_path: Path) -> None:
    catalog, cache = filled(tmp_path / "catalog", changes=11), tmp_path / "cache"
    with few(0, share=4):
        held = Versions(catalog, MATCHER, cache)
        held.at(1)  # 40 queries
        held.at(11)  # ten changes
        assert bases(cache, catalog) == [1]
        held.at(12)
        assert bases(cache, catalog) == [1]  # a quarter of the 50 that are in by now
        held.at(1)
        held.at(12)
        assert bases(cache, catalog) == [1, 12]


def test_old_bases_go(tmp_path: Path) -> None:
    catalog, cache = filled(tmp_path / "catalog", changes=6), tmp_path / "cache"
    with few(0, share=1 << 30):
        held = Versions(catalog, MATCHER, cache)
        old = held.at(1)
        before = answers(old)
        for version in range(2, catalog.version + 1):
            held.at(version)
            assert bases(cache, catalog) == [version - 1, version][-KEPT_BASES:]
        assert answers(old) == before  # whoever has it mapped keeps it
        held.at(1)  # a replay
        assert bases(cache, catalog) == [1, catalog.version]


def test_changes_stay_out_of_the_files(catalog: Catalog, cache: Path) -> None:
    held, base = Versions(catalog, MATCHER, cache), base_of(cache, catalog, 1)
    held.at(1)
    before = {path.name: path.read_bytes() for path in base.iterdir()}
    catalog.change({"new": "price > 0", "q3": "price > 1"}, ["q1", "q2", "q3"])
    newest = answers(held.at(catalog.version))
    assert {path.name: path.read_bytes() for path in base.iterdir()} == before
    assert bases(cache, catalog) == [1]
    assert newest == answers(Matcher(catalog.snapshot()))
    assert answers(Versions(catalog, MATCHER, cache).at(1)) == answers(Matcher(catalog.snapshot(1)))


def test_two_catalogs_share_a_cache(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    for queries in (3, 9):
        catalog = filled(tmp_path / str(queries), queries=queries)
        assert len(Versions(catalog, MATCHER, cache).at(1)) == queries


# -- damage ------------------------------------------------------------------------------------


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) * 2 // 3] ^= 16
    path.write_bytes(content)


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def empty(path: Path) -> None:
    path.write_bytes(b"")


@pytest.mark.parametrize("damage", [flip, truncate, empty, Path.unlink])
def test_a_damaged_base_is_built_again(
    damage: Callable[[Path], None], catalog: Catalog, cache: Path
) -> None:
    base, expected = base_of(cache, catalog, 1), answers(Matcher(catalog.snapshot(1)))
    Versions(catalog, MATCHER, cache).at(1)
    files = sorted(path.name for path in base.iterdir())
    assert MANIFEST in files and len(files) > 10
    for name in files:
        damage(base / name)
        with pytest.warns(UserWarning, match="it is built again"):
            assert answers(Versions(catalog, MATCHER, cache).at(1)) == expected
        assert answers(Versions(catalog, MATCHER, cache).at(1)) == expected  # and is good again
        assert bases(cache, catalog) == [1]


def test_an_older_base_serves_where_the_newest_is_damaged(tmp_path: Path) -> None:
    catalog, cache = filled(tmp_path / "catalog", changes=6), tmp_path / "cache"
    with few(3):
        for version in (1, 5):
            Versions(catalog, MATCHER, cache).at(version)
    assert bases(cache, catalog) == [1, 5]
    empty(base_of(cache, catalog, 5) / MANIFEST)
    with pytest.warns(UserWarning, match="it is built again"):
        held = Versions(catalog, MATCHER, cache).at(6)
    assert answers(held) == answers(Matcher(catalog.snapshot(6)))
    assert bases(cache, catalog) == [1]


def test_a_base_that_goes_while_it_is_read(catalog: Catalog, cache: Path) -> None:
    """Another process throws it away: no damage, and nothing to warn of."""
    Versions(catalog, MATCHER, cache).at(1)
    load = Matcher.load

    def vanishing(folder: Path, **options: bool) -> Matcher:
        patched.stop()
        shutil.rmtree(folder)
        return load(folder, **options)

    patched = patch.object(Matcher, "load", vanishing)
    patched.start()
    held = Versions(catalog, MATCHER, cache).at(2)
    assert answers(held) == answers(Matcher(catalog.snapshot(2)))
    assert bases(cache, catalog) == [2]


def test_a_file_in_place_of_the_folder(catalog: Catalog, cache: Path) -> None:
    cache.write_text("not a folder")
    held = Versions(catalog, MATCHER, cache)
    with pytest.warns(UserWarning, match="cannot be kept in .* every process holds its own"):
        held.at(1)
    for version in (2, 4):  # moved as any other, without a word
        assert answers(held.at(version)) == answers(Matcher(catalog.snapshot(version)))


def test_no_room_left(catalog: Catalog, cache: Path) -> None:
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    held = Versions(catalog, MATCHER, cache)
    resource.setrlimit(resource.RLIMIT_FSIZE, (5000, limits[1]))  # bytes a file
    try:
        with pytest.warns(UserWarning, match="cannot be kept in .* every process holds its own"):
            matcher = held.at(3)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert answers(matcher) == answers(Matcher(catalog.snapshot(3)))
    assert [path.name for path in (cache / catalog.id).iterdir()] == ["lock"]
    assert answers(held.at(1)) == answers(Matcher(catalog.snapshot(1)))  # there is room again
    assert bases(cache, catalog) == [1]


# -- several processes -------------------------------------------------------------------------

ASK = """
import sys, time
from pathlib import Path
from limen.catalog import Catalog
from limen.engine.matcher import Matcher
from limen.engine.versions import MATCHER, Versions

save, built = Matcher.save, []
def slowly(self, *args, **options):
    built.append(1)
    time.sleep(0.3)  # so that the other one comes in between
    save(self, *args, **options)
Matcher.save = slowly
held = Versions(Catalog.open(sys.argv[1]), MATCHER, Path(sys.argv[2]))
print("ready", flush=True)
sys.stdin.readline()
matcher = held.at(int(sys.argv[3]))
print(len(built), len(matcher), *sorted(matcher.queries().ids.to_pylist()))
"""


def test_of_two_processes_one_builds(catalog: Catalog, cache: Path) -> None:
    words = [sys.executable, "-c", ASK, str(catalog.path), str(cache), "2"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    both = [subprocess.Popen(words, **pipes) for _ in range(2)]
    assert [process.stdout.readline() for process in both] == ["ready\n"] * 2
    for process in both:
        process.stdin.write("go\n")
        process.stdin.flush()
    told = [process.communicate(timeout=120)[0].split() for process in both]
    assert [process.returncode for process in both] == [0, 0]
    assert sorted(built for built, *_ in told) == ["0", "1"]
    expected = sorted(catalog.snapshot(2).ids.to_pylist())
    assert all(rest == [str(len(expected)), *expected] for _, *rest in told)
    assert bases(cache, catalog) == [2]


KILLED = """
import os, signal, sys
from pathlib import Path
import numpy as np
from limen.catalog import Catalog
from limen.engine.versions import MATCHER, Versions

save, saved = np.save, []
def dying(path, array):
    save(path, array)
    saved.append(path)
    if len(saved) == 5:
        os.kill(os.getpid(), signal.SIGKILL)
np.save = dying
Versions(Catalog.open(sys.argv[1]), MATCHER, Path(sys.argv[2])).at(2)
"""


def test_killed_while_it_builds(catalog: Catalog, cache: Path) -> None:
    words = [sys.executable, "-c", KILLED, str(catalog.path), str(cache)]
    assert subprocess.run(words, check=False).returncode == -signal.SIGKILL
    left = {path.name for path in (cache / catalog.id).iterdir()}
    assert len(left) == 2 and any(name.endswith(".part") for name in left)
    assert answers(Versions(catalog, MATCHER, cache).at(2)) == answers(Matcher(catalog.snapshot(2)))
    assert {path.name for path in (cache / catalog.id).iterdir()} == {
        "lock",
        base_of(cache, catalog, 2).name,
    }


def test_a_copy_of_a_catalog_is_not_taken_for_the_original(tmp_path):
    original = Catalog.open(tmp_path / "a", {"n": "int64"})
    original.add({"x": "n < 1"})
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    copy = Catalog.open(tmp_path / "b")
    original.add({"orig": "n < 2"})
    copy.add({"copy": "n > 1"})
    for catalog, name in ((original, "orig"), (copy, "copy")):
        queries = Versions(catalog, MATCHER, tmp_path / "cache").at(2).queries()
        assert sorted(queries.ids.to_pylist()) == sorted(["x", name])


def test_a_catalog_put_back_in_time_is_noticed(tmp_path):
    catalog = Catalog.open(tmp_path / "a", {"n": "int64"})
    catalog.add({"x": "n < 1"})
    shutil.copytree(tmp_path / "a", tmp_path / "backup")
    catalog.add({"y": "n < 2"})
    held = Versions(catalog, MATCHER, tmp_path / "cache")
    assert len(held.at(2)) == 2
    shutil.rmtree(tmp_path / "a")
    (tmp_path / "backup").rename(tmp_path / "a")
    Catalog.open(tmp_path / "a").add({"z": "n < 3"})
    assert sorted(held.at(2).queries().ids.to_pylist()) == ["x", "z"]


def test_a_base_from_before_a_vacuum_does_no_harm(tmp_path):
    catalog = Catalog.open(tmp_path / "a", {"n": "int64"})
    catalog.add({"x": "n < 1"})
    held = Versions(catalog, MATCHER, tmp_path / "cache")
    held.at(1)
    catalog.add({"y": "n < 2"})
    catalog.add({"z": "n < 3"})
    catalog.compact()
    catalog.vacuum(timedelta(0))
    for known in (held, Versions(catalog, MATCHER, tmp_path / "cache")):
        assert len(known.at(catalog.version)) == 3


def test_bases_of_catalogs_that_nobody_uses_go(tmp_path):
    for name in ("old", "new"):
        catalog = Catalog.open(tmp_path / name, {"n": "int64"})
        catalog.add({"x": "n < 1"})
        if name == "old":
            Versions(catalog, MATCHER, tmp_path / "cache").at(1)
            folder = tmp_path / "cache" / catalog.id
            os.utime(folder, (0, 0))
    Versions(catalog, MATCHER, tmp_path / "cache").at(1)
    assert not folder.exists() and (tmp_path / "cache" / catalog.id).exists()
