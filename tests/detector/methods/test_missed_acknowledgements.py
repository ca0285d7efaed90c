"""Acknowledgements that a capture lacks, shown by its host's IP IDs, are nobody else's."""

from __future__ import annotations

import numpy as np
import pytest

from detector.method import Observation
from detector.methods import identity
from detector.methods.identity.findings import IdentityFinding
from detector.options import DetectOptions
from detector.pairing.captures import pair_captures
from pepscope.captures.packets import PacketColumns, TcpFlag
from pepscope.results.verdicts import Outcome
from tests.detector.corpus import Variation, Varied, capture

_PLAIN = TcpFlag.ACK
_OTHERS = TcpFlag.SYN | TcpFlag.FIN | TcpFlag.RST


class ThinnedAcknowledgements(Varied):
    """A capture that kept one in so many pure acknowledgements of either side; perhaps its host's IP IDs are drawn."""

    def __init__(self, source, one_in: int, *, random_ids: bool = False) -> None:
        super().__init__(source, Variation(timestamps=False))
        self._one_in, self._random_ids = one_in, random_ids

    def packets(self, number: int):
        packets = super().packets(number)
        pure = (packets.payload_bytes == 0) & ((packets.flags & (_PLAIN | _OTHERS)) == _PLAIN)
        keep = ~pure
        keep[np.flatnonzero(pure)[:: self._one_in]] = True
        if self._random_ids:
            drawn = np.random.default_rng(7).integers(0, 65_536, len(packets)).astype(packets.ip_id.dtype)
            packets = packets.replaced(ip_id=drawn)
        return PacketColumns(**{name: getattr(packets, name)[keep] for name in PacketColumns.COLUMNS})


def examined(run_id: str, one_in: tuple[int, int], *, random_ids: bool = False):
    """What identity finds where the captures at the mobile and at the server keep one acknowledgement in so many."""
    mobile, server = (capture(f"{run_id}.{end}.pcap.gz") for end in ("mob", "srv"))
    (pair,) = pair_captures(
        ThinnedAcknowledgements(mobile, one_in[0], random_ids=random_ids),
        ThinnedAcknowledgements(server, one_in[1]),
        DetectOptions(),
    )
    return identity.METHOD.alone(Observation(pair))


@pytest.mark.parametrize("run_id", ["reg_dl_cubic_lte", "reg_dl_bloat_1M", "reg_ul_cubic_lte", "reg_ul_bloat_256"])
@pytest.mark.parametrize("one_in", [(2, 3), (3, 2), (5, 2), (4, 1), (20, 3)])
def test_thinned_captures_of_one_receiver_show_no_other(run_id, one_in):
    found = examined(run_id, one_in)
    assert found.outcome is Outcome.INTACT
    assert found.finding is not IdentityFinding.ACKS_NOBODY_SENT


def test_the_numbers_say_how_many_were_missed():
    found = examined("reg_dl_cubic_lte", (3, 2))
    assert found.numbers["up_acks_missed"] > 50


def test_where_the_host_does_not_count_hardly_any_seems_missed():
    numbers = examined("reg_dl_cubic_lte", (3, 2), random_ids=True).numbers
    assert numbers.get("up_acks_missed", 0) < 0.02 * numbers["up_acks_segments"]


@pytest.mark.parametrize("one_in", [(1, 1), (2, 3), (5, 2)])
def test_a_relay_is_found_all_the_same(one_in):
    assert examined("spl_ha_dl_large_umts", one_in).outcome is Outcome.SPLIT
