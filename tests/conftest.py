"""One Hypothesis profile for all, seeded, so that a failure is the same everywhere; one Spark session."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

_cache = tempfile.TemporaryDirectory(
    prefix="limen-tests-"
)  # for this run, Spark's workers included
os.environ["LIMEN_CACHE"] = _cache.name

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


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """One for the whole run: two cores, so that there is more than one worker; little memory; and a JVM
    that compiles quickly rather than well, since no test is long.

    Examples in the documents and benchmarks begin one of their own otherwise, each with other settings.
    """
    from limen.spark import session

    options = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}
    made = session("limen tests", cores=2, memory="1g", config=options)
    yield made
    made.stop()
