"""What comes of crossings with dwell and hysteresis, pair by pair in plain lists."""

from __future__ import annotations

from itertools import groupby
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from limen.kernels.holds import CAME, GONE, HELD, LEFT, LINGERS, PENDING, report

Row = tuple[int, int, int, int]  # pair, code, time, state


@st.composite
def histories(draw: st.DrawFn, dwell: int, margin: bool) -> list[Row]:
    """Rows in the order of pairs and times; codes in any order, though few come so."""
    rows: list[Row] = []
    codes = st.sampled_from([CAME, GONE, *([LEFT] if margin else [])])
    for pair in draw(st.lists(st.integers(-3, 2**62), unique=True, max_size=5).map(sorted)):
        times = sorted(draw(st.lists(st.integers(0, 12), max_size=6)))
        if draw(st.booleans()):
            pending = dwell > 0 and draw(st.booleans())
            since = draw(st.integers(-6, times[0] if times else 12)) if pending else 0
            lingers = margin and (not pending or draw(st.booleans()))
            rows.append((pair, HELD, since, LINGERS * lingers | PENDING * pending))
        rows += [(pair, draw(codes), time, 0) for time in times]
    return rows


def by_hand(rows: list[Row], dwell: int, margin: bool) -> tuple[list[Any], list[Any]]:
    """Reports (enter?, row, time), and pairs to hold (pair, since, lingers, row if pending)."""
    reports, held = [], []
    for pair, group in groupby(range(len(rows)), key=lambda i: rows[i][0]):
        mine = list(group)
        state: dict[str, Any] | None = None
        if rows[mine[0]][1] == (LEFT if margin else GONE):
            state = {"since": None, "lingers": False}
        for i in mine:
            _, code, time, held_as = rows[i]
            if code == HELD:
                state = {"since": time if held_as & PENDING else None, "row": i}
                state["lingers"] = bool(held_as & LINGERS)
            elif code == CAME and state is None:
                state = {"since": time if dwell else None, "row": i, "lingers": False}
                if not dwell:
                    reports.append((True, i, time))
            elif code == CAME:
                state["lingers"] = False  # type: ignore[index]
            elif state is not None and code == LEFT:
                state["lingers"] = True
            elif state is not None:
                since = state["since"]
                if since is not None and time - since >= dwell:
                    reports.append((True, state["row"], since + dwell))
                if since is None or time - since >= dwell:
                    reports.append((False, i, time))
                state = None
        if state is not None and (state["lingers"] or state["since"] is not None):
            pending = state["since"] is not None
            row = state["row"] if pending else None
            held.append((pair, state["since"], state["lingers"], row))
    return reports, held


def by_kernel(rows: list[Row], dwell: int, margin: bool) -> tuple[list[Any], list[Any]]:
    n = len(rows)
    entered, of_row, at = (
        np.empty(2 * n, np.bool_),
        np.empty(2 * n, np.int64),
        np.empty(2 * n, "i8"),
    )
    pair, since, came = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64)
    state = np.empty(n, np.uint8)
    n_reports, n_held = report(
        np.array([row[0] for row in rows], np.int64),
        np.array([row[1] for row in rows], np.uint8),
        np.array([row[2] for row in rows], np.int64),
        np.array([row[3] for row in rows], np.uint8),
        dwell,
        margin,
        entered,
        of_row,
        at,
        pair,
        since,
        state,
        came,
    )
    reports = zip(entered.tolist(), of_row.tolist(), at.tolist(), strict=True)
    held = [
        (p, s, bool(h & LINGERS), c) if h & PENDING else (p, None, bool(h & LINGERS), None)
        for p, s, h, c in zip(
            pair.tolist(), since.tolist(), state.tolist(), came.tolist(), strict=True
        )
    ]
    return list(reports)[:n_reports], held[:n_held]


@given(dwell=st.sampled_from([0, 0, 1, 3, 5]), margin=st.booleans(), data=st.data())
def test_what_is_reported_and_held(dwell: int, margin: bool, data: st.DataObject) -> None:
    rows = data.draw(histories(dwell, margin))
    assert by_kernel(rows, dwell, margin) == by_hand(rows, dwell, margin)


def test_times_as_far_apart_as_there_are() -> None:
    far = 2**63 - 1
    for first in (-far, -far - 1):
        rows = [(1, CAME, first, 0), (1, GONE, far, 0)]
        assert by_kernel(rows, 5, False) == ([(True, 0, 5 + first), (False, 1, far)], [])
        rows = [(1, HELD, first, PENDING), (1, GONE, 4 + first, 0)]
        assert by_kernel(rows, 5, False) == ([], [])
