"""Wei et al.'s tables."""

from __future__ import annotations

import pandas as pd

from reference_sim.models.split_gain import split_gain
from reference_sim.reproduction.experiment import Measurements
from reference_sim.reproduction.judging import judge_value
from reference_sim.reproduction.published import published_table
from reference_sim.reproduction.results import Table
from reference_sim.reproduction.wei.experiments import COASTS, SIZES
from reference_sim.reproduction.wei.reading import SLOW_START, Cells, table_cells


def tables(m: Measurements) -> tuple[Table, ...]:
    """Table II beside the published one, the choices behind it, the closed form, the object and the aborts."""
    return (
        Table(
            "table2",
            "Table II: gain of Split-TCP by file size",
            _table(table_cells(m)),
            "Gains in percent, throughput in kbit/s from the open connection to the last byte; half widths of 95 % "
            "intervals. 'slow start': the split point begins with three segments downstream, not with r2 v. 'from syn' "
            "counts the time of opening the connection too.",
        ),
        Table(
            "choices",
            "Gains under other choices, west coast",
            _choices(Cells(m["wei-choices"].runs)),
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
            m["wei-object"].summary.drop(columns=["variant"]),
            "Seconds and bit/s with the half widths of their 95 % intervals; the recompressed object has 150 kB.",
        ),
        Table(
            "aborts",
            "What an abort leaves",
            m["wei-aborts"].summary.drop(columns=["scenario"]),
            "How long the server's connection lives on, in seconds, and whether it was open when the run ended.",
        ),
    )


def _table(cells: Cells) -> pd.DataFrame:
    published = published_table("wei_table2_split_gain").set_index("file_kbytes").to_dict("index")
    rows = []
    for coast in COASTS:
        for size in SIZES:
            said = published[size // 1000]
            gain = cells.gain(coast, size)
            rows.append(
                {
                    "coast": coast,
                    "file_kB": size // 1000,
                    "regular_kbit_s": cells.throughput("wei-regular", coast, size).mean,
                    "split_kbit_s": cells.throughput("wei-split", coast, size).mean,
                    "published_split_kbit_s": said[f"{coast}_split_kbps"],
                    "gain_percent": gain.mean,
                    "half_width": gain.half_width,
                    "published_gain_percent": said[f"{coast}_gain_percent"],
                    "verdict": str(judge_value(said[f"{coast}_gain_percent"], gain, rounding=0.5)),
                    "gain_slow_start_percent": cells.gain(coast, size, scenario=SLOW_START).mean,
                    "gain_from_syn_percent": cells.gain(coast, size, "whole_bit_s").mean,
                }
            )
    return pd.DataFrame(rows)


def _choices(cells: Cells) -> pd.DataFrame:
    return pd.DataFrame(
        [
            {"choice": variant, **{f"{size // 1000} kB": cells.gain(variant, size).mean for size in SIZES}}
            for variant in cells.runs["variant"].unique()
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
