"""Sentences on the packets and fields that the captures of a pair lack, as their own packets prove."""

from __future__ import annotations

from detector.pair import Pair, Vantage
from pepscope.connections import MissingPackets
from pepscope.packets import Direction

_LACKS = {
    MissingPackets.ALL: "no packets",
    MissingPackets.PURE_ACKNOWLEDGEMENTS: "no pure acknowledgements",
    MissingPackets.DATA: "no packets with data",
}
#: Share of packets with cut options from which the reason of an undecided verdict names the cut.
_MOSTLY = 0.5


def missing_packets(pair: Pair) -> str:
    """One sentence on the kinds of packets that a filter or another route kept from the captures; empty where none."""
    lacking = [
        f"{vantage.capture} holds {_LACKS[kind]} from the {'client' if direction is Direction.UP else 'server'}"
        for vantage in pair.vantages
        for direction in Direction
        if (kind := vantage.flow(direction).missing_packets) is not MissingPackets.NONE
    ]
    return f"Not captured, so not compared: {'; '.join(lacking)}." if lacking else ""


def cut_options(pair: Pair) -> str:
    """One sentence on captures whose packets were cut within the TCP options; empty where hardly any was."""
    cut = [vantage.capture for vantage in pair.vantages if _cut_share(vantage) >= _MOSTLY]
    verb = "cuts" if len(cut) == 1 else "cut"
    return f"{' and '.join(cut)} {verb} packets within the TCP options, so timestamps are unknown there." if cut else ""


def _cut_share(vantage: Vantage) -> float:
    flows = (vantage.connection.up, vantage.connection.down)
    packets = sum(flow.packets for flow in flows)
    return sum(flow.options_truncated_packets for flow in flows) / max(packets, 1)
