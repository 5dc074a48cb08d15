"""Runs claims case by case. What a case gives is on disk before the next begins.

An exception in an experiment is a fault of ours, not a finding: it becomes an `ExperimentError`, which is
handed on in the place of the claim's outcome, and the other claims are run.
"""

from __future__ import annotations

import re
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from limen.reproduce.claim import (
    Case,
    Claim,
    Experiment,
    Parameters,
    Results,
    Verdict,
    plain,
)
from limen.reproduce.machine import machine
from limen.reproduce.store import Kept, Measured, Store


class ExperimentError(Exception):
    """An experiment that does not work; says which, where and why."""


class Step(NamedTuple):
    """A case that is about to be run; without a name, a claim of which some cases are kept."""

    claim: str
    name: str
    number: int  # of the case in its claim, from 1 on; or how many are kept
    cases: int  # of the claim
    done: int  # cases of all claims, the kept ones too
    total: int


@dataclass(frozen=True)
class Plan:
    """A claim at a scale, ready to be run."""

    claim: Claim
    experiment: Experiment
    scale: str
    parameters: Parameters
    cases: list[Case]
    kept: Kept

    def measured(self) -> list[Measured | None]:
        """What is kept, None for a case that is not."""
        return [self.kept.get(number, case) for number, case in enumerate(self.cases)]


@dataclass(frozen=True)
class Outcome:
    """A claim of which all cases are measured, and the verdict."""

    plan: Plan
    measured: list[Measured]
    verdict: Verdict

    @property
    def claim(self) -> Claim:
        return self.plan.claim

    @property
    def results(self) -> Results:
        return pairs(self.plan, self.measured)

    @property
    def scale(self) -> str:
        return f"{self.plan.scale}: {self.plan.parameters['scale']}"

    @property
    def seconds(self) -> float:
        return sum(one.seconds for one in self.measured)


def pairs(plan: Plan, measured: Sequence[Measured]) -> Results:
    return [(case, one.result) for case, one in zip(plan.cases, measured, strict=True)]


def plan(claim: Claim, scale: str, store: Store) -> Plan:
    with blamed(claim, "cannot be loaded"):
        experiment = claim.load()
    parameters = experiment.scales[scale]
    with blamed(claim, "cases"):
        cases = plain(experiment.cases(parameters), "what cases() returns")
        if not isinstance(cases, list) or not cases:
            raise TypeError(f"cases() returned {cases!r:.40}, not a list of dicts")
        for case in cases:
            if not isinstance(case, dict) or not isinstance(case.get("name"), str):
                raise TypeError(f'the case {case!r:.40} is not a dict with a text "name"')
    kept = store.kept(scale, claim, parameters)
    return Plan(claim, experiment, scale, parameters, cases, kept)


def run(
    claims: Sequence[Claim],
    scale: str,
    store: Store,
    progress: Callable[[Step], None],
    fresh: bool = False,
) -> Iterator[Outcome | ExperimentError]:
    """An outcome a claim, or why there is none, in the order of the claims."""
    planned: list[Plan | ExperimentError] = []
    for claim in claims:
        try:
            planned.append(plan(claim, scale, store))
        except ExperimentError as failed:
            planned.append(failed)
    if fresh:  # all before the first begins: when interrupted, the run can go on without `fresh`
        for one in planned:
            if isinstance(one, Plan):
                one.kept.forget()
    done, total = 0, sum(len(one.cases) for one in planned if isinstance(one, Plan))
    for one in planned:
        if isinstance(one, ExperimentError):
            yield one
            continue
        try:
            yield _run(one, progress, done, total)
        except ExperimentError as failed:
            yield failed
        done += len(one.cases)


def _run(plan: Plan, progress: Callable[[Step], None], done: int, total: int) -> Outcome:
    found, claim, cases = plan.measured(), plan.claim, len(plan.cases)
    if kept := cases - found.count(None):
        progress(Step(claim.id, "", kept, cases, done + kept, total))
    done += kept
    measured: list[Measured] = []
    for number, (case, known) in enumerate(zip(plan.cases, found, strict=True)):
        if known is None:
            progress(Step(claim.id, case["name"], number + 1, cases, done, total))
            with blamed(claim, f'case "{case["name"]}"'):
                known = _measure(plan, case)
            plan.kept.put(number, case, known)
            done += 1
        measured.append(known)
    plan.kept.forget_others()
    return judged(plan, measured)


def _measure(plan: Plan, case: Case) -> Measured:
    started = time.perf_counter()
    result = plan.experiment.run(plan.parameters, case)
    seconds = time.perf_counter() - started
    if not isinstance(result, dict):
        raise TypeError(f"run() returned {result!r:.40}, not a dict")
    at = datetime.now(UTC).isoformat(timespec="seconds")
    return Measured(plain(result, "the result"), seconds, at, machine())


def judged(plan: Plan, measured: list[Measured]) -> Outcome:
    with blamed(plan.claim, "verdict"):
        verdict = plan.experiment.verdict(plan.parameters, pairs(plan, measured))
        if not isinstance(verdict, Verdict):
            raise TypeError(f"verdict() returned {verdict!r:.40}, not a Verdict")
    return Outcome(plan, measured, verdict)


def kept(claims: Sequence[Claim], scale: str, store: Store) -> Iterator[Outcome | ExperimentError]:
    """Outcomes of the claims whose cases are all kept; nothing is measured."""
    for claim in claims:
        if not store.has(scale, claim.id):
            continue
        try:
            planned = plan(claim, scale, store)
            measured = [one for one in planned.measured() if one is not None]
            if len(measured) == len(planned.cases):
                yield judged(planned, measured)
        except ExperimentError as failed:
            yield failed


@contextmanager
def blamed(claim: Claim, where: str) -> Iterator[None]:
    """An exception within is the experiment's: say of which, and in which of its lines."""
    try:
        yield
    except Exception as error:
        told = re.sub(r"\s+", " ", str(error)).strip()
        reason = f"{type(error).__name__}: {told:.400}" if told else type(error).__name__
        home = claim.path.parents[1]
        for frame in reversed(traceback.extract_tb(error.__traceback__)):
            if Path(frame.filename).is_relative_to(home):
                reason += f" ({Path(frame.filename).relative_to(home)}, line {frame.lineno})"
                break
        raise ExperimentError(f"{claim.id} {where}: {reason}") from error
