"""What the comparison of the two captures' handshakes means for the connection."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

from detector.methods.handshake.changes import Openings, changes, relay_nats
from detector.methods.handshake.opening import Opening, read_opening
from detector.pair import Pair, Vantage
from detector.vantage_side import client_nearness
from pepscope.packets import Direction
from pepscope.results import Evidence, Number, Outcome

if TYPE_CHECKING:
    from detector.clock import ClockRelation

METHOD = "handshake"
#: Natural-log likelihood ratio that decides what made the handshake, as in the identity method: a thousand to one.
DECISIVE_NATS = math.log(1000.0)
#: From ten to one a handshake supports one answer without deciding.
SUPPORTING_NATS = math.log(10.0)
#: The captures' sides are sure where the client's share of the handshake's time differs by so much between them: the
#: shares are 1 at the client's host, 0 at the server's, and equal where both captures were taken at one place.
SURE_OF_SIDES = 0.25
#: What marks a nearness that was read off the handshake's times, see `client_nearness`.
_FROM_HANDSHAKE = 3.0


def examine(pair: Pair, clock: ClockRelation) -> Evidence:
    """Compare SYN and SYN-ACK as they left with what arrived.

    Findings: `handshake-of-another-stack` and, weaker, `handshake-made-anew` (split), `handshake-same-segments`
    (intact, weak), `handshake-rewritten`, `no-handshake`, `needs-second-capture`.
    """
    client, server = pair.client_side, pair.server_side
    if client is None or server is None:
        return _inapplicable("needs-second-capture", "Only one capture holds this connection: no handshake to compare.")
    readings = [read_openings(client, server)]
    if not _sides_are_sure(pair, client, server):
        # What one order of the captures shows as taken out, the other shows as added: believe the milder.
        readings.append(read_openings(server, client))
    readings = [openings for openings in readings if openings]
    if not readings:
        return _inapplicable("no-handshake", "The captures have neither SYN nor SYN-ACK in common.")
    openings = min(readings, key=lambda item: relay_nats(changes(item)))
    found = changes(openings)
    return _judge(pair, openings, found, relay_nats(found))


def read_openings(client: Vantage, server: Vantage) -> Openings:
    """SYN and SYN-ACK as they left and as they arrived, where both captures hold them."""
    found: dict[Direction, tuple[Opening, Opening]] = {}
    for direction in Direction:
        emitter, arriver = (client, server) if direction is Direction.UP else (server, client)
        left, came = read_opening(emitter, direction), read_opening(arriver, direction)
        if left is not None and came is not None:
            found[direction] = (left, came)
    return found


def _sides_are_sure(pair: Pair, client: Vantage, server: Vantage) -> bool:
    if pair.options.first_at_client is not None:
        return True
    near, far = client_nearness(client.connection), client_nearness(server.connection)
    return min(near[1], far[1]) >= _FROM_HANDSHAKE and near[0] - far[0] >= SURE_OF_SIDES


def _judge(pair: Pair, openings: Openings, found: Mapping[str, str], nats: float) -> Evidence:
    numbers = _numbers(openings, found, nats)
    changed = _in_words({field: what for field, what in found.items() if what not in ("equal", "not raised")})
    strength = 1.0 / (1.0 + math.exp(-abs(nats)))
    if nats >= DECISIVE_NATS:
        return Evidence(
            METHOD, Outcome.SPLIT, "handshake-of-another-stack", strength * pair.pairing_confidence,
            f"The handshake that arrives is another TCP's: {changed}.", numbers,
            ("A firewall that answers SYNs for a server writes handshakes anew, too, but seldom so.",),
        )  # fmt: skip
    if nats >= SUPPORTING_NATS:
        return Evidence(
            METHOD, Outcome.SPLIT, "handshake-made-anew", strength * pair.pairing_confidence,
            f"The handshake arrives as another TCP would make it: {changed}.", numbers,
            ("Firewalls that answer SYNs for a server, or rewrite them thoroughly, show the same.",),
        )  # fmt: skip
    if nats <= -SUPPORTING_NATS:
        but = f" (on the way: {changed})" if changed else ""
        return Evidence(
            METHOD, Outcome.INTACT, "handshake-same-segments", strength,
            f"SYN and SYN-ACK arrive as they left{but}.", numbers,
            ("A box may let a handshake pass and acknowledge data in the receiver's stead afterwards.",),
        )  # fmt: skip
    return _inapplicable(
        "handshake-rewritten",
        f"The handshake is changed as firewalls and NATs change it, or as another TCP of the same kind opens "
        f"connections: {changed or 'nothing that both captures hold'}.",
        numbers,
    )


def _in_words(changed: Mapping[str, str]) -> str:
    return ", ".join(f"{field} {what}" for field, what in changed.items())


def _numbers(openings: Openings, found: Mapping[str, str], nats: float) -> dict[str, Number]:
    numbers: dict[str, Number] = {"relay_nats": round(nats, 2), "segments": len(openings)}
    numbers |= {field.lower().replace(" ", "_"): what for field, what in found.items()}
    for direction, (left, came) in openings.items():
        name = "syn" if direction is Direction.UP else "syn_ack"
        for when, opening in (("left", left), ("arrived", came)):
            numbers[f"{name}_options_{when}"] = _kinds(opening)
            numbers[f"{name}_window_{when}"] = min(opening.windows)
    return numbers


def _kinds(opening: Opening) -> str:
    """Option kinds in their order, for the eye."""
    return "cut off" if opening.options is None else ",".join(str(kind) for kind in opening.kinds)


def _inapplicable(finding: str, summary: str, numbers: Mapping[str, Number] | None = None) -> Evidence:
    return Evidence(METHOD, Outcome.INAPPLICABLE, finding, 0.0, summary, numbers or {})
