"""Stored numbers of a run of Wei et al.'s."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reference_sim.run import Run


def measure_transfer(run: Run) -> dict[str, float | None]:
    """Of the first flow: `download_s` from the open connection to the last byte, `whole_s` from the SYN, "
    "throughputs."""
    flow = run.truth["flows"][0]
    mobile = flow["mobile"]
    if mobile["outcome"] != "closed":
        return {"download_s": None, "whole_s": None, "throughput_bit_s": None, "whole_bit_s": None, "timeouts": None}
    download_s = mobile["last_read_s"] - mobile["connected_s"]
    whole_s = mobile["last_read_s"] - flow["start_s"]
    size = run.scenario.traffic[0]["bytes"]
    assert isinstance(size, int)
    return {
        "download_s": download_s,
        "whole_s": whole_s,
        "throughput_bit_s": 8.0 * size / download_s,
        "whole_bit_s": 8.0 * size / whole_s,
        "timeouts": run.summary()["timeouts"],
    }


def measure_abort(run: Run) -> dict[str, float | None]:
    """How long each leg lived on after the mobile's abort, and what its server sent meanwhile.

    The server's leg that is still there when the run ends lives on until then (`is_open`). The mobile's has ended when
    the split point has sent its last packet to it.
    """
    flow: Mapping[str, Any] = run.truth["flows"][0]
    aborted_s = flow["mobile"]["ended_s"]
    server = flow["server"]
    ended_s = server["ended_s"]
    arrivals = run.arrivals
    to_mobile = (arrivals["leg"] == arrivals["leg"].max()) & ~arrivals["is_up"].astype(bool)
    return {
        "mobile_lives_on_s": max(0.0, float(arrivals["sent_ns"][to_mobile].max()) * 1e-9 - aborted_s),
        "server_lives_on_s": (run.simulated_s if ended_s is None else ended_s) - aborted_s,
        "is_open": float(ended_s is None),
        "window_probes": server["tcp"]["window_probes"],
        "received_share": flow["mobile"]["read_bytes"] / server["written_bytes"] if server["written_bytes"] else None,
    }
