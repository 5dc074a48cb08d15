"""Trees of `avl.py` looked at node by node, and the greedy partition of Lemma 1 in plain Python."""

from __future__ import annotations

from math import log2
from typing import Any

import numpy as np
from hypothesis import strategies as st

Ends = dict[int, tuple[int, int]]


def in_order(nodes: np.ndarray, root: int, ends: Ends) -> list[int]:
    """The nodes of a tree from left to right; all that the rows say of it is true."""
    if root == -1:
        return []
    found, high = _walk(nodes, int(root), ends)
    keys = [(ends[v][0], v) for v in found]
    assert keys == sorted(set(keys))
    assert high <= 1.45 * log2(len(found) + 2)
    return found


def _walk(nodes: np.ndarray, v: int, ends: Ends) -> tuple[list[int], int]:
    """A subtree's nodes in order, and its height."""
    lo, hi, max_lo, min_hi, left, right, size, height = nodes[v].tolist()
    before, low = _walk(nodes, left, ends) if left != -1 else ([], 0)
    after, high = _walk(nodes, right, ends) if right != -1 else ([], 0)
    found = [*before, v, *after]
    assert (lo, hi) == ends[v]
    assert abs(low - high) <= 1
    assert height == max(low, high) + 1
    assert size == len(found)
    assert max_lo == max(ends[w][0] for w in found)
    assert min_hi == min(ends[w][1] for w in found)
    return found, height


def greedy(ends: Ends) -> list[tuple[int, set[int]]]:
    """Groups from left to right: the stabbing point, who is in."""
    found: list[tuple[int, set[int]]] = []
    for v in sorted(ends, key=lambda v: ends[v][0]):
        lo, hi = ends[v]
        if found and lo <= found[-1][0]:
            point, members = found[-1]
            found[-1] = (min(point, hi), members | {v})
        else:
            found.append((hi, {v}))
    return found


def long(elements: st.SearchStrategy[Any], most: int, least: int = 0) -> st.SearchStrategy[list]:
    """Lists of all lengths alike; Hypothesis' own are of five or so."""
    return st.integers(least, most).flatmap(lambda n: st.lists(elements, min_size=n, max_size=n))
