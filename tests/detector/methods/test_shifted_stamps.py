"""A firewall that shifts timestamps, seen by a capture that lacks most acknowledgements."""

from __future__ import annotations

import numpy as np
import pytest

from detector.method import Observation
from detector.methods.identity import METHOD
from detector.methods.identity.agreement import FITTED_NATS, IP_ID_NATS, ClassComparison, FieldAgreement
from detector.methods.identity.shifted_stamps import with_one_shift
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


@pytest.mark.parametrize(
    "run_id", ["reg_dl_reno_loss1", "reg_dl_cdma1x", "reg_dl_par20", "reg_dl_eth_off", "reg_dl_quickack"]
)
def test_no_regular_connection_is_accused(run_id):
    outcomes = found_in(run_id, in_sequence(modulated_timestamps, scrambled_ip_id))
    assert outcomes
    assert Outcome.SPLIT not in outcomes


@pytest.mark.parametrize("run_id", ["spl_ha_dl_explicit", "prx_ngx_2M_umts"])
def test_a_relay_is_found_all_the_same(run_id):
    assert set(found_in(run_id, scrambled_ip_id)) == {Outcome.SPLIT}


def part(shift: int, stamps: float, ids: float) -> ClassComparison:
    """Segments down of one connection, by what their timestamps and IP IDs say; none up."""
    agreements = {
        name: FieldAgreement(np.array([[0], [30]]), np.zeros((2, 1)), np.array([[0.0], [nats]]), np.zeros((2, 1)))
        for name, nats in (("timestamps", stamps), ("ip-id", ids))
    }
    shifts = np.array([[0], [shift]])
    nothing = np.zeros((2, 1), np.int64)
    return ClassComparison(np.array([[0], [30]]), np.array([[0], [30]]), agreements, shifts, nothing)


@pytest.mark.parametrize(
    ("parts", "nats", "is_unknown"),
    [
        ([part(77, FITTED_NATS, 0.0), part(0, -60.0, 0.0)], -FITTED_NATS, True),
        ([part(77, 1.0, 0.0), part(0, -60.0, 0.0)], -60.0, False),  # few segments fit any constants
        ([part(0, 60.0, 0.0), part(0, -60.0, 0.0)], -60.0, False),
        ([part(0, 60.0, 0.0), part(0, -60.0, IP_ID_NATS)], -FITTED_NATS, True),
        ([part(0, 60.0, 0.0), part(0, -60.0, IP_ID_NATS / 2)], -60.0, False),
        ([part(77, FITTED_NATS, 0.0), part(0, -1.0, 0.0)], -1.0, True),
        ([part(77, FITTED_NATS, 0.0), part(0, 2.0, 0.0)], 2.0, False),
    ],
)
def test_a_shift_that_something_else_shows_bounds_what_speaks_against_it(parts, nats, is_unknown):
    _, weighed = with_one_shift(parts)
    assert weighed.fields["timestamps"].nats[1, 0] == nats
    assert bool(weighed.shift_unknown[1, 0]) is is_unknown
