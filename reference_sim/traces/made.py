"""The traces that come with pepscope, made by the models of cells.

`python -m reference_sim.traces.made` writes them again.
A download without end and without losses keeps each cell full; what arrives in each tenth of a second is the trace.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from reference_sim.scenario import Scenario
from reference_sim.simulation import simulate
from reference_sim.traces.captures import trace_of_capture
from reference_sim.traces.formats import write_csv

DIRECTORY = Path(__file__).parent.parent / "scenarios"
INTERVAL_S = 0.1
_SKIP_S, _LENGTH_S = 3.0, 60.0
_ROOM = {"queue_bytes": 1_000_000_000}


def _fading(**values: float) -> dict[str, Any]:
    return {"count": 1, "down": {"fading": values, **_ROOM}, "up": {"rate_bit_s": 20_000_000}}


#: The hops of each.
MADE: Mapping[str, tuple[dict[str, Any], ...]] = {
    # Two layers of 10 MHz on the move, a handover every 15 s.
    "lte-drive": (
        {
            "kind": "lte", "name": "cell",
            "terminals": [_fading(bandwidth_hz=10e6, mean_sinr_db=10.0, deviation_db=7.0, correlation_s=2.0)],
        },
        {"kind": "handover", "name": "handovers", "interval_s": 15.0, "interruption_s": 0.05},
    ),
    # 40 MHz in slots of 0.5 ms, four of five for down, on foot.
    "nr-walk": (
        {
            "kind": "lte", "name": "cell", "transmission_time_interval_s": 0.0005, "slots": "DDDSU",
            "terminals": [_fading(bandwidth_hz=40e6, mean_sinr_db=14.0, deviation_db=5.0, correlation_s=5.0)],
        },
    ),
    # A cell at its edge, where nothing gets through now and then.
    "lte-edge": (
        {
            "kind": "lte", "name": "cell",
            "terminals": [_fading(bandwidth_hz=10e6, layers=1, mean_sinr_db=-3.0, deviation_db=5.0, correlation_s=4.0)],
        },
    ),
}  # fmt: skip


def made(name: str) -> str:
    """The trace of that name as a CSV file."""
    window = 256 << 20
    scenario = Scenario.from_mapping(
        {
            "name": name,
            "duration_s": _SKIP_S + _LENGTH_S + 1.0,
            "server": {"send_buffer_bytes": window},
            "mobile": {"receive_buffer_bytes": window},
            "path": [*MADE[name], {"kind": "wired", "name": "core", "down": {"delay_s": 0.01}}][::-1],
            "traffic": [{"kind": "download", "duration_s": _SKIP_S + _LENGTH_S + 1.0}],
            "record": {"taps": [{"name": "mobile", "after_hop": len(MADE[name]) + 1, "snap_bytes": 96}]},
        }
    )
    with tempfile.TemporaryDirectory() as directory:
        run = simulate(scenario, directory)
        trace = trace_of_capture(run.captures["mobile"], INTERVAL_S, skip_s=_SKIP_S)
    steps = round(_LENGTH_S / INTERVAL_S)
    return "\n".join(write_csv(trace).splitlines()[: steps + 1]) + "\n"


if __name__ == "__main__":
    for each in MADE:
        (DIRECTORY / f"{each}.csv").write_text(made(each), encoding="ascii")
