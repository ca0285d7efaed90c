"""Acknowledgement timing: Methods 1 and 2 of Wei et al. (UMass TR 2005-59, section III-A) and their general form.

A middlebox made an acknowledgement that reached the sender before the receiver can have sent it. The general form
tests whether any clock relation of bounded drift, with the steps that clocks make, fits all data and
acknowledgements (`detector.clocks.relating`); Method 1 takes the clocks as synchronised, Method 2 takes the offset from
the first datum. Absence of violations is weak: a split point that never queues shows none.
"""

from __future__ import annotations

import numpy as np

from detector.method import Context, Findings, Method
from detector.methods.ack_timing.findings import NAME, AckTimingFinding
from detector.methods.ack_timing.general import judge_general
from detector.methods.ack_timing.measured import Measured
from detector.methods.ack_timing.published import judge_published
from detector.methods.ack_timing.wording import NOTHING_TIMED
from detector.options import ClockMode
from pepscope.results.evidence.columns import evidence_where


def examine(context: Context) -> Findings:
    """Test whether the acknowledgements' timing allows an end-to-end connection."""
    measured = Measured.of(context)
    untimed = np.ones(len(context.observations), np.bool_)
    untimed[measured.rows] = False
    nothing = evidence_where(untimed, NAME, AckTimingFinding.ACK_TIMING_UNKNOWN, (), NOTHING_TIMED)
    if not len(measured):
        return Findings(columns=nothing)
    first, second = measured.published(ClockMode.SYNCHRONISED), measured.published(ClockMode.OFFSET)
    general = measured.are_general
    figures = measured.figures(first, second)
    judged = [
        *judge_general(measured, general, figures),
        *judge_published(measured, ~general, figures, (first, second)),
    ]
    return Findings(columns=[*nothing, *(part.at(measured.rows) for part in judged)])


METHOD = Method(NAME, "acknowledgement timing", (AckTimingFinding,), examine)

__all__ = ["METHOD", "NAME", "AckTimingFinding", "examine"]
