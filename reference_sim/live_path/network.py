"""Server, middle and mobile: namespaces with addresses, routes and the TUN devices that paths carry packets between."""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pepscope.captures.live.tun import dropped_packets, open_tun
from reference_sim.live_path.kernel_settings import KernelSettings, kernel_control, kernel_settings
from reference_sim.live_path.namespaces import CleanupWatchdog, Namespace
from reference_sim.live_path.opening import OpenedInSteps
from reference_sim.scenario import Scenario

#: As captures of simulations show them.
SERVER = {4: "203.0.113.10", 6: "2001:db8:113::10"}
FIRST_MOBILE = {4: "10.45.0.2", 6: "2001:db8:45::2"}
MIDDLE = {4: "10.44.0.2", 6: "2001:db8:44::2"}
BASE_STATION = "10.44.0.1"

WIRED_DEVICE, CELL_DEVICE = "pepscope-wired", "pepscope-cell"
_SERVERS = {4: "203.0.113.0/24", 6: "2001:db8:113::/64"}
_ANYWHERE = {4: "0.0.0.0/0", 6: "::/0"}
#: What a device holds for a loop that is late: 10,000 packets of 1500 bytes, a tenth of a second at 1.2 Gbit/s.
_DEVICE_PACKETS = 10_000
#: Hops that end connections, and the verdict that a detector should reach.
PROXY_KINDS: Mapping[Any, str] = {
    "split-proxy": "split-tcp",
    "store-and-forward-proxy": "tcp-proxy",
    "window-adaptation-proxy": "split-tcp",
}
MOST_TERMINALS = 250

_EVERYWHERE = {
    "net.ipv6.conf.all.disable_ipv6": "0",
    "net.ipv6.conf.default.disable_ipv6": "0",
    "net.ipv6.conf.all.accept_dad": "0",
    "net.ipv6.conf.default.accept_dad": "0",
    "net.ipv6.conf.all.accept_ra": "0",
    "net.ipv6.conf.default.accept_ra": "0",
    "net.ipv6.conf.default.addr_gen_mode": "1",
    "net.ipv4.conf.all.rp_filter": "0",
    "net.ipv4.conf.default.rp_filter": "0",
    "net.ipv4.ping_group_range": "0 2147483647",
}
_ROUTER = {
    "net.ipv4.ip_forward": "1",
    "net.ipv6.conf.all.forwarding": "1",
    "net.ipv4.conf.all.send_redirects": "0",
    "net.ipv4.conf.default.send_redirects": "0",
}


@dataclass(frozen=True, slots=True)
class Link:
    """Two TUN devices and the hops between them."""

    #: Hops `first_hop` up to before `end_hop` of the scenario.
    first_hop: int
    end_hop: int
    server_side: Namespace
    server_device: str
    server_descriptor: int
    mobile_side: Namespace
    mobile_device: str
    mobile_descriptor: int

    def dropped_packets(self) -> dict[str, int]:
        """Packets, by direction, that the devices dropped since the loop did not take them in time."""
        return {
            "down": self.server_side.call(dropped_packets, self.server_device),
            "up": self.mobile_side.call(dropped_packets, self.mobile_device),
        }


class LiveNetwork(OpenedInSteps):
    """The namespaces of one run; a context manager that leaves nothing behind."""

    def __init__(self, scenario: Scenario, parts: tuple[tuple[int, int], ...], packet_bytes: int) -> None:
        """`parts` are ranges of hops, one or, with a middle between them, two. Raises ScenarioError."""
        super().__init__()
        self._settings: Mapping[str, KernelSettings] = {
            "server": kernel_settings("server", scenario.server),
            "mobile": kernel_settings("mobile", scenario.mobile),
        }
        self._middle_control = _middle_control(scenario)
        longest = max(settings.maximum_segment_size_bytes for settings in self._settings.values())
        self.packet_bytes = max(packet_bytes, longest + 40)
        self.terminals = terminals(scenario)
        self._parts = parts
        self.links: tuple[Link, ...] = ()

    @property
    def namespaces(self) -> tuple[Namespace, ...]:
        """From the server on."""
        return (self.server, self.mobile) if self.middle is None else (self.server, self.middle, self.mobile)

    def environment(self) -> dict[str, str]:
        """Environment of commands inside: that of this process, with `PEPSCOPE_SERVER` and the other addresses."""
        addresses = {"SERVER": SERVER, "MOBILE": FIRST_MOBILE}
        if self.middle is not None:
            addresses["MIDDLE"] = MIDDLE
        variables = {f"PEPSCOPE_{name}": both[4] for name, both in addresses.items()}
        variables |= {f"PEPSCOPE_{name}_6": both[6] for name, both in addresses.items()}
        return {**os.environ, **variables}

    def _open_steps(self) -> None:
        self.server = self._namespace("server")
        self.middle = self._namespace("middle") if len(self._parts) == 2 else None
        self.mobile = self._namespace("mobile")
        watchdog = CleanupWatchdog(self.namespaces)
        self._closing.callback(watchdog.close)
        stations = self.namespaces
        links = []
        for number, (first_hop, end_hop) in enumerate(self._parts):
            above, below = stations[number], stations[number + 1]
            device_above = WIRED_DEVICE if number == 0 else CELL_DEVICE
            device_below = CELL_DEVICE if number == len(self._parts) - 1 else WIRED_DEVICE
            descriptors = [self._device(above, device_above), self._device(below, device_below)]
            links.append(
                Link(first_hop, end_hop, above, device_above, descriptors[0], below, device_below, descriptors[1])
            )
        self.links = tuple(links)
        self._set_up_end(self.server, WIRED_DEVICE, [SERVER], self._settings["server"])
        mobiles = [
            {version: nth_address(address, n) for version, address in FIRST_MOBILE.items()}
            for n in range(self.terminals)
        ]
        self._set_up_end(self.mobile, CELL_DEVICE, mobiles, self._settings["mobile"])
        if self.middle is not None:
            self._set_up_middle(self.middle)

    def _namespace(self, name: str) -> Namespace:
        namespace = Namespace(name)
        self._closing.callback(namespace.close)
        namespace.set_parameters(_EVERYWHERE)
        namespace.ip("link set lo up")
        return namespace

    def _device(self, namespace: Namespace, name: str) -> int:
        descriptor = namespace.call(open_tun, name)
        self._closing.callback(os.close, descriptor)
        namespace.ip(f"link set {name} mtu {self.packet_bytes} txqueuelen {_DEVICE_PACKETS} up")
        return descriptor

    def _set_up_end(
        self, namespace: Namespace, device: str, addresses: list[dict[int, str]], settings: KernelSettings
    ) -> None:
        namespace.set_parameters(settings.parameters)
        namespace.ip(
            *(_address(one[version], device) for one in addresses for version in (4, 6)),
            *(
                f"route add {_ANYWHERE[version]} dev {device} src {addresses[0][version]} "
                f"{settings.route_options[version]}"
                for version in (4, 6)
            ),
        )

    def _set_up_middle(self, namespace: Namespace) -> None:
        namespace.set_parameters(_ROUTER)
        lines = []
        for version in (4, 6):
            options = f"src {MIDDLE[version]} congctl {self._middle_control}"
            lines += [
                _address(MIDDLE[version], CELL_DEVICE),
                f"route add {_SERVERS[version]} dev {WIRED_DEVICE} {options}",
                f"route add {_ANYWHERE[version]} dev {CELL_DEVICE} {options}",
            ]
        namespace.ip(*lines)


def split_path(scenario: Scenario, middle_after: int | None) -> tuple[tuple[int, int], ...]:
    """The ranges of hops on either side of the middle: where the proxy of the scenario stands, or after so many hops.

    One range where there is no middle. Raises ScenarioError.
    """
    from pepscope.errors import ScenarioError

    hops = len(scenario.path)
    proxies = [number for number, hop in enumerate(scenario.path) if hop["kind"] in PROXY_KINDS]
    if len(proxies) > 1:
        raise ScenarioError(f"{scenario.name} must have at most one proxy on a live path, got {len(proxies)}")
    if proxies:
        if middle_after is not None:
            raise ScenarioError(f"the middle of {scenario.name} is at the place of its proxy, path[{proxies[0]}]")
        return (0, proxies[0]), (proxies[0] + 1, hops)
    if middle_after is None:
        return ((0, hops),)
    if not 0 <= middle_after <= hops:
        raise ScenarioError(
            f"the middle must be after one of the {hops} hops of {scenario.name}, got hop {middle_after}"
        )
    return (0, middle_after), (middle_after, hops)


def terminals(scenario: Scenario) -> int:
    """How many mobiles have an address: as many as the scenario's traffic names, at least one."""
    last = 0
    for entry in scenario.traffic:
        user, count = entry.get("user"), entry.get("count")
        first = user if isinstance(user, int) else 0
        has_one_each = entry.get("one_user_each") is True or entry.get("kind") == "voice"
        further = count - 1 if has_one_each and isinstance(count, int) else 0
        last = max(last, first + further)
    return min(last + 1, MOST_TERMINALS)


def _middle_control(scenario: Scenario) -> str:
    """The congestion control of what ends connections in the middle, unless it chooses its own: the mobile leg's."""
    legs: list[Any] = [hop["mobile_leg"] for hop in scenario.path if hop["kind"] in PROXY_KINDS]
    return kernel_control("mobile_leg", legs[0]["control"] if legs else "cubic")


def nth_address(address: str, number: int) -> str:
    """The address so many behind this one."""
    return str(ipaddress.ip_address(address) + number)


def _address(address: str, device: str) -> str:
    return f"address add {address}/{128 if ':' in address else 32} dev {device}" + (" nodad" if ":" in address else "")


def same_network(packed: bytes, address: str) -> bool:
    """Whether an address, as packets have it, lies in the network of this one: /24, and /64 in version 6."""
    kept = 8 if len(packed) == 16 else 3
    return bytes(packed)[:kept] == ipaddress.ip_address(address).packed[:kept]
