"""Bandwidth profiles of the cell, and transfers over a link that they drive (the paper's figs 3-5 and 8)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from reference_sim.library import load_scenario
from reference_sim.models import padhye, variable_bandwidth
from reference_sim.run import Run
from reference_sim.scenario import Scenario
from reference_sim.simulation import simulate

TERMINALS = ("UE1", "UE2", "UE3", "UE4")
#: Published names of the schedulers.
SCHEDULERS = {"round-robin": "RR", "maximum-carrier-to-interference": "MCI", "fair-channel-dependent": "FCDS"}
SCHEDULER = "path[3].scheduler"
#: Packets whose transfer the profile counts; table 2 has 500 bytes, table 3 has 512.
SHORT_PACKET_BYTES = 500
FRAMES_A_PACKET = 13
FRAME_BITS = 320
#: Of table 2: 15 packets wait, one way is 20 ms (given for fig. 11 alone).
BUFFER_PACKETS = 15
ONE_WAY_S = 0.02
HEADER_BYTES = 40
#: Of retransmission, as ns-2 has it; and RFC 6298's.
LEAST_TIMER_S, STANDARD_LEAST_TIMER_S = 0.2, 1.0

#: What makes the scenarios of table 3 a cell whose queues never run empty, with every arrival kept.
SATURATED: Mapping[str, Any] = {
    "duration_s": 150.0,
    "traffic[0].duration_s": 150.0,
    "path[3].queue_packets": 2000,
    "record": {"one_way_delays": True, "taps": []},
}

_TIMER = "path[1].mobile_leg.retransmission_timeout"
#: What the paper leaves open of the proxy's leg to the mobile and of its law, one thing changed at a time.
ADAPTATIONS: Mapping[str, Mapping[str, Any]] = {
    "constant timer of 1 s": {f"{_TIMER}_maximum_s": 1.0},
    "timer of 0.2 s and more": {f"{_TIMER}_minimum_s": 0.2, f"{_TIMER}_maximum_s": 120.0},
    "second losses left to the timer": {"path[1].mobile_leg.recovery": "sack"},
    "without SACK": {"path[1].mobile_leg.recovery": "new-reno", "path[1].mobile_leg.sack": False, "mobile.sack": False},
    "256 kB in the proxy": {"path[1].buffer_bytes": 262_144},
    "a step's packets at once": {"path[1].control.spreads_packets": False},
    "extremes over 1 s": {"path[1].control.extremes_steps": 40},
}


@dataclass(frozen=True, slots=True)
class Transfer:
    """One NewReno flow over a driven link, with what the closed forms say of it."""

    rate_packets_s: float
    drops: int
    timeouts: int
    padhye_packets_s: float | None
    model_packets_s: float


def profile_of(run: Run, terminal: int) -> npt.NDArray[np.int64]:
    """Packets that the cell forwarded to a terminal in each second after the first."""
    arrivals = run.arrivals
    is_data = (arrivals["flow"] == terminal) & ~arrivals["is_up"].astype(bool) & (arrivals["payload_bytes"] > 0)
    seconds = (arrivals["arrived_ns"][is_data] // 1_000_000_000).astype(np.int64)
    return np.bincount(seconds, minlength=round(run.simulated_s))[1 : round(run.simulated_s)]


def steps(profile: Sequence[int], packet_bits: int) -> list[dict[str, float]]:
    """A profile as rates of a link, one second each."""
    return [{"duration_s": 1.0, "rate_bit_s": int(packets) * packet_bits} for packets in profile]


def over_short_link(
    profile: npt.NDArray[np.int64],
    *,
    seed: int = 1,
    series_interval_s: float = 0.1,
    keeps_arrivals: bool = False,
    least_timer_s: float = LEAST_TIMER_S,
) -> Run:
    """One end-to-end NewReno flow over the link of fig. 8 in packets of 500 bytes, as long as the profile."""
    length_s = float(len(profile))
    segment_bytes = SHORT_PACKET_BYTES - HEADER_BYTES
    rates = {"kind": "steps", "after": "repeat", "steps": steps(profile.tolist(), 8 * SHORT_PACKET_BYTES)}
    scenario = load_scenario("ren-lin-link-tcp").with_values(
        {
            "seed": seed,
            "duration_s": length_s,
            "traffic[0].duration_s": length_s,
            "server.maximum_segment_size_bytes": segment_bytes,
            "mobile.maximum_segment_size_bytes": segment_bytes,
            "server.retransmission_timeout_minimum_s": least_timer_s,
            "path[0].down.delay_s": ONE_WAY_S,
            "path[2].down.delay_s": 0.0,
            "path[3]": {
                "kind": "variable-rate",
                "name": "cell",
                "down": {"queue_packets": BUFFER_PACKETS, "rates": rates},
                "up": {"rates": {"kind": "constant", "rate_bit_s": 720_000}},
            },
            "record": {"series_interval_s": series_interval_s, "one_way_delays": keeps_arrivals, "taps": []},
        }
    )
    return simulate(scenario, captures=False)


def transfer(profile: npt.NDArray[np.int64], *, seed: int = 1, least_timer_s: float = LEAST_TIMER_S) -> Transfer:
    """Throughput over the link of fig. 8, and what Padhye's model and the paper's make of the same run.

    Padhye's gets loss indications, round-trip time and timer as they were in the run; the paper's gets the profile and
    the drops.
    """
    run = over_short_link(profile, seed=seed, least_timer_s=least_timer_s)
    flow, cell = run.truth["flows"][0], run.truth["hops"][3]["down"]
    tcp, leg = flow["server"]["tcp"], flow["legs"][0]
    drops = cell["overflowed_packets"]
    timer = next(
        one for one in run.series.quantities if one.place == "server" and one.name == "retransmission_timeout_s"
    )
    indications = tcp["timeouts"] + tcp["fast_retransmits"]
    by_padhye = None
    if indications and tcp["data_segments_sent"]:
        by_padhye = padhye.send_rate_segments_s(
            indications / tcp["data_segments_sent"],
            leg["one_way_delay_down"]["mean_s"] + leg["one_way_delay_up"]["mean_s"],
            float(np.nanmean(timer.values)),
            segments_an_acknowledgement=1.0,
        )
    rates = [float(packets) for packets in profile]
    modelled = variable_bandwidth.throughput(rates, 2.0 * ONE_WAY_S, BUFFER_PACKETS, drops=drops)
    return Transfer(
        rate_packets_s=flow["mobile"]["read_bytes"] / (SHORT_PACKET_BYTES - HEADER_BYTES) / run.simulated_s,
        drops=drops,
        timeouts=tcp["timeouts"],
        padhye_packets_s=by_padhye,
        model_packets_s=modelled.rate_packets_s,
    )


def driven(kind: str, profile: npt.NDArray[np.int64], *, series_interval_s: float | None = None) -> Scenario:
    """The link of fig. 8 in radio frames, driven by a profile, with `tcp`, `split` or `adaptation` before it."""
    length_s = float(len(profile))
    values: dict[str, Any] = {
        "duration_s": length_s,
        "traffic[0].duration_s": length_s,
        "path[3].down.rates": {
            "kind": "steps",
            "after": "repeat",
            "steps": steps(profile.tolist(), FRAMES_A_PACKET * FRAME_BITS),
        },
        "record": {"series_interval_s": series_interval_s, "taps": []},
    }
    if kind == "adaptation":
        values["path[1].control.allows_wrong_parameters"] = True
    return load_scenario(f"ren-lin-link-{kind}").with_values(values)
