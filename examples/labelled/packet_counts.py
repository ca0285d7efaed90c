"""Another detector, as `pepscope validate --detector` takes it: one rule, thirty lines, and often wrong.

A middlebox that splits a connection makes its segments anew. This detector calls a connection split where both captures
hold different numbers of packets of it, and knows no losses, offloads, address translation or cut captures.

    pepscope validate examples/labelled --detector "python examples/labelled/packet_counts.py"
"""

from __future__ import annotations

import json
import sys

from pepscope import inspect

#: Packets that captures may miss.
ALLOWED_SHARE = 0.02


def main(paths: list[str]) -> None:
    """Write a verdict on each connection that both captures hold between the same addresses and ports."""
    seen = [{(each.client, each.server): each.packets for each in inspect(path).connections} for path in paths]
    pairs = []
    for client, server in seen[0].keys() & seen[-1].keys() if len(paths) == 2 else ():
        counts = [each[client, server] for each in seen]
        is_split = abs(counts[0] - counts[1]) > ALLOWED_SHARE * max(counts)
        split = 0.9 if is_split else 0.1
        pairs.append(
            {
                "vantages": [{"capture": path, "client": client, "server": server} for path in paths],
                "verdict": "split-tcp" if is_split else "regular",
                "probability": {"regular": 1 - split, "split-tcp": split, "tcp-proxy": 0.0},
                "reason": f"The captures hold {counts[0]} and {counts[1]} packets.",
            }
        )
    json.dump({"schema": 1, "pairs": pairs}, sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1:])
