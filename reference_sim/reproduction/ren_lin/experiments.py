"""The campaigns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from reference_sim.reproduction.experiment import Effort, Experiment, shipped, sweep
from reference_sim.reproduction.ren_lin.links import CONSTANT_TIMER, SATURATED, SCHEDULER, SCHEDULERS
from reference_sim.reproduction.ren_lin.measuring import (
    measure_profiles,
    measure_stability,
    measure_terminals,
    measure_utilisation,
)

PROFILES = "ren-lin-profiles"
CELL = "ren-lin-cell"
CELL_ADAPTED = "ren-lin-cell-adapted"
CELL_BUFFER = "ren-lin-cell-buffer"
PERIODS = "ren-lin-periods"
LINK_CHOICES = "ren-lin-link-choices"
STABILITY = "ren-lin-stability"

PERIOD = "path[3].down.rates.period_s"
RATES = "path[3].down.rates"
_SERIES = {"series_interval_s": 0.025, "taps": []}
#: Ts and delta of figs 13 to 16 and two smaller deltas; quotas that arrive over the step or at its start.
LAWS: Mapping[str, tuple[float, float, bool]] = {
    "Ts 0.2, delta 4": (0.2, 4.0, True),
    "Ts 0.2, delta 4, at once": (0.2, 4.0, False),
    "Ts 0.1, delta 4": (0.1, 4.0, True),
    "Ts 0.1, delta 4, at once": (0.1, 4.0, False),
    "Ts 0.025, delta 1": (0.025, 1.0, True),
    "Ts 0.025, delta 4": (0.025, 4.0, True),
    "Ts 0.025, delta 20": (0.025, 20.0, True),
    "Ts 0.025, delta 35": (0.025, 35.0, True),
}
#: 1160 frames of 40 bytes a second on average.
VARIATIONS: Mapping[str, Any] = {
    "constant": {"kind": "constant", "rate_bit_s": 371_200},
    "90-110 %": {"kind": "random", "period_s": 1.0, "low_bit_s": 334_080, "high_bit_s": 408_320},
    "50-150 %": {"kind": "random", "period_s": 1.0, "low_bit_s": 185_600, "high_bit_s": 556_800},
}
_LEG = {"maximum_segment_size_bytes": 472, "timestamps": False}
SPLIT = {
    "kind": "split-proxy",
    "name": "proxy",
    "buffer_bytes": 65_536,
    "server_leg": {**_LEG, "sack": False, "receive_buffer_bytes": 65_536},
    "mobile_leg": {**_LEG, "sack": False, "control": "reno", "recovery": "new-reno", "initial_window_segments": 2},
}
#: The window-adaptation proxy in the cell; the first is what table 3 has.
ADAPTED: Mapping[str, Mapping[str, Any]] = {
    "constant timer": CONSTANT_TIMER,
    "timer that backs off": {},
    "timestamps": {"path[1].mobile_leg.timestamps": True, "mobile.timestamps": True},
    "400 frames": {**CONSTANT_TIMER, "path[3].queue_frames": 400, "path[1].control.buffer_frames": 400},
}
#: One change at a time to I-TCP over rates of 25-175 %.
CHOICES: Mapping[str, Mapping[str, Any]] = {
    "as chosen": {},
    "frozen service": {"path[3].down.service": "frozen"},
    "7 packets of buffer": {"path[3].down.queue_frames": 100},
    "30 packets of buffer": {"path[3].down.queue_frames": 400},
    "50 ms more": {"path[2].down.delay_s": 0.075},
    "75 ms more": {"path[2].down.delay_s": 0.1},
    "175 ms more": {"path[2].down.delay_s": 0.2},
    "rates of 0-200 %": {"path[3].down.rates.low_bit_s": 0, "path[3].down.rates.high_bit_s": 742_400},
    "timers of 1 s and more": {"path[1].mobile_leg.retransmission_timeout_minimum_s": 1.0},
}


def experiments(effort: Effort) -> Sequence[Experiment]:
    """All campaigns; `effort` decides how many seeds each point gets."""
    reduced = effort is Effort.REDUCED
    few = effort.of(2, 3, 20)
    drops = effort.of(2, 5, 20)
    schedulers = {SCHEDULER: tuple(SCHEDULERS)}
    ends = ["ren-lin-hsdpa-tcp", "ren-lin-hsdpa-split"]
    adapted = {
        name: values for name, values in ADAPTED.items() if not reduced or name in ("constant timer", "400 frames")
    }
    periods = shipped("fig11", repeats=few, grid={PERIOD: (0.02, 0.2, 8.0)} if reduced else None)
    stability = {
        f"{law}; {variation}": {
            "path[1].control.step_s": step_s,
            "path[1].control.approach_per_s": approach,
            "path[1].control.spreads_packets": spreads,
            "path[3].reports.period_s": step_s,
            RATES: rates,
            **_for(60.0),
            "record": _SERIES,
        }
        for law, (step_s, approach, spreads) in LAWS.items()
        for variation, rates in VARIATIONS.items()
    }
    choices = {
        name: {
            "path[1]": SPLIT,
            "path[3].down.rates.low_bit_s": 92_800,
            "path[3].down.rates.high_bit_s": 649_600,
            **values,
        }
        for name, values in CHOICES.items()
    }
    cell_s = 60.0 if reduced else 300.0
    saturated = sweep(
        PROFILES,
        ["ren-lin-hsdpa-tcp"],
        grid=schedulers,
        variants={"": SATURATED},
        repeats=effort.of(2, 5, 30),
    )
    return (
        Experiment(saturated, measure_profiles),
        Experiment(sweep(CELL, ends, grid=schedulers, variants={"": _for(cell_s)}, repeats=drops), measure_terminals),
        Experiment(
            sweep(
                CELL_ADAPTED,
                ["ren-lin-hsdpa-adaptation"],
                grid=schedulers,
                variants={name: {**values, **_for(cell_s)} for name, values in adapted.items()},
                repeats=drops,
            ),
            measure_terminals,
        ),
        Experiment(
            sweep(
                CELL_BUFFER,
                ends,
                grid=schedulers,
                variants={"400 frames": {"path[3].queue_frames": 400, **_for(cell_s)}},
                repeats=drops,
            ),
            measure_terminals,
        ),
        Experiment(replace(periods, name=PERIODS), measure_utilisation),
        Experiment(
            sweep(
                LINK_CHOICES,
                ["ren-lin-link-tcp"],
                grid={PERIOD: (0.02, 8.0) if reduced else (0.02, 0.2, 1.0, 8.0)},
                variants=choices,
                repeats=few,
            ),
            measure_utilisation,
        ),
        Experiment(sweep(STABILITY, ["ren-lin-link-unstable"], variants=stability, repeats=few), measure_stability),
    )


def _for(duration_s: float) -> dict[str, Any]:
    return {"duration_s": duration_s, "traffic[0].duration_s": duration_s}
