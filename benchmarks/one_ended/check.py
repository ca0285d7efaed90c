"""Hold the truth of networks against their packets: `python -m benchmarks.one_ended.check DIR...`.

A handshake that reached the server bears the client's initial sequence number there, and its answer bears the same
server's number at the client; a split's does not. A SYN proxy passes the client's number and makes the server's anew.
Handshakes that happened before one of the captures began are left out.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.fresh import packets
from benchmarks.fresh.packets import ACK, SYN
from tests.captures.containers import LINK_ETHERNET, read_capture

#: A handshake this long after a late capture's first packet cannot have begun before it.
_MARGIN_NS = 2_000_000_000


@dataclass(frozen=True, slots=True)
class Handshake:
    """One answered handshake as a capture saw it; addresses are packed."""

    client: bytes
    server: bytes
    port: int
    client_number: int
    server_number: int
    time_ns: int


def handshakes(path: Path) -> tuple[list[Handshake], int]:
    """The answered handshakes of a capture, and when it began (ns)."""
    capture = read_capture(path)
    skip = 14 if capture.link_type == LINK_ETHERNET else 0
    asked: dict[tuple[bytes, int, bytes, int], int] = {}
    found: dict[tuple[bytes, int, bytes, int], Handshake] = {}
    for frame in capture.frames:
        if len(frame.data) < skip + 40 or frame.data[skip] >> 4 != 4:
            continue
        segment = packets.read(frame.data[skip:])
        if segment is None or not segment.flags & SYN:
            continue
        key = (segment.source, segment.source_port, segment.target, segment.target_port)
        if not segment.flags & ACK:
            asked[key] = segment.sequence
            continue
        back = key[2:] + key[:2]
        if back in asked and back not in found:
            numbers = asked[back], segment.sequence
            found[back] = Handshake(back[0], back[2], back[3], *numbers, frame.time_ns)
    begun = capture.frames[0].time_ns if capture.frames else 0
    return list(found.values()), begun


def judged(handshake: Handshake, far: list[Handshake]) -> str:
    """`same`, `answered` (the client's number came through, the server's is another) or `other`."""
    numbers = {one.client_number: one.server_number for one in far}
    if handshake.client_number not in numbers:
        return "other"
    return "same" if numbers[handshake.client_number] == handshake.server_number else "answered"


def expected(group: dict[str, Any]) -> str:
    """What the truth of a client's group says about handshakes at the server's outer face."""
    if group["handshake_answered"]:
        return "answered"
    if group["class"] == "split" and group["where"] == "network" and group["mechanism"] != "local-acknowledgement":
        return "other"
    return "same"


def check(network: Path) -> Counter[tuple[str, str, str]]:
    """How often what was expected of a client's connections met what the packets show, by mechanism."""
    truth = json.loads((network / "truth.json").read_text())
    addresses = {server["address"]: server["name"] for server in truth["plan"]["servers"]}
    far = {name: handshakes(network / f"{name}.pcap.gz") for name in addresses.values()}
    late = {capture["file"] for capture in truth["captures"] if capture["begins_late"]}
    counts: Counter[tuple[str, str, str]] = Counter()
    for capture in truth["captures"]:
        if capture["side"] != "client":
            continue
        by_host = {(group["host"], group["port"]): group for group in capture["groups"]}
        for handshake in handshakes(network / capture["file"])[0]:
            host = ".".join(map(str, handshake.server))
            group = by_host[host, handshake.port]
            seen, begun = far[addresses[host]]
            if f"{addresses[host]}.pcap.gz" not in late or handshake.time_ns > begun + _MARGIN_NS:
                met = judged(handshake, seen)
                counts[str(group["mechanism"]), expected(group), met] += 1
    return counts


def main() -> int:
    """Print what disagrees; 1 where anything does."""
    wrong = 0
    total: Counter[str] = Counter()
    for directory in map(Path, sys.argv[1:]):
        for written in sorted(directory.glob("*/truth.json")):
            for (mechanism, wanted, met), count in check(written.parent).items():
                total[f"{mechanism}: {met}"] += count
                if wanted != met:
                    wrong += count
                    print(f"{written.parent.name}: {mechanism}: {count} handshakes {met}, expected {wanted}")
    print(dict(total))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
