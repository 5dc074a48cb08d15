"""One process: a version of the query set and a batch of events give the results."""

from limen.engine.matcher import Matched, Matcher, QuarantineWarning, match

__all__ = ["Matched", "Matcher", "QuarantineWarning", "match"]
