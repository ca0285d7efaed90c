"""What every finding says about each hypothesis: one table, in nats, with a reason for every row.

A row states how badly each hypothesis explains the finding: the natural logarithm of P(finding | hypothesis), relative
to the hypothesis that explains it best (0). `END` is end to end, `RELAY` two concurrent connections (Split-TCP),
`STORE` a proxy that takes the data first and forwards them afterwards, `LOCAL` a box that acknowledges in the
receiver's name and passes the data segments on untouched (RFC 3135, section 3.1.2). No row says more than `CERTAIN`:
beyond that the model is in doubt rather than the hypothesis.

`VERSION` counts the table's versions. `benchmarks/calibration` fits the values on training draws and reports how well
the probabilities that follow from them hold on others; docs/validation.md has the figures.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from pepscope.results import Mechanism

VERSION = 3

#: The most that one finding says against a hypothesis: one in three thousand.
CERTAIN = -8.0


class Hypothesis(StrEnum):
    """What a connection may be."""

    END = "end to end"
    RELAY = "relay"
    STORE = "store and forward"
    LOCAL = "local acknowledgement"


#: Probabilities before any evidence. Seed deployments (Wei et al., Table I) show six Split-TCP entries against four TCP
#: proxy entries, and store-and-forward leaves marks on all but short transfers, so that a relay is twice as frequent
#: where nothing shows; local acknowledgement is known from satellite paths only.
PRIOR: Mapping[Hypothesis, float] = {
    Hypothesis.END: 0.5,
    Hypothesis.RELAY: 0.31,
    Hypothesis.STORE: 0.155,
    Hypothesis.LOCAL: 0.035,
}


@dataclass(frozen=True, slots=True)
class Weight:
    """What a finding at strength 1 says of each hypothesis (nats, 0 or below), and the family whose findings overlap.

    `mechanism` is the one that the finding names, if it names one.
    """

    family: str
    end: float
    relay: float
    store: float
    local: float
    reason: str
    mechanism: Mechanism | None = None

    def of(self, hypothesis: Hypothesis) -> float:
        """The nats of one hypothesis."""
        return {
            Hypothesis.END: self.end,
            Hypothesis.RELAY: self.relay,
            Hypothesis.STORE: self.store,
            Hypothesis.LOCAL: self.local,
        }[hypothesis]

    @property
    def split(self) -> float:
        """For a split of whichever mechanism against end to end, positive for a split."""
        return max(self.relay, self.store, self.local) - self.end

    @property
    def proxy(self) -> float:
        """For a TCP proxy against Split-TCP, positive for the proxy."""
        return self.store - max(self.relay, self.local)


FINDINGS: Mapping[str, Weight] = {
    # Identity: which segments arrive as they left. The cap stands for what its likelihood ratio leaves out.
    "same-packets": Weight(
        "identity", 0.0, CERTAIN, CERTAIN, CERTAIN,
        "Data and acknowledgements arrive as the far end made them; no box in between makes either.",
    ),
    "same-data": Weight(
        "identity", 0.0, CERTAIN, CERTAIN, 0.0,
        "Data segments arrive as they left; nothing is known of who made the acknowledgements.",
    ),
    "maker-changes": Weight(
        "identity", -2.5, 0.0, 0.0, -2.5,
        "From some byte on the segments are another stack's: a box took over, or copies were missed by a capture.",
    ),
    "acks-nobody-sent": Weight(
        "identity", -2.0, CERTAIN, CERTAIN, 0.0,
        "Data segments arrive as they left, acknowledgements do not: a box acknowledges, before the data arrive or "
        "after; one in fifty paths of the training draws thins or regenerates them.",
    ),
    "other-packets": Weight(
        "identity", CERTAIN, 0.0, 0.0, CERTAIN,
        "The data segments that arrive were made by another stack than the far end's.",
    ),
    "other-acknowledgements": Weight(
        "identity", -5.0, 0.0, 0.0, 0.0,
        "The acknowledgements are another stack's, and the data segments tell nothing; boxes that only regenerate "
        "acknowledgements are rarer than splits.",
    ),
    # The transport protocol changes from TCP to UDP; the mechanism's order is read off when the bytes left.
    "transport-changed": Weight(
        "identity", CERTAIN, 0.0, 0.0, CERTAIN, "UDP carries the same bytes at the other end.", Mechanism.TUNNEL
    ),
    "transport-changed-relayed": Weight(
        "identity", CERTAIN, 0.0, -4.0, CERTAIN, "The same, while TCP still carried data.", Mechanism.TUNNEL
    ),
    "transport-changed-stored": Weight(
        "identity", CERTAIN, -4.0, 0.0, CERTAIN, "The same, after TCP had carried all data.", Mechanism.TUNNEL
    ),
    # Encryption at one end only: other bytes in both directions. Pairing's doubt is in the strength.
    "tls-ended": Weight(
        "content", -6.0, 0.0, 0.0, CERTAIN,
        "TLS at one end, other bytes of that size at the other: TLS ends in between.", Mechanism.TLS_INTERCEPTION,
    ),
    "encrypted-leg": Weight(
        "content", -6.0, 0.0, 0.0, CERTAIN,
        "Encrypted at one end, other bytes of that size at the other: a tunnel of streams.", Mechanism.TUNNEL,
    ),
    # Timing: when acknowledgements came, and how far the sender got by them; one cause, one family.
    "acks-before-data": Weight(
        "timing", 1.5 * CERTAIN, 0.0, 0.0, 0.0,
        "Bytes were acknowledged that had not reached the receiver, under every admissible clock: impossible end to "
        "end, so it outweighs any one finding.",
    ),
    "acks-after-data": Weight(
        "timing", 0.0, -1.0, -2.5, 0.0,
        "One clock fits; a split point without a queue fits as well, and a box that acknowledges before one.",
    ),
    "acks-nearer-than-path": Weight(
        "timing", -2.0, 0.0, 0.0, 0.0,
        "Acknowledgements came from nearer than the receiver, or the data always met a queue.",
    ),
    "acks-before-receivers": Weight(
        "timing", -6.0, 0.0, 0.0, 0.0,
        "The receiver had not acknowledged those bytes yet; its capture may have lost the first of repeated ones.",
    ),
    "acks-cross-whole-path": Weight(
        "timing", 0.0, -3.0, -4.0, -5.0,
        "Even the fastest acknowledgement took the whole path; a box that acknowledges in the middle of it is nearer.",
    ),
    "acks-sooner-than-path": Weight(
        "timing", -6.0, 0.0, 0.0, 0.0, "Held acknowledgements came sooner than anything comes back from the far end."
    ),
    "sender-in-step": Weight("timing", 0.0, -1.5, -1.5, 0.0, "As `acks-after-data`, in bytes."),
    "sender-ahead": Weight(
        "timing", -6.0, 0.0, -0.5, 0.0, "The lead is a buffer's; a store that streams leads by no more."
    ),
    "sender-far-ahead": Weight(
        "timing", -6.0, 0.0, 0.0, 0.0,
        "Most of the transfer was taken in early, but a relay's socket buffers may hold as much.",
    ),
    "sender-beyond-buffers": Weight(
        "timing", -6.0, -4.0, 0.0, -4.0, "The sender led by more than the socket buffers of a relay hold."
    ),
    "stored-before-forwarded": Weight(
        "timing", -6.0, -6.0, 0.0, -6.0, "Nothing was forwarded while much more than a receive window was taken in."
    ),
    "held-before-forwarded": Weight(
        "timing", -6.0, -4.0, 0.0, -6.0,
        "Even the fastest byte waited for much of the transfer's duration; a relay behind a queue that other "
        "connections had filled does the same.",
    ),
    # Acknowledgements held back on purpose need no clock, so they stand beside the timing.
    "acks-not-from-receiver": Weight(
        "held-acks", -7.0, 0.0, 0.0, 0.0, "Round trips shorter than the delay that the receiver put on every ACK."
    ),
    "acks-only-from-receiver": Weight(
        "held-acks", 0.0, -5.0, -5.0, -5.0, "No round trip is shorter than that delay, which exceeds the path's."
    ),
    # The window at the sender against the one that the receiver advertised.
    "window-alternates": Weight(
        "window", -4.0, 0.0, -5.0, -1.0, "A buffer in between fills and empties; a store takes everything."
    ),
    "window-open-receiver-behind": Weight(
        "window", -3.0, 0.0, 0.0, -1.0, "The data waited in between; large socket buffers do that as well as a store."
    ),
    # Other bytes: only a box that reassembles the stream can change it.
    "rewritten-headers": Weight(
        "content", CERTAIN, 0.0, 0.0, CERTAIN, "An HTTP head arrives changed.", Mechanism.REWRITING
    ),
    "proxy-request-consumed": Weight(
        "content", CERTAIN, 0.0, -3.0, CERTAIN,
        "The client speaks to a declared proxy (CONNECT, SOCKS), which consumes the request and relays what follows.",
        Mechanism.RELAY,
    ),
    "recompressed": Weight(
        "content", CERTAIN, -4.0, 0.0, CERTAIN,
        "The body of an answer arrives in another encoding or size: it was taken whole before it was written anew.",
        Mechanism.REWRITING,
    ),
    "other-bytes": Weight(
        "content", CERTAIN, -0.5, 0.0, CERTAIN, "The payload differs: rewritten, or encrypted on one leg.",
        Mechanism.REWRITING,
    ),
    "other-size": Weight(
        "content", -4.0, -0.5, 0.0, -4.0, "A stream ends at another length than it left with.", Mechanism.REWRITING
    ),
    "served-from-cache": Weight(
        "content", CERTAIN, -6.0, 0.0, CERTAIN, "An answer came that the watched server never gave.", Mechanism.CACHE
    ),
    "another-certificate": Weight(
        "content", CERTAIN, 0.0, 0.0, CERTAIN, "TLS is ended by another host than the server.",
        Mechanism.TLS_INTERCEPTION,
    ),
    # Active: what HTTP intermediaries leave at both ends. Where added fields declare no proxy the strength is below
    # 0.5, since header enrichment inserts fields into a stream that it does not end.
    "proxy-header-added": Weight(
        "content", -6.0, 0.0, 0.0, -6.0, "A header field arrives that neither end sent.", Mechanism.REWRITING
    ),
    "request-on-older-connection": Weight(
        "requests", CERTAIN, 0.0, 0.0, CERTAIN,
        "The one request of a new connection reaches the server on a connection that was there before.",
    ),
    # What aborts leave behind.
    "acknowledged-beyond-abort": Weight(
        "teardown", -5.0, 0.0, 0.0, 0.0, "More was acknowledged than an aborting receiver got."
    ),
    "abort-end-to-end": Weight("teardown", 0.0, -0.5, -0.5, -0.5, "The abort reached the sender."),
    "fin-before-sent": Weight(
        "teardown", -2.5, 0.0, 0.0, -2.5,
        "A box ended its connection to one end by itself; a capture that lost the first of two FINs looks the same.",
    ),
    "fin-before-forwarded": Weight(
        "teardown", -2.5, -2.0, 0.0, -2.5,
        "It did so while most of the data was still to be forwarded; relays with large buffers seldom have as much.",
    ),
    "leg-outlives-abort": Weight("teardown", -5.0, 0.0, 0.0, -2.0, "The sender's connection outlives the receiver's."),
    # SYN and SYN-ACK at both ends. Boxes that acknowledge locally pass handshakes on.
    "handshake-of-another-stack": Weight(
        "handshake", -5.0, 0.0, 0.0, -5.0,
        "The handshake carries what neither normalisers nor SYN proxies write, such as options that were never sent.",
    ),
    "handshake-made-anew": Weight(
        "handshake", -2.5, 0.0, 0.0, -2.5, "SYN proxies, and normalisers that rewrite everything, do so, too."
    ),
    "handshake-same-segments": Weight(
        "handshake", 0.0, -2.5, -2.5, 0.0, "Splits make handshakes of their own, but some begin only after it."
    ),
    # Active: firewalls that answer SYNs for a server write handshakes anew, and filters answer in a stream that they do
    # not split, so neither decides alone.
    "syn-of-another-stack": Weight("handshake", -2.5, 0.0, 0.0, -2.5, "SYN proxies in firewalls write SYNs, too."),
    "handshake-answered-nearer": Weight("handshake", -2.5, 0.0, 0.0, -2.5, "SYN proxies in firewalls do so, too."),
    "handshake-answered-at-the-end": Weight("handshake", 0.0, -1.0, -1.0, 0.0, "Splits that connect first do so, too."),
    "handshake-shorter-than-path": Weight("handshake", -2.5, 0.0, 0.0, -2.5, "SYN proxies in firewalls do so, too."),
    "handshake-as-long-as-path": Weight("handshake", 0.0, -0.5, -0.5, 0.0, "Splits that connect first do so, too."),
    "dead-port-answered": Weight("handshake", -2.5, 0.0, 0.0, -2.5, "SYN proxies in firewalls do so, too."),
    "dead-port-silent": Weight("handshake", 0.0, -0.5, -0.5, 0.0, "Splits that connect first do so, too."),
    "answered-for-the-server": Weight("answers", -2.5, 0.0, 0.0, -2.5, "Filters answer in streams that they pass on."),
    # Active: payload was acknowledged that the receiver certainly had not taken.
    "dead-port-took-data": Weight("taken-in-between", -6.0, 0.0, 0.0, 0.0, "No host was there to take it."),
    "more-taken-than-receiver-holds": Weight("taken-in-between", -6.0, 0.0, 0.0, 0.0, "A box in between holds it."),
    "no-more-taken-than-receiver-holds": Weight(
        "taken-in-between", 0.0, -1.0, -1.0, -1.0, "A split with small buffers looks the same."
    ),
}  # fmt: skip
