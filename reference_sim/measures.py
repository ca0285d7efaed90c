"""What a campaign keeps of a run: single numbers that depend on the scenario and the seed alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reference_sim.run import Run

_TOTALS = (
    "simulated_s",
    "events",
    "flows",
    "finished_flows",
    "delivered_bytes",
    "goodput_bit_s",
    "data_packets",
    "retransmitted_packets",
    "timeouts",
)


def measure(run: Run) -> dict[str, float | None]:
    """Measures by name; None where a measure does not apply."""
    summary = run.summary()
    measures: dict[str, float | None] = {name: summary[name] for name in _TOTALS}
    flows = run.truth["flows"]
    measures["transfer_s"] = _mean([_transfer_s(flow) for flow in flows])
    answers = sum(flow["mobile"]["answers"] for flow in flows)
    measures["answer_s"] = sum(flow["mobile"]["answer_time_s"] for flow in flows) / answers if answers else None
    for hop in summary["hops"]:
        for direction in ("down", "up"):
            for name in ("utilisation", "overflowed_packets", "lost_packets"):
                measures[f"{hop['name']}.{direction}.{name}"] = hop[direction][name]
    return measures


def _transfer_s(flow: Mapping[str, Any]) -> float | None:
    """From the start of a flow to the last byte that either end read; None for a flow that did not finish."""
    ends = [flow[end]["last_read_s"] for end in ("server", "mobile") if flow[end]["last_read_s"] is not None]
    if not ends or flow["mobile"]["outcome"] != "closed":
        return None
    return float(max(ends) - flow["start_s"])


def _mean(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None
