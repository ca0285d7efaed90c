"""Progress: how far the sender is ahead of the receiver.

End to end, no byte is acknowledged to the sender before it has arrived. What is acknowledged and has not arrived sits
in a middlebox. A relay (Split-TCP) holds a buffer's worth; a store-and-forward proxy receives the transfer at the wired
rate and forwards it later, so that the sender is done when the receiver has few bytes or none.

The clock offset is the one most favourable to end to end: the flow's own data arrive as early as causality allows
(`detector.clocks.relating`), so that an unknown clock cannot fake a lead.
"""

from __future__ import annotations

import numpy as np

from detector.clocks.capture_ticks import ticks_of_accused_s
from detector.clocks.clock_relation import TIMESTAMP_ERROR_S, ClockRelation
from detector.clocks.early_acks import violations
from detector.method import Context, Findings, Method
from detector.methods.progress.leads import Lead, Leads
from pepscope.captures.packets import Int64Array
from pepscope.results.evidence.columns import BoolArray, Words, evidence_where
from pepscope.results.finding import Finding, Weight, inapplicable, intact, split
from pepscope.results.verdicts import Evidence, Number

NAME = "progress"

#: Weight of a fit; the same observation as the acknowledgements' timing, seen in bytes.
FIT_STRENGTH = 0.2

#: A sender that is done while the receiver has less than this, and was never held back, was taken in at its own rate.
FAR_AHEAD_SHARE = 0.5

#: Share acknowledged to the sender when the receiver's first byte came, from which the transfer was stored first.
STORED_SHARE = 0.5

#: A relay that is still connecting onward takes in about one unscaled receive window; more than two were stored.
STORED_BYTES = 2 * 65535


class ProgressFinding(Finding):
    """How far the sender is ahead of the receiver."""

    SENDER_IN_STEP = intact(
        "sender-in-step",
        Weight(
            "timing", 0.0, -1.5, -1.5, 0.0,
            "As `acks-after-data`, in bytes.",
        ),
    )  # fmt: skip
    SENDER_AHEAD = split(
        "sender-ahead",
        Weight(
            "timing", -6.0, 0.0, -0.5, 0.0,
            "The lead is a buffer's; a store that streams leads by no more.",
        ),
    )  # fmt: skip
    SENDER_FAR_AHEAD = split(
        "sender-far-ahead",
        Weight(
            "timing", -6.0, 0.0, 0.0, 0.0,
            "Most of the transfer was taken in early, but a relay's socket buffers may hold as much.",
        ),
    )  # fmt: skip
    SENDER_BEYOND_BUFFERS = split(
        "sender-beyond-buffers",
        Weight(
            "timing", -6.0, -4.0, 0.0, -4.0,
            "The sender led by more than the socket buffers of a relay hold.",
        ),
    )  # fmt: skip
    STORED_BEFORE_FORWARDED = split(
        "stored-before-forwarded",
        Weight(
            "timing", -6.0, -6.0, 0.0, -6.0,
            "Nothing was forwarded while much more than a receive window was taken in.",
        ),
    )  # fmt: skip
    HELD_BEFORE_FORWARDED = split(
        "held-before-forwarded",
        Weight(
            "timing", -6.0, -4.0, 0.0, -6.0,
            "Even the fastest byte waited for much of the transfer's duration; a relay behind a queue that other "
            "connections had filled does the same.",
        ),
    )  # fmt: skip
    PROGRESS_UNKNOWN = inapplicable("progress-unknown")


def examine(context: Context) -> Findings:
    """Measure how many acknowledged bytes the receiver did not have yet."""
    leads = Leads.of(context)
    unknown = np.ones(len(context.observations), np.bool_)
    unknown[leads.rows] = False
    clocks = context.clocks.at(leads.rows)
    fits = clocks.are_separable | (leads.numbers["most_bytes"] <= 0)
    was_set = ~fits & clocks.numbers["was_set"]
    too_coarse = _within_ticks(context, leads.rows, ~fits & ~was_set)
    figures, firm = leads.figures(), np.full(len(leads.rows), FIT_STRENGTH)
    known = [
        *evidence_where(fits, NAME, ProgressFinding.SENDER_IN_STEP, figures, _IN_STEP, (), firm),
        *evidence_where(was_set, NAME, ProgressFinding.PROGRESS_UNKNOWN, figures, _CLOCK_WAS_SET),
        *evidence_where(too_coarse, NAME, ProgressFinding.PROGRESS_UNKNOWN, figures, _TOO_COARSE),
    ]
    columns = [
        *evidence_where(unknown, NAME, ProgressFinding.PROGRESS_UNKNOWN, (), _TOO_SHORT),
        *(part.at(leads.rows) for part in known),
    ]
    ahead = np.flatnonzero(~fits & ~was_set & ~too_coarse)
    accused = clocks.at(ahead)
    violating, _ = violations(leads.flows.at(ahead), accused)
    evidence = {
        int(leads.rows[place]): _ahead(
            leads.lead(place), count, clock, {each.name: each.values[place] for each in figures}
        )
        for place, count, clock in zip(ahead.tolist(), violating.tolist(), accused, strict=True)
    }
    return Findings.of_rows(evidence, columns)


_TOO_SHORT = Words("The transfer is too short, or was not seen at both ends, to measure how far the sender is ahead.")
_CLOCK_WAS_SET = Words("A capture's clock was set during the connection, so how far the sender is ahead is not known.")
_TOO_COARSE = Words(
    "The captures' times are too coarse to measure how far the sender is ahead: acknowledgements come before their "
    "data by less than the clocks' ticks."
)
_IN_STEP = Words(
    "Under some admissible clock relation no byte was acknowledged to the sender before it had arrived.",
    ("A split point that never queues looks the same.",),
)


def _within_ticks(context: Context, rows: Int64Array, accused: BoolArray) -> BoolArray:
    """Which of the `accused` of some connections contradict every clock by no more than their captures' ticks."""
    places = np.flatnonzero(accused)
    within = np.zeros(len(rows), np.bool_)
    if len(places):
        pairs = [context.observations[row].pair for row in rows[places].tolist()]
        ticks = ticks_of_accused_s(pairs)
        overlap_s = -context.clocks.at(rows[places]).numbers["slack_s"]
        within[places] = overlap_s <= TIMESTAMP_ERROR_S + ticks
    return within


def _ahead(found: Lead, violating: int, clock: ClockRelation, numbers: dict[str, Number]) -> Evidence:
    """The finding where the sender is ahead under every admissible clock: how the middlebox held the data."""
    spared = clock.lower_spared + clock.upper_spared
    strength = max(violating, 1) / (max(violating, 1) + spared)
    if found.acknowledged_share_at_start >= STORED_SHARE and found.acknowledged_at_start_bytes >= STORED_BYTES:
        summary = (
            f"{100 * found.acknowledged_share_at_start:.0f} % of {found.total_bytes:,} bytes had been acknowledged "
            "to the sender before the first byte reached the receiver: a middlebox stored them first and then "
            "forwarded them."
        )
        return ProgressFinding.STORED_BEFORE_FORWARDED.evidence(NAME, strength, summary, numbers)
    if found.is_held_whole and found.total_bytes >= STORED_BYTES:
        summary = (
            f"Even the fastest byte took {found.least_hold_s:.3g} s longer than both legs' round trips explain, of a "
            f"transfer of {found.shorter_s:.3g} s: a middlebox stored the data first and then forwarded them."
        )
        queue = ("A relay behind a queue that other connections had filled before looks the same.",)
        return ProgressFinding.HELD_BEFORE_FORWARDED.evidence(NAME, strength, summary, numbers, queue)
    return _lead(found, strength, numbers)


def _lead(found: Lead, strength: float, numbers: dict[str, Number]) -> Evidence:
    """The finding for the size of the lead: a relay's buffers, or more than they hold."""
    if found.beyond_buffers_bytes > 0:
        # The further beyond, the less an unusual relay's larger buffers explain it.
        strength *= found.beyond_buffers_bytes / (found.beyond_buffers_bytes + found.buffers_bytes)
        summary = (
            f"{found.beyond_buffers_bytes + found.buffers_bytes:,} bytes were acknowledged to the sender and had not "
            f"reached the receiver, but the socket buffers of a relay hold {found.buffers_bytes:,} at most: a "
            "middlebox stored the transfer and forwarded it later."
        )
        tuned = ("A relay with socket buffers configured larger looks the same.",)
        return ProgressFinding.SENDER_BEYOND_BUFFERS.evidence(NAME, strength, summary, numbers, tuned)
    if found.delivered_share_when_done <= FAR_AHEAD_SHARE and found.held_back is False:
        summary = (
            f"When all {found.total_bytes:,} bytes had been acknowledged to the sender, the receiver had "
            f"{100 * found.delivered_share_when_done:.0f} % of them, and no closed receive window held the sender "
            "back: a middlebox held the rest."
        )
        fits = ("The socket buffers of a relay can hold as much.",)
        return ProgressFinding.SENDER_FAR_AHEAD.evidence(NAME, strength, summary, numbers, fits)
    summary = (
        f"Up to {found.most_bytes:,} bytes were acknowledged to the sender before they reached the receiver; when the "
        f"sender was done, {100 * found.delivered_share_when_done:.0f} % had arrived."
    )
    return ProgressFinding.SENDER_AHEAD.evidence(NAME, strength, summary, numbers)


METHOD = Method(NAME, "transfer progress", (ProgressFinding,), examine)
