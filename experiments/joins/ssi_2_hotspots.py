"""Hotspots tracked: what is promised of them holds after every update (Theorem 1)."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np

from limen.partitions.hotspots import Hotspots
from limen.partitions.partition import Groups
from limen.plotting.style import BLUE, GREY, ORANGE, VERMILION
from limen.reproduce import Check, Verdict

from ..exact import held, same
from ..judging import SKY
from .histories import KINDS, Present, Update, apply, history, places

CLAIM = "SSI-2"
PAPER = (
    "At all times (I1) every group of alpha n intervals or more is hot and none of less than alpha n / "
    "2, so at most 2 / alpha are; (I2) there are at most (1 + epsilon) tau + 2 / alpha groups; (I3) at "
    "most 5 intervals an update, amortised, move in or out of the scattered ones."
)
SCALES: dict[str, dict[str, Any]] = {
    "full": {
        "scale": "10 histories of 2,000 updates at 4 values of alpha and 2 of epsilon, looked at after "
        "each update",
        "updates": 2000,
        "size": 240,
        "alphas": [0.5, 0.1, 0.03125, 0.01],
        "epsilons": [0.5, 2.0],
    },
    "quick": {
        "scale": "10 histories of 200 updates at 3 values of alpha, looked at after each update",
        "updates": 200,
        "size": 60,
        "alphas": [0.5, 0.1, 0.03125],
        "epsilons": [1.0],
    },
}
PROMISED = 5
DRAWN = ("drift", 0.1)
WRONG = ("cold", "missed", "many", "groups", "scattered", "partition", "moves", "credits", "untold")


def cases(parameters: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {"name": f"{kind}, alpha={alpha:g}", "kind": kind, "alpha": alpha}
        for kind in [*KINDS, *ADVERSE]
        for alpha in parameters["alphas"]
    ]


def run(parameters: dict[str, Any], case: dict[str, Any]) -> dict[str, Any]:
    updates, size, alpha = parameters["updates"], parameters["size"], case["alpha"]
    if case["kind"] in ADVERSE:
        steps = ADVERSE[case["kind"]](updates, size, alpha)
    else:
        steps = history(case["kind"], updates, size)
    return {
        f"{epsilon:g}": followed(steps, alpha, epsilon, (case["kind"], alpha) == DRAWN)
        for epsilon in parameters["epsilons"]
    }


# -- histories made for it ------------------------------------------------------------------------


class Script:
    """A history in the making: equal intervals at places that are apart, oldest gone first."""

    def __init__(self) -> None:
        self.updates: list[Update] = []
        self.at: dict[int, deque[int]] = {}
        self.n = 0
        self._free: list[int] = []
        self._used = 0

    def size(self, place: int) -> int:
        return len(self.at.get(place, ()))

    def add(self, place: int) -> None:
        if self._free:
            one = self._free.pop()
        else:
            one, self._used = self._used, self._used + 1
        self.at.setdefault(place, deque()).append(one)
        self.n += 1
        self.updates.append(Update(one, 10 * place, 10 * place + 5, True))

    def drop(self, place: int) -> None:
        one = self.at[place].popleft()
        self._free.append(one)
        self.n -= 1
        self.updates.append(Update(one, 10 * place, 10 * place + 5, False))


def turns(updates: int, size: int, alpha: float) -> list[Update]:
    """One group after the other loses intervals until it is not hot, and gets them back until it is."""
    script = Script()
    groups = round(1 / alpha)
    for i in range(size // 2):
        script.add(i % groups)
    place = 0
    while len(script.updates) < updates:
        while script.size(place) and script.size(place) >= alpha / 2 * script.n:
            script.drop(place)
        while script.size(place) < alpha * script.n or script.n < size // 2:
            script.add(place)
        place = (place + 1) % groups
    return script.updates[:updates]


def flood(updates: int, size: int, alpha: float) -> list[Update]:
    """As many groups as can be hot; then so many others that none is, which go again."""
    script = Script()
    groups = round(1 / alpha)
    for i in range(size // 2):
        script.add(i % groups)
    while len(script.updates) < updates:
        others = 0
        while max(script.size(place) for place in range(groups)) >= alpha / 2 * script.n:
            script.add(groups + others)
            others += 1
        for i in range(others):
            script.drop(groups + i)
    return script.updates[:updates]


def drift(updates: int, size: int, alpha: float) -> list[Update]:
    """What is wanted moves along, by Zipf around the place wanted most; the oldest is given up."""
    rng = np.random.default_rng([5, size])
    script, came = Script(), deque[int]()
    ranks = np.minimum(rng.zipf(1.5, updates), 4 * size)
    for step, rank in enumerate(ranks.tolist()):
        if len(script.updates) >= updates:
            break
        wanted = 3 * step // size
        place = 4 * size + wanted + (rank - 1) // 2 * (1 if rank % 2 else -1)
        script.add(place)
        came.append(place)
        if len(came) > 2 * size:
            script.drop(came.popleft())
    return script.updates[:updates]


ADVERSE: dict[str, Callable[[int, int, float], list[Update]]] = {
    "turns": turns,
    "flood": flood,
    "drift": drift,
}


# -- after every update ---------------------------------------------------------------------------


def followed(steps: list[Update], alpha: float, epsilon: float, traced: bool) -> dict[str, Any]:
    """How often each promise was broken, and the most intervals moved for an update so far.

    `credits` are those of the proof of (I3), laid by with each update to pay for the moves: 2 alpha for
    each hot group and 1 for a scattered interval that comes, 2 for a hot one that goes.
    """
    size = 1 + max(update.id for update in steps)
    present, tracked = Present(size), Hotspots(alpha, epsilon)
    told: list[
        int
    ] = []  # groups, in the order in which the update and what follows is told of them
    tracked.subscribe(lambda changes: told.extend(changes.group.tolist()))
    wrong = dict.fromkeys(WRONG, 0)
    worst, credits, seen, hot_groups = 0.0, 0.0, 0, set[int]()
    was_hot = np.zeros(size, np.bool_)
    trace: list[dict[str, Any]] = []
    for step, update in enumerate(steps, start=1):
        told.clear()
        present.take(update)
        apply(tracked, update)
        n, tau = len(present), present.tau()
        hot, scattered, groups = tracked.hot(), tracked.scattered(), tracked.groups()
        ids = present.ids
        of = tracked.group_of(ids)
        is_hot = np.zeros(size, np.bool_)
        is_hot[ids] = np.isin(of, hot.group)
        others = present.without(is_hot).tau()
        wrong["cold"] += bool((hot.size / max(1, n) < alpha / 2).any())
        wrong["missed"] += bool((scattered.size / max(1, n) >= alpha).any())
        wrong["many"] += len(hot.group) > 2 / alpha
        wrong["groups"] += len(groups.group) > (1 + epsilon) * tau + 2 / alpha
        wrong["scattered"] += len(scattered.group) > (1 + epsilon) * others
        wrong["partition"] += places(present, groups, of) is None or len(tracked) != n
        into_hot = told[0] in hot_groups
        if update.adds:
            credits += 2 * alpha * len(hot_groups) + (not into_hot)
        else:
            credits += 2 * into_hot
        moves = tracked.moves.out + tracked.moves.into
        moved = is_hot != was_hot
        moved[update.id] = False
        seen += int(moved.sum())  # less than counted if some go there and back in an update
        worst = max(worst, moves / step)
        wrong["moves"] += moves > PROMISED * step
        wrong["credits"] += moves > credits + 1e-6
        wrong["untold"] += seen > moves
        trace.append({"n": n, "hot": _by_point(hot), "moves": moves})
        was_hot, hot_groups = is_hot, set(hot.group.tolist())
    every = max(1, len(trace) // 400)
    return {
        "updates": len(steps),
        "wrong": wrong,
        "worst": worst,
        "each": tracked.moves.each,
        "promotions": tracked.moves.promotions,
        "demotions": tracked.moves.demotions,
        "hot": sum(len(one["hot"]) > 0 for one in trace),
        "most hot": max(len(one["hot"]) for one in trace),
        "every": every,
        "trace": trace[::every] if traced else [],
    }


def _by_point(groups: Groups) -> list[list[int]]:
    return np.column_stack([groups.point, groups.size]).tolist()


# -- the verdict ----------------------------------------------------------------------------------


def verdict(
    parameters: dict[str, Any], results: list[tuple[dict[str, Any], dict[str, Any]]]
) -> Verdict:
    runs = [one for _, result in results for one in result.values()]
    updates = sum(one["updates"] for one in runs)
    promotions, demotions = (sum(one[what] for one in runs) for what in ("promotions", "demotions"))
    worst = max((one["worst"], case["name"]) for case, r in results for one in r.values())
    each = max((one["each"], case["name"]) for case, r in results for one in r.values())

    def check(says: str, paper: str, *what: str, more: str = "") -> Check:
        broken = sum(one["wrong"][name] for one in runs for name in what)
        return same(says, paper, updates, broken, "updates", more)

    checks = [
        check("Every group of alpha n or more is hot", "I1", "missed"),
        check(
            "No group of less than alpha n / 2 is hot, and at most 2 / alpha are",
            "I1",
            "cold",
            "many",
            more=f"{promotions:,} groups have become hot, {demotions:,} ceased to be",
        ),
        check("Hot and scattered groups are a stabbing partition", "", "partition"),
        check("It has at most (1 + epsilon) tau + 2 / alpha groups", "I2", "groups"),
        check(
            "The scattered groups are at most (1 + epsilon) times as many as their intervals need",
            "proof of I2",
            "scattered",
        ),
        check(
            "At most 5 intervals an update have moved, counted from the first one on",
            "at most 5 (I3)",
            "moves",
            "untold",
            more=f"{worst[0]:.3g} at most ({worst[1]})",
        ),
        check("Nor more than the credits of the proof pay for", "proof of I3", "credits"),
    ]
    return Verdict(
        checks,
        f"{held(checks)}: at most {worst[0]:.3g} intervals moved for an update at any time, "
        f"{each[0]:.3g} at the end of a history ({each[1]}).",
        "All histories begin with no interval: the proof lays credits by from then on (a build from n "
        "intervals counts as n updates). A group goes "
        "over as it is, with all its intervals, where the paper has them inserted one by one into the "
        "scattered groups; each counts as a move. An interval that comes or goes is not a move. 5 is "
        "what the proof lays by for an insertion if 2 / alpha groups are hot; no history comes near it.",
    )


# -- the figure -----------------------------------------------------------------------------------


def draw(
    parameters: dict[str, Any], results: list[tuple[dict[str, Any], dict[str, Any]]], figure: Any
) -> None:
    alpha = DRAWN[1]
    figure.set_size_inches(11, 7)
    sizes, moves = figure.subplots(2, 1, sharex=True, height_ratios=[1.6, 1])
    found = next(r for case, r in results if (case["kind"], case["alpha"]) == DRAWN)
    one = next(iter(found.values()))
    trace, every = one["trace"], one["every"]
    steps = np.array([1 + i * every for i in range(len(trace))])
    groups = sorted({point for at in trace for point, _ in at["hot"]})
    for i, point in enumerate(groups):
        mine = [dict(at["hot"]).get(point, np.nan) for at in trace]
        label = "hot groups" if i == 0 else None
        sizes.plot(steps, mine, color=[BLUE, SKY][i % 2], lw=1.2, label=label)
    n = np.array([at["n"] for at in trace])
    told = ("$\\alpha n$: hot from here on", "$\\alpha n / 2$: no more, below")
    for part, colour, label in ((1, ORANGE, told[0]), (2, VERMILION, told[1])):
        sizes.plot(steps, alpha / part * n, color=colour, lw=1.6, label=label)
    sizes.set_title(f"Sizes of the hot groups as interests drift, alpha = {alpha:g}")
    sizes.set_ylabel("intervals")
    sizes.set_ylim(0, 1.2 * sizes.get_ylim()[1])
    moved = np.array([at["moves"] for at in trace])
    moves.plot(steps, moved / steps, color=BLUE, lw=1.3, label="this history")
    most = max(o["worst"] for _, r in results for o in r.values())
    moves.axhline(most, color=GREY, lw=1, ls="--", label="the most, of all histories")
    moves.axhline(PROMISED, color=VERMILION, lw=1.3, label="promised")
    moves.set_title("Intervals moved for an update, so far")
    moves.set_xlabel("updates")
    moves.set_ylim(0, PROMISED + 1.8)
    for axes in (sizes, moves):
        axes.legend(fontsize=9, loc="upper right", ncols=3)
