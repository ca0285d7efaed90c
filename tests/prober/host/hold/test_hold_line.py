"""Lines in which segments wait, and the netlink messages that name them: no network, no right needed."""

from __future__ import annotations

import os
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prober.host.hold.hold_line import HoldLine
from prober.host.hold.nfqueue import packet_numbers


class FakeHolding:
    """Segments by number; what is let go is noted with its time."""

    def __init__(self) -> None:
        self.now_ns = 0
        self.coming: list[int] = []
        self.gone: list[tuple[int, int]] = []
        self.refused: set[int] = set()

    def fileno(self) -> int:
        return 0

    def receive(self) -> list[int]:
        came, self.coming = self.coming, []
        return came

    def release(self, items: list[int]) -> int:
        self.gone += [(self.now_ns, item) for item in items]
        return sum(item in self.refused for item in items)

    def dropped_packets(self) -> int:
        return 0


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 40_000_000)), max_size=30), st.integers(1, 100_000_000))
def test_no_segment_leaves_before_its_time_or_before_one_that_came_earlier(
    steps: list[tuple[int, int]], delay_ns: int
) -> None:
    holding = FakeHolding()
    line = HoldLine(holding, delay_ns / 1e9, clock_ns=lambda: holding.now_ns)
    came: list[int] = []
    for count, passing_ns in [*steps, (0, delay_ns), (0, delay_ns)]:
        holding.coming = list(range(len(came), len(came) + count))
        came += [holding.now_ns] * count
        line.take()
        line.let_go()
        holding.now_ns += passing_ns
    line.let_go()
    line.stop()
    assert [item for _, item in holding.gone] == list(range(len(came)))
    late = [gone_ns - came[item] - delay_ns for gone_ns, item in holding.gone]
    assert min(late, default=0) >= 0
    report = line.report("fake")
    assert (report.held, report.released) == (len(came), len(came))
    assert report.largest_error_s == pytest.approx(max(late, default=0) / 1e9)


def test_segments_that_cannot_be_let_go_are_counted() -> None:
    holding = FakeHolding()
    holding.coming, holding.refused = [1, 2, 3], {2}
    line = HoldLine(holding, 0.001, clock_ns=lambda: holding.now_ns)
    line.take()
    holding.now_ns = 5_000_000
    line.let_go()
    line.stop()
    report = line.report("fake")
    assert (report.held, report.released, report.dropped) == (3, 2, 1)


class BrokenHolding(FakeHolding):
    """The kernel takes it away."""

    def __init__(self, descriptor: int) -> None:
        super().__init__()
        self._descriptor = descriptor

    def fileno(self) -> int:
        return self._descriptor

    def receive(self) -> list[int]:
        raise OSError(9, "Bad file descriptor")


def test_a_failing_hold_line_reports_why_and_releases_its_users() -> None:
    reader, writer = os.pipe()
    try:
        line = HoldLine(BrokenHolding(reader), 10.0)
        line.start()
        os.write(writer, b"segment")
        line.drain()
        line.stop()
    finally:
        os.close(reader)
        os.close(writer)
    assert line.failure == "the hold on ACKs broke off: Bad file descriptor"


def test_packet_numbers_are_read_among_other_messages() -> None:
    attribute = struct.pack("=HH", 11, 1) + struct.pack(">IHB", 77, 0x0800, 3) + b"\0"
    body = struct.pack("=BBH", 2, 0, 0) + struct.pack("=HHI", 8, 9, 5) + attribute
    packet = struct.pack("=IHHII", 16 + len(body), 0x300, 0, 0, 0) + body
    error = struct.pack("=IHHII", 20, 2, 0, 0, 0) + struct.pack("=i", 0)
    assert packet_numbers(error + packet + packet) == [77, 77]


@given(st.binary(max_size=200))
def test_no_netlink_bytes_break_the_reader(data: bytes) -> None:
    header = struct.pack("=IHHII", 16 + len(data), 0x300, 0, 0, 0)
    assert len(packet_numbers(header + data)) <= 1
    packet_numbers(data)
