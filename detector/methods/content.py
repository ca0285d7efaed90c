"""Content: the same transfer with other bytes or another size, or an answer that the server never gave (a cache)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from detector.clock import TIMESTAMP_ERROR_S
from detector.pair import Pair, Vantage
from detector.watching import Watched
from pepscope.packets import Direction, PayloadSample, TcpFlag
from pepscope.results import Evidence, Number, Outcome

if TYPE_CHECKING:
    from detector.clock import ClockRelation

METHOD = "content"
#: The finding where one of two captures lacks the connection and nothing follows from that.
NO_COUNTERPART = "no-counterpart"
#: Payload pieces that must have been compared before bytes are said to differ.
FEWEST_PIECES = 3
#: Share of pieces that agree: above the first the bytes are the same, below the second they are others.
SAME_SHARE = 0.9
OTHER_SHARE = 0.5
#: Application gateways (FTP, SIP behind NAT) replace an address in a control stream and shift what follows.
GATEWAY_BYTES = 64
#: Header fields that an HTTP proxy adds or changes.
PROXY_FIELDS = frozenset({b"via", b"x-forwarded-for", b"forwarded", b"x-real-ip", b"x-cache", b"age"})
_METHODS = (b"GET ", b"POST ", b"PUT ", b"HEAD ", b"DELETE ", b"OPTIONS ", b"PATCH ", b"HTTP/1.")


def examine(pair: Pair, clock: ClockRelation) -> Evidence:
    """Compare bytes and sizes of both streams at the two vantages.

    Findings: `proxy-request-consumed` (split, by a declared proxy), `recompressed` (split, the body of an answer has
    another size), `rewritten-headers` (split, by a proxy that understands HTTP), `other-bytes` (split), `other-size`
    (split), `same-content`, `no-payload`, `no-counterpart`.
    """
    client, server = pair.client_side, pair.server_side
    if client is None or server is None:
        return _inapplicable(
            NO_COUNTERPART,
            "Only one capture holds this connection: a cache may have answered, or the other capture missed it.",
        )
    consumed = _consumed_request(client, server)
    if consumed:
        return Evidence(
            METHOD, Outcome.SPLIT, "proxy-request-consumed", 0.95 * pair.pairing_confidence,
            f"The client asks a proxy by {consumed}, and the server never gets that request: the proxy takes it and "
            "passes on what follows.", {"request": consumed},
        )  # fmt: skip
    for direction in Direction:
        left, arrived = _opening(pair.sender(direction), direction), _opening(pair.receiver(direction), direction)
        if left is not None and arrived is not None and _headers_differ(left, arrived):
            lengths = [_field(message, b"content-length") for message in (left, arrived)]
            if direction is Direction.DOWN and None not in lengths and lengths[0] != lengths[1]:
                return Evidence(
                    METHOD, Outcome.SPLIT, "recompressed", 0.95 * pair.pairing_confidence,
                    f"The answer leaves with a body of {_shown(lengths[0])} bytes and arrives with one of "
                    f"{_shown(lengths[1])}: a proxy took it whole and wrote it anew.",
                    {"left_content_length": _shown(lengths[0]), "arrived_content_length": _shown(lengths[1])},
                )  # fmt: skip
            added = sorted(name.decode("ascii") for name in _added_fields(left, arrived))
            known = [name for name in added if name.encode() in PROXY_FIELDS]
            return Evidence(
                METHOD, Outcome.SPLIT, "rewritten-headers", (0.98 if known else 0.9) * pair.pairing_confidence,
                f"The HTTP {'request' if direction is Direction.UP else 'response'} arrives with another header than "
                f"it left with{f' (added: {chr(44).join(added)})' if added else ''}: a proxy wrote it.",
                {"direction": direction.name.lower(), "added_fields": ", ".join(added)},
            )  # fmt: skip
    return _bytes_and_sizes(pair, client, server)


def examine_unpaired(pair: Pair, others: Sequence[Pair], watched: Watched, split: Callable[[Pair], bool]) -> Evidence:
    """Examine a connection that only one of two captures holds, given the other pairs of the same two captures.

    A cache shows if another connection to the same server made the same request and got the same answer, if that one
    has a counterpart at the server with other sequence numbers (so something stands in between), if it came first, and
    if either the server's capture was running and would hold the connection (`watched`), or the answer came sooner than
    the server's could: the two parts of the earlier connection, which `split` says was split, take longer.
    Findings: `served-from-cache` (split, proxy), `no-counterpart`.
    """
    alone = pair.client_side
    if alone is None:
        return _inapplicable(NO_COUNTERPART, f"The client's capture lacks this connection. {watched.why}")
    if pair.server_side is not None:
        return _inapplicable(NO_COUNTERPART, "Only a connection without counterpart at the server can be a cache's.")
    earlier = [other for other in others if _answered_alike(other, alone)]
    if not earlier:
        return _inapplicable(
            NO_COUNTERPART,
            f"The server's capture lacks this connection, and no earlier one has the same content. {watched.why}",
        )
    first = earlier[0].vantages[0].connection.client
    numbers: dict[str, Number] = {
        "earlier_client": first,
        "answer_bytes": alone.connection.down.stream_bytes,
        "server_capture_watched": watched.proven,
    }
    if watched.proven:
        return Evidence(
            METHOD, Outcome.SPLIT, "served-from-cache", 0.8,
            f"The same answer as to {first} earlier, but no connection at the server, whose capture was running all "
            "the while: a cache in between answered.", numbers,
            (
                f"What proves that it was running: {watched.why}",
                "A server of several machines, of which one was captured, would look the same.",
            ),
        )  # fmt: skip
    return next(
        (found for other in earlier if split(other) and (found := _answered_too_soon(alone, other, numbers, watched))),
        _inapplicable(
            NO_COUNTERPART,
            "The server's capture lacks this connection, whose answer an earlier one got as well; a cache would "
            f"explain it, but: {watched.why}",
            numbers,
        ),
    )


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
    return Evidence(
        METHOD, Outcome.SPLIT, "served-from-cache", 0.8,
        f"The answer, the same as to {numbers['earlier_client']} earlier, came {answer_ns / 1e6:.3g} ms after the "
        f"request, but the two parts of that split connection take {path_ns / 1e6:.3g} ms: a cache in between "
        "answered.",
        {**numbers, "answer_s": answer_ns / 1e9, "least_round_trip_to_server_s": path_ns / 1e9},
        (f"A path that became {(path_ns - answer_ns) / 1e6:.3g} ms shorter would look the same. {watched.why}",),
    )  # fmt: skip


def _first_answer_ns(vantage: Vantage) -> int | None:
    """From the last byte of the first request to the first byte of its answer, which acknowledges it whole."""
    packets = vantage.packets
    data = packets.payload_bytes > 0
    answers = np.flatnonzero(data & (packets.direction == Direction.DOWN))
    requests = np.flatnonzero(data & (packets.direction == Direction.UP))
    asked = requests[requests < answers[0]] if len(answers) else requests[:0]
    if len(asked) == 0:
        return None
    end = packets.sequence_offset[asked[-1]] + int(packets.payload_bytes[asked[-1]])
    if packets.acknowledgement_offset[answers[0]] < end:
        return None
    return int(packets.time_ns[answers[0]] - packets.time_ns[asked[-1]])


def _least_ns(vantage: Vantage, sent: Direction) -> int | None:
    """The least round trip that the capture shows of what it sees leave in direction `sent`: handshake and data."""
    connection = vantage.connection
    handshake = connection.handshake_syn_ack_ns if sent is Direction.UP else connection.handshake_ack_ns
    return min((ns for ns in (handshake, vantage.flow(sent).round_trip_time_min_ns) if ns is not None), default=None)


def _answered_alike(other: Pair, alone: Vantage) -> bool:
    """Whether `other` is an earlier transfer of what `alone` got, through something in between."""
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


def _bytes_and_sizes(pair: Pair, client: Vantage, server: Vantage) -> Evidence:
    numbers: dict[str, Number] = {}
    for direction in Direction:
        name = direction.name.lower()
        alignment = pair.alignment.get(direction)
        sizes = [v.flow(direction).stream_bytes for v in (client, server)]
        numbers |= {f"{name}_client_side_bytes": sizes[0], f"{name}_server_side_bytes": sizes[1]}
        if alignment is not None:
            numbers |= {f"{name}_pieces_compared": alignment.compared, f"{name}_pieces_equal": alignment.matched}
            if alignment.compared >= FEWEST_PIECES and alignment.matched < OTHER_SHARE:
                return Evidence(
                    METHOD, Outcome.SPLIT, "other-bytes", (1.0 - alignment.matched) * pair.pairing_confidence,
                    f"{1 - alignment.matched:.0%} of the payload compared differs between the captures: the content "
                    "was changed on the way.", numbers,
                    ("Two different connections taken for one would look the same.",),
                )  # fmt: skip
    for direction in Direction:
        changed = size_change(client, server, direction)
        if changed is not None and changed != 0:
            strong = abs(changed) > GATEWAY_BYTES
            return Evidence(
                METHOD, Outcome.SPLIT, "other-size", (0.9 if strong else 0.4) * pair.pairing_confidence,
                f"The {direction.name.lower()} stream ends {abs(changed)} bytes "
                f"{'later' if changed > 0 else 'earlier'} where it arrives than where it left: it was rewritten.",
                numbers, () if strong else ("An application gateway of a NAT changes sizes by a few bytes, too.",),
            )  # fmt: skip
    compared = sum(a.compared for a in pair.alignment.values())
    if compared == 0:
        return _inapplicable("no-payload", "The captures hold no payload to compare.", numbers)
    return _inapplicable(
        "same-content", "Bytes and sizes are the same at both ends, as a relay leaves them too.", numbers
    )


def size_change(client: Vantage, server: Vantage, direction: Direction) -> int | None:
    """Bytes by which a stream grew on the way, from its SYN to its FIN; None unless both captures saw both."""
    ends = []
    for vantage in (client, server) if direction is Direction.UP else (server, client):
        packets = vantage.packets
        fins = (packets.direction == direction) & ((packets.flags & TcpFlag.FIN) != 0)
        if vantage.flow(direction).initial_sequence_number is None or not fins.any():
            return None
        end = packets.sequence_offset[fins] + packets.payload_bytes[fins].astype(np.int64)
        ends.append(int(end.max()))
    return ends[1] - ends[0]


def _opening(vantage: Vantage | None, direction: Direction) -> bytes | None:
    """The captured first bytes of a stream that starts like an HTTP message; None where that was not captured."""
    if vantage is None or vantage.flow(direction).initial_sequence_number is None:
        return None
    piece = _first_piece(vantage.payload.get(direction))
    return piece if piece is not None and piece.startswith(_METHODS) else None


def _first_piece(sample: PayloadSample | None) -> bytes | None:
    if sample is None:
        return None
    at_start = np.flatnonzero(sample.offsets == 0)
    return max((sample.pieces[int(i)] for i in at_start), key=len, default=None)


def _headers_differ(left: bytes, arrived: bytes) -> bool:
    """Whether the headers differ where both were captured."""
    common = min(len(left), len(arrived))
    return left[:common].split(b"\r\n\r\n")[0] != arrived[:common].split(b"\r\n\r\n")[0]


def _consumed_request(client: Vantage, server: Vantage) -> str | None:
    """The protocol in which the client asks a proxy for a connection, where the server did not get that request."""
    asked, got = (_first_piece(vantage.payload.get(Direction.UP)) for vantage in (client, server))
    if asked is None or got is None or client.connection.up.initial_sequence_number is None:
        return None
    for name, speaks in (("HTTP CONNECT", _is_connect), ("SOCKS", _is_socks)):
        if speaks(asked) and not speaks(got):
            return name
    return None


def _is_connect(opening: bytes) -> bool:
    """Whether a stream begins with a CONNECT request (RFC 9110, section 9.3.6)."""
    return opening.startswith(b"CONNECT ")


def _is_socks(opening: bytes) -> bool:
    """Whether a stream begins with a SOCKS greeting: version 5 (RFC 1928, section 3) alone in its segment, or 4."""
    if opening[:1] == b"\x05" and len(opening) > 2:
        return 1 <= opening[1] == len(opening) - 2
    return opening[:2] == b"\x04\x01" and len(opening) >= 9 and opening.endswith(b"\0")


def _field(message: bytes, name: bytes) -> bytes | None:
    """The value of a header field that was captured to the end of its line."""
    for line in message.split(b"\r\n\r\n")[0].split(b"\r\n")[1:-1]:
        key, colon, value = line.partition(b":")
        if colon and key.strip().lower() == name:
            return value.strip()
    return None


def _shown(value: bytes | None) -> str:
    return (value or b"").decode("ascii", "replace")


def _fields(message: bytes) -> set[bytes]:
    """Names of the complete header lines captured, in lower case."""
    lines = message.split(b"\r\n\r\n")[0].split(b"\r\n")[1:]
    return {line.split(b":")[0].strip().lower() for line in lines if b":" in line and line.isascii()}


def _added_fields(left: bytes, arrived: bytes) -> set[bytes]:
    """Header fields that arrived and did not leave; only a proxy's own ones where the left header is cut short."""
    added = _fields(arrived) - _fields(left)
    return added if b"\r\n\r\n" in left else added & PROXY_FIELDS


def _sequence_numbers(vantage: Vantage) -> tuple[int | None, int | None]:
    return vantage.connection.up.initial_sequence_number, vantage.connection.down.initial_sequence_number


def _same_opening(one: Vantage, two: Vantage, direction: Direction) -> bool:
    """Whether two connections carry streams of one size that begin with the same bytes."""
    first, second = (_first_piece(v.payload.get(direction)) for v in (one, two))
    if one.flow(direction).stream_bytes != two.flow(direction).stream_bytes or not first or not second:
        return False
    if direction is Direction.DOWN:
        return True  # response headers carry dates; the size agrees
    common = min(len(first), len(second))
    return first[:common] == second[:common]


def _inapplicable(finding: str, summary: str, numbers: dict[str, Number] | None = None) -> Evidence:
    return Evidence(METHOD, Outcome.INAPPLICABLE, finding, 0.0, summary, numbers or {})
