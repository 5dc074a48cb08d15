"""Which Arrow types an attribute may have, and which columns may be read as one.

Ordinal types have an order-preserving map to int64 and take ranges; key types take equality only.
After `attribute_type` a type has one spelling: text is `string`, decimals are `decimal128`, and a
dictionary is what it holds.
`lossless(src, dst)` holds exactly when every value of `src` is a value of `dst` (a finer timestamp
unit may still push single values out of range: those are bad events, not a bad column).
"""

from __future__ import annotations

import re

import pyarrow as pa
import pyarrow.types as pt

from limen.model.errors import LimenError

SUPPORTED = (
    "int8..int64, uint8..uint64, float32, float64, date, timestamp[s|ms|us|ns] with or without "
    "tz, decimal(p,s) with p <= 18; equality only: string, bool"
)

MAX_DECIMAL_PRECISION = 18
UNITS_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
SECONDS_PER_DAY = 86_400

_NAMES: dict[str, pa.DataType] = {
    "int8": pa.int8(),
    "int16": pa.int16(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "uint8": pa.uint8(),
    "uint16": pa.uint16(),
    "uint32": pa.uint32(),
    "uint64": pa.uint64(),
    "float": pa.float32(),
    "float32": pa.float32(),
    "double": pa.float64(),
    "float64": pa.float64(),
    "date": pa.date32(),
    "date32": pa.date32(),
    "date32[day]": pa.date32(),
    "string": pa.string(),
    "str": pa.string(),
    "large_string": pa.string(),
    "string_view": pa.string(),
    "bool": pa.bool_(),
    "boolean": pa.bool_(),
}
_TIMESTAMP = re.compile(r"timestamp\[\s*(s|ms|us|ns)\s*(?:,\s*tz\s*=\s*([^\]\s]+)\s*)?\]")
_DECIMAL = re.compile(r"decimal(?:32|64|128)?\(\s*(\d+)\s*,\s*(-?\d+)\s*\)")
_INTEGER_BITS = {  # magnitude bits, signed
    pa.int8(): (7, True),
    pa.int16(): (15, True),
    pa.int32(): (31, True),
    pa.int64(): (63, True),
    pa.uint8(): (8, False),
    pa.uint16(): (16, False),
    pa.uint32(): (32, False),
    pa.uint64(): (64, False),
}
_EXACT_INTEGER_BITS = {pa.float32(): 24, pa.float64(): 53}


def attribute_type(spec: str | pa.DataType) -> pa.DataType:
    """The attribute type meant by an Arrow type or a name.

    >>> attribute_type("decimal(10,2)")
    Decimal128Type(decimal128(10, 2))
    """
    found = _named(spec) if isinstance(spec, str) else spec
    if isinstance(found, pa.DataType):
        if pt.is_dictionary(found):
            return attribute_type(found.value_type)
        if pt.is_string(found) or pt.is_large_string(found) or pt.is_string_view(found):
            return pa.string()
        if _is_small_decimal(found):
            if found.precision > MAX_DECIMAL_PRECISION:
                raise LimenError(
                    f"type {type_name(found)} does not fit 64 bits: "
                    f"precision {found.precision} is above {MAX_DECIMAL_PRECISION}"
                )
            return pa.decimal128(found.precision, found.scale)
        if is_key(found) or is_ordinal(found):
            return found
    raise LimenError(f"type {spec} is not supported; supported: {SUPPORTED}")


def is_key(t: pa.DataType) -> bool:
    """Takes equality only."""
    return bool(pt.is_string(t) or pt.is_boolean(t))


def is_ordinal(t: pa.DataType) -> bool:
    """Takes ranges."""
    if pt.is_decimal(t):
        return _is_small_decimal(t) and t.precision <= MAX_DECIMAL_PRECISION
    return bool(
        pt.is_integer(t)
        or pt.is_float32(t)
        or pt.is_float64(t)
        or pt.is_date32(t)
        or pt.is_timestamp(t)
    )


def is_float(t: pa.DataType) -> bool:
    return bool(pt.is_float32(t) or pt.is_float64(t))


def type_name(t: pa.DataType) -> str:
    """The short name `attribute_type` understands."""
    if pt.is_float32(t):
        return "float32"
    if pt.is_float64(t):
        return "float64"
    if pt.is_date32(t):
        return "date"
    if _is_small_decimal(t):
        return f"decimal({t.precision},{t.scale})"
    return str(t)


def lossless(src: pa.DataType, dst: pa.DataType) -> bool:
    """May a column of type `src` be read as attribute type `dst` with no value lost?

    >>> lossless(pa.int32(), pa.float64()), lossless(pa.int64(), pa.float64())
    (True, False)
    """
    if pt.is_dictionary(src):
        return lossless(src.value_type, dst)
    if pt.is_null(src):
        return True
    if pt.is_boolean(dst):
        return bool(pt.is_boolean(src))
    if pt.is_string(dst):
        return bool(pt.is_string(src) or pt.is_large_string(src) or pt.is_string_view(src))
    if src in _INTEGER_BITS:
        return _integer_fits(src, dst)
    if pt.is_float32(src):
        return is_float(dst)
    if pt.is_float64(src):
        return bool(pt.is_float64(dst))
    if pt.is_date32(src):
        return bool(pt.is_date32(dst) or (pt.is_timestamp(dst) and dst.tz is None))
    if pt.is_timestamp(src):
        return (
            bool(pt.is_timestamp(dst))
            and (src.tz is None) == (dst.tz is None)
            and UNITS_PER_SECOND[src.unit] <= UNITS_PER_SECOND[dst.unit]
        )
    if _is_small_decimal(src):
        return (
            _is_small_decimal(dst)
            and src.scale <= dst.scale
            and src.precision - src.scale <= dst.precision - dst.scale
        )
    return False


def _named(name: str) -> pa.DataType | None:
    folded = name.strip()
    if folded.lower() in _NAMES:
        return _NAMES[folded.lower()]
    if match := _TIMESTAMP.fullmatch(folded):
        return pa.timestamp(match[1], tz=match[2])
    if match := _DECIMAL.fullmatch(folded):
        precision, scale = int(match[1]), int(match[2])
        if 1 <= precision <= 38 and -38 <= scale <= 38:
            return pa.decimal128(precision, scale)
    return None


def _is_small_decimal(t: pa.DataType) -> bool:
    return bool(pt.is_decimal32(t) or pt.is_decimal64(t) or pt.is_decimal128(t))


def _integer_fits(src: pa.DataType, dst: pa.DataType) -> bool:
    bits, signed = _INTEGER_BITS[src]
    if dst in _INTEGER_BITS:
        dst_bits, dst_signed = _INTEGER_BITS[dst]
        return bits <= dst_bits and (dst_signed or not signed)
    if is_float(dst):
        return bits <= _EXACT_INTEGER_BITS[dst]
    if _is_small_decimal(dst):
        return bool(dst.scale >= 0 and len(str(2**bits)) <= dst.precision - dst.scale)
    return False
