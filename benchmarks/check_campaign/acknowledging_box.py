"""A box that acknowledges the client's data in the hosts' name: `... acknowledging_box DEVICE SETTINGS` (JSON).

It makes the TUN device, writes `ready` and serves the packets that are routed into the device, until it is killed. The
box itself is that of the fresh captures.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import select
import sys
import time

from benchmarks.fresh.local_acknowledgement import LocalAcknowledgement
from benchmarks.fresh.origin import Log
from pepscope.captures.live.tun import open_tun

_MOST_BYTES = 65_536


def main() -> None:
    """Serve until killed."""
    device = open_tun(sys.argv[1])

    def send(packet: bytes) -> None:
        with contextlib.suppress(OSError):  # no route or no room: lost, as on any router
            os.write(device, packet)

    box = LocalAcknowledgement.create(send, Log(os.devnull), random.Random(1), json.loads(sys.argv[2]))
    sys.stderr.write("ready\n")
    sys.stderr.flush()
    poll = select.epoll()
    poll.register(device, select.EPOLLIN)
    while True:
        due = box.due()
        poll.poll(-1 if due is None else max(0.0, due - time.monotonic()))
        with contextlib.suppress(BlockingIOError):
            while True:
                box.take(os.read(device, _MOST_BYTES), time.monotonic())
        box.settle(time.monotonic())


if __name__ == "__main__":
    main()
