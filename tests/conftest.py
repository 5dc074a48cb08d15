"""One Hypothesis profile for all: seeded, so that a failure is the same failure everywhere."""

from __future__ import annotations

import os
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

UNJITTED = os.environ.get("NUMBA_DISABLE_JIT") == "1"

settings.register_profile(
    "limen",
    derandomize=True,
    deadline=None,
    max_examples=80 if UNJITTED else 400,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("limen")


@pytest.fixture(autouse=UNJITTED)
def wrapping_integers() -> Iterator[None]:
    """As plain Python, kernels compute in numpy scalars: int64 wraps there too, but says so."""
    with np.errstate(over="ignore"):
        yield
