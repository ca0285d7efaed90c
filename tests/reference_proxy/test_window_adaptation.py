from __future__ import annotations

import socket
from collections.abc import Iterator
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reference_proxy.configuration import Adaptation
from reference_proxy.errors import ConfigurationError, MalformedError
from reference_proxy.relay.buffers import Buffer
from reference_proxy.relay.queue_reports import REPORT_BYTES, QueueReport
from reference_proxy.relay.window_adaptation import Gate, GatedRelease, make_law

number = st.integers(0, 2**32 - 1)


@settings(deadline=None)
@given(st.builds(QueueReport, number, number, number, number, number))
def test_reports_come_back_as_they_went(report: QueueReport) -> None:
    assert len(report.encode()) == REPORT_BYTES
    assert QueueReport.decode(report.encode()) == report


def test_a_report_is_five_big_endian_numbers() -> None:
    assert QueueReport(1, 2, 3, 4, 258).encode().hex() == "0000000100000002000000030000000400000102"


@settings(deadline=None)
@given(st.binary(max_size=60).filter(lambda data: len(data) != REPORT_BYTES))
def test_other_lengths_are_refused(data: bytes) -> None:
    with pytest.raises(MalformedError, match="20 bytes"):
        QueueReport.decode(data)


def test_steps_may_wrap() -> None:
    assert QueueReport(0, 0, 0, 0, 0).is_after(2**32 - 1)
    assert not QueueReport(2**32 - 1, 0, 0, 0, 0).is_after(0)
    assert not QueueReport(5, 0, 0, 0, 0).is_after(5)


def test_the_law_is_the_one_of_the_simulator() -> None:
    """As `crates/tcp` derives it: an empty queue asks for q0 and two steps of service, 87.5 % of it at once."""
    served = 1160 * 0.025
    expected = served + 0.875 * (100 + 2 * served) + 0.5
    assert make_law(Adaptation()).step(0.0, 1160.0) == pytest.approx(expected / 13)


def test_parameters_that_break_the_guideline_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="approach_per_s x step_s"):
        make_law(Adaptation(approach_per_s=40.0))


def report(step: int, queued: int = 100) -> QueueReport:
    return QueueReport(step, queued, 29, 0, 29)


def test_nothing_leaves_before_the_first_report_nor_after_the_quota() -> None:
    gate = Gate(Adaptation(spreads_packets=False))
    assert gate.allowed_packets(0.0) == 0
    assert gate.handle_report(report(0, queued=0), 1.0)
    allowed = gate.allowed_packets(1.0)
    assert allowed == int(gate.quota_packets) > 0
    gate.spend(allowed)
    assert gate.allowed_packets(1.01) == 0
    assert not gate.handle_report(report(0, queued=0), 1.02), "the same report twice is one step"


def test_spread_packets_come_one_after_another() -> None:
    gate = Gate(Adaptation(step_s=0.025))
    gate.handle_report(report(0, queued=0), 0.0)
    left_at = []
    now = 0.0
    while now < 0.025:
        if gate.allowed_packets(now):
            gate.spend(1)
            left_at.append(now)
        now += 0.0001
    gaps = [later - earlier for earlier, later in pairwise(left_at)]
    assert len(left_at) == int(gate.quota_packets)
    assert max(gaps) < 2 * min(gaps)


def test_silence_opens_the_gate_and_a_report_closes_it() -> None:
    gate = Gate(Adaptation(silence_s=1.0))
    gate.notice_silence(0.0)
    gate.notice_silence(0.9)
    assert not gate.is_open
    gate.notice_silence(1.1)
    assert gate.is_open
    gate.handle_report(report(7), 2.0)
    assert not gate.is_open


@pytest.fixture
def connected() -> Iterator[tuple[socket.socket, socket.socket]]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        near = socket.create_connection(listener.getsockname())
        far, _ = listener.accept()
    with near, far:
        yield near, far


def test_unacknowledged_bytes_are_held_at_the_window(connected: tuple[socket.socket, socket.socket]) -> None:
    """A peer that reads nothing gets a window's worth, however many reports ask for more."""
    near, _ = connected
    near.setblocking(False)
    settings = Adaptation(spreads_packets=False, frames_per_packet=1.0, reference_frames=30.0, buffer_frames=60.0)
    gate = Gate(settings)
    gated = GatedRelease(gate)
    buffer = Buffer(64 << 20)
    buffer.put(bytes(64 << 20))
    handed = 0
    for step in range(400):
        gate.handle_report(QueueReport(step, 0, 4, 0, 4), float(step))
        while (may := gated.releasable(buffer, near, float(step))) > 0:
            try:
                count = near.send(buffer.head(may))
            except BlockingIOError:
                break
            handed += count
            buffer.drop(count)
            gated.gone(count)
    packet_bytes = near.getsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG)
    # What the peer's kernel takes in is acknowledged; beyond that, no more than the window.
    received = connected[1].getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF)
    assert handed <= received + (gate.window_packets + 1) * packet_bytes
    assert gated.releasable(buffer, near, 400.0) == 0
