"""What taps do to captures of real kernels; none of this needs root."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import dpkt
import pytest

from pepscope.errors import CaptureError, ScenarioError
from reference_sim.live_path.coalescing import Coalescer
from reference_sim.live_path.taps import Record, apply_tap, live_taps
from reference_sim.scenario import Scenario

START_NS = 1_700_000_000_000_000_000
MILLISECOND_NS = 1_000_000
SERVER, MOBILE = bytes([203, 0, 113, 10]), bytes([10, 45, 0, 2])


def tap(**settings: Any) -> Any:
    scenario = Scenario.from_mapping(
        {
            "name": "t",
            "duration_s": 1,
            "path": [{"kind": "wired"}],
            "record": {"taps": [{"name": "server", **settings}]},
        }
    )
    (made,) = live_taps(scenario, ((0, 1),))
    return made


def data(sequence: int, length: int, *, flags: int = dpkt.tcp.TH_ACK, version: int = 4) -> bytes:
    tcp = dpkt.tcp.TCP(sport=80, dport=40_000, seq=sequence, ack=7, flags=flags, data=bytes([sequence % 251]) * length)
    if version == 6:
        address = bytes.fromhex("20010db8011300000000000000000010")
        other = bytes.fromhex("20010db8004500000000000000000002")
        return bytes(dpkt.ip6.IP6(src=address, dst=other, nxt=6, hlim=64, plen=len(tcp), data=tcp))
    return bytes(dpkt.ip.IP(src=SERVER, dst=MOBILE, p=6, data=tcp, len=20 + len(tcp)))


def written(path: Path, times_ns: list[int], packets: list[bytes] | None = None) -> Path:
    """A capture as libpcap writes it."""
    packets = packets or [data(number, 10) for number in range(len(times_ns))]
    with path.open("wb") as file:
        file.write(struct.pack("=IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 262_144, 101))
        for time_ns, packet in zip(times_ns, packets, strict=True):
            seconds, rest = divmod(START_NS + time_ns, 1_000_000_000)
            file.write(struct.pack("=IIII", seconds, rest, len(packet), len(packet)) + packet)
    return path


def times_in(path: Path) -> list[int]:
    content = path.read_bytes()[24:]
    times = []
    while content:
        seconds, rest, length, _ = struct.unpack_from("=IIII", content)
        times.append(seconds * 1_000_000_000 + rest - START_NS)
        content = content[16 + length :]
    return times


def test_a_tap_that_changes_nothing_leaves_the_capture_alone() -> None:
    assert not tap(snap_bytes=0).has_effects
    assert tap(clock={"offset_s": 0.1}).has_effects
    assert tap(from_s=1).has_effects


def test_a_clock_has_offset_drift_steps_and_grain(tmp_path: Path) -> None:
    path = written(tmp_path / "server.pcap", [0, 500 * MILLISECOND_NS, 900 * MILLISECOND_NS])
    clock = {"offset_s": 2, "drift_ppm": 100, "steps": [{"at_s": 0.6, "by_s": -0.5}], "granularity_s": 1e-6}
    counts = apply_tap(tap(clock=clock), path, START_NS, 1, "down")
    assert counts == {"written_packets": 3, "missed_packets": 0}
    assert times_in(path) == [2_000_000_000, 2_500_050_000, 2_400_090_000]


def test_what_is_missed_is_counted_and_is_the_same_each_time(tmp_path: Path) -> None:
    shown = []
    for name in ("one.pcap", "two.pcap"):
        path = written(tmp_path / name, [number * MILLISECOND_NS for number in range(1000)])
        counts = apply_tap(tap(loss_probability=0.1), path, START_NS, 1, "down")
        assert counts["written_packets"] + counts["missed_packets"] == 1000
        assert 60 < counts["missed_packets"] < 140
        shown.append(times_in(path))
    assert shown[0] == shown[1]


def test_a_tap_has_a_time_of_its_own(tmp_path: Path) -> None:
    path = written(tmp_path / "server.pcap", [number * 100 * MILLISECOND_NS for number in range(10)])
    apply_tap(tap(from_s=0.2, until_s=0.5), path, START_NS, 1, "down")
    assert times_in(path) == [200 * MILLISECOND_NS, 300 * MILLISECOND_NS, 400 * MILLISECOND_NS]


@pytest.mark.parametrize("version", [4, 6])
@pytest.mark.parametrize(("sending", "shown_ns"), [("down", 0), ("up", 200)])
def test_segments_in_sequence_become_one_packet(version: int, sending: str, shown_ns: int) -> None:
    coalescer = Coalescer(1000, 65_535, sending)
    packets = [data(number * 100, 100, version=version) for number in range(3)]
    shown = [one for number, packet in enumerate(packets) for one in coalescer.push(Record(number * 100, 999, packet))]
    shown += coalescer.finish()
    (record,) = shown
    packet = dpkt.ip6.IP6(record.data) if version == 6 else dpkt.ip.IP(record.data)
    assert record.time_ns == shown_ns
    assert bytes(packet.data.data) == b"".join(bytes([number * 100]) * 100 for number in range(3))
    assert record.original_bytes == len(record.data)
    if version == 4:
        assert dpkt.in_cksum(record.data[:20]) == 0


def test_gaps_pushes_and_time_end_a_packet() -> None:
    push = dpkt.tcp.TH_ACK | dpkt.tcp.TH_PUSH
    cases = [
        ([data(0, 100), data(200, 100)], [0, 1], 2),
        ([data(0, 100, flags=push), data(100, 100)], [0, 1], 2),
        ([data(0, 100), data(100, 100, flags=push), data(200, 100)], [0, 1, 2], 2),
        ([data(0, 100), data(100, 100)], [0, 1001], 2),
        ([data(0, 100), data(100, 100)], [0, 1000], 1),
    ]
    for packets, times, expected in cases:
        coalescer = Coalescer(1000, 65_535, None)
        shown = [
            one for time, packet in zip(times, packets, strict=True) for one in coalescer.push(Record(time, 0, packet))
        ]
        assert len([*shown, *coalescer.finish()]) == expected


def test_headers_cut_short_are_joined_to_nothing() -> None:
    coalescer = Coalescer(1000, 65_535, None)
    shown = [one for number in range(2) for one in coalescer.push(Record(number, 140, data(number * 100, 100)[:30]))]
    assert len([*shown, *coalescer.finish()]) == 2


def test_payload_that_was_not_captured_counts_in_the_length() -> None:
    coalescer = Coalescer(1000, 65_535, "down")
    packets = [data(number * 100, 100)[:60] for number in range(3)]
    shown = [one for number, packet in enumerate(packets) for one in coalescer.push(Record(number, 140, packet))]
    (record,) = [*shown, *coalescer.finish()]
    assert (len(record.data), record.original_bytes, dpkt.ip.IP(record.data).len) == (60, 340, 340)


def test_a_file_that_is_no_such_capture_is_a_sentence(tmp_path: Path) -> None:
    path = tmp_path / "server.pcap"
    path.write_bytes(b"nothing of the kind, and long enough")
    with pytest.raises(CaptureError, match="must be a capture with nanoseconds"):
        apply_tap(tap(from_s=1), path, START_NS, 1, None)
    whole = written(tmp_path / "cut.pcap", [1, 2])
    whole.write_bytes(whole.read_bytes()[:-1])
    with pytest.raises(CaptureError, match="must not end within a packet"):
        apply_tap(tap(from_s=1), whole, START_NS, 1, None)
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["cut.pcap", "server.pcap"]


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"link_type": "ethernet"}, "must be raw"),
        ({"nat": {"address": "192.0.2.1"}}, "nat must be absent on a live path"),
        ({"after_hop": 1}, "must be an end or the middle of the live path .0, 2."),
    ],
)
def test_captures_that_cannot_be_are_refused(settings: dict[str, Any], words: str) -> None:
    given = {
        "name": "t", "duration_s": 1, "path": [{"kind": "wired"}, {"kind": "wired"}],
        "record": {"taps": [{"name": "other", "after_hop": 0, **settings}]},
    }  # fmt: skip
    with pytest.raises(ScenarioError, match=words):
        live_taps(Scenario.from_mapping(given), ((0, 2),))
