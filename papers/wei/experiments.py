"""Wei et al.'s measurements as campaigns over a path like their CDMA2000 network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from papers.experiment import Effort, Experiment, sweep
from papers.wei.measuring import measure_abort, measure_transfer

SIZE = "traffic[0].bytes"
SIZES = (1_000, 5_000, 10_000, 50_000, 100_000, 500_000, 1_000_000)

#: One-way delay between server and split point, in seconds: r1 of 30 ms, and of 100 ms for a client across the country.
COASTS: Mapping[str, float] = {"west": 0.015, "east": 0.05}

#: The mobile's rate v, and half the width of the band in which it is drawn anew each second.
RATE_BIT_S = 128_000
VARIATION = 0.25

#: The split point's first window downstream: the scenario has r2 v, 9 packets of 1500 bytes, which fill the mobile's
#: link at once as in the paper's first analysis; its second one has slow start there, too.
DOWNSTREAM_WINDOW = "path[1].mobile_leg.initial_window_segments"
SLOW_START_SEGMENTS = 3

_BOTH_ENDS = ("wei-regular", "wei-split")


def radio(variation: float, *, rate_bit_s: float = RATE_BIT_S, delay_s: float = 0.35) -> dict[str, Any]:
    """The radio link with a rate drawn each second within so much of v; r2 is 0.8 s with a packet of 1500 bytes."""
    low, high = (round(rate_bit_s * (1.0 + sign * variation)) for sign in (-1, 1))
    rates = {"kind": "random", "period_s": 1.0, "low_bit_s": low, "high_bit_s": high}
    if variation == 0.0:
        rates = {"kind": "constant", "rate_bit_s": round(rate_bit_s)}
    line = {"rates": rates, "delay_s": delay_s, "queue_packets": 40}
    return {"path[2]": {"kind": "variable-rate", "name": "radio", "down": line}}


def coast(name: str) -> dict[str, Any]:
    """Where the client is."""
    return {"path[0].down.delay_s": COASTS[name]}


def experiments(effort: Effort) -> Sequence[Experiment]:
    """Table II, the choices behind it one at a time, recompression, aborts, delayed acknowledgements."""
    repeats = effort.of(4, 20, 100)
    few = effort.of(3, 8, 40)
    table = {name: {**radio(VARIATION), **coast(name)} for name in COASTS}
    return (
        Experiment(
            sweep("wei-table2", _BOTH_ENDS, grid={SIZE: SIZES}, variants=table, repeats=repeats), measure_transfer
        ),
        Experiment(
            sweep(
                "wei-slow-start",
                ("wei-split",),
                grid={SIZE: SIZES},
                variants={name: {**values, DOWNSTREAM_WINDOW: SLOW_START_SEGMENTS} for name, values in table.items()},
                repeats=repeats,
            ),
            measure_transfer,
        ),
        Experiment(
            sweep("wei-choices", _BOTH_ENDS, grid={SIZE: SIZES}, variants=_choices(), repeats=few), measure_transfer
        ),
        Experiment(
            sweep(
                "wei-opening",
                ("wei-split",),
                grid={SIZE: SIZES[:2]},
                variants={"as chosen": {**radio(VARIATION), **coast("west"), "path[1].opening": "far-end-first"}},
                repeats=few,
            ),
            measure_transfer,
        ),
        Experiment(
            sweep(
                "wei-object",
                ("wei-recompression", "wei-split", "wei-tcp-proxy"),
                variants={"": {**radio(VARIATION), SIZE: 1_500_000, "traffic[0].application": "http"}},
                repeats=effort.of(5, 20, 40),
            ),
            measure_transfer,
        ),
        Experiment(
            sweep("wei-aborts", ("wei-abort",), variants=_aborts(), repeats=effort.of(2, 4, 20)),
            measure_abort,
        ),
    )


def _choices() -> dict[str, Any]:
    """One change at a time, for the client on the west coast; values for the proxy are passed over without one."""
    changes: dict[str, dict[str, Any]] = {
        "as chosen": {},
        "constant rate": radio(0.0),
        "rate within 50 %": radio(0.5),
        "server starts with 1": {"server.initial_window_segments": 1},
        "server starts with 10": {"server.initial_window_segments": 10},
        "mobile delays acknowledgements": {
            "mobile.quick_acknowledgements": 0,
            "mobile.delayed_acknowledgement_timeout_s": 0.2,
        },
        "queue of 10": {"path[2].down.queue_packets": 10},
    }
    return {name: {**radio(VARIATION), **coast("west"), **values} for name, values in changes.items()}


def _aborts() -> dict[str, Any]:
    base = {**radio(VARIATION), "record": {"one_way_delays": True, "taps": []}}
    return {
        "at once": {**base, "path[1].aborts": "at-once"},
        "after 40 s": {**base, "path[1].aborts": "delayed"},
        "never": {**base, "path[1].aborts": "never"},
    }
