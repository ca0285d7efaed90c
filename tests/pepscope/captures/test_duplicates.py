"""Packets that a mirror port or `-i any` gives twice are duplicates, with an IP identification and without."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from pepscope.captures.capture import open_capture
from tests.captures import containers, layers
from tests.captures.containers import Frame
from tests.captures.scenarios import SCENARIOS

if TYPE_CHECKING:
    from pathlib import Path

    from pepscope.captures.connections import Connection

WRAPS = {"ethernet": (containers.LINK_ETHERNET, layers.ethernet), "any": (276, layers.linux_sll2)}


def connection_of(path: Path, frames: list[Frame], link_type: int) -> Connection:
    path.write_bytes(containers.write_pcap(frames, link_type))
    (connection,) = open_capture(str(path)).connections
    return connection


@pytest.mark.parametrize("wrap", WRAPS)
@pytest.mark.parametrize("numbered", [True, False])
@pytest.mark.parametrize("name", ["plain_download", "loss_before_the_capture", "ipv6"])
def test_packets_given_twice_are_no_retransmissions(name: str, numbered: bool, wrap: str, tmp_path: Path) -> None:
    link_type, wrapped = WRAPS[wrap]
    segments = SCENARIOS[name]().segments
    if not numbered:
        segments = [replace(segment, ip_id=0) for segment in segments]
    once = [Frame(s.time_ns, wrapped(s.packet())) for s in segments]
    copies = [replace(frame, time_ns=frame.time_ns + 3_000) for frame in once]
    twice = sorted([*once, *copies], key=lambda frame: frame.time_ns)
    single = connection_of(tmp_path / "once.pcap", once, link_type)
    doubled = connection_of(tmp_path / "twice.pcap", twice, link_type)
    for expected, found in ((single.up, doubled.up), (single.down, doubled.down)):
        assert found.packets == 2 * expected.packets
        assert found.duplicate_packets >= expected.data_packets + 2, "data, SYN and FIN"
        assert (found.retransmitted_packets, found.reordered_packets) == (
            expected.retransmitted_packets,
            expected.reordered_packets,
        )
        assert found.stream_bytes == expected.stream_bytes
        assert found.round_trip_time_samples == expected.round_trip_time_samples
        assert found.round_trip_time_min_ns == expected.round_trip_time_min_ns
