"""End of stream: a FIN that arrives before the far end sent its own (RFC 9293, section 3.6).

A FIN takes a place in its stream behind the last byte, so end to end it arrives no sooner than it left, as data do. A
proxy that has taken an answer whole ends its connection to the server while it still forwards the answer; the server
then gets a FIN that the client sends only when it has everything. A relay passes a FIN on when it gets one.

Data in both directions bound the clock relation without any acknowledgement (`detector.clocks.relating`), so the clock
is taken at its friendliest: moved as far towards the FIN as data of the other direction allow.
"""

from __future__ import annotations

import math

import numpy as np

from detector.clocks.capture_ticks import ticks_of_accused_s
from detector.clocks.clock_relation import TIMESTAMP_ERROR_S
from detector.clocks.relation_columns import ClockRelations
from detector.method import Context, Findings, Method
from detector.pair import Pair
from detector.streams.known import are_known
from detector.streams.loaded import packets_of
from pepscope import _core
from pepscope.captures.packets import Direction
from pepscope.results.evidence.columns import BoolArray, Figure, Words, evidence_where
from pepscope.results.finding import Finding, Weight, inapplicable, split
from pepscope.results.verdicts import Evidence, FloatArray, Number

NAME = "early_fin"

_DIRECTIONS = (Direction.UP, Direction.DOWN)
_NAMES = tuple(direction.name.lower() for direction in _DIRECTIONS)
_UP = Direction.UP

#: Lead at which the finding counts half: what interrupt coalescing and coarse clocks can shift (1/64 s timers).
HALF_LEAD_S = 1 / 64

#: A lead of this share of the time in which the other stream arrived: most of it was still to be forwarded.
MOSTLY_UNSENT = 0.5

_NO_FIN = Words("No FIN was captured at both ends, or the relation between the capture clocks is unknown.")
_IN_ORDER = Words("No FIN arrives before it was sent.")


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


def examine(context: Context) -> Findings:
    """Compare when each stream's FIN left its sender with when one arrived."""
    leads_s = _leads_s(context)
    later = np.nan_to_num(leads_s, nan=-math.inf).argmax(axis=0)
    lead_s = leads_s[later, np.arange(len(later))]
    unknown, in_order = np.isnan(lead_s), lead_s <= TIMESTAMP_ERROR_S
    early_rows = np.flatnonzero(~unknown & ~in_order)
    if len(early_rows):
        pairs = [context.observations[row].pair for row in early_rows.tolist()]
        ticks = ticks_of_accused_s(pairs)
        in_order[early_rows] = lead_s[early_rows] <= TIMESTAMP_ERROR_S + ticks
    figures = Figure("direction", [_NAMES[way] for way in later.tolist()]), Figure("fin_lead_s", lead_s)
    columns = [
        *evidence_where(unknown, NAME, EarlyFinFinding.NO_FIN, (), _NO_FIN),
        *evidence_where(in_order, NAME, EarlyFinFinding.FIN_IN_ORDER, figures, _IN_ORDER),
    ]
    early = {
        row: _early(context.observations[row].pair, _DIRECTIONS[int(later[row])], float(lead_s[row]))
        for row in np.flatnonzero(~unknown & ~in_order).tolist()
    }
    return Findings.of_rows(early, columns)


def _early(pair: Pair, direction: Direction, lead_s: float) -> Evidence:
    """The evidence of a FIN that arrived before one was sent: seldom, so in words."""
    forwarding_s = _forwarding_s(pair, direction.reverse)
    numbers: dict[str, Number] = {
        "direction": direction.name.lower(), "fin_lead_s": lead_s, "forwarding_s": forwarding_s
    }  # fmt: skip
    mostly_unsent = forwarding_s is not None and lead_s >= MOSTLY_UNSENT * forwarding_s
    finding = EarlyFinFinding.FIN_BEFORE_FORWARDED if mostly_unsent else EarlyFinFinding.FIN_BEFORE_SENT
    far, near = ("client", "server") if direction is Direction.UP else ("server", "client")
    return finding.evidence(
        NAME, lead_s / (lead_s + HALF_LEAD_S),
        f"The {near} got the {far}'s FIN {lead_s:.3g} s before the {far} sent one, under every admissible clock "
        f"relation: a middlebox ended its connection to the {near} first.",
        numbers, (f"A {far}-side capture that lost the first of several FINs looks the same.",),
    )  # fmt: skip


def _leads_s(context: Context) -> FloatArray:
    """Seconds by which FINs up and down (rows) arrived too early under the friendliest clock, NaN where unknown."""
    leads_s = np.full((2, len(context.observations)), math.nan)
    clocks, sides = context.clocks, context.sides
    is_related = (clocks.numbers["pieces"] > 0) & ~_set_at_unknown_time(clocks)
    places = np.flatnonzero(is_related[sides.rows])
    both = sides.rows[places]
    ends = tuple(_core.fins(packets_of(side, places)) for side in (sides.clients, sides.servers))
    for direction in _DIRECTIONS:
        (sent_count, sent_ns), (arrived_count, arrived_ns) = (
            (counts[direction], firsts[direction]) for counts, firsts in (ends if direction is _UP else ends[::-1])
        )
        # Where more arrived than left, the sender's capture missed one.
        is_known = are_known(sent_ns, arrived_ns) & (arrived_count <= sent_count)
        is_known &= clocks.clouds.are_compared[direction.reverse, both]
        related = both[is_known]
        times_of = clocks.clouds.times[direction.reverse]
        times = [found for row in related.tolist() if (found := times_of[row]) is not None]
        leads_ns = _core.fin_leads_ns(times, sent_ns[is_known], arrived_ns[is_known], clocks.lines.at(related))
        leads_s[direction, related] = leads_ns / 1e9
    return leads_s


def _set_at_unknown_time(clocks: ClockRelations) -> BoolArray:
    """Of which connections a clock was set at an unknown time, perhaps just before a FIN."""
    numbers = clocks.numbers
    is_set = numbers["was_set"] | (numbers["unusual_steps"] > 0) | ((numbers["pieces"] == 1) & ~clocks.fit_data)
    return np.asarray(is_set)


def _forwarding_s(pair: Pair, direction: Direction) -> float | None:
    """Seconds from the first to the last arrival of a stream's data at its receiver; None where none arrived."""
    receiver = pair.receiver(direction)
    flow = None if receiver is None else receiver.flow(direction)
    if flow is None or flow.first_data_time_ns is None or flow.last_data_time_ns is None:
        return None
    return (flow.last_data_time_ns - flow.first_data_time_ns) / 1e9 or None


METHOD = Method(NAME, "end of stream", (EarlyFinFinding,), examine)
