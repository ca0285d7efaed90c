"""Proxies that clients ask for: what they request of them, and are granted, declares a split.

A tunnel that CONNECT opens (RFC 9110, section 9.3.6), and that is used, and a SOCKS request that is granted (RFC 1928)
leave no other explanation: some servers answer CONNECT as they answer anything, and their client has nothing to say
then. A request in absolute-form does, since servers have to accept it for themselves (RFC 9112, section 3.2.2),
and since scanners send it to whatever answers. It therefore declares a proxy alone where it names another port than the
one that it is sent to, succeeds more than once, and the same server gets no request in origin-form.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import IntFlag
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from detector.one_capture.members import Ints, numbered
from detector.one_capture.networks import distinct_addresses
from pepscope.captures.direction import Direction
from pepscope.captures.exchanges import ExchangeKind, Exchanges

_Bools = npt.NDArray[np.bool_]

#: Kinds of which a connection has very few, whatever else it has: they begin what a proxy passes on.
DECLARING = (
    ExchangeKind.PROXY_CONNECT, ExchangeKind.SOCKS_GREETING, ExchangeKind.SOCKS_REQUEST, ExchangeKind.PROXY_HEADER,
)  # fmt: skip

#: Scanners ask a server once, and go on.
_FEWEST_REQUESTS = 2


class ProxyForm(IntFlag):
    """How a proxy is asked for."""

    CONNECT = 1
    SOCKS = 2
    ABSOLUTE = 4  # requests in absolute-form, of a server that opens tunnels as well
    ABSOLUTE_ALONE = 8  # the same, of one that is not seen to open any


def are_granted(form: Ints) -> _Bools:
    """Of which forms nothing but a proxy grants each."""
    return np.asarray((form > 0) & (form & ProxyForm.ABSOLUTE_ALONE == 0))


def are_relays(form: Ints) -> _Bools:
    """Which of these forms are tunnels alone, whose bytes the proxy relays as they come."""
    return np.asarray((form > 0) & (form & (ProxyForm.ABSOLUTE | ProxyForm.ABSOLUTE_ALONE) == 0))


class Declared(Struct, frozen=True):
    """By connection: the `ProxyForm` in which its client asks for a proxy, 0 of others, and whether its sender declares
    to be one (the PROXY protocol)."""

    form: Ints
    is_of_proxy: _Bools

    @property
    def asks(self) -> _Bools:
        """Which connections ask for a proxy."""
        return self.form > 0


def declared_proxies(exchanges: Exchanges, columns: Mapping[str, npt.NDArray[Any]]) -> Declared:
    """What connections declare, from their exchanges and summaries (`Capture.connection_columns`).

    Where a server grants tunnels or SOCKS requests, and gets no request in origin-form, connections to it whose
    beginning was not captured are such, too.
    """
    count = len(columns["first_time_ns"])
    if not (exchanges.kind >= ExchangeKind.PROXY_CONNECT).any():
        return Declared(np.zeros(count, np.int64), np.zeros(count, np.bool_))
    asked = exchanges.asked == Direction.UP.value

    def have(*kinds: ExchangeKind, also: _Bools | bool = True) -> _Bools:
        rows = asked & np.isin(exchanges.kind, kinds) & also
        return np.asarray(np.bincount(exchanges.connection[rows], minlength=count) > 0, np.bool_)

    beside_greeting = (kind for kind in ExchangeKind if kind is not ExchangeKind.SOCKS_GREETING)
    is_followed = np.append(exchanges.connection[1:] == exchanges.connection[:-1], False)
    connect = have(ExchangeKind.PROXY_CONNECT, also=is_followed)
    # A request that does not wait for the greeting's answer is no exchange of its own.
    socks = have(ExchangeKind.SOCKS_REQUEST) | (have(ExchangeKind.SOCKS_GREETING) & have(*beside_greeting))
    server = _numbered(columns, ("server",))
    grants = _of_servers(connect | socks, server)
    origin = have(ExchangeKind.HTTP_REQUEST, also=exchanges.strict) & ~(connect | socks)
    originates = _of_servers(origin, server)
    is_several = _several(exchanges, asked & (exchanges.kind == ExchangeKind.PROXY_REQUEST), columns)
    absolute = have(ExchangeKind.PROXY_REQUEST, ExchangeKind.ABSOLUTE_REQUEST)
    form = np.select([connect, socks, absolute & grants, absolute & is_several & ~originates], [*ProxyForm], 0)
    is_cut = columns["handshake_syn_ack_ns"] < 0
    is_mixed = _of_servers(origin & ~is_cut, server)
    begins_before = is_cut & grants & ~is_mixed & (form == 0)
    of_server = np.zeros(server.max(initial=0) + 1, np.int64)
    np.maximum.at(of_server, server, np.where(connect | socks, form, 0))
    return Declared(np.where(begins_before, of_server[server], form), have(ExchangeKind.PROXY_HEADER))


def _several(exchanges: Exchanges, rows: _Bools, columns: Mapping[str, npt.NDArray[Any]]) -> _Bools:
    """By connection, whether there are several such exchanges of its client with its server."""
    pair = _numbered(columns, ("client", "server"))
    found = np.bincount(pair[exchanges.connection[rows]], minlength=int(pair.max(initial=0)) + 1)
    return np.asarray(found[pair] >= _FEWEST_REQUESTS)


def _numbered(columns: Mapping[str, npt.NDArray[Any]], ends: Iterable[str]) -> Ints:
    """A number for each server's address and port, with the client's address or without."""
    hosts = [distinct_addresses(columns[f"{end}_address"])[1] for end in ends]
    return numbered([*hosts, columns["server_port"].astype(np.int64)])[0]


def _of_servers(connections: _Bools, server: Ints) -> _Bools:
    """By connection, whether its server has such connections."""
    return np.asarray((np.bincount(server, weights=connections) > 0)[server])
