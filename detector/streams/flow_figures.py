"""Figures of the flows of many connections as arrays."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter

import numpy as np

from detector.pair import Vantage
from pepscope.captures.packets import Direction
from pepscope.results.verdicts import FloatArray


class FlowFigures:
    """Fields of `FlowSummary`, each an array with a row a direction and a column a connection; NaN where it is None.

    Counts and sequence numbers are exact, being below 2^53.
    """

    def __init__(self, vantages: Sequence[Vantage], *names: str) -> None:
        fields = attrgetter(*names)
        rows = [
            [fields(vantage.connection.up) for vantage in vantages],
            [fields(vantage.connection.down) for vantage in vantages],
        ]
        figures = np.array(rows, np.float64).reshape(len(Direction), len(vantages), len(names))
        self._of = {name: figures[:, :, place] for place, name in enumerate(names)}

    def __getitem__(self, name: str) -> FloatArray:
        return self._of[name]
