"""What Wei et al. leave open of table II and of section IV-B, as an inverse problem."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from papers.experiment import Experiment, sweep
from papers.search.space import OpenParameter, Results, Search, Settings
from papers.wei.experiments import DOWNSTREAM_WINDOW, SIZE, SIZES, radio
from papers.wei.measuring import measure_transfer
from papers.wei.quantities import object_times, shapes, table_2
from papers.wei.reading import CampaignRuns

RATE, VARIATION = "rate of the mobile, kbit/s", "variation of the rate"
WEST, EAST = "r1 of the west coast, s", "r1 of the east coast, s"
RADIO_ROUND_TRIP, DETOUR = "r2, s", "one-way delay that the split point adds, s"
SERVER_WINDOW, SPLIT_WINDOW = "first window of the server, segments", "first window of the split point, segments"
COUNTED, ACKNOWLEDGED = "throughput counts from", "acknowledgements of the mobile"
OPEN, SYN = "the open connection", "the SYN"
QUICK, DELAYED = "the first 16 at once", "delayed by up to 200 ms"
#: The radio link's packet of 1500 bytes is a part of r2.
_PACKET_BITS = 12_000

PARAMETERS = (
    OpenParameter(
        RATE,
        128.0,
        (119.0, 153.6),
        "128 kbit/s in the example; 120 kbit/s for the largest file; supplemental channels of CDMA2000 1x have 153.6",
        range=(110.0, 160.0),
    ),
    OpenParameter(VARIATION, 0.25, (0.0, 0.5), "nothing; something must vary from one download to the next"),
    OpenParameter(WEST, 0.03, (0.015, 0.06), "0.03 s in the example", range=(0.01, 0.1), is_logarithmic=True),
    OpenParameter(
        EAST, 0.1, (0.06, 0.2), "nothing; some 4,500 km of fibre are 60 ms", range=(0.05, 0.3), is_logarithmic=True
    ),
    OpenParameter(RADIO_ROUND_TRIP, 0.8, (0.4, 1.2), "0.8 s in the example", range=(0.2, 1.5), is_logarithmic=True),
    OpenParameter(
        DETOUR,
        0.0,
        (0.05, 0.1),
        "'the split point only introduces additional delay'; 18 kbit/s for 1 kB are 0.44 s",
        range=(0.0, 0.2),
    ),
    OpenParameter(
        SERVER_WINDOW,
        3,
        (1, 2, 10),
        "RedHat 9.0's; RFC 2581 allows 2, RFC 3390, which is cited, 3",
        range=(1, 10),
    ),
    OpenParameter(SPLIT_WINDOW, 9, (3, 5, 20), "r2 v in the first analysis, one packet in the second", range=(1, 24)),
    OpenParameter(COUNTED, OPEN, (SYN,), "'average throughput'"),
    OpenParameter(ACKNOWLEDGED, QUICK, (DELAYED,), "Windows XP; the analysis is with and without delayed ones"),
)


def experiments(settings: Settings, repeats: int, seed: int) -> Sequence[Experiment]:
    """Table II and the object of section IV-B under these settings."""
    coasts = {"west": float(settings[WEST]), "east": float(settings[EAST])}
    window = {DOWNSTREAM_WINDOW: int(settings[SPLIT_WINDOW])}

    def table(name: str, scenario: str, detour_s: float, more: Mapping[str, Any]) -> Experiment:
        variants = {
            coast: {**_values(settings), **more, "path[0].down.delay_s": round_trip_s / 2.0 + detour_s}
            for coast, round_trip_s in coasts.items()
        }
        return Experiment(
            sweep(name, (scenario,), grid={SIZE: SIZES}, variants=variants, repeats=repeats, seed=seed),
            measure_transfer,
        )

    west_s = coasts["west"] / 2.0 + float(settings[DETOUR])
    image = {**_values(settings), "path[0].down.delay_s": west_s, SIZE: 1_500_000, "traffic[0].application": "http"}
    return (
        table("wei-search-regular", "wei-regular", 0.0, {}),
        table("wei-search-split", "wei-split", float(settings[DETOUR]), window),
        Experiment(
            sweep(
                "wei-search-object",
                ("wei-recompression", "wei-split"),
                variants={"": {**image, **window}},
                repeats=repeats,
                seed=seed,
            ),
            measure_transfer,
        ),
    )


def _values(settings: Settings) -> dict[str, Any]:
    """What holds with and without a split point."""
    rate_bit_s = 1000.0 * float(settings[RATE])
    one_way_s = (float(settings[RADIO_ROUND_TRIP]) - _PACKET_BITS / rate_bit_s) / 2.0
    values = radio(float(settings[VARIATION]), rate_bit_s=rate_bit_s, delay_s=max(one_way_s, 0.0))
    values["server.initial_window_segments"] = int(settings[SERVER_WINDOW])
    if settings[ACKNOWLEDGED] == DELAYED:
        values |= {"mobile.quick_acknowledgements": 0, "mobile.delayed_acknowledgement_timeout_s": 0.2}
    return values


def quantities(settings: Settings, results: Results) -> dict[str, Any]:
    """What the statements on table II and on section IV-B compare."""
    import pandas as pd

    runs = pd.concat([results[f"wei-search-{kind}"].runs for kind in ("regular", "split")], ignore_index=True)
    if settings[COUNTED] == SYN:
        runs = runs.assign(throughput_bit_s=runs["whole_bit_s"])
    campaign = CampaignRuns(runs)
    return {
        "table_2": table_2(campaign),
        **shapes(campaign),
        **object_times(results["wei-search-object"].runs),
    }


SEARCH = Search(
    name="wei",
    title="Table II and the object of section IV-B",
    statements=Path(__file__).with_name("statements.toml"),
    parameters=PARAMETERS,
    leads={
        "153.6 kbit/s, 60 ms, 1 s, window 20": {RATE: 153.6, WEST: 0.06, RADIO_ROUND_TRIP: 1.0, SPLIT_WINDOW: 20},
    },
    experiments=experiments,
    quantities=quantities,
    repeats=(5, 20, 60),
    sensitivity_repeats=12,
)
