"""Clouds of clock constraints as connections make them: queues, drift, steps, lost records, coarse timestamps."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

from pepscope.results.verdicts import FloatArray
from tests.detector.clocks.reference_separation import Cloud

SECOND_NS = 1e9


@dataclass(frozen=True)
class Shape:
    """What one connection's two clouds look like; times in ns."""

    seed: int
    points: tuple[int, int]  # lower, upper
    duration_ns: float
    gap_ns: float
    queue_ns: float
    drift: float
    step_ns: float
    tick_ns: float
    wrong_share: float


shapes = st.builds(
    Shape,
    seed=st.integers(0, 2**32 - 1),
    points=st.tuples(st.integers(0, 400), st.integers(0, 400)),
    duration_ns=st.sampled_from([1.0, 1e6, 1e9, 6e10, 3e12]),
    gap_ns=st.sampled_from([-2e9, -1e6, 0.0, 1e6, 1.2e8]),
    queue_ns=st.sampled_from([0.0, 1e3, 5e7, 4e8]),
    drift=st.sampled_from([0.0, 2e-5, -4.9e-4, 2e-3]),
    step_ns=st.sampled_from([0.0, 6e8, -6e8]),
    tick_ns=st.sampled_from([1.0, 1e3, 1e6]),
    wrong_share=st.sampled_from([0.0, 0.01]),
)


def clouds(shape: Shape) -> tuple[Cloud, Cloud]:
    """Lower and upper bounds."""
    random = np.random.default_rng(shape.seed)
    lower, upper = (_x(random, count, shape) for count in shape.points)
    below = -shape.gap_ns / 2 - shape.queue_ns * random.random(len(lower)) ** 2
    above = shape.gap_ns / 2 + shape.queue_ns * random.random(len(upper)) ** 2
    return _cloud(random, lower, below, shape, 1.0), _cloud(random, upper, above, shape, -1.0)


def _x(random: np.random.Generator, count: int, shape: Shape) -> FloatArray:
    # Data and acknowledgements stand one after the other in the columns, each in order of time.
    x = random.random(count) * shape.duration_ns
    half = count // 2
    return np.floor(np.concatenate([np.sort(x[:half]), np.sort(x[half:])]) / shape.tick_ns) * shape.tick_ns


def _cloud(random: np.random.Generator, x: FloatArray, y: FloatArray, shape: Shape, inward: float) -> Cloud:
    clock = shape.drift * x + np.where(x > shape.duration_ns / 2, shape.step_ns, 0.0)
    wrong = np.where(random.random(len(x)) < shape.wrong_share, inward * SECOND_NS * random.random(len(x)), 0.0)
    return Cloud(x, np.floor((y + clock + wrong) / shape.tick_ns) * shape.tick_ns)
