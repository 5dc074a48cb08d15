"""Small indexes over virtual constructs, made and read by hand for the tests of their kernels."""

from __future__ import annotations

import itertools
from types import ModuleType

import numpy as np

from limen.kernels import id_lists

R, LENGTH = 21, 4  # a domain that is no multiple of the length


def empty(kernel: ModuleType, closed: int, length: int = LENGTH, r: int = R) -> id_lists.Constructs:
    ix = id_lists.empty(kernel.layout(r, length, closed), r, length, closed)
    return ix._replace(entries=np.zeros((1 << 13, 2), np.int32))


def cut(
    kernel: ModuleType, ix: id_lists.Constructs, lo: int, hi: int
) -> list[tuple[int, int, int]]:
    """The pieces of one query: label (~label if its end is passed over), first, last."""
    pieces = np.empty((256, 3), np.int64)
    offsets = np.zeros(2, np.int64)
    assert kernel.decompose(ix, np.array([lo]), np.array([hi]), 0, offsets, pieces) == 1
    return [tuple(row) for row in pieces[: offsets[1]].tolist()]


def put(kernel: ModuleType, ix: id_lists.Constructs, who: int, lo: int, hi: int) -> None:
    pieces = np.array(cut(kernel, ix, lo, hi), np.int64)
    id_lists.put(ix, np.array([who], np.int32), np.array([0, len(pieces)]), pieces, 1)


def take(kernel: ModuleType, ix: id_lists.Constructs, who: int, lo: int, hi: int) -> None:
    pieces = np.array(cut(kernel, ix, lo, hi), np.int64)
    id_lists.take(ix, np.array([who], np.int32), np.array([0, len(pieces)]), pieces, 1)


def search(
    kernel: ModuleType, ix: id_lists.Constructs, mode: int, room: int = 64
) -> list[list[int]] | list[int]:
    """What every position finds; with too little room, in several goes."""
    xs = np.arange(ix.r)
    offsets, out, done = np.zeros(len(xs) + 1, np.int64), np.empty(room, np.int32), 0
    while True:
        done = kernel.search(ix, xs, done, offsets, out, mode)
        if done == len(xs):
            break
        out = np.concatenate([out[: offsets[done]], np.empty(room, np.int32)])
    if mode != id_lists.REPORT:
        assert mode == id_lists.COUNT or all(ix.head[label] != 0 for label in out[: offsets[-1]])
        return np.diff(offsets).tolist()
    return [sorted(out[a:b].tolist()) for a, b in itertools.pairwise(offsets)]


def all_ranges() -> list[tuple[int, int]]:
    return [(p, q) for p, q in itertools.product(range(R), repeat=2) if p <= q]


def defined(kernel: ModuleType, closed: int, length: int = LENGTH) -> dict[int, set[int]]:
    """The positions of every construct, by label."""
    rows = kernel.constructs(R, length, closed).tolist()
    return {label: set(range(first, last + 1)) for label, first, last in rows}


def covering_segment(kernel: ModuleType, closed: int, x: int, length: int) -> range:
    """From the least to the greatest label of a construct over x."""
    known = defined(kernel, closed, length)
    over = [label for label, covers in known.items() if x in covers]
    return range(min(over), max(over) + 1)
