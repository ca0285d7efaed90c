"""Identity: are the segments that arrive the ones that left? Needs no clock, and speaks for both answers."""

from __future__ import annotations

from detector.methods.identity.examination import examine

__all__ = ["examine"]
