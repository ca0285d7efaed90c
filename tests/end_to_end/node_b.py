"""Reports the queue of a device to a window-adaptation proxy, as a Node-B would. Run as a script.

Arguments: device, its rate in bit/s, proxy's address and port, bytes of a radio frame, seconds of a step, where the
reports are kept.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from pathlib import Path

from reference_proxy.relay.queue_reports import QueueReport


def _queue(device: str) -> dict[str, int]:
    reported = subprocess.run(["tc", "-s", "-j", "qdisc", "show", "dev", device], capture_output=True, check=True)
    (queue,) = [entry for entry in json.loads(reported.stdout) if entry.get("root")]
    return {name: queue[name] for name in ("backlog", "bytes", "drops")}


def main() -> None:
    """Report until ended."""
    device, rate_bit_s, address, port, frame_bytes, step_s, kept = sys.argv[1:]
    frame = int(frame_bytes)
    offered = int(float(rate_bit_s) / 8 * float(step_s) / frame)
    before = _queue(device)
    due = time.monotonic()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock, Path(kept).open("w", encoding="ascii") as file:
        sys.stderr.write("ready\n")
        sys.stderr.flush()
        for step in range(1 << 32):
            due += float(step_s)
            time.sleep(max(0.0, due - time.monotonic()))
            now = _queue(device)
            served = (now["bytes"] - before["bytes"]) // frame
            report = QueueReport(step, now["backlog"] // frame, served, now["drops"] - before["drops"], offered)
            sock.sendto(report.encode(), (address, int(port)))
            file.write(f"{report.queued_frames} {report.served_frames} {report.dropped_frames}\n")
            file.flush()
            before = now


if __name__ == "__main__":
    main()
