"""The production index beyond the contract: groups, disk, private changes, the fit of the grid."""

from __future__ import annotations

import itertools
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from limen.indexes.cei import CEI, CROWDED
from limen.indexes.saved import MANIFEST, DamagedIndexError
from limen.testing.oracle import stabbed
from limen.testing.strategies import ordinal_ranges, ordinals

UNJITTED = os.environ.get("NUMBA_DISABLE_JIT") == "1"
GROUPS = 5
grouped = st.lists(st.tuples(st.integers(0, GROUPS - 1), ordinal_ranges()), min_size=1, max_size=40)


def build(rows: list[tuple[int, tuple[int, int]]]) -> CEI:
    index = CEI()
    index.build(np.arange(len(rows)), *columns(rows))
    return index


def columns(rows: list[tuple[int, tuple[int, int]]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    ends = np.array([ends for _, ends in rows], np.int64).reshape(-1, 2)
    return ends[:, 0], ends[:, 1], np.array([group for group, _ in rows], np.int32)


def check(index: CEI, rows: dict[int, tuple[int, tuple[int, int]]], xs: list[int]) -> None:
    values = np.array([x for x in xs for _ in range(GROUPS + 2)], np.int64)
    groups = np.array([g for _ in xs for g in range(-1, GROUPS + 1)], np.int32)
    expected = [
        stabbed(int(x), [(who, *ends) for who, (group, ends) in rows.items() if group == g])
        for x, g in zip(values, groups, strict=True)
    ]
    offsets, ids = index.stab_many(values, groups)
    found = [sorted(ids[a:b].tolist()) for a, b in itertools.pairwise(offsets)]
    assert found == expected
    assert index.count_many(values, groups).tolist() == [len(e) for e in expected]


@given(rows=grouped, later=grouped, xs=st.lists(ordinals(), min_size=1, max_size=10))
def test_groups_are_separate(rows: list, later: list, xs: list[int]) -> None:
    index = build(rows)
    xs = xs + [end for _, ends in rows + later for end in ends]
    check(index, dict(enumerate(rows)), xs)
    index.insert(np.arange(len(later)) + len(rows), *columns(later))
    everything = dict(enumerate(rows + later))
    check(index, everything, xs)
    gone = list(range(0, len(everything), 2))
    index.delete(np.array(gone))
    for who in gone:
        del everything[who]
    check(index, everything, xs)


@given(rows=grouped, later=grouped, xs=st.lists(ordinals(), min_size=1, max_size=6))
def test_a_mapped_index_changes_in_private(
    tmp_path_factory: pytest.TempPathFactory, rows: list, later: list, xs: list[int]
) -> None:
    folder = tmp_path_factory.mktemp("saved") / "index"
    build(rows).save(folder)
    mapped, other = CEI.load(folder), CEI.load(folder)
    xs = xs + [end for _, ends in rows + later for end in ends]
    original = dict(enumerate(rows))
    check(mapped, original, xs)
    mapped.insert(np.arange(len(later)) + len(rows), *columns(later))
    mapped.delete(np.arange(0, len(rows), 2))
    changed = dict(enumerate(rows + later))
    for who in range(0, len(rows), 2):
        del changed[who]
    check(mapped, changed, xs)
    check(other, original, xs)
    check(CEI.load(folder), original, xs)
    mapped.save(folder.with_name("again"))
    check(CEI.load(folder.with_name("again")), changed, xs)


def saved(tmp_path: Path) -> Path:
    build([(0, (i, i + 50)) for i in range(3000)]).save(tmp_path / "index")
    return tmp_path / "index"


def test_every_damaged_byte_is_noticed(tmp_path: Path) -> None:
    folder = saved(tmp_path)
    rng = np.random.default_rng(7)
    for path in sorted(folder.iterdir()):
        whole = path.read_bytes()
        places = (
            rng.integers(0, len(whole), 8) if path.name != MANIFEST else range(0, len(whole), 9)
        )
        for at in places:
            flipped = bytearray(whole)
            flipped[at] ^= 1 << int(rng.integers(8))
            path.write_bytes(flipped)
            with pytest.raises(DamagedIndexError, match=path.name):
                CEI.load(folder)
        path.write_bytes(whole[:-1])
        with pytest.raises(DamagedIndexError, match=path.name):
            CEI.load(folder)
        path.unlink()
        with pytest.raises(DamagedIndexError, match=rf"{path.name}.*missing"):
            CEI.load(folder)
        path.write_bytes(whole)
    assert len(CEI.load(folder)) == 3000


def test_saving_is_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = saved(tmp_path)
    with pytest.raises(FileExistsError, match="already there"):
        CEI().save(folder)
    with monkeypatch.context() as patch:
        patch.setattr("os.rename", lambda *_: (_ for _ in ()).throw(OSError("no space left")))
        with pytest.raises(OSError, match="no space left"):
            CEI().save(tmp_path / "other")
    assert [path.name for path in tmp_path.iterdir()] == ["index"]
    with pytest.raises(DamagedIndexError, match="holds no saved index"):
        CEI.load(tmp_path / "other")


def test_skewed_ends_get_cells_of_their_own() -> None:
    rng = np.random.default_rng(3)
    crowd = rng.integers(10**15, 10**15 + 10**6, 2000)
    far = rng.integers(-(2**62), 2**62, 20)
    lo = np.concatenate([crowd, far])
    index = CEI()
    index.build(np.arange(len(lo)), lo, lo + 500)
    cells = index.cells_of(np.sort(crowd))
    assert len(np.unique(cells)) > 300  # an even grid over the whole domain would have one


def test_crowding_by_inserts_fits_the_grid_anew() -> None:
    index = CEI()
    index.build(np.arange(1000), np.arange(1000) * 10, np.arange(1000) * 10 + 5)
    before = index.shape["cells"]
    new = np.arange(1000, 1000 + 4 * CROWDED)
    index.insert(new, 10**9 + 4 * new, 10**9 + 4 * new + 2)
    assert len(np.unique(index.cells_of(10**9 + 4 * new))) > CROWDED
    assert index.shape["cells"] != before
    assert index.stab(10**9 + 4 * 1010 + 1).tolist() == [1010]


def test_doubling_fits_the_grid_anew() -> None:
    index = CEI()
    for start in range(0, 2000, 100):
        ids = np.arange(start, start + 100)
        index.insert(ids, 5 * ids, 5 * ids + 20)
    assert index.shape["cells"] > 500


def test_random_floats_against_numpy() -> None:
    rng = np.random.default_rng(11)
    lo = np.abs(rng.standard_normal(3000)).view(np.int64)
    hi = np.maximum(lo, np.abs(rng.standard_normal(3000)).view(np.int64))
    index = CEI()
    index.build(np.arange(3000), lo, hi)
    xs = np.abs(rng.standard_normal(400)).view(np.int64)
    offsets, ids = index.stab_many(xs)
    for i, x in enumerate(xs):
        assert np.array_equal(
            np.sort(ids[offsets[i] : offsets[i + 1]]), np.flatnonzero((lo <= x) & (x <= hi))
        )
    assert index.count_many(np.repeat(xs, 20)).tolist() == np.repeat(np.diff(offsets), 20).tolist()


def drawn(rng: np.random.Generator, kind: str, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Ranges of one of several shapes, wide enough together to use several levels."""
    if kind == "even":
        lo = rng.integers(0, 50 * n, n)
        return lo, lo + rng.integers(0, 20_000, n)
    if kind == "mixed widths":
        lo = rng.integers(0, 1000 * n, n)
        return lo, lo + (10 ** rng.uniform(0, 6, n)).astype(np.int64)
    if kind == "few values":
        lo, hi = rng.integers(0, 40, n) * 1000, rng.integers(0, 40, n) * 1000
        return np.minimum(lo, hi), np.maximum(lo, hi)
    prices = np.exp(rng.normal(0, 5, (2, n))).view(np.int64)  # floats over many magnitudes
    return prices.min(axis=0), prices.max(axis=0)


@pytest.mark.parametrize("kind", ["even", "mixed widths", "few values", "floats"])
@pytest.mark.parametrize("mapped", [False, True])
def test_rounds_of_bulk_updates(kind: str, mapped: bool, tmp_path: Path) -> None:
    n = 600 if UNJITTED else 6000
    rng = np.random.default_rng(5)
    lo, hi = drawn(rng, kind, n)
    index = CEI()
    live = np.arange(n // 2)
    index.build(live, lo[live], hi[live])
    if mapped:
        index.save(tmp_path / "index")
        index = CEI.load(tmp_path / "index")
    for step in range(6):
        new = np.arange(n // 2 + step * n // 16, n // 2 + (step + 1) * n // 16)
        index.insert(new, lo[new], hi[new])
        live = np.union1d(live, new)
        gone = rng.permutation(live)[: n // 20]
        index.delete(gone)
        live = np.setdiff1d(live, gone)
        xs = np.concatenate([rng.choice(lo, 40), rng.choice(hi, 40) + 1, rng.choice(lo, 40) - 1])
        offsets, ids = index.stab_many(xs)
        counts = index.count_many(np.tile(xs, 40))
        for i, x in enumerate(xs):
            expected = live[(lo[live] <= x) & (x <= hi[live])]
            assert np.array_equal(np.sort(ids[offsets[i] : offsets[i + 1]]), expected)
            assert counts[i] == len(expected)
    assert kind == "few values" or index.shape["levels"] > 1


def test_a_million_identical_queries() -> None:
    n = 1000 if UNJITTED else 1_000_000
    index = CEI()
    index.build(np.arange(n), np.full(n, 40), np.full(n, 50))
    assert index.count_many(np.array([39, 40, 50, 51])).tolist() == [0, n, n, 0]
    assert np.array_equal(np.sort(index.stab(45)), np.arange(n))
    index.delete(np.arange(0, n, 2))
    index.insert(np.array([n]), np.array([45]), np.array([45]))
    assert index.count_many(np.array([44, 45])).tolist() == [n // 2, n // 2 + 1]


def test_memory_follows_the_queries() -> None:
    n = 500 if UNJITTED else 5000
    rng = np.random.default_rng(9)
    lo = rng.integers(0, 10**6, 40 * n)
    index = CEI()
    index.build(np.arange(n), lo[:n], lo[:n] + 1000)
    fresh = index._tail
    for step in range(39):
        at = step * n // 10
        index.delete(np.arange(at, at + n // 10))
        new = np.arange(n + at, n + at + n // 10)
        index.insert(new, lo[new], lo[new] + 1000)
        assert index._tail < 3 * fresh
    index.delete(np.flatnonzero(index._table.live)[10:])
    assert index._tail < fresh // 4 and len(index) == 10
