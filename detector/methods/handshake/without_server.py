"""Handshakes that were answered at the client although they never reached the server, whose capture was running."""

from __future__ import annotations

from detector.method import Observation
from pepscope.results.finding import Finding, Weight, split
from pepscope.results.verdicts import Evidence

NAME = "handshake"


class WithoutServerFinding(Finding):
    """A SYN that was answered and never reached the server."""

    ANSWERED_WITHOUT_SERVER = split(
        "answered-without-server",
        Weight(
            "handshake", -4.0, 0.0, 0.0, -4.0,
            "A middlebox that splits other connections to the server answered a SYN that never reached it; a SYN proxy "
            "or a further machine behind the server's address, beside that middlebox, explains it badly.",
        ),
    )  # fmt: skip


def examine(observation: Observation) -> Evidence | None:
    """The finding for a connection that only the client's capture holds; None where it is no evidence.

    A middlebox answered for the server if a SYN-ACK came back while the server's capture was running and holds no SYN.
    Where no other connection makes it sure that a middlebox splits connections to this server, one of several machines
    behind the server's address may have been captured instead.
    """
    absent, client = observation.absent, observation.pair.client_side
    if absent is None or client is None or not absent.watched.proven:
        return None
    connection = client.connection
    if not (connection.up.syn_count and connection.down.syn_count):
        return None
    certainty = absent.middlebox_certainty()
    if certainty <= 0:
        return None
    went_on = connection.handshake_ack_ns is not None
    return WithoutServerFinding.ANSWERED_WITHOUT_SERVER.evidence(
        NAME, certainty,
        f"The client's handshake was {'completed' if went_on else 'answered'}, but no SYN reached the server, whose "
        "capture was running all the time: the middlebox that splits other connections to this server answered.",
        {"handshake_completed": went_on, "box_certainty": round(certainty, 3)},
        (
            f"Why the capture was running: {absent.watched.why}",
            "Several servers behind one address (an L4 load balancer), of which one was captured, look the same.",
        ),
    )  # fmt: skip
