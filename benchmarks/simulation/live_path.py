"""How punctual, exact and fast the live path is (root, Linux).

`python -m benchmarks.simulation.live_path [--seconds S]`. Delay: datagrams that carry the time of sending, and the
kernel's time of their arrival. Rate: what a capture shows behind a link that is offered more than its rate. Throughput:
one TCP connection over a path without delay. Those who send datagrams have real-time priority, below the loop's, so
that what is measured is the path; the load of the machine is printed beside the results, since it shows in them.
"""

from __future__ import annotations

import argparse
import os
import random
import socket
import statistics
import struct
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import dpkt

from reference_sim.live_path import FIRST_MOBILE, SERVER, LiveEmulation, live_path
from reference_sim.scenario import Scenario

_SO_TIMESTAMPNS = 35
_SO_TIMESTAMPING = 37
#: linux/net_tstamp.h: software times of sending, with the number of the datagram and without its content.
_TELL_WHEN_SENT = 1 << 1 | 1 << 4 | 1 << 7 | 1 << 11
_EXTENDED_ERROR = struct.Struct("=IBBBBII")  # sock_extended_err of linux/errqueue.h
_TIMESPEC = struct.Struct("qq")
_PORT = 7007
_DELAY_S = 0.02
_PACKET_BYTES = 1500
_HEADER_BYTES = 28
_RATES_BIT_S = (64_000, 1_000_000, 10_000_000, 100_000_000, 500_000_000)
_OVERLOAD = 1.3
_QUEUE_PACKETS = 1000
_LEAST_PACKETS = 40
_CHUNK_BYTES = 1 << 18


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table."""

    what: str
    measured: str
    goal: str
    is_met: bool


def scenario(down: dict[str, Any], seconds: float) -> Scenario:
    path = [{"kind": "wired", "name": "line", "down": down, "up": {}}]
    return Scenario.from_mapping({"name": "benchmark", "duration_s": seconds, "path": path})


def in_real_time(function: Callable[[], None]) -> threading.Thread:
    def run() -> None:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
        function()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread


def sockets(emulation: LiveEmulation) -> tuple[socket.socket, socket.socket]:
    """A datagram socket at the server that is connected to one at the mobile."""

    def make(address: str) -> socket.socket:
        made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        made.bind((address, _PORT))
        return made

    server = emulation.network.server.call(make, SERVER[4])
    mobile = emulation.network.mobile.call(make, FIRST_MOBILE[4])
    server.connect((FIRST_MOBILE[4], _PORT))
    mobile.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
    mobile.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 24)
    mobile.settimeout(1.0)
    return server, mobile


@dataclass(slots=True)
class Delays:
    """Errors of the one-way delay in seconds."""

    #: From before the sender's call to the kernel's time of arrival.
    whole: list[float] = field(default_factory=list)
    #: From when the kernel hands a datagram to the device to when it takes it from the other.
    between_devices: list[float] = field(default_factory=list)
    lateness: dict[str, Any] = field(default_factory=dict)


def sent_times(sender: socket.socket) -> Iterator[tuple[int, int]]:
    """The number of each datagram that has left, and when the kernel handed it to the device."""
    while True:
        try:
            _, reported, _, _ = sender.recvmsg(0, 512, socket.MSG_ERRQUEUE | socket.MSG_DONTWAIT)
        except BlockingIOError:
            return
        number = time_ns = None
        for level, kind, content in reported:
            if (level, kind) == (socket.SOL_SOCKET, _SO_TIMESTAMPING):
                seconds, nanoseconds = _TIMESPEC.unpack_from(content)
                time_ns = seconds * 10**9 + nanoseconds
            elif level == socket.IPPROTO_IP:
                number = _EXTENDED_ERROR.unpack_from(content)[-1]
        if number is not None and time_ns is not None:
            yield number, time_ns


def delays(seconds: float, *, spin_s: float) -> Delays:
    """Datagrams every 2 to 6 ms."""
    from reference_sim.live_path import LiveSettings

    settings = LiveSettings(spin_s=spin_s)
    with live_path(scenario({"delay_s": _DELAY_S}, seconds), None, settings) as emulation:
        server, mobile = sockets(emulation)
        server.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPING, _TELL_WHEN_SENT)
        chance = random.Random(1)
        left_ns: dict[int, int] = {}

        def send() -> None:
            deadline = time.monotonic() + seconds
            datagram = bytearray(100)
            number = 0
            while time.monotonic() < deadline:
                struct.pack_into("q", datagram, 8, number)
                struct.pack_into("q", datagram, 0, time.time_ns())
                server.send(datagram)
                number += 1
                time.sleep(chance.uniform(0.002, 0.006))
                left_ns.update(sent_times(server))

        sender = in_real_time(send)
        arrived: list[tuple[int, int, int]] = []
        while True:
            try:
                data, ancillary, _, _ = mobile.recvmsg(200, 64)
            except TimeoutError:
                break
            arrived_s, arrived_ns = _TIMESPEC.unpack(ancillary[0][2])
            arrived.append((arrived_s * 10**9 + arrived_ns, *struct.unpack_from("qq", data)))
        sender.join()
        found = Delays(lateness=emulation.result().truth["live"]["parts"][0]["lateness"])
        for at_ns, sent_ns, number in arrived:
            found.whole.append((at_ns - sent_ns) * 1e-9 - _DELAY_S)
            if number in left_ns:
                found.between_devices.append((at_ns - left_ns[number]) * 1e-9 - _DELAY_S)
        return found


def rate(rate_bit_s: int, seconds: float, directory: Path) -> tuple[float, int]:
    """The rate behind a link of `rate_bit_s`, from the capture there; and packets that the capture missed."""
    # Long enough for the queue to fill first: it bridges the sender's pauses.
    seconds = max(seconds, _LEAST_PACKETS * 8 * _PACKET_BYTES / rate_bit_s)
    line = {"rate_bit_s": rate_bit_s, "queue_packets": _QUEUE_PACKETS}
    with live_path(scenario(line, seconds), directory) as emulation:
        server, _ = sockets(emulation)
        payload = bytes(_PACKET_BYTES - _HEADER_BYTES)

        def send() -> None:
            started = time.monotonic()
            sent = 0
            while (passed := time.monotonic() - started) < seconds:
                while sent < passed * _OVERLOAD * rate_bit_s / (8 * _PACKET_BYTES) + 2:
                    server.send(payload)
                    sent += 1
                time.sleep(0.001)

        in_real_time(send).join()
        time.sleep(0.3)
        run = emulation.result()
    counts = next(capture for capture in run.truth["captures"] if capture["tap"] == "mobile")
    with run.captures["mobile"].open("rb") as file:
        times = [when for when, data in dpkt.pcap.Reader(file) if data[9:10] == b"\x11"]
    measured = 8 * _PACKET_BYTES * (len(times) - 1) / float(times[-1] - times[0])
    return measured, counts["missed_packets"]


def throughput(seconds: float) -> tuple[float, dict[str, Any]]:
    """Bits a second of one TCP connection over a path without delay, and the path's part of the truth."""
    with live_path(scenario({}, seconds)) as emulation:
        listener = emulation.network.server.call(lambda: socket.create_server((SERVER[4], _PORT)))
        client = emulation.network.mobile.call(lambda: socket.create_connection((SERVER[4], _PORT)))
        connection, _ = listener.accept()

        def send() -> None:
            block = bytes(_CHUNK_BYTES)
            deadline = time.monotonic() + seconds
            while time.monotonic() < deadline:
                connection.sendall(block)
            connection.shutdown(socket.SHUT_WR)

        started = time.monotonic()
        sender = threading.Thread(target=send, daemon=True)
        sender.start()
        buffer = bytearray(_CHUNK_BYTES)
        received = 0
        while length := client.recv_into(buffer):
            received += length
        passed = time.monotonic() - started
        sender.join()
        return 8 * received / passed, emulation.result().truth["live"]["parts"][0]


def rows(seconds: float) -> list[Row]:
    measured = []
    for spin_s in (100e-6, 0.0):
        found = delays(seconds, spin_s=spin_s)
        errors, lateness = found.whole, found.lateness
        middle, high = statistics.median(errors), statistics.quantiles(errors, n=100)[98]
        inner = statistics.median(found.between_devices)
        measured.append(
            Row(
                f"one-way delay of 20 ms, error, {spin_s * 1e6:.0f} us of spin ({len(errors):,} datagrams)",
                f"p50 {middle * 1e6:,.0f} us, p99 {high * 1e6:,.0f} us (from device to device p50 "
                f"{inner * 1e6:,.0f} us; the loop's lateness: p99 {lateness['quantile_99_s'] * 1e6:,.0f} us)",
                "p50 < 50 us, p99 < 200 us" if spin_s else "",
                (abs(middle) < 50e-6 and high < 200e-6) or not spin_s,
            )
        )
    with tempfile.TemporaryDirectory() as directory:
        for rate_bit_s in _RATES_BIT_S:
            got, missed = rate(rate_bit_s, seconds / 2, Path(directory))
            error = got / rate_bit_s - 1
            note = f", {missed:,} packets missed by the capture" if missed else ""
            measured.append(
                Row(f"rate of {rate_bit_s / 1e6:g} Mbit/s", f"error {error:+.3%}{note}", "< 1 %", abs(error) < 0.01)
            )
    got, part = throughput(seconds / 2)
    dropped = sum(part["dropped_by_device_packets"].values())
    measured.append(
        Row(
            "TCP over no delay",
            f"{got / 1e9:.2f} Gbit/s ({dropped:,} packets dropped by devices)",
            ">= 1.5 Gbit/s on two cores",
            got >= 1.5e9,
        )
    )
    return measured


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=10.0)
    chosen = parser.parse_args()
    before = os.getloadavg()[0]
    table = rows(chosen.seconds)
    print(f"{os.cpu_count()} processors, load {before:.1f} before and {os.getloadavg()[0]:.1f} after\n")
    print("| what | measured | goal |\n|---|---|---|")
    for row in table:
        print(f"| {row.what} | {row.measured} | {row.goal}{'' if row.is_met else ': **missed**'} |")


if __name__ == "__main__":
    main()
