"""The packets that show findings as `detect-2` writes them: as documents, and as text of many findings at once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np

from pepscope.captures.files.named_packets import EvidencePacket, Locator, locators
from pepscope.captures.provenance import time_text
from pepscope.captures.tables.texts import times
from pepscope.results.encoding.pieces import UNNAMED
from pepscope.results.encoding.templates import VALUE, Column, Layout, Template


def packets_document(packets: Sequence[EvidencePacket] | None) -> dict[str, Any]:
    """The packets that show a finding as `detect-2` writes them, and how they are found again."""
    if packets is None:
        return UNNAMED
    return {
        "packets": packet_documents(packets),
        "find": _find_documents(locators(packets)),
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


def _find_documents(packets: Sequence[Locator]) -> list[dict[str, Any]]:
    """How packets are found again."""
    return [{"capture": each.capture, "display_filter": each.display_filter, "tshark": each.tshark} for each in packets]


class PacketTexts:
    """Makes the members that name packets, of pieces of evidence that stand so many levels deep."""

    def __init__(self, layout: Layout, level: int) -> None:
        self._layout = layout
        self._level = level
        self._templates: dict[tuple[int, int], Template] = {}

    def of(self, named: Sequence[Sequence[EvidencePacket]]) -> list[bytes]:
        """The members of each of many pieces of evidence, and its last bracket; those of as many packets in as many
        captures are filled in together."""
        found = [locators(packets) for packets in named]
        alike: dict[tuple[int, int], list[int]] = defaultdict(list)
        for place, (packets, locations) in enumerate(zip(named, found, strict=True)):
            alike[len(packets), len(locations)].append(place)
        texts = [b""] * len(named)
        for shape, places in alike.items():
            columns = _columns([named[place] for place in places], [found[place] for place in places])
            for place, text in zip(places, self._template(*shape).filled(columns, len(places)), strict=True):
                texts[place] = text
        return texts

    def _template(self, packets: int, captures: int) -> Template:
        shape = packets, captures
        if shape not in self._templates:
            named = {
                "packets": packet_documents([EvidencePacket(VALUE, 0, 0, VALUE)] * packets),
                "find": _find_documents([Locator(VALUE, VALUE, VALUE)] * captures),
            }
            for each in named["packets"]:
                each["frame"] = each["time"] = VALUE
            first, *others = Template(named, self._layout, self._level).pieces
            self._templates[shape] = Template.of_text(b"," + first[1:], *others)
        return self._templates[shape]


def _columns(named: Sequence[Sequence[EvidencePacket]], found: Sequence[Sequence[Locator]]) -> list[Column]:
    """What fills the gaps of findings with as many packets in as many captures."""
    columns: list[Column] = []
    for packets in zip(*named, strict=True):
        columns += [
            [packet.capture for packet in packets],
            [packet.frame for packet in packets],
            times(np.array([packet.time_ns for packet in packets], np.int64)),
            [packet.shows for packet in packets],
        ]
    for locations in zip(*found, strict=True):
        columns += [
            [each.capture for each in locations],
            [each.display_filter for each in locations],
            [each.tshark for each in locations],
        ]
    return columns
