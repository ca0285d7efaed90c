"""What is true of each capture of a plan: which connections are split, where, and how far away the hidden part is.

Round trips are those of a small packet on idle links, on average (`links.Link.round_trip_s`): queues add to them.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from benchmarks.one_ended.plan import GREETING, HTTP, PORTS

if TYPE_CHECKING:
    from benchmarks.one_ended.plan import Client, Plan, Server


@dataclass(frozen=True, slots=True)
class Row:
    """What is true of the connections of one client with one server and port, as one capture sees them.

    `stretch` is the direction that is judged: what lies towards the servers, or towards the clients; `answered`: a SYN
    proxy answers the handshakes, whatever else is true."""

    network: str
    port: int
    host: str
    stretch: str
    truth: str
    where: str | None
    mechanism: str | None
    near_s: float
    hidden_s: float | None
    cache: bool
    thinks: bool
    answered: bool = False


def groups(plan: Plan, place: str) -> list[dict[str, Any]]:
    """The groups of the capture taken at a place: one for each network and port where its hosts agree, then by host."""
    rows = _rows(plan, place)
    found: list[dict[str, Any]] = []
    for stretch, network, port in dict.fromkeys((row.stretch, row.network, row.port) for row in rows):
        same = [row for row in rows if (row.stretch, row.network, row.port) == (stretch, network, port)]
        if len({(row.truth, row.where) for row in same}) == 1:
            found.append(_group(same, None))
        found += [_group([row for row in same if row.host == host], host) for host in sorted({r.host for r in same})]
    return found


def _group(rows: list[Row], host: str | None) -> dict[str, Any]:
    first = rows[0]
    return {
        "network": first.network, "port": first.port, "host": host, "stretch": first.stretch, "class": first.truth,
        "where": first.where, "mechanism": first.mechanism,
        "hidden_round_trip_s": _by_host(rows, [row.hidden_s for row in rows]),
        "near_round_trip_s": _by_host(rows, [row.near_s for row in rows]),
        "hidden_round_trip_range_s": _range([row.hidden_s for row in rows]),
        "cache": any(row.cache for row in rows), "thinks": any(row.thinks for row in rows),
        "handshake_answered": any(row.answered for row in rows),
    }  # fmt: skip


def _range(values: list[float | None]) -> list[float] | None:
    known = [value for value in values if value is not None]
    return [round(min(known), 6), round(max(known), 6)] if known else None


def _by_host(rows: list[Row], values: list[float | None]) -> float | dict[str, float] | None:
    """One number, or one for each host; the least where connections of one host differ (behind one address)."""
    known: dict[str, float] = {}
    for row, value in zip(rows, values, strict=True):
        if value is not None:
            known[row.host] = round(min(value, known.get(row.host, value)), 6)
    if not known:
        return None
    return next(iter(known.values())) if len(set(known.values())) == 1 else known


def side(place: str) -> str:
    """Which side's hosts a place belongs to: `client`, `server` or, on a path, `between`."""
    if place.startswith("middle-"):
        return "between"
    return "client" if place.startswith("client") else "server"


def _rows(plan: Plan, place: str) -> list[Row]:
    """All rows of one capture."""
    if side(place) == "client":
        client = next(client for client in plan.clients if client.name == place)
        return [
            _towards_server(plan, client, client.link.round_trip_s, server, address, port)
            for server in plan.servers
            for address in client.addresses
            for port in PORTS
        ]
    if side(place) == "between":
        return _between(plan, at_clients=place == "middle-access")
    server = next(server for server in plan.servers if server.name == place.removesuffix("b"))
    if place.endswith("b"):
        return [
            _behind_balancer(plan, client, server, port)
            for client in plan.clients
            for port in _backend_ports(plan, server)
        ]
    return [
        row
        for client in plan.clients
        for address in client.addresses
        for port in PORTS
        for row in _towards_client(plan, client, address, server, port, server.link.round_trip_s)
    ]


def _taken(plan: Plan, client: Client, port: int) -> bool:
    return client.taken and port in plan.split_ports


def _balancer_s(server: Server) -> float:
    return server.balancer.link.round_trip_s if server.balancer else 0.0


def _towards_server(
    plan: Plan, client: Client, near_s: float, server: Server, address: str, port: int, *, at_middle: bool = True
) -> Row:
    """`near_s`: the round trip between the capture and the middle; `at_middle`: whether the middle is still ahead."""
    kind, beyond = plan.kind, server.link.round_trip_s
    taken = at_middle and _taken(plan, client, port)
    network = str(ipaddress.ip_network(f"{address}/24", strict=False))
    split = taken and kind.truth == "split" and "client" in kind.acknowledged
    truth, where, hidden, mechanism = "regular", None, None, None
    if split:
        truth, where, hidden, mechanism = "split", "network", beyond + _balancer_s(server), kind.mechanism
    elif server.balancer is not None:
        front = "web-front-end" if server.balancer.ends_tls and port != GREETING else "balancer"
        truth, where, hidden, mechanism = "split", "server", _balancer_s(server), front
    elif taken and kind.truth == "syn-proxy":
        truth, where, mechanism = "syn-proxy", "network", kind.mechanism
    return Row(
        network, port, server.address, "server", truth, where, mechanism,
        near_s=near_s if split else near_s + beyond, hidden_s=hidden, cache=taken and kind.cache,
        thinks=server.slow and port != GREETING, answered=taken and kind.truth == "syn-proxy",
    )  # fmt: skip


def _seen(plan: Plan, client: Client, address: str, port: int) -> str:
    """The address that a server sees."""
    kind = plan.kind
    if kind.source == "middle" and (kind.truth == "regular" or _taken(plan, client, port)):
        return plan.middle_address
    return address


def _seen_ports(plan: Plan) -> list[int]:
    """Ports on which anything reaches a server."""
    kind = plan.kind
    everything_taken = all(client.taken for client in plan.clients)
    return [
        port for port in PORTS
        if not (everything_taken and kind.seen_port not in (None, port) and port in plan.split_ports)
    ]  # fmt: skip


def _backend_ports(plan: Plan, server: Server) -> list[int]:
    """Ports on which a balancer asks its backend."""
    if server.balancer is not None and server.balancer.ends_tls:
        return [HTTP, GREETING]
    return _seen_ports(plan)


def _towards_client(
    plan: Plan, client: Client, address: str, server: Server, port: int, near_s: float, *, at_middle: bool = True
) -> list[Row]:
    """None or one: `near_s` is the round trip between the capture and the middle."""
    del server
    kind = plan.kind
    taken = at_middle and _taken(plan, client, port)
    seen = _seen(plan, client, address, port) if at_middle else address
    seen_port = kind.seen_port if taken and kind.seen_port else port
    split = taken and kind.truth == "split" and "server" in kind.acknowledged
    truth, where, hidden, mechanism = "regular", None, None, None
    access = client.link.round_trip_s
    if split:
        truth, where, hidden, mechanism = "split", "network", access, kind.mechanism
    elif taken and kind.truth == "syn-proxy":
        truth, where, mechanism = "syn-proxy", "network", kind.mechanism
    network = str(ipaddress.ip_network(f"{seen}/24", strict=False))
    return [
        Row(
            network, seen_port, seen, "client", truth, where, mechanism, near_s=near_s if split else near_s + access,
            hidden_s=hidden, cache=taken and kind.cache, thinks=client.thinks,
            answered=taken and kind.truth == "syn-proxy",
        )
    ]  # fmt: skip


def _behind_balancer(plan: Plan, client: Client, server: Server, port: int) -> Row:
    balancer = server.balancer
    assert balancer is not None
    return Row(
        balancer.network, port, balancer.address, "client", "split", "server", "balancer",
        near_s=balancer.link.round_trip_s, hidden_s=server.link.round_trip_s + client.link.round_trip_s,
        cache=plan.kind.cache and _taken(plan, client, port), thinks=client.thinks,
    )  # fmt: skip


def _between(plan: Plan, *, at_clients: bool) -> list[Row]:
    """At a face of the middle: what lies beyond it is still ahead, what lies on this side is a plain link."""
    rows = []
    for client in plan.clients:
        for server in plan.servers:
            for address in client.addresses:
                for port in PORTS:
                    rows.append(_towards_server(plan, client, 0.0, server, address, port, at_middle=at_clients))
                    rows += _towards_client(plan, client, address, server, port, 0.0, at_middle=not at_clients)
    if at_clients:
        return rows
    return [row for row in rows if row.stretch == "client"]  # towards the servers the sources are mixed
