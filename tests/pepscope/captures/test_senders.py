"""`Capture.senders` and `Capture.load_responses` beside the same numbers in plain Python."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import scipy

from pepscope.captures.capture import Capture, open_capture
from pepscope.captures.packets import NO_ACKNOWLEDGEMENT, Mark, PacketColumns, TcpFlag
from pepscope.captures.senders import LoadResponses

TESTS = Path(__file__).parents[2]
CAPTURES = (
    "corpus/reg_dl_par20.srv.pcap.gz",
    "corpus/reg_dl_v6.srv.pcap.gz",
    "corpus/spl_ha_dl_sll2.srv.pcap.gz",
    "corpus/reg_ul_slowreader_srv.mob.pcap.gz",
    "corpus/reg_dl_nots_nosack.srv.pcap.gz",
    "one_ended/lte-synproxy.mobile.pcap.gz",
)


@pytest.fixture(scope="module", params=CAPTURES)
def capture(request: pytest.FixtureRequest) -> Capture:
    return open_capture(str(TESTS / request.param))


def directed(capture: Capture) -> list[tuple[int, int, PacketColumns]]:
    """Row, direction and packets of each connection."""
    every = range(len(capture.connections))
    return [(2 * number + way, way, capture.packets(number)) for number in every for way in (0, 1)]


def test_senders_are_those_of_the_packets(capture: Capture) -> None:
    found = capture.senders()
    assert len(found) == 2 * len(capture.connections)
    assert found.connection.tolist() == [row // 2 for row in range(len(found))]
    for row, way, packets in directed(capture):
        flags = packets.flags
        sent = np.flatnonzero((packets.direction == way) & (flags & TcpFlag.RST == 0))
        syns, later = sent[flags[sent] & TcpFlag.SYN != 0], sent[flags[sent] & TcpFlag.SYN == 0]
        if len(syns):
            assert found.syn_ns[row] == packets.time_ns[syns[0]]
            assert found.syn_hop_limit[row] == packets.ttl[syns[0]]
            assert found.syn_window[row] == packets.window_bytes[syns[0]]
        else:
            assert (found.syn_ns[row], found.syn_hop_limit[row], found.syn_window[row]) == (-1, -1, -1)
        counts = Counter(packets.ttl[later].tolist())
        assert found.later_packets[row] == len(later)
        assert found.hop_limit[row] == min(counts, key=lambda limit: (-counts[limit], limit), default=-1)
        stamped = later[packets.marks[later] & Mark.HAS_TIMESTAMPS != 0]
        assert found.ticked_packets[row] == len(stamped)
        if len(stamped):
            assert found.first_tsval[row] == packets.tsval[stamped[0]]
            assert found.last_tick_ns[row] == packets.time_ns[stamped[-1]]


def test_option_kinds_are_those_of_the_syn(capture: Capture) -> None:
    found = capture.senders()
    for number, connection in enumerate(capture.connections):
        for way, flow in enumerate((connection.up, connection.down)):
            kinds, rest = [], flow.syn_options
            while rest and rest[0]:
                kinds.append(rest[0])
                rest = rest[1:] if rest[0] == 1 else rest[rest[1] :]
            row = found.option_kinds[2 * number + way].tolist()
            assert row == (kinds + [0] * 16)[:16]


def test_load_responses_are_those_of_the_packets(capture: Capture) -> None:
    found = capture.load_responses()
    for row, way, packets in directed(capture):
        samples = []
        flights: list[tuple[int, int]] = []
        acknowledged, highest = None, -(1 << 62)
        for place in range(len(packets)):
            if packets.flags[place] & (TcpFlag.RST | TcpFlag.SYN):
                continue
            if packets.direction[place] == way:
                payload = int(packets.payload_bytes[place])
                end = int(packets.sequence_offset[place]) + payload
                if payload and end > highest:
                    highest = end
                    flights.append((end, end - (end - payload if acknowledged is None else acknowledged)))
                continue
            offset = int(packets.acknowledgement_offset[place])
            if offset == NO_ACKNOWLEDGEMENT:
                continue
            acknowledged = offset if acknowledged is None else max(acknowledged, offset)
            covered = [flight for end, flight in flights if end <= offset]
            flights = [(end, flight) for end, flight in flights if end > offset]
            if covered and packets.round_trip_time_ns[place] >= 0:
                samples.append((int(packets.round_trip_time_ns[place]), covered[-1]))
        assert found.samples[row] == len(samples)
        assert found.least_ns[row] == min((sample[0] for sample in samples), default=-1)
        times, sizes = [sample[0] for sample in samples], [sample[1] for sample in samples]
        if len(set(times)) > 1 and len(set(sizes)) > 1:
            assert found.rank_correlation[row] == pytest.approx(float(scipy.stats.spearmanr(times, sizes).statistic))
        else:
            assert np.isnan(found.rank_correlation[row])
        quarter = sorted(sizes)[-max(1, -(-len(sizes) // 4)) :] if sizes else [-1]
        assert found.loaded_flight_bytes[row] == quarter[(len(quarter) - 1) // 2]


@pytest.mark.parametrize("memory_bytes", [None, 1])
def test_load_responses_of_some_connections_are_those_of_all(capture: Capture, memory_bytes: int | None) -> None:
    again = open_capture(capture.path, memory_bytes=memory_bytes)
    some = list(range(len(capture.connections)))[1::3]
    found, every = again.load_responses(some[::-1]), capture.load_responses()
    rows = np.ravel([[2 * number, 2 * number + 1] for number in some]).astype(int)
    for name in LoadResponses.__struct_fields__:
        np.testing.assert_array_equal(getattr(found, name), getattr(every, name)[rows])
    assert len(again.load_responses([])) == 0
    with pytest.raises(IndexError):
        again.load_responses([len(capture.connections)])


def test_packets_must_have_been_kept() -> None:
    with pytest.raises(ValueError, match="columns=True"):
        open_capture(str(TESTS / CAPTURES[0]), columns=False).senders()


def test_results_do_not_depend_on_the_memory_allowed() -> None:
    path = str(TESTS / CAPTURES[0])
    whole, parts = open_capture(path), open_capture(path, memory_bytes=1)
    assert parts.partition_count > 1
    for name in ("syn_ns", "hop_limit", "option_kinds", "last_tsval"):
        assert (getattr(whole.senders(), name) == getattr(parts.senders(), name)).all()
    assert (whole.load_responses().loaded_ns == parts.load_responses().loaded_ns).all()
