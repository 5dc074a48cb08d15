from __future__ import annotations

import math

import numpy as np
import pytest

from limen.kernels.positions import of_integers, of_reals

INT64 = -(2**63), 2**63 - 1


def run(kernel, xs: np.ndarray, first: int, last: int, origin: int) -> list[int | None]:
    found, inside = np.empty(len(xs), np.int64), np.empty(len(xs), np.bool_)
    outside = kernel(xs, first, last, origin, found, inside)
    assert outside == np.count_nonzero(~inside)
    return [int(f) if i else None for f, i in zip(found, inside, strict=True)]


def test_integers() -> None:
    xs = np.array([-4, -3, 0, 5, 6, *INT64], np.int64)
    assert run(of_integers, xs, -3, 5, -3) == [None, 0, 3, 8, None, None, None]
    assert run(of_integers, xs, *INT64, 0) == xs.tolist()


@pytest.mark.parametrize("nowhere", [math.nan, math.inf, -math.inf, 2.0**63, -(2.0**64), 1e300])
def test_reals(nowhere: float) -> None:
    xs = np.array([-3.0, -3.0001, -2.5, -0.0, 0.999, 5.9, 6.0, nowhere])
    assert run(of_reals, xs, -3, 5, -3) == [0, None, 0, 3, 3, 8, None, None]
    assert run(of_reals, np.array([nowhere, -(2.0**63)]), *INT64, 0) == [None, -(2**63)]
