"""What is true of each group of connections that a tap saw, in the form of the one-ended laboratories."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import ip_network
from typing import Any

from benchmarks.one_ended_simulated.captures import Address, Tap
from benchmarks.one_ended_simulated.run import Line, Simulation, wire
from benchmarks.one_ended_simulated.scenario import MiddleKind, Server, Site

SCHEMA = 1


@dataclass(frozen=True, slots=True)
class _Stretch:
    """What is true of a connection on the stretch of the path that one side judges: round trips in seconds."""

    kind: str  # regular, split, syn-proxy
    where: str | None
    near_s: float
    hidden_s: float | None
    exchanges: int
    mechanism: str | None = None


@dataclass(frozen=True, slots=True)
class _Seen:
    """One connection as one side judges it."""

    side: str
    network: str
    port: int
    host: str
    thinks: bool
    stretch: _Stretch


def truth(simulation: Simulation, tap_files: dict[str, str]) -> dict[str, Any]:
    """The whole `truth.json`; `tap_files` are the names of the written captures."""
    scenario = simulation.scenario
    captures = []
    for name, file in tap_files.items():
        recording = scenario.recordings[name]
        side = name if name in ("client", "between") else "server"
        captures.append(
            {
                "file": file,
                "side": side,
                "snap_length": recording.snap_length,
                "begins_late": recording.begins_at_s > 0,
                "groups": groups(simulation, name),
            }
        )
    first = scenario.sites[0]
    return {
        "schema": SCHEMA,
        "seed": scenario.seed,
        "id": identity(scenario.number),
        "access": first.access if len(scenario.sites) == 1 else "mixed",
        "middle": str(first.middle.kind) if len(scenario.sites) == 1 else "mixed",
        "hard": list(scenario.hard),
        "captures": captures,
    }


def identity(number: int) -> str:
    """The name of a network's folder."""
    return f"n{number:05d}"


def groups(simulation: Simulation, name: str) -> list[dict[str, Any]]:
    """By network and port, then (seen from the clients) by host too. A stretch is named by whom it leads to."""
    seen = [each for line in _visible(simulation, name) for each in _judged(simulation, name, line)]
    rows = []
    keys = sorted({(each.side, each.network, each.port) for each in seen})
    for side, network, port in keys:
        members = [each for each in seen if (each.side, each.network, each.port) == (side, network, port)]
        rows.append(_row(members, None))
        hosts = sorted({each.host for each in members})
        if side == "client":
            rows += [_row([each for each in members if each.host == host], host) for host in hosts]
    return rows


def _row(members: list[_Seen], host: str | None) -> dict[str, Any]:
    split = [each for each in members if each.stretch.kind == "split"]
    accused = [each for each in split if each.stretch.where == "network"] or split
    first = (accused or members)[0]
    hidden: float | dict[str, float] | None = None
    if accused:
        by_host = {each.host: round(each.stretch.hidden_s or 0.0, 6) for each in accused}
        hidden = by_host if host is None and first.side == "client" else by_host[first.host]
    row: dict[str, Any] = {
        "stretch": "server" if first.side == "client" else "client",
        "network": first.network,
        "port": first.port,
        "host": host,
        "class": first.stretch.kind,
        "where": first.stretch.where,
        "hidden_round_trip_s": hidden,
        "near_round_trip_s": round(min(each.stretch.near_s for each in accused or members), 6),
        "cache": any(each.stretch.mechanism == MiddleKind.CACHE for each in members),
        "thinks": all(each.thinks for each in members),
        "mechanism": first.stretch.mechanism,
        "whole": len(accused) in (0, len(members)),
        "connections": len(members),
        "exchanges": sum(each.stretch.exchanges for each in members),
    }
    legs_s = {round(each.stretch.hidden_s or 0.0, 6) for each in accused}
    if first.side == "server" and len(legs_s) > 1:  # clients of one network have access links of their own
        row["hidden_round_trip_range_s"] = [min(legs_s), max(legs_s)]
    return row


def _visible(simulation: Simulation, name: str) -> Iterator[Line]:
    """Connections of which the capture kept something."""
    tap: Tap = simulation.taps[name]
    begins_at_s = simulation.scenario.recordings[name].begins_at_s
    ends = {(face.source, face.source_port) for time_s, _, face in tap.records if time_s >= begins_at_s}
    for line in simulation.lines:
        names = line.names_at.get(name)
        if names is not None and (names.client, names.client_port) in ends:
            yield line


def _judged(simulation: Simulation, name: str, line: Line) -> list[_Seen]:
    """A connection as each side judges it that the capture `name` has: one between the ends has both."""
    scenario = simulation.scenario
    site, server = scenario.sites[line.site], scenario.servers[line.server]
    client, thinks = line.names_at[name].client, site.thinks[line.session.client]
    access_s = site.link_of(line.session.client).round_trip_s

    def seen(side: str, stretch: _Stretch) -> _Seen:
        return _Seen(side, _network(client), line.port, str(server.address_for(client)), thinks, stretch)

    if name == "client":
        return [seen("client", _towards_servers(line, site, server, access_s=access_s))]
    if name == "between":
        towards_clients = _Stretch("regular", None, access_s, None, line.client_answers_near)
        return [seen("client", _towards_servers(line, site, server, access_s=0.0)), seen("server", towards_clients)]
    return [seen("server", _towards_clients(line, site, server, has_front=name != server.name))]


def _towards_servers(line: Line, site: Site, server: Server, *, access_s: float) -> _Stretch:
    wire_s = wire(site, server).round_trip_s
    backend_s = 0.0 if server.front is None else server.front.link.round_trip_s
    middle, exchanges = site.middle, line.server_answers_near
    if middle.splits(line.port):
        return _Stretch("split", "network", access_s, wire_s + backend_s, exchanges, str(middle.kind))
    if server.front is not None:
        return _Stretch("split", "server", access_s + wire_s, backend_s, exchanges, str(server.front.kind))
    return _Stretch(_unsplit(site, line), None, access_s + wire_s, None, exchanges)


def _towards_clients(line: Line, site: Site, server: Server, *, has_front: bool) -> _Stretch:
    """The stretch from the server's capture; `has_front`: the server's front, if it has one, lies on it."""
    access_s, wire_s = site.link_of(line.session.client).round_trip_s, wire(site, server).round_trip_s
    middle = site.middle
    if has_front and server.front is not None:
        # A middle that speaks TLS itself makes its part of a handshake alone.
        itself = (
            middle.kind is MiddleKind.TLS_INTERCEPTION and middle.splits(line.port) and line.port in server.versions
        )
        hidden_s = wire_s if itself else wire_s + access_s
        front = server.front
        return _Stretch("split", "server", front.link.round_trip_s, hidden_s, line.client_answers_far, str(front.kind))
    if middle.splits(line.port):
        answers_near = server.front is not None and middle.kind is MiddleKind.RELAY
        exchanges = line.client_answers_near if answers_near else line.client_answers_far
        return _Stretch("split", "network", wire_s, access_s, exchanges, str(middle.kind))
    return _Stretch(_unsplit(site, line), None, access_s + wire_s, None, line.client_answers_near)


def _unsplit(site: Site, line: Line) -> str:
    """The kind of a connection that nothing splits: a middle that acts on it is a SYN proxy."""
    return "syn-proxy" if site.middle.acts_on(line.port) else "regular"


def _network(address: Address) -> str:
    return str(ip_network(f"{address}/{24 if address.version == 4 else 48}", strict=False))
