"""The path of one experiment: server, link, middle, link, mobile, each in a namespace of its own."""

from __future__ import annotations

import dataclasses
import json
import os
import random
import time
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.fresh import namespaces
from benchmarks.fresh.links import Link
from benchmarks.fresh.middle import READY_S, MiddlePath


@dataclass(frozen=True, slots=True)
class PathPlan:
    """Links down (towards the mobile) and up on either side of the middle, and how hosts are attached.

    With `ethernet` the hosts sit behind a veth pair with segmentation and receive offload, as behind a network card.
    With `local` all are on one LAN: veth pairs instead of links that are emulated, no delay, the middle answers ARP.
    `settings` are kernel parameters by place (`server`, `middle`, `mobile`).
    """

    wired_down: Link = field(default_factory=Link)
    wired_up: Link = field(default_factory=Link)
    cell_down: Link = field(default_factory=Link)
    cell_up: Link = field(default_factory=Link)
    cell_mtu: int = 1500
    ethernet: bool = False
    local: bool = False
    settings: dict[str, dict[str, str]] = field(default_factory=dict)
    congestion_control: str = "cubic"


class NetworkPath(MiddlePath):
    """Server and mobile beside the middle."""

    def __init__(self, plan: PathPlan, number: int, seed: str, directory: Path) -> None:
        stem = f"{namespaces.PREFIX}-{os.getpid()}-{number}"
        chance = random.Random(seed)
        third, host = chance.randrange(1, 250), chance.randrange(10, 200)
        super().__init__(directory, seed, f"{stem}-middle", f"100.{64 + third % 60}.7.{host}")
        self.plan = plan
        self.server, self.mobile = f"{stem}-server", f"{stem}-mobile"
        self._edges = (f"{stem}-server-edge", f"{stem}-mobile-edge") if plan.ethernet else (self.server, self.mobile)
        self.server_address, self.wired_address = f"198.18.{third}.{host}", f"198.18.{third}.1"
        self.cell_address = f"100.{64 + third % 60}.7.1"
        self.server_address_6, self.wired_address_6 = f"2001:db8:{third}::{host}", f"2001:db8:{third}::1"
        self.mobile_address_6, self.cell_address_6 = f"2001:db8:fe:{third}::{host}", f"2001:db8:fe:{third}::1"
        self.device = {"server": "host0" if plan.ethernet else "wired", "mobile": "host0" if plan.ethernet else "cell"}
        self.router = "169.254.7.1"  # next to a host, with `ethernet`

    def move_mobile(self, device: str) -> str:
        """Put the mobile's applications and capture into a namespace inside it, at `device`; the outer one's name.

        The caller gives the inner namespace that device."""
        outer = self.mobile
        inner = f"{outer}-inner"
        self._create(inner)
        self.mobile, self.device["mobile"] = inner, device
        return outer

    def wait_device(self, namespace: str, device: str) -> None:
        """Wait until a device has an IPv4 address."""
        deadline = time.monotonic() + READY_S
        while time.monotonic() < deadline:
            if f" {device} " in namespaces.inside(namespace, "ip", "-4", "-o", "addr"):
                return
            time.sleep(0.05)
        raise RuntimeError(f"{namespace} has no {device}")

    def _build(self) -> None:
        for name in dict.fromkeys((self.server, self.middle, self.mobile, *self._edges)):
            self._create(name)
        self._link("wired", self._edges[0], (self.plan.wired_up, self.plan.wired_down), 1500)
        self._link("cell", self._edges[1], (self.plan.cell_down, self.plan.cell_up), self.plan.cell_mtu)
        self._address_middle()
        self._address_host("server", self.server, self._edges[0], "wired")
        self._address_host("mobile", self.mobile, self._edges[1], "cell")
        for place in ("server", "middle", "mobile"):
            namespaces.sysctl(getattr(self, place), self.plan.settings.get(place, {}))

    def _link(self, device: str, edge: str, links: tuple[Link, Link], mtu: int) -> None:
        """Emulate between the middle and an edge: first the link away from the middle, then the one towards it."""
        if self.plan.local:
            self._connect(device, edge)
            return
        for name in (self.middle, edge):
            namespaces.command("ip", "-n", name, "tuntap", "add", device, "mode", "tun")
            namespaces.command("ip", "-n", name, "link", "set", device, "mtu", str(mtu), "txqueuelen", "2000", "up")
        settings = self.directory / f"{device}.json"
        settings.write_text(
            json.dumps(
                {
                    "first_namespace": self.middle, "first_device": device, "second_namespace": edge,
                    "second_device": device, "seed": f"{self.seed}/{device}",
                    "links": [dataclasses.asdict(link) for link in links],
                }
            )
        )  # fmt: skip
        self._spawn_emulator("benchmarks.fresh.emulator", str(settings), errors_to=f"{device}.err")

    def _connect(self, device: str, edge: str) -> None:
        """Join the middle and a host directly, with segmentation and receive offload."""
        namespaces.command(
            "ip", "-n", self.middle, "link", "add", device, "type", "veth", "peer", "name", device, "netns", edge
        )
        for name in (self.middle, edge):
            namespaces.command("ip", "-n", name, "link", "set", device, "up")
            namespaces.inside(name, "ethtool", "-K", device, "tso", "on", "gso", "on", "gro", "on")
            namespaces.sysctl(name, {f"net.ipv4.conf.{device}.proxy_arp": "1"})

    def _address_middle(self) -> None:
        for device, address, address_6 in (
            ("wired", self.wired_address, self.wired_address_6),
            ("cell", self.cell_address, self.cell_address_6),
        ):
            namespaces.command("ip", "-n", self.middle, "addr", "add", f"{address}/32", "dev", device)
            namespaces.command("ip", "-n", self.middle, "-6", "addr", "add", f"{address_6}/128", "dev", device)
            host, _, _ = address.rpartition(".")
            self._route(self.middle, f"{host}.0/24", device)
            self._route(self.middle, f"{address_6.rpartition('::')[0]}::/64", device)

    def _route(self, namespace: str, destination: str, *through: str) -> None:
        """A route whose connections use the plan's congestion control (the default of the machine may be another)."""
        family = ("-6",) if ":" in destination else ()
        namespaces.command(
            "ip", "-n", namespace, *family, "route", "add", destination, *through[:-1], "dev",
            through[-1], "congctl", self.plan.congestion_control,
        )  # fmt: skip

    def _address_host(self, place: str, host: str, edge: str, device: str) -> None:
        address = getattr(self, f"{place}_address")
        address_6 = getattr(self, f"{place}_address_6")
        if host == edge:
            namespaces.command("ip", "-n", host, "addr", "add", f"{address}/32", "dev", device)
            namespaces.command("ip", "-n", host, "-6", "addr", "add", f"{address_6}/128", "dev", device)
            self._route(host, "0.0.0.0/0", device)
            self._route(host, "::/0", device)
            return
        namespaces.command(
            "ip", "-n", host, "link", "add", "host0", "type", "veth", "peer", "name", "edge0", "netns", edge
        )
        for name, end in ((host, "host0"), (edge, "edge0")):
            namespaces.command("ip", "-n", name, "link", "set", end, "up")
            namespaces.inside(name, "ethtool", "-K", end, "tso", "on", "gso", "on", "gro", "on")
        namespaces.command("ip", "-n", host, "addr", "add", f"{address}/32", "dev", "host0")
        namespaces.command("ip", "-n", edge, "addr", "add", f"{self.router}/32", "dev", "edge0")
        namespaces.command("ip", "-n", host, "route", "add", self.router, "dev", "host0")
        self._route(host, "0.0.0.0/0", "via", self.router, "host0")
        namespaces.command("ip", "-n", edge, "route", "add", f"{address}/32", "dev", "edge0")
        namespaces.command("ip", "-n", edge, "route", "add", "default", "dev", device)
