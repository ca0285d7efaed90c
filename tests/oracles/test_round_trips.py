"""Round trips are sampled as tcptrace samples them, but for those of SYN and FIN, which carry no data."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from pepscope.captures.capture import open_capture
from pepscope.captures.packets import Direction, PacketColumns
from tests.oracles.tcptrace import round_trip_samples

CORPUS = Path(__file__).parents[1] / "corpus"
NAMES = (
    "reg_dl_short10k.mob",
    "reg_dl_nots_nosack.srv",
    "reg_bidir.mob",
    "reg_dl_par20.srv",
    "spl_ha_chat.srv",
    "spl_ha_ftp_dl.srv",
    "spl_ha_dl_mid_lte_bbr.mob",
    "spl_ha_ul_slowwire.mob",
    "spl_ngx_http_nobuf__sll.mob",
)
SYN, FIN, ACK = 0x02, 0x01, 0x10


def without_data(packets: PacketColumns, direction: Direction) -> int:
    """Acknowledgements that cover a SYN or a FIN of `direction`, and nothing else."""
    ours = packets.direction == direction.value
    syn = ours & (packets.flags & SYN != 0)
    fin = ours & (packets.flags & FIN != 0) & (packets.payload_bytes == 0)
    acknowledged = packets.acknowledgement_offset[~ours & (packets.flags & ACK != 0)]
    advances = np.unique(np.maximum.accumulate(acknowledged))
    count = int(syn.any() and (advances >= 0).any())
    for at in packets.sequence_offset[fin]:
        before, behind = advances[advances <= at], advances[advances > at]
        count += int(behind.size > 0 and before.size > 0 and before[-1] == at)
    return count


@pytest.mark.parametrize("name", NAMES)
def test_samples_differ_by_those_of_syn_and_fin(name: str, tmp_path: Path) -> None:
    path = tmp_path / "capture.pcap"
    path.write_bytes(gzip.decompress((CORPUS / f"{name}.pcap.gz").read_bytes()))
    theirs = round_trip_samples(path)
    capture = open_capture(str(path))
    compared = 0
    for index, connection in enumerate(capture.connections):
        flows = (connection.up, connection.down)
        client, server = connection.client, connection.server
        ends = ((Direction.UP, client, server), (Direction.DOWN, server, client))
        for (direction, sender, receiver), flow in zip(ends, flows, strict=True):
            if flow.retransmitted_packets or flow.reordered_packets or flow.missed_bytes:
                continue
            of_syn_and_fin = without_data(capture.packets(index), direction)
            assert theirs[sender, receiver] == flow.round_trip_time_samples + of_syn_and_fin, (sender, receiver)
            compared += 1
    assert compared > 0
