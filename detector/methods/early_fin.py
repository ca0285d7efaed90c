"""End of stream: a FIN that arrives before the far end sent its own (RFC 9293, section 3.6).

A FIN takes a place in its stream behind the last byte, so end to end it arrives no sooner than it left, as data do. A
proxy that has taken an answer whole ends its connection to the server while it still forwards the answer; the server
then gets a FIN that the client sends only when it has everything. A relay passes a FIN on when it gets one.

Data in both directions bound the clock relation without any acknowledgement (`detector.clocks.relation`), so the clock
is taken at its friendliest: moved as far towards the FIN as data of the other direction allow.
"""

from __future__ import annotations

from detector.clocks.relation import TIMESTAMP_ERROR_S, ClockRelation
from detector.method import Method, Observation, by_connection
from detector.pair import Pair
from pepscope import _core
from pepscope.captures.direction import DIRECTIONS
from pepscope.captures.packets import Direction
from pepscope.results.finding import Finding, Weight, inapplicable, split
from pepscope.results.verdicts import Evidence, Number

NAME = "early_fin"

#: Lead at which the finding counts half: what interrupt coalescing and coarse clocks can shift (1/64 s timers).
HALF_LEAD_S = 1 / 64

#: A lead of this share of the time in which the other stream arrived: most of it was still to be forwarded.
MOSTLY_UNSENT = 0.5


class EarlyFinFinding(Finding):
    """When FINs arrive."""

    FIN_BEFORE_SENT = split(
        "fin-before-sent",
        Weight(
            "teardown", -2.5, 0.0, 0.0, -2.5,
            "A middlebox ended its connection to one end by itself; a capture that lost the first of two FINs looks "
            "the same.",
        ),
    )  # fmt: skip
    FIN_BEFORE_FORWARDED = split(
        "fin-before-forwarded",
        Weight(
            "teardown", -2.5, -2.0, 0.0, -2.5,
            "It did so while most of the data was still to be forwarded; relays with large buffers seldom have as "
            "much.",
        ),
    )  # fmt: skip
    FIN_IN_ORDER = inapplicable("fin-in-order")
    NO_FIN = inapplicable("no-fin")


def examine(observation: Observation) -> Evidence:
    """Compare when each stream's FIN left its sender with when one arrived."""
    pair, clock = observation.pair, observation.clock
    leads = _leads_s(pair, clock)
    if not leads:
        return EarlyFinFinding.NO_FIN.undecided(
            NAME, "No FIN was captured at both ends, or the relation between the capture clocks is unknown."
        )
    direction = max(leads, key=lambda each: leads[each])
    lead_s = leads[direction]
    numbers: dict[str, Number] = {"direction": direction.name.lower(), "fin_lead_s": lead_s}
    if lead_s <= TIMESTAMP_ERROR_S:
        return EarlyFinFinding.FIN_IN_ORDER.undecided(NAME, "No FIN arrives before it was sent.", numbers)
    numbers["forwarding_s"] = forwarding_s = _forwarding_s(pair, direction.reverse)
    early = forwarding_s is not None and lead_s >= MOSTLY_UNSENT * forwarding_s
    finding = EarlyFinFinding.FIN_BEFORE_FORWARDED if early else EarlyFinFinding.FIN_BEFORE_SENT
    far, near = ("client", "server") if direction is Direction.UP else ("server", "client")
    return finding.evidence(
        NAME, lead_s / (lead_s + HALF_LEAD_S),
        f"The {near} got the {far}'s FIN {lead_s:.3g} s before the {far} sent one, under every admissible clock "
        f"relation: a middlebox ended its connection to the {near} first.",
        numbers, (f"A {far}-side capture that lost the first of several FINs looks the same.",),
    )  # fmt: skip


def _leads_s(pair: Pair, clock: ClockRelation) -> dict[Direction, float]:
    """Seconds by which FINs arrived too early under the friendliest clock, of each direction where that is known."""
    client, server = pair.client_side, pair.server_side
    if client is None or server is None or not clock.pieces or _set_at_unknown_time(clock):
        return {}
    at_client, at_server = _core.fins(client.packets), _core.fins(server.packets)
    leads = {}
    for direction in DIRECTIONS:
        reverse = clock.clouds.get(direction.reverse)
        sent, arrived = at_client[direction], at_server[direction]
        if direction is Direction.DOWN:
            sent, arrived = arrived, sent
        # Where more arrived than left, the sender's capture missed one.
        if reverse is None or sent.first_ns is None or arrived.first_ns is None or arrived.count > sent.count:
            continue
        lead_ns = _core.fin_lead_ns(reverse.times, sent.first_ns, arrived.first_ns, clock.lines)
        if lead_ns is not None:
            leads[direction] = lead_ns / 1e9
    return leads


def _set_at_unknown_time(clock: ClockRelation) -> bool:
    """Whether a clock was set at an unknown time, perhaps just before a FIN."""
    return clock.was_set or bool(clock.unusual_steps) or (len(clock.pieces) == 1 and not clock.fits_data)


def _forwarding_s(pair: Pair, direction: Direction) -> float | None:
    """Seconds from the first to the last arrival of a stream's data at its receiver; None where none arrived."""
    receiver = pair.receiver(direction)
    flow = None if receiver is None else receiver.flow(direction)
    if flow is None or flow.first_data_time_ns is None or flow.last_data_time_ns is None:
        return None
    return (flow.last_data_time_ns - flow.first_data_time_ns) / 1e9 or None


METHOD = Method(NAME, "end of stream", (EarlyFinFinding,), by_connection(examine))
