"""Streams without a FIN in which packets lie farther from the SYN at the other end."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec.structs import replace

from detector.pair import StreamAlignment
from detector.streams.known import UNKNOWN
from detector.streams.sides import Sides
from detector.streams.size_changes import FEWEST_MOVED, GATEWAY_BYTES, size_changes
from pepscope.captures.packets import Direction, Mark, PacketColumns
from tests.detector.corpus import pairs

PACKETS = 8
STAMPED = int(Mark.HAS_TIMESTAMPS)
#: Of other lengths each.
LENGTHS = np.arange(20, 20 + PACKETS)
NONE_COMPARED = StreamAlignment(0, 0, 0.0)


def arrived_longer(
    added: int,
    moved: int = FEWEST_MOVED,
    *,
    compared: StreamAlignment = NONE_COMPARED,
    stamped: bool = False,
    numbers: tuple[int, int] = (1000, 1000),
) -> int:
    """By how much a stream of the server seems to grow, whose last packets lie farther on at the client.

    TSval or IP ID count from `numbers` at the client and at the server (0: it stays 0), the other one is lost.
    """
    (pair,) = pairs("reg_dl_cubic_lte")
    sides = []
    for vantage, more, number in zip((pair.client_side, pair.server_side), (added, 0), numbers, strict=True):
        packets = vantage.packets
        data = np.flatnonzero((packets.direction == Direction.DOWN) & (packets.payload_bytes > 0))[:PACKETS]
        columns = {name: getattr(packets, name)[data] for name in PacketColumns.COLUMNS}
        identity = np.arange(PACKETS) + number if number else np.zeros(PACKETS, np.int64)
        columns |= {
            "payload_bytes": LENGTHS.astype(np.uint32),
            "sequence_offset": 1 + np.cumsum(LENGTHS) + np.where(np.arange(PACKETS) < PACKETS - moved, 0, more),
            "marks": columns["marks"] & ~np.array(STAMPED, np.uint16) | np.array(stamped * STAMPED, np.uint16),
            "tsval": (identity * stamped).astype(np.uint32),
            "ip_id": (identity * (not stamped)).astype(np.uint16),
        }
        down = vantage.connection.down
        connection = vantage.connection._replace(down=down._replace(stream_bytes=down.stream_bytes + more))
        sides.append(replace(vantage, packets=PacketColumns(**columns), connection=connection))
    client, server = sides
    gateways = replace(pair, client_side=client, server_side=server, alignment={Direction.DOWN: compared})
    return int(size_changes(Sides.of([gateways]))[Direction.DOWN, 0])


@pytest.mark.parametrize("added", [-GATEWAY_BYTES, -1, 1, GATEWAY_BYTES])
@pytest.mark.parametrize("stamped", [False, True])
@pytest.mark.parametrize("compared", [NONE_COMPARED, StreamAlignment(0, 6, 0.5)])
def test_packets_that_kept_their_identity_tell_how_much_longer_a_stream_arrives(added, stamped, compared):
    assert arrived_longer(added, stamped=stamped, compared=compared) == added


@pytest.mark.parametrize("stamped", [False, True])
def test_less_or_more_than_a_gateways_change_tells_nothing(stamped):
    assert arrived_longer(GATEWAY_BYTES + 1, stamped=stamped) == UNKNOWN
    assert arrived_longer(9, FEWEST_MOVED - 1, stamped=stamped) == UNKNOWN


@pytest.mark.parametrize("other", [0, 2])
def test_payload_that_lies_as_it_lay_outweighs_packets(other):
    assert arrived_longer(9, compared=StreamAlignment(0, 64, 1 - other / 64)) == UNKNOWN


@pytest.mark.parametrize("stamped", [False, True])
def test_packets_of_another_host_tell_nothing(stamped):
    assert arrived_longer(9, stamped=stamped, numbers=(1000, 5000)) == UNKNOWN


def test_lengths_alone_identify_no_packets():
    assert arrived_longer(9, numbers=(0, 0)) == UNKNOWN
