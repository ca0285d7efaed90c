"""The sentences on the timing of acknowledgements, made of the figures of one connection when they are read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from detector.methods.ack_timing.measured import OWN_BEFORE, OWN_COMPARED
from detector.options import ClockMode
from pepscope.results.evidence.columns import Words

_LOST = "Packets that a capture lost can shift single points; as many points as loss explains were left out."
_STEPPED = "A clock step was assumed; the packets before and after it were tested separately."

NOTHING_TIMED = Words(
    "Acknowledgement timing needs the connection in both captures, aligned by payload or sequence numbers."
)

_METHODS = {
    ClockMode.SYNCHRONISED.value: "Method 1 (synchronised clocks)",
    ClockMode.OFFSET.value: "Method 2 (constant offset)",
}


def _general(figures: Mapping[str, Any], summary: str, *more: str) -> Words:
    """A sentence of the general form with its caveats."""
    return Words(summary, (_LOST, *((_STEPPED,) if figures["pieces"] > 1 else ()), *more))


def unusual_steps(figures: Mapping[str, Any]) -> Words:
    """Where clocks would have had to be set more often than daemons do."""
    return _general(
        figures,
        f"Data and acknowledgements contradict each other unless a clock was set {figures['pieces'] - 1} times: "
        "such a clock is rare, and so is a split whose queue grew and shrank so seldom.",
    )


def clock_was_set(figures: Mapping[str, Any]) -> Words:
    """Where the captures show by themselves that a clock was set."""
    return _general(
        figures,
        "Data and acknowledgements contradict each other, and a capture shows that its clock was set: its times "
        "fall back, or jump against its host's, or contradict each other by data alone.",
    )


def untimed(figures: Mapping[str, Any]) -> Words:
    """Where the times of a capture tell nothing."""
    return _general(
        figures,
        "A capture holds no times that can be compared: its packets have all one time, or follow each other in equal "
        "steps as where they are counted, or acknowledgements stand before the bytes that they acknowledge, as with "
        "two clocks for the two directions. So nothing shows when acknowledgements came.",
    )


def before_data(figures: Mapping[str, Any]) -> Words:
    """Where no admissible clock fits."""
    violating, overlap_s = figures["violating_acks"], -figures["slack_s"]
    if violating == 0:
        return _general(
            figures,
            "No admissible clock relation fits the acknowledgements of both directions together: they are "
            f"{overlap_s:.3g} s too early for an end-to-end connection.",
        )
    return _general(
        figures,
        f"{violating} of {figures['acks']} acknowledgements reached the sender before the receiver can have sent "
        f"them, under every admissible clock relation: data and acknowledgements contradict each other by "
        f"{overlap_s:.3g} s.",
    )


def before_receivers(figures: Mapping[str, Any]) -> Words:
    """Where the receiver's own acknowledgements came later."""
    return _general(
        figures,
        f"{figures[OWN_BEFORE]} of {figures[OWN_COMPARED]} acknowledgements reached the sender before the receiver "
        "sent its own of the same bytes, under every admissible clock relation: a middlebox sent them.",
        "A capture at the receiver that lost the first of repeated acknowledgements looks the same.",
    )


def nearer_than_handshake(figures: Mapping[str, Any]) -> Words:
    """Where acknowledgements came back sooner than the handshake."""
    return Words(
        f"{figures['acks_nearer_than_handshake']} of {figures['round_trips']} acknowledgements came back in less than "
        f"half of the {figures['handshake_path_s']:.3g} s that the handshake took over the whole path, the fastest "
        f"after {figures['least_round_trip_s']:.3g} s: they come from nearer than the receiver.",
        ("A handshake that waited in both directions for longer than the path takes looks the same.",),
    )


def too_few(figures: Mapping[str, Any]) -> Words:
    """Where there is too little to judge by."""
    return _general(figures, "Too few data segments and acknowledgements at both ends to judge their timing.")


_QUEUELESS = "A split point that never queues would fit as well."


def cross_whole_path(figures: Mapping[str, Any]) -> Words:
    """Where even the fastest acknowledgement took the whole path."""
    return _general(
        figures,
        "Even the fastest acknowledgement took the round trip of the whole path "
        f"({figures['round_trip_min_both_ways_s']:.3g} s; data alone show {figures['path_s']:.3g} s), and one clock "
        f"relation fits all packets with {figures['slack_s']:.3g} s of slack.",
        _QUEUELESS,
    )


def nearer_than_path(figures: Mapping[str, Any]) -> Words:
    """Where the fastest acknowledgement took much less than the path."""
    return _general(
        figures,
        f"The fastest acknowledgement took {figures['round_trip_min_s']:.3g} s, where data alone show a round trip of "
        f"{figures['path_s']:.3g} s: it may come from nearer than the receiver.",
        _QUEUELESS,
        "Data that never met an empty queue show a longer round trip than the path has.",
    )


def after_data(figures: Mapping[str, Any]) -> Words:
    """Where one clock fits all."""
    summary = f"One clock relation fits all data and acknowledgements, with {figures['slack_s']:.3g} s of slack."
    return _general(figures, summary, _QUEUELESS)


def _published(figures: Mapping[str, Any], summary: str) -> Words:
    """A sentence of Method 1 or 2 with its caveat."""
    return Words(
        summary,
        (
            (
                f"{_METHODS[figures['clocks']]} was requested: a clock that drifts, steps or has another offset causes "
                "false violations."
            ),
        ),
    )


def not_synchronised(figures: Mapping[str, Any]) -> Words:
    """Where data arrive before they are sent."""
    early_s = -figures["least_delay_s"]
    return _published(figures, f"Data arrive {early_s:.3g} s before they are sent: the clocks are not synchronised.")


def before_data_as_published(figures: Mapping[str, Any]) -> Words:
    """Where Method 1 or 2 finds violations."""
    return _published(
        figures,
        f"By {_METHODS[figures['clocks']]}, {100 * figures['share']:.0f} % of the acknowledgements came too early, by "
        f"up to {figures['overlap_s']:.3g} s.",
    )


def too_few_as_published(figures: Mapping[str, Any]) -> Words:
    """Where Method 1 or 2 has too little to judge by."""
    return _published(figures, "Too few acknowledgements to judge their timing.")


def after_data_as_published(figures: Mapping[str, Any]) -> Words:
    """Where Method 1 or 2 finds no more violations than capture loss explains."""
    return _published(
        figures,
        f"By {_METHODS[figures['clocks']]}, acknowledgements did not come too early, apart from those that capture "
        "loss explains.",
    )
