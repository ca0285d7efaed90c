"""Small networks with nothing left to chance, for tests."""

from __future__ import annotations

import gzip
from ipaddress import IPv4Address, IPv6Address
from random import Random
from typing import TYPE_CHECKING

from benchmarks.one_ended_simulated.captures import Recording, write_capture
from benchmarks.one_ended_simulated.channels import Link, line
from benchmarks.one_ended_simulated.habits import Stack
from benchmarks.one_ended_simulated.run import Simulation
from benchmarks.one_ended_simulated.scenario import (
    Box,
    Front,
    FrontKind,
    Middle,
    MiddleKind,
    Scenario,
    Server,
    Session,
    Site,
)
from benchmarks.one_ended_simulated.talks import ClientHabits, Request, Secure, ServerHabits
from benchmarks.one_ended_simulated.tls import Version

if TYPE_CHECKING:
    from pathlib import Path

STACK = Stack("test", 64, "MSTNW")
BOX = Box(STACK, 1e-4, 65_536)
ACCESS_S, WIRE_S, BACKEND_S = 0.040, 0.020, 0.010
PORTS = (22, 80, 443, 2525, 8443)
CLIENT, SERVER = IPv4Address("10.45.0.7"), IPv4Address("203.0.113.9")


def network(
    kind: MiddleKind, *, front: FrontKind | None = None, access: Link | None = None, answer_bytes: int = 5000
) -> Scenario:
    """One client that asks one server three times on each port, at fixed distances, with quick programs."""
    habits = ClientHabits(lambda: 0.001, lambda: 0.0005, lambda: 0.0005)
    before = None
    if front is not None:
        inner, backend = IPv4Address("198.18.0.1"), IPv4Address("198.19.0.10")
        before = Front(front, BOX, line(BACKEND_S, jitter_s=0.0), inner, backend)
    server = Server(
        "s1", SERVER, IPv6Address(0), WIRE_S, 0.0, 0.0, 4,
        ServerHabits(lambda: 0.001, lambda: 0.002, lambda: 0.0003), STACK, before, {443: True, 8443: False},
    )  # fmt: skip
    requests = tuple(Request(300, answer_bytes, 0.0, is_automatic=True) for _ in range(3))
    sessions = []
    for place, port in enumerate(PORTS):
        version = {443: Version.TLS_1_3, 8443: Version.TLS_1_2}.get(port)
        secure = None if version is None else Secure(version, "s1.example", False, 900, 300)
        sessions.append(Session(1.0 + 3 * place, 0, 0, port, requests, secure, 0.0))
    site = Site(
        "10.45.0.0/24", (CLIENT,), "line", access or line(ACCESS_S, jitter_s=0.0), 2, 0.0,
        Middle(kind, frozenset(PORTS), BOX), (habits,), (STACK,), (False,), tuple(sessions),
        pings=((0.5, 0, 0), (0.6, 0, 0)),
    )  # fmt: skip
    recordings = {"client": Recording(), "between": Recording(), "s1": Recording()}
    if front is not None:
        recordings["s1b"] = Recording()
    return Scenario(0, 0, (site,), (server,), recordings)


def simulated(scenario: Scenario) -> Simulation:
    """The network after all has happened."""
    simulation = Simulation(scenario, Random(1))
    simulation.run()
    return simulation


def written(simulation: Simulation, folder: Path) -> dict[str, Path]:
    """Its captures as plain pcap files, by the names of their taps."""
    paths = {}
    for name, tap in simulation.taps.items():
        path = folder / f"{name}.pcap.gz"
        write_capture(path, tap, simulation.scenario.recordings[name], Random(1))
        paths[name] = folder / f"{name}.pcap"
        paths[name].write_bytes(gzip.decompress(path.read_bytes()))
    return paths
