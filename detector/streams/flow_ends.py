"""Where a flow begins and ends in a capture: the copies of its SYN (or SYN-ACK), and its FIN."""

from __future__ import annotations

from pepscope import _core
from pepscope.captures.packets import Direction, PacketColumns


def flow_ends(packets: PacketColumns, direction: Direction) -> _core.FlowEnds:
    """What the copies of `direction`'s SYN hold, and the stream offset of its FIN."""
    return _core.flow_ends(direction, packets)
