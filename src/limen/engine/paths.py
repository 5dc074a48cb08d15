"""How the queries of a conjunction are found: one access path each, the rest verified.

A query's equality keys and its most selective range lead to it: the keys choose a group, the range is
indexed within it (CEI), and only what that finds is compared with the other ranges. Queries with the
same key names and the same leading attribute share a path, so a batch probes as many paths as there
are such kinds, not as there are combinations of attributes.

Invariant: every live query is in exactly one path; a path's answer, verified, is exactly its queries
that match. Cost: a group look-up and a probe per event and path, one comparison per candidate and
further attribute.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from limen.engine.codes import GroupCodes, NumberCodes
from limen.indexes.cei import CEI
from limen.indexes.protocol import Hits
from limen.indexes.saved import Arrays, Facts, nested, part
from limen.kernels.csr import verify
from limen.model import INT64_MAX, INT64_MIN
from limen.partitions.histograms import Histogram

I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]
Ranges = dict[str, I64]  # by attribute: (slots, 2) ordinals, full range where unconstrained

SAMPLE, BUCKETS = 4096, 16  # ranges by which an attribute is judged, and buckets of their histogram


class Kind(NamedTuple):
    """What the queries of one path have in common."""

    keys: tuple[str, ...]
    lead: str | None  # the indexed attribute; None where there are equality keys only


class Probes(NamedTuple):
    """Events as a path takes them: ordinals and key codes by attribute."""

    n: int
    ordinals: dict[str, I64]
    codes: dict[str, I32]

    def some(self, rows: slice) -> Probes:
        return Probes(
            len(range(*rows.indices(self.n))),
            {name: values[rows] for name, values in self.ordinals.items()},
            {name: codes[rows] for name, codes in self.codes.items()},
        )


class Path:
    def __init__(self, kind: Kind, number: int) -> None:
        self.kind = kind
        self.number = number  # no other path of the matcher has it
        self.index = CEI()
        self._groups = GroupCodes(len(kind.keys)) if kind.keys else None
        self.verified: list[str] = []  # attributes that some query here constrains further

    def add(self, slots: I32, ranges: Ranges, key_codes: dict[str, I32]) -> None:
        for name in ranges:
            settled = name == self.kind.lead or name in self.kind.keys or name in self.verified
            if not settled and constrained(ranges[name][slots]).any():
                self.verified.append(name)
        lo = np.full(len(slots), INT64_MIN, np.int64)
        hi = np.full(len(slots), INT64_MAX, np.int64)
        if self.kind.lead is not None:
            lo, hi = ranges[self.kind.lead][slots].T.copy()
        groups = None
        if self._groups is not None:
            groups = self._groups.learn([key_codes[name][slots] for name in self.kind.keys])
        if len(self.index):
            self.index.insert(slots, lo, hi, groups)
        else:
            self.index.build(slots, lo, hi, groups)

    def _leading(self, probes: Probes) -> tuple[I64, I32 | None]:
        """The values and groups with which the index is probed."""
        lead = self.kind.lead
        values = probes.ordinals[lead] if lead is not None else np.zeros(probes.n, np.int64)
        if self._groups is None:
            return values, None
        return values, self._groups.find([probes.codes[name] for name in self.kind.keys])

    def candidates(self, probes: Probes) -> float:
        """About how many queries the index finds for an event, before they are verified."""
        return self.index.hits_per_value(*self._leading(probes))

    def match(self, probes: Probes, ranges: Ranges, candidates: float) -> Hits:
        """Offsets and slots, event by event; `candidates` are as many as expected for an event."""
        offsets, slots = self.index.stab_many(*self._leading(probes), per_value=candidates)
        for name in self.verified:
            verify(offsets, slots, probes.ordinals[name], ranges[name])
        return offsets, slots[: offsets[-1]]

    def count(self, probes: Probes, ranges: Ranges, candidates: float) -> I64:
        if self.verified:
            return np.diff(self.match(probes, ranges, candidates)[0])
        return self.index.count_many(*self._leading(probes)).astype(np.int64)

    def parts(self, rows: int) -> tuple[Arrays, Facts]:
        """What is saved, with room for slots below `rows`."""
        arrays, facts = self.index.parts(rows)
        pairs = self._groups.pairs if self._groups is not None else []
        for number, codes in enumerate(pairs):
            arrays |= nested(f"pairs.{number}", codes.arrays())
        return arrays, {
            "keys": self.kind.keys,
            "lead": self.kind.lead,
            "number": self.number,
            "verified": self.verified,
            "pairs": [len(codes) for codes in pairs],
            "index": facts,
        }

    @classmethod
    def of_parts(cls, arrays: Arrays, facts: Facts) -> Path:
        path = cls(Kind(tuple(facts["keys"]), facts["lead"]), facts["number"])
        path.verified = facts["verified"]
        path.index = CEI.of_parts(arrays, facts["index"])
        if path._groups is not None:
            path._groups.pairs = [
                NumberCodes.of_arrays(part(arrays, f"pairs.{number}"), size)
                for number, size in enumerate(facts["pairs"])
            ]
        return path


def kinds_of(slots: I32, ranges: Ranges, key_codes: dict[str, I32]) -> list[tuple[Kind, I32]]:
    """Divide queries by their kind. Where a query has a code for an attribute, that is a key."""
    keys = {name: codes[slots] >= 0 for name, codes in key_codes.items()}
    leads = {name: constrained(rows[slots]) for name, rows in ranges.items()}
    for name in keys.keys() & leads.keys():
        leads[name] &= ~keys[name]
    used = np.zeros(len(slots), np.int64)
    for present in (*keys.values(), *leads.values()):
        used = np.unique(2 * used + present, return_inverse=True)[1]
    divided: dict[Kind, list[I32]] = {}
    for row in np.unique(used, return_index=True)[1]:
        alike = slots[used == used[row]]
        lead = _most_selective([name for name in leads if leads[name][row]], ranges, alike)
        kind = Kind(tuple(name for name, present in keys.items() if present[row]), lead)
        divided.setdefault(kind, []).append(alike)
    return [(kind, np.concatenate(parts)) for kind, parts in divided.items()]


def _most_selective(names: list[str], ranges: Ranges, slots: I32) -> str | None:
    """The attribute whose ranges a value is in fewest of; the first in the alphabet of equals."""
    if len(names) < 2:
        return names[0] if names else None
    return min(names, key=lambda name: (_share(ranges[name][slots]), name))


def point_keys_of(ranges: Ranges, slots: I32) -> set[str]:
    """Ordinal attributes that every query which constrains them fixes to a point.

    Only if another attribute is left to be indexed: a key needs a range to lead to.
    """
    points = set()
    for name in ranges:
        rows = ranges[name][slots]
        rows = rows[constrained(rows)]
        if len(rows) and bool((rows[:, 0] == rows[:, 1]).all()):
            points.add(name)
    return points if len(points) < len(ranges) else set()


def constrained(rows: I64) -> npt.NDArray[np.bool_]:
    """Which of the ranges leave something out."""
    found: npt.NDArray[np.bool_] = (rows[:, 0] != INT64_MIN) | (rows[:, 1] != INT64_MAX)
    return found


def _share(rows: I64) -> float:
    """The part of the ranges that a value is expected to be in, by a histogram of a sample of them.

    The ranges' own ends stand for where values are: in their ranks, so that no scale of the attribute
    matters. Where a range is open it has no end.

    What decides is the histogram's mean over those values. At build an equi-width histogram has that
    exactly, since the value of a bucket is the mean of the counts in it: so the choice is as good as by
    counting, and few buckets do. (HIST-SSI is nearer to the count at a single value, but below the mean.)
    """
    if len(rows) > SAMPLE:  # at random: every so many rows would be alike where queries take turns
        rows = rows[np.random.default_rng(0).choice(len(rows), SAMPLE, replace=False)]
    lo, hi = rows.T.copy()
    ends = np.concatenate([lo[lo != INT64_MIN], hi[hi != INT64_MAX]])
    return Histogram.equi_width(lo, hi, BUCKETS, values=ends).share()
