"""Stored numbers of each run."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from papers.ren_lin.links import (
    ADAPTATIONS,
    FRAMES_A_PACKET,
    LEAST_TIMER_S,
    STANDARD_LEAST_TIMER_S,
    TERMINALS,
    driven,
    profile_of,
    transfer,
)
from reference_sim.measures import measure
from reference_sim.run import Run
from reference_sim.simulation import simulate

PACKET_BYTES = 512
SCHEMES = ("tcp", "split", "adaptation")
REFERENCE_FRAMES = 100.0
#: Within this of the reference the queue has settled; ten times the law's own deviation without noise is 40 frames.
SETTLED_FRAMES = 10.0
#: After this the start is over.
STEADY_FROM_S = 10.0


def measure_profiles(run: Run) -> Mapping[str, float | None]:
    """Of each terminal: its bandwidth profile, and transfers over links that this profile drives (tables 2 and 3)."""
    return _measure_profiles(run, {"": LEAST_TIMER_S, "patient_": STANDARD_LEAST_TIMER_S}, tuple(ADAPTATIONS))


def measure_tables(run: Run) -> Mapping[str, float | None]:
    """The part of `measure_profiles` that tables 2 and 3 need."""
    return _measure_profiles(run, {"": LEAST_TIMER_S})


def measure_tables_patiently(run: Run) -> Mapping[str, float | None]:
    """`measure_tables` with RFC 6298's least timer in table 2."""
    return _measure_profiles(run, {"": STANDARD_LEAST_TIMER_S})


def _measure_profiles(
    run: Run, least_timers_s: Mapping[str, float], adaptations: tuple[str, ...] = ()
) -> Mapping[str, float | None]:
    measures: dict[str, float | None] = {}
    for terminal, name in enumerate(TERMINALS):
        profile = profile_of(run, terminal)
        mean = float(profile.mean())
        measures[f"{name}.mean_packets_s"] = mean
        measures[f"{name}.variation"] = float(profile.std()) / mean if mean else None
        if not mean:
            continue
        for which, least_timer_s in least_timers_s.items():
            found = transfer(profile, seed=run.scenario.seed, least_timer_s=least_timer_s)
            measures[f"{name}.{which}timeouts"] = found.timeouts
            measures[f"{name}.{which}drops"] = found.drops
            # Where a connection does not even open there is no throughput to be estimated.
            if found.rate_packets_s > 0.0:
                measures[f"{name}.{which}actual_packets_s"] = found.rate_packets_s
                measures[f"{name}.{which}padhye_packets_s"] = found.padhye_packets_s
                measures[f"{name}.{which}model_packets_s"] = found.model_packets_s
        for scheme in SCHEMES:
            link = simulate(driven(scheme, profile), captures=False)
            measures[f"{name}.{scheme}_kbit_s"] = _goodput_kbit_s(link, 0)
            measures[f"{name}.{scheme}_jitter_ms"] = _jitter_ms(link)
            measures[f"{name}.{scheme}_drops"] = link.truth["hops"][3]["down"]["overflowed_packets"]
        for variant in adaptations:
            link = simulate(driven("adaptation", profile).with_values(ADAPTATIONS[variant]), captures=False)
            measures[f"{name}.{variant}_kbit_s"] = _goodput_kbit_s(link, 0)
    return measures


def _jitter_ms(run: Run) -> float | None:
    """Packet delay variation down to the mobile: the 95 % quantile of the delay less the least (RFC 5481, 4.2)."""
    delay = run.truth["flows"][0]["legs"][-1]["one_way_delay_down"]
    return 1e3 * (delay["quantile_95_s"] - delay["minimum_s"]) if delay and delay["segments"] else None


def measure_terminals(run: Run) -> Mapping[str, float | None]:
    """Goodput of each terminal of the cell, and what the Node-B dropped in all."""
    goodput = {f"{name}.kbit_s": _goodput_kbit_s(run, flow) for flow, name in enumerate(TERMINALS)}
    return {**goodput, "drops": run.truth["hops"][3]["down"]["overflowed_packets"]}


def _goodput_kbit_s(run: Run, flow: int) -> float:
    return 8e-3 * float(run.truth["flows"][flow]["mobile"]["read_bytes"]) / run.simulated_s


def measure_utilisation(run: Run) -> Mapping[str, float | None]:
    """Share of the cell's capacity that was carried, its drops, and what the server made of them."""
    measures = measure(run)
    return {
        "utilisation": measures["cell.down.utilisation"],
        "drops": measures["cell.down.overflowed_packets"],
        "timeouts": measures["timeouts"],
        "fast_retransmits": run.truth["flows"][0]["server"]["tcp"]["fast_retransmits"],
    }


def measure_stability(run: Run) -> Mapping[str, float | None]:
    """How the law holds the queue: its mean and spread once the start is over, how often it is empty, how soon it
    comes near the reference."""
    time_s, frames = run.series.time_s, queue_frames(run)
    steady = frames[time_s >= STEADY_FROM_S]
    reached = np.nonzero(frames >= REFERENCE_FRAMES - SETTLED_FRAMES)[0]
    return {
        **measure_utilisation(run),
        "mean_frames": float(steady.mean()),
        "deviation_frames": float(steady.std()),
        "farthest_frames": float(np.max(np.abs(steady - REFERENCE_FRAMES))),
        "empty_share": float(np.mean(steady < 1.0)),
        "reached_s": float(time_s[reached[0]]) if len(reached) else None,
    }


def queue_frames(run: Run) -> npt.NDArray[np.float64]:
    """The cell's queue over time, in radio frames."""
    queue = next(one for one in run.series.quantities if one.place == "cell" and one.name == "down_system_bytes")
    return np.nan_to_num(queue.values) / PACKET_BYTES * FRAMES_A_PACKET
