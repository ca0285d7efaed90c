"""The registry of experiments: one file each, one line here."""

from __future__ import annotations

from prober.experiment import Experiment
from prober.experiments.abort import Abort
from prober.experiments.cache import Cache
from prober.experiments.gain import Gain
from prober.experiments.odd_requests import OddRequests
from prober.experiments.options import Options
from prober.experiments.recompress import Recompress
from prober.experiments.transfers import Transfers
from prober.experiments.window import Window

#: In the order in which a plan runs them.
EXPERIMENTS: tuple[Experiment, ...] = (
    Transfers(),
    Options(),
    OddRequests(),
    Cache(),
    Recompress(),
    Abort(),
    Window(),
    Gain(),
)


def experiment(name: str) -> Experiment | None:
    """The experiment of that name; `None` where there is none."""
    return next((known for known in EXPERIMENTS if known.name == name), None)
