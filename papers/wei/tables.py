"""Wei et al.'s tables."""

from __future__ import annotations

import pandas as pd

from papers.experiment import Measurements
from papers.published import published_table
from papers.results import Table
from papers.statements.comparing import compare_value
from papers.wei.experiments import COASTS, SIZES
from papers.wei.reading import SLOW_START, CampaignRuns, table_runs
from reference_sim.models.split_gain import split_gain


def tables(measurements: Measurements) -> tuple[Table, ...]:
    """Table II beside the published one, the choices behind it, the closed form, the object and the aborts."""
    return (
        Table(
            "table2",
            "Table II: gain of Split-TCP by file size",
            _table(table_runs(measurements)),
            "Gains in percent, throughput in kbit/s from the open connection to the last byte; half widths of 95 % "
            "intervals. 'slow start': the split point begins with three segments downstream, not with r2 v. 'from syn' "
            "counts the time of opening the connection too.",
        ),
        Table(
            "choices",
            "Gains under other choices, west coast",
            _choices(CampaignRuns(measurements["wei-choices"].runs)),
            "Gain of Split-TCP in percent by file size.",
        ),
        Table(
            "closed-form",
            "Time until the mobile's rate is reached",
            _closed_form(),
            "Seconds, for v = 128 kbit/s, s = 1500 B and r2 = 0.8 s (section IV-A).",
        ),
        Table(
            "object",
            "An object of 1.5 MB",
            measurements["wei-object"].summary.drop(columns=["variant"]),
            "Seconds and bit/s with the half widths of their 95 % intervals; the recompressed object has 150 kB.",
        ),
        Table(
            "aborts",
            "What an abort leaves",
            measurements["wei-aborts"].summary.drop(columns=["scenario"]),
            "How long the server's connection lives on, in seconds, and whether it was open when the run ended.",
        ),
    )


def _table(campaign: CampaignRuns) -> pd.DataFrame:
    published = published_table("wei", "table2_split_gain").set_index("file_kbytes").to_dict("index")
    rows = []
    for coast in COASTS:
        for size in SIZES:
            published_row = published[size // 1000]
            gain = campaign.gain(coast, size)
            rows.append(
                {
                    "coast": coast,
                    "file_kB": size // 1000,
                    "regular_kbit_s": campaign.throughput("wei-regular", coast, size).mean,
                    "split_kbit_s": campaign.throughput("wei-split", coast, size).mean,
                    "published_split_kbit_s": published_row[f"{coast}_split_kbps"],
                    "gain_percent": gain.mean,
                    "half_width": gain.half_width,
                    "published_gain_percent": published_row[f"{coast}_gain_percent"],
                    "verdict": str(compare_value(published_row[f"{coast}_gain_percent"], gain, rounding=0.5)),
                    "gain_slow_start_percent": campaign.gain(coast, size, scenario=SLOW_START).mean,
                    "gain_from_syn_percent": campaign.gain(coast, size, "whole_bit_s").mean,
                }
            )
    return pd.DataFrame(rows)


def _choices(campaign: CampaignRuns) -> pd.DataFrame:
    return pd.DataFrame(
        [
            {"choice": variant, **{f"{size // 1000} kB": campaign.gain(variant, size).mean for size in SIZES}}
            for variant in campaign.runs["variant"].unique()
        ]
    )


def _closed_form() -> pd.DataFrame:
    rows = []
    for upstream_s in (0.03, 0.06, 0.1, 0.2):
        for slow_start in (False, True):
            gain = split_gain(128e3, 1500.0, upstream_s, 0.8, downstream_slow_start=slow_start)
            rows.append(
                {
                    "r1_s": upstream_s,
                    "downstream": "slow start" if slow_start else "filled at once",
                    "regular_s": gain.regular_s,
                    "split_s": gain.split_s,
                    "gain_s": gain.gain_s,
                    "short_form_s": gain.approximate_gain_s,
                }
            )
    return pd.DataFrame(rows)
