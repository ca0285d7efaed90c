"""Active experiments on real kernels without a split: each says that the connection is end to end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pepscope.captures.packets import Direction
from prober.experiments.dead_port import DeadPort
from prober.experiments.delayed_ack import DelayedAck
from prober.experiments.handshake_rtt import HandshakeRtt
from prober.experiments.slow_reader import SlowReader
from prober.measurement.experiment import Experiment
from prober.protocol.application import Application
from tests.prober.experiments.live_path.live import CELL_S, WIRED_S, Live, live
from tests.prober.experiments.live_path.short_options import BOTH_WAYS, HURRIED, INTACT, NAMES, UPLOADS

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(("experiment", "direction"), BOTH_WAYS, ids=NAMES)
def test_an_end_to_end_connection(path: Live, experiment: Experiment[Any, Any], direction: Direction | None) -> None:
    made = path.measure_until_found(experiment, direction=direction, **HURRIED[experiment.name])
    assert made.findings == [INTACT[experiment.name]], made


@pytest.mark.parametrize("application", [Application.FTP, Application.HTTPS])
@pytest.mark.parametrize("experiment", [DelayedAck(), SlowReader(), DeadPort(), HandshakeRtt()], ids=lambda e: e.name)
def test_every_application_end_to_end(path: Live, experiment: Experiment[Any, Any], application: Application) -> None:
    direction = Direction.DOWN if experiment.name in ("delayed-ack", "slow-reader") else None
    made = path.measure_until_found(experiment, application, direction, **HURRIED[experiment.name])
    assert made.findings == [INTACT[experiment.name]], made


@pytest.mark.parametrize("application", UPLOADS)
def test_an_upload_whose_reader_pauses(path: Live, application: Application) -> None:
    made = path.measure(SlowReader(), application, Direction.UP, **HURRIED["slow-reader"])
    assert made.findings == ["no-more-taken-than-receiver-holds"], made


def test_captures_and_kernels_agree_on_held_acknowledgements(path: Live) -> None:
    made = path.measure(DelayedAck(), direction=Direction.UP, captured=True, **HURRIED["delayed-ack"])
    (evidence,) = made.evidence
    assert (evidence.method, evidence.finding) == ("delayed_ack", "acks-only-from-receiver")
    assert evidence.numbers["round_trip_min_s"] >= made.measurement.ack_delay_s - 0.002
    assert evidence.numbers["path_round_trip_s"] == pytest.approx(2 * (WIRED_S + CELL_S), rel=0.5)


def test_a_slow_link_carries_an_echo_as_fast_as_a_handshake(tmp_path: Path) -> None:
    """At 20 kbit/s each byte more takes 0.4 ms more, each way."""
    with live(tmp_path, cell_s=0.01, cell_rate_bit_s=20_000) as slow:
        made = slow.measure_until_found(HandshakeRtt(), **HURRIED["handshake-rtt"])
    assert made.findings == ["handshake-as-long-as-path"], made


def test_losses_and_timeouts_that_strike_before_acknowledgements_do_fool_none(tmp_path: Path) -> None:
    """The mobile's first retransmission timeout, from a handshake of 0.2 s, is far below T: it sends again in vain."""
    with live(tmp_path, cell_s=0.08, loss=0.02) as lossy:
        held = lossy.measure(DelayedAck(), direction=Direction.UP, captured=True, **HURRIED["delayed-ack"])
        stopped = lossy.measure(SlowReader(), direction=Direction.DOWN, **HURRIED["slow-reader"])
    assert held.measurement.ack_delay_s >= 0.7
    assert held.findings == ["acks-only-from-receiver"], held
    assert stopped.findings == ["no-more-taken-than-receiver-holds"], stopped
