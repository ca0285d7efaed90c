"""Several machines behind one NAT: what the server's capture shows of them, read by tshark."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from reference_sim.library import load_scenario
from reference_sim.scenario import Scenario
from reference_sim.simulation import simulate
from tests.oracles.tshark import tshark_fields

ADDRESS = "192.0.2.77"
DRIFT_PPM = 800
TRAFFIC: list[dict[str, Any]] = [
    {"kind": "download", "bytes": 20_000, "count": 3, "spacing_s": 6.0, "user": user, "start_s": 0.1 * user}
    for user in range(3)
]
TRAFFIC[1]["mobile_tcp"] = {"host": "linux", "timestamp_source": "machine", "timestamp_drift_ppm": DRIFT_PPM}
TRAFFIC[2]["mobile_tcp"] = {"host": "darwin"}


def seen(directory: Path, nat: dict[str, Any]) -> dict[int, list[tuple[float, int]]]:
    """Times and timestamps of SYNs at the server, by their ports."""
    fields = {
        "name": "nat", "duration_s": 60.0, "mobile": {"host": "linux", "timestamp_source": "machine"},
        "path": [{"kind": "wired", "down": {"delay_s": 0.01}, "up": {"delay_s": 0.01}}], "traffic": TRAFFIC,
        "record": {"taps": [{"name": "server", "nat": {"address": ADDRESS, **nat}}, {"name": "mobile"}]},
    }  # fmt: skip
    path = simulate(Scenario.from_mapping(fields), directory).captures["server"]
    rows = tshark_fields(
        f"tshark -n -r {path} -Y 'ip.src == {ADDRESS} && tcp.flags.syn == 1'",
        "tcp.srcport", "frame.time_epoch", "tcp.options.timestamp.tsval",
    )  # fmt: skip
    by_port = defaultdict(list)
    for port, time_s, value in rows:
        by_port[int(port)].append((float(time_s) - 1_700_000_000, int(value)))
    return by_port


def test_ports_are_kept_or_counted(tmp_path: Path) -> None:
    assert {*seen(tmp_path, {"ports": "kept"})} == {*range(40_000, 40_009)}
    assert {*seen(tmp_path, {"first_port": 3000})} == {*range(3000, 3009)}


def test_each_machine_has_a_timestamp_clock_of_its_own(tmp_path: Path) -> None:
    by_port = seen(tmp_path, {"ports": "kept"})
    starts = [[by_port[40_000 + 3 * user + number][0] for number in range(3)] for user in range(3)]
    for sent, rate in ((starts[0], 1000.0), (starts[1], 1000.0 * (1 + 1e-6 * DRIFT_PPM))):
        (first_s, first), (last_s, last) = sent[0], sent[2]
        assert (last - first) % (1 << 32) == pytest.approx(rate * (last_s - first_s), abs=2)
    # From numbers of their own, a second and more apart, and each connection of the third from another one.
    bases = {(value - round(1000 * time_s)) % (1 << 32) // 1000 for time_s, value in (starts[0][0], starts[1][0])}
    assert len(bases) == 2
    assert len({(value - round(1000 * time_s)) % (1 << 32) // 1000 for time_s, value in starts[2]}) == 3


def test_the_library_has_such_a_scenario(tmp_path: Path) -> None:
    run = simulate(load_scenario("shared-address").with_values({"duration_s": 4.0}), tmp_path)
    at_server = {flow["addresses"]["server"]["mobile"]["address"] for flow in run.truth["flows"]}
    at_mobile = {flow["addresses"]["mobile"]["mobile"]["address"] for flow in run.truth["flows"]}
    assert at_server == {ADDRESS}
    assert len(at_mobile) == 6
