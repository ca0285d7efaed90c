"""What the comparison of content can find."""

from __future__ import annotations

from pepscope.results.finding import CERTAIN, Finding, Weight, inapplicable, split
from pepscope.results.verdicts import Mechanism

NAME = "content"


class ContentFinding(Finding):
    """Other bytes: only a middlebox that reassembles the stream can change it."""

    PROXY_REQUEST_CONSUMED = split(
        "proxy-request-consumed",
        Weight(
            "content", CERTAIN, 0.0, -3.0, CERTAIN,
            "The client sends its request to a declared proxy (CONNECT, SOCKS), which consumes it and relays what "
            "follows.",
            Mechanism.RELAY,
        ),
    )  # fmt: skip
    RECOMPRESSED = split(
        "recompressed",
        Weight(
            "content", CERTAIN, -4.0, 0.0, CERTAIN,
            "The body of an answer arrives in another encoding or size: a proxy read it whole before it rewrote it.",
            Mechanism.REWRITING,
        ),
    )  # fmt: skip
    OTHER_BODY = split(
        "other-body",
        Weight(
            "content", CERTAIN, -1.5, 0.0, CERTAIN,
            "An HTTP answer arrives with another body of another size: a proxy reads a body with Content-Length whole "
            "before, but may rewrite a chunked one while it reads it.",
            Mechanism.REWRITING,
        ),
    )  # fmt: skip
    OTHER_SIZE = split(
        "other-size",
        Weight(
            "content", -4.0, -0.5, 0.0, -4.0, "A stream ends at another length than it left with.", Mechanism.REWRITING,
        ),
    )  # fmt: skip
    SAME_CONTENT = inapplicable("same-content")
    NO_PAYLOAD = inapplicable("no-payload")
    NO_COUNTERPART = inapplicable("no-counterpart", is_missing=True)
