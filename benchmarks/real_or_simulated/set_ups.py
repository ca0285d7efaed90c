"""Set-ups drawn at random: a wired path and a few connections, as scenarios for virtual and for real time."""

from __future__ import annotations

import random
from typing import Any

from reference_sim.scenario import Scenario

#: Of a run, in seconds of the path's time; set-ups are drawn so that transfers end long before.
_DURATION_S = 20.0
_LINGER_S = 0.3
#: The longest time that the largest transfer takes at the path's rate, so that real captures stay short.
_TRANSFER_S = 1.2


def set_ups(count: int, seed: int) -> list[dict[str, Any]]:
    """So many scenarios, as mappings. Those of a seed are the first ones of a larger count."""
    return [_set_up(number, random.Random(f"real or simulated {seed} {number}")) for number in range(count)]


def scenario(set_up: dict[str, Any], ends: dict[str, Any]) -> Scenario:
    """The set-up with further fields for the TCP of both ends."""
    both = {place: {**set_up[place], **ends} for place in ("server", "mobile")}
    return Scenario.from_mapping({**set_up, **both})


def _set_up(number: int, chance: random.Random) -> dict[str, Any]:
    rate_bit_s = round(_between(chance, 2e6, 40e6))
    delay_s = round(_between(chance, 0.004, 0.08), 4)
    line: dict[str, Any] = {
        "rate_bit_s": rate_bit_s,
        "delay_s": delay_s,
        "queue_packets": round(_between(chance, 15, 300)),
    }
    if chance.random() < 0.5:
        line["loss"] = {"kind": "independent", "probability": round(_between(chance, 0.001, 0.02), 5)}
    control = chance.choice(["cubic", "cubic", "reno"])
    version = chance.choice([4, 4, 6])
    most_bytes = rate_bit_s / 8 * _TRANSFER_S
    traffic = []
    start_s = 0.0
    for _ in range(3):
        traffic.append({**_entry(chance, most_bytes), "start_s": round(start_s, 3), "ip_version": version})
        start_s += _between(chance, 0.05, 0.5)
    return {
        "name": f"set-up-{number}",
        "seed": chance.getrandbits(32),
        "duration_s": _DURATION_S,
        "stop_after_finish_s": _LINGER_S,
        "server": {"control": control},
        "mobile": {"control": control},
        "path": [{"kind": "wired", "name": "path", "down": line}],
        "traffic": traffic,
    }


def _entry(chance: random.Random, most_bytes: float) -> dict[str, Any]:
    kind = chance.choice(["download", "upload", "http", "http"])
    size = round(_between(chance, 3_000, most_bytes))
    if kind != "http":
        return {"kind": kind, "bytes": size}
    pages = chance.randint(1, 4)
    return {
        "kind": kind,
        "page_bytes": max(500, size // pages),
        "pages": pages,
        "request_bytes": chance.randint(200, 900),
        "think_time_mean_s": 0.1,
    }


def _between(chance: random.Random, low: float, high: float) -> float:
    """Log-uniform, since rates, delays and sizes spread over orders of magnitude."""
    return float(low * (high / low) ** chance.random())
