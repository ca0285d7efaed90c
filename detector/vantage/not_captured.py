"""What the captures of a pair lack, as their own packets prove: packets, fields, and payload that a tool blanked."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from detector.pair import Pair, Vantage
from detector.streams.summaries import COMPLETE, Summaries
from pepscope.captures.connections import MissingPackets
from pepscope.captures.direction import DIRECTIONS
from pepscope.captures.packets import Direction, PayloadSample
from pepscope.results.evidence.columns import BoolArray

_LACKS = {
    MissingPackets.ALL: "no packets",
    MissingPackets.PURE_ACKNOWLEDGEMENTS: "no pure acknowledgements",
    MissingPackets.DATA: "no packets with data",
}
#: Share of packets with cut options from which the reason of an undecided verdict names the cut.
_MOSTLY = 0.5
_NO_PAYLOAD = PayloadSample((), ())


def without_blanked(sample: PayloadSample) -> PayloadSample:
    """The payload of a stream, empty where all of it is one byte repeated.

    Tools that sanitise captures overwrite payload so; a stream that was sent so cannot be identified by its payload.
    """
    return _NO_PAYLOAD if sample.is_one_byte_repeated else sample


def missing_packets(pair: Pair) -> str:
    """One sentence on the kinds of packets that the captures lack by a filter or another route; empty without any."""
    lacking = [
        f"{vantage.capture} holds {_LACKS[kind]} from the {'client' if direction is Direction.UP else 'server'}"
        for vantage in pair.vantages
        for direction in DIRECTIONS
        if (kind := vantage.flow(direction).missing_packets) is not MissingPackets.NONE
    ]
    return f"Not captured, so not compared: {'; '.join(lacking)}." if lacking else ""


def lack_packets(vantages: Sequence[Summaries]) -> BoolArray:
    """Of which pairs `missing_packets` says something, by the summaries at their vantages."""
    lacking = np.zeros(len(vantages[0]), np.bool_)
    for summaries in vantages:
        for direction in DIRECTIONS:
            lacking |= summaries.of_flow(direction, "missing_packets") != COMPLETE
    return lacking


def hold_pure_acknowledgements(side: Summaries) -> BoolArray:
    """Of which connections a capture holds any, of either end.

    Where it holds none, nothing shows that a filter did not remove them all: questions and answers may acknowledge one
    another for ever.
    """
    return np.asarray(sum(side.of_flow(direction, "pure_acknowledgements") for direction in DIRECTIONS) > 0)


def cut_options(pair: Pair) -> str:
    """One sentence on captures whose packets were cut within the TCP options; empty where hardly any was."""
    cut = [vantage.capture for vantage in pair.vantages if _cut_share(vantage) >= _MOSTLY]
    verb = "cuts" if len(cut) == 1 else "cut"
    return f"{' and '.join(cut)} {verb} packets within the TCP options, so timestamps are unknown there." if cut else ""


def have_cut_options(vantages: Sequence[Summaries]) -> BoolArray:
    """Of which pairs `cut_options` says something, by the summaries at their vantages."""
    have_cut = np.zeros(len(vantages[0]), np.bool_)
    for summaries in vantages:
        cut, packets = (
            sum([summaries.of_flow(direction, name) for direction in DIRECTIONS], np.zeros(len(have_cut), np.int64))
            for name in ("options_truncated_packets", "packets")
        )
        have_cut |= cut / np.maximum(packets, 1) >= _MOSTLY
    return have_cut


def _cut_share(vantage: Vantage) -> float:
    flows = (vantage.connection.up, vantage.connection.down)
    packets = sum(flow.packets for flow in flows)
    return sum(flow.options_truncated_packets for flow in flows) / max(packets, 1)
