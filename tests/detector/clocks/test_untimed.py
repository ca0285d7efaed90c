"""Captures whose times contradict themselves: acknowledgements before the bytes that they acknowledge."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec.structs import replace

from detector.clocks.untimed import are_untimed
from detector.method import Observation
from detector.methods.ack_timing import METHOD as ACK_TIMING
from detector.methods.delayed_ack import METHOD as DELAYED_ACK
from detector.methods.early_fin import METHOD as EARLY_FIN
from detector.methods.identity import METHOD as IDENTITY
from detector.methods.progress import METHOD as PROGRESS
from detector.streams.curves import without_backward_steps
from pepscope.captures.packets import Direction, PacketColumns, TcpFlag
from pepscope.results.verdicts import Outcome
from tests.detector.corpus import RUNS, pairs
from tests.detector.methods.alone import alone

SECOND_NS = 10**9
BASES = [name for name, run in RUNS.items() if run.get("variant") is None]
REGULAR = [name for name in BASES if RUNS[name]["class"] == "regular"]
SIDES = ("client_side", "server_side")


def in_order(packets, rows):
    return PacketColumns(**{name: getattr(packets, name)[rows] for name in PacketColumns.COLUMNS})


def timed_by_two_cards(packets, direction):
    """A tap with a card for each direction, of which one is ten seconds behind; the file is merged by time."""
    behind = packets.replaced(time_ns=packets.time_ns - 10 * SECOND_NS * (packets.direction == direction))
    return in_order(behind, np.argsort(behind.time_ns, kind="stable"))


def one_after_the_other(packets, direction):
    """The files of a tap with two cards, one appended to the other; `direction` comes first."""
    return without_backward_steps(in_order(packets, np.argsort(packets.direction != direction, kind="stable")))


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("direction", list(Direction))
@pytest.mark.parametrize("change", [timed_by_two_cards, one_after_the_other])
@pytest.mark.parametrize("run_id", REGULAR)
def test_times_that_contradict_each_other_accuse_no_regular_connection(run_id, change, direction, side):
    for pair in pairs(run_id):
        vantage = getattr(pair, side)
        odd = replace(pair, **{side: replace(vantage, packets=change(vantage.packets, direction))})
        for method in (ACK_TIMING, DELAYED_ACK, PROGRESS, EARLY_FIN):
            found = alone(method, Observation(odd))
            assert found.outcome is not Outcome.SPLIT, (method.name, found.summary)


def test_acknowledgements_before_the_syn_tell_where_nothing_else_was_sent():
    """An upload whose file holds the way up first: of the server only the SYN-ACK can stand behind what answers it."""
    (pair,) = pairs("reg_dl_reno_loss1")
    packets = pair.server_side.packets
    sizes = np.where(packets.direction == Direction.DOWN, 0, packets.payload_bytes).astype(packets.payload_bytes.dtype)
    silent = packets.replaced(payload_bytes=sizes)
    is_syn = (silent.flags & np.uint16(TcpFlag.SYN)) > 0

    def seen(changed):
        return replace(pair, server_side=replace(pair.server_side, packets=changed))

    fallen = one_after_the_other(silent, Direction.UP)
    assert are_untimed([seen(silent), seen(fallen)]).tolist() == [False, True]
    without_syn = one_after_the_other(in_order(silent, np.flatnonzero(~is_syn)), Direction.UP)
    assert not are_untimed([seen(without_syn)])[0]


@pytest.mark.parametrize("direction", list(Direction))
def test_identity_accuses_nobody_by_a_file_that_is_out_of_order(direction):
    """Relayed segments differ; so may those that are looked for at the wrong place of a file."""
    for pair in pairs("prx_ngx_2M_umts"):
        assert alone(IDENTITY, Observation(pair)).outcome is Outcome.SPLIT
        vantage = pair.server_side
        fallen = replace(vantage, packets=one_after_the_other(vantage.packets, direction), clock_set_back=True)
        found = alone(IDENTITY, Observation(replace(pair, server_side=fallen)))
        assert (found.outcome, found.finding) == (Outcome.INAPPLICABLE, "not-aligned")


def with_a_clock_that_stands_still(packets, step_ns):
    """A clock that was set back by two seconds, in a file whose times a tool keeps from falling (`editcap -S`)."""
    begin_ns = packets.time_ns[len(packets) // 3]
    times_ns = (packets.time_ns - 2 * SECOND_NS * (packets.time_ns > begin_ns)).tolist()
    for row in range(1, len(times_ns)):
        if times_ns[row] < times_ns[row - 1]:
            times_ns[row] = times_ns[row - 1] + step_ns
    return packets.replaced(time_ns=np.array(times_ns))


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("step_ns", [0, 1000])
def test_a_clock_that_stands_still_accuses_no_regular_connection(step_ns, side):
    accused = 0
    for run_id in ("reg_dl_quickack", "reg_dl_nots_nosack", "reg_dl_reno_loss1"):
        for pair in pairs(run_id):
            vantage = getattr(pair, side)
            odd = replace(
                pair, **{side: replace(vantage, packets=with_a_clock_that_stands_still(vantage.packets, step_ns))}
            )
            assert are_untimed([odd])[0]
            for method in (ACK_TIMING, DELAYED_ACK, PROGRESS, EARLY_FIN):
                assert alone(method, Observation(odd)).outcome is not Outcome.SPLIT, method.name
            accused += 1
    assert accused


def test_a_handshake_that_takes_less_than_no_time_shows_two_clocks():
    """One clock for each direction at the server, half a second apart: no packet stands before its answer there."""
    (pair,) = pairs("reg_dl_reno_loss1")
    server = pair.server_side
    waits_ns = server.connection.handshake_syn_ack_ns + SECOND_NS // 2

    def timed(**changes):
        return replace(pair, server_side=replace(server, connection=server.connection._replace(**changes)))

    assert are_untimed([pair, timed(handshake_syn_ack_ns=waits_ns)]).tolist() == [False, True]
    other = server.connection.down._replace(initial_sequence_number=server.connection.down.initial_sequence_number + 1)
    again = server.connection.up._replace(syn_count=2)
    for changes in ({"down": other}, {"up": again}):
        assert not are_untimed([timed(handshake_syn_ack_ns=waits_ns, **changes)])[0]


@pytest.mark.parametrize("run_id", BASES)
def test_captures_as_recorded_do_not_contradict_themselves(run_id):
    assert not are_untimed(list(pairs(run_id))).any()
