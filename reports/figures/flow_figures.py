"""What a page draws of one data flow: the time-sequence graph, delays and windows as points, chosen and explained.

How the points look is decided by `reports/assets/figures.js`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from pepscope.results.verdicts import Evidence, FlowSeries, Number, Outcome
from reports.figures.decimation import FloatArray, IndexArray, envelope_indices, lowest, step_indices
from reports.figures.packing import Packed, pack
from reports.quantities import format_bytes, format_count, format_percent, format_seconds

#: Of the points nearest to the separating line, which decide whether one exists, so many are always drawn.
NEAREST_KEPT = 200

#: Of the violating acknowledgements, so many of the worst are always drawn.
WORST_KEPT = 200


@dataclass(frozen=True, slots=True)
class Trace:
    """One set of points: `role` names its colour and symbol, `mode` is "points", "line", "steps" or "area"."""

    role: str
    label: str
    mode: str
    horizontal: Packed
    vertical: Packed
    drawn: int
    available: int


@dataclass(frozen=True, slots=True)
class Figure:
    """One picture with its axes' titles and the words below it; all text is plain, not HTML."""

    key: str
    title: str
    caption: str
    horizontal_title: str
    vertical_title: str
    from_zero: bool  # whether the vertical axis must show zero
    traces: tuple[Trace, ...]
    logarithmic: str = ""  # the axes that are: "x", "xy" or none
    rows: tuple[str, ...] = ()  # names on the vertical axis at 0, 1, ..., instead of numbers
    evenly: bool = False  # whether points that are left out were left out evenly, not by their heights

    @property
    def note(self) -> str:
        """What of the data is drawn."""
        drawn = sum(trace.drawn for trace in self.traces if trace.mode != "line")
        available = sum(trace.available for trace in self.traces if trace.mode != "line")
        if drawn == available:
            return f"All {format_count(available)} points drawn."
        if self.evenly:
            return f"Drawn {format_count(drawn)} of {format_count(available)} points, evenly chosen."
        kinds = {trace.mode for trace in self.traces if trace.drawn < trace.available}
        how = "first, minimum and maximum of each bucket"
        if self.key == "clouds":
            how += ", and the points that decide about the line"
        if "steps" in kinds:
            how += "; of curves that stand still only the steps"
        return f"Drawn {format_count(drawn)} of {format_count(available)} points: {how}."


def point_count(series: FlowSeries, limit: int) -> int:
    """About how many points `flow_figures` draws of a flow at `limit` points a trace."""
    sizes = [
        len(series.forward_time_s),
        len(series.ack_time_s),
        len(series.sender_data_time_s),
        len(series.sender_ack_time_s),
        len(series.receiver_data_time_s),
        len(series.receiver_ack_time_s),
        len(series.round_trip_time_s),
        len(series.sender_window_at_s),
        len(series.receiver_window_at_s),
        len(series.throughput_at_s),
        len(series.one_way_delay_s),
        len(series.in_flight_at_s),
        len(series.sent_again_at_s),
    ]
    return sum(min(size, limit) for size in sizes)


def flow_figures(series: FlowSeries, limit: int, evidence: Sequence[Evidence] = ()) -> list[Figure]:
    """The figures of one data flow that its series can fill, at most `limit` points a trace plus those always kept.

    Captions quote the numbers of the `evidence` on the connection where they speak of the same thing.
    """
    candidates = (
        _clouds(series, limit, _contradiction(series, evidence)),
        _time_sequence(series, limit),
        _one_way_delay(series, limit),
        _round_trip_time(series, limit),
        _receive_window(series, limit),
        _in_flight(series, limit),
        _throughput(series, limit),
    )
    return [figure for figure in candidates if figure is not None]


def _contradiction(series: FlowSeries, evidence: Sequence[Evidence]) -> Mapping[str, Number] | None:
    """The numbers of the evidence that data and acknowledgements of this flow contradict each other, if there is."""
    for item in evidence:
        numbers = item.numbers
        of_flow = item.outcome is Outcome.SPLIT and numbers.get("direction") == series.direction.name.lower()
        if of_flow and numbers.get("clocks") == "general" and {"violating_acks", "acks", "slack_s"} <= numbers.keys():
            return numbers
    return None


def _clouds(series: FlowSeries, limit: int, told: Mapping[str, Number] | None) -> Figure | None:
    if not len(series.forward_time_s) or not len(series.ack_time_s):
        return None
    offset = series.line_offset_s if series.line_offset_s is not None else 0.0
    # Drawn about the offset: clocks may be years apart while milliseconds decide.
    forward = series.forward_difference_s - offset
    acks = series.ack_difference_s - offset
    above = forward - series.line_drift * series.forward_time_s
    below = -(acks - series.line_drift * series.ack_time_s)
    violates = series.ack_violates
    violating = np.flatnonzero(violates)
    honest = np.flatnonzero(~violates)
    traces = [
        _points(
            "data", "data", series.forward_time_s, forward,
            envelope_indices(forward, limit, lowest(above, NEAREST_KEPT)),
        ),
        _points(
            "ack", "acknowledgements", series.ack_time_s, acks,
            honest[envelope_indices(acks[honest], limit, lowest(below[honest], NEAREST_KEPT))], len(honest),
        ),
    ]  # fmt: skip
    if len(violating):
        worst = lowest(below[violating], WORST_KEPT)
        chosen = violating[envelope_indices(acks[violating], limit, worst)]
        traces.append(_points("violation", "too early", series.ack_time_s, acks, chosen, len(violating)))
    if series.line_offset_s is not None:
        ends = np.array([
            min(series.forward_time_s.min(), series.ack_time_s.min()),
            max(series.forward_time_s.max(), series.ack_time_s.max()),
        ])  # fmt: skip
        traces.append(_points("line", "best separating line", ends, series.line_drift * ends, np.arange(2)))
    return Figure(
        "clouds",
        "Can one clock explain both data and acknowledgements?",
        _clouds_caption(series, above, below, len(violating), told),
        "sender's time (s)",
        "receiver's minus sender's time (s)",
        False,
        tuple(traces),
    )


def _clouds_caption(
    series: FlowSeries, above: FloatArray, below: FloatArray, violating: int, told: Mapping[str, Number] | None
) -> str:
    idea = (
        "Data cannot arrive before it is sent, and an acknowledgement cannot reach the sender before the receiver "
        "sends it. End to end, a line (the relation of the two clocks) therefore has all data above it and all "
        "acknowledgements below it."
    )
    if series.line_offset_s is None:
        return f"{idea} No line was fitted here."
    if abs(series.line_offset_s) >= 1e-3:
        idea += f" The clocks' offset, {series.line_offset_s:,.3f} s, is taken off here."
    drift = (
        f" (with the drift that fits best, {series.line_drift * 1e6:.3g} ppm)" if abs(series.line_drift) >= 1e-7 else ""
    )
    total = len(series.ack_time_s)
    if violating:
        amount = ""
        if told is not None:
            violating, total, slack_s = int(told["violating_acks"] or 0), int(told["acks"] or 0), told["slack_s"]
            if isinstance(slack_s, float) and slack_s < 0:
                amount = f" Data and acknowledgements contradict each other by {format_seconds(-slack_s)} at the least."
        return (
            f"{idea} Here {format_count(violating)} of {format_count(total)} acknowledgements "
            f"({format_percent(violating / max(total, 1))}, crosses) lie above the best line{drift}: the sender had "
            f"them before the receiver can have sent them, which cannot happen end to end.{amount}"
        )
    strays = int((above < 0).sum() + (below < 0).sum())
    if strays:
        return (
            f"{idea} Here they do{drift}, but for {format_count(strays)} of {format_count(total + len(above))} points, "
            "no more than imprecise timestamps and packets that a capture missed can explain."
        )
    return (
        f"{idea} Here they do{drift}: the closest data lies {format_seconds(float(np.nanmin(above)))} above the line, "
        f"the closest acknowledgement {format_seconds(float(np.nanmin(below)))} below it. Timing alone does not "
        "contradict an end-to-end connection; a split point without a queue can look like this too."
    )


def _time_sequence(series: FlowSeries, limit: int) -> Figure | None:
    unit, scale = _decimal_unit("B", series.sender_data_offset, series.receiver_data_offset)
    traces = _present(
        _series("data", "data sent", series.sender_data_time_s, series.sender_data_offset * scale, limit),
        _steps(
            "sender-ack", "ACKs reach the sender",
            series.sender_ack_time_s, series.sender_ack_offset * scale, limit,
        ),
        _series(
            "receiver-data", "data arrive",
            series.receiver_data_time_s, series.receiver_data_offset * scale, limit,
        ),
        _steps(
            "ack", "ACKs sent",
            series.receiver_ack_time_s, series.receiver_ack_offset * scale, limit,
        ),
        _series("violation", "sent again", series.sent_again_at_s, series.sent_again_offset * scale, limit),
    )  # fmt: skip
    if not traces:
        return None
    both = bool(len(series.sender_data_time_s) and len(series.receiver_data_time_s))
    if both:
        clocks = (
            "Both ends on the sender's clock."
            if series.line_offset_s is not None
            else "The two clocks could not be related; both ends start with their first packet."
        )
        caption = (
            f"{clocks} Look at the acknowledgements that reach the sender: where they climb "
            "before the data has reached the receiver, a middlebox has acknowledged them. The "
            "horizontal distance between the two data curves is the delay, the vertical one is data under way or "
            "stored."
        )
    else:
        caption = "Seen from one end only: how the stream advanced and how it was acknowledged there."
    title = "Time and sequence at both ends" if both else "Time and sequence"
    return Figure("sequence", title, caption, "time (s)", f"stream offset ({unit})", True, traces)


def _one_way_delay(series: FlowSeries, limit: int) -> Figure | None:
    delay = series.one_way_delay_s
    if not len(delay):
        return None
    order = np.arange(len(delay), dtype=np.float64)
    spread = f"{format_seconds(float(np.nanmin(delay)))} to {format_seconds(float(np.nanmax(delay)))}"
    return Figure(
        "delay",
        "One-way delay of each packet, in sending order",
        f"From {spread} on the fitted clocks (a constant part may hide in the clock offset). A delay that climbs "
        "steadily to the end is a store-and-forward proxy that took the file faster than it passed it on; long, "
        "wavering delays are a buffer at a split point, or a deep queue in the network.",
        "packet, by sending order",
        "one-way delay (s)",
        True,
        (_points("data", "one-way delay", order, delay, envelope_indices(delay, limit)),),
    )


def _round_trip_time(series: FlowSeries, limit: int) -> Figure | None:
    value = series.round_trip_time_s
    if not len(value):
        return None
    return Figure(
        "round-trip-time",
        "Round-trip time at the sender",
        f"Least {format_seconds(float(np.nanmin(value)))}, median {format_seconds(float(np.nanmedian(value)))}, most "
        f"{format_seconds(float(np.nanmax(value)))}. Round trips shorter than the delay of the path, or than the delay "
        "that the receiver puts on its acknowledgements, come from a middlebox closer than the receiver.",
        "sender's time (s)",
        "round-trip time (s)",
        True,
        (_points("data", "round-trip time", series.round_trip_time_at_s, value, envelope_indices(value, limit)),),
    )


def _receive_window(series: FlowSeries, limit: int) -> Figure | None:
    unit, scale = _decimal_unit("B", series.sender_window_bytes, series.receiver_window_bytes)
    traces = _present(
        _steps("data", "at the sender", series.sender_window_at_s, series.sender_window_bytes * scale, limit),
        _steps("ack", "at the receiver", series.receiver_window_at_s, series.receiver_window_bytes * scale, limit),
    )
    if not traces:
        return None
    if len(traces) == 2:
        caption = (
            "End to end, the two curves are one, shifted by the delay. Two different curves mean that a middlebox "
            "answers the sender: one that jumps between zero and full is the full buffer of a split point, one that "
            "stays open while the receiver is far behind is a store-and-forward proxy."
        )
    else:
        caption = (
            "The window advertised for this flow. Jumps between zero and full can be a slow reader at the far end or "
            "the full buffer of a split point; a capture at the other end shows which."
        )
    if sum(bool(np.any(values == 0)) for values in (series.sender_window_bytes, series.receiver_window_bytes)):
        caption += " The window closes completely here."
    return Figure("window", "Receive window", caption, "time (s)", f"receive window ({unit})", True, traces)


def _in_flight(series: FlowSeries, limit: int) -> Figure | None:
    if not len(series.in_flight_bytes):
        return None
    unit, scale = _decimal_unit("B", series.in_flight_bytes)
    again = len(series.sent_again_at_s)
    resent = f" {format_count(again)} segments were sent again (crosses in the graph of time and sequence)."
    return Figure(
        "in-flight",
        "Data in flight",
        f"Sent and not acknowledged yet: {format_bytes(float(series.in_flight_bytes.max()))} at most. It follows the "
        "smaller of the congestion window and the receive window; a saw that falls after losses is the congestion "
        f"window.{resent if again else ' Nothing was sent again.'}",
        "time (s)",
        f"data in flight ({unit})",
        True,
        _present(_steps("data", "in flight", series.in_flight_at_s, series.in_flight_bytes * scale, limit)),
    )


def _throughput(series: FlowSeries, limit: int) -> Figure | None:
    value = series.throughput_bit_s
    if not len(value):
        return None
    unit, scale = _decimal_unit("bit/s", value)
    indices = envelope_indices(value, limit)
    bins = series.throughput_at_s
    width = f" in bins of {format_seconds(float(bins[1] - bins[0]))}" if len(bins) > 1 else ""
    total = float(series.sender_data_offset.max()) if len(series.sender_data_offset) else 0.0
    of_stream = f" The stream reaches {format_bytes(total)}." if total > 0 else ""
    return Figure(
        "throughput",
        "Sender throughput",
        f"Payload as it left the sender{width}.{of_stream} Bursts with silences between them are a sender that fills "
        "the buffer of a split point and waits for it to drain; one short burst and nothing more is a proxy that takes "
        "all at once.",
        "sender's time (s)",
        f"throughput ({unit})",
        True,
        (_points("data", "sender throughput", bins, value * scale, indices, mode="area"),),
    )


def _points(
    role: str,
    label: str,
    horizontal: FloatArray,
    vertical: FloatArray,
    indices: IndexArray,
    available: int | None = None,
    mode: str | None = None,
) -> Trace:
    return Trace(
        role,
        label,
        mode or ("line" if role == "line" else "points"),
        pack(horizontal[indices]),
        pack(vertical[indices]),
        len(indices),
        len(vertical) if available is None else available,
    )


def _series(role: str, label: str, horizontal: FloatArray, vertical: FloatArray, limit: int) -> Trace | None:
    if not len(vertical):
        return None
    return _points(role, label, horizontal, vertical, envelope_indices(vertical, limit))


def _steps(role: str, label: str, horizontal: FloatArray, vertical: FloatArray, limit: int) -> Trace | None:
    if not len(vertical):
        return None
    return _points(role, label, horizontal, vertical, step_indices(vertical, limit), mode="steps")


def _decimal_unit(unit: str, *values: FloatArray) -> tuple[str, float]:
    """The unit with the prefix that suits the largest value, and what to multiply values with."""
    largest = max((float(np.nanmax(array)) for array in values if len(array)), default=0.0)
    for prefix, scale in (("G", 1e-9), ("M", 1e-6), ("k", 1e-3)):
        if largest * scale >= 1:
            return prefix + unit, scale
    return unit, 1.0


def _present(*traces: Trace | None) -> tuple[Trace, ...]:
    return tuple(trace for trace in traces if trace is not None)


def choose_limit(flows: Sequence[FlowSeries], budget: int, most: int) -> int:
    """The largest number of points a trace, up to `most`, with which all `flows` together stay within `budget`."""
    low, high = 100, most
    while low < high:
        middle = (low + high + 1) // 2
        if sum(point_count(series, middle) for series in flows) <= budget:
            low = middle
        else:
            high = middle - 1
    return low
