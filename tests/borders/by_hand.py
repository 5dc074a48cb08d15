"""Who enters and leaves which query, by plain loops; the RS list by its definition."""

from __future__ import annotations

from typing import NamedTuple

INT64 = (-(2**63), 2**63 - 1)

Box = tuple[tuple[int, int], ...]  # a range for each dimension
Point = tuple[int, ...]


class Query(NamedTuple):
    group: int
    box: Box


class Reading(NamedTuple):
    entity: int
    values: Point
    time: int
    group: int


class Seen(NamedTuple):
    values: Point
    time: int
    group: int


Queries = dict[int, Query]


def inside(queries: Queries, group: int, values: Point) -> set[int]:
    found = set()
    for q, (of, box) in queries.items():
        within = [lo <= x <= hi for (lo, hi), x in zip(box, values, strict=True)]
        if of == group and all(within):
            found.add(q)
    return found


class Crossed(NamedTuple):
    reading: int
    entered: set[int]
    left: set[int]
    late: bool = False
    returned: bool = False


class World:
    """What has been heard of each entity; two evaluations for each reading, and their difference."""

    def __init__(self) -> None:
        self.seen: dict[int, Seen] = {}

    def take(
        self, queries: Queries, readings: list[Reading], floor: int = INT64[0], patience: int = -1
    ) -> list[Crossed]:
        """In the order of times, and as they came where these are equal."""
        found = []
        for row, (who, values, time, group) in sorted(
            enumerate(readings), key=lambda r: (r[1].time, r[0])
        ):
            last = self.seen.get(who)
            if time < floor or (last and time < last.time):
                found.append(Crossed(row, set(), set(), late=True))
                continue
            after = inside(queries, group, values)
            before = inside(queries, last.group, last.values) if last else set()
            returned = last is not None and patience >= 0 and time - last.time > patience
            if returned:
                found.append(Crossed(row, after, before, returned=True))
            else:
                found.append(Crossed(row, after - before, before - after))
            self.seen[who] = Seen(values, time, group)
        return found


def nodes(
    queries: Queries, dimension: int, group: int
) -> list[tuple[int | None, list[int], list[int]]]:
    """The RS list by its definition: a node begins at every bound of a query, and has those queries
    in its +DQSet whose lower bound that is, and in its -DQSet those whose upper bound it is."""
    ranges = {q: box[dimension] for q, (of, box) in queries.items() if of == group}
    bounds = {lo for lo, _ in ranges.values()} | {hi + 1 for _, hi in ranges.values()}
    found: list[tuple[int | None, list[int], list[int]]] = []
    for b in [INT64[0], *sorted(b for b in bounds if INT64[0] < b <= INT64[1])]:
        plus = sorted(q for q, (lo, _) in ranges.items() if lo == b)
        minus = sorted(q for q, (_, hi) in ranges.items() if hi + 1 == b)
        found.append((b if b > INT64[0] else None, plus, minus))
    return found
