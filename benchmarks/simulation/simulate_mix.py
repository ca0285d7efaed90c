"""Twenty TCP flows of different round trips and cross traffic over 100 Mbit/s: SECONDS. Prints how many segments
arrived.

`peers/mix.cc` simulates the same in ns-3.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from pepscope import _core

FLOWS = 20
SEGMENT_BYTES = 1460


def scenario(duration_s: float) -> dict[str, Any]:
    """One bottleneck that all share with Poisson packets of a tenth of its rate, then a line of its own for each flow.

    Flow n of 0 to 19 has 5 n + 4 ms one way behind the bottleneck's 1 ms, and begins after n / 20 s.
    """
    host = {"control": "reno", "recovery": "sack", "timestamps": False, "sack": True}
    shared = {"rate_bit_s": 100_000_000, "delay_s": 0.001}
    own = {"rate_bit_s": 1_000_000_000}
    return {
        "name": "mix-100mbit",
        "duration_s": duration_s,
        "server": host,
        "mobile": host,
        "path": [
            {
                "kind": "managed",
                "name": "shared",
                "down": shared
                | {
                    "queue": {"kind": "drop-tail", "packets": 333},
                    "cross": {"kind": "poisson", "rate_bit_s": 10_000_000, "packet_bytes": 1500},
                },
                "up": shared | {"queue": {"kind": "drop-tail", "packets": 10_000}},
            },
            {
                "kind": "branches",
                "name": "own",
                "terminals": [{"down": own | {"delay_s": (5 * flow + 4) / 1e3}} for flow in range(FLOWS)],
            },
        ],
        "traffic": [
            {"kind": "download", "duration_s": duration_s, "start_s": min(flow / FLOWS, duration_s / 2), "user": flow}
            for flow in range(FLOWS)
        ],
    }


def main() -> None:
    simulated = _core.simulate(json.dumps(scenario(float(sys.argv[1]))), None, None)
    flows = json.loads(simulated.truth_json)["flows"]
    print(sum(flow["mobile"]["read_bytes"] for flow in flows) // SEGMENT_BYTES)


if __name__ == "__main__":
    main()
