"""What Hu's paper and slides leave open of the comparison with and without a proxy, as an inverse problem."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from papers.experiment import Experiment, sweep
from papers.hu.measuring import measure_files
from papers.hu.one_connection import one_connection_experiments, one_connection_quantities
from papers.hu.quantities import block_errors, by_rate, by_size, phases, windows
from papers.hu.reading import Files
from papers.hu.settings import (
    BASE,
    BLOCK_ERRORS,
    FIRST_TABLE,
    LOSS,
    RATE,
    RATES_BIT_S,
    SECOND_TABLE,
    SIZE,
    WINDOWS,
    ftp,
    split,
)
from papers.search.space import OpenParameter, Results, Search, Settings
from reference_sim.intervals import mean_interval

TABLE, ROUND_TRIP, LOSS_NAME = "parameter set", "round trip of the radio link, s", "Internet loss"
FILE, CONNECTIONS, ACKNOWLEDGED = "file of the headline, kB", "connections", "segments an acknowledgement"
ONE_RESTARTS, ONE_KEPT, EACH = "one, window restarts", "one, window kept", "one a file"
#: Two transmission time intervals are part of the round trip.
_INTERVALS_S = 0.02
_PATIENCE = {"duration_s": 20_000.0}
_KB = 1000

PARAMETERS = (
    OpenParameter(
        TABLE,
        "second",
        ("first",),
        "section 5 says table 1 (536 bytes, one segment at first, 100 ms), the slides on the proxy the other one",
    ),
    OpenParameter(
        ROUND_TRIP,
        0.08,
        (0.15, 0.25, 0.42),
        "80 ms of RLC in the second table, nothing in the first, 'a delay of 500 ms' in the slides' calculation",
        range=(0.06, 0.5),
        is_logarithmic=True,
    ),
    OpenParameter(
        LOSS_NAME,
        0.01,
        (0.001, 0.003, 0.02),
        "1 % in the second table, nothing in the first; the slides' curves have several",
        range=(0.0005, 0.02),
        is_logarithmic=True,
    ),
    OpenParameter(FILE, 50, (100, 200), "50, 100 or 200 kB; the headline names none"),
    OpenParameter(
        CONNECTIONS, ONE_RESTARTS, (ONE_KEPT, EACH), "FTP with think times; whether a file has its own is not said"
    ),
    OpenParameter(ACKNOWLEDGED, 1, (2,), "nothing; windows that double each round trip need 1, RFC 1122 allows 2"),
)


def experiments(settings: Settings, repeats: int, seed: int) -> Sequence[Experiment]:
    """The comparison under these settings: by rate, by file at 256 kbit/s, without Internet loss, by block errors."""
    headline = int(settings[FILE])
    sizes = sorted({5, 50, 100, 200, headline})
    every = {"regular": 0, **{f"split {window}": window for window in WINDOWS}}
    few = {"regular": 0, "split 3": 3}

    def campaign(name: str, proxies: dict[str, int], size: int, grid: dict[str, Sequence[Any]]) -> Experiment:
        variants = {label: _values(settings, size * _KB, window) for label, window in proxies.items()}
        return Experiment(
            sweep(f"hu-search-{name}", [BASE], grid=grid, variants=variants, repeats=repeats, seed=seed), measure_files
        )

    return (
        campaign("rate", every, 50, {RATE: RATES_BIT_S}),
        *(campaign(f"size-{size}", every, size, {RATE: (256_000,)}) for size in sizes if size != 50),
        campaign("clean", few, 50, {RATE: RATES_BIT_S[:3], LOSS: (0.0,)}),
        campaign("block-errors", few, 50, {RATE: (256_000,), BLOCK_ERRORS: (0.0, 0.05, 0.15)}),
    )


def _values(settings: Settings, size: int, window: int) -> dict[str, Any]:
    """Values over the scenario; without a proxy `window` is 0."""
    is_first = settings[TABLE] == "first"
    table = FIRST_TABLE if is_first else SECOND_TABLE
    segment_bytes = 536 if is_first else 1460
    round_trip_s = float(settings[ROUND_TRIP])
    one_way_s = (round_trip_s - _INTERVALS_S) / 2.0
    keeps, acknowledged = settings[CONNECTIONS] == ONE_KEPT, int(settings[ACKNOWLEDGED])
    proxy = split(window, segment_bytes=segment_bytes) if window else {}
    if proxy and keeps:
        proxy["path[1]"]["mobile_leg"]["restart_after_idle"] = False
    return {
        **_PATIENCE,
        **table,
        **(ftp(size) if settings[CONNECTIONS] == EACH else {SIZE: size}),
        **({"server.restart_after_idle": False} if keeps else {}),
        "mobile.delayed_acknowledgement_segments": acknowledged,
        LOSS: float(settings[LOSS_NAME]),
        "path[2].down.delay_s": one_way_s,
        "path[2].up.delay_s": one_way_s,
        "path[2].radio_link_control.unreported_is_lost_after_s": round_trip_s,
        **proxy,
    }


def further_experiments(settings: Settings, repeats: int, seed: int) -> Sequence[Experiment]:
    """Connections without a proxy: what the first table gives, or names none of, is changed only where it differs."""
    changed = {name for name, value in settings.items() if value != SEARCH.chosen[name]}
    first = {**settings, TABLE: "first"}

    def values(size: int) -> dict[str, Any]:
        found = _values(first, size * _KB, 0)
        if ROUND_TRIP not in changed:
            found |= {name: FIRST_TABLE[name] for name in found if name.startswith("path[2]") and name in FIRST_TABLE}
            del found["path[2].up.delay_s"]
        if LOSS_NAME not in changed:
            found[LOSS] = FIRST_TABLE[LOSS]
        return found

    comparison = _values(settings, 50 * _KB, 0)
    return one_connection_experiments({size: values(size) for size in (50, 200)}, comparison, repeats, seed)


def quantities(settings: Settings, results: Results) -> dict[str, Any]:
    """What the statements on the comparison compare; the headline is that of its file."""
    by_file = {50: results["hu-search-rate"].runs}
    by_file |= {
        int(name.rpartition("-")[2]): result.runs
        for name, result in results.items()
        if name.startswith("hu-search-size-")
    }
    gain = Files(pd.concat([runs.assign(**{SIZE: size * _KB}) for size, runs in by_file.items()], ignore_index=True))
    at_256 = Files(gain.runs[gain.runs[RATE] == 256_000])
    lossy = Files(gain.runs[gain.runs["variant"].isin(["regular", "split 3"])])
    clean = results["hu-search-clean"].runs.assign(**{SIZE: 50 * _KB})
    phased = pd.concat(
        [
            clean.assign(variant=clean["variant"].map({"regular": "0", "split 3": "0, split 3"})),
            lossy.runs.assign(variant=lossy.runs["variant"].map({"regular": "0.01", "split 3": "0.01, split 3"})),
        ],
        ignore_index=True,
    )
    errors = results["hu-search-block-errors"].runs.assign(**{SIZE: 50 * _KB})
    usual = lossy.runs[(lossy.runs[RATE] == 256_000) & (lossy.runs[SIZE] == 50 * _KB)].assign(**{BLOCK_ERRORS: 0.1})
    headline = int(settings[FILE]) * _KB
    return {
        **{
            f"gain_{window}_50": mean_interval(gain.gains(f"split {window}", rate=256_000, size=headline))
            for window in (3, 10)
        },
        **windows(gain),
        **by_rate(gain),
        **by_size(at_256, None, gain),
        **phases(Files(phased)),
        **block_errors(Files(pd.concat([errors, usual], ignore_index=True))),
        **one_connection_quantities(results),
    }


SEARCH = Search(
    name="hu",
    title="The comparison with and without a proxy",
    statements=Path(__file__).with_name("statements.toml"),
    parameters=PARAMETERS,
    leads={
        "a far radio link": {
            TABLE: "first",
            ROUND_TRIP: 0.42,
            LOSS_NAME: 0.001,
            CONNECTIONS: EACH,
        }
    },
    experiments=experiments,
    quantities=quantities,
    repeats=(3, 8, 24),
    sensitivity_repeats=8,
    further_experiments=further_experiments,
)
