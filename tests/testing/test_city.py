"""The city: any stretch by itself, vehicles without jumps, and a brute force that knows its versions."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import limen
from limen.testing.city import (
    FORMAT,
    NOISE,
    SCHEMA,
    SIDE,
    SIZES,
    BruteForce,
    City,
    Fences,
    bad_readings,
    feed,
    seconds_of,
)

VEHICLES = 300


def table(city: City, first: int, last: int) -> pa.Table:
    return pa.Table.from_batches(city.readings(first, last), SCHEMA)


@pytest.mark.parametrize(("first", "last"), [(0, 1), (5, 5), (299, 301), (300, 600), (7, 4321)])
def test_a_stretch_is_part_of_the_whole(first, last):
    whole = table(City(7, VEHICLES), 0, 5000)
    part = table(City(7, VEHICLES), first, last)
    assert part.column("reading").to_pylist() == list(range(first, last))
    assert part.to_pandas().equals(whole.slice(first, last - first).to_pandas())  # NaN equals NaN


def test_another_seed_is_another_city():
    one, other = City(1, VEHICLES), City(2, VEHICLES)
    assert not table(one, 0, 50).equals(table(other, 0, 50))
    assert one.fences(50).x_lo.tolist() != other.fences(50).x_lo.tolist()
    assert one.fences(50).x_lo.tolist() == City(1, 5).fences(50).x_lo.tolist()
    assert one.fences(50, 50).x_lo.tolist() != one.fences(50).x_lo.tolist()


def test_every_vehicle_once_a_second():
    readings = table(City(7, VEHICLES), 0, 3 * VEHICLES)
    assert readings.column("vehicle").to_pylist() == 3 * list(range(VEHICLES))
    assert seconds_of(readings.column("at")).tolist() == np.repeat([0, 1, 2], VEHICLES).tolist()


def test_vehicles_drive_along_the_streets():
    city = City(7, VEHICLES)
    ways = np.array([city.at(second) for second in range(1500)])  # over places where they turn
    steps = np.abs(np.diff(ways, axis=0))
    assert steps.max() < 45  # 160 km/h, and what the readings are off
    assert 2 < np.hypot(*steps.transpose(1, 0, 2)).mean() < 12
    assert ((ways > -6 * NOISE) & (ways < SIDE + 6 * NOISE)).all()
    off = np.abs(ways - np.round(ways, -2)).min(axis=1)  # of the nearer street
    assert off.max() < 6 * NOISE


def test_some_readings_are_bad():
    readings = table(City(7, 5000), 0, 1_000_000)
    bad, null = bad_readings(readings).sum(), readings.column("x").null_count
    assert 30 < bad < 75  # one in 20,000
    assert 0 < null < bad


def test_fences_are_small_and_gather():
    city = City()
    fences = city.fences(20_000)
    for side in (fences.x_hi - fences.x_lo, fences.y_hi - fences.y_lo):
        assert SIZES[0] * 0.99 < side.min() and side.max() < SIZES[1] * 1.01
    middle = np.column_stack([fences.x_lo + fences.x_hi, fences.y_lo + fences.y_hi]) / 2
    away = np.hypot(*(middle[:, None] - city.centres).transpose(2, 0, 1)) / city.spreads
    assert 0.6 < (away.min(axis=1) < 2).mean() < 0.95


def test_as_queries():
    fences = City().fences(3, 10)
    assert fences.frame().column_names == ["id", "x_lo", "x_hi", "y_lo", "y_hi"]
    assert fences.frame().column("id").to_pylist() == [10, 11, 12]
    wheres = {10 + row: fences.sql(row) for row in range(3)}
    middle = {"x": (fences.x_lo + fences.x_hi) / 2, "y": (fences.y_lo + fences.y_hi) / 2}
    assert limen.match(pa.table(middle), wheres)["query_id"].to_pylist() == [10, 11, 12]


def test_brute_force_agrees_with_the_engine():
    city = City(7, 40)
    fences = city.fences(20_000)
    readings = table(city, 0, 40 * 120)
    found = limen.crossings(readings, fences.frame(), entity="vehicle", on=["x", "y"], time="at")
    seconds = seconds_of(found.column("at")).tolist()
    rows = zip(
        found["vehicle"].to_pylist(),
        found["query_id"].to_pylist(),
        seconds,
        found["crossing"].to_pylist(),
        strict=True,
    )
    brute_force, expected = BruteForce(fences, 1), []
    ways = np.array([city.at(second) for second in range(120)])
    for vehicle in range(40):
        x, y = ways[:, 0, vehicle], ways[:, 1, vehicle]
        for one in brute_force.crossings(x, y, np.zeros(120, np.int64), [1]):
            kind = "enter" if one.entered else "exit"
            expected.append((vehicle, one.fence, one.reading, kind))
    assert len(expected) > 200 and "exit" in found["crossing"].to_pylist()
    assert sorted(rows) == sorted(expected)


def boxes(first_id: int, *wide: tuple[float, float]) -> Fences:
    lo, hi = np.array(wide).T
    return Fences(first_id, lo, hi, np.zeros(len(wide)), np.ones(len(wide)))


def walk(brute_force: BruteForce, xs: list[float], batch: list[int], versions: list[int]):
    x = np.array(xs)
    found = brute_force.crossings(x, np.full(len(xs), 0.5), np.array(batch), versions)
    return sorted((one.reading, not one.entered, one.fence, one.version) for one in found)


def test_brute_force_by_hand():
    brute_force = BruteForce(boxes(0, (0, 2), (1, 3)), 1)
    assert walk(brute_force, [0, 1, 2.5, 9], [0, 0, 0, 0], [1]) == [
        (0, False, 0, 1),
        (1, False, 1, 1),
        (2, True, 0, 1),
        (3, True, 1, 1),
    ]
    assert walk(brute_force, [], [], [1]) == []
    assert brute_force.holds(np.array([0, 1]), np.array([2.0, 0.5]), np.zeros(2)).tolist() == [
        True,
        False,
    ]


def test_a_fence_that_comes_or_goes_is_entered_and_left_on_the_spot():
    brute_force = BruteForce(boxes(0, (0, 2)), 1)
    brute_force.add(boxes(1, (0, 2)), 2)
    brute_force.remove(np.array([0]), 3)
    assert [brute_force.in_force(v).tolist() for v in range(4)] == [
        [False, False],
        [True, False],
        [True, True],
        [False, True],
    ]
    one = [(0, False, 0, 1), (0, False, 1, 2), (0, True, 0, 3)]
    assert walk(brute_force, [1], [0], [1, 2, 3]) == sorted(one)
    assert walk(brute_force, [1, 5], [0, 1], [1, 2]) == sorted(
        [(0, False, 0, 1), (0, False, 1, 2), (1, True, 0, 2), (1, True, 1, 2)]
    )
    assert walk(brute_force, [1], [2], [1, 2, 3]) == [(0, False, 1, 3)]  # not there before


def test_as_a_source_of_spark():
    reader = feed()({"vehicles": "40", "rows": "100"}).streamReader(None)
    assert feed().name() == FORMAT
    parts = reader.partitions({"trade": 30}, {"trade": 100})
    read = [batch for part in parts for batch in reader.read(part)]
    assert pa.Table.from_batches(read).equals(table(City(7, 40), 30, 100))
