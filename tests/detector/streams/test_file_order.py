"""Files that hold one direction of a connection behind the other, with right times."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks.metamorphic.losses import one_direction_first
from benchmarks.metamorphic.records import records_of
from benchmarks.metamorphic.writing import write
from detector.streams.file_order import in_time
from pepscope import detect
from pepscope.captures.packets import Direction, PacketColumns
from tests.captures.containers import read_capture
from tests.detector.corpus import pairs
from tests.detector.rewriting import keep

SIDES = ("client_side", "server_side")
EXAMPLES = Path(__file__).parents[3] / "examples"


def apart(packets: PacketColumns, first: Direction) -> PacketColumns:
    return keep(packets, np.argsort(packets.direction != first, kind="stable"))


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("first", list(Direction))
def test_packets_come_back_into_the_order_of_time(first, side):
    (pair,) = pairs("reg_dl_reno_loss1")
    recorded = getattr(pair, side).packets
    fallen = apart(recorded, first)
    seen = in_time(fallen)
    assert seen.packets.time_ns.tolist() == recorded.time_ns.tolist()
    assert seen.packets.sequence_offset.tolist() == recorded.sequence_offset.tolist()
    assert not seen.clock_set_back
    assert seen.file_rows is not None
    assert fallen.ip_id[seen.file_rows].tolist() == seen.packets.ip_id.tolist()


def test_a_clock_that_was_set_back_leaves_the_order():
    (pair,) = pairs("reg_dl_reno_loss1")
    recorded = pair.server_side.packets
    late = np.arange(len(recorded)) > len(recorded) // 2
    seen = in_time(recorded.replaced(time_ns=recorded.time_ns - 200_000_000 * late))
    assert seen.clock_set_back
    assert seen.file_rows is None
    # Between SYN and SYN-ACK, of a capture that lacks what else the client sent.
    is_kept = (recorded.direction == Direction.DOWN) | (np.arange(len(recorded)) == 0)
    answered = keep(recorded, is_kept)
    late = np.arange(len(answered)) > 0
    seen = in_time(answered.replaced(time_ns=answered.time_ns - 200_000_000 * late))
    assert seen.clock_set_back
    assert seen.file_rows is None


@pytest.mark.parametrize("up_first", [True, False])
@pytest.mark.parametrize(("example", "verdict"), [("regular", "regular"), ("split", "split-tcp")])
def test_verdict_sentence_and_packets_stay(example, verdict, up_first, tmp_path):
    files = {end: EXAMPLES / example / f"{end}.pcap.gz" for end in ("mobile", "server")}
    recorded = records_of(read_capture(files["server"]), {})
    write(tmp_path / "in-order.pcap", recorded, "raw")
    write(tmp_path / "apart.pcap", one_direction_first(recorded, up_first), "raw")
    (whole,), (result,) = (
        detect(tmp_path / name, files["mobile"], packets=4).pairs for name in ("in-order.pcap", "apart.pcap")
    )
    assert whole.verdict == result.verdict == verdict
    found = [
        {each.method: (each.finding, each.summary, each.packets) for each in one.evidence} for one in (whole, result)
    ]
    windows = [of["receive_window"][:2] for of in found]
    assert windows[0] == windows[1]
    # Which packets are named stays, and their frames are those of the file.
    frames = {int(t): number + 1 for number, t in enumerate(one_direction_first(recorded, up_first).time_ns)}
    named = [packet for of in found[1:] for _, _, packets in of.values() for packet in packets]
    in_server = [packet for packet in named if packet.capture.endswith("apart.pcap")]
    assert in_server
    assert all(frames[packet.time_ns] == packet.frame for packet in in_server)


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("run_id", ["reg_dl_reno_loss1", "spl_ha_chat"])
def test_the_later_part_of_a_capture_may_stand_first(run_id, side):
    (pair, *_) = pairs(run_id)
    recorded = getattr(pair, side).packets
    halves = np.roll(np.arange(len(recorded)), len(recorded) // 2)
    seen = in_time(keep(recorded, halves))
    assert not seen.clock_set_back
    assert seen.packets.time_ns.tolist() == recorded.time_ns.tolist()
