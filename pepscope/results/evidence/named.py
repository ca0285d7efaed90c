"""Packets of a pair apart from the pair, as a table keeps them, and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from msgspec import Struct

from pepscope.captures.files.named_packets import EvidencePacket
from pepscope.results.verdicts import Evidence, PairResult, VantageName


class PairPackets(Struct, frozen=True):
    """The packets that show what was found on one connection.

    `frames` are the first and the last frame of the connection by capture, `evidence` has an entry for each piece of
    evidence in its order.
    """

    frames: Mapping[str, tuple[int, int]]
    evidence: tuple[tuple[EvidencePacket, ...], ...]


def packets_in(pair: PairResult) -> PairPackets | None:
    """The packets that a pair's evidence names; None where none were looked for."""
    if all(item.packets is None for item in pair.evidence):
        return None
    frames = {each.capture: each.frames for each in pair.vantages if each.frames is not None}
    return PairPackets(frames, tuple(item.packets or () for item in pair.evidence))


def with_packets(
    vantages: tuple[VantageName, ...], evidence: tuple[Evidence, ...], packets: PairPackets
) -> tuple[tuple[VantageName, ...], tuple[Evidence, ...]]:
    """Vantages and evidence of a pair with the packets named."""
    return (
        tuple(replace(each, frames=packets.frames.get(each.capture)) for each in vantages),
        tuple(replace(item, packets=shown) for item, shown in zip(evidence, packets.evidence, strict=True)),
    )
