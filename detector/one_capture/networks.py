"""Which connections of one capture are judged together: the side, the network of the clients and the server port.

A network of clients is what one rule of an operator governs: a prefix of /24, or /48 in IPv6, unless a table of the
user's names others. At the client's side it is the access network that this host is in.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from detector.one_capture.members import Ints, numbered
from detector.options import PREFIX_IPV4, PREFIX_IPV6
from pepscope.captures.tables.addresses import address_texts
from pepscope.errors import UsageError

#: The middle of IPv4 addresses that stand in 16 bytes (RFC 4291 section 2.5.5.2).
_OF_IPV4 = 0xFFFF

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


class NetworkTable:
    """Names of networks by prefix, the longest prefix of an address first (as routers look up routes)."""

    def __init__(self, networks: Iterable[tuple[Network, str]] = ()) -> None:
        by_length: dict[tuple[int, int], dict[int, str]] = {}
        for network, name in networks:
            length = by_length.setdefault((network.version, network.prefixlen), {})
            length[int(network.network_address)] = name
        self._lengths = sorted(by_length.items(), key=lambda each: -each[0][1])

    def name(self, address: str) -> str:
        """The name of the network of an address: of the table, or its prefix."""
        parsed = ipaddress.ip_address(address)
        number, bits = int(parsed), parsed.max_prefixlen
        for (version, length), names in self._lengths:
            if version == parsed.version:
                known = names.get(number >> (bits - length) << (bits - length))
                if known is not None:
                    return known
        prefix = PREFIX_IPV4 if parsed.version == 4 else PREFIX_IPV6
        return str(ipaddress.ip_network((address, prefix), strict=False))


def read_networks(path: str) -> NetworkTable:
    """A table of networks from a file of lines `prefix,name`; empty lines and lines that begin with # are left out.

    A name may stand at several prefixes, which are judged together. Raises UsageError for a file that cannot be read
    or a line that is not such a pair, or that names a prefix anew.
    """
    try:
        text = Path(path).read_text("utf-8-sig")  # spreadsheets begin a file with a byte order mark
    except OSError as error:
        raise UsageError(f"the table of networks {path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"the table of networks {path} must be text in UTF-8: {error.reason}") from error
    networks: dict[Network, str] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        network, name = _network(path, number, line)
        if networks.setdefault(network, name) != name:
            raise UsageError(f"{path}, line {number}: {network} must have one name, got {name} and {networks[network]}")
    return NetworkTable(networks.items())


def _network(path: str, number: int, line: str) -> tuple[Network, str]:
    import csv

    try:
        (row,) = csv.reader([line], strict=True)
    except (csv.Error, ValueError) as error:
        raise UsageError(f"{path}, line {number}: the line cannot be read as CSV: {error}") from error
    name = row[1].strip() if len(row) == 2 else ""
    if not name or "%" in row[0]:  # a scope is no part of a prefix (RFC 4007 section 11.7)
        raise UsageError(f"{path}, line {number}: a prefix, a comma and a name are needed, such as 192.0.2.0/24,Lab")
    try:
        return ipaddress.ip_network(row[0].strip()), name
    except ValueError as error:
        raise UsageError(f"{path}, line {number}: {error}") from error


class Places(Struct, frozen=True):
    """Groups and members of the connections of one side.

    By connection: `group` and `member`. By member, ascending in `member_group`: its group, the address of the far host,
    a number for the /24 or /48 that this is in, and whether it is private: one organisation's (RFC 1918, RFC 4193).
    By group: name of the network and port, and whether its clients ask for a proxy.
    """

    group: Ints
    member: Ints
    member_group: Ints
    member_address: Sequence[str]
    member_prefix: Ints
    member_private: npt.NDArray[np.bool_]
    network: Sequence[str]
    port: Ints
    asks_proxy: npt.NDArray[np.bool_]

    def are_private(self, answering: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
        """By group, whether several members are `answering`, and have private addresses."""
        group, groups = self.member_group, len(self.network)
        count, of_others = (
            np.bincount(group[which], minlength=groups) for which in (answering, answering & ~self.member_private)
        )
        return np.asarray((count > 1) & (of_others == 0))

    def in_one_prefix(self, answering: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
        """By group, whether several members are `answering`, and have addresses of one prefix: one operator's site."""
        group, groups = self.member_group[answering], len(self.network)
        least, most = np.full(groups, np.iinfo(np.int64).max), np.full(groups, -1)
        np.minimum.at(least, group, self.member_prefix[answering])
        np.maximum.at(most, group, self.member_prefix[answering])
        return np.asarray((np.bincount(group, minlength=groups) > 1) & (least == most))


def places(
    columns: Mapping[str, npt.NDArray[Any]],
    *,
    at_client: bool,
    table: NetworkTable,
    asks_proxy: npt.NDArray[np.bool_] | bool = False,
) -> Places:
    """Groups and members of connections, from their summaries (`Capture.connection_columns`). Those that ask for a
    proxy are no path to where they lead, and stand in groups of their own."""
    clients, client = distinct_addresses(columns["client_address"])
    names, network = np.unique([table.name(address) for address in clients], return_inverse=True)
    port = np.asarray(columns["server_port"], np.int64)
    key = (network[client].astype(np.int64) << 17) | (port << 1) | np.asarray(asks_proxy)
    group, of_group = numbered([key])
    keys = key[of_group]
    hosts, host = distinct_addresses(columns["server_address"]) if at_client else (clients, client)
    member, of_member = numbered([group, host])
    far = columns["server_address" if at_client else "client_address"][of_member]
    return Places(
        group=group,
        member=member,
        member_group=group[of_member],
        member_address=[hosts[place] for place in host[of_member].tolist()],
        member_prefix=_prefixes(far),
        member_private=_are_private(far),
        network=[str(names[key >> 17]) for key in keys],
        port=keys >> 1 & 0xFFFF,
        asks_proxy=keys & 1 > 0,
    )


def come_one_way(columns: Mapping[str, npt.NDArray[Any]], where: Places) -> npt.NDArray[np.bool_]:
    """Whether the clients of each group have addresses of which each has its servers for itself, as a balancer of
    theirs or a NAT has. Clients of other servers, which a capture may hold as well, show nothing about these."""
    groups, ends = len(where.network), [columns[f"{end}_address"] for end in ("client", "server")]
    if (ends[1] == ends[1][:1]).all():  # one server, as most captures at a server hold
        return np.full(groups, (ends[0] == ends[0][:1]).all())
    clients, servers = (distinct_addresses(addresses)[1] for addresses in ends)
    count = int(servers.max(initial=0)) + 1
    is_shared = np.bincount(np.unique(clients * count + servers) % count, minlength=count) > 1
    meets_others = np.bincount(clients, weights=is_shared[servers]) > 0
    return np.asarray(np.bincount(where.group, weights=meets_others[clients], minlength=groups) == 0)


def _are_private(rows: npt.NDArray[np.uint8]) -> npt.NDArray[np.bool_]:
    """Which addresses (rows of 16 bytes) one organisation uses by itself: RFC 1918, RFC 4193."""
    first, second = rows[:, 12], rows[:, 13]
    of_ipv4 = (first == 10) | ((first == 172) & (second >> 4 == 1)) | ((first == 192) & (second == 168))
    return np.asarray(np.where(_is_ipv4(rows), of_ipv4, rows[:, 0] >> 1 == 0xFC >> 1))


def _is_ipv4(rows: npt.NDArray[np.uint8]) -> npt.NDArray[np.bool_]:
    first, last = _halves(rows)
    return np.asarray((first == 0) & (last >> 32 == _OF_IPV4))


def _halves(rows: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint64]:
    """The first and the last eight bytes of each address."""
    return np.ascontiguousarray(rows).view(">u8").astype(np.uint64).T


def _prefixes(rows: npt.NDArray[np.uint8]) -> Ints:
    """A number for the /24 or /48 of each address (rows of 16 bytes)."""
    first, last = _halves(rows)
    is_ipv4 = _is_ipv4(rows)
    return numbered([
        np.where(is_ipv4, 0, first >> (64 - PREFIX_IPV6)), np.where(is_ipv4, last >> (32 - PREFIX_IPV4), 0)
    ])[0]  # fmt: skip


def distinct_addresses(rows: npt.NDArray[np.uint8]) -> tuple[list[str], Ints]:
    """The distinct ones of addresses (rows of 16 bytes) as text, and the place of each row's among them."""
    place, distinct = address_numbers(rows)
    return [str(text) for text in address_texts(distinct)], place


def address_numbers(rows: npt.NDArray[np.uint8]) -> tuple[Ints, npt.NDArray[np.uint8]]:
    """The place of each address among the distinct ones, and these (rows of 16 bytes)."""
    halves = np.ascontiguousarray(rows).view(">u8").astype(np.uint64)
    place, first = numbered([halves[:, 0], halves[:, 1]])
    return place, rows[first]
