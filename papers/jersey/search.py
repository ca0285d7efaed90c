"""What the paper on TCP-Jersey leaves open of cell, queue and warning, as an inverse problem."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from papers.experiment import Experiment, sweep
from papers.jersey import estimates
from papers.jersey.experiments import (
    LOSS,
    LOSS_BEHIND,
    SENDERS,
    SPEECH,
    START,
    STARTS_S,
    THRESHOLD,
    measure_data_terminal,
    measure_shares,
    two_flows,
)
from papers.jersey.quantities import MIDDLE_THRESHOLD, quantities_of
from papers.search.space import OpenParameter, Results, Search, Settings
from papers.statements.grouping import Row, rows_of

QUEUE, WARNING, WEIGHT = "Node-B queue, packets", "threshold of the warning over the queue", "weight of its average"
DISCARD, SHADOWING, SPEECH_CHANNEL = "SDU discard after, s", "shadowing, dB", "channel of speech"
NEVER = "never"
#: The lightest load that the paper has: radio of many terminals is what a run takes its time for.
LOAD = 9
#: The other loads, for the sensitivity of verdicts.
HEAVY_LOADS = (19, 29)
#: A third of the scenario's time: a drop of the terminals matters far more than how long it is watched.
DURATION_S = 40.0
#: Share of packets that link errors take where nothing hides them, and the senders that are then compared.
LINK_ERRORS = 0.01
COMPARED = ("new-reno", "sack", "jersey")
FAIRNESS_QUEUE = 83

PARAMETERS = (
    OpenParameter(
        QUEUE, 50, (10, 25, 100), "nothing; 50 are a bandwidth-delay product", range=(8, 200), is_logarithmic=True
    ),
    OpenParameter(WARNING, 0.5, (0.25, 0.75), "'a threshold'", range=(0.1, 0.9)),
    OpenParameter(
        WEIGHT,
        0.1,
        (0.01, 1.0),
        "'the average queue length'; 0.002 is usual for RED, 1 no average",
        range=(0.002, 1.0),
        is_logarithmic=True,
    ),
    OpenParameter(DISCARD, NEVER, (7.5, 2.0, 0.5), "a timer without its length; TS 25.331 allows 0.1 to 7.5 s"),
    OpenParameter(SHADOWING, 8.0, (8.9,), "8.0 dB in table 2, 8.9 dB in the text"),
    OpenParameter(SPEECH_CHANNEL, "shared", ("dedicated",), "UM over 'contending traffic'"),
)


def experiments(settings: Settings, repeats: int, seed: int) -> Sequence[Experiment]:
    """Goodput of the five senders, link errors that nothing hides, and two flows on one bottleneck."""
    cell = _cell(settings)
    senders = {name: {**cell, **values} for name, values in SENDERS.items()}
    lossy = {"path[0].down.loss": {"kind": "independent", "probability": LINK_ERRORS}}
    compared = {name: {**senders[name], **lossy} for name in COMPARED}
    scenario = ("jersey-hsdpa",)
    return (
        Experiment(
            sweep(
                "jersey-search-goodput", scenario, grid={SPEECH: (LOAD,)}, variants=senders, repeats=repeats, seed=seed
            ),
            measure_data_terminal,
        ),
        Experiment(
            sweep(
                "jersey-search-link-errors",
                scenario,
                grid={LOSS: (LINK_ERRORS,)},
                variants=compared,
                repeats=repeats,
                seed=seed,
            ),
            measure_data_terminal,
        ),
        Experiment(
            sweep(
                "jersey-search-fairness",
                ("jersey-fairness",),
                variants=two_flows(),
                grid={
                    THRESHOLD: (max(1, round(float(settings[WARNING]) * FAIRNESS_QUEUE)),),
                    "path[0].down.marking.weight": (float(settings[WEIGHT]),),
                    LOSS_BEHIND: (0.0, 0.001, 0.01),
                    START: STARTS_S,
                },
                repeats=max(1, repeats // 5),
                seed=seed,
            ),
            measure_shares,
        ),
    )


def further_experiments(settings: Settings, repeats: int, seed: int) -> Sequence[Experiment]:
    """Goodput of the five senders beside more speech, and what senders estimate."""
    cell = _cell(settings)
    senders = {name: {**cell, **values} for name, values in SENDERS.items()}
    record = {"series_interval_s": estimates.INTERVAL_S, "taps": []}
    estimating = {name: {**senders[name], "record": record} for name in estimates.SENDERS}
    scenario = ("jersey-hsdpa",)
    return (
        Experiment(
            sweep(_HEAVY, scenario, grid={SPEECH: HEAVY_LOADS}, variants=senders, repeats=repeats, seed=seed),
            measure_data_terminal,
        ),
        Experiment(
            sweep(_ESTIMATES, scenario, grid={SPEECH: (LOAD,)}, variants=estimating, repeats=repeats, seed=seed),
            estimates.measure_estimates,
        ),
    )


_HEAVY, _ESTIMATES = "jersey-search-heavy", "jersey-search-estimates"


def _cell(settings: Settings) -> dict[str, Any]:
    queue = int(settings[QUEUE])
    values: dict[str, Any] = {
        "duration_s": DURATION_S,
        "traffic[0].duration_s": DURATION_S,
        "path[1].queue_packets": queue,
        "path[1].marking": {
            "threshold_packets": max(1, round(float(settings[WARNING]) * queue)),
            "weight": float(settings[WEIGHT]),
        },
        "path[1].radio": {"kind": "cellular", "shadowing_deviation_db": float(settings[SHADOWING])},
        "path[1].speech_channel": settings[SPEECH_CHANNEL],
    }
    if settings[DISCARD] != NEVER:
        values["path[1].discard_s"] = float(settings[DISCARD])
    return values


def quantities(_settings: Settings, results: Results) -> Mapping[str, Any]:
    """What the statements compare; shares are those at the threshold of these settings."""
    goodput, errors, fairness = (
        rows_of(results[f"jersey-search-{name}"].runs) for name in ("goodput", "link-errors", "fairness")
    )
    hidden: list[Row] = [{**row, LOSS: 0.0} for row in goodput if row["variant"] in COMPARED]
    middle: list[Row] = [{**row, THRESHOLD: MIDDLE_THRESHOLD} for row in fairness]
    if _HEAVY not in results:
        return quantities_of(goodput, [*hidden, *errors], middle, [])
    every = [*goodput, *rows_of(results[_HEAVY].runs)]
    found = quantities_of(every, [*hidden, *errors], middle, [])
    return {**found, **estimates.estimate_quantities(rows_of(results[_ESTIMATES].runs))}


SEARCH = Search(
    name="jersey",
    title="Cell, queue and warning",
    statements=Path(__file__).with_name("statements.toml"),
    parameters=PARAMETERS,
    leads={"queue of 10, threshold 5": {QUEUE: 10}},
    experiments=experiments,
    quantities=quantities,
    repeats=(3, 5, 12),
    sensitivity_repeats=5,
    further_experiments=further_experiments,
)
