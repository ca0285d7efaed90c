"""Identity: are the segments that arrive the ones that left? Needs no clock, and speaks for both answers."""

from __future__ import annotations

from detector.methods.identity.agreement import FITTED_NATS, IP_ID_NATS, REWRITABLE_NATS
from detector.methods.identity.examination import DECISIVE_NATS, examine
from detector.methods.identity.field_weights import Voice, field_nats, voice_name

__all__ = [
    "DECISIVE_NATS",
    "FITTED_NATS",
    "IP_ID_NATS",
    "REWRITABLE_NATS",
    "Voice",
    "examine",
    "field_nats",
    "voice_name",
]
