"""Windows of a number of rows: expirations are estimates, what is alive is exact."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from limen.archive import LAYOUTS, Archive, ArchiveError, Layout

from .by_hand import EVERY, WINDOW, bag
from .test_layouts import DIVISORS

SCHEMA = pa.schema([(n, pa.int64()) for n in ("key", "generated", "place_a", "place_b")])
SIZES = {"a": 30, "b": 50}
COUNTS = {"a": ("place_a", SIZES["a"]), "b": ("place_b", SIZES["b"])}
NAMES = [name for name, choices in LAYOUTS.items() if choices.generation != "lazy"]


def _open(
    folder: Path | str,
    layout: Layout | str = "CountRebuild2x2",
    window: int = WINDOW,
    every: int = EVERY,
) -> Archive:
    return Archive.open(
        Path(folder) / "c",
        SCHEMA,
        key="key",
        window=window,
        every=every,
        layout=layout,
        counts=COUNTS,
    )


def _layout(name: str, rows: int, columns: int) -> Layout:
    rivals = LAYOUTS[name].rivals
    return Layout(name, 1 if rivals == "columns" else rows, 1 if rivals == "rows" else columns)


def _alive(rows, seen):
    """Both parents are among the last of their windows."""
    return [r for r in rows if all(r[f"place_{w}"] > seen[w] - SIZES[w] for w in SIZES)]


ARRIVALS = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 9), st.integers(0, 60), st.integers(0, 60)),
    max_size=8,
)
STEPS = st.tuples(st.integers(0, 20), st.integers(0, 20), ARRIVALS, st.integers(0, 9))
TIMES = [(4 * every, every) for every in (1, 2, 3, 5, 7)]  # most quotients are no binary fractions


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=5, phases=[Phase.explicit, Phase.generate])
@given(
    st.tuples(st.integers(1, 4), st.integers(1, 4)),
    st.sampled_from(TIMES),
    st.lists(STEPS, min_size=2, max_size=9),
    st.sampled_from(NAMES),
)
def test_histories(name, sides, times, history, other):
    """However quickly the windows move, however far off the estimates are, and however late rows come."""
    with tempfile.TemporaryDirectory() as folder:
        archive = _open(folder, _layout(name, *sides), *times)
        now, seen, rows, until = 100, {"a": 40, "b": 60}, [], 0
        for more_a, more_b, arrivals, what in history:
            seen = {"a": seen["a"] + more_a, "b": seen["b"] + more_b}
            new = [
                {
                    "key": key,
                    "generated": now - ago,
                    "place_a": seen["a"] - back_a,
                    "place_b": seen["b"] - back_b,
                }
                for key, ago, back_a, back_b in arrivals
            ]
            done = archive.update(now, pa.Table.from_pylist(new, SCHEMA), counts=seen, late=True)
            valid = [row for row in new if row["key"] != 1 or row["generated"] > until]
            assert done.inserted == len(_alive(valid, seen)) == len(new) - done.expired
            rows += valid
            if what == 0:
                archive.invalidate([1])
                rows, until = [row for row in rows if row["key"] != 1], now
            if what == 1:
                archive.migrate(_layout(other, *sides))
            if what == 2:
                archive = Archive.open(archive.path)
            expected = pa.Table.from_pylist(_alive(rows, seen), SCHEMA)
            found = archive.scan("key")
            assert bag(found.select(SCHEMA.names)) == bag(expected)
            estimates = found.column("expires").to_pylist()
            assert all(e <= now + times[0] for e in estimates)
            probed = archive.probe(2).select(SCHEMA.names)
            assert bag(probed) == bag(expected.filter(pc.equal(expected["key"], 2)))
            now += times[1]


@pytest.mark.parametrize("window", [15, 21, 49])
def test_any_number_of_rows_in_any_time(tmp_path, window):
    """What a commit says of the rates is read as it was written, or the archive is damaged."""
    for every in (d for d in (*DIVISORS, 5, 7) if window % d == 0):
        archive = _open(tmp_path / str(every), "CountRebuild1x1", window, every)
        seen = {"a": 14, "b": 2**62 - 30}
        for step in range(3):
            archive.update(10 + step * every, counts=seen)
            seen = {"a": seen["a"] + 10 ** (3 * step) * 11 // 7, "b": seen["b"] + 7}
            again = Archive.open(archive.path).snapshot().state
            assert again == archive.snapshot().state and again.counts != seen


@pytest.mark.parametrize("name", NAMES)
def test_late_results_of_an_invalidated_key_are_invalid_for_good(tmp_path, name):
    """A window of rows does not say when the last of them can have come."""
    archive = _open(tmp_path, _layout(name, 2, 2))
    row = {"key": 1, "generated": 100, "place_a": 30, "place_b": 50}
    archive.update(100, [row], counts={"a": 30, "b": 50})
    archive.invalidate([1])
    for step in range(1, 20):
        archive.update(100 + step * EVERY, counts={"a": 30, "b": 50})
    assert sum(some.rows for some in archive.sub_indices()) == 0
    counts = {"a": 31, "b": 51}
    archive.update(140, [row, {**row, "generated": 101}], counts=counts, late=True)
    assert archive.scan().column("generated").to_pylist() == [101]


@pytest.mark.parametrize("name", ["CountRebuild", "CountNoRebuild"])
@pytest.mark.parametrize("before", [0, 9000])
def test_at_a_steady_rate_nothing_that_has_gone_is_kept(tmp_path, name, before):
    """Estimates are then right to a step, so the range R finds all; whatever was seen before."""
    archive, rows = _open(tmp_path, f"{name}2x4"), []
    for step in range(20):
        now = 100 + step * EVERY
        seen = {"a": before + 30 + step * 4, "b": before + 50 + step * 6}
        new = [
            {
                "key": i,
                "generated": now,
                "place_a": seen["a"] - i % 30,
                "place_b": seen["b"] - i * 7 % 50,
            }
            for i in range(10)
        ]
        rows += new
        archive.update(now, new, counts=seen)
        stored = sum(some.rows for some in archive.sub_indices())
        assert stored == len(_alive(rows, seen))


@pytest.mark.parametrize("seen", [16, 9000])
def test_the_first_estimates_are_of_a_window(tmp_path, seen):
    """A row a unit: a result goes when the row of its parent does, however long the stream has run."""
    schema = pa.schema([(n, pa.int64()) for n in ("key", "generated", "place")])
    said = {"key": "key", "window": WINDOW, "every": EVERY, "layout": "CountRebuild2x8"}
    archive = Archive.open(tmp_path / "c", schema, **said, counts={"w": ("place", WINDOW)})
    rows = [{"key": i, "generated": 100, "place": seen - i} for i in range(WINDOW)]
    archive.update(100, rows, counts={"w": seen})
    found = archive.scan("key").column("expires").to_pylist()
    assert found == [100 + WINDOW - i for i in range(WINDOW)]
    assert all(some.rows for some in archive.sub_indices() if some.row == 1)


@pytest.mark.parametrize(
    ("counts", "told"),
    [
        (None, "counts are needed for the windows a, b"),
        ({"a": 50}, "counts are needed for the windows a, b"),
        (["a", "b"], "counts are needed for the windows a, b: how many rows each has seen"),
        ("ab", "counts are needed for the windows a, b"),
        (5, "counts are needed for the windows a, b"),
        ({"a": 50, "b": 60, "c": 1}, "counts are needed for the windows a, b"),
        ({"a": 39, "b": 60}, "window 'a' had seen 40 rows at the last update; 39 cannot be now"),
        ({"a": 50, "b": "60"}, "window 'b' had seen 60 rows .*; '60' cannot be now"),
        ({"a": 50, "b": 60.0}, "cannot be now"),
        ({"a": True, "b": 60}, "cannot be now"),
        ({"a": 40, "b": 60}, "result row 1: place 41 in window 'a', which has seen 40 rows"),
        ({"a": 2**70, "b": 60}, "window 'a'"),
    ],
)
def test_wrong_counts(tmp_path, counts, told):
    archive = _open(tmp_path)
    row = {"key": 1, "generated": 100, "place_a": 40, "place_b": 60}
    archive.update(100, [row], counts={"a": 40, "b": 60})
    files = sorted(archive.path.rglob("*"))
    new = [{**row, "generated": 101}, {**row, "generated": 102, "place_a": 41}]
    with pytest.raises(ArchiveError, match=told):
        archive.update(102, new, counts=counts)
    assert archive.version == 1 and len(archive.scan()) == 1
    assert sorted(archive.path.rglob("*")) == files


def test_what_counted_windows_cannot_do(tmp_path):
    with pytest.raises(ArchiveError, match="the lazy layouts are for windows of time"):
        _open(tmp_path, "LazyRebuild2x2")
    archive = _open(tmp_path)
    with pytest.raises(ArchiveError, match="cannot be shortened by time"):
        archive.window(8)
    with pytest.raises(ArchiveError, match="does not tell how many rows"):
        archive.take_in("s", 0, [])
    with pytest.raises(ArchiveError, match="the lazy layouts are for windows of time"):
        archive.migrate("WATA2")
    row = {"key": 1, "generated": 100, "place_a": 40, "place_b": 60}
    with pytest.raises(ArchiveError, match="a column expires that it does not know"):
        archive.update(100, [{**row, "expires": 1}], counts={"a": 40, "b": 60})
    with pytest.raises(ArchiveError, match="column 'place_a' is null"):
        archive.update(100, [{**row, "place_a": None}], counts={"a": 40, "b": 60})
    assert archive.version == 0 and not (tmp_path / "c" / "generation_partition=0").exists()


@pytest.mark.parametrize("size", [0, -1, True, 2.0, 2**62])
def test_no_number_of_rows(tmp_path, size):
    with pytest.raises(ArchiveError, match=r"window 'a': .* is not a number of rows"):
        Archive.open(
            tmp_path / "c", SCHEMA, key="key", window=16, every=2, counts={"a": ("place_a", size)}
        )
