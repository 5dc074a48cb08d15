"""The stream table: readings in the order of their times, what came before each, what is kept."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from limen.borders.streams import Streams
from limen.kernels.chain import FIRST, LATE, PLAIN, RETURNED

rows = st.lists(
    st.tuples(st.integers(0, 5), st.tuples(*[st.integers(-99, 99)] * 2), st.integers(0, 9)),
    max_size=15,
)


def arrange(streams: Streams, batch: list, timed: bool = True, **limits: int):
    streams.grow(max((who + 1 for who, _, _ in batch), default=0))
    return streams.arrange(
        np.array([who for who, _, _ in batch], np.int32),
        np.array([values for _, values, _ in batch], np.int64).reshape(-1, 2),
        np.array([time for _, _, time in batch], np.int64) if timed else None,
        **limits,
    )


@given(st.lists(rows, min_size=1, max_size=4), st.booleans(), st.sampled_from([-1, 0, 3]))
def test_what_came_before(batches: list, timed: bool, patience: int) -> None:
    streams, last = Streams(2), {}
    for shift, given_rows in enumerate(batches):
        batch = [(who, values, time + 4 * shift) for who, values, time in given_rows]
        made = arrange(streams, batch, timed, patience=patience)
        previous = streams.previous(made).tolist()
        order = list(range(len(batch)))
        if timed:
            order.sort(key=lambda i: batch[i][2])
        assert made.order.tolist() == order
        late = 0
        for i in order:
            who, values, time = batch[i]
            if who not in last:
                assert made.flags[i] == FIRST
            else:
                silence = time - last[who][1] if timed else 0
                assert tuple(previous[i]) == last[who][0]
                if silence < 0:
                    late += 1
                    assert made.flags[i] == LATE
                    continue
                forgotten = 0 <= patience < silence
                assert made.flags[i] == (RETURNED if forgotten else PLAIN)
            last[who] = values, time
        assert made.late == late
        streams.settle(made)
        for who, (values, time) in last.items():
            assert streams.known[who] and tuple(streams.values[who].tolist()) == values
            assert not timed or streams.heard[who] == time
        assert np.flatnonzero(streams.known).tolist() == sorted(last)


def test_equal_times_keep_the_order_of_arrival() -> None:
    times = [7 * i % 3 for i in range(2000)]
    made = arrange(Streams(2), [(i % 6, (i, i), time) for i, time in enumerate(times)])
    assert made.order.tolist() == sorted(range(2000), key=lambda i: (times[i], i))


def test_a_table_grows_and_never_shrinks() -> None:
    streams = Streams(2)
    assert streams.nbytes == 0
    arrange(streams, [(3, (1, 2), 5)])
    assert streams.size == 4 and streams.nbytes == 4 * (1 + 8 + 16)
    streams.grow(2)
    assert streams.size == 4
    made = arrange(streams, [(900, (1, 2), 5), (3, (1, 2), 4), (3, (1, 2), 5)])
    assert streams.size == 901
    assert made.flags.tolist() == [FIRST, LATE, PLAIN] and made.before.tolist() == [-1, -1, -1]


def test_readings_below_the_floor_are_late() -> None:
    streams = Streams(2)
    made = arrange(streams, [(0, (1, 2), 5), (0, (1, 2), 6)], floor=6)
    assert made.flags.tolist() == [LATE, FIRST] and made.late == 1
