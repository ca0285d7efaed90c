"""Simulated page loads and pings in one capture: the detector hears whether a box splits the connections."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from reference_sim.scenario import Scenario
from reference_sim.simulation import simulate

#: Round trips between box and servers.
HIDDEN_S = (0.06, 0.12)
NEAR_S = 0.04


def page_loads(is_split: bool) -> Scenario:
    """Four mobiles' browsers at two servers over TLS 1.3, and pings to both."""
    internet = {
        "kind": "branches",
        "by": "server",
        "terminals": [{"down": {"delay_s": hidden_s / 2}} for hidden_s in HIDDEN_S],
    }
    access = {"kind": "wired", "name": "access", "down": {"rate_bit_s": 30_000_000, "delay_s": NEAR_S / 2}}
    box = [{"kind": "split-proxy", "name": "box"}] if is_split else []
    objects = [
        {"name": "style.css", "bytes": 15_000},
        {"name": "image", "bytes": 20_000, "count": 8},
        {"name": "script.js", "bytes": 9_000, "after": "style.css", "server_number": 1},
    ]
    pings: list[dict[str, Any]] = [
        {"kind": "ping", "requests": 20, "interval_s": 0.5, "server_number": number} for number in (0, 1)
    ]
    web = {"kind": "web", "pages": 2, "think_time_mean_s": 2.0, "objects": objects, "count": 4, "spacing_s": 1.5}
    return Scenario.from_mapping(
        {
            "name": "page-loads",
            "duration_s": 300.0,
            "path": [internet, *box, access],
            "traffic": [web, *pings],
            "record": {"taps": [{"name": "mobile", "snap_bytes": 0}]},
        }
    )


def judged(capture: Path) -> dict[str, Any]:
    """What `pepscope detect` says of the network in one capture."""
    command = [sys.executable, "-m", "pepscope", "detect", "--json", str(capture)]
    ran = subprocess.run(command, check=True, capture_output=True, text=True)
    (group,) = (group for group in json.loads(ran.stdout)["groups"] if group["side"] == "client")
    assert isinstance(group, dict)
    return group


@pytest.mark.parametrize("is_split", [False, True])
def test_a_split_of_page_loads_is_found_in_one_capture(tmp_path: Path, is_split: bool) -> None:
    run = simulate(page_loads(is_split), tmp_path)
    found = judged(run.captures["mobile"])
    assert found["verdict"] == ("split-tcp" if is_split else "regular")
    if is_split:
        assert found["near_round_trip_s"] == pytest.approx(NEAR_S, abs=2e-3)
        low_s, high_s = found["hidden_round_trip_interval_s"]
        assert low_s <= HIDDEN_S[0] <= high_s
        assert found["hidden_round_trip_s"] == pytest.approx(HIDDEN_S[0], rel=0.2)
