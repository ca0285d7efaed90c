"""Parameters of the window-adaptation proxy: Ren and Lin's guideline (equations 42, 43 and the end of section 5.2).

The proxy holds a Node-B's queue at q0 radio frames by a control law with a step Ts, an approach rate delta and a
switching rate epsilon. Once the law slides, the queue stays within eps Ts / (1 - delta Ts) of q0 (equation 42, for a
system without bounds and with disturbances within their known range).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from reference_sim.models.domain import OutsideDomainError, computable, require_positive


@dataclass(frozen=True, slots=True)
class Constraint:
    """One line of the guideline, and how a choice stands to it."""

    name: str
    #: The inequality in the paper's symbols.
    rule: str
    #: The side that is chosen, and what it must stay below.
    value: float
    bound: float
    unit: str
    #: What happens where it is broken.
    consequence: str

    @property
    def holds(self) -> bool:
        """Whether the choice keeps to it."""
        return self.value < self.bound

    @property
    def sentence(self) -> str:
        """The finding in words, with the numbers."""
        if self.holds:
            return f"{self.rule} holds: {self.value:.4g} < {self.bound:.4g} {self.unit}".rstrip()
        return f"{self.rule} is broken: {self.value:.4g} is not below {self.bound:.4g} {self.unit}".rstrip() + (
            f"; {self.consequence}"
        )


@dataclass(frozen=True, slots=True)
class Guideline:
    """The guideline's result for one choice."""

    constraints: tuple[Constraint, ...]
    #: How far the queue strays from q0 while the law slides; infinite where delta Ts >= 1.
    deviation_frames: float
    #: delta Ts: the nearer to 1, the faster an error is taken back (each step leaves 1 - delta Ts of it).
    approach: float
    #: Steps until an error of q0 has shrunk to that deviation or to one frame, by the reaching law (24) alone.
    reaching_steps: int | None

    @property
    def broken(self) -> tuple[Constraint, ...]:
        """The constraints that do not hold, in the paper's order."""
        return tuple(constraint for constraint in self.constraints if not constraint.holds)

    @property
    def holds(self) -> bool:
        """Whether all of them do."""
        return not self.broken


@computable
def check(
    step_s: float,
    approach_per_s: float,
    switching_frames_s: float,
    *,
    reference_frames: float,
    buffer_frames: float,
    mean_rate_frames_s: float,
    variation_period_s: float | None = None,
) -> Guideline:
    """Hold Ts, delta and epsilon against the guideline; what is broken is in the result.

    `mean_rate_frames_s` is what the link serves on average, `variation_period_s` the shortest period of its variation
    (left out where it is not known, and so is its constraint).
    Raises OutsideDomainError for what is no choice at all: a value not above 0 or infinite, or a reference outside the
    buffer.
    """
    given = {
        "step_s": step_s,
        "approach_per_s": approach_per_s,
        "switching_frames_s": switching_frames_s,
        "reference_frames": reference_frames,
        "buffer_frames": buffer_frames,
        "mean_rate_frames_s": mean_rate_frames_s,
    }
    if variation_period_s is not None:
        given["variation_period_s"] = variation_period_s
    for name, value in given.items():
        require_positive(name, value)
    if reference_frames >= buffer_frames:
        raise OutsideDomainError(
            f"reference_frames must be below buffer_frames, which is {buffer_frames:g}, got {reference_frames:g}"
        )
    approach = step_s * approach_per_s
    deviation = switching_frames_s * step_s / (1.0 - approach) if approach < 1.0 else math.inf
    room = min(reference_frames, buffer_frames - reference_frames)
    constraints = [
        Constraint("approach", "delta Ts < 1", approach, 1.0, "", "the law overshoots instead of approaching q0"),
        Constraint(
            "deviation",
            "eps Ts / (1 - delta Ts) < min(q0, Bmax - q0)",
            deviation,
            room,
            "frames",
            "the queue runs empty or over even where the law slides",
        ),
        Constraint(
            "drain",
            "Ts < Bmax / b",
            step_s,
            buffer_frames / mean_rate_frames_s,
            "s",
            "a full queue drains before the next report, and the law swings between empty and full",
        ),
    ]
    if variation_period_s is not None:
        constraints.append(
            Constraint(
                "sampling",
                "Ts < Tb / 2",
                step_s,
                variation_period_s / 2.0,
                "s",
                "the reports miss changes of the rate (Nyquist)",
            )
        )
    return Guideline(tuple(constraints), deviation, approach, _reaching_steps(reference_frames, deviation, approach))


def _reaching_steps(error_frames: float, deviation_frames: float, approach: float) -> int | None:
    if approach >= 1.0:
        return None
    goal = max(1.0, deviation_frames)
    if error_frames <= goal:
        return 0
    return math.ceil(math.log(goal / error_frames) / math.log1p(-approach))
