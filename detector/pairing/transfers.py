"""What two connections that may be one transfer show of each other.

Addresses, lengths and turns, and whether their streams begin with one HTTP request, in the form that a proxy may have
given it, or with one answer.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime

from msgspec import Struct

from detector.pair import Pair, Vantage
from detector.pairing.candidates import lead_through_one_host
from detector.pairing.confidence import SMALL_BYTES
from detector.pairing.match import Match
from detector.pairing.starts.turns_within import TurnsWithin
from pepscope.captures.connections import Connection
from pepscope.captures.packets import Direction, PayloadSample

_REQUEST_LINE = re.compile(rb"([A-Z]{3,10}) (?:https?://([^/ ]+))?(/[^ \r\n]*)( HTTP/1\.[01]\r\n)?")
_HOST = re.compile(rb"\r\nhost:[ \t]*([^\r\n]+)\r\n", re.IGNORECASE)

_DATE = re.compile(rb"\r\ndate:[ \t]*([^\r\n]+)\r\n", re.IGNORECASE)

#: What a proxy that dates an answer anew differs by: a second of rounding, and one for the way.
DATED_ANEW_S = 2

#: Shortest path that counts where the snap length cut it.
CUT_PATH_BYTES = 12


class _Request(Struct, frozen=True):
    method: bytes
    path: bytes
    whole: bool  # the capture holds the path to its end
    host: bytes | None  # None where it was not captured


def same_request(one: PayloadSample, two: PayloadSample) -> bool:
    """Whether method and path agree, and the host where both captures hold it (RFC 9112 section 3.2)."""
    first, second = _request(one), _request(two)
    if first is None or second is None or first.method != second.method:
        return False
    if first.host is not None and second.host is not None and first.host != second.host:
        return False
    if first.whole and second.whole:
        return first.path == second.path
    common = min(len(first.path), len(second.path))
    return common >= CUT_PATH_BYTES and first.path[:common] == second.path[:common]


def another_answer(one: PayloadSample, two: PayloadSample) -> bool:
    """Whether both streams begin with HTTP answers that were generated at different times.

    The server dates an answer, and who passes it on leaves the date alone (RFC 9110 section 6.6.1), or, as nginx does,
    puts the time of passing on there.
    """
    first, second = (_generated(_opening(sample)) for sample in (one, two))
    return first is not None and second is not None and abs((first - second).total_seconds()) > DATED_ANEW_S


def _generated(opening: bytes) -> datetime | None:
    """When an HTTP answer was generated; None where it is none, or the capture cut its head off before that."""
    head, end, _ = opening.partition(b"\r\n\r\n")
    found = _DATE.search(head + end) if head.startswith(b"HTTP/1.") else None
    if found is None:
        return None
    from email.utils import parsedate_to_datetime  # it imports socket and random

    try:
        date = parsedate_to_datetime(found[1].decode("ascii"))
    except ValueError:
        return None
    return date if date.tzinfo else date.replace(tzinfo=UTC)


def _opening(sample: PayloadSample) -> bytes:
    """The longest piece that was captured of the stream's start."""
    return sample.opening or b""


def _request(sample: PayloadSample) -> _Request | None:
    """The request at the stream's start, as far as it was captured."""
    opening = _opening(sample)
    line = _REQUEST_LINE.match(opening)
    if line is None:
        return None
    host = _HOST.search(opening)
    named = line[2] or (host[1].strip() if host else None)
    # Proxies leave the default port out, or write it (RFC 9110 section 4.2.3).
    return _Request(line[1], line[3], line[4] is not None, named.lower().removesuffix(b":80") if named else None)


class LoadedTransfers:
    """What two connections that may be one show of each other; looked for where it is asked."""

    def __init__(
        self, pair: Pair, match: Match, turns: TurnsWithin, has_identified: Callable[[Connection], bool]
    ) -> None:
        """`has_identified`: whether sequence numbers or packets identify another one of its client and server."""
        self._pair, self._match, self._turns, self._has_identified = pair, match, turns, has_identified
        self._client_side, self._server_side = pair.vantages
        self._same_transfers = pair.options.same_transfers
        self.was_asked = False

    @property
    def are_the_same(self) -> bool:
        """Whether the user says that they are one."""
        return self._same_transfers

    @property
    def are_related(self) -> bool:
        """Whether they have an address in common, or the user says that they are one."""
        self.was_asked = True
        return self._same_transfers or _addresses_in_common(self._client_side.connection, self._server_side.connection)

    @property
    def asked_alike(self) -> bool:
        """Whether they begin with the same request."""
        self.was_asked = True
        return same_request(self._client_side.payload[Direction.UP], self._server_side.payload[Direction.UP])

    @property
    def has_another_answer(self) -> bool:
        """Whether their answers were generated at different times."""
        self.was_asked = True
        return another_answer(self._client_side.payload[Direction.DOWN], self._server_side.payload[Direction.DOWN])

    @property
    def is_small(self) -> bool:
        """Whether both directions together carry less than `SMALL_BYTES`."""
        self.was_asked = True
        return max(_stream_bytes(self._client_side), _stream_bytes(self._server_side)) < SMALL_BYTES

    @property
    def is_beside_identified_ones(self) -> bool:
        """Whether sequence numbers or packets identify other connections of this client to this server, and the
        server's side may be another client's: it names other hosts."""
        self.was_asked = True
        one, other = self._client_side.connection, self._server_side.connection
        same_hosts = (one.client_address, one.server) == (other.client_address, other.server)
        return not same_hosts and self._has_identified(one)

    @property
    def turns_nats(self) -> float:
        """What their turns show against two transfers."""
        self.was_asked = True
        return self._turns.nats(self._match, self._pair)


def _addresses_in_common(client_side: Connection, server_side: Connection) -> bool:
    one, other = ((each.client_address, each.server_address) for each in (client_side, server_side))
    return lead_through_one_host(one, other)


def _stream_bytes(vantage: Vantage) -> int:
    """What both directions carried."""
    return vantage.connection.up.stream_bytes + vantage.connection.down.stream_bytes
