"""LCI with clipped bitmaps (VCI, section 3): a value's bitmap has its covering segment only.

The segment has L * (k + 1) + 1 labels (closed) or (L - 1) * (k + 1) + 1 (half-open).
"""

from __future__ import annotations

from limen.kernels import lci
from limen.kernels.id_lists import Layout

constructs, decompose, search = lci.constructs, lci.decompose, lci.search


def layout(r: int, length: int, closed: int) -> Layout:
    """Row j begins with the construct of length L that ends at j."""
    levels = length.bit_length()
    bits = (length - 1 + closed) * levels + 1
    base = (1 - closed - length) * levels + levels - 1
    return lci.layout(r, length, closed)._replace(bits=bits, base=base, step=levels)
