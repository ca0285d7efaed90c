"""A tunnel that ends on the mobile: its capture has datagrams, and the task's connections are found in them."""

from __future__ import annotations

from pathlib import Path

import pytest

from pepscope.captures.packets import Direction
from pepscope.results.verdicts import Verdict
from prober.audit.captured_flows import CapturedTask, judge_captures
from prober.client.transfer import Flow
from prober.measurement.task import Measurement, Observation, Status, Task
from prober.protocol.application import Application
from tests.captures.udp_leg import SERVER, Transfer, capture_bytes


def task(*flows: Flow) -> Observation:
    planned = Task("transfers", 1, Application.HTTP_DATA, Direction.DOWN)
    return Observation(planned, Status.DONE, "", 0, 1.0, Measurement(flows=flows))


@pytest.fixture
def captures(tmp_path: Path) -> tuple[Path, Path]:
    transfer = Transfer()
    mobile, server = tmp_path / "mobile.pcap", tmp_path / "server.pcap"
    mobile.write_bytes(capture_bytes(transfer.udp()))
    server.write_bytes(capture_bytes(transfer.tcp()))
    return mobile, server


def test_the_connection_that_travelled_in_datagrams_is_the_tasks(captures: tuple[Path, Path]) -> None:
    judged = judge_captures(CapturedTask(task(Flow(45_678, SERVER.port)), *captures), series=False)
    (connection,) = judged.connections
    assert connection.pair.verdict in (Verdict.SPLIT_TCP, Verdict.TCP_PROXY)
    assert {name.transport for name in connection.pair.vantages} == {"tcp", "udp"}


def test_connections_to_other_ports_and_of_other_number_are_not(captures: tuple[Path, Path]) -> None:
    for flows in ((Flow(45_678, SERVER.port + 1),), (Flow(45_678, SERVER.port), Flow(45_679, SERVER.port))):
        judged = judge_captures(CapturedTask(task(*flows), *captures), series=False)
        assert judged.connections == ()
        assert any("is not in the captures" in warning for warning in judged.warnings)
