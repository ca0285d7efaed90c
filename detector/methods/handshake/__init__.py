"""Handshake: are SYN and SYN-ACK the segments that left, another stack's, or rewritten on the way? Needs no clock."""

from __future__ import annotations

from detector.method import Method, by_connection
from detector.methods.handshake import without_server
from detector.methods.handshake.examination import NAME, HandshakeFinding, examine
from detector.methods.handshake.without_server import WithoutServerFinding

METHOD = Method(NAME, "handshake", (HandshakeFinding,), examine)
WITHOUT_SERVER = Method(
    NAME, "handshake", (WithoutServerFinding,), by_connection(without_server.examine), judges_plain=False
)

__all__ = ["METHOD", "WITHOUT_SERVER", "HandshakeFinding", "WithoutServerFinding", "examine"]
