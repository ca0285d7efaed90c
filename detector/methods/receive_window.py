"""Receive window at the sender: a split point's buffer fills and empties, a store-and-forward proxy's stays open.

Wei et al., section III-A, distinguish Split-TCP from a TCP proxy by it. A slow reader closes its window end to end, so
the window at the sender is compared with the window that the receiver itself advertised.
"""

from __future__ import annotations

import numpy as np

from detector.method import Context, Findings, Method
from detector.pair import Pair, Vantage
from detector.streams.shut_windows import ShutBy, shut_by
from detector.streams.window_course import WindowCourse, bulk_direction, window_captured, window_course
from pepscope import _core
from pepscope.captures.direction import DIRECTIONS
from pepscope.captures.packets import Direction
from pepscope.results.evidence.columns import BoolArray, Words, evidence_where
from pepscope.results.finding import Finding, Weight, inapplicable, split
from pepscope.results.verdicts import Evidence, Number

NAME = "receive_window"
#: A receiver whose window never fell below this share of what it had been kept up with the network.
KEPT_UP_SHARE = 0.25
#: The sender's transfer must take less than this share of the receiver's for the receiver to be far behind.
FAR_BEHIND_SHARE = 0.7
#: Streams shorter than this fill no buffer.
SHORTEST_STREAM_BYTES = 64 * 1024
#: A buffer that fills and empties in turn shuts the window twice at least. Any buffer that has an end shuts it once: a
#: full store does, and opens it when it begins to forward.
ALTERNATING = 2


class ReceiveWindowFinding(Finding):
    """The window at the sender against the one that the receiver advertised."""

    WINDOW_ALTERNATES = split(
        "window-alternates",
        Weight(
            "window", -4.0, 0.0, -5.0, -1.0,
            "A middlebox's buffer fills and empties; a store takes everything.",
        ),
    )  # fmt: skip
    WINDOW_SHUT_ONCE = split(
        "window-shut-once",
        Weight(
            "window", -4.0, 0.0, 0.0, -1.0, "A middlebox's buffer filled up: a relay's, or a bounded store's.",
        ),
    )  # fmt: skip
    WINDOW_OPEN_RECEIVER_BEHIND = split(
        "window-open-receiver-behind",
        Weight(
            "window", -3.0, 0.0, 0.0, -1.0,
            "The data waited in a middlebox; a relay's large socket buffers do that as well as a store.",
        ),
    )  # fmt: skip
    SLOW_READER = inapplicable("slow-reader")
    WINDOW_REGULATED = inapplicable("window-regulated")
    ALTERNATION_UNEXPLAINED = inapplicable("alternation-unexplained")
    WINDOW_UNREMARKABLE = inapplicable("window-unremarkable")
    WINDOW_NOT_CAPTURED = inapplicable("window-not-captured")
    TOO_SHORT = inapplicable("too-short")
    NEEDS_SENDER_CAPTURE = inapplicable("needs-sender-capture")


_TOO_SHORT = Words("Too little data to fill a receive buffer.")


def examine(context: Context) -> Findings:
    """Compare the receive window that the sender saw with the one that the receiver advertised."""
    pairs = context.pairs
    are_short = _are_short(context)
    evidence = {row: _examined(pairs[row]) for row in np.flatnonzero(~are_short).tolist()}
    short = evidence_where(are_short, NAME, ReceiveWindowFinding.TOO_SHORT, (), _TOO_SHORT)
    return Findings.of_rows(evidence, short)


def _are_short(context: Context) -> BoolArray:
    """Of which connections the sender of the larger stream sent too little to fill a buffer."""
    sides, are_short = context.sides, np.zeros(len(context.observations), np.bool_)
    up, down = (sides.client.of_flow(way, "stream_bytes") for way in DIRECTIONS)
    # The larger one at the client's side; its sender has seen all of it.
    sent = np.where(up > down, up, sides.server.of_flow(Direction.DOWN, "stream_bytes"))
    are_short[sides.rows] = sent < SHORTEST_STREAM_BYTES
    for row in context.seen_once.tolist():
        are_short[row] = _is_short(context.pairs[row])
    return are_short


def _is_short(pair: Pair) -> bool:
    """Whether the sender of the larger stream sent too little to fill a buffer."""
    if not pair.vantages:
        return False
    direction = bulk_direction(pair)
    sender = pair.sender(direction)
    return sender is not None and sender.flow(direction).stream_bytes < SHORTEST_STREAM_BYTES


def _examined(pair: Pair) -> Evidence:
    """What the windows of a connection with data enough show."""
    if not pair.vantages:
        return ReceiveWindowFinding.NEEDS_SENDER_CAPTURE.undecided(NAME, "No capture of this connection.")
    direction = bulk_direction(pair)
    sender, receiver = pair.sender(direction), pair.receiver(direction)
    if sender is None:
        return ReceiveWindowFinding.NEEDS_SENDER_CAPTURE.undecided(
            NAME, "The window that reaches the sender needs the sender's capture."
        )
    if not all(window_captured(vantage, direction.reverse) for vantage in (sender, receiver) if vantage is not None):
        return ReceiveWindowFinding.WINDOW_NOT_CAPTURED.undecided(
            NAME, "A capture lacks the acknowledgements that advertise the receive window.", {}
        )
    seen = sender.derived(window_course, direction.reverse)
    numbers: dict[str, Number] = {
        "direction": direction.name.lower(),
        "sender_saw_cycles": seen.cycles,
        "sender_saw_least_bytes": seen.least_bytes,
        "sender_saw_largest_bytes": seen.largest_bytes,
    }
    if receiver is None:
        return _without_receiver(seen, numbers)
    advertised = receiver.derived(window_course, direction.reverse)
    numbers |= {
        "receiver_cycles": advertised.cycles,
        "receiver_least_bytes": advertised.least_bytes,
        "receiver_largest_bytes": advertised.largest_bytes,
    }
    if seen.times_shut and advertised.least_share > KEPT_UP_SHARE:
        return _shut_though_kept_up(pair, direction, sender, receiver, numbers)
    if seen.times_shut or advertised.times_shut:
        return ReceiveWindowFinding.SLOW_READER.undecided(
            NAME,
            "The receiver itself shuts its window (a slow reader), so a shut window at the sender is no evidence.",
            numbers,
        )
    return _open_window(pair, direction, sender, receiver, seen, advertised, numbers)


def _without_receiver(seen: WindowCourse, numbers: dict[str, Number]) -> Evidence:
    """What the window at the sender shows by itself: a hint at most, since a slow reader shuts windows as well."""
    if seen.cycles >= 1:
        return ReceiveWindowFinding.ALTERNATION_UNEXPLAINED.undecided(
            NAME,
            f"The window at the sender went from full to shut and back {seen.cycles} times: a split point's buffer "
            "or a slow reader; a capture at the receiver would decide.", numbers,
        )  # fmt: skip
    return ReceiveWindowFinding.WINDOW_UNREMARKABLE.undecided(NAME, "The window at the sender stayed open.", numbers)


def _shut_though_kept_up(
    pair: Pair, direction: Direction, sender: Vantage, receiver: Vantage, numbers: dict[str, Number]
) -> Evidence:
    """The sender saw its window shut, and none that the receiver's capture holds was: whose windows were they?"""
    shutting = shut_by(pair, direction, sender, receiver)
    if shutting is ShutBy.PERHAPS_RECEIVER:
        return ReceiveWindowFinding.WINDOW_NOT_CAPTURED.undecided(
            NAME,
            "The receiver's capture lacks the acknowledgements between which its own window may have shut.",
            numbers,
        )
    if shutting is ShutBy.ON_RECEIVERS_PACKETS:
        return ReceiveWindowFinding.WINDOW_REGULATED.undecided(
            NAME,
            "The sender saw its receive window shut in the receiver's own acknowledgements, which left with an "
            "open one: a middlebox regulates the window, and ends no connection.",
            numbers,
        )
    seen, advertised = (each.derived(window_course, direction.reverse) for each in (sender, receiver))
    scaled = receiver.flow(direction.reverse).window_shift is not None
    return _buffer_filled(seen, advertised, numbers, pair.pairing_confidence, scaled=scaled)


def _buffer_filled(
    seen: WindowCourse, advertised: WindowCourse, numbers: dict[str, Number], pairing_confidence: float, *, scaled: bool
) -> Evidence:
    """The sender saw its window shut, and the receiver kept up; unless `scaled` its windows are no bytes."""
    least = (
        f"{advertised.least_bytes:,} bytes" if scaled else f"{100 * advertised.least_share:.0f} % of what it had before"
    )
    alternates = seen.times_shut >= ALTERNATING
    finding = ReceiveWindowFinding.WINDOW_ALTERNATES if alternates else ReceiveWindowFinding.WINDOW_SHUT_ONCE
    strength = 1.0 - 0.5 ** (1 + seen.cycles)
    return finding.evidence(
        NAME, strength * pairing_confidence,
        f"The sender saw its receive window shut {_times(seen.times_shut)}, but the receiver never advertised less "
        f"than {least}: a middlebox's buffer filled up.", numbers,
        ("A window regulator that shuts the window to pace the sender would look alike.",),
    )  # fmt: skip


def _open_window(
    pair: Pair, direction: Direction, sender: Vantage, receiver: Vantage, seen: WindowCourse, advertised: WindowCourse,
    numbers: dict[str, Number],
) -> Evidence:  # fmt: skip
    """Neither end saw the window shut: is the receiver further behind than its window explains?"""
    spans = transfer_spans(pair, direction, sender, receiver)
    # How far behind is held against a window in bytes, which needs its scale.
    if spans is not None and receiver.flow(direction.reverse).window_shift is not None:
        sender_s, receiver_s, span_bytes = spans
        numbers |= {"sender_transfer_s": sender_s, "receiver_transfer_s": receiver_s}
        share = sender_s / receiver_s if receiver_s > 0 else 1.0
        behind = (1.0 - share) * span_bytes
        steady = seen.least_share > KEPT_UP_SHARE
        if share < FAR_BEHIND_SHARE and behind > advertised.largest_bytes and steady:
            numbers["behind_bytes"] = int(behind)
            return ReceiveWindowFinding.WINDOW_OPEN_RECEIVER_BEHIND.evidence(
                NAME, min(0.95, 1.0 - share) * pair.pairing_confidence,
                f"The window at the sender stayed open, all was acknowledged in {sender_s:.2f} s, and the receiver "
                f"needed {receiver_s:.2f} s for the same bytes: they waited in a middlebox that stores everything.",
                numbers, ("A Split-TCP buffer larger than the transfer looks the same.",),
            )  # fmt: skip
    return ReceiveWindowFinding.WINDOW_UNREMARKABLE.undecided(
        NAME, "The window at the sender is unremarkable.", numbers
    )


def transfer_spans(
    pair: Pair, direction: Direction, sender: Vantage, receiver: Vantage
) -> tuple[float, float, int] | None:
    """Seconds that one common byte range took at the sender (first sent to acknowledged) and at the receiver (first to
    last arrival), and its bytes; needs no clock relation. End to end the first is never the shorter one."""
    shift = pair.receiver_shift(direction)
    spans = _core.transfer_spans(direction.value, sender.packets, receiver.packets, shift, SHORTEST_STREAM_BYTES)
    return None if spans is None else (spans.sender_ns / 1e9, spans.receiver_ns / 1e9, spans.bytes)


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


METHOD = Method(NAME, "receive window", (ReceiveWindowFinding,), examine)
