"""SCI with clipped bitmaps (VCI, section 3): a value's bitmap has its covering segment only.

The constructs that may cover a value have labels within a stretch of L * L + 1 (closed) or
L * (L - 1) + 1 (half-open), which begins at a label that a multiplication and an addition give. So the
bitmaps grow with the domain and the square of L, no longer with the square of the domain.
"""

from __future__ import annotations

from limen.kernels import sci
from limen.kernels.id_lists import Layout

constructs, decompose, search = sci.constructs, sci.decompose, sci.search


def layout(r: int, length: int, closed: int) -> Layout:
    """Row j begins with the construct of length L that ends at j."""
    bits = length * (length - 1 + closed) + 1
    base = (1 - closed - length) * length + length - 1
    return sci.layout(r, length, closed)._replace(bits=bits, base=base, step=length)
