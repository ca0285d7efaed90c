"""The registry of experiments: one file each, one line here."""

from __future__ import annotations

from prober.experiment import Experiment
from prober.experiments.abort import Abort
from prober.experiments.cache import Cache
from prober.experiments.dead_port import DeadPort
from prober.experiments.delayed_ack import DelayedAck
from prober.experiments.gain import Gain
from prober.experiments.handshake_rtt import HandshakeRtt
from prober.experiments.odd_requests import OddRequests
from prober.experiments.options import Options
from prober.experiments.recompress import Recompress
from prober.experiments.slow_reader import SlowReader
from prober.experiments.transfers import Transfers
from prober.experiments.ttl_syn import TtlSyn
from prober.experiments.uplink_buffer import UplinkBuffer
from prober.experiments.window import Window

#: In the order in which a plan runs them.
EXPERIMENTS: tuple[Experiment, ...] = (
    Transfers(),
    DelayedAck(),
    SlowReader(),
    TtlSyn(),
    DeadPort(),
    HandshakeRtt(),
    Options(),
    OddRequests(),
    Cache(),
    Recompress(),
    Abort(),
    Window(),
    UplinkBuffer(),
    Gain(),
)


def experiment(name: str) -> Experiment | None:
    """The experiment of that name; `None` where there is none."""
    return next((known for known in EXPERIMENTS if known.name == name), None)
