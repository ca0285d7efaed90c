"""Active experiments with as little time as each rule needs, and what they find with and without a split."""

from __future__ import annotations

from typing import Any

from pepscope.captures.packets import Direction
from prober.experiments.dead_port import DeadPort
from prober.experiments.delayed_ack import DelayedAck
from prober.experiments.handshake_rtt import HandshakeRtt
from prober.experiments.slow_reader import SlowReader
from prober.experiments.ttl_syn import TtlSyn
from prober.measurement.experiment import Experiment
from prober.protocol.application import Application

#: As little as each rule needs.
HURRIED: dict[str, dict[str, Any]] = {
    "ttl-syn": {"rounds": 4, "most_hops": 4, "timeout_s": 0.6},
    "dead-port": {"attempts": 1, "connect_timeout_s": 1.2, "take_s": 1.0},
    "handshake-rtt": {"rounds": 10, "pause_s": 0.01},
    "delayed-ack": {"size_bytes": 60_000, "least_delay_s": 0.4},
    "slow-reader": {"fill_s": 1.0, "pause_s": 3.0},
}

INTACT = {
    "ttl-syn": "handshake-answered-at-the-end",
    "dead-port": "dead-port-silent",
    "handshake-rtt": "handshake-as-long-as-path",
    "delayed-ack": "acks-only-from-receiver",
    "slow-reader": "no-more-taken-than-receiver-holds",
}
SPLIT = {
    "ttl-syn": ["handshake-answered-nearer"],
    "dead-port": ["dead-port-took-data"],
    "handshake-rtt": ["handshake-shorter-than-path"],
    "delayed-ack": ["acks-not-from-receiver", "acks-sooner-than-path"],
    "slow-reader": ["more-taken-than-receiver-holds"],
}
BOTH_WAYS: tuple[tuple[Experiment[Any, Any], Direction | None], ...] = (
    (TtlSyn(), None),
    (DeadPort(), None),
    (HandshakeRtt(), None),
    (DelayedAck(), Direction.DOWN),
    (DelayedAck(), Direction.UP),
    (SlowReader(), Direction.DOWN),
)
NAMES = [
    f"{experiment.name}-{direction.name.lower() if direction is not None else 'both'}"
    for experiment, direction in BOTH_WAYS
]

UPLOADS = [Application.HTTP_DATA, Application.HTTPS, Application.TCP]
