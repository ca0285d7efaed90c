"""What the comparison of the two captures' handshakes means for the connection."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache

from detector.method import Observation
from detector.methods.handshake.changes import TABLE, Openings, changes, relay_nats
from detector.methods.handshake.opening import Opening, read_opening
from detector.pair import Pair, Vantage
from detector.vantage.capture_sides import FROM_HANDSHAKE, client_nearness
from pepscope.captures.packets import Direction
from pepscope.results.finding import Finding, Weight, inapplicable, intact, split
from pepscope.results.hypotheses import logistic
from pepscope.results.verdicts import Evidence, Number

NAME = "handshake"
#: Lists of options that are written once.
_REMEMBERED = 1024
_NUMBER_NAMES = {field: field.lower().replace(" ", "_") for field in TABLE}
#: Natural-log likelihood ratio that decides what made the handshake, as in the identity method: a thousand to one.
DECISIVE_NATS = math.log(1000.0)
#: From ten to one a handshake supports one answer without deciding.
SUPPORTING_NATS = math.log(10.0)
#: The captures' sides are sure where the client's share of the handshake's time differs by so much between them: the
#: shares are 1 at the client's host, 0 at the server's, and equal where both captures were taken at one place.
SURE_OF_SIDES = 0.25


class HandshakeFinding(Finding):
    """SYN and SYN-ACK at both ends. Middleboxes that acknowledge locally pass handshakes on."""

    HANDSHAKE_OF_ANOTHER_STACK = split(
        "handshake-of-another-stack",
        Weight(
            "handshake", -5.0, 0.0, 0.0, -5.0,
            "The handshake carries what neither normalisers nor SYN proxies write, such as options that were never "
            "sent.",
        ),
    )  # fmt: skip
    HANDSHAKE_MADE_ANEW = split(
        "handshake-made-anew",
        Weight(
            "handshake", -2.5, 0.0, 0.0, -2.5, "SYN proxies, and normalisers that rewrite everything, do so, too.",
        ),
    )  # fmt: skip
    HANDSHAKE_SAME_SEGMENTS = intact(
        "handshake-same-segments",
        Weight(
            "handshake", 0.0, -2.5, -2.5, 0.0, "Splits make handshakes of their own, but some begin only after it.",
        ),
    )  # fmt: skip
    HANDSHAKE_REWRITTEN = inapplicable("handshake-rewritten")
    NO_HANDSHAKE = inapplicable("no-handshake")
    NEEDS_SECOND_CAPTURE = inapplicable("needs-second-capture", is_missing=True)


def examine(observation: Observation) -> Evidence:
    """Compare SYN and SYN-ACK as they left with what arrived."""
    pair = observation.pair
    client, server = pair.client_side, pair.server_side
    if client is None or server is None:
        return HandshakeFinding.NEEDS_SECOND_CAPTURE.undecided(
            NAME, "Only one capture holds this connection: no handshake to compare."
        )
    openings = read_openings(client, server)
    if not openings:
        return HandshakeFinding.NO_HANDSHAKE.undecided(NAME, "The captures have no SYN and no SYN-ACK in common.")
    found = changes(openings)
    nats = relay_nats(found)
    if not _sides_are_sure(pair, client, server):
        # An option removed in one order of the captures is added in the other: take the milder reading.
        swapped = {direction: (came, left) for direction, (left, came) in openings.items()}
        found_swapped = changes(swapped)
        nats_swapped = relay_nats(found_swapped)
        if nats_swapped < nats:
            openings, found, nats = swapped, found_swapped, nats_swapped
    return _judge(pair, openings, found, nats)


def read_openings(client: Vantage, server: Vantage) -> Openings:
    """SYN and SYN-ACK as they left and as they arrived, where both captures hold them."""
    found: dict[Direction, tuple[Opening, Opening]] = {}
    for direction, emitter, arriver in ((Direction.UP, client, server), (Direction.DOWN, server, client)):
        left, came = read_opening(emitter, direction), read_opening(arriver, direction)
        if left is not None and came is not None:
            found[direction] = (left, came)
    return found


def _sides_are_sure(pair: Pair, client: Vantage, server: Vantage) -> bool:
    if pair.options.first_at_client is not None:
        return True
    near, far = client_nearness(client.connection), client_nearness(server.connection)
    return min(near[1], far[1]) >= FROM_HANDSHAKE and near[0] - far[0] >= SURE_OF_SIDES


def _judge(pair: Pair, openings: Openings, found: Mapping[str, str], nats: float) -> Evidence:
    numbers = _numbers(openings, found, nats)
    changed = _in_words({field: what for field, what in found.items() if what not in ("equal", "not raised")})
    strength = logistic(abs(nats))
    if nats >= DECISIVE_NATS:
        return HandshakeFinding.HANDSHAKE_OF_ANOTHER_STACK.evidence(
            NAME, strength * pair.pairing_confidence,
            f"Another TCP stack made the handshake that arrives: {changed}.", numbers,
            ("A firewall that answers SYNs for a server (SYN proxy) also makes handshakes, but seldom like this one.",),
        )  # fmt: skip
    if nats >= SUPPORTING_NATS:
        return HandshakeFinding.HANDSHAKE_MADE_ANEW.evidence(
            NAME, strength * pair.pairing_confidence,
            f"The handshake arrives as another TCP stack would make it: {changed}.", numbers,
            ("A firewall that answers SYNs for a server (SYN proxy), or rewrites every field, looks the same.",),
        )  # fmt: skip
    if nats <= -SUPPORTING_NATS:
        but = f" (on the way: {changed})" if changed else ""
        return HandshakeFinding.HANDSHAKE_SAME_SEGMENTS.evidence(
            NAME, strength,
            f"SYN and SYN-ACK arrive as they left{but}.", numbers,
            ("A middlebox may forward the handshake and later acknowledge data before the receiver has them.",),
        )  # fmt: skip
    return HandshakeFinding.HANDSHAKE_REWRITTEN.undecided(
        NAME,
        "Firewalls and NATs change a handshake like this, and so does another TCP stack of the same kind: "
        f"{changed or 'no change in what both captures hold'}.",
        numbers,
    )


def _in_words(changed: Mapping[str, str]) -> str:
    return ", ".join(f"{field} {what}" for field, what in changed.items())


def _numbers(openings: Openings, found: Mapping[str, str], nats: float) -> dict[str, Number]:
    numbers: dict[str, Number] = {"relay_nats": round(nats, 2), "segments": len(openings)}
    for field, what in found.items():
        numbers[_NUMBER_NAMES[field]] = what
    for direction, (left, came) in openings.items():
        name = "syn" if direction is Direction.UP else "syn_ack"
        for when, opening in (("left", left), ("arrived", came)):
            numbers[f"{name}_options_{when}"] = "cut off" if opening.options is None else _listed(opening.options.kinds)
            numbers[f"{name}_window_{when}"] = min(opening.windows)
    return numbers


@lru_cache(_REMEMBERED)
def _listed(kinds: tuple[int, ...]) -> str:
    """Option kinds in their order, for the eye."""
    return ",".join([str(kind) for kind in kinds])
