"""Which ends of its connections a capture is far from: there a hidden leg may be, and there exchanges are timed.

At a host's own interface one end answers within the time that a kernel takes, and only the other one's answers say
anything. In between (a router, a gateway) both stretches of the path can be judged, each by itself. Servers of several
networks are no single host: if all of them answer as if they stood here, so may a split point beside the capture, and
the stretch towards them is judged, too; and if a server answers ICMP echo or NTP from afar, whose TCP answers here. Nor
is it a host's kernel that acknowledges data here where no SYN-ACK comes as soon: something connects further on before
it answers (the NAT of a virtual machine, a tunnel's application, a relay).

A host that serves and asks others (a web server with a database elsewhere, a mail relay) stands at the servers' end of
some connections and at the clients' end of others. So where it is seen to do both, each connection is judged towards
the end that is not this host, whichever of them are more.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from detector.one_capture.likelihoods.references.reference_nats import PROMPT_KINDS
from detector.one_capture.likelihoods.timing_tables import Floats
from detector.one_capture.members import Ints, quantiles
from detector.one_capture.networks import address_numbers
from detector.options import PREFIX_IPV4, PREFIX_IPV6
from pepscope.captures.references import References
from pepscope.captures.tables.texts import durations
from pepscope.results.distinct import distinct
from pepscope.results.verdicts import GroupSide

#: An end that answers sooner than this is the capture's own host, or stands beside it.
OWN_HOST_S = 0.0005

#: So is one that answers within this share of the other end's time.
OWN_SHARE = 0.1

#: A host has addresses of one network, or of two where it has two uplinks; servers of more are several hosts.
_NETWORKS_OF_A_HOST = 2

#: Answers to fewer requests may all have come late by themselves: programs that answer NTP or STUN wait for their turn.
_FEWEST_ANSWERS = 3

_SIDES = tuple(GroupSide)

#: The columns that say which end of a connection is near.
_READ = (
    "first_time_ns", "handshake_ack_ns", "handshake_syn_ack_ns", "down_round_trip_time_min_ns",
    "up_round_trip_time_min_ns", "server_address",
)  # fmt: skip

#: How IPv4 addresses begin that stand among those of IPv6 (RFC 4291, section 2.5.5.2).
_IPV4_MAPPED = bytes(10) + b"\xff\xff"


class Stretch(Struct, frozen=True):
    """One side to judge, and the connections that are judged there, in ascending order; None: all of them."""

    side: GroupSide
    rows: Ints | None = None


def judged_stretches(
    columns: Mapping[str, npt.NDArray[Any]],
    taken_at: GroupSide | None,
    asks_proxy: npt.NDArray[np.bool_],
    references: References | None = None,
) -> list[Stretch]:
    """The sides to judge (`judged_sides`), each with its connections: all, unless the capture's own host is the client
    of some and the server of others. `asks_proxy` is whether the client of each asks for a proxy, `references` are
    round trips beside TCP (None: there are none)."""
    asks, serves = (None, None) if taken_at is not None else _roles_of_own_host(columns)
    if asks is None or serves is None:
        sides = judged_sides(columns, taken_at, asks_proxy=bool(asks_proxy.any()), references=references)
        return [Stretch(side) for side in sides]
    judged = np.zeros((len(GroupSide), len(asks)), np.bool_)
    for part, far in ((asks, GroupSide.CLIENT), (serves, GroupSide.SERVER), (~asks & ~serves, None)):
        rows, asks_for_proxies = np.flatnonzero(part), bool(asks_proxy[part].any())
        sides = judged_sides({name: columns[name][rows] for name in _READ}, None, asks_proxy=asks_for_proxies)
        if far is not None and len(sides) == 1 and not asks_for_proxies:
            sides = (far,)  # whichever end answers sooner: a database in the next rack may be faster than this host
        for side in sides:
            judged[_SIDES.index(side), rows] = True
    return [Stretch(side, np.flatnonzero(judged[number])) for number, side in enumerate(_SIDES) if judged[number].any()]


def _roles_of_own_host(
    columns: Mapping[str, npt.NDArray[Any]],
) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]] | tuple[None, None]:
    """Which connections the capture's own host opens, and which it serves, where it does both. Its addresses answer as
    soon as a kernel, at whichever end they stand, where the other end does not."""
    clients_s, servers_s = _ends_s(columns)
    if not (_is_here(clients_s, servers_s) | _is_here(servers_s, clients_s)).any():
        return None, None
    numbers, addresses = address_numbers(np.concatenate([columns["client_address"], columns["server_address"]]))
    typical_s = quantiles(np.concatenate([clients_s, servers_s]), numbers, len(addresses), 0.5)[numbers]
    (client, server), (client_s, server_s) = np.split(numbers, 2), np.split(typical_s, 2)
    is_own = np.zeros(len(addresses), np.bool_)
    is_own[client[_is_here(client_s, server_s)]] = True
    is_own[server[_is_here(server_s, client_s)]] = True
    asks, serves = is_own[client] & ~is_own[server], is_own[server] & ~is_own[client]
    if not (asks.any() and serves.any()) or _networks(addresses[is_own]) > _NETWORKS_OF_A_HOST:
        return None, None
    return asks, serves


def _is_here(near_s: Floats, far_s: Floats) -> npt.NDArray[np.bool_]:
    """Where one end answers as soon as a kernel here and the other one does not, or stands much farther away."""
    return np.asarray((near_s < OWN_HOST_S) & ~((far_s < OWN_HOST_S) & (near_s >= OWN_SHARE * far_s)))


def judged_sides(
    columns: Mapping[str, npt.NDArray[Any]],
    taken_at: GroupSide | None,
    *,
    asks_proxy: bool = False,
    references: References | None = None,
) -> tuple[GroupSide, ...]:
    """The sides to judge by the connections' summaries (`Capture.connection_columns`), or as the user says.

    `CLIENT`: the capture was taken near the clients, and judged is what lies between it and the servers; `SERVER` the
    other way round. Both where the capture lies in between, none where it has no connection. Where clients on this host
    ask for a proxy beside them (`asks_proxy`), as `ssh -D` is, the capture is the client's. A server that answers
    `references` from afar is not the capture's own host.
    """
    if taken_at is not None:
        return (taken_at,)
    if not len(columns["first_time_ns"]):
        return ()
    clients_s, servers_s = _ends_s(columns)
    to_server_s, to_client_s = _typical_s(servers_s), _typical_s(clients_s)
    if np.isnan(to_server_s) or np.isnan(to_client_s):
        return _by_one_end(to_client_s, to_server_s)
    near, far = sorted((to_client_s, to_server_s))
    beside_s = max(OWN_HOST_S, OWN_SHARE * far)
    if near >= beside_s:
        return GroupSide.CLIENT, GroupSide.SERVER
    if to_client_s <= to_server_s or (asks_proxy and to_client_s < OWN_HOST_S):
        return (GroupSide.CLIENT,)
    if _connect_first(columns["handshake_syn_ack_ns"][servers_s < OWN_HOST_S]):
        return (GroupSide.CLIENT,) if to_client_s < OWN_HOST_S else (GroupSide.CLIENT, GroupSide.SERVER)
    beside = servers_s < beside_s
    addresses = columns["server_address"][beside]
    are_one_host = _networks(addresses) <= _NETWORKS_OF_A_HOST and not _answer_from_afar(
        addresses, servers_s[beside], references
    )
    return (GroupSide.SERVER,) if are_one_host else (GroupSide.CLIENT, GroupSide.SERVER)


def contradiction_of(
    columns: Mapping[str, npt.NDArray[Any]], taken_at: GroupSide, references: References | None = None
) -> str | None:
    """What speaks against the side that the user names: at an end's own interface that end answers as soon as a kernel.
    None where nothing does, or too little was seen, or a split point beside the capture may answer for that end."""
    clients_s, servers_s = map(_typical_s, _ends_s(columns))
    named_s, other_s = (clients_s, servers_s) if taken_at is GroupSide.CLIENT else (servers_s, clients_s)
    if not (named_s >= OWN_HOST_S and other_s < min(OWN_HOST_S, OWN_SHARE * named_s)):  # false where one is unknown
        return None
    other = GroupSide.SERVER if taken_at is GroupSide.CLIENT else GroupSide.CLIENT
    if judged_sides(columns, None, references=references) != (other,):
        return None
    named, soon = durations(np.asarray([named_s, other_s]))
    return (
        f"the capture is said to be taken at the {taken_at.value}, but TCP answers at the {other.value}'s end within "
        f"{soon} and at the {taken_at.value}'s after {named}: it looks taken at the {other.value}, and verdicts on the "
        "wrong stretch say nothing of the network"
    )


def _answer_from_afar(addresses: npt.NDArray[np.uint8], tcp_s: Floats, references: References | None) -> bool:
    """Whether a host of these connections (their servers' addresses, and the least times in which TCP answered) takes
    so long for everything else that it is not here: a kernel answers echo as soon as a SYN."""
    if references is None or not len(references):
        return False
    tied = references.tied()
    prompt = tied.of(np.isin(tied.kind, PROMPT_KINDS))
    numbers, hosts = address_numbers(np.concatenate([addresses, prompt.host_address]))
    of_connections, answering = np.split(numbers.astype(np.int64), [len(addresses)])
    answers = np.bincount(answering, minlength=len(hosts))
    least_s = quantiles(prompt.round_trip_ns / 1e9, answering, len(hosts), 0.0)
    typical_s = quantiles(tcp_s, of_connections, len(hosts), 0.5)  # NaN for hosts without connections
    is_afar = least_s * OWN_SHARE > np.maximum(typical_s, OWN_HOST_S)
    return bool((is_afar & (answers >= _FEWEST_ANSWERS)).any())


def _by_one_end(to_client_s: float, to_server_s: float) -> tuple[GroupSide, ...]:
    """Where only one end's answers were seen: the end that takes longer than a kernel is the far one."""
    known_s, far, near = (
        (to_server_s, GroupSide.CLIENT, GroupSide.SERVER)
        if np.isnan(to_client_s)
        else (to_client_s, GroupSide.SERVER, GroupSide.CLIENT)
    )
    if np.isnan(known_s):
        return GroupSide.CLIENT, GroupSide.SERVER
    return (far,) if known_s >= OWN_HOST_S else (near,)


def _networks(addresses: npt.NDArray[np.uint8]) -> int:
    """How many networks addresses of 16 bytes are of, in the IP version that has more of them: a host may have both."""
    of_ipv4 = (addresses[:, : len(_IPV4_MAPPED)] == np.frombuffer(_IPV4_MAPPED, np.uint8)).all(axis=1)
    begin = len(_IPV4_MAPPED)
    prefixes = addresses[of_ipv4, begin : begin + PREFIX_IPV4 // 8], addresses[~of_ipv4, : PREFIX_IPV6 // 8]
    return max(len(distinct(each.astype(np.int64) @ (1 << 8 * np.arange(each.shape[1])))) for each in prefixes)


def _connect_first(syn_ack_ns: npt.NDArray[np.int64]) -> bool:
    """Whether SYN-ACKs were seen (-1 stands for none), and none as soon as a kernel's."""
    seen = syn_ack_ns[syn_ack_ns >= 0]
    return len(seen) > 0 and bool(seen.min() >= OWN_HOST_S * 1e9)


def _ends_s(columns: Mapping[str, npt.NDArray[Any]]) -> tuple[Floats, Floats]:
    """The least time of each connection to its client and to its server."""
    return (
        _least_s(columns["handshake_ack_ns"], columns["down_round_trip_time_min_ns"]),
        _least_s(columns["handshake_syn_ack_ns"], columns["up_round_trip_time_min_ns"]),
    )


def _least_s(handshake_ns: npt.NDArray[np.int64], data_ns: npt.NDArray[np.int64]) -> Floats:
    """The least time of each connection to one end; NaN where it was not seen (-1)."""
    times = np.where((handshake_ns < 0) | ((data_ns >= 0) & (data_ns < handshake_ns)), data_ns, handshake_ns)
    least: Floats = np.where(times < 0, np.nan, times / 1e9)
    return least


def _typical_s(times_s: Floats) -> float:
    """The middle of the connections' times; NaN where none is known."""
    known = times_s[~np.isnan(times_s)]
    if not len(known):
        return float("nan")
    # As np.median, which imports masked arrays first.
    middle = [(len(known) - 1) // 2, len(known) // 2]
    return float(np.partition(known, middle)[middle].mean())
