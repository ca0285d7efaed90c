"""Figures of the flows of many connections as arrays."""

from __future__ import annotations

from detector.streams.summaries import Summaries
from pepscope.results.verdicts import FloatArray

#: Fields that are true or not.
_TRUTHS = frozenset({"sack_permitted", "timestamps", "options_captured"})


class FlowFigures:
    """Fields of `FlowSummary`, each an array with a row a direction and a column a connection; NaN where it is None.

    Counts and sequence numbers are exact, being below 2^53.
    """

    def __init__(self, summaries: Summaries, *names: str) -> None:
        self._of = {name: summaries.truths(name) if name in _TRUTHS else summaries.figures(name) for name in names}

    def __getitem__(self, name: str) -> FloatArray:
        return self._of[name]
