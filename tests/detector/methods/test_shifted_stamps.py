"""A firewall that shifts timestamps, seen by a capture that lacks most acknowledgements."""

from __future__ import annotations

import numpy as np
import pytest

from detector.method import Observation
from detector.methods.identity import METHOD
from pepscope.captures.packets import Direction, PacketColumns, TcpFlag
from pepscope.results.verdicts import Outcome
from tests.detector.corpus import pairs
from tests.detector.methods.alone import alone
from tests.detector.rewriting import Change, changed, in_sequence, keep, modulated_timestamps, scrambled_ip_id

ONE_IN = 20


def without_most_acknowledgements(packets: PacketColumns) -> PacketColumns:
    """One in `ONE_IN` of the pure acknowledgements up; duplicates are compared with the one that is left."""
    opens_or_ends = np.uint16(TcpFlag.SYN | TcpFlag.FIN | TcpFlag.RST)
    is_pure = (
        (packets.direction == Direction.UP) & (packets.payload_bytes == 0) & ((packets.flags & opens_or_ends) == 0)
    )
    is_kept = ~is_pure
    is_kept[np.flatnonzero(is_pure)[ONE_IN - 1 :: ONE_IN]] = True
    return keep(packets, is_kept)


def found_in(run_id: str, at_server: Change) -> list[Outcome]:
    made = [changed(pair, without_most_acknowledgements, at_server) for pair in pairs(run_id)]
    return [alone(METHOD, Observation(pair)).outcome for pair in made]


@pytest.mark.parametrize("run_id", ["reg_dl_reno_loss1", "reg_dl_cdma1x", "reg_dl_par20", "reg_dl_eth_off"])
def test_no_regular_connection_is_accused(run_id):
    outcomes = found_in(run_id, in_sequence(modulated_timestamps, scrambled_ip_id))
    assert outcomes
    assert Outcome.SPLIT not in outcomes


@pytest.mark.parametrize("run_id", ["spl_ha_dl_explicit", "prx_ngx_2M_umts"])
def test_a_relay_is_found_all_the_same(run_id):
    assert set(found_in(run_id, scrambled_ip_id)) == {Outcome.SPLIT}
