"""The bucket of an entity is the same for ever: state in old checkpoints is found by it."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from limen.engine.buckets import buckets_of

LEAST, MOST = -(2**63), 2**63 - 1


def of(values: list[object], buckets: int, kind: pa.DataType | None = None) -> list[int]:
    return buckets_of(pa.chunked_array([pa.array(values, kind)]), buckets).tolist()


TEXTS = ["", "a", "b", "ab", "ba", "sensor-1", "sensor-2", "é", "日本", "🙂", "a\0", "x" * 300]
NUMBERS = [0, 1, 2, -1, -2, 2**31, -(2**31), 2**53 + 1, LEAST, LEAST + 1, MOST - 1, MOST]
PINNED = {
    16: (
        [10, 14, 9, 8, 2, 6, 4, 7, 0, 6, 15, 8],
        [0, 12, 13, 1, 15, 8, 11, 2, 5, 6, 10, 12],
    ),
    1000: (
        [850, 150, 89, 808, 922, 286, 396, 63, 776, 134, 447, 888],
        [0, 180, 429, 41, 967, 288, 475, 2, 965, 214, 2, 724],
    ),
}


@pytest.mark.parametrize("buckets", PINNED)
def test_buckets_never_change(buckets: int) -> None:
    texts, numbers = PINNED[buckets]
    assert of(TEXTS, buckets) == texts
    assert of(NUMBERS, buckets) == numbers


@pytest.mark.parametrize("buckets", [1, 2, 7, 16, 1000, 1 << 16, (1 << 16) + 1, 1 << 20])
def test_every_form_of_a_column_gives_the_same(buckets: int) -> None:
    texts, numbers = of(TEXTS, buckets), of(NUMBERS, buckets)
    assert all(0 <= bucket < buckets for bucket in texts + numbers)
    for kind in (pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())):
        column = pa.array(TEXTS).cast(kind) if kind != pa.string_view() else pa.array(TEXTS, kind)
        assert buckets_of(pa.chunked_array([column]), buckets).tolist() == texts
    pieces = pa.chunked_array([TEXTS[:5], [], TEXTS[5:]], pa.string())
    assert buckets_of(pieces, buckets).tolist() == texts
    assert buckets_of(pieces.slice(4, 3), buckets).tolist() == texts[4:7]
    small = [n for n in NUMBERS if abs(n) < 2**31]
    for narrow in (pa.int32(), pa.int64()):
        assert of(small, buckets, narrow) == of(small, buckets)


def test_a_missing_entity_belongs_to_the_first_bucket() -> None:
    assert of(["a", None, "b"], 16) == [14, 0, 9]
    assert of([1, None, 2], 16) == [12, 0, 13]
    assert of([None, None], 16, pa.string()) == [0, 0]
    assert of([None], 16, pa.int64()) == [0]
    assert of([], 16, pa.string()) == of([], 16, pa.int64()) == []


@pytest.mark.parametrize("buckets", [16, 17, 1000])
def test_entities_are_spread_evenly(buckets: int) -> None:
    """Names and numbers in a row, strides and all: no bucket has much more than its share."""
    n = 100 * buckets if buckets < 100 else 20_000
    numbers = np.arange(n)
    columns = [
        pa.array([f"sensor-{i}" for i in range(n)]),
        pa.array([f"{i:012d}" for i in range(n)]),
        *(pa.array(numbers * stride) for stride in (1, 16, 1000, 1 << 32)),
    ]
    for column in columns:
        found = np.bincount(buckets_of(pa.chunked_array([column]), buckets), minlength=buckets)
        share = n / buckets
        assert abs(found - share).max() < 6 * share**0.5
