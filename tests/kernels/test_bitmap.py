from __future__ import annotations

import random
from types import ModuleType

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from limen.kernels import lci, lci_bc, sci, sci_bc
from limen.kernels.bitmap import lowest_bit, set_bits
from limen.kernels.compiled import loop

from . import constructs_by_hand as by_hand


@loop
def lowest(word: int) -> int:
    return lowest_bit(word)


@given(st.integers(1, 2**64 - 1))
def test_lowest_bit(word: int) -> None:
    at = lowest(np.uint64(word))
    assert word >> at & 1 == 1 and word & ((1 << at) - 1) == 0


@pytest.mark.parametrize("kernel", [lci, lci_bc, sci, sci_bc])
@pytest.mark.parametrize("closed", [0, 1])
def test_a_bit_says_that_an_active_construct_covers_the_position(
    kernel: ModuleType, closed: int
) -> None:
    """Whatever was put and taken: bits change with the first and the last use only."""
    chance, held = random.Random(5), {}
    ix, known = by_hand.empty(kernel, closed), by_hand.defined(kernel, closed)
    for who in range(60):
        if held and chance.random() < 0.45:
            gone = chance.choice(list(held))
            by_hand.take(kernel, ix, gone, *held.pop(gone))
        else:
            p, q = sorted(chance.choices(range(by_hand.R), k=2))
            held[who] = p, q
            by_hand.put(kernel, ix, who, p, q)
        active = {label for label in known if ix.head[label] != 0}
        for j in range(by_hand.R):
            begin = ix.base + ix.step * j
            row = sum(int(word) << 64 * w for w, word in enumerate(ix.bits[j]))
            found = {begin + i for i in range(row.bit_length()) if row >> i & 1}
            assert found == {label for label in active if j in known[label]}


def test_bits_behind_the_domain_are_not_there() -> None:
    bits = np.zeros((3, 1), np.uint64)
    set_bits(bits, 0, 0, 5, 1, 9)
    assert bits[:, 0].tolist() == [0, 32, 32]
