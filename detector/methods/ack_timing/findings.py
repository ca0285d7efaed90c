"""What the timing of acknowledgements shows, and what each finding weighs."""

from __future__ import annotations

from pepscope.results.finding import CERTAIN, Finding, Weight, inapplicable, intact, split

NAME = "ack_timing"


class AckTimingFinding(Finding):
    """When acknowledgements came: one cause, one family with the sender's progress."""

    ACKS_BEFORE_DATA = split(
        "acks-before-data",
        Weight(
            "timing", 1.5 * CERTAIN, 0.0, 0.0, 0.0,
            "Bytes were acknowledged that had not reached the receiver, under every admissible clock: impossible end "
            "to end, so it outweighs any one finding.",
        ),
    )  # fmt: skip
    ACKS_AFTER_DATA = intact(
        "acks-after-data",
        Weight(
            "timing", 0.0, -1.0, -2.5, 0.0,
            "One clock fits; a split point without a queue fits as well, and a middlebox that acknowledges before one.",
        ),
    )  # fmt: skip
    ACKS_NEARER_THAN_PATH = split(
        "acks-nearer-than-path",
        Weight(
            "timing", -2.0, 0.0, 0.0, 0.0,
            "Acknowledgements came from nearer than the receiver, or the data always met a queue.",
        ),
    )  # fmt: skip
    ACKS_NEARER_THAN_HANDSHAKE = split(
        "acks-nearer-than-handshake",
        Weight(
            "timing", -4.5, 0.0, 0.0, 0.0,
            "Acknowledgements took less than half of what SYN and SYN-ACK took over the whole path; most of them "
            "did so on "
            "none of 304 regular paths of the training draws, and on four in ten with local acknowledgement.",
        ),
    )  # fmt: skip
    ACKS_BEFORE_RECEIVERS = split(
        "acks-before-receivers",
        Weight(
            "timing", -6.0, 0.0, 0.0, 0.0,
            "The receiver had not acknowledged those bytes yet; its capture may have lost the first of repeated ones.",
        ),
    )  # fmt: skip
    ACKS_CROSS_WHOLE_PATH = intact(
        "acks-cross-whole-path",
        Weight(
            "timing", 0.0, -3.0, -4.0, -5.0,
            "Even the fastest acknowledgement took the whole path; a middlebox that acknowledges is nearer.",
        ),
    )  # fmt: skip
    ACK_TIMING_UNKNOWN = inapplicable("ack-timing-unknown")
