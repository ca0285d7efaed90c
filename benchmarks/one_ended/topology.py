"""The namespaces of one network: clients and servers around a middle, load balancers and backends behind servers.

clients -- `cell` middle `wired` -- servers (or balancers -- `inner` backends); the emulator carries all links.
"""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.fresh import namespaces
from benchmarks.fresh.middle import READY_S, MiddlePath
from benchmarks.one_ended.priority import SERVERS, raise_threads

if TYPE_CHECKING:
    from benchmarks.one_ended.links import Link
    from benchmarks.one_ended.plan import Plan, Stack

#: Timestamps without random offsets: `clocks` gives each host its own.
_PLAIN_TIMESTAMPS = "2"
_EDGE_ADDRESS = "169.254.7.1"


class Network(MiddlePath):
    """Clients and servers beside the middle."""

    def __init__(self, plan: Plan, directory: Path) -> None:
        self.network_plan = plan
        self._stem = f"{namespaces.PREFIX}-{os.getpid()}-o{plan.index}"
        super().__init__(directory, f"{plan.seed}/{plan.index}", self.namespace("middle"), plan.clients[0].addresses[0])
        self._ports: list[tuple[str, str]] = []
        self._links: list[dict[str, Any]] = []
        self._emulator: subprocess.Popen[str] | None = None
        #: Where the capture of a host is taken: namespace and device.
        self.vantage_points: dict[str, tuple[str, str]] = {
            "middle-access": (self.middle, "cell"), "middle-wired": (self.middle, "wired"),
        }  # fmt: skip

    def namespace(self, host: str) -> str:
        """Name of the namespace of a host."""
        return f"{self._stem}-{host}"

    def start_module(self, namespace: str | None, module: str, *arguments: str, log: str) -> subprocess.Popen[str]:
        """Start a module of this package, in a namespace or outside all of them."""
        inside = ["ip", "netns", "exec", namespace] if namespace else []
        return self._spawn([*inside, sys.executable, "-m", f"benchmarks.one_ended.{module}", *arguments], log)

    def wait_for(self, path: Path, process: subprocess.Popen[str]) -> None:
        """Wait until a process has made a file."""
        deadline = time.monotonic() + READY_S
        while not path.exists():
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"{path.name} did not come")
            time.sleep(0.02)

    def raise_priority(self) -> None:
        """Let servers and proxies that run now, and what they start, go before other work of the machine."""
        inside = [pid for name in self._namespaces for pid in namespaces.command("ip", "netns", "pids", name).split()]
        own = [str(process.pid) for process in self._processes if process is not self._emulator]
        # The emulator is in the namespace that it entered last, and has a priority of its own.
        emulator = str(self._emulator.pid) if self._emulator is not None else ""
        for process in {*inside, *own} - {emulator}:
            raise_threads(int(process), SERVERS)

    def end_emulator(self) -> dict[str, Any]:
        """End the emulator; its report."""
        if self._emulator is None:
            raise RuntimeError("the emulator was not started")
        self._emulator.send_signal(signal.SIGTERM)
        self._emulator.wait(10)
        report: dict[str, Any] = json.loads((self.directory / "emulator-report.json").read_text())
        return report

    def _build(self) -> None:
        plan = self.network_plan
        self._create(self.middle)
        cell, wired = self._port(self.middle, "cell"), self._port(self.middle, "wired")
        _ip(self.middle, f"addr add {plan.middle_address}/32 dev wired", "addr add 100.127.0.1/32 dev cell")
        self._settings(self.middle, plan.middle_stack)
        for client in plan.clients:
            self._host(client.name, client.addresses, client.stack, cell, client.link, offload=client.offload)
            for address in client.addresses:
                _route(self.middle, f"{address}/32", plan.middle_stack, "dev cell")
        for server in plan.servers:
            self._host(server.name, (server.address,), server.stack, wired, server.link, offload=server.offload)
            _route(self.middle, f"{server.address}/32", plan.middle_stack, "dev wired")
            if server.balancer is not None:
                balancer, outer = server.balancer, self.namespace(server.name)
                inner = self._port(outer, "inner")
                _ip(outer, f"addr add {balancer.address}/32 dev inner")
                _route(outer, f"{balancer.backend_address}/32", server.stack, "dev inner")
                self._host(
                    f"{server.name}b", (balancer.backend_address,), balancer.backend_stack, inner, balancer.link,
                    offload=server.offload,
                )  # fmt: skip
        self._start_emulator()

    def _host(
        self, host: str, addresses: tuple[str, ...], stack: Stack, near: int, link: Link, *, offload: bool
    ) -> None:
        """A host behind a link; with `offload` it sits behind a network card that joins and splits segments."""
        name = self._create(self.namespace(host))
        edge = self._create(self.namespace(f"{host}e")) if offload else name
        far = self._port(edge, "wired")
        device, gateway = ("host0", f"via {_EDGE_ADDRESS} dev host0") if offload else ("wired", "dev wired")
        if offload:
            namespaces.command(
                "ip", "-n", name, "link", "add", "host0", "type", "veth", "peer", "name", "edge0", "netns", edge
            )
            for place, end in ((name, "host0"), (edge, "edge0")):
                _ip(place, f"link set {end} up")
                namespaces.inside(place, "ethtool", "-K", end, "tso", "on", "gso", "on", "gro", "on")
            _ip(edge, f"addr add {_EDGE_ADDRESS}/32 dev edge0", "route add default dev wired")
            _ip(edge, *(f"route add {address}/32 dev edge0" for address in addresses))
        _ip(name, *(f"addr add {address}/32 dev {device}" for address in addresses))
        if offload:
            _ip(name, f"route add {_EDGE_ADDRESS} dev host0")
        _route(name, "default", stack, gateway)
        self._settings(name, stack)
        self.vantage_points[host] = (name, device)
        self._links.append(
            {
                "name": host, "a": near, "b": far, "addresses": list(addresses),
                "down": dataclasses.asdict(link.down), "up": dataclasses.asdict(link.up),
                "hold_s": self._holds(host),
            }
        )  # fmt: skip

    def _holds(self, host: str) -> dict[str, float]:
        """How long the middle's ACKs are held back on the link to a host, by whose they seem to be: the far leg's
        round trip, so that the near leg seems to have the length of the whole path."""
        plan = self.network_plan
        if not plan.kind.holds:
            return {}
        if host in {client.name for client in plan.clients}:
            return {server.address: server.link.round_trip_s for server in plan.servers}
        if host in {server.name for server in plan.servers}:
            return {a: client.link.round_trip_s for client in plan.clients for a in client.addresses}
        return {}

    def _port(self, namespace: str, device: str) -> int:
        _ip(namespace, f"tuntap add {device} mode tun", f"link set {device} mtu 1500 txqueuelen 3000 up")
        self._ports.append((namespace, device))
        return len(self._ports) - 1

    def _settings(self, namespace: str, stack: Stack) -> None:
        namespaces.sysctl(
            namespace,
            {
                "net.ipv4.tcp_timestamps": _PLAIN_TIMESTAMPS if stack.timestamps else "0",
                "net.ipv4.tcp_sack": str(int(stack.selective)),
                "net.ipv4.ip_default_ttl": str(stack.ttl),
                "net.ipv4.tcp_rmem": f"4096 131072 {stack.receive_bytes}",
                "net.ipv4.tcp_slow_start_after_idle": str(int(stack.idle_restart)),
            },
        )  # fmt: skip

    def _start_emulator(self) -> None:
        settings = self.directory / "emulator.json"
        settings.write_text(json.dumps({"ports": self._ports, "links": self._links, "seed": self.seed}))
        arguments = [str(settings), str(self.directory / "emulator-report.json")]
        self._emulator = self._spawn_emulator("benchmarks.one_ended.emulator", *arguments, errors_to="emulator.err")


def _ip(namespace: str, *commands: str) -> None:
    """`ip` commands in a namespace, in one process."""
    done = subprocess.run(
        ["ip", "-n", namespace, "-batch", "-"], input="\n".join(commands), capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise RuntimeError(f"ip in {namespace}: {done.stderr.strip()}")


def _route(namespace: str, destination: str, stack: Stack, through: str) -> None:
    quick = " quickack 1" if stack.quick_acknowledgements else ""
    _ip(
        namespace,
        f"route add {destination} {through} congctl {stack.congestion_control} initcwnd {stack.initial_window}"
        f" advmss {stack.segment_bytes}{quick}",
    )
