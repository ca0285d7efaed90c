"""The registry of experiments: one file each, one line here."""

from __future__ import annotations

from prober.experiment import Experiment

#: In the order in which a plan runs them.
EXPERIMENTS: tuple[Experiment, ...] = ()


def experiment(name: str) -> Experiment | None:
    """The experiment of that name; `None` where there is none."""
    return next((known for known in EXPERIMENTS if known.name == name), None)
