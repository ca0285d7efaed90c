"""A verdict in words: its meaning, the evidence for and against it, caveats, and what to do next."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pepscope.captures.files.named_packets import locator
from pepscope.captures.provenance import time_text
from pepscope.results.verdicts import DetectionResult, Evidence, GroupResult, Outcome, PairResult, Verdict
from pepscope.terminal import printable
from reports.detection.contract import read_document
from reports.detection.ranking import (
    by_attention,
    class_probability,
    count_by_verdict,
    groups_by_attention,
    hosts_by_attention,
    judged_alone,
    stated_probability,
    verdict_probability,
)
from reports.packets import packet_lines
from reports.quantities import describe_number, format_bytes, format_count, format_percent, format_seconds
from reports.wording import (
    STRETCHES,
    VERDICT_NAMES,
    captured_at,
    group_details,
    group_sentence,
    method_name,
    verdict_sentence,
)

#: Connections explained in full.
MAX_EXPLAINED = 20

#: Groups explained.
MAX_GROUPS = 10

#: Far hosts named of one group.
MAX_HOSTS = 8

#: Numbers shown of one piece of evidence; methods put the most important ones first.
MAX_NUMBERS = 10

#: Packets named of one piece of evidence.
MAX_PACKETS = 6

#: Below this payload a transfer is weak evidence: it fits into most senders' first window, and no queue builds up.
SHORT_TRANSFER_BYTES = 50_000


def explain(
    verdict: DetectionResult | Mapping[str, Any], *, width: int | None = None, max_connections: int = MAX_EXPLAINED
) -> str:
    """Put the evidence of a result, or of the JSON document that `detect --json` writes, into prose.

    Args:
        verdict: a result, or the parsed document.
        width: columns to wrap to; by default those of the terminal, at most 100.
        max_connections: connections explained in full, split ones first; the rest is counted.

    Raises:
        ReportError: the document is no verdict; one sentence gives the reason.
    """
    result = verdict if isinstance(verdict, DetectionResult) else read_document(verdict)
    columns = width or min(100, shutil.get_terminal_size((80, 24)).columns)
    return "\n".join(_document(result, max(40, columns), max_connections))


def _document(result: DetectionResult, width: int, most: int) -> Iterator[str]:
    yield from _made_of(result, width)
    for capture in result.captures:
        for warning in capture.warnings:
            yield from _wrap(f"Warning about {capture.path}: {warning}", width)
    if any(capture.warnings for capture in result.captures):
        yield ""
    if not result.pairs:
        yield "There is no connection to explain."
        return
    order = by_attention(result.pairs)
    if len(order) > 1:
        counts = ", ".join(
            f"{format_count(n)} {VERDICT_NAMES[kind]}" for kind, n in count_by_verdict(result.verdicts).items()
        )
        yield from _wrap(f"{format_count(len(order))} connections: {counts}.", width)
        yield ""
    yield from _groups(result, width)
    for place, index in enumerate(order[:most]):
        if place:
            yield ""
        yield from _connection(result.pairs[index], width, one_vantage=judged_alone(result))
    if len(order) > most:
        yield ""
        yield from _wrap(
            f"{format_count(len(order) - most)} more connections are not shown here: split ones come first, then "
            "inconclusive ones, then the largest.",
            width,
        )


def _made_of(result: DetectionResult, width: int) -> Iterator[str]:
    """What judged which files, and when these were captured."""
    if result.tool is None:
        return
    options = ", ".join(f"{name} {value}" for name, value in result.tool.options.items() if value not in (None, False))
    yield from _wrap(f"Judged by pepscope {result.tool.version} ({options}).", width)
    for capture in result.captures:
        when = "" if capture.started_ns is None else f" began {time_text(capture.started_ns)}"
        digest = "" if capture.sha256 is None else f", SHA-256 {capture.sha256}"
        yield from _wrap(f"{capture.path}:{when}{digest}", width, "  ", "    ")
    yield ""


def _groups(result: DetectionResult, width: int) -> Iterator[str]:
    """The groups, before the single connections; those of one vantage point with what they rest on."""
    groups = groups_by_attention(result.groups)
    for group in groups[:MAX_GROUPS]:
        share = class_probability(group) if group.by_host else verdict_probability(group)
        certainty = "" if share is None else f" Probability: {format_percent(share)}."
        details = "; ".join([*captured_at(group, result.captures), *group_details(group)])
        size = f"{format_count(len(group.pairs))} connection{'' if len(group.pairs) == 1 else 's'}"
        yield from _wrap(
            f"Group of {size}, clients in {group.network}, port {group.port} "
            f"({details}): {VERDICT_NAMES[group.verdict]}. {group_sentence(group)}{certainty} {group.reason}",
            width,
        )
        if group.by_host:
            yield from _grounds(group, width)
        yield ""
    if len(groups) > MAX_GROUPS:
        yield from _wrap(f"{format_count(len(groups) - MAX_GROUPS)} more groups are not shown here.", width)
        yield ""


def _grounds(group: GroupResult, width: int) -> Iterator[str]:
    """The evidence of a group that one vantage point shows, and its far hosts one by one."""
    yield from _wrap(f"Judged: {STRETCHES[group.side][0].lower()}{STRETCHES[group.side][1:]}.", width, "  ", "  ")
    for item in group.evidence:
        name = method_name(item.method)
        # The first piece says what the reason says.
        said = "as above" if item.summary == group.reason else item.summary.removesuffix(".")
        caveats = f" {' '.join(item.caveats)}" if item.caveats else ""
        yield from _wrap(
            f"- {name[:1].upper()}{name[1:]} ({_firmness(item.strength)}): {said}.{caveats}", width, "  ", "    "
        )
        yield from _packets(item, width)
    if len(group.by_host) < 2:
        return
    hosts = hosts_by_attention(group)
    for host in hosts[:MAX_HOSTS]:
        known = (
            ("near leg", host.near_round_trip_s),
            ("hidden leg", host.hidden_round_trip_s),
            ("reference", host.reference_round_trip_s),
        )
        times = "".join(f", {name} {format_seconds(time)}" for name, time in known if time is not None)
        yield from _wrap(
            f"- {host.host}: {VERDICT_NAMES[host.verdict]}, {format_count(host.exchanges)} "
            f"exchange{'' if host.exchanges == 1 else 's'}{times}",
            width,
            "  ",
            "    ",
        )
    if len(hosts) > MAX_HOSTS:
        yield from _wrap(f"and {format_count(len(hosts) - MAX_HOSTS)} more hosts", width, "  ")


def _connection(pair: PairResult, width: int, *, one_vantage: bool) -> Iterator[str]:
    first = pair.vantages[0]
    title = f"{first.client} -> {first.server}"
    yield from _wrap(title, width)
    yield "=" * min(width, len(title))
    yield from _wrap(_where(pair), width)
    for vantage in pair.vantages:
        if vantage.frames is not None:
            found = locator(vantage.capture, vantage.display_filter)
            yield f"  {printable(found.tshark or found.display_filter)}"
    yield ""
    share = stated_probability(pair, one_vantage=one_vantage)
    certainty = "" if share is None else f" Probability: {format_percent(share)}."
    yield from _wrap(f"Verdict: {VERDICT_NAMES[pair.verdict]}. {verdict_sentence(pair)}{certainty}", width)
    yield from _wrap(pair.reason, width)
    split = [item for item in _decided(pair) if item.outcome is Outcome.SPLIT]
    intact = [item for item in _decided(pair) if item.outcome is Outcome.INTACT]
    if pair.verdict is Verdict.INCONCLUSIVE:
        groups = (("Evidence for a split:", split), ("Evidence for an end-to-end connection:", intact))
    elif pair.verdict is Verdict.REGULAR:
        groups = (("Evidence for it:", intact), ("Evidence against it:", split))
    else:
        groups = (("Evidence for it:", split), ("Evidence against it:", intact))
    for heading, items in groups:
        yield ""
        yield heading
        yield from _pieces(items, width)
    yield from _not_applicable(pair, width)
    yield from _caveats(pair, width)
    if pair.verdict is Verdict.INCONCLUSIVE:
        yield from _next_steps(pair, split, intact, width)


def _where(pair: PairResult) -> str:
    if len(pair.vantages) == 1:
        seen = f"Seen in {pair.vantages[0].capture} only."
    else:
        a, b = pair.vantages
        seen = f"Seen in {a.capture} and in {b.capture}"
        same = (a.client, a.server) == (b.client, b.server)
        seen += "" if same else f", there as {b.client} -> {b.server}"
        seen += "." if a.transport == b.transport else f", {a.transport.upper()} here and {b.transport.upper()} there."
        if pair.pairing_ground:
            seen += f" Paired by the {pair.pairing_ground} ({format_percent(pair.pairing_confidence)} sure)."
    if not pair.packets:
        return seen
    return (
        f"{seen} {format_count(pair.packets)} packets in {format_seconds(pair.duration_s)}, payload "
        f"{format_bytes(pair.payload_bytes_up)} up (client to server) and {format_bytes(pair.payload_bytes_down)} down."
    )


def _decided(pair: PairResult) -> list[Evidence]:
    return sorted(
        (item for item in pair.evidence if item.outcome is not Outcome.INAPPLICABLE), key=lambda item: -item.strength
    )


def _pieces(items: Sequence[Evidence], width: int) -> Iterator[str]:
    if not items:
        yield "  Nothing."
    for item in items:
        name = method_name(item.method)
        yield from _wrap(
            f"- {name[:1].upper()}{name[1:]} ({_firmness(item.strength)}, strength {item.strength:.2f}): "
            f"{item.summary}",
            width,
            "  ",
            "    ",
        )
        known = [(key, value) for key, value in item.numbers.items() if value is not None]
        numbers = "; ".join(": ".join(describe_number(key, value)) for key, value in known[:MAX_NUMBERS])
        if len(known) > MAX_NUMBERS:
            numbers += f"; {len(known) - MAX_NUMBERS} more in the JSON"
        if numbers:
            yield from _wrap(f"({numbers})", width, "    ", "    ")
        yield from _packets(item, width)


def _packets(item: Evidence, width: int) -> Iterator[str]:
    """The packets that show a finding; lines for a shell are not wrapped, so that they can be pasted."""
    for line in packet_lines(item.packets or (), most=MAX_PACKETS):
        if line.startswith("frame ") or line[0].isdigit():
            yield from _wrap(f"- {line}", width, "    ", "      ")
        else:
            yield f"    {printable(line)}"


def _firmness(strength: float) -> str:
    if strength >= 0.9:
        return "very firm"
    if strength >= 0.6:
        return "firm"
    return "moderate" if strength >= 0.3 else "weak"


def _not_applicable(pair: PairResult, width: int) -> Iterator[str]:
    undecided = [item for item in pair.evidence if item.outcome is Outcome.INAPPLICABLE]
    if not undecided:
        return
    yield ""
    yield "What could not be applied:"
    for item in undecided:
        name = method_name(item.method)
        yield from _wrap(f"- {name[:1].upper()}{name[1:]}: {item.summary}", width, "  ", "    ")
        yield from _packets(item, width)


def _caveats(pair: PairResult, width: int) -> Iterator[str]:
    reported = dict.fromkeys(
        f"- {text} ({method_name(item.method)})" for item in _decided(pair) for text in item.caveats
    )  # a caveat that two directions share is written once
    if not reported:
        return
    yield ""
    yield "What could have misled:"
    for text in reported:
        yield from _wrap(text, width, "  ", "    ")


def _next_steps(pair: PairResult, split: Sequence[Evidence], intact: Sequence[Evidence], width: int) -> Iterator[str]:
    yield ""
    yield "What to do next:"
    for step in next_steps(pair, split, intact):
        yield from _wrap(f"- {step}", width, "  ", "    ")


def next_steps(pair: PairResult, split: Sequence[Evidence], intact: Sequence[Evidence]) -> list[str]:
    """What would settle an inconclusive verdict, most useful first."""
    steps = []
    if len(pair.vantages) == 1:
        steps.append(
            f"Capture the same transfer at the other end too, at the same time as {pair.vantages[0].capture}, and give "
            "both files to 'pepscope detect'."
        )
    total = pair.payload_bytes_up + pair.payload_bytes_down
    if pair.packets and total < SHORT_TRANSFER_BYTES:
        steps.append(
            f"Repeat with a longer transfer: {format_bytes(total)} of payload build up no queue at which a split "
            "shows; 1 MB or more does."
        )
    if split and intact:
        steps.append(
            "The methods disagree: look at the page (--html) for captured packets that are missing, clocks that step, "
            "or a capture taken behind offloading hardware, and repeat with both captures on the hosts themselves."
        )
    if pair.packets and pair.payload_bytes_down > 10 * max(1, pair.payload_bytes_up) and not split:
        steps.append("Transfer in the other direction as well; a split may show only there.")
    if any(item.method == "delayed_ack" and item.outcome is Outcome.INAPPLICABLE for item in pair.evidence):
        steps.append(
            "Delay the receiver's acknowledgements by a known time T, longer than any queue on the path, and run "
            "'pepscope detect --ack-delay T': a round trip shorter than T then proves a split."
        )
    if not steps:
        steps.append(
            "Capture from the SYN on, with whole headers and without filters, and repeat with a longer transfer."
        )
    return steps


def _wrap(text: str, width: int, first: str = "", rest: str = "") -> list[str]:
    return textwrap.wrap(
        printable(text), width, initial_indent=first, subsequent_indent=rest, break_on_hyphens=False
    ) or [""]
