"""Findings that a detection method makes from captures, and an experiment from what it measured."""

from __future__ import annotations

from pepscope.results.finding import CERTAIN, Finding, Weight, intact, split
from pepscope.results.verdicts import Mechanism


class TransferFinding(Finding):
    """What a transfer shows, however it was looked at."""

    REWRITTEN_HEADERS = split(
        "rewritten-headers",
        Weight(
            "content", CERTAIN, 0.0, 0.0, CERTAIN, "An HTTP head arrives changed.", Mechanism.REWRITING,
        ),
    )  # fmt: skip
    OTHER_BYTES = split(
        "other-bytes",
        Weight(
            "content", CERTAIN, -0.5, 0.0, CERTAIN, "The payload differs: rewritten, or encrypted on one leg.",
            Mechanism.REWRITING,
        ),
    )  # fmt: skip
    SERVED_FROM_CACHE = split(
        "served-from-cache",
        Weight(
            "content", CERTAIN, -6.0, 0.0, CERTAIN, "An answer came that the watched server never gave.",
            Mechanism.CACHE,
        ),
    )  # fmt: skip
    ACKNOWLEDGED_BEYOND_ABORT = split(
        "acknowledged-beyond-abort",
        Weight(
            "teardown", -5.0, 0.0, 0.0, 0.0, "More was acknowledged than an aborting receiver got.",
        ),
    )  # fmt: skip
    ABORT_END_TO_END = intact(
        "abort-end-to-end",
        Weight(
            "teardown", 0.0, -0.5, -0.5, -0.5, "The abort reached the sender.",
        ),
    )  # fmt: skip
    ACKS_NOT_FROM_RECEIVER = split(
        "acks-not-from-receiver",
        Weight(
            "held-acks", -7.0, 0.0, 0.0, 0.0, "Round trips shorter than the delay that the receiver put on every ACK.",
        ),
    )  # fmt: skip
    ACKS_ONLY_FROM_RECEIVER = intact(
        "acks-only-from-receiver",
        Weight(
            "held-acks", 0.0, -5.0, -5.0, -5.0, "No round trip is shorter than that delay, which exceeds the path's.",
        ),
    )  # fmt: skip
