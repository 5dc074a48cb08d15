"""What came before a reading, by a plain loop over the readings in the order of their times."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from limen.kernels.chain import FIRST, LATE, PLAIN, RETURNED, chain, settle
from limen.testing.strategies import INT64

ENTITIES = 5

extremes = st.sampled_from([INT64[0], INT64[0] + 1, -1, 0, INT64[1] - 1, INT64[1]])
times = st.one_of(st.integers(0, 12), st.integers(0, 12), extremes)
readings = st.lists(st.tuples(st.integers(0, ENTITIES - 1), times), max_size=30)
patience = st.one_of(st.integers(-2, 6), st.sampled_from([-1, INT64[1], INT64[1] - 1, INT64[0]]))
floors = st.one_of(st.just(INT64[0]), st.integers(0, 8), extremes)


class Table:
    def __init__(self) -> None:
        self.known = np.zeros(ENTITIES, np.bool_)
        self.heard = np.zeros(ENTITIES, np.int64)
        self.newest = np.full(ENTITIES, -1, np.int32)

    def chain(self, rows: list, order: list[int], floor: int, patience: int) -> tuple:
        who = np.array([s for s, _ in rows], np.int32)
        when = np.array([t for _, t in rows], np.int64)
        before, flags = np.full(len(rows), -7, np.int32), np.full(len(rows), 99, np.uint8)
        late = chain(
            who,
            when,
            np.array(order, np.int64),
            self.known,
            self.heard,
            self.newest,
            floor,
            patience,
            before,
            flags,
        )
        return before.tolist(), flags.tolist(), late


@given(st.lists(st.tuples(readings, floors), min_size=1, max_size=3), patience)
def test_readings_are_chained(batches: list, patience: int) -> None:
    table, heard = Table(), {}
    for rows, floor in batches:
        order = sorted(range(len(rows)), key=lambda i: rows[i][1])  # ties as they came
        before, flags, newest = [-7] * len(rows), [99] * len(rows), {}
        for i in order:
            s, t = rows[i]
            before[i] = newest.get(s, -1)
            if t < floor or (s in heard and t < heard[s]):
                flags[i] = LATE
                continue
            if s not in heard:
                flags[i] = FIRST
            elif patience >= 0 and t - heard[s] > patience:
                flags[i] = RETURNED
            else:
                flags[i] = PLAIN
            heard[s], newest[s] = t, i
        late = sum(flag == LATE for flag in flags)
        assert table.chain(rows, order, floor, patience) == (before, flags, late)
        assert table.newest.tolist() == [-1] * ENTITIES
        assert table.known.tolist() == [s in heard for s in range(ENTITIES)]
        assert {s: int(table.heard[s]) for s in heard} == heard


@pytest.mark.parametrize(
    ("first", "then", "patience", "flag"),
    [
        (0, 5, 5, PLAIN),
        (0, 6, 5, RETURNED),
        (0, 0, 0, PLAIN),
        (0, 1, 0, RETURNED),
        (0, INT64[1], -1, PLAIN),
        (0, INT64[1], INT64[1], PLAIN),
        (-1, INT64[1], INT64[1], RETURNED),
        (INT64[0], INT64[1], INT64[1], RETURNED),
        (INT64[0], INT64[1], 0, RETURNED),
        (INT64[0], INT64[1], -1, PLAIN),
        (INT64[0], -1, INT64[1], PLAIN),
        (INT64[0], 0, INT64[1], RETURNED),
    ],
)
def test_patience(first: int, then: int, patience: int, flag: int) -> None:
    rows = [(2, first), (2, then)]
    assert Table().chain(rows, [0, 1], INT64[0], patience) == ([-1, 0], [FIRST, flag], 0)


def test_a_late_reading_is_nobodys_predecessor() -> None:
    rows = [(0, 3), (0, 2), (0, 3), (0, 1), (0, 4)]
    found = Table().chain(rows, [0, 1, 2, 3, 4], INT64[0], -1)
    assert found == ([-1, 0, 0, 2, 2], [FIRST, LATE, PLAIN, LATE, PLAIN], 2)


def test_below_the_floor_an_entity_stays_unknown() -> None:
    table = Table()
    assert table.chain([(1, 4)], [0], 5, -1) == ([-1], [LATE], 1)
    assert not table.known.any()
    assert table.chain([(1, 5)], [0], 5, -1) == ([-1], [FIRST], 0)


@given(
    st.lists(
        st.tuples(
            st.integers(0, ENTITIES - 1),
            st.tuples(*[st.integers(*INT64)] * 2),
            st.sampled_from([PLAIN, FIRST, LATE, RETURNED]),
        ),
        max_size=20,
    ),
    st.randoms(use_true_random=False),
)
def test_the_last_values_in_order_are_settled(rows: list, random) -> None:
    order = list(range(len(rows)))
    random.shuffle(order)
    table = np.full((ENTITIES, 2), 17, np.int64)
    settle(
        np.array([s for s, _, _ in rows], np.int32),
        np.array([v for _, v, _ in rows], np.int64).reshape(-1, 2),
        np.array(order, np.int64),
        np.array([f for _, _, f in rows], np.uint8),
        table,
    )
    expected = {s: (17, 17) for s in range(ENTITIES)}
    for i in order:
        s, values, flag = rows[i]
        if flag != LATE:
            expected[s] = values
    assert [tuple(row) for row in table.tolist()] == list(expected.values())
