"""Height-balanced trees of intervals that carry intersections: insert, delete, split, join.

Node i is interval i: a row of eight words, one cache line. Nodes are in order of left ends, equal ones by
number. Beside its own interval a node has the common intersection of its subtree: the greatest left end
and the least right end. A tree is the number of its root, -1 if it is empty; many trees share the rows.

Two subtrees of a node differ in height by one at most (AVL). All operations cost the height of what they
take, `join` only the difference of heights.
"""

from __future__ import annotations

import numpy as np

from limen.kernels.compiled import leaf, loop
from limen.kernels.memory import I32, I64

LO, HI, MAX_LO, MIN_HI, LEFT, RIGHT, SIZE, HEIGHT = range(8)
WORDS = 8
NONE = -1
DEEP = 64  # no tree of less than 2**44 nodes is so high


@leaf
def height(nodes: I64, v: int) -> int:
    return nodes[v, HEIGHT] if v >= 0 else np.int64(0)


@leaf
def size(nodes: I64, v: int) -> int:
    return nodes[v, SIZE] if v >= 0 else np.int64(0)


@leaf
def is_before(nodes: I64, v: int, w: int) -> bool:
    return nodes[v, LO] < nodes[w, LO] or (nodes[v, LO] == nodes[w, LO] and v < w)


@leaf
def _pull(nodes: I64, v: int) -> None:
    """Bring a node up to date with its children."""
    left, right = nodes[v, LEFT], nodes[v, RIGHT]
    most, least, many, high = nodes[v, LO], nodes[v, HI], np.int64(1), np.int64(0)
    if left >= 0:
        least = min(least, nodes[left, MIN_HI])
        many += nodes[left, SIZE]
        high = nodes[left, HEIGHT]
    if right >= 0:
        most = nodes[right, MAX_LO]
        least = min(least, nodes[right, MIN_HI])
        many += nodes[right, SIZE]
        high = max(high, nodes[right, HEIGHT])
    nodes[v, MAX_LO], nodes[v, MIN_HI] = most, least
    nodes[v, SIZE], nodes[v, HEIGHT] = many, high + 1


@leaf
def _rotate(nodes: I64, v: int, side: int) -> int:
    """Put the child that is on the other side in v's place, and v under it on this one."""
    other = LEFT + RIGHT - side
    w = nodes[v, other]
    nodes[v, other] = nodes[w, side]
    nodes[w, side] = v
    _pull(nodes, v)
    _pull(nodes, w)
    return w


@leaf
def _balance(nodes: I64, v: int) -> int:
    """The root of v's subtree, which is brought up to date and balanced; its children are."""
    heavier = height(nodes, nodes[v, RIGHT]) - height(nodes, nodes[v, LEFT])
    if -2 < heavier < 2:
        _pull(nodes, v)
        return v
    side = LEFT if heavier > 0 else RIGHT  # where v is to go
    other = LEFT + RIGHT - side
    w = nodes[v, other]
    if height(nodes, nodes[w, side]) > height(nodes, nodes[w, other]):
        nodes[v, other] = _rotate(nodes, w, other)
    return _rotate(nodes, v, side)


@leaf
def _climb(nodes: I64, path: I64, depth: int, side: int, v: int) -> int:
    """Put v under the last of the path on this side, and so on upwards; returns the root."""
    while depth > 0:
        depth -= 1
        parent = path[depth]
        nodes[parent, side] = v
        v = _balance(nodes, parent)
    return v


@leaf
def alone(nodes: I64, v: int, lo: int, hi: int) -> int:
    """The tree of one interval."""
    nodes[v, LO], nodes[v, HI] = lo, hi
    nodes[v, LEFT] = nodes[v, RIGHT] = NONE
    _pull(nodes, v)
    return v


@loop
def insert(nodes: I64, path: I64, root: int, v: int) -> int:
    """Put v, whose own interval is set, into a tree; returns its root. `path` is scratch space."""
    depth, at = 0, np.int64(root)
    while at >= 0:
        path[depth] = at
        depth += 1
        at = nodes[at, LEFT] if is_before(nodes, v, at) else nodes[at, RIGHT]
    at = np.int64(alone(nodes, v, nodes[v, LO], nodes[v, HI]))
    while depth > 0:
        depth -= 1
        parent = path[depth]
        nodes[parent, LEFT if is_before(nodes, v, parent) else RIGHT] = at
        at = _balance(nodes, parent)
    return at


@loop
def delete(nodes: I64, path: I64, root: int, v: int) -> int:
    """Take v out of the tree that it is in; returns its root."""
    depth, at = 0, np.int64(root)
    while at != v:
        path[depth] = at
        depth += 1
        at = nodes[at, LEFT] if is_before(nodes, v, at) else nodes[at, RIGHT]
    left, right = nodes[v, LEFT], nodes[v, RIGHT]
    above = depth
    if left < 0 or right < 0:
        at = max(left, right)
    else:  # the next one takes its place
        at = right
        while nodes[at, LEFT] >= 0:
            path[depth] = at
            depth += 1
            at = nodes[at, LEFT]
        rest = nodes[at, RIGHT]
        if depth > above:
            while depth > above:
                depth -= 1
                nodes[path[depth], LEFT] = rest
                rest = _balance(nodes, path[depth])
        nodes[at, LEFT], nodes[at, RIGHT] = left, rest
        at = _balance(nodes, at)
    while above > 0:
        above -= 1
        parent = path[above]
        nodes[parent, LEFT if is_before(nodes, v, parent) else RIGHT] = at
        at = _balance(nodes, parent)
    return at


@leaf
def _join(nodes: I64, path: I64, a: int, v: int, b: int) -> int:
    """The tree of a, v and b, which are in this order."""
    high, low = height(nodes, a), height(nodes, b)
    side, at = (RIGHT, np.int64(a)) if high > low else (LEFT, np.int64(b))
    least, depth = min(high, low), 0
    while height(nodes, at) > least + 1:
        path[depth] = at
        depth += 1
        at = nodes[at, side]
    nodes[v, LEFT], nodes[v, RIGHT] = (at, np.int64(b)) if side == RIGHT else (np.int64(a), at)
    _pull(nodes, v)
    return _climb(nodes, path, depth, side, np.int64(v))


@loop
def join(nodes: I64, path: I64, a: int, b: int) -> int:
    """One tree of two, the first of which is before the second."""
    if a < 0 or b < 0:
        return max(a, b)
    depth, at = 0, np.int64(a)
    while nodes[at, RIGHT] >= 0:
        path[depth] = at
        depth += 1
        at = nodes[at, RIGHT]
    rest = _climb(nodes, path, depth, RIGHT, nodes[at, LEFT])
    return _join(nodes, path, rest, at, np.int64(b))


@loop
def split(nodes: I64, path: I64, more: I64, root: int, x: int) -> tuple[int, int]:
    """The tree of those that begin at or before x, and of the others. `more` is scratch space too."""
    depth, at = 0, np.int64(root)
    while at >= 0:
        path[depth] = at
        depth += 1
        at = nodes[at, RIGHT if nodes[at, LO] <= x else LEFT]
    a, b = np.int64(NONE), np.int64(NONE)
    while depth > 0:
        depth -= 1
        at = path[depth]
        if nodes[at, LO] <= x:
            a = _join(nodes, more, nodes[at, LEFT], at, a)
        else:
            b = _join(nodes, more, b, at, nodes[at, RIGHT])
    return a, b


@leaf
def first_from(nodes: I64, root: int, x: int) -> int:
    """The first that begins at x or later, or NONE."""
    found, at = np.int64(NONE), np.int64(root)
    while at >= 0:
        if nodes[at, LO] >= x:
            found = at
            at = nodes[at, LEFT]
        else:
            at = nodes[at, RIGHT]
    return found


@leaf
def last_to(nodes: I64, root: int, x: int) -> int:
    """The last that ends at x or before, or NONE; in a tree whose nodes end in order, too."""
    found, at = np.int64(NONE), np.int64(root)
    while at >= 0:
        if nodes[at, HI] <= x:
            found = at
            at = nodes[at, RIGHT]
        else:
            at = nodes[at, LEFT]
    return found


@leaf
def first_after(nodes: I64, root: int, x: int) -> int:
    """The first that ends after x, or NONE; likewise."""
    found, at = np.int64(NONE), np.int64(root)
    while at >= 0:
        if nodes[at, HI] > x:
            found = at
            at = nodes[at, LEFT]
        else:
            at = nodes[at, RIGHT]
    return found


@leaf
def least(nodes: I64, root: int) -> int:
    """The first of a tree that is not empty."""
    at = np.int64(root)
    while nodes[at, LEFT] >= 0:
        at = nodes[at, LEFT]
    return at


@loop
def members(nodes: I64, path: I64, root: int, found: I32) -> int:
    """Fill found with the tree's nodes in order; returns how many they are."""
    depth, n, at = 0, 0, np.int64(root)
    while depth > 0 or at >= 0:
        while at >= 0:
            path[depth] = at
            depth += 1
            at = nodes[at, LEFT]
        depth -= 1
        at = path[depth]
        found[n] = at
        n += 1
        at = nodes[at, RIGHT]
    return n


@loop
def plant(nodes: I64, order: I64, begin: int, end: int, made: I64) -> int:
    """A tree of order[begin:end], whose own intervals are set and in order; returns its root.

    `made` is scratch space: three words for each of them.
    """
    if begin == end:
        return NONE
    waiting, done = 1, 0
    made[0, 0], made[0, 1] = begin, end
    while done < waiting:  # the parts in order of depth
        begin, end = made[done, 0], made[done, 1]
        middle = (begin + end) >> 1
        v = order[middle]
        made[done, 2] = v
        nodes[v, LEFT] = nodes[v, RIGHT] = NONE
        for side in (LEFT, RIGHT):
            a, b = (begin, middle) if side == LEFT else (middle + 1, end)
            if a < b:
                made[waiting, 0], made[waiting, 1] = a, b
                nodes[v, side] = order[(a + b) >> 1]
                waiting += 1
        done += 1
    for i in range(done - 1, -1, -1):
        _pull(nodes, made[i, 2])
    return made[0, 2]
