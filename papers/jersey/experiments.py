"""The campaigns: goodput in the cell, and sweeps of parameters that the paper does not give."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from papers.experiment import Effort, Experiment, shipped, sweep
from papers.jersey import estimates
from reference_sim.run import Run
from reference_sim.sweep import Campaign

GOODPUT = "jersey-goodput"
OPEN_PARAMETERS = "jersey-silences"
WARNING = "jersey-warning"
LINK_ERRORS = "jersey-link-errors"
FAIRNESS = "jersey-fairness"
ESTIMATES = "jersey-estimates"
THRESHOLD = "path[0].down.marking.threshold_packets"
START = "traffic[1].start_s"
LOSS_BEHIND = "path[1].down.loss.probability"
#: When the second flow comes; a clean link gives the same result for every seed, so these stand for chance.
STARTS_S = (0.2, 0.5, 1.1, 2.3, 4.7)

SPEECH = "path[1].speech_terminals, traffic[1].count"
LOSS = "path[0].down.loss.probability"
QUEUE_PACKETS = 50
#: Marks and averaging weights of the congestion warning, in packets and shares.
THRESHOLDS = (5, 25, 45)
WEIGHTS = (0.002, 0.1, 1.0)
LOSSES = (0.0, 0.001, 0.003, 0.01)
#: Of the timer that discards packets: values of TS 25.331, the last its longest.
DISCARD_AGES_S = (0.5, 1.0, 2.0, 7.5)
#: Variants of parameters that the paper does not give, or gives twice; the first is what the other campaigns have.
OPEN_VALUES: Mapping[str, Mapping[str, Any]] = {
    "as chosen": {},
    "shadowing 8.9 dB": {"path[1].radio": {"kind": "cellular", "shadowing_deviation_db": 8.9}},
    "dedicated speech": {"path[1].speech_channel": "dedicated"},
    "queue 25": {"path[1].queue_packets": 25, "path[1].marking": {"threshold_packets": 12, "weight": 0.1}},
    "queue 100": {"path[1].queue_packets": 100, "path[1].marking": {"threshold_packets": 50, "weight": 0.1}},
    "queue 200": {"path[1].queue_packets": 200, "path[1].marking": {"threshold_packets": 100, "weight": 0.1}},
    **{f"discard after {age_s:g} s": {"path[1].discard_s": age_s} for age_s in DISCARD_AGES_S},
}

#: What changes a scenario of Jersey's to another sender; marks then go unheeded, so they are left out.
SENDERS: Mapping[str, Mapping[str, Any]] = {
    "tahoe": {"server.control": "reno", "server.recovery": "tahoe", "path[1].marking": None},
    "reno": {"server.control": "reno", "server.recovery": "reno", "path[1].marking": None},
    "new-reno": {"server.control": "reno", "server.recovery": "new-reno", "path[1].marking": None},
    "sack": {
        "server.control": "reno",
        "server.recovery": "sack",
        "server.sack": True,
        "mobile.sack": True,
        "path[1].marking": None,
    },
    "jersey": {},
}

_TCP = ("timeouts", "fast_retransmits", "corruption_retransmits", "retransmitted_segments", "data_segments_sent")


def experiments(effort: Effort) -> Sequence[Experiment]:
    """All campaigns; `effort` decides how many drops of the terminals each point gets."""
    drops, few = effort.of(3, 10, 60), effort.of(2, 5, 30)
    reduced = effort is Effort.REDUCED
    goodput = shipped("jersey", repeats=drops, grid={SPEECH: (9,)} if reduced else None)
    compared = ("new-reno", "sack", "jersey")
    open_parameters = (
        {}
        if reduced
        else {
            f"{sender}, {name}": {**SENDERS[sender], **_without_marking(sender, values)}
            for name, values in OPEN_VALUES.items()
            for sender in compared
        }
    )
    warning = {
        f"threshold {threshold}, weight {weight:g}": {
            "path[1].marking": {"threshold_packets": threshold, "weight": weight}
        }
        for threshold in (THRESHOLDS[1:2] if reduced else THRESHOLDS)
        for weight in WEIGHTS
    }
    errors = {
        sender: {**SENDERS[sender], "path[0].down.loss": {"kind": "independent", "probability": 0.0}}
        for sender in compared
    }
    scenario = ["jersey-hsdpa"]
    return (
        Experiment(replace(goodput, name=GOODPUT), measure_data_terminal),
        *(
            [Experiment(sweep(OPEN_PARAMETERS, scenario, variants=open_parameters, repeats=few), measure_data_terminal)]
            if open_parameters
            else []
        ),
        Experiment(sweep(WARNING, scenario, variants=warning, repeats=few), measure_data_terminal),
        Experiment(
            sweep(
                LINK_ERRORS, scenario, variants=errors, grid={LOSS: LOSSES[::3] if reduced else LOSSES}, repeats=drops
            ),
            measure_data_terminal,
        ),
        Experiment(_fairness(effort), measure_shares),
        Experiment(
            sweep(
                ESTIMATES,
                scenario,
                variants={
                    sender: {**SENDERS[sender], "record": {"series_interval_s": estimates.INTERVAL_S, "taps": []}}
                    for sender in estimates.SENDERS
                },
                repeats=effort.of(3, 10, 40),
            ),
            estimates.measure_estimates,
        ),
    )


def _fairness(effort: Effort) -> Campaign:
    return sweep(
        FAIRNESS,
        ["jersey-fairness"],
        variants=two_flows(),
        grid={
            THRESHOLD: (41,) if effort is Effort.REDUCED else (20, 41, 70),
            LOSS_BEHIND: (0.0, 0.01) if effort is Effort.REDUCED else (0.0, 0.001, 0.01),
            START: STARTS_S[:3] if effort is Effort.REDUCED else STARTS_S,
        },
        repeats=effort.of(1, 2, 10),
    )


def two_flows() -> dict[str, dict[str, Any]]:
    """Senders of two flows on one bottleneck."""
    return {
        "jersey and new-reno": {},
        "two jersey": {"traffic[1].server_tcp": _JERSEY},
        "two new-reno": {"traffic[0].server_tcp": None},
    }


_JERSEY = {"control": "jersey", "recovery": "new-reno", "ecn": "every-packet", "timestamps": False, "sack": False}


def _without_marking(sender: str, values: Mapping[str, Any]) -> Mapping[str, Any]:
    return values if sender == "jersey" else {name: value for name, value in values.items() if "marking" not in name}


def measure_data_terminal(run: Run) -> Mapping[str, float | None]:
    """Goodput of the one data terminal and what its sender made of losses."""
    flow = run.truth["flows"][0]
    tcp = flow["server"]["tcp"]
    down = flow["legs"][0]["one_way_delay_down"]
    return {
        "goodput_kbit_s": 8e-3 * flow["mobile"]["read_bytes"] / run.simulated_s,
        "mean_delay_s": down["mean_s"] if down else None,
        **{name: tcp[name] for name in _TCP},
    }


def measure_shares(run: Run) -> Mapping[str, float | None]:
    """Shares of two flows over the time that both were there, and Jain's index."""
    flows = run.truth["flows"]
    goodput = [8e-6 * flow["mobile"]["read_bytes"] / (run.simulated_s - flow["start_s"]) for flow in flows]
    return {
        "first_share": goodput[0] / sum(goodput),
        "second_mbit_s": goodput[1],
        "fairness_index": sum(goodput) ** 2 / (len(goodput) * sum(rate * rate for rate in goodput)),
        "total_mbit_s": sum(goodput),
        "timeouts": sum(flow["server"]["tcp"]["timeouts"] for flow in flows),
    }
