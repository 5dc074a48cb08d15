"""The papers' claims as experiments: `limen reproduce` runs them, keeps the results, writes a report.

An experiment is a module of the experiments folder (`claim.py` says what it defines) and needs only
`Check` and `Verdict` of what is here.
"""

from limen.reproduce.claim import Check, Verdict

__all__ = ["Check", "Verdict"]
