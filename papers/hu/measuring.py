"""Stored numbers of a run of Hu's: throughput during a transfer, and the time of a download."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from reference_sim.run import Run


def measure_files(run: Run) -> dict[str, float | None]:
    """`throughput_bit_s` (bytes of files over the time in which any was under way), `download_s`, `timeouts`, `lost`.

    A page counts from its request to its last byte, a file with a connection of its own from the SYN on.
    """
    flows = run.truth["flows"]
    spans = [span for flow in flows for span in _spans(flow)]
    busy_s = _busy_s(spans, flows)
    # The time in which files were on is known in sum for pages, which never overlap, and flow by flow for files.
    files = sum(max(1, flow["mobile"]["answers"]) for flow in flows)
    read_bytes: int = sum(flow["mobile"]["read_bytes"] for flow in flows)
    durations_s = sum(flow["mobile"]["answer_time_s"] or _duration_s(flow) for flow in flows)
    summary = run.summary()
    is_whole = summary["finished_flows"] == summary["flows"]
    return {
        "throughput_bit_s": 8.0 * read_bytes / busy_s if is_whole and busy_s > 0.0 else None,
        "download_s": durations_s / files if is_whole else None,
        "timeouts": summary["timeouts"],
        "retransmitted": summary["retransmitted_packets"],
        "lost": sum(hop["down"]["lost_packets"] for hop in summary["hops"]),
        "unfinished": summary["flows"] - summary["finished_flows"],
    }


def measure_bulk(run: Run) -> dict[str, float | None]:
    """`goodput_bit_s` of what the mobile read, without the first tenth of the time, in which windows open."""
    series = next(q for q in run.series.quantities if q.place == "mobile" and q.name == "delivered_bytes")
    times = run.series.time_s
    begin = int(len(times) * 0.1)
    bits = 8.0 * float(series.values[-1] - series.values[begin])
    return {"goodput_bit_s": bits / float(times[-1] - times[begin]), "timeouts": run.summary()["timeouts"]}


def _duration_s(flow: Mapping[str, Any]) -> float:
    last_s = flow["mobile"]["last_read_s"]
    return 0.0 if last_s is None else float(last_s - flow["start_s"])


def _spans(flow: Mapping[str, Any]) -> list[tuple[float, float]]:
    if flow["mobile"]["answers"] or flow["mobile"]["last_read_s"] is None:
        return []
    return [(flow["start_s"], flow["mobile"]["last_read_s"])]


def _busy_s(spans: Sequence[tuple[float, float]], flows: Sequence[Mapping[str, Any]]) -> float:
    """Length of the union of `spans`, and the time of all pages."""
    busy_s, end_s = float(sum(flow["mobile"]["answer_time_s"] for flow in flows)), float("-inf")
    for start_s, stop_s in sorted(spans):
        busy_s += max(0.0, stop_s - max(start_s, end_s))
        end_s = max(end_s, stop_s)
    return busy_s
