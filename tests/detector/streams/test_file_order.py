"""Files that hold one direction of a connection behind the other, with right times; and clocks that were set back."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks.metamorphic.losses import one_direction_first
from benchmarks.metamorphic.records import records_of
from benchmarks.metamorphic.writing import write
from detector.streams.set_back import continued
from pepscope import detect
from pepscope.captures.capture import open_capture
from pepscope.captures.packets import Direction
from tests.captures.containers import read_capture
from tests.detector.corpus import pairs

EXAMPLES = Path(__file__).parents[3] / "examples"


def test_a_clock_that_was_set_back_is_known():
    (pair,) = pairs("reg_dl_reno_loss1")
    recorded = pair.server_side.packets
    assert continued(recorded).packets is recorded
    late = np.arange(len(recorded)) > len(recorded) // 2
    seen = continued(recorded.replaced(time_ns=recorded.time_ns - 200_000_000 * late))
    assert seen.clock_set_back
    assert (np.diff(seen.packets.time_ns) >= np.minimum(np.diff(recorded.time_ns), 0)).all()


def test_the_reader_leaves_packets_of_a_clock_that_was_set_back_in_their_order(tmp_path):
    """Between SYN and SYN-ACK, of a capture that lacks what else the client sent."""
    recorded = records_of(read_capture(EXAMPLES / "regular" / "server.pcap.gz"), {})
    answered = recorded.take(~recorded.is_up | (np.arange(len(recorded)) == 0))
    late = np.arange(len(answered)) > 0
    answered.time_ns[:] -= 200_000_000 * late
    write(tmp_path / "set-back.pcap", answered, "raw")
    packets = open_capture(tmp_path / "set-back.pcap").packets(0)
    assert packets.time_ns.tolist() == answered.time_ns.tolist()
    assert packets.direction[0] == Direction.UP
    assert continued(packets).clock_set_back


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
