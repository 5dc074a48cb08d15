"""Every index by name: the contract suite and the benchmarks run over this list."""

from __future__ import annotations

import operator
from collections.abc import Callable
from types import ModuleType

from limen.indexes.bounded import ENDS, INT64, Bounded, Paper
from limen.indexes.cei import CEI
from limen.indexes.constructs import Constructs
from limen.indexes.is_list import ISList
from limen.indexes.protocol import IntervalIndex
from limen.indexes.sorted_scan import SortedScan
from limen.kernels import cei_plain, dlist, lci, lci_bc, lci_bv, lci_bv_dt, sci, sci_bc, ui

ANYWHERE: dict[str, Callable[[], IntervalIndex]] = {"cei": CEI, "sorted-scan": SortedScan}
OVER_A_DOMAIN: dict[str, ModuleType] = {
    "cei-plain": cei_plain,
    "dlist": dlist,
    "lci": lci,
    "lci-bc": lci_bc,
    "lci-bv": lci_bv,
    "lci-bv-dt": lci_bv_dt,
    "sci": sci,
    "sci-bc": sci_bc,
    "ui": ui,
}
INDEXES = sorted([*ANYWHERE, *OVER_A_DOMAIN, ISList.name])
ONE_LENGTH = {"dlist", "ui"}
USUAL_LENGTH = 16  # of the longest construct, where none is asked for


def takes_length(name: str) -> bool:
    return name in OVER_A_DOMAIN and name not in ONE_LENGTH


def create(
    name: str,
    *,
    domain: range | None = None,
    length: int | None = None,
    ends: str = "closed",
) -> IntervalIndex:
    """An empty index; `cei` is the one that Limen uses, docs/indexes.md tells of the others.

    `domain`: the values there are; the indexes over virtual constructs need it, the others take every
    int64 without it. `length`: of the longest construct, a power of two (16 if not given).
    `ends`: "closed" or "half-open", see `bounded.py`.

    >>> import numpy as np
    >>> index = create("cei")
    >>> index.build(np.array([0, 1]), np.array([40, 45]), np.array([50, 60]))
    >>> sorted(index.stab(50).tolist())
    [0, 1]
    >>> index = create("lci-bv-dt", domain=range(100), length=8, ends="half-open")
    >>> index.build(np.array([0, 1]), np.array([40, 45]), np.array([50, 60]))
    >>> index.stab(49.5).tolist(), index.stab(50.0).tolist()
    ([1, 0], [1])
    """
    if name not in INDEXES:
        raise ValueError(f"no index named {name!r}; there are: {', '.join(INDEXES)}")
    if ends not in ENDS:
        raise ValueError(f"ends are {' or '.join(ENDS)}, not {ends!r}")
    values = _checked_domain(domain)
    kernel = OVER_A_DOMAIN.get(name)
    if kernel is not None and domain is None:
        raise ValueError(f"{name} needs a domain: create({name!r}, domain=range(0, 1000))")
    if length is not None and not takes_length(name):
        raise ValueError(f"{name} has no constructs of different lengths: leave length out")
    if kernel is not None:
        longest = _checked_length(length, values) if takes_length(name) else 1
        inside = Constructs(name, kernel, _size(values), longest, ends == "closed")
        return Paper(inside, values, ends)
    if name == ISList.name:
        return Paper(ISList(closed=ends == "closed"), values, ends)
    index = ANYWHERE[name]()
    return index if domain is None and ends == "closed" else Bounded(index, values, ends)


def _checked_domain(domain: range | None) -> range:
    if domain is None:
        return INT64
    if not isinstance(domain, range) or domain.step != 1 or not domain:
        raise ValueError(f"a domain is a range of integers in steps of 1, not {domain!r}")
    if domain.start < INT64.start or domain.stop > INT64.stop:
        raise ValueError(f"{domain} is not within int64")
    return domain


def _size(domain: range) -> int:
    return domain.stop - domain.start  # len() has a limit


def _checked_length(length: int | None, domain: range) -> int:
    if length is None:
        return min(USUAL_LENGTH, 1 << (_size(domain).bit_length() - 1))
    try:
        length = operator.index(length)
    except TypeError:
        raise ValueError(f"length {length!r} is not an integer") from None
    if length < 1 or length & (length - 1):
        raise ValueError(f"length {length} is not a power of two")
    if length > _size(domain):
        raise ValueError(
            f"length {length} is larger than the domain, which has {_size(domain):,} values"
        )
    return length
