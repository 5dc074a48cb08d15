"""Numbers as people read them."""

from __future__ import annotations


def many(count: int, what: str) -> str:
    """
    >>> print(many(1, "file"), "and", many(2000, "sub-index"))
    1 file and 2,000 sub-indices
    """
    if count == 1:
        return f"1 {what}"
    return f"{count:,} {what.removesuffix('ex') + 'ices' if what.endswith('ex') else what + 's'}"


def in_bytes(size: float) -> str:
    """
    >>> in_bytes(312), in_bytes(28_400), in_bytes(5_000_000_000)
    ('312 B', '28.4 kB', '5 GB')
    """
    for unit, letter in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if size >= unit:
            return f"{size / unit:.3g} {letter}"
    return f"{size:.0f} B"


def short(count: int) -> str:
    """In at most seven characters: 9,999 or 13.4k."""
    if count < 10_000:
        return f"{count:,}"
    for size, letter in ((1e9, "G"), (1e6, "M")):
        if count >= size:
            return f"{count / size:.3g}{letter}"
    return f"{count / 1e3:.3g}k"
