"""A client beside uploads of archives, some of them cut: `python -m benchmarks.loads.uploads_beside`.

So many clients, each with a key of its own, upload an archive of so many bytes to `pepscope probe serve` at the same
time, as fast as they can; every second one has its connections ended at random places. Meanwhile another one asks the
server's HTTP for something small, four times a second. What it waited goes to standard output as JSON, before and
during the uploads, with how long the uploads took and how many are there, byte for byte; the exit status is 1 where one
is not, or where it waited longer than a second.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import statistics
import sys
import tempfile
import threading
import time
from pathlib import Path

from benchmarks.loads.slow_heads import MOST_WAIT_S, running_server, said, waits
from prober.client.archive_upload import upload_archive
from prober.client.control_client import ControlClient
from prober.protocol.control_messages import Key
from prober.server.identity import fingerprint_in
from prober.server.keys.client_key import Quotas
from prober.server.keys.key_file import KeyFile
from prober.server.sockets.connections import shut_down

_PATIENCE_S = 600.0


def main() -> int:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--bytes", type=int, default=100_000_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        state, archives = Path(scratch) / "state", Path(scratch)
        fingerprint = fingerprint_in(state)
        clients = []
        for number in range(options.clients):
            file = archives / f"{number}.pepscope.zip"
            file.write_bytes(b"PK\x03\x04" + random.Random(number).randbytes(options.bytes - 4))
            clients.append((file, Key(KeyFile(state).add(f"client-{number}", Quotas()), fingerprint)))
        with (
            running_server(str(state)) as (ports, own),
            ControlClient("127.0.0.1", ports["control"], own) as good,
        ):
            head = f"GET /echo/{good.session} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"

            def ask() -> None:
                said(ports["http"], head)

            before = waits(ask, 3.0)
            began_s, took = time.monotonic(), []

            def upload(number: int, file: Path, key: Key) -> None:
                with ControlClient("127.0.0.1", ports["control"], key, patience_s=_PATIENCE_S) as mobile:
                    if number % 2:
                        cut_at_random(mobile, number)
                    upload_archive(mobile, file, _PATIENCE_S)
                took.append(time.monotonic() - began_s)

            threads = [threading.Thread(target=upload, args=(n, *each)) for n, each in enumerate(clients)]
            for thread in threads:
                thread.start()
            during: list[float] = []
            while any(thread.is_alive() for thread in threads):
                during += waits(ask, 1.0)
        whole = sum(
            any(hashlib.sha256(each.read_bytes()).digest() == hashlib.sha256(file.read_bytes()).digest()
                for each in (state / "archives" / f"client-{number}").glob("*.zip"))
            for number, (file, _) in enumerate(clients)
        )  # fmt: skip
    found = {
        name: {"questions": len(some), "median_s": round(statistics.median(some), 4), "worst_s": round(max(some), 3)}
        for name, some in (("before", before), ("during", during))
    }
    print(json.dumps({**vars(options), **found, "uploads_s": round(max(took), 1), "whole": whole}))
    return int(max(during) > MOST_WAIT_S or whole < options.clients)


def cut_at_random(mobile: ControlClient, seed: int) -> None:
    """Have every fifth part's connection reset while it is sent."""
    drawn, send = random.Random(seed), mobile.send_part

    def cut(path: str, part: bytes) -> object:
        connection = mobile._connection
        if drawn.random() < 0.2 and connection is not None and connection.sock is not None:
            threading.Timer(drawn.uniform(0, 0.05), shut_down, [connection.sock]).start()
        return send(path, part)

    mobile.send_part = cut  # type: ignore[method-assign,assignment]


if __name__ == "__main__":
    sys.exit(main())
