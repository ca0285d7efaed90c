"""A long load on `pepscope watch -i`, as root: `python -m benchmarks.loads.watch_soak --minutes 30`.

So many new connections a second (`--rate`) are replayed over a veth pair in a network namespace of their own: HTTP
requests of clients in twenty networks to ten servers. Half of the networks are behind a split whose hidden leg is
different to each server. Watched is whether the kernel drops packets, whether the memory of all processes of the watch
is flat, and whether every network gets the verdict that is true. All numbers go to standard output as JSON; the exit
status is 1 where anything is not as it should be.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

NAMES = ("soak0", "soak1")
SERVERS = 10
NETWORKS = 20
CLIENTS = 200
FIRST_PORT, PORTS = 1024, 60_000
TICK_S = 0.001
RING = 2048

#: Drops below this share, and growth of the last quarter's memory over the second's, are what is asked for.
MOST_DROPPED = 0.001
FLAT = 1.1

SYN, ACK, PSH_ACK, FIN_ACK, SYN_ACK = 0x02, 0x10, 0x18, 0x11, 0x12
REQUEST = b"GET /object HTTP/1.1\r\nHost: server.example\r\nUser-Agent: soak\r\n\r\n"
RESPONSE = b"HTTP/1.1 200 OK\r\nContent-Length: 400\r\n\r\n" + bytes(400)

#: Where the fields that differ stand in a frame: client address (as source, as destination), its port.
UP_PLACES, DOWN_PLACES = (26, 34), (30, 36)


def frame(is_up: bool, server: int, flags: int, sequence: int, acknowledgement: int, payload: bytes = b"") -> bytes:
    """A frame of which the client's address and port are still to be set."""
    options = bytes.fromhex("020405b4") if flags & SYN else b""
    offset = (20 + len(options)) // 4 << 4
    client, far = bytes(4), bytes((198, 51, 100, 1 + server))
    source, destination = (client, far) if is_up else (far, client)
    ports = (0, 80) if is_up else (80, 0)
    tcp = struct.pack("!HHIIBBHHH", *ports, sequence, acknowledgement, offset, flags, 64_000, 0, 0) + options + payload
    ip = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + len(tcp), 0, 0x4000, 64 if is_up else 55, 6, 0, source, destination)
    return bytes.fromhex("0200000000020200000000010800") + ip + tcp


class Connection:
    """The frames of a connection to a server, and their times in ticks: with two requests, one after the other."""

    def __init__(self, server: int, is_split: bool) -> None:
        near = 12 if is_split else 10 + 8 * server
        hidden = 20 + 8 * server if is_split else 0
        up, down = 1, 1
        at = 0
        self.frames: list[tuple[int, bool, bytearray]] = []

        def add(is_up: bool, flags: int, payload: bytes = b"") -> None:
            mine, theirs = (up, down) if is_up else (down, up)
            made = frame(is_up, server, flags, mine, 0 if flags == SYN else theirs, payload)
            self.frames.append((at, is_up, bytearray(made)))

        add(True, SYN)
        up += 1
        at += near
        add(False, SYN_ACK)
        down += 1
        add(True, ACK)
        for _ in range(2):
            at += 1
            add(True, PSH_ACK, REQUEST)
            up += len(REQUEST)
            at += near
            if is_split:
                add(False, ACK)
                at += hidden
            add(False, PSH_ACK, RESPONSE)
            down += len(RESPONSE)
            add(True, ACK)
        add(True, FIN_ACK)
        up += 1
        at += near
        add(False, FIN_ACK)
        down += 1
        add(True, ACK)


def replay(rate: int, seconds: float) -> dict[str, float]:
    """Send connections at that rate; what was sent."""
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))  # what else runs must not make the load lighter
    link = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
    link.bind((NAMES[0], 0))
    link.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 8 << 20)
    kinds = [[Connection(server, is_split) for server in range(SERVERS)] for is_split in (False, True)]
    ring: list[list[bytes]] = [[] for _ in range(RING)]
    chance = random.Random(1)
    begun = time.monotonic()
    tick = connections = packets = 0
    due = slipped_s = 0.0
    while (now := time.monotonic() - begun) < seconds:
        late_s = now - slipped_s - tick * TICK_S
        if late_s < 0:
            time.sleep(TICK_S)
            continue
        if late_s > TICK_S:
            slipped_s += late_s  # to catch up would make round trips shorter than they are
        due += rate * TICK_S
        while connections < due:
            network = connections % NETWORKS
            client = struct.pack("!BBBB", 10, 0, network, 1 + connections // NETWORKS % CLIENTS)
            port = struct.pack("!H", FIRST_PORT + connections // (NETWORKS * CLIENTS) % PORTS)
            late = 0
            for at, is_up, made in kinds[network % 2][chance.randrange(SERVERS)].frames:
                address_at, port_at = UP_PLACES if is_up else DOWN_PLACES
                made[address_at : address_at + 4] = client
                made[port_at : port_at + 2] = port
                late += not is_up and chance.random() < 0.1  # a path varies by a millisecond
                ring[(tick + at + late) % RING].append(bytes(made))
            connections += 1
        waiting = ring[tick % RING]
        for each in waiting:
            link.send(each)
        packets += len(waiting)
        waiting.clear()
        tick += 1
    return {"connections": connections, "packets": packets, "seconds": now, "rate": connections / now}


def memory_bytes(root: int) -> tuple[int, int]:
    """Proportional set size of a process, and of all below it."""
    children: dict[int, list[int]] = {}
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = status.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        children.setdefault(int(fields[1]), []).append(int(status.parent.name))
    sizes, found = {root: 0}, [root]
    while found:
        pid = found.pop()
        found += children.get(pid, [])
        try:
            text = Path(f"/proc/{pid}/smaps_rollup").read_text()
        except OSError:
            continue
        sizes[pid] = next(int(line.split()[1]) for line in text.splitlines() if line.startswith("Pss:")) << 10
    return sizes[root], sum(sizes.values()) - sizes[root]


@contextmanager
def veth_pair() -> Iterator[list[str]]:
    """A pair in a namespace; gives what a command must begin with to run there."""
    name = f"pepscope-soak-{os.getpid()}"
    inside = ["ip", "netns", "exec", name]
    subprocess.run(["ip", "netns", "add", name], check=True)
    try:
        one, other = NAMES
        pair = [*inside, "ip", "link", "add", one, "type", "veth", "peer", "name", other]
        subprocess.run(pair, check=True)
        for device in NAMES:
            subprocess.run([*inside, "ip", "link", "set", device, "up"], check=True)
        yield inside
    finally:
        subprocess.run(["ip", "netns", "delete", name], check=True)


def quarters(samples: Sequence[int]) -> list[int]:
    """The most in each quarter."""
    size = max(1, len(samples) // 4)
    return [max(samples[start : start + size]) for start in range(0, 4 * size, size)]


def is_flat(samples: Sequence[int]) -> bool:
    """Whether the last quarter needs no more than the second, when the window's evidence is complete."""
    _, second, _, last = quarters(samples)
    return last <= FLAT * second


def wrong_verdicts(summary: dict[str, object]) -> list[str]:
    """Networks whose verdict is not the true one."""
    groups = summary["groups"]
    assert isinstance(groups, list)
    verdicts = {group["network"]: group["verdict"] for group in groups}
    truth = {f"10.0.{network}.0/24": "split-tcp" if network % 2 else "regular" for network in range(NETWORKS)}
    return [f"{name}: {verdicts.get(name)} for {true}" for name, true in truth.items() if verdicts.get(name) != true]


def soak(minutes: float, rate: int, slice_s: float, options: list[str]) -> dict[str, object]:
    """Run the watch and the replay; everything that was seen."""
    seconds = 60 * minutes
    with veth_pair() as inside, tempfile.TemporaryDirectory() as directory:
        output = Path(directory, "summary.json")
        command = [*inside, sys.executable, "-m", "pepscope", "watch", "-i", NAMES[1]]
        with output.open("wb") as stream:
            watch = subprocess.Popen([*command, "--json", "--slice", f"{slice_s:g}s", *options], stdout=stream)
        time.sleep(2)
        load = [*inside, sys.executable, "-m", "benchmarks.loads.watch_soak", "--replay", f"{rate}", f"{seconds}"]
        replaying = subprocess.Popen(load, stdout=subprocess.PIPE)
        samples = []
        while replaying.poll() is None:
            time.sleep(1)
            samples.append(memory_bytes(watch.pid))
        assert replaying.stdout is not None
        sent = json.load(replaying.stdout)
        time.sleep(1)
        watch.send_signal(signal.SIGTERM)
        begun = time.monotonic()
        status = watch.wait(600)
        ending_s = time.monotonic() - begun
        summary = json.loads(output.read_bytes())
    own, below = zip(*samples, strict=True)
    packets = summary["packets"]
    return {
        "minutes": minutes,
        "sent": sent,
        "connections_judged": summary["connections"],
        "slices": summary["slices"],
        "packets": packets,
        "dropped_share": packets["dropped"] / max(packets["received"], 1),
        "memory_bytes_by_quarter": {"watch": quarters(own), "reader": quarters(below)},
        "memory_is_flat": is_flat(own) and is_flat(below),
        "wrong_verdicts": wrong_verdicts(summary),
        "ending_s": round(ending_s, 1),
        "exit_status": status,
    }


def main() -> int:
    """Run it; 1 where drops, memory or verdicts are not as they should be."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--rate", type=int, default=2000, help="new connections a second")
    parser.add_argument("--slice", type=float, default=60, help="seconds of a slice")
    parser.add_argument("--replay", nargs=2, metavar=("RATE", "SECONDS"), help=argparse.SUPPRESS)
    arguments, options = parser.parse_known_args()
    if arguments.replay:
        json.dump(replay(int(arguments.replay[0]), float(arguments.replay[1])), sys.stdout)
        return 0
    seen = soak(arguments.minutes, arguments.rate, arguments.slice, options)
    json.dump(seen, sys.stdout, indent=2)
    print()
    is_fine = seen["memory_is_flat"] and not seen["wrong_verdicts"] and not seen["exit_status"]
    return 0 if is_fine and float(str(seen["dropped_share"])) < MOST_DROPPED else 1


if __name__ == "__main__":
    sys.exit(main())
