"""The packets that show findings as `detect-2` writes them: as documents, and as text of many findings at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from pepscope import _core
from pepscope.captures.files.named_packets import EvidencePacket, locators
from pepscope.captures.provenance import time_text
from pepscope.results.encoding.templates import VALUE, Layout, Template, json_texts
from pepscope.results.evidence.named import PairPackets

#: Members of a piece of evidence that name packets, where none were looked for.
UNNAMED = {"packets": None, "find": None}

_PACKET = "capture", "frame", "time", "shows"
_LOCATOR = "capture", "display_filter", "tshark"


def packets_document(packets: Sequence[EvidencePacket] | None) -> dict[str, Any]:
    """The packets that show a finding, and how they are found again."""
    if packets is None:
        return UNNAMED
    return {
        "packets": [
            dict(zip(_PACKET, (each.capture, each.frame, time_text(each.time_ns), each.shows), strict=True))
            for each in packets
        ],
        "find": [
            {"capture": each.capture, "display_filter": each.display_filter, "tshark": each.tshark}
            for each in locators(packets)
        ],
    }


class PacketTexts:
    """Makes the last members of pieces of evidence that stand so many levels deep."""

    def __init__(self, layout: Layout, level: int) -> None:
        self._layout = layout
        self._level = level
        self._templates: dict[tuple[int, int], Template] = {}
        #: Where no packets were looked for.
        self.unnamed = b"," + layout.text(UNNAMED, level)[1:]

    def of(self, named: Sequence[PairPackets | None]) -> list[list[bytes] | None]:
        """The texts of each piece of evidence on some pairs; None of pairs without named packets."""
        made = [None if each is None else [b""] * len(each.evidence) for each in named]
        alike: dict[tuple[int, int], list[tuple[list[bytes], int, Sequence[EvidencePacket]]]] = {}
        for texts, pair in zip(made, named, strict=True):
            for place, packets in enumerate(() if pair is None else pair.evidence):
                if texts is not None and packets is not None:
                    captures = len({packet.capture for packet in packets})
                    alike.setdefault((len(packets), captures), []).append((texts, place, packets))
        for (count, captures), pieces in alike.items():
            columns = [*_columns([packets for *_, packets in pieces], count, captures)]
            filled = self._template(count, captures).filled(columns, len(pieces))
            for number, (texts, place, _) in enumerate(pieces):
                texts[place] = filled[number]
        return made

    def _template(self, count: int, captures: int) -> Template:
        key = count, captures
        if key not in self._templates:
            document = {
                "packets": [dict.fromkeys(_PACKET, VALUE)] * count,
                "find": [dict.fromkeys(_LOCATOR, VALUE)] * captures,
            }
            self._templates[key] = Template.of_members(document, self._layout, self._level)
        return self._templates[key]


def _columns(pieces: Sequence[Sequence[EvidencePacket]], count: int, captures: int) -> Iterator[_core.JsonTexts]:
    """The values of findings that so many packets of so many captures show, in the order of the template."""
    for place in range(count):
        packets = [each[place] for each in pieces]
        yield json_texts([each.capture for each in packets])
        yield json_texts([each.frame for each in packets])
        yield _core.JsonTexts.times([each.time_ns for each in packets])
        yield json_texts([each.shows for each in packets])
    found = [locators(packets) for packets in pieces]
    for place in range(captures):
        yield from (json_texts([getattr(each[place], name) for each in found]) for name in _LOCATOR)
