from __future__ import annotations

import numpy as np
import pytest
from msgspec.structs import replace

from detector.method import Observation
from detector.methods.teardown import METHOD, find_abort
from detector.pair import Pair
from pepscope.captures.packets import Direction, PacketColumns
from pepscope.results.verdicts import Evidence, Outcome
from tests.detector.corpus import RUNS, pairs
from tests.detector.methods.alone import alone


def examined(pair: Pair) -> Evidence:
    return alone(METHOD, Observation(pair))


def test_a_split_point_acknowledges_beyond_the_abort():
    (pair,) = pairs("spl_ha_dl_abort")
    found = alone(METHOD, Observation(pair))
    assert found.finding == "acknowledged-beyond-abort"
    assert found.numbers["acknowledged_beyond_bytes"] > 1_000_000


def test_an_abort_end_to_end():
    (pair,) = pairs("reg_dl_abort")
    found = alone(METHOD, Observation(pair))
    assert found.finding == "abort-end-to-end"
    assert found.numbers["acknowledged_beyond_bytes"] <= 0


def used_again(packets: PacketColumns, later: int, *, held: bool) -> PacketColumns:
    """The packets of a connection, and of another one of its ports whose numbers lie `later` bytes beyond.

    Of the other one its SYN, and all of its data if not `held`, were lost by the capture.
    """
    again = (packets.sequence_offset >= 0) & ((packets.payload_bytes == 0) | held)
    is_known = packets.acknowledgement_offset >= 0
    span = int(packets.time_ns[-1]) - int(packets.time_ns[0])
    changed = {
        "time_ns": packets.time_ns + span,
        "sequence_offset": packets.sequence_offset + later,
        "acknowledgement_offset": packets.acknowledgement_offset + np.where(is_known, later, 0),
    }
    columns = {name: getattr(packets, name) for name in PacketColumns.COLUMNS}
    both = {name: np.concatenate([one, changed.get(name, one)[again]]) for name, one in columns.items()}
    return PacketColumns(**both)


@pytest.mark.parametrize("later", [5_000_000, 1 << 30])
@pytest.mark.parametrize("held", [False, True])
@pytest.mark.parametrize("run_id", ["reg_dl_abort", "spl_ha_dl_abort"])
def test_a_later_connection_of_the_same_ports_changes_nothing(run_id, held, later):
    """The receiver's capture began anew with a SYN that the sender's lost."""
    (pair,) = pairs(run_id)
    sender = pair.server_side
    mixed = replace(sender, packets=used_again(sender.packets, later, held=held))
    assert examined(replace(pair, server_side=mixed)).finding == examined(pair).finding


def some(packets: PacketColumns, held: np.ndarray) -> PacketColumns:
    return PacketColumns(**{name: getattr(packets, name)[held] for name in PacketColumns.COLUMNS})


@pytest.mark.parametrize("lacks_data", [False, True])
@pytest.mark.parametrize("run_id", ["reg_dl_abort", "spl_ha_dl_abort"])
def test_what_the_senders_capture_lost_changes_nothing(run_id, lacks_data):
    """All data, as where routes differ by direction, or more of them than a window before the receiver ended."""
    (pair,) = pairs(run_id)
    packets = pair.server_side.packets
    reached = find_abort(pair.client_side.packets, Direction.DOWN).reached_bytes
    is_lost = (packets.direction == Direction.DOWN) & (packets.payload_bytes > 0)
    if not lacks_data:
        assert reached * 7 // 8 > packets.window_bytes.max()
        is_lost &= (packets.sequence_offset > reached // 16) & (packets.sequence_offset < reached * 15 // 16)
    mixed = replace(pair.server_side, packets=some(packets, ~is_lost))
    assert examined(replace(pair, server_side=mixed)).finding == examined(pair).finding


@pytest.mark.parametrize("run_id", ["reg_dl_abort", "spl_ha_dl_abort"])
def test_a_later_connection_changes_nothing_where_the_senders_data_were_not_captured(run_id):
    (pair,) = pairs(run_id)
    packets = pair.server_side.packets
    mixed = used_again(some(packets, packets.direction == Direction.UP), 1 << 30, held=False)
    changed = examined(replace(pair, server_side=replace(pair.server_side, packets=mixed)))
    assert changed.finding == examined(pair).finding


@pytest.mark.parametrize("run_id", [name for name in RUNS if "abort" not in name])
def test_no_finding_without_abort(run_id):
    for pair in pairs(run_id):
        assert alone(METHOD, Observation(pair)).outcome is Outcome.INAPPLICABLE


def test_the_sender_of_the_stream_does_not_abort_it_by_resetting():
    (pair,) = pairs("reg_dl_abort")
    assert find_abort(pair.client_side.packets, Direction.DOWN) is not None
    assert find_abort(pair.client_side.packets, Direction.UP) is None
    assert examined(replace(pair, client_side=None)).finding == "needs-second-capture"
