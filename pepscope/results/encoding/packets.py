"""The packets that show findings as `detect-2` writes them, as documents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pepscope.captures.files.named_packets import EvidencePacket, Locator, locators
from pepscope.captures.provenance import time_text
from pepscope.results.encoding.pieces import UNNAMED


def packets_document(packets: Sequence[EvidencePacket] | None) -> dict[str, Any]:
    """The packets that show a finding as `detect-2` writes them, and how they are found again."""
    if packets is None:
        return UNNAMED
    return {
        "packets": packet_documents(packets),
        "find": find_documents(locators(packets)),
    }


def packet_documents(packets: Sequence[EvidencePacket]) -> list[dict[str, Any]]:
    """The packets that show a finding as `detect-2` writes them."""
    return [
        {
            "capture": packet.capture,
            "frame": packet.frame,
            "time": time_text(packet.time_ns),
            "shows": packet.shows,
        }
        for packet in packets
    ]


def find_documents(packets: Sequence[Locator]) -> list[dict[str, Any]]:
    """How packets are found again."""
    return [{"capture": each.capture, "display_filter": each.display_filter, "tshark": each.tshark} for each in packets]
