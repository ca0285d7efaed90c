"""Figure 3: sender throughput, receive window and end-to-end delay of regular TCP, Split-TCP and a TCP proxy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from reference_sim.library import load_scenario
from reference_sim.simulation import simulate

FloatArray = npt.NDArray[np.float64]

BYTES = 2_000_000
SCENARIOS: Mapping[str, str] = {"regular": "wei-regular", "Split-TCP": "wei-split", "TCP proxy": "wei-tcp-proxy"}
_BIN_S = 1.0


@dataclass(frozen=True, slots=True)
class Characteristics:
    """One download as both ends saw it; all times are true ones."""

    #: Middles of the seconds, and what the server sent in each, in bit/s.
    second_s: FloatArray
    sender_bit_s: FloatArray
    #: What the server saw as receive window, in bytes, while it had data to send.
    window_s: FloatArray
    window_bytes: FloatArray
    #: When each data packet left the server, and how long after it all of its bytes had reached the mobile.
    sent_s: FloatArray
    delay_s: FloatArray
    #: Share of data packets that the server saw acknowledged before the mobile acknowledged them (Method 2, i = 1).
    violating_share: float

    @property
    def sending_s(self) -> float:
        """From the first data packet to the last one."""
        return float(self.sent_s[-1] - self.sent_s[0])

    @property
    def variation(self) -> float:
        """Standard deviation of the seconds' throughputs over their mean."""
        return float(np.std(self.sender_bit_s) / np.mean(self.sender_bit_s))

    @property
    def bytes_sent(self) -> float:
        """By the server."""
        return float(np.sum(self.sender_bit_s)) * _BIN_S / 8.0

    @property
    def idle_share(self) -> float:
        """Share of the seconds between the first and the last packet in which the server sent nothing."""
        return float(np.mean(self.sender_bit_s == 0.0))


def characteristics(kind: str) -> Characteristics:
    """Download 2 MB. Raises ScenarioError, SimulationError."""
    base = load_scenario(SCENARIOS[kind])
    record = {"record.one_way_delays": True, "record.series_interval_s": 0.25}
    run = simulate(base.with_values({**record, "traffic[0].bytes": BYTES}), captures=False)
    arrivals = run.arrivals
    last_leg = int(arrivals["leg"].max())
    sent = _Stream(arrivals, leg=0)
    received = _Stream(arrivals, leg=last_leg)
    # A packet has arrived when the mobile has had everything up to its end.
    at = np.searchsorted(received.covered, sent.ends, side="left")
    known = at < len(received.covered)
    sent_s, end = sent.sent_s[known], received.arrived_s[at[known]]
    early = sent.acknowledged_s(sent.ends[known], at_sender=True) < received.acknowledged_s(
        sent.ends[known], at_sender=False
    )
    bits, edges = np.histogram(
        sent.sent_s, bins=np.arange(sent.sent_s[0], sent.sent_s[-1] + 2 * _BIN_S, _BIN_S), weights=8.0 * sent.sizes
    )
    # What the server is offered: by the mobile end to end, by the split point on the server's leg.
    by_name = {(quantity.place, quantity.name): quantity for quantity in run.series.quantities}
    split_point, mobile = ("gateway", "server_leg_receive_window_bytes"), ("mobile", "receive_window_bytes")
    offer = by_name.get(split_point) or by_name[mobile]
    times = run.series.time_s
    while_sending = (times >= sent.sent_s[0]) & (times <= sent.sent_s[-1]) & np.isfinite(offer.values)
    return Characteristics(
        second_s=edges[:-1] + _BIN_S / 2.0,
        sender_bit_s=bits / _BIN_S,
        window_s=times[while_sending],
        window_bytes=offer.values[while_sending],
        sent_s=sent_s,
        delay_s=end - sent_s,
        violating_share=float(np.mean(early)),
    )


def delayed_uplink_round_trips_s(kind: str) -> tuple[float, float]:
    """Least and largest smoothed round trip at the mobile while it uploads 100 kB and ACKs are held for 10 s.

    Raises ScenarioError, SimulationError.
    """
    base = load_scenario("wei-upload" if kind == "Split-TCP" else "wei-regular")
    run = simulate(
        base.with_values(
            {
                "record.series_interval_s": 0.5,
                "traffic": [{"kind": "upload", "bytes": 100_000}],
                # The delay sits at the receiver: on the way of its acknowledgements, not of the data.
                "path[0].up": base.path[0]["up"],
                "path[0].down.delay_s": 10.015,
            }
        ),
        captures=False,
    )
    series = next(q for q in run.series.quantities if (q.place, q.name) == ("mobile", "smoothed_round_trip_time_s"))
    return float(np.nanmin(series.values)), float(np.nanmax(series.values))


def uplink_violating_share() -> float:
    """Share of the data packets of an upload of 100 kB through Split-TCP that violate Method 2's inequality (i = 1).

    Raises ScenarioError, SimulationError.
    """
    uploads = {"record.one_way_delays": True, "traffic": [{"kind": "upload", "bytes": 100_000}]}
    arrivals = simulate(load_scenario("wei-upload").with_values(uploads), captures=False).arrivals
    sent = _Stream(arrivals, leg=int(arrivals["leg"].max()), goes_up=True)
    received = _Stream(arrivals, leg=0, goes_up=True)
    ends = sent.ends[sent.ends <= received.covered[-1]]
    early = sent.acknowledged_s(ends, at_sender=True) < received.acknowledged_s(ends, at_sender=False)
    return float(np.mean(early))


def cached_downloads_kb() -> tuple[float, float]:
    """What the server sends when one object of 100 kB is downloaded twice through a TCP proxy with a cache, in kB.

    Raises ScenarioError, SimulationError.
    """
    twice = {"bytes": 100_000, "count": 2, "same_objects": True, "spacing_s": 200.0}
    values = {f"traffic[0].{name}": value for name, value in twice.items()}
    run = simulate(
        load_scenario("wei-tcp-proxy").with_values({"path[1].cache_bytes": 10_000_000, **values}), captures=False
    )
    first, second = (float(flow["server"]["written_bytes"]) / 1e3 for flow in run.truth["flows"])
    return first, second


class _Stream:
    """Data along one leg, down or up, and the acknowledgements for it."""

    def __init__(self, arrivals: Mapping[str, npt.NDArray[Any]], *, leg: int, goes_up: bool = False) -> None:
        on_leg = arrivals["leg"] == leg
        is_along = arrivals["is_up"].astype(bool) == goes_up
        data = on_leg & is_along & (arrivals["payload_bytes"] > 0)
        start = int(arrivals["sequence"][data][0])
        offsets = (arrivals["sequence"][data].astype(np.int64) - start) % 2**32
        self.sizes = arrivals["payload_bytes"][data].astype(np.float64)
        self.ends = offsets + arrivals["payload_bytes"][data]
        self.sent_s = arrivals["sent_ns"][data] * 1e-9
        self.arrived_s = arrivals["arrived_ns"][data] * 1e-9
        #: All bytes up to here have arrived once this packet has; lossless links keep the order.
        self.covered = np.maximum.accumulate(self.ends)
        back = on_leg & ~is_along
        self._ack_sent_s = arrivals["sent_ns"][back] * 1e-9
        self._ack_arrived_s = arrivals["arrived_ns"][back] * 1e-9

    def acknowledged_s(self, ends: npt.NDArray[Any], *, at_sender: bool) -> FloatArray:
        """When the first acknowledgement after the arrival of these bytes was sent, or arrived."""
        at = np.minimum(np.searchsorted(self.covered, ends, side="left"), len(self.covered) - 1)
        after = np.minimum(
            np.searchsorted(self._ack_sent_s, self.arrived_s[at], side="left"), len(self._ack_sent_s) - 1
        )
        times_s: FloatArray = self._ack_arrived_s[after] if at_sender else self._ack_sent_s[after]
        return times_s
