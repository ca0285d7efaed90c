"""A connection that only one of two captures holds: an answer that the server never gave comes from a cache."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from detector.clocks.clock_relation import TIMESTAMP_ERROR_S
from detector.method import Absent, Observation
from detector.methods.content.findings import NAME, ContentFinding
from detector.methods.content.stream_heads import first_piece
from detector.pair import Pair, Vantage
from detector.vantage.watching import Watched
from pepscope.captures.packets import Direction
from pepscope.results.transfer_findings import TransferFinding
from pepscope.results.verdicts import Evidence, Number


def examine(observation: Observation) -> Evidence | None:
    """Examine a connection that only one of two captures holds; None where both hold it, or there is one capture.

    A cache shows if another connection to the same server made the same request and got the same answer, if that one
    is split, if it came first, and if either the server's capture was running and would hold the connection, or the
    answer came sooner than the server's could: the two parts of the earlier connection take longer. Other sequence
    numbers alone show no split, since firewalls change them, too. Where one of the client's connections to the server
    arrives whole, another of several machines behind the server's address may have answered, unless the split one is
    this client's as well.
    """
    pair, absent = observation.pair, observation.absent
    if absent is None:
        return None
    watched = absent.watched
    alone = pair.client_side
    if alone is None:
        return ContentFinding.NO_COUNTERPART.undecided(
            NAME, f"The client's capture lacks this connection. {watched.why}"
        )
    if pair.server_side is not None:
        return ContentFinding.NO_COUNTERPART.undecided(
            NAME, "A cache can have answered only a connection without counterpart at the server."
        )
    earlier = [other for other in absent.earlier if _answered_alike(other, alone)]
    if not earlier:
        return ContentFinding.NO_COUNTERPART.undecided(
            NAME,
            f"The server's capture lacks this connection, and no earlier one has the same content. {watched.why}",
        )
    return _same_answer_before(alone, absent, earlier)


def _same_answer_before(alone: Vantage, absent: Absent, earlier: Sequence[Pair]) -> Evidence:
    """What it means that `earlier` connections got the answer of `alone`, whose server's capture lacks it."""
    watched = absent.watched
    first = earlier[0].vantages[0].connection.client
    numbers: dict[str, Number] = {
        "earlier_client": first,
        "answer_bytes": alone.connection.down.stream_bytes,
        "server_capture_watched": watched.proven,
    }
    whole = absent.arrives_whole()
    split = [other for other in earlier if (not whole or _is_of_client(other, alone)) and absent.is_split(other)]
    if watched.proven and split:
        return TransferFinding.SERVED_FROM_CACHE.evidence(
            NAME, 0.8,
            f"{first} got the same answer earlier, but this connection did not reach the server, whose capture was "
            "running all the time: a cache on the path answered.", numbers,
            (
                f"Why the capture was running: {watched.why}",
                "Several servers behind one address (an L4 load balancer), of which one was captured, look the same.",
            ),
        )  # fmt: skip
    return next(
        (found for other in split if (found := _answered_too_soon(alone, other, numbers, watched))),
        ContentFinding.NO_COUNTERPART.undecided(
            NAME,
            "The server's capture lacks this connection, and an earlier connection got the same answer; a cache would "
            f"explain it, but: {_doubt(watched, is_any_split=bool(split), whole=whole)}",
            numbers,
        ),
    )


def _is_of_client(other: Pair, alone: Vantage) -> bool:
    """Whether an earlier pair is of the client of `alone`."""
    return other.vantages[0].connection.client_address == alone.connection.client_address


def _doubt(watched: Watched, *, is_any_split: bool, whole: bool) -> str:
    """What speaks against a cache."""
    if is_any_split or not watched.proven:
        return watched.why
    if whole:
        return (
            "Other connections of this client to the server are end to end, so that another machine behind the "
            "server's address may have answered."
        )
    return "No earlier one is known to be split."


def _answered_too_soon(
    alone: Vantage, earlier: Pair, numbers: Mapping[str, Number], watched: Watched
) -> Evidence | None:
    """Whether `alone` was answered sooner than a round trip through both parts of the split connection `earlier`.

    The hidden part's least round trip is what an answer of the server's takes longer than one from the split point;
    an answer nearer to the latter, by more than time stamps err, is the split point's.
    """
    answer_ns, near_ns = _first_answer_ns(alone), _least_ns(alone, Direction.UP)
    hidden_ns = None if earlier.server_side is None else _least_ns(earlier.server_side, Direction.DOWN)
    known_ns = None if earlier.client_side is None else _least_ns(earlier.client_side, Direction.UP)
    if answer_ns is None or near_ns is None or hidden_ns is None or known_ns is None:
        return None
    path_ns = min(near_ns, known_ns) + hidden_ns
    if path_ns - answer_ns < max(hidden_ns / 2, TIMESTAMP_ERROR_S * 1e9):
        return None
    return TransferFinding.SERVED_FROM_CACHE.evidence(
        NAME, 0.8,
        f"The answer, which {numbers['earlier_client']} got earlier as well, came {answer_ns / 1e6:.3g} ms after the "
        f"request, but the two legs of that split connection take {path_ns / 1e6:.3g} ms: a cache on the path "
        "answered.",
        {**numbers, "answer_s": answer_ns / 1e9, "least_round_trip_to_server_s": path_ns / 1e9},
        (f"A path that became {(path_ns - answer_ns) / 1e6:.3g} ms shorter looks the same. {watched.why}",),
    )  # fmt: skip


def _first_answer_ns(vantage: Vantage) -> int | None:
    """From the last byte of the first request to the first byte of its answer, which acknowledges it whole."""
    packets = vantage.packets
    data = packets.payload_bytes > 0
    answers = np.flatnonzero(data & packets.going(Direction.DOWN))
    requests = np.flatnonzero(data & packets.going(Direction.UP))
    asked = requests[requests < answers[0]] if len(answers) else requests[:0]
    if len(asked) == 0:
        return None
    end = packets.sequence_offset[asked[-1]] + int(packets.payload_bytes[asked[-1]])
    if packets.acknowledgement_offset[answers[0]] < end:
        return None
    return int(packets.time_ns[answers[0]] - packets.time_ns[asked[-1]])


def _least_ns(vantage: Vantage, sent: Direction) -> int | None:
    """The least round trip in the capture of segments that leave in direction `sent`: handshake and data."""
    connection = vantage.connection
    handshake = connection.handshake_syn_ack_ns if sent is Direction.UP else connection.handshake_ack_ns
    return min((ns for ns in (handshake, vantage.flow(sent).round_trip_time_min_ns) if ns is not None), default=None)


def _answered_alike(other: Pair, alone: Vantage) -> bool:
    """Whether `other` is an earlier transfer, through a middlebox, of what `alone` got."""
    near, far = other.client_side, other.server_side
    if near is None or far is None or near.connection.first_time_ns >= alone.connection.first_time_ns:
        return False
    # Sequence numbers that one capture lacks differ from nothing.
    between = any(
        None not in seen and seen[0] != seen[1]
        for seen in zip(_sequence_numbers(near), _sequence_numbers(far), strict=True)
    )
    same_server = near.connection.server == alone.connection.server
    return same_server and between and all(_same_opening(near, alone, direction) for direction in Direction)


def _same_opening(one: Vantage, two: Vantage, direction: Direction) -> bool:
    """Whether two connections carry streams of one size that begin with the same bytes."""
    first, second = (first_piece(v.payload.get(direction)) for v in (one, two))
    if one.flow(direction).stream_bytes != two.flow(direction).stream_bytes or not first or not second:
        return False
    if direction is Direction.DOWN:
        return True  # response headers carry dates; the size agrees
    common = min(len(first), len(second))
    return first[:common] == second[:common]


def _sequence_numbers(vantage: Vantage) -> tuple[int | None, int | None]:
    return vantage.connection.up.initial_sequence_number, vantage.connection.down.initial_sequence_number
