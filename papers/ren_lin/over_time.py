"""Figs 6, 10 and 13 to 16: windows, queues and drops over time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from papers.ren_lin.experiments import LAWS, VARIATIONS
from papers.ren_lin.links import SATURATED, SCHEDULER, driven, over_short_link, profile_of
from papers.ren_lin.measuring import REFERENCE_FRAMES, queue_frames
from pepscope.results.charts import Chart, Line
from reference_sim.library import load_scenario
from reference_sim.run import Run
from reference_sim.simulation import simulate

#: UE3 under FCDS, as the paper has it.
TERMINAL, SCHEDULER_NAME = 2, "fair-channel-dependent"
#: A sample in which not one more packet of 13 frames fits beside the one in service.
FULL_FRAMES = 187.0
SEGMENT_BYTES, PACKET_BYTES = 460, 500
#: Of the scenarios with a proxy.
_PROXY_SEGMENT_BYTES = 472
_SECONDS = "time (s)"
#: Of a series of 150 s at 0.1 s; more points than that are not seen.
_INTERVAL_S = 0.1
#: Of windows and queues; all 150 s would be a blot.
SHOWN_S = (20.0, 60.0)


@dataclass(frozen=True, slots=True)
class OverTime:
    """The runs of one seed that figs 6 and 10 need."""

    profile: npt.NDArray[np.int64]
    end_to_end: Run
    split: Run
    adapted: Run


def run_once(seed: int = 1) -> OverTime:
    """UE3's profile under FCDS, and one flow each over a link that follows it."""
    cell = load_scenario("ren-lin-hsdpa-tcp").with_values({**SATURATED, SCHEDULER: SCHEDULER_NAME, "seed": seed})
    profile = profile_of(simulate(cell, captures=False), TERMINAL)
    return OverTime(
        profile,
        over_short_link(profile, series_interval_s=_INTERVAL_S, keeps_arrivals=True),
        *(
            simulate(driven(kind, profile, series_interval_s=_INTERVAL_S), captures=False)
            for kind in ("split", "adaptation")
        ),
    )


def quantities(seen: OverTime) -> dict[str, Any]:
    """What the statements on figs 6 and 10 compare."""
    flow = seen.end_to_end.truth["flows"][0]
    timeouts, twice = flow["server"]["tcp"]["timeouts"], flow["mobile"]["tcp"]["duplicate_segments"]
    return {
        "newreno_timeouts": timeouts,
        "newreno_drops": seen.end_to_end.truth["hops"][3]["down"]["overflowed_packets"],
        "newreno_run_s": seen.end_to_end.simulated_s,
        "newreno_duplicates": twice,
        "newreno_times_out_spuriously": bool(timeouts and twice),
        **_queues(seen),
    }


def _queues(seen: OverTime) -> dict[str, Any]:
    """How the adapted window and I-TCP hold the queue at the Node-B."""
    words, empty, drops, distance = [], {}, {}, {}
    for name, run in (("adapted window", seen.adapted), ("I-TCP", seen.split)):
        frames = queue_frames(run)[100:]
        empty[name] = float(np.mean(frames < 1.0))
        drops[name] = run.truth["hops"][3]["down"]["overflowed_packets"]
        distance[name] = float(np.sqrt(np.mean((frames - REFERENCE_FRAMES) ** 2)))
        words.append(
            f"{name}: {distance[name]:.0f} frames (rms) from the reference, empty "
            f"{100 * empty[name]:.1f} % and "
            f"full {100 * np.mean(frames >= FULL_FRAMES):.1f} % of the time, {drops[name]} drops"
        )
    nearer, rarer_empty, fewer_drops = (one["adapted window"] < one["I-TCP"] for one in (distance, empty, drops))
    return {
        "queues": "; ".join(words),
        "adapted_queue_is_nearer": nearer,
        "adapted_queue_is_better": nearer and rarer_empty and fewer_drops,
    }


def charts(seen: OverTime) -> list[Chart]:
    """Figs 6 and 10."""
    return [*_bandwidth_charts(seen.profile, seen.end_to_end), *_proxy_charts(seen.adapted, seen.split)]


def _bandwidth_charts(profile: npt.NDArray[np.int64], run: Run) -> list[Chart]:
    """Fig. 6: a profile of bandwidth (packets forwarded a second), and a connection without a proxy over it."""
    seconds = np.arange(len(profile)).astype(float)
    time_s = run.series.time_s
    drop_times = lost_at(run)
    counts = [float(count) for count in range(1, len(drop_times) + 1)]
    return [
        Chart(
            "figure-6-bandwidth",
            "Bandwidth of UE3 under FCDS (figs 6a and 10a)",
            _SECONDS,
            "packets forwarded a second",
            (_dense("UE3 FCDS", seconds, profile.astype(float)),),
            "Counted in the cell with queues that are never empty; each value then drives a link for one second.",
        ),
        Chart(
            "figure-6-window",
            "NewReno over this bandwidth (fig. 6b, 6d)",
            _SECONDS,
            "packets",
            (
                _part("congestion window", time_s, _quantity(run, "server", "congestion_window_bytes") / SEGMENT_BYTES),
                _part("queue", time_s, _quantity(run, "cell", "down_system_packets")),
            ),
            "A buffer of 15 packets of 500 bytes; 20 ms one way.",
        ),
        Chart(
            "figure-6-drops",
            "Drops of the same flow (fig. 6c)",
            _SECONDS,
            "packets",
            (Line("drops since the start", drop_times, counts, is_dense=True),),
        ),
    ]


def _proxy_charts(adapted: Run, split: Run) -> list[Chart]:
    """Fig. 10: windows and queues with the proxy that adapts its window, and with one that only splits."""
    return [
        Chart(
            "figure-10-windows",
            "What the proxy may send (fig. 10b, 10c)",
            _SECONDS,
            "packets",
            (
                _part("adapted: quota of a step", adapted.series.time_s, _quantity(adapted, "proxy", "quota_packets")),
                _part(
                    "I-TCP: in flight",
                    split.series.time_s,
                    _quantity(split, "proxy", "mobile_leg_unacknowledged_bytes") / _PROXY_SEGMENT_BYTES,
                ),
            ),
            "The law's window counts packets of one step of 25 ms, TCP's those of a round trip.",
        ),
        Chart(
            "figure-10-queues",
            "Queue at the Node-B (fig. 10d, 10e)",
            _SECONDS,
            "radio frames",
            (
                _part("adapted window", adapted.series.time_s, queue_frames(adapted)),
                _part("I-TCP", split.series.time_s, queue_frames(split)),
            ),
            "The reference is 100 frames, the buffer 200.",
        ),
    ]


def law_charts() -> list[Chart]:
    """Figs 13 to 16: the queue under four settings of the law."""
    shown = {
        "figure-13-14": (
            ("Ts 0.2, delta 4", "Ts 0.1, delta 4"),
            "90-110 %",
            30.0,
            "Ts = 0.2 s and 0.1 s (figs 13 and 14)",
        ),
        "figure-15-16": (
            ("Ts 0.025, delta 20", "Ts 0.025, delta 35", "Ts 0.025, delta 1"),
            "constant",
            3.0,
            "Settling with delta = 20 and 35 (figs 15 and 16)",
        ),
    }
    drawn = []
    for name, (laws, variation, length_s, title) in shown.items():
        lines = []
        for law in laws:
            run = simulate(_under_law(law, variation, length_s), captures=False)
            lines.append(_dense(law, run.series.time_s, queue_frames(run)))
        caption = f"1160 frames/s on average, {variation}; the reference is 100 frames, the buffer 200."
        drawn.append(Chart(name, title, _SECONDS, "queue (radio frames)", tuple(lines), caption))
    return drawn


def _under_law(law: str, variation: str, length_s: float) -> Any:
    step_s, approach, spreads = LAWS[law]
    return load_scenario("ren-lin-link-unstable").with_values(
        {
            "duration_s": length_s,
            "traffic[0].duration_s": length_s,
            "path[1].control.step_s": step_s,
            "path[1].control.approach_per_s": approach,
            "path[1].control.spreads_packets": spreads,
            "path[3].reports.period_s": step_s,
            "path[3].down.rates": VARIATIONS[variation],
            "record": {"series_interval_s": 0.025, "taps": []},
        }
    )


def lost_at(run: Run) -> list[float]:
    """When segments first arrived after later ones: each of them had been dropped before."""
    arrivals = run.arrivals
    is_data = ~arrivals["is_up"].astype(bool) & (arrivals["payload_bytes"] > 0)
    sequence, time_ns = arrivals["sequence"][is_data].astype(np.int64), arrivals["arrived_ns"][is_data]
    highest = np.maximum.accumulate(sequence)
    late = np.nonzero(sequence < highest)[0]
    _, first = np.unique(sequence, return_index=True)
    return [float(time_ns[index]) * 1e-9 for index in np.intersect1d(late, first)]


def _quantity(run: Run, place: str, name: str) -> npt.NDArray[np.float64]:
    return next(one.values for one in run.series.quantities if one.place == place and one.name == name)


def _part(name: str, x: npt.NDArray[np.float64], y: npt.NDArray[np.float64]) -> Line:
    """The seconds that a figure of windows and queues shows."""
    is_shown = (x >= SHOWN_S[0]) & (x <= SHOWN_S[1])
    return _dense(name, x[is_shown], y[is_shown])


def _dense(name: str, x: npt.NDArray[np.float64], y: npt.NDArray[np.float64]) -> Line:
    is_there = np.isfinite(y)
    return Line(name, x[is_there].tolist(), y[is_there].tolist(), is_dense=True)
