"""Numbered datagrams to a server that sends them back. Run as a script: `serve`, or `ask COUNT INTERVAL_S`."""

from __future__ import annotations

import json
import os
import socket
import sys
import threading
import time

PORT = 7007
_WAITING_S = 10.0


def serve() -> None:
    """Send back whatever comes."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind((os.environ["PEPSCOPE_SERVER"], PORT))
        while True:
            server.sendto(*server.recvfrom(2000))


def ask(count: int, interval_s: float) -> None:
    """Write the round-trip times in seconds of those that came back, by their number."""
    sent: dict[int, float] = {}
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.connect((os.environ["PEPSCOPE_SERVER"], PORT))
        client.settimeout(_WAITING_S)

        def send() -> None:
            for number in range(count):
                sent[number] = time.monotonic()
                client.send(b"%08d" % number)
                time.sleep(interval_s)

        sender = threading.Thread(target=send)
        sender.start()
        times: dict[int, float] = {}
        while len(times) < count:
            try:
                number = int(client.recv(100))
            except TimeoutError:
                break
            times[number] = time.monotonic() - sent[number]
        sender.join()
    sys.stdout.write(json.dumps(times) + "\n")


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve()
    else:
        ask(int(sys.argv[2]), float(sys.argv[3]))
