"""A method that is asked about one connection."""

from __future__ import annotations

from detector.method import Method, Observation
from pepscope.results.verdicts import Evidence


def alone(method: Method, observation: Observation) -> Evidence:
    """What it finds, which must be something."""
    found = method.alone(observation)
    assert found is not None
    return found
