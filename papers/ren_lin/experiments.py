"""The campaigns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from papers.experiment import Effort, Experiment, shipped, sweep
from papers.ren_lin.fast_links import CHOICES, PERIOD, RATES
from papers.ren_lin.links import ADAPTATIONS, SATURATED, SCHEDULER, SCHEDULERS
from papers.ren_lin.measuring import (
    measure_profiles,
    measure_stability,
    measure_terminals,
    measure_utilisation,
)
from papers.ren_lin.starts import measure_starts

PROFILES = "ren-lin-profiles"
PROFILE_LOADS = "ren-lin-profile-loads"
CELL = "ren-lin-cell"
CELL_ADAPTED = "ren-lin-cell-adapted"
CELL_BUFFER = "ren-lin-cell-buffer"
PERIODS = "ren-lin-periods"
LINK_CHOICES = "ren-lin-link-choices"
STABILITY = "ren-lin-stability"
STARTS = "ren-lin-starts"
UNSTABLE = "ren-lin-link-unstable"

#: The proxy as in table 3, and with twice the Node-B's buffer.
CHOSEN, LARGER_BUFFER = "as chosen", "400 frames"
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
#: The window-adaptation proxy in the cell; the first is what table 3 has.
ADAPTED: Mapping[str, Mapping[str, Any]] = {
    CHOSEN: {},
    **ADAPTATIONS,
    LARGER_BUFFER: {"path[3].queue_frames": 400, "path[1].control.buffer_frames": 400},
}
#: Other loads behind the bandwidth profiles.
LOADS: Mapping[str, Mapping[str, Any]] = {
    "200 frames of queue": {**SATURATED, "path[3].queue_packets": None, "path[3].queue_frames": 200},
    "uplinks of 1 Mbit/s": {**SATURATED, "path[3].uplink.rate_bit_s": 1_000_000},
}


def experiments(effort: Effort) -> Sequence[Experiment]:
    """All campaigns; `effort` decides how many seeds each point gets."""
    reduced = effort is Effort.REDUCED
    few = effort.of(2, 3, 8)  # of single links, which differ little from seed to seed
    drops = effort.of(2, 5, 20)
    schedulers = {SCHEDULER: tuple(SCHEDULERS)}
    ends = ["ren-lin-hsdpa-tcp", "ren-lin-hsdpa-split"]
    adapted = {name: values for name, values in ADAPTED.items() if not reduced or name in (CHOSEN, LARGER_BUFFER)}
    periods = shipped("fig11", repeats=few, grid={PERIOD: (0.02, 0.2, 8.0)} if reduced else None)
    cell_s = 60.0 if reduced else 300.0
    saturated = sweep(
        PROFILES,
        ["ren-lin-hsdpa-tcp"],
        grid=schedulers,
        variants={"": SATURATED},
        repeats=effort.of(2, 5, 30),
    )
    loads = sweep(PROFILE_LOADS, ["ren-lin-hsdpa-tcp"], grid=schedulers, variants=LOADS, repeats=effort.of(2, 3, 20))
    return (
        Experiment(saturated, measure_profiles),
        *([] if reduced else [Experiment(loads, measure_profiles)]),
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
                variants={LARGER_BUFFER: {"path[3].queue_frames": 400, **_for(cell_s)}},
                repeats=drops,
            ),
            measure_terminals,
        ),
        Experiment(replace(periods, name=PERIODS), measure_utilisation),
        Experiment(
            sweep(
                LINK_CHOICES,
                ["ren-lin-fast-link"],
                grid={PERIOD: (0.02, 8.0) if reduced else (0.02, 0.2, 1.0, 8.0)},
                variants=CHOICES,
                repeats=few,
            ),
            measure_utilisation,
        ),
        Experiment(sweep(STABILITY, [UNSTABLE], variants=laws(), repeats=few), measure_stability),
        Experiment(
            sweep(STARTS, ["ren-lin-hsdpa-tcp"], grid=schedulers, variants={"": SATURATED}, repeats=few),
            measure_starts,
        ),
    )


def laws(more: Mapping[str, Any] | None = None) -> dict[str, Mapping[str, Any]]:
    """Each law under each variation of the rate, with `more` values over the scenario `UNSTABLE`."""
    return {
        f"{law}; {variation}": {
            "path[1].control.step_s": step_s,
            "path[1].control.approach_per_s": approach,
            "path[1].control.spreads_packets": spreads,
            "path[3].reports.period_s": step_s,
            RATES: rates,
            **_for(60.0),
            "record": _SERIES,
            **(more or {}),
        }
        for law, (step_s, approach, spreads) in LAWS.items()
        for variation, rates in VARIATIONS.items()
    }


def _for(duration_s: float) -> dict[str, Any]:
    return {"duration_s": duration_s, "traffic[0].duration_s": duration_s}
