"""Two captures of one vantage point: edited copies of one capture, and real pairs that must not be taken for such."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from msgspec import structs

import pepscope
from detector.pair import Pair, Vantage
from detector.pairing.captures import pair_captures
from detector.vantage.one_place import one_place
from detector.verdict.judging import judge_pair
from pepscope.captures.capture import open_capture
from pepscope.captures.packets import Direction, PacketColumns, TcpFlag
from pepscope.results.verdicts import DetectionResult, Verdict
from tests.captures.containers import (
    LINK_ETHERNET,
    CaptureFile,
    Frame,
    Interface,
    read_capture,
    write_pcap,
    write_pcapng,
)
from tests.captures.layers import ethernet
from tests.detector.corpus import CORPUS, RUNS, pairs

#: All with raw IP frames: split, stored, regular without timestamps and SACK, IPv6 with SYNs from ports kept.
COPIED = ("spl_ha_dl_srcip.mob", "prx_ngx_2M_umts.srv", "reg_dl_nots_nosack.mob", "reg_dl_v6.srv")


def plain(capture: CaptureFile) -> bytes:
    return write_pcap(capture.frames, capture.link_type)


def with_frames(capture: CaptureFile, frames: list[Frame]) -> bytes:
    return plain(replace(capture, frames=frames))


def is_up(frame: Frame, first: Frame) -> bool:
    """Whether a raw IP frame has the sender of the first one."""
    place = slice(12, 16) if frame.data[0] >> 4 == 4 else slice(8, 24)
    return frame.data[place] == first.data[place]


def moved(frames: list[Frame], ns: int, drift: float = 0.0) -> list[Frame]:
    start = frames[0].time_ns
    return [replace(frame, time_ns=frame.time_ns + ns + round(drift * (frame.time_ns - start))) for frame in frames]


EDITS: dict[str, Callable[[CaptureFile], bytes]] = {
    "a packet less": lambda c: with_frames(c, c.frames[:50] + c.frames[51:]),
    "the first packet less": lambda c: with_frames(c, c.frames[1:]),
    "first half": lambda c: with_frames(c, c.frames[: len(c.frames) // 2]),
    "second half": lambda c: with_frames(c, c.frames[len(c.frames) // 2 :]),
    "one direction": lambda c: with_frames(c, [f for f in c.frames if is_up(f, c.frames[0])]),
    "the other direction": lambda c: with_frames(c, [f for f in c.frames if not is_up(f, c.frames[0])]),
    "1 ms later": lambda c: with_frames(c, moved(c.frames, 1_000_000)),
    "an hour earlier": lambda c: with_frames(c, moved(c.frames, -3_600_000_000_000)),
    "drifting": lambda c: with_frames(c, moved(c.frames, 5_000_000, 100e-6)),
    "microseconds": lambda c: write_pcap(moved(c.frames, 1_000_000), c.link_type, nanoseconds=False),
    "cut to 68 bytes, 1 ms later": lambda c: write_pcap(moved(c.frames, 1_000_000), c.link_type, snap_length=68),
    "pcapng on Ethernet": lambda c: write_pcapng(
        [replace(f, data=ethernet(f.data), original_length=f.wire_length + 14) for f in c.frames[3:]],
        [Interface(LINK_ETHERNET, resolution=6)],
    ),
    "a packet in three": lambda c: with_frames(c, c.frames[::3]),
}


def copied(tmp_path: Path, name: str, edit: str) -> DetectionResult:
    source, copy = CORPUS / f"{name}.pcap.gz", tmp_path / "copy.pcap"
    copy.write_bytes(EDITS[edit](read_capture(source)))
    return pepscope.detect(str(source), str(copy))


@pytest.mark.parametrize("edit", EDITS)
@pytest.mark.parametrize("name", COPIED)
def test_a_capture_and_its_edited_copy_are_one_vantage_point(tmp_path: Path, name: str, edit: str) -> None:
    result = copied(tmp_path, name, edit)
    (pair,) = result.pairs
    assert pair.verdict is Verdict.INCONCLUSIVE
    assert pair.stretch is not None
    assert pair.stretch.one_place
    assert "at one place" in pair.reason
    assert len(pair.vantages) == 2
    assert any("at one place" in warning for warning in result.captures[1].warnings)


def test_the_richer_copy_is_judged(tmp_path: Path) -> None:
    paired = pair_captures(open_capture(str(CORPUS / "spl_ha_dl_srcip.mob.pcap.gz")), None)
    whole = judge_pair(paired.pair(paired.matches[0]))
    copy = copied(tmp_path, "spl_ha_dl_srcip.mob", "first half").pairs[0]
    numbers = {item.method: item.numbers for item in copy.evidence}
    assert numbers["single_vantage"] == {item.method: item.numbers for item in whole.evidence}["single_vantage"]


@pytest.mark.parametrize("run_id", [name for name, run in RUNS.items() if run["class"] == "regular"])
def test_two_ends_are_two_places_even_without_routers_between(run_id: str) -> None:
    for pair in pairs(run_id):
        if pair.client_side is not None and pair.server_side is not None:
            assert one_place(bridged(pair)) is None


def bridged(pair: Pair) -> Pair:
    """The pair as if nothing between its captures lowered hop limits."""
    client, server = (with_ttl(vantage) for vantage in pair.vantages)
    return structs.replace(pair, client_side=client, server_side=server)


def with_ttl(vantage: Vantage) -> Vantage:
    packets = vantage.packets.replaced(ttl=np.full_like(vantage.packets.ttl, 64))
    flows = {name: getattr(vantage.connection, name)._replace(ttl=64) for name in ("up", "down")}
    return structs.replace(vantage, packets=packets, connection=vantage.connection._replace(**flows))


def same_place_pair(run_id: str = "reg_dl_short10k") -> Pair:
    """A real pair whose second capture is a copy of its first."""
    pair = bridged(pairs(run_id)[0])
    return structs.replace(pair, server_side=pair.client_side)


def at_another_time(pair: Pair, later_ns: Callable[[PacketColumns], np.ndarray]) -> Pair:
    assert pair.server_side is not None
    packets = pair.server_side.packets
    moved = packets.replaced(time_ns=packets.time_ns + later_ns(packets).astype(np.int64))
    return structs.replace(pair, server_side=structs.replace(pair.server_side, packets=moved))


def ways(packets: PacketColumns) -> np.ndarray:
    return np.where(packets.direction == Direction.UP, 1, -1)


def test_twenty_microseconds_there_and_back_are_two_places() -> None:
    pair = same_place_pair()
    assert one_place(pair) is not None
    assert one_place(at_another_time(pair, lambda packets: 10_000 * ways(packets))) is None


def test_less_than_the_resolution_is_one_place() -> None:
    pair = same_place_pair()
    found = one_place(at_another_time(pair, lambda packets: 200 * ways(packets)))
    assert found is not None
    assert found.resolution_ns == 1_000
    assert found.round_trip_ns == 400


def test_another_hop_limit_is_another_place() -> None:
    pair = same_place_pair()
    assert pair.server_side is not None
    further = pair.server_side.packets.replaced(ttl=pair.server_side.packets.ttl - np.uint8(1))
    assert one_place(structs.replace(pair, server_side=structs.replace(pair.server_side, packets=further))) is None


def test_one_way_with_queueing_is_two_places() -> None:
    pair = same_place_pair("reg_dl_cubic_lte")
    assert pair.server_side is not None
    packets = pair.server_side.packets
    only_down = (packets.direction == Direction.DOWN) & ((packets.flags & TcpFlag.SYN) == 0)
    kept = PacketColumns(**{name: getattr(packets, name)[only_down] for name in PacketColumns.COLUMNS})
    one_way = structs.replace(pair, server_side=structs.replace(pair.server_side, packets=kept))
    assert one_place(one_way) is not None
    random = np.random.default_rng(1)
    assert one_place(at_another_time(one_way, lambda p: random.integers(0, 50_000, len(p)))) is None
