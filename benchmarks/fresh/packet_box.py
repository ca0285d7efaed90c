"""A middlebox in mid-path that reads every TCP packet and may send others; a separate process.

`python -m benchmarks.fresh.packet_box NAMESPACE DEVICE LOG SETTINGS`: reads packets from a TUN device to which the
namespace routes all TCP that it forwards (`middleboxes.packet_box`), and writes packets into it, which are then
forwarded as usual. Settings in JSON: `behaviour`, one of `BEHAVIOURS`, and that behaviour's own settings.
"""

from __future__ import annotations

import json
import os
import random
import select
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from benchmarks.fresh.acknowledgement_regeneration import AcknowledgementRegeneration
from benchmarks.fresh.emulator import open_tun
from benchmarks.fresh.handover import Handover
from benchmarks.fresh.local_acknowledgement import LocalAcknowledgement
from benchmarks.fresh.normaliser import Normaliser
from benchmarks.fresh.origin import Log

_MOST_BYTES = 65_536

Send = Callable[[bytes], None]


class Behaviour(Protocol):
    """What a middlebox does. `now` is in seconds of a monotonic clock."""

    def take(self, packet: bytes, now: float) -> None:
        """A packet has come in."""

    def settle(self, now: float) -> None:
        """All packets that were there have been taken; also called when `due` has come."""

    def due(self) -> float | None:
        """When to call `settle` at the latest, None for when the next packet comes."""


BEHAVIOURS: dict[str, Callable[[Send, Log, random.Random, dict[str, Any]], Behaviour]] = {
    "acknowledgement-regeneration": AcknowledgementRegeneration.create,
    "handover": Handover.create,
    "local-acknowledgement": LocalAcknowledgement.create,
    "normaliser": Normaliser.create,
}


def carry(device: int, behaviour: Behaviour) -> None:
    """Serve packets for ever."""
    poll = select.epoll()
    poll.register(device, select.EPOLLIN)
    while True:
        due = behaviour.due()
        poll.poll(-1 if due is None else max(0.0, due - time.monotonic()))
        while True:
            try:
                packet = os.read(device, _MOST_BYTES)
            except BlockingIOError:
                break
            behaviour.take(packet, time.monotonic())
        behaviour.settle(time.monotonic())


def main() -> None:
    """Serve packets until killed; prints `ready` on standard output."""
    namespace, name, log, text = sys.argv[1:]
    settings = json.loads(text)
    device = open_tun(namespace, name)
    chance = random.Random(settings.pop("seed"))

    def send(packet: bytes) -> None:
        try:
            os.write(device, packet)
        except OSError:
            return  # no route or no room: lost, as on any router

    behaviour = BEHAVIOURS[settings.pop("behaviour")](send, Log(log), chance, settings)
    print("ready", flush=True)
    Path(f"{log}.ready").touch()
    carry(device, behaviour)


if __name__ == "__main__":
    main()
