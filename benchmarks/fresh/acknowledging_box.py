"""Local acknowledgement as a process beside any path, until it is killed.

`python -m benchmarks.fresh.acknowledging_box DEVICE LOG SETTINGS` (JSON, see `local_acknowledgement.Settings`) makes
the TUN device, writes `ready` to standard error and serves the packets that are routed into the device.
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
    name, log, settings = sys.argv[1:]
    device = open_tun(name)

    def send(packet: bytes) -> None:
        with contextlib.suppress(OSError):  # no route or no room: lost, as on any router
            os.write(device, packet)

    box = LocalAcknowledgement.create(send, Log(log), random.Random(1), json.loads(settings))
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
