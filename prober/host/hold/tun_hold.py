"""Holds segments in a TUN device where netfilter cannot: policy routing leads them in, a marked raw socket out again.

Rules for the ports (`ip rule ... ipproto tcp`, Linux 4.17) route segments into the device; they are read there, wait,
and are sent as they are by a raw socket whose mark passes these rules by, so that they leave by the real device and a
capture of it shows when. SYN and RST go on at once. The device is gone with this process, and its routes with it; rules
that a crash left look into an empty table, which changes nothing, until the keeper removes them.
"""

from __future__ import annotations

import contextlib
import ipaddress
import json
import os
import re
import secrets
import socket
from pathlib import Path

from pepscope.captures.live.tun import dropped_packets, open_tun
from pepscope.errors import LivePathError
from prober.errors import ImpossibleError
from prober.host.hold.hold_line import HoldLine
from prober.host.hold.packet_rules import Command, HeldTraffic, RuleKeeper, run, run_all

_PACKET_BYTES = 65_536
_DEVICE_PACKETS = 10_000
_TCP = 6
_SYN, _RST, _ACK = 0x02, 0x04, 0x10
_FILTERS = Path("/proc/sys/net/ipv4/conf")
_NO_DEVICES = ("all", "default", "lo")
_STRICT, _LOOSE = "1", "2"
_RESERVED = 0x5045_0000  # marks and tables are taken from here, with two random bytes


class TunHolding:
    """A TUN device that the chosen traffic is routed into."""

    means = "tun"

    def __init__(self, traffic: HeldTraffic) -> None:
        """Make the device and the rules. Raises ImpossibleError."""
        tag = secrets.token_hex(2)
        self._mark = _RESERVED | int(tag, 16)
        self._device = f"pepack{tag}"
        route = _route_to(traffic.host) if traffic.host else {}
        self._out = _raw_sockets(traffic.versions, self._mark, str(route.get("dev", "")))
        try:
            self._tun = open_tun(self._device)
        except LivePathError as error:
            self._close_sockets()
            raise ImpossibleError(str(error)) from None
        install, remove = _commands(traffic, self._device, self._mark, route)
        self._keeper = RuleKeeper(remove)
        try:
            run_all(install)
        except BaseException:
            self._keeper.close()
            self.close()
            raise

    def line(self, delay_s: float) -> HoldLine[bytes]:
        """A line that holds what comes by this device."""
        return HoldLine(self, delay_s)

    def fileno(self) -> int:
        """Readable when segments came."""
        return self._tun

    def receive(self) -> list[bytes]:
        """Segments to be held; others have been sent on."""
        held: list[bytes] = []
        while True:
            try:
                packet = os.read(self._tun, _PACKET_BYTES)
            except OSError:
                return held
            if _bears_acknowledgement(packet):
                held.append(packet)
            elif _tcp_flags(packet) is not None:
                self._send(packet)

    def release(self, items: list[bytes]) -> int:
        """Send these; how many could not be sent."""
        return sum(not self._send(packet) for packet in items)

    def dropped_packets(self) -> int:
        """Segments that the device dropped since they were not read in time."""
        return dropped_packets(self._device)

    def end_diversion(self) -> None:
        """Route as before."""
        self._keeper.close()

    def close(self) -> None:
        """Let the device go, with what waits in it."""
        os.close(self._tun)
        self._close_sockets()

    def _close_sockets(self) -> None:
        for out in self._out.values():
            out.close()

    def _send(self, packet: bytes) -> bool:
        version = packet[0] >> 4
        destination = packet[24:40] if version == 6 else packet[16:20]
        out = self._out.get(version)
        with contextlib.suppress(OSError):
            return out is not None and out.sendto(packet, (str(ipaddress.ip_address(destination)), 0)) == len(packet)
        return False


def _tcp_flags(packet: bytes) -> int | None:
    """The flags of a TCP segment; `None` for anything else. Our kernel puts no IPv6 extension headers before TCP."""
    version = packet[0] >> 4 if packet else 0
    if version == 4 and len(packet) >= 20 and packet[9] == _TCP:
        offset = (packet[0] & 15) * 4
    elif version == 6 and len(packet) >= 40 and packet[6] == _TCP:
        offset = 40
    else:
        return None
    return packet[offset + 13] if len(packet) >= offset + 20 else None


def _bears_acknowledgement(packet: bytes) -> bool:
    flags = _tcp_flags(packet)
    return flags is not None and flags & (_SYN | _RST | _ACK) == _ACK


def _raw_sockets(versions: tuple[int, ...], mark: int, device: str) -> dict[int, socket.socket]:
    sockets: dict[int, socket.socket] = {}
    try:
        for version in versions:
            family = socket.AF_INET6 if version == 6 else socket.AF_INET
            sockets[version] = socket.socket(family, socket.SOCK_RAW, socket.IPPROTO_RAW)
            sockets[version].setsockopt(socket.SOL_SOCKET, socket.SO_MARK, mark)
            if device:
                sockets[version].setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, device.encode())
    except OSError as error:
        for made in sockets.values():
            made.close()
        raise ImpossibleError(f"raw sockets need root (CAP_NET_RAW, CAP_NET_ADMIN): {error.strerror}") from None
    return sockets


def _commands(
    traffic: HeldTraffic, device: str, number: int, route: dict[str, object]
) -> tuple[list[Command], list[Command]]:
    """Commands that begin and end the diversion; mark and table share a number."""
    mtu = int(str(route.get("mtu", 0))) or _least_mtu(str(route.get("dev", "")))
    install: list[Command] = [
        ("ip", "link", "set", device, "addrgenmode", "none"),
        ("ip", "link", "set", device, "mtu", str(mtu), "txqueuelen", str(_DEVICE_PACKETS), "up"),
    ]
    remove: list[Command] = []
    side = "sport" if traffic.at_server else "dport"
    for version in traffic.versions:
        ip = ("ip", f"-{version}")
        source = ("src", str(route["prefsrc"])) if "prefsrc" in route else ()
        install.append((*ip, "route", "add", "default", "dev", device, "table", str(number), *source))
        first = _free_preference(version, len(traffic.ports) + 2)
        end = first + len(traffic.ports) + 1
        install.append((*ip, "rule", "add", "pref", str(end), "nop"))
        install.append((*ip, "rule", "add", "pref", str(first), "fwmark", str(number), "goto", str(end)))
        to = () if traffic.at_server else ("to", traffic.host)
        for place, (low, high) in enumerate(traffic.ports, start=first + 1):
            ports = ("ipproto", "tcp", side, str(low) if low == high else f"{low}-{high}")
            install.append((*ip, "rule", "add", "pref", str(place), *to, *ports, "lookup", str(number)))
        remove += [(*ip, "rule", "delete", "pref", str(place)) for place in range(first, end + 1)]
    if 4 in traffic.versions:
        for path, before in _strict_filters(str(route.get("dev", ""))).items():
            install.append(_write(path, _LOOSE))
            remove.append(_write(path, before))
    return install, remove


def _strict_filters(device: str) -> dict[Path, str]:
    """Where devices check that answers come from where segments are routed to (RFC 3704), our device now; as set."""
    chosen = [device] if device else [entry.name for entry in _FILTERS.iterdir() if entry.name not in _NO_DEVICES]
    strict_for_all = (_FILTERS / "all" / "rp_filter").read_text(encoding="ascii").strip() == _STRICT
    paths = [_FILTERS / name / "rp_filter" for name in chosen]
    values = {path: path.read_text(encoding="ascii").strip() for path in paths}
    return {path: was for path, was in values.items() if was == _STRICT or (strict_for_all and was != _LOOSE)}


def _write(path: Path, text: str) -> Command:
    return ("sh", "-c", 'echo "$1" >"$0"', str(path), text)


def _route_to(host: str) -> dict[str, object]:
    """The route that segments to a host take now: `dev`, `prefsrc`, perhaps `mtu`."""
    found = json.loads(run(("ip", "-j", "route", "get", host)))
    if not found or "dev" not in found[0]:
        raise ImpossibleError(f"there is no route to {host}")
    if found[0]["dev"] == "lo":
        raise ImpossibleError(f"{host} is this machine, whose own segments cannot be led through a TUN device")
    return {key: found[0][key] for key in ("dev", "prefsrc") if key in found[0]} | _metric_mtu(found[0])


def _metric_mtu(route: dict[str, object]) -> dict[str, object]:
    metrics = route.get("metrics")
    mtu = metrics[0].get("mtu") if isinstance(metrics, list) and metrics and isinstance(metrics[0], dict) else None
    return {"mtu": mtu} if isinstance(mtu, int) else {}


def _least_mtu(device: str) -> int:
    """The MTU of a device; without one, the least of all that are up but the loopback."""
    links = json.loads(run(("ip", "-j", "link", "show")))
    sizes = [
        int(link["mtu"])
        for link in links
        if (link["ifname"] == device if device else "UP" in link["flags"] and "LOOPBACK" not in link["flags"])
    ]
    return min(sizes, default=1500)


def _free_preference(version: int, count: int) -> int:
    """The first of `count` preferences of rules before all others but that of local addresses."""
    listed = run(("ip", f"-{version}", "rule", "show"))
    taken = [int(number) for number in re.findall(r"^(\d+):", listed, re.MULTILINE) if int(number) > 0]
    first = min(taken, default=32_766) - count
    if first < 1:
        raise ImpossibleError("the host's own routing rules leave no room before them")
    return first
