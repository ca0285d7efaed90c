"""What the comparison of segments can find."""

from __future__ import annotations

from pepscope.results.finding import CERTAIN, Finding, Weight, inapplicable, intact, split

NAME = "identity"


class IdentityFinding(Finding):
    """Which segments arrive as they left. The cap stands for what the likelihood ratio leaves out."""

    SAME_PACKETS = intact(
        "same-packets",
        Weight(
            "identity", 0.0, CERTAIN, CERTAIN, CERTAIN,
            "Data and acknowledgements arrive as the far end made them; no middlebox makes either.",
        ),
    )  # fmt: skip
    SAME_DATA = intact(
        "same-data",
        Weight(
            "identity", 0.0, CERTAIN, CERTAIN, 0.0,
            "Data segments arrive as they left; which host made the acknowledgements is unknown.",
        ),
    )  # fmt: skip
    MAKER_CHANGES = split(
        "maker-changes",
        Weight(
            "identity", -2.5, 0.0, 0.0, -2.5,
            "From some byte on another stack made the segments: a middlebox took over, or a capture missed copies.",
        ),
    )  # fmt: skip
    ACKS_NOBODY_SENT = intact(
        "acks-nobody-sent",
        Weight(
            "identity", -3.1, CERTAIN, CERTAIN, 0.0,
            "Data segments arrive as they left, acknowledgements do not: a middlebox acknowledges, before the data "
            "arrive or after; at most one in twenty-four regular paths of the training draws thins or regenerates "
            "them.",
        ),
    )  # fmt: skip
    ACKS_AHEAD = split(
        "acks-ahead-of-receiver",
        Weight(
            "identity", CERTAIN, CERTAIN, CERTAIN, 0.0,
            "Data segments arrive as they left, and acknowledgements acknowledge more than the receiver did with a "
            "later timestamp: a middlebox acknowledges before the receiver has the data.",
        ),
    )  # fmt: skip
    OTHER_PACKETS = split(
        "other-packets",
        Weight(
            "identity", CERTAIN, 0.0, 0.0, CERTAIN,
            "Another stack than the far end's made the data segments that arrive.",
        ),
    )  # fmt: skip
    OTHER_ACKNOWLEDGEMENTS = split(
        "other-acknowledgements",
        Weight(
            "identity", -5.0, 0.0, 0.0, 0.0,
            "Another stack made the acknowledgements, and the data segments do not decide; middleboxes that only "
            "regenerate acknowledgements are rarer than splits.",
        ),
    )  # fmt: skip
    PARTLY_SAME = inapplicable("partly-same")
    TOO_ALIKE = inapplicable("too-alike", is_missing=True)
    TOO_FEW_SEGMENTS = inapplicable("too-few-segments", is_missing=True)
    NOT_ALIGNED = inapplicable("not-aligned")
    NEEDS_SECOND_CAPTURE = inapplicable("needs-second-capture", is_missing=True)
