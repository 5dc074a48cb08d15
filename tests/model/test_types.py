"""Attribute types: names, refusals, and which columns may be read as which attribute."""

from __future__ import annotations

import pyarrow as pa
import pytest

from limen.model import LimenError, attribute_type, is_key, is_ordinal, lossless, type_name

ORDINAL = [
    pa.int8(), pa.int16(), pa.int32(), pa.int64(),
    pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64(),
    pa.float32(), pa.float64(), pa.date32(),
    pa.timestamp("s"), pa.timestamp("ms"), pa.timestamp("us"), pa.timestamp("ns"),
    pa.timestamp("us", "UTC"), pa.timestamp("ns", "Europe/Paris"),
    pa.decimal128(10, 2), pa.decimal128(18, 0), pa.decimal128(18, 18),
]  # fmt: skip


@pytest.mark.parametrize("kind", [*ORDINAL, pa.string(), pa.bool_()], ids=str)
def test_every_supported_type_is_found_by_its_names(kind: pa.DataType) -> None:
    assert attribute_type(kind) == kind
    assert attribute_type(str(kind)) == kind
    assert attribute_type(type_name(kind)) == kind
    assert is_key(kind) != is_ordinal(kind)


@pytest.mark.parametrize(
    ("spec", "kind"),
    [
        ("double", pa.float64()),
        ("float32", pa.float32()),
        ("date", pa.date32()),
        ("timestamp[us, tz=UTC]", pa.timestamp("us", "UTC")),
        ("timestamp[us,tz=America/New_York]", pa.timestamp("us", "America/New_York")),
        ("decimal(10,2)", pa.decimal128(10, 2)),
        (pa.decimal64(10, 2), pa.decimal128(10, 2)),
        (pa.decimal32(5, 1), pa.decimal128(5, 1)),
        (pa.large_string(), pa.string()),
        (pa.string_view(), pa.string()),
        ("Boolean", pa.bool_()),
    ],
)
def test_spellings(spec: str | pa.DataType, kind: pa.DataType) -> None:
    assert attribute_type(spec) == kind


@pytest.mark.parametrize(
    "spec",
    [
        "money", "timestamp", "decimal(99,2)", "",
        pa.list_(pa.int64()), pa.binary(), pa.time64("us"), pa.float16(), pa.null(), pa.date64(),
        pa.decimal256(10, 2), pa.dictionary(pa.int8(), pa.binary()),
    ],
    ids=str,
)  # fmt: skip
def test_other_types_are_refused_with_the_list(spec: str | pa.DataType) -> None:
    with pytest.raises(LimenError, match=r"is not supported; supported: int8\.\.int64.*decimal"):
        attribute_type(spec)


def test_a_decimal_beyond_64_bits_is_refused() -> None:
    with pytest.raises(LimenError, match="precision 38 is above 18"):
        attribute_type(pa.decimal128(38, 2))


@pytest.mark.parametrize(
    ("src", "dst", "answer"),
    [
        (pa.int32(), pa.float64(), True),
        (pa.int64(), pa.float64(), False),
        (pa.int16(), pa.float32(), True),
        (pa.int32(), pa.float32(), False),
        (pa.float32(), pa.float64(), True),
        (pa.float64(), pa.float32(), False),
        (pa.float64(), pa.int64(), False),
        (pa.uint32(), pa.int64(), True),
        (pa.uint32(), pa.int32(), False),
        (pa.uint64(), pa.int64(), False),
        (pa.int8(), pa.uint64(), False),
        (pa.uint8(), pa.uint64(), True),
        (pa.int32(), pa.decimal128(12, 2), True),
        (pa.int32(), pa.decimal128(11, 2), False),
        (pa.int8(), pa.decimal128(3, 0), True),
        (pa.int64(), pa.decimal128(18, 0), False),
        (pa.float32(), pa.decimal128(18, 2), False),
        (pa.decimal128(10, 2), pa.float64(), False),
        (pa.decimal128(10, 2), pa.decimal128(12, 4), True),
        (pa.decimal64(10, 2), pa.decimal128(11, 4), False),
        (pa.decimal128(12, 4), pa.decimal128(18, 2), False),
        (pa.date32(), pa.timestamp("us"), True),
        (pa.date32(), pa.timestamp("us", "UTC"), False),
        (pa.timestamp("us"), pa.date32(), False),
        (pa.timestamp("ms"), pa.timestamp("us"), True),
        (pa.timestamp("ns"), pa.timestamp("us"), False),
        (pa.timestamp("us", "UTC"), pa.timestamp("us"), False),
        (pa.timestamp("us"), pa.timestamp("us", "UTC"), False),
        (pa.timestamp("us", "UTC"), pa.timestamp("us", "Asia/Tokyo"), True),
        (pa.large_string(), pa.string(), True),
        (pa.dictionary(pa.int8(), pa.string()), pa.string(), True),
        (pa.string(), pa.float64(), False),
        (pa.bool_(), pa.int8(), False),
        (pa.bool_(), pa.bool_(), True),
        (pa.int8(), pa.bool_(), False),
        (pa.int64(), pa.date32(), False),
        (pa.int64(), pa.timestamp("us"), False),
        (pa.null(), pa.date32(), True),
        (pa.null(), pa.string(), True),
    ],
    ids=str,
)
def test_lossless(src: pa.DataType, dst: pa.DataType, answer: bool) -> None:
    assert lossless(src, dst) is answer


@pytest.mark.parametrize("kind", [*ORDINAL, pa.string(), pa.bool_()], ids=str)
def test_every_type_reads_itself(kind: pa.DataType) -> None:
    assert lossless(kind, kind)
