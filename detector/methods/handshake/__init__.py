"""Handshake: are SYN and SYN-ACK the segments that left, another stack's, or rewritten on the way? Needs no clock."""

from __future__ import annotations

from detector.methods.handshake.examination import examine

__all__ = ["examine"]
