"""One TCP flow over 100 Mbit/s and 40 ms: RECOVERY SECONDS [DIRECTORY]. Prints how many data packets arrived.

RECOVERY is that of the ends, or `linux`: both are then kernels, which take time, tune their buffers and repair by RACK.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from pepscope import _core

LINUX = "linux"


def scenario(recovery: str, duration_s: float) -> dict[str, Any]:
    """What the peers simulate too: 1500-byte packets without timestamps, 333 of them in the queue, delayed ACKs."""
    host = {"control": "reno", "recovery": recovery, "timestamps": False, "sack": recovery == "sack"}
    if recovery == LINUX:
        host = {"host": LINUX, "control": "reno", "timestamps": False}
    line = {"rate_bit_s": 100_000_000, "delay_s": 0.02}
    return {
        "name": "bulk-100mbit-40ms",
        "duration_s": duration_s,
        "server": host,
        "mobile": host,
        "path": [{"kind": "wired", "down": line | {"queue_packets": 333}, "up": line}],
        "traffic": [{"kind": "download", "duration_s": duration_s}],
    }


def main() -> None:
    recovery, seconds, *directory = sys.argv[1:]
    described = json.dumps(scenario(recovery, float(seconds)))
    simulated = _core.simulate(described, directory[0] if directory else None, None)
    print(json.loads(simulated.truth_json)["hops"][0]["down"]["delivered_packets"])


if __name__ == "__main__":
    main()
