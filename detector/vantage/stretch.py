"""Which stretch of the path lies between the two captures of a connection, and what lies beyond them.

A host sends with a hop limit of 64, 128 or 255 and every router lowers it by one, so the packets of the near end say
how many routers lie between that host and its side's capture. The round trip from the capture to the near end and back
(the answer to the handshake, acknowledgements of data that arrive there) gives the length of that stretch. Two captures
judge what lies between them and nothing beyond.
"""

from __future__ import annotations

from detector.pair import Pair
from detector.vantage.capture_sides import INITIAL_HOP_LIMITS
from detector.vantage.one_place import OnePlace
from pepscope import _core
from pepscope.captures.connections import FlowSummary
from pepscope.results.verdicts import Stretch

#: A near end that never answers sooner is some way off: above a host's own answering time (scheduling, interrupt
#: coalescing: below 1 ms on ordinary hosts) and below the round trip of a path worth two captures.
NEAR_ANSWER_S = 0.010


def stretch_of(pair: Pair, place: OnePlace | None = None) -> Stretch | None:
    """What lies between and beyond the captures of `pair`; None unless both hold the connection in TCP.

    `place`: they were taken at one place.
    """
    client, server = pair.client_side, pair.server_side
    if client is None or server is None:
        return None
    near, far = client.connection, server.connection
    # The most frequent one counts: a middlebox that answers handshakes in a host's stead uses its own.
    at_client, _ = _core.hop_limits(client.packets)
    at_server, down_at_server = _core.hop_limits(server.packets)
    guessed = near.side_guessed or far.side_guessed
    same_handshake = not guessed and near.up.initial_sequence_number == far.up.initial_sequence_number
    between_ns = _difference(near.handshake_syn_ack_ns, far.handshake_syn_ack_ns) if same_handshake else None
    # Acknowledgements held back on purpose (Method 3) lengthen every answer of the receiver.
    held = pair.options.ack_delay_s is not None
    return Stretch(
        one_place=place is not None,
        client_hops_beyond=_hops(at_client),
        server_hops_beyond=_hops(down_at_server),
        client_round_trip_beyond_s=None if held else _least_s(near.handshake_ack_ns, near.down),
        server_round_trip_beyond_s=None if held else _least_s(far.handshake_syn_ack_ns, far.up),
        hops_between=_difference(at_client, at_server) if same_handshake else None,
        round_trip_between_s=None if between_ns is None else between_ns / 1e9,
    )


def coverage(stretch: Stretch | None) -> str:
    """The sentence on the path that a verdict does not cover; empty where both captures were taken at the end hosts."""
    if stretch is None:
        return ""
    left_out = [
        text
        for text in (
            _beyond("client", stretch.client_hops_beyond, stretch.client_round_trip_beyond_s),
            _beyond("server", stretch.server_hops_beyond, stretch.server_round_trip_beyond_s),
        )
        if text
    ]
    if not left_out:
        return ""
    return f"Covers the stretch between the two captures; not covered: {', and '.join(left_out)}."


def _beyond(side: str, hops: int | None, round_trip_s: float | None) -> str:
    far = round_trip_s is not None and round_trip_s >= NEAR_ANSWER_S
    if hops:
        long = f" with a round trip of {1e3 * round_trip_s:.3g} ms" if far and round_trip_s is not None else ""
        return f"{hops} hop{'' if hops == 1 else 's'}{long} beyond the {side}-side capture"
    if far and round_trip_s is not None:
        return (
            f"whatever makes the near end of the {side}-side capture answer only after {1e3 * round_trip_s:.3g} ms "
            "(a path, or a host that is slow to answer)"
        )
    return ""


def _hops(hop_limit: int | None) -> int | None:
    if hop_limit is None:
        return None
    return min((limit - hop_limit for limit in INITIAL_HOP_LIMITS if limit >= hop_limit), default=None)


def _difference(client_side: int | None, server_side: int | None) -> int | None:
    """By how much the client side's is greater; None where one is unknown or it is not greater."""
    if client_side is None or server_side is None or client_side < server_side:
        return None
    return client_side - server_side


def _least_s(handshake_ns: int | None, arriving: FlowSummary) -> float | None:
    """Least time until the near end answered, from the handshake and the data that arrive there."""
    known = [time_ns for time_ns in (handshake_ns, arriving.round_trip_time_min_ns) if time_ns is not None]
    return min(known) / 1e9 if known else None
