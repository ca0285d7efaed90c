"""Closes: how long clients take to close a connection when its server has said its last.

Once the server's last byte has arrived, many clients close at once, and nothing more is asked of them: curl closes when
it has the page. That FIN crosses a hidden leg as answers do, so that one at the transport's speed speaks against a leg,
and one that is as late as the answers speaks for it. It is no exchange, and is not counted as one: a client may keep a
connection as long as it likes.

A split point may close its own side by itself where it can tell that a conversation is over. One that reads HTTP or
mail can; one that passes on what it cannot read learns it from the client's FIN, so that such a close is the client's.
Once the server has sent its FIN, anything can tell, and relays answer it at once: such closes say nothing.

Clients alone are judged by it. Servers keep connections open for later requests, and close when a timer says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from detector.one_capture.likelihoods.exchange_nats import connection_weights
from detector.one_capture.likelihoods.exchange_timing import ExchangeTiming
from detector.one_capture.likelihoods.timing_tables import CLASSES, CLIENT_CLOSE, CLOSE, OPENING, Floats
from detector.one_capture.members import Ints
from detector.one_capture.networks import Places

#: Classes of exchanges that a box on the way can read: it knows that an answer is whole, and may close by itself.
_READABLE = [CLASSES.index(name) for name in ("line", "http")]


class Closes(Struct, frozen=True):
    """One element a close, in the order of members: its `kind` (`CLOSE` or `CLIENT_CLOSE`), what it took beyond the
    round trip of its `connection`; and its `weight`, as the closes of one member are one program's habit."""

    connection: Ints
    member: Ints
    kind: Ints
    excess_s: Floats
    weight: Floats


def closes(columns: Mapping[str, npt.NDArray[Any]], places: Places, timing: ExchangeTiming) -> Closes:
    """The closes of clients; `columns` are those of `Capture.connection_columns`.

    The time runs from the server's last data to the client's FIN, if that comes before the server's. Where data were
    sent again it is unknown when the client had the last. A FIN that comes sooner than a round trip was under way
    already.
    """
    fin_ns, server_fin_ns = columns["up_fin_time_ns"], columns["down_fin_time_ns"]
    last_ns = columns["down_last_data_time_ns"]
    took_s = (fin_ns - last_ns) / 1e9
    is_answer = (fin_ns >= 0) & (last_ns >= 0) & (columns["up_last_data_time_ns"] <= last_ns)
    is_answer &= (server_fin_ns < 0) | (server_fin_ns >= fin_ns)
    is_answer &= (columns["down_retransmitted_packets"] == 0) & (took_s >= timing.base_s)  # not where it is unknown
    connection = np.flatnonzero(is_answer)
    connection = connection[np.argsort(places.member[connection], kind="stable")]
    member = places.member[connection]
    excess_s = np.maximum(took_s[connection] - timing.base_s[connection], 0.0)
    kind = np.where(_is_unread(timing, len(places.member))[connection], CLIENT_CLOSE, CLOSE)
    return Closes(connection, member, kind, excess_s, connection_weights(member))


def last_round_trips_s(columns: Mapping[str, npt.NDArray[Any]]) -> Floats:
    """By connection, the time from the server's FIN to the connection's last packet, its acknowledgement, where the
    client had closed before (s); NaN elsewhere, and where the server sent anything again, or a reset.

    Nothing holds it back: a client that waits for the other FIN acknowledges it at once (RFC 9293, section 3.10.7.4;
    the kernel does so even where it delays what it acknowledges of data).
    """
    fin_ns, server_fin_ns = columns["up_fin_time_ns"], columns["down_fin_time_ns"]
    taken_ns = columns["last_time_ns"] - server_fin_ns
    is_last = (fin_ns >= 0) & (server_fin_ns >= fin_ns) & (taken_ns > 0)
    is_last &= (columns["down_retransmitted_packets"] == 0) & (columns["down_reset_time_ns"] < 0)
    return np.where(is_last, taken_ns / 1e9, np.nan)


def _is_unread(timing: ExchangeTiming, connections: int) -> npt.NDArray[np.bool_]:
    """By connection, whether it holds exchanges, and none that a box on the way can read, as far as the capture shows
    it."""
    is_unread = np.zeros(connections, np.bool_)
    is_unread[timing.connection] = True
    is_unread[timing.connection[np.isin(timing.kind % OPENING, _READABLE) | (timing.unread > 0)]] = False
    return is_unread


def no_closes() -> Closes:
    """None, where they are not weighed."""
    none, nothing = np.zeros(0, np.int64), np.zeros(0)
    return Closes(none, none, none, nothing, nothing)
