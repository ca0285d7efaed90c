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
    measures["first_byte_s"] = _mean([_first_byte_s(flow) for flow in flows])
    measures["down_delay_s"] = _mean([_down_delay_s(flow) for flow in flows])
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


def _first_byte_s(flow: Mapping[str, Any]) -> float | None:
    """From the start of a flow to the first byte that the mobile read; None where it read nothing."""
    read_s = flow["mobile"]["first_read_s"]
    return None if read_s is None else float(read_s - flow["start_s"])


def _down_delay_s(flow: Mapping[str, Any]) -> float | None:
    """Mean true one-way delay of segments to the mobile, over all legs; what data wait in proxies is left out."""
    means = [leg["one_way_delay_down"]["mean_s"] for leg in flow["legs"]]
    return None if None in means else float(sum(means))


def _mean(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None
