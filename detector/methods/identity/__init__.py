"""Identity: are the segments that arrive the segments that left? Needs no clock and can support both verdicts."""

from __future__ import annotations

from detector.method import Method, by_connection
from detector.methods.identity import transport
from detector.methods.identity.agreement import FITTED_NATS, IP_ID_NATS, REWRITABLE_NATS
from detector.methods.identity.examination import DECISIVE_NATS, examine
from detector.methods.identity.field_weights import ClassField, class_field_name, field_nats
from detector.methods.identity.findings import NAME, IdentityFinding
from detector.methods.identity.transport import TransportFinding

METHOD = Method(NAME, "packet identity", (IdentityFinding,), examine)
TRANSPORT = Method(
    NAME, "packet identity", (TransportFinding,), by_connection(transport.examine), reads_datagrams=True,
    judges_plain=False,
)  # fmt: skip

__all__ = [
    "DECISIVE_NATS",
    "FITTED_NATS",
    "IP_ID_NATS",
    "METHOD",
    "REWRITABLE_NATS",
    "TRANSPORT",
    "ClassField",
    "IdentityFinding",
    "class_field_name",
    "examine",
    "field_nats",
]
