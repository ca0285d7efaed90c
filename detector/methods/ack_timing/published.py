"""Methods 1 and 2 of Wei et al. as verdicts, where the user asked for one of them."""

from __future__ import annotations

import numpy as np

from detector.clocks.clock_relation import TIMESTAMP_ERROR_S
from detector.clocks.clouds import loss_share, spared_points
from detector.methods.ack_timing import wording
from detector.methods.ack_timing.findings import NAME, AckTimingFinding
from detector.methods.ack_timing.measured import Measured, Published
from detector.methods.ack_timing.strengths import COARSE_TICK_S, FIT_STRENGTH, LEAST_ACKS
from detector.options import ClockMode
from detector.streams.known import are_known
from pepscope.results.evidence.columns import BoolArray, EvidenceColumns, Figure, evidence_where


def judge_published(
    measured: Measured, chosen: BoolArray, figures: list[Figure], found: tuple[Published, Published]
) -> list[EvidenceColumns]:
    """The evidence on the `chosen` connections by Method 1 or 2 (both `found`), whichever was asked for."""
    first, second = found
    numbers = measured.numbers
    is_first = np.array([mode is ClockMode.SYNCHRONISED for mode in measured.clocks.modes], np.bool_)
    share, margin_s = np.where(is_first, (first.share, first.margin_s), (second.share, second.margin_s))
    violating = np.where(is_first, first.violating, second.violating)
    least_delay_s = numbers["least_delay_ns"] / 1e9
    early = chosen & is_first & are_known(numbers["least_delay_ns"]) & (least_delay_s < -TIMESTAMP_ERROR_S)
    spared = spared_points(numbers["ack_count"] * loss_share(numbers["receiver_lost"], numbers["receiver_held"]))
    violated = chosen & ~early & (violating > spared)
    few = chosen & ~early & ~violated & (numbers["ack_count"] < LEAST_ACKS)
    fits = chosen & ~early & ~violated & ~few
    overlap_s = np.where(violated, -margin_s, 0.0)
    strength = overlap_s / (overlap_s + COARSE_TICK_S) * violating / np.maximum(violating + spared, 1)
    unknown = AckTimingFinding.ACK_TIMING_UNKNOWN
    shown = [Figure("share", share), Figure("overlap_s", overlap_s)]
    firm = np.full(len(measured), FIT_STRENGTH)
    return [
        *evidence_where(
            early, NAME, unknown, figures, wording.not_synchronised, [Figure("least_delay_s", least_delay_s)]
        ),
        *evidence_where(
            violated,
            NAME,
            AckTimingFinding.ACKS_BEFORE_DATA,
            figures,
            wording.before_data_as_published,
            shown,
            strength,
        ),
        *evidence_where(few, NAME, unknown, figures, wording.too_few_as_published),
        *evidence_where(
            fits, NAME, AckTimingFinding.ACKS_AFTER_DATA, figures, wording.after_data_as_published, (), firm
        ),
    ]
