"""The same transfer with other bytes or another size at its two ends."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import numpy as np

from detector.method import Context, Findings
from detector.methods.content.findings import NAME, ContentFinding
from detector.methods.content.stream_heads import (
    PROXY_FIELDS,
    added_fields,
    consumed_request,
    header_field,
    headers_differ,
    opening,
    shown,
)
from detector.pair import Pair, StreamAlignment, Vantage
from detector.pairing.alignment import compare
from detector.streams.known import UNKNOWN
from detector.streams.loaded import payload_of
from detector.streams.sides import Sides
from detector.streams.size_changes import GATEWAY_BYTES, size_changes
from pepscope import _core
from pepscope.captures.direction import DIRECTIONS
from pepscope.captures.packets import Direction, Int64Array
from pepscope.results.evidence.columns import BoolArray, EvidenceColumns, Figure, Words, evidence_where
from pepscope.results.transfer_findings import TransferFinding
from pepscope.results.verdicts import Evidence, Number

#: Payload pieces that must have been compared before bytes count as different.
FEWEST_PIECES = 3
#: Share of pieces that agree: above the first the bytes are the same, below the second they are others.
SAME_SHARE = 0.9
OTHER_SHARE = 0.5
#: What proxies add to a head or take from it, at most: Via, X-Forwarded-For, Age and their like take a few hundred.
HEAD_CHANGE_BYTES = 1024

#: The head of an HTTP message as it left and as it arrived; None where there is none.
Head = tuple[bytes | None, bytes | None]


def examine(context: Context) -> Findings:
    """Compare bytes and sizes of both streams; nothing where another part of this method reports the missing stream."""
    sides = context.sides
    grown = size_changes(sides)
    changes = [[None if size == UNKNOWN else size for size in way] for way in grown.tolist()]
    evidence: dict[int, Evidence] = {
        row: _no_counterpart()
        for row in context.seen_once.tolist()
        if (observation := context.observations[row]).absent is None and observation.place is None
    }
    are_alike = _are_alike(sides, grown)
    for place in np.flatnonzero(~are_alike).tolist():
        grown_up, grown_down = changes[0][place], changes[1][place]
        pair, client, server = sides.pairs[place], sides.clients[place], sides.servers[place]
        found = _changed_content(pair, client, server, (grown_up, grown_down))
        if found is None:
            are_alike[place] = True
        else:
            evidence[int(sides.rows[place])] = found
    compared = _sizes(sides, np.flatnonzero(are_alike))
    columns = [part.at(sides.rows[are_alike]) for part in compared]
    return Findings.of_rows(evidence, columns)


def _are_alike(sides: Sides, grown_bytes: Int64Array) -> BoolArray:
    """Of which connections nothing can be found to differ: streams of one size that begin alike, by as much as was
    compared."""
    alike = ((grown_bytes == 0) | (grown_bytes == UNKNOWN)).all(axis=0)
    for direction in DIRECTIONS:
        aligned = sides.aligned(direction)
        payload = (payload_of(side, direction) for side in (sides.clients, sides.servers))
        sizes = (side.of_flow(direction, "stream_bytes") for side in (sides.client, sides.server))
        alike &= np.equal(*sizes) & _core.same_openings(*payload)
        alike &= (aligned.compared < FEWEST_PIECES) | (aligned.matched >= OTHER_SHARE)
    return np.asarray(alike)


@cache
def _no_counterpart() -> Evidence:
    return ContentFinding.NO_COUNTERPART.undecided(
        NAME, "Only one capture holds this connection: a cache may have answered, or the other capture missed it."
    )


_NOTHING_COMPARED = Words("The captures hold no payload to compare.")
_ALIKE = Words("Bytes and sizes are the same at both ends, as a relay leaves them too.")


def _sizes(sides: Sides, places: Int64Array) -> list[EvidenceColumns]:
    """The evidence on connections of which neither bytes nor sizes are shown to differ."""
    figures: list[Figure] = []
    total = np.zeros(len(places), np.int64)
    for direction in DIRECTIONS:
        name, aligned = direction.name.lower(), sides.aligned(direction)
        known, compared = aligned.is_known[places], aligned.compared[places]
        total += compared
        figures += [
            Figure(f"{name}_client_side_bytes", sides.client.of_flow(direction, "stream_bytes")[places]),
            Figure(f"{name}_server_side_bytes", sides.server.of_flow(direction, "stream_bytes")[places]),
            Figure(f"{name}_pieces_compared", compared, known),
            Figure(f"{name}_pieces_equal", aligned.matched[places], known),
        ]
    return [
        *evidence_where(total == 0, NAME, ContentFinding.NO_PAYLOAD, figures, _NOTHING_COMPARED),
        *evidence_where(total > 0, NAME, ContentFinding.SAME_CONTENT, figures, _ALIKE),
    ]


def _changed_content(
    pair: Pair, client: Vantage, server: Vantage, grown_bytes: tuple[int | None, int | None]
) -> Evidence | None:
    """What shows that a stream arrives with other bytes, or with another size (`grown_bytes` of it up and down)."""
    consumed = consumed_request(client, server)
    if consumed:
        return ContentFinding.PROXY_REQUEST_CONSUMED.evidence(
            NAME, 0.95 * pair.pairing_confidence,
            f"The client sends a proxy a {consumed} request, and the server never gets it: the proxy consumes the "
            "request and relays the bytes that follow.", {"request": consumed},
        )  # fmt: skip
    heads = {
        Direction.UP: (opening(client, Direction.UP), opening(server, Direction.UP)),
        Direction.DOWN: (opening(server, Direction.DOWN), opening(client, Direction.DOWN)),
    }
    return (
        _other_body(pair, client, server, heads[Direction.DOWN], grown_bytes[Direction.DOWN])
        or _rewritten_head(pair, heads)
        or _grown_head(pair, client, server, heads)
        or _other_bytes(pair, client, server, grown_bytes)
    )


def _other_body(pair: Pair, client: Vantage, server: Vantage, head: Head, changed: int | None) -> Evidence | None:
    """An HTTP answer with other bytes and another size, whose length one capture cut off."""
    left, arrived = head
    if left is None or arrived is None:
        return None
    alignment = pair.alignment.get(Direction.DOWN)
    if alignment is None or changed is None:
        return None
    cut = any(b"\r\n\r\n" not in head and header_field(head, b"content-length") is None for head in (left, arrived))
    if not cut or abs(changed) <= HEAD_CHANGE_BYTES or not _is_other(alignment):
        return None
    sizes = [vantage.connection.down.stream_bytes for vantage in (server, client)]
    return ContentFinding.OTHER_BODY.evidence(
        NAME, 0.95 * pair.pairing_confidence,
        f"The answer leaves with {sizes[0]:,} bytes and arrives with {sizes[1]:,}, and "
        f"{100 * (1 - alignment.matched):.0f} % of the compared payload differs: a proxy rewrote its body.",
        {"left_bytes": sizes[0], "arrived_bytes": sizes[1], "pieces_compared": alignment.compared},
        ("The captures cut the head before Content-Length, so the proxy may have rewritten the body as it read it.",),
    )  # fmt: skip


def _grown_head(pair: Pair, client: Vantage, server: Vantage, heads: Mapping[Direction, Head]) -> Evidence | None:
    """An HTTP head that arrives longer or shorter than it left, where the captures do not hold it to its end.

    The body behind it agrees, by as many bytes farther from the SYN as the whole stream is longer.
    """
    for direction, (left, arrived) in heads.items():
        if left is None or arrived is None:
            continue
        growth = server.flow(direction).stream_bytes - client.flow(direction).stream_bytes
        if not 0 < abs(growth) <= HEAD_CHANGE_BYTES:
            continue
        payload = client.payload[direction], server.payload[direction]
        (compared, matched), (beside, agreed) = compare(*payload, growth), compare(*payload, 0)
        if compared >= FEWEST_PIECES and matched >= SAME_SHARE and compared * matched > 2 * beside * agreed:
            added = growth if direction is Direction.UP else -growth
            return TransferFinding.REWRITTEN_HEADERS.evidence(
                NAME, 0.9 * pair.pairing_confidence,
                f"The HTTP {'request' if direction is Direction.UP else 'response'} arrives with a head {abs(added)} "
                f"bytes {'longer' if added > 0 else 'shorter'} than it left with, and the same body: a proxy rewrote "
                "it.",
                {"direction": direction.name.lower(), "added_bytes": added, "pieces_compared": compared},
            )  # fmt: skip
    return None


def _rewritten_head(pair: Pair, heads: Mapping[Direction, Head]) -> Evidence | None:
    """An HTTP head that arrives with other fields or another length of the body."""
    for direction, (left, arrived) in heads.items():
        if left is not None and arrived is not None and headers_differ(left, arrived):
            lengths = [header_field(message, b"content-length") for message in (left, arrived)]
            if direction is Direction.DOWN and None not in lengths and lengths[0] != lengths[1]:
                return ContentFinding.RECOMPRESSED.evidence(
                    NAME, 0.95 * pair.pairing_confidence,
                    f"The answer leaves with a body of {shown(lengths[0])} bytes and arrives with one of "
                    f"{shown(lengths[1])}: a proxy read it whole and rewrote it.",
                    {"left_content_length": shown(lengths[0]), "arrived_content_length": shown(lengths[1])},
                )  # fmt: skip
            added = sorted(name.decode("ascii") for name in added_fields(left, arrived))
            known = [name for name in added if name.encode() in PROXY_FIELDS]
            return TransferFinding.REWRITTEN_HEADERS.evidence(
                NAME, (0.98 if known else 0.9) * pair.pairing_confidence,
                f"The HTTP {'request' if direction is Direction.UP else 'response'} arrives with another header than "
                f"it left with{f' (added: {chr(44).join(added)})' if added else ''}: a proxy rewrote it.",
                {"direction": direction.name.lower(), "added_fields": ", ".join(added)},
            )  # fmt: skip
    return None


def _other_bytes(
    pair: Pair, client: Vantage, server: Vantage, grown_bytes: tuple[int | None, int | None]
) -> Evidence | None:
    """Payload that differs, or a stream of another size."""
    if not any(grown_bytes) and not any(map(_is_other, pair.alignment.values())):
        return None
    numbers: dict[str, Number] = {}
    for direction, name in ((Direction.UP, "up"), (Direction.DOWN, "down")):
        alignment = pair.alignment.get(direction)
        numbers[f"{name}_client_side_bytes"] = client.flow(direction).stream_bytes
        numbers[f"{name}_server_side_bytes"] = server.flow(direction).stream_bytes
        if alignment is not None:
            numbers[f"{name}_pieces_compared"] = alignment.compared
            numbers[f"{name}_pieces_equal"] = alignment.matched
            # What a gateway lengthens moves all that follows, which then differs piece by piece: its size says that.
            if _is_other(alignment) and not _is_gateway(grown_bytes[direction]):
                return TransferFinding.OTHER_BYTES.evidence(
                    NAME, (1.0 - alignment.matched) * pair.pairing_confidence,
                    f"{100 * (1 - alignment.matched):.0f} % of the compared payload differs between the captures: a "
                    "middlebox changed the content.", numbers,
                    ("Two different connections that were paired by mistake look the same.",),
                )  # fmt: skip
    for direction, changed in zip(DIRECTIONS, grown_bytes, strict=True):
        if changed:
            strong = not _is_gateway(changed)
            return ContentFinding.OTHER_SIZE.evidence(
                NAME, (0.9 if strong else 0.4) * pair.pairing_confidence,
                f"The {direction.name.lower()} stream ends {abs(changed)} bytes "
                f"{'later' if changed > 0 else 'earlier'} where it arrives than where it left: it was rewritten.",
                numbers, () if strong else ("An application gateway of a NAT changes sizes by a few bytes, too.",),
            )  # fmt: skip
    return None


def _is_gateway(grown_bytes: int | None) -> bool:
    """Whether a stream grew or shrank by so little as an application gateway changes it."""
    return grown_bytes is not None and 0 < abs(grown_bytes) <= GATEWAY_BYTES


def _is_other(alignment: StreamAlignment) -> bool:
    return alignment.compared >= FEWEST_PIECES and alignment.matched < OTHER_SHARE
