"""Pairs of connections by the server that either capture names, and by how much it answered, or whom."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from detector.pairing.match import IDENTITY, Match
from pepscope.captures.capture import Capture
from pepscope.captures.connection_source import ConnectionSource
from pepscope.captures.connections import Connection
from pepscope.captures.packets import Int64Array

UInt64Array = npt.NDArray[np.uint64]

#: Odd numbers that keys are multiplied with; keys that coincide only cost a look at a connection.
_MIXING = tuple(np.uint64(number) for number in (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9))


class ServerIndex:
    """Which of some matches are to a server; made of columns, and of a few connections that are asked about."""

    def __init__(self, first: ConnectionSource, second: ConnectionSource, matches: Sequence[Match]) -> None:
        self._sources = first, second
        self._matches = matches
        both = [
            (place, match.first, match.second)
            for place, match in enumerate(matches)
            if match.first is not None and match.second is not None
        ]
        places, *numbers = np.array(both, np.int64).reshape(-1, 3).T
        of_servers, of_answers, of_clients = zip(*map(_keys, self._sources, numbers), strict=True)
        self._by_server = _Index(of_servers, places)
        self._by_answer = _Index(of_answers, places)
        identified = np.flatnonzero([matches[place].ground in IDENTITY for place in places.tolist()])
        self._identified_by_client = _Index([keys[identified] for keys in of_clients], places[identified])

    def to(self, server: str) -> Iterator[Match]:
        """The matches of which either capture names this server and port."""
        found = self._at(self._by_server, _key_of(server))
        return (match for match, seen in found if any(each.server == server for each in seen))

    def with_answer(self, server: str, answer_bytes: int) -> Iterator[Match]:
        """Those of which either capture also shows that the server sent so many bytes."""
        key = _with_bytes(_key_of(server), np.array([answer_bytes], np.int64))
        return (
            match
            for match, seen in self._at(self._by_answer, key)
            if any(each.server == server and each.down.stream_bytes == answer_bytes for each in seen)
        )

    def identified(self, client_address: str, server: str) -> Iterator[Match]:
        """Those of which either capture names this client and this server, and that packets or sequence numbers
        identify: no middlebox between the captures ended these."""
        key = _with_client(_key_of(server), _octets_of(client_address))
        return (
            match
            for match, seen in self._at(self._identified_by_client, key)
            if any(each.server == server and each.client_address == client_address for each in seen)
        )

    def _at(self, index: _Index, key: UInt64Array) -> Iterator[tuple[Match, tuple[Connection, Connection]]]:
        first, second = self._sources
        for place in index.places(key[0]):
            match = self._matches[place]
            if match.first is not None and match.second is not None:
                yield match, (first.connections[match.first], second.connections[match.second])


class _Index:
    """Places by key, ascending."""

    def __init__(self, keys: Sequence[UInt64Array], places: Int64Array) -> None:
        every, twice = np.concatenate(keys), np.tile(places, len(keys))
        order = np.lexsort((twice, every))
        self._keys, self._places = every[order], twice[order]

    def places(self, key: np.uint64) -> Iterator[int]:
        """The places that have a key, each once; one after the other, since a client may have thousands of which the
        first few are asked for."""
        begin, end = (int(np.searchsorted(self._keys, key, side)) for side in ("left", "right"))
        latest = -1
        for place in map(int, self._places[begin:end]):
            if place != latest:
                yield place
            latest = place


#: What keys are made of.
_COLUMNS = ("server_address", "server_port", "down_stream_bytes", "client_address")


def _keys(source: ConnectionSource, numbers: Int64Array) -> tuple[UInt64Array, UInt64Array, UInt64Array]:
    """Keys of the servers of some connections, of servers with what they answered, and with the clients."""
    if isinstance(source, Capture):
        made = [_columns_of(*(batch[name] for name in _COLUMNS)) for batch in source.connection_batches(_COLUMNS)]
        of_servers, of_answers, of_clients = (np.concatenate(columns)[numbers] for columns in zip(*made, strict=True))
        return of_servers, of_answers, of_clients
    chosen = [source.connections[number] for number in numbers.tolist()]
    empty = np.zeros(0, np.uint64)
    keys = np.concatenate([_key_of(each.server) for each in chosen] or [empty])
    answered = _with_bytes(keys, np.array([each.down.stream_bytes for each in chosen], np.int64))
    clients = [_with_client(_key_of(each.server), _octets_of(each.client_address)) for each in chosen]
    return keys, answered, np.concatenate(clients or [empty])


def _columns_of(
    addresses: npt.NDArray[np.uint8], ports: Int64Array, answer_bytes: Int64Array, clients: npt.NDArray[np.uint8]
) -> tuple[UInt64Array, UInt64Array, UInt64Array]:
    keys = _server_keys(addresses, ports)
    return keys, _with_bytes(keys, answer_bytes), _with_client(keys, clients)


def _server_keys(addresses: npt.NDArray[np.uint8], ports: Int64Array) -> UInt64Array:
    """Keys of addresses of 16 bytes and ports."""
    keys: UInt64Array = _address_keys(addresses) ^ (ports.astype(np.uint64) * _MIXING[2])
    return keys


def _address_keys(addresses: npt.NDArray[np.uint8]) -> UInt64Array:
    high, low = np.ascontiguousarray(addresses).view(np.uint64).reshape(-1, 2).T
    keys: UInt64Array = (high * _MIXING[0]) ^ (low * _MIXING[1])
    return keys


def _with_client(keys: UInt64Array, addresses: npt.NDArray[np.uint8]) -> UInt64Array:
    mixed: UInt64Array = keys * _MIXING[2] + _address_keys(addresses)
    return mixed


def _with_bytes(keys: UInt64Array, answer_bytes: Int64Array) -> UInt64Array:
    mixed: UInt64Array = keys * _MIXING[0] + answer_bytes.astype(np.uint64)
    return mixed


def _key_of(server: str) -> UInt64Array:
    """The key of `ip:port` or `[ipv6]:port`."""
    text, _, port = server.rpartition(":")
    return _server_keys(_octets_of(text.strip("[]")), np.array([int(port)], np.int64))


def _octets_of(text: str) -> npt.NDArray[np.uint8]:
    """An address as a row of 16 bytes."""
    address = ipaddress.ip_address(text)
    octets = address.packed if address.version == 6 else bytes(10) + b"\xff\xff" + address.packed
    return np.frombuffer(octets, np.uint8).reshape(1, 16)
