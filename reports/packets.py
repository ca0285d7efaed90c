"""The packets behind findings for readers: in prose and on the page, with what finds them in Wireshark and tshark."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from html import escape
from pathlib import PurePath

from pepscope.captures.files.named_packets import EvidencePacket, Locator, locator, locators
from pepscope.captures.provenance import time_text
from pepscope.results.verdicts import PairResult
from reports.quantities import format_count


def packet_lines(packets: Sequence[EvidencePacket], *, most: int) -> Iterator[str]:
    """A line a packet, then a line for tshark a capture."""
    for packet in packets[:most]:
        yield f"frame {packet.frame} of {packet.capture}, {time_text(packet.time_ns)}: {packet.shows}"
    if len(packets) > most:
        yield f"{format_count(len(packets) - most)} more in the JSON"
    for each in locators(packets):
        yield each.tshark or f"display filter: {each.display_filter}"


def packets_table(packets: Sequence[EvidencePacket] | None) -> str:
    """The packets of a finding, folded away, with the filters; nothing where none are named."""
    if not packets:
        return ""
    rows = "".join(
        f'<tr><td class="number">{packet.frame}</td><td>{escape(packet.shows)}</td>'
        f'<td class="time"><span class="path" title="{escape(packet.capture)}">'
        f"{escape(PurePath(packet.capture).name)}</span><br>{time_text(packet.time_ns)}</td></tr>"
        for packet in packets
    )
    return (
        '<details class="packets"><summary>packets</summary><table><thead><tr><th scope="col">Frame</th>'
        '<th scope="col">What it does</th><th scope="col">Capture, and time by its clock</th></tr>'
        f"</thead><tbody>{rows}</tbody></table>{filters_list(locators(packets))}</details>"
    )


def without_packets(pair: PairResult) -> PairResult:
    """The connection without the packets of its evidence."""
    return replace(pair, evidence=tuple(replace(item, packets=None) for item in pair.evidence))


def vantage_filters(pair: PairResult) -> str:
    """How a connection is found in each of its captures."""
    found = [locator(vantage.capture, vantage.display_filter) for vantage in pair.vantages]
    return f'<details class="packets"><summary>in Wireshark</summary>{filters_list(found)}</details>'


def filters_list(found: Sequence[Locator]) -> str:
    """Display filters and lines for a shell, to be copied."""
    rows = "".join(
        f'<dt class="path">{escape(PurePath(each.capture).name)}</dt>'
        f"<dd><code>{escape(each.display_filter)}</code></dd>"
        + ("" if each.tshark is None else f"<dd><code>{escape(each.tshark)}</code></dd>")
        for each in found
    )
    return f'<dl class="filters">{rows}</dl>'
