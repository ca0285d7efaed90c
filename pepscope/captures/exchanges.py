"""Exchanges of connections: one side's question and the other side's answer, as one capture shows them."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Any

import numpy.typing as npt
from msgspec import Struct

from pepscope import _core
from pepscope.captures.packets import (
    BoolArray,
    Direction,
    Int64Array,
    PacketColumns,
    PayloadSample,
    UInt8Array,
    UInt32Array,
)

#: In `RoundTripColumns.handshake_ns`: the answer was captured more than 1 ms before what it answers.
ANSWERED_BEFORE = -2


class ExchangeKind(IntEnum):
    """Kind of an exchange, as far as the captured bytes show it.

    The codes are those of `_core.exchange_kinds()`.
    """

    TURN = 0  # anything else: taking turns is all that is known
    TLS_HELLO = 1  # ClientHello and ServerHello; asked by the server: HelloRetryRequest and second ClientHello
    TLS_FINISHED = 2  # the later flights of a handshake, up to the client's Finished (TLS 1.2: the server's too)
    TLS_SECOND_FINISHED = 3  # TLS 1.2: the server's Finished and the client's first data (not causal in False Start)
    TLS_DATA = 4  # encrypted application data, either way
    TLS_CONTROL = 5  # not causal: session tickets, alerts, records as long as HTTP/2 control frames
    HTTP_REQUEST = 6  # an HTTP/1 request and its response
    HTTP_NEXT_REQUEST = 7  # an HTTP/1 response and the next request
    GREETING = 8  # the server speaks first
    COMMAND = 9  # a later turn of a line protocol (SMTP, FTP, POP3, IMAP), either way
    HTTP2_CONTROL = 10  # not causal: control frames of HTTP/2 in clear
    UNREAD = 11  # anything of which too little was captured to tell TLS from plain text
    PROXY_CONNECT = 12  # CONNECT, and the proxy opens a tunnel
    PROXY_REQUEST = 13  # absolute-form for another port than the request is sent to, answered with success
    ABSOLUTE_REQUEST = 14  # any other request in absolute-form
    SOCKS_GREETING = 15  # not causal: what a SOCKS proxy answers itself
    SOCKS_REQUEST = 16  # a SOCKS request that the proxy grants
    PROXY_HEADER = 17  # the client begins with a header of the PROXY protocol
    UNASKED = 18  # not causal: a side speaks by itself, so that something else may come before an answer

    @property
    def label(self) -> str:
        """The name in tables and JSON, such as `tls-hello`."""
        return self.name.lower().replace("_", "-")


#: Names of the kinds by their codes.
EXCHANGE_KINDS: tuple[str, ...] = _core.exchange_kinds()


class RoundTripColumns(Struct, frozen=True):
    """Transport round trips of each connection and direction of data; rows 2i and 2i + 1 are those of connection i, of
    its data up and down. -1 stands for what is not known.

    A sample is the time from the first copy of the last segment that an acknowledgement covers to that acknowledgement,
    without what was sent again (Karn's rule, RFC 6298 section 3). A *plain* one ends with a packet without payload, so
    that no application held it back; it holds the path, its queues, and the receiver's delay of acknowledgements (at
    most 500 ms, RFC 9293 section 3.8.6.3; in practice 40 to 200 ms) where that had one segment to acknowledge. A
    *prompt* one is plain and acknowledges more new bytes than a segment holds, so that the receiver did not delay it.
    At the receiver of the data the samples hold its delays alone.
    """

    connection: UInt32Array
    asked: UInt8Array  # direction of the data
    count: UInt32Array  # samples, plain or not
    plain_count: UInt32Array
    least_of_all_ns: Int64Array  # of plain samples and of those that end with data
    least_ns: Int64Array  # of plain samples, as what follows
    quantile_10_ns: Int64Array  # the sample of rank (plain_count - 1) * 10 // 100
    quantile_20_ns: Int64Array
    quantile_60_ns: Int64Array
    quantile_90_ns: Int64Array
    prompt_count: UInt32Array
    prompt_10_ns: Int64Array  # of prompt samples, at the rank (prompt_count - 1) * 10 // 100
    prompt_60_ns: Int64Array
    handshake_ns: Int64Array  # up: SYN to SYN-ACK; down: SYN-ACK to ACK; -1 also where one was sent again

    def __len__(self) -> int:
        return len(self.connection)


class Exchanges(Struct, frozen=True):
    """Exchanges of all connections, by connection and in each by the time of the answer; one element an exchange.

    A question is a run of new bytes of one side that no data of the other interrupt; its answer begins with the other
    side's first packet with new bytes that acknowledges the question whole. Keep-alives, zero-window probes, resets and
    data in a SYN are neither. In a capture at the client, those asked `UP` time the far end; at the server those asked
    `DOWN`; the others time the near one.
    """

    connection: UInt32Array
    asked: UInt8Array  # direction of the question
    kind: UInt8Array  # code of `ExchangeKind`
    strict: BoolArray  # the answer cannot wait for a person, and needs the question's end
    first: BoolArray  # of this direction in the connection, as far as captured
    repeated: BoolArray  # no timing: a part of the question or the answer's beginning came again, late or not at all
    crossed: BoolArray  # data of the other side crossed the question or one before it, so it may answer the older one
    question_ns: Int64Array  # the question's last byte, first copy
    acknowledged_ns: Int64Array  # first packet that acknowledges the question whole, which may be the answer
    answered_ns: Int64Array  # the answer's first byte
    question_bytes: Int64Array
    answer_bytes: Int64Array  # until the asker speaks again
    question_span_ns: Int64Array  # the question's first byte to its last: windows pace long ones
    flight_bytes: Int64Array  # of the asker, unacknowledged when the question ended
    idle_ns: Int64Array  # silence of the whole connection before the question; -1 where the capture begins with it
    round_trip_ns: Int64Array  # least plain round trip of the asker's data within 1 s of question_ns; -1 where none
    round_trips: RoundTripColumns

    def __len__(self) -> int:
        return len(self.connection)

    @property
    def exchange_ns(self) -> Int64Array:
        """From the question's last byte to the answer's first."""
        taken: Int64Array = self.answered_ns - self.question_ns
        return taken

    @property
    def gap_ns(self) -> Int64Array:
        """From the acknowledgement of the question to the answer's first byte; 0 where the answer carries it."""
        gap: Int64Array = self.answered_ns - self.acknowledged_ns
        return gap


def exchanges_of(
    packets: PacketColumns, payload: Mapping[Direction, PayloadSample], server_port: int | None = None
) -> Exchanges:
    """The exchanges of one connection, which has number 0, from its packets and the payload kept of it. Without the
    server's port no request in absolute-form is one of a proxy."""
    samples = payload[Direction.UP], payload[Direction.DOWN]
    return exchange_tables(*_core.connection_exchanges(packets, *samples, server_port))


def exchange_tables(
    exchanges: Mapping[str, npt.NDArray[Any]], round_trips: Mapping[str, npt.NDArray[Any]]
) -> Exchanges:
    """From columns by name."""
    return Exchanges(**exchanges, round_trips=RoundTripColumns(**round_trips))


#: Names of the columns of `RoundTripColumns`, in their order.
ROUND_TRIP_COLUMNS = RoundTripColumns.__struct_fields__
#: Names of the columns of `Exchanges`, in their order.
EXCHANGE_COLUMNS = tuple(name for name in Exchanges.__struct_fields__ if name != "round_trips")
