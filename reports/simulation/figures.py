"""What a page draws of a simulation: its recorded series, one figure for what belongs together."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from reports.figures.decimation import FloatArray, envelope_indices
from reports.figures.flow_figures import Figure, Trace
from reports.figures.packing import pack

if TYPE_CHECKING:
    from reference_sim.run import Quantity, Run, Series

#: Traces of one figure; colours repeat beyond.
MOST_TRACES = 8

#: Points a trace.
POINTS = 2000

#: Prefixes of the unit of a large quantity.
_PREFIXES = (("G", 1e-9), ("M", 1e-6), ("k", 1e-3))


@dataclass(frozen=True, slots=True)
class _Subject:
    """Quantities, by a pattern of their names, that share a figure."""

    key: str
    title: str
    pattern: str
    unit: str
    axis: str
    caption: str


_SUBJECTS = (
    _Subject(
        "delivered",
        "Delivered to the applications",
        r"delivered_bytes$",
        "B",
        "delivered",
        "What the reading end has had of each flow. Flat pieces are waits: timeouts, a shut window, an object that a "
        "proxy is still taking in, or a user's think time.",
    ),
    _Subject(
        "congestion-window",
        "Congestion window",
        r"congestion_window_bytes$|slow_start_threshold_bytes$",
        "B",
        "window",
        "Of every sender that controls congestion, those of a proxy's legs among them.",
    ),
    _Subject(
        "receive-window",
        "Receive window",
        r"receive_window_bytes$",
        "B",
        "window",
        "As each reader advertises it. One that falls to nothing at a split point is back-pressure.",
    ),
    _Subject(
        "outstanding",
        "Sent and not acknowledged",
        r"unacknowledged_bytes$",
        "B",
        "outstanding",
        "Bytes under way by each sender's books.",
    ),
    _Subject(
        "queue-packets",
        "Queues of links",
        r"(system|waiting)_packets$",
        "packets",
        "queue",
        "Packets in each link's buffer, with the one in service where the link counts so.",
    ),
    _Subject(
        "queue-frames",
        "Queues at the Node-B",
        r"queue_\d+_frames$",
        "frames",
        "queue",
        "Radio frames of each terminal.",
    ),
    _Subject(
        "queue-bytes",
        "Queues and buffers",
        r"(queue_\d+|system|waiting|held_down|held_up)_bytes$",
        "B",
        "queue",
        "What waits in links, at terminals and in proxies.",
    ),
    _Subject(
        "rate",
        "Rates",
        r"rate_bit_s$|bandwidth_bit_s$",
        "bit/s",
        "rate",
        "What was delivered of each flow, over windows of a fiftieth of the run, beside what links offered.",
    ),
    _Subject(
        "round-trip",
        "Round-trip time and timeout",
        r"(round_trip_time|retransmission_timeout)_s$",
        "s",
        "time",
        "As each sender reckons with them: the smoothed round-trip time and the retransmission timeout.",
    ),
    _Subject(
        "quality",
        "Channel quality indicators",
        r"channel_quality_\d+$",
        "",
        "indicator",
        "As the terminals report them.",
    ),
    _Subject("window-pdus", "RLC windows", r"window_pdus$", "PDUs", "window", "Sent and not acknowledged by RLC."),
    _Subject(
        "repeated-pdus",
        "PDUs sent again by RLC",
        r"retransmitted_pdus$",
        "PDUs",
        "PDUs",
        "Since the start.",
    ),
    _Subject(
        "quota", "Quota of the control law", r"quota_packets$", "packets", "quota", "Packets that a step may send."
    ),
)


def simulation_figures(run: Run) -> list[Figure]:
    """The figures that a run's series and arrivals can fill; none where nothing was recorded."""
    series = run.series
    busy = [one for one in series.quantities if _is_busy(one, series.quantities)]
    figures = []
    for subject in _SUBJECTS:
        chosen = [one for one in busy if re.search(subject.pattern, one.name)]
        curves = [(_label(one), series.time_s, one.values) for one in chosen]
        if subject.key == "rate":
            curves = [*_delivery_rates(series), *curves]
        figure = _figure(subject, curves)
        if figure is not None:
            figures.append(figure)
    delays = _delays(run.arrivals)
    return [*figures, delays] if delays is not None else figures


def _is_busy(quantity: Quantity, others: Sequence[Quantity]) -> bool:
    """Whether an end of a flow reads, where the quantity is a reader's, or sends more than a request."""
    if quantity.flow is None:
        return True
    proof = "delivered_bytes" if quantity.name in ("delivered_bytes", "receive_window_bytes") else "acknowledged_bytes"
    moved = {one.place: _spread(one.values) for one in others if one.flow == quantity.flow and one.name == proof}
    return moved.get(quantity.place, 0.0) > 0.01 * max(moved.values(), default=0.0)


def _label(quantity: Quantity) -> str:
    words = re.sub(r"_(bytes|packets|frames|pdus|bit_s|s)$", "", quantity.name).replace("_", " ")
    flow = "" if quantity.flow is None else f" {quantity.flow}"
    return f"{quantity.place}{flow}: {words}"


def _delivery_rates(series: Series) -> Iterator[tuple[str, FloatArray, FloatArray]]:
    times = series.time_s
    step = max(1, len(times) // 50)
    for one in series.quantities:
        if one.name == "delivered_bytes" and len(times) > step and np.nanmax(one.values, initial=0.0) > 0:
            known = np.nan_to_num(one.values)
            passed = times[step:] - times[:-step]
            yield f"{one.place} {one.flow}: delivered", times[step:], 8 * (known[step:] - known[:-step]) / passed


def _figure(subject: _Subject, curves: Sequence[tuple[str, FloatArray, FloatArray]]) -> Figure | None:
    # Constant series carry no information; the ones that change most are drawn.
    telling = [curve for curve in curves if _spread(curve[2]) > 0]
    telling = sorted(telling, key=lambda curve: -_spread(curve[2]))[:MOST_TRACES]
    shown = [curve for curve in curves if any(curve is one for one in telling)]
    if not shown:
        return None
    unit, scale = _scaled_unit(subject.unit, [values for _, _, values in shown])
    left_out = len([curve for curve in curves if _spread(curve[2]) > 0]) - len(shown)
    caption = subject.caption + (f" {left_out} further curves that change less are left out." if left_out else "")
    traces = tuple(_trace(number, label, times, values * scale) for number, (label, times, values) in enumerate(shown))
    axis = f"{subject.axis} ({unit})" if unit else subject.axis
    return Figure(subject.key, subject.title, caption, "true time (s)", axis, True, traces)


def _spread(values: FloatArray) -> float:
    known = values[np.isfinite(values)]
    return float(known.max() - known.min()) if len(known) else 0.0


def _trace(number: int, label: str, times: FloatArray, values: FloatArray) -> Trace:
    chosen = envelope_indices(values, POINTS)
    role = f"series-{number % MOST_TRACES}"
    return Trace(role, label, "curve", pack(times[chosen]), pack(values[chosen]), len(chosen), len(values))


def _scaled_unit(unit: str, values: Sequence[FloatArray]) -> tuple[str, float]:
    largest = max(float(np.nanmax(array)) for array in values)
    if unit in ("B", "bit/s"):
        for prefix, scale in _PREFIXES:
            if largest * scale >= 1:
                return prefix + unit, scale
    return ("ms", 1e3) if unit == "s" and largest < 1 else (unit, 1.0)


def _delays(arrivals: Mapping[str, Any]) -> Figure | None:
    """One-way delays of data, leg by leg, of the flows that moved most."""
    if not len(arrivals["flow"]):
        return None
    data = arrivals["payload_bytes"] > 0
    keys = np.stack([arrivals["flow"][data], arrivals["leg"][data], arrivals["is_up"][data].astype(np.int64)])
    groups, counts = np.unique(keys, axis=1, return_counts=True)
    traces = []
    for number, place in enumerate(np.argsort(-counts, kind="stable")[:MOST_TRACES]):
        flow, leg, is_up = (int(one) for one in groups[:, place])
        chosen = data & (arrivals["flow"] == flow) & (arrivals["leg"] == leg) & (arrivals["is_up"] == bool(is_up))
        sent, arrived = arrivals["sent_ns"][chosen].astype(np.int64), arrivals["arrived_ns"][chosen].astype(np.int64)
        delay_ms = (arrived - sent) * 1e-6
        kept = envelope_indices(delay_ms, POINTS)
        label = f"flow {flow}, leg {leg} {'up' if is_up else 'down'}"
        times, values = pack(sent[kept] * 1e-9), pack(delay_ms[kept])
        traces.append(Trace(f"series-{number}", label, "points", times, values, len(kept), len(delay_ms)))
    if not traces:
        return None
    caption = (
        "Of every data segment, from when one end of a leg sent it until the other end had it. Leg 0 begins at the "
        "server."
    )
    return Figure(
        "delay", "True one-way delays", caption, "true time of sending (s)", "delay (ms)", True, tuple(traces)
    )
