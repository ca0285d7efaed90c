"""Round trips besides TCP with the far hosts of a group: echo and UDP, which no TCP split shortens."""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import IPv6Address, ip_address

import numpy as np

from detector.presentation.telling_packets.telling import duration
from pepscope.captures.capture import Capture
from pepscope.captures.files.named_packets import EvidencePacket
from pepscope.captures.references import ReferenceKind
from pepscope.results.verdicts import GroupSide

_IPV4_PREFIX = bytes(10) + b"\xff\xff"


def fastest_references(
    capture: Capture, connections: Sequence[int], side: GroupSide, most: int
) -> list[EvidencePacket]:
    """Request and answer of the fastest reference of each far host of the connections, the fastest hosts first.

    Only references whose answer must be to that request; `side` is where the capture was taken.
    """
    tied = capture.references().tied()
    fastest: dict[bytes, int] = {}
    for row in np.argsort(tied.round_trip_ns, kind="stable").tolist():
        fastest.setdefault(tied.host_address[row].tobytes(), row)
    far = [capture.connections[number] for number in connections]
    hosts = {each.server_address if side is GroupSide.CLIENT else each.client_address for each in far}
    rows = [(fastest[packed], host) for host in hosts if (packed := _packed(host)) in fastest]
    made: list[EvidencePacket] = []
    for row, host in sorted(rows, key=lambda each: (int(tied.round_trip_ns[each[0]]), each))[:most]:
        asked_ns, took_ns = int(tied.asked_ns[row]), int(tied.round_trip_ns[row])
        kind = ReferenceKind(int(tied.kind[row])).title
        asked, answered = (capture.located(int(frames[row])) for frames in (tied.asked_frame, tied.answered_frame))
        made += [
            EvidencePacket(*asked, asked_ns, f"asks {host} outside TCP ({kind})"),
            EvidencePacket(*answered, asked_ns + took_ns, f"answers, {duration(took_ns / 1e9)} after the request"),
        ]
    return made


def _packed(host: str) -> bytes:
    """An address as 16 bytes, IPv4 behind ::ffff:0:0/96."""
    address = ip_address(host)
    return address.packed if isinstance(address, IPv6Address) else _IPV4_PREFIX + address.packed
