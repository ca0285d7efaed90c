"""Middleboxes that change packets without splitting connections: which of them show in packets that are the same."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from detector.pair import Vantage
from pepscope.captures.packets import Direction

if TYPE_CHECKING:
    from detector.methods.identity.examination import DirectionComparison

#: Below this share of equal windows or IP IDs in packets that are otherwise the same, a middlebox rewrites them.
_REWRITTEN = 0.5
#: ACKs that left and did not arrive, beyond this share: more than ordinary loss.
_THINNED = 0.2


@dataclass(frozen=True, slots=True)
class Rewriter:
    """A harmless rewriter: its short name and what an engineer should know of it."""

    key: str
    caveat: str


def name_rewriters(
    client: Vantage, server: Vantage, comparisons: Mapping[Direction, DirectionComparison]
) -> tuple[Rewriter, ...]:
    """Name every harmless rewriter that shows between two captures of the same packets."""
    found: list[Rewriter] = []
    a, b = client.connection, server.connection
    if (a.client_address, a.client_port, a.server_address, a.server_port) != (
        b.client_address, b.client_port, b.server_address, b.server_port,
    ):  # fmt: skip
        found.append(Rewriter("nat", f"A NAT translates addresses or ports: {a.client} appears as {b.client}."))
    found += _handshake_rewriters(client, server)
    found += _segment_rewriters(comparisons)
    found += _thinning(comparisons)
    return tuple(found)


def _handshake_rewriters(client: Vantage, server: Vantage) -> list[Rewriter]:
    found: list[Rewriter] = []
    clamped = isn = sack = False
    near, far = client.connection, server.connection
    for out, into in ((near.up, far.up), (far.down, near.down)):
        if out.initial_sequence_number is None or into.initial_sequence_number is None:
            continue
        isn |= out.initial_sequence_number != into.initial_sequence_number
        clamped |= (out.maximum_segment_size or 0) > (into.maximum_segment_size or 0) > 0
        sack |= out.sack_permitted and into.options_captured and not into.sack_permitted
    if clamped:
        found.append(Rewriter("mss-clamping", "A middlebox lowers the MSS option of the handshake."))
    if isn:
        found.append(Rewriter("isn-randomising", "A firewall shifts sequence numbers by a constant."))
    if sack:
        found.append(Rewriter("sack-stripping", "A middlebox removes the SACK option of the handshake."))
    return found


def _segment_rewriters(comparisons: Mapping[Direction, DirectionComparison]) -> list[Rewriter]:
    found: list[Rewriter] = []
    timestamps = ip_ids = lengths = False
    narrowed: list[float] = []  # share of the windows that are smaller, where windows are rewritten
    for both in comparisons.values():
        for part in (both.data, both.acknowledgements):
            if not part.with_candidate:
                continue
            timestamps |= part.tsval_shift != 0 or part.tsecr_shift != 0
            ip_ids |= "ip-id" in part.fields and part.fields["ip-id"].agreeing < _REWRITTEN
            lengths |= part.length_changes > 0.01
            if part.fields["window"].agreeing < _REWRITTEN:
                narrowed.append(part.narrowed_windows)
    if timestamps:
        found.append(Rewriter("timestamp-modulating", "A firewall shifts TCP timestamps by a constant."))
    if narrowed and min(narrowed) > _REWRITTEN:
        found.append(Rewriter("window-regulator", "A middlebox lowers the advertised receive windows."))
    elif narrowed:
        found.append(Rewriter("window-rewriting", "A middlebox rewrites the advertised receive windows."))
    if ip_ids:
        found.append(Rewriter("ip-id-rewriting", "A middlebox rewrites IP IDs."))
    if lengths:
        found.append(Rewriter("offload", "A capturing host shows offload super-packets, not the segments on the wire."))
    return found


def _thinning(comparisons: Mapping[Direction, DirectionComparison]) -> list[Rewriter]:
    for direction, both in comparisons.items():
        emitted, arrived = both.counts.emitted_acknowledgements, both.acknowledgements.arrived
        if emitted >= 20 and 1 - arrived / emitted > _THINNED:
            share = 1 - arrived / emitted
            return [
                Rewriter(
                    "ack-thinning",
                    f"{share:.0%} of acknowledgements sent {direction.name.lower()} do not arrive (thinned or lost).",
                )
            ]
    return []
