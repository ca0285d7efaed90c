"""Hu's tables."""

from __future__ import annotations

import pandas as pd

from papers.experiment import Measurements
from papers.hu.model_check import model_frame
from papers.hu.reading import Files
from papers.hu.settings import BLOCK_ERRORS, RATES_BIT_S, SENDINGS, SIZE, WINDOWS
from papers.published import published_table
from papers.results import Table
from reference_sim.intervals import mean_interval


def tables(measurements: Measurements) -> tuple[Table, ...]:
    """Gains beside the published ones, means of every other campaign, the model's errors."""
    return (
        Table(
            "gain",
            "Gain of a split proxy",
            _gains(measurements),
            "Throughput in kbit/s, gains with the half widths of their 95 % intervals in percent; published values "
            "(seed 000, section 5) name no file.",
        ),
        _means(measurements, "file-size", "Throughput and download time by file size, second table", [SIZE]),
        _means(measurements, "file-size-first-table", "Throughput and download time by file size, first table", [SIZE]),
        _means(measurements, "initial-window", "Initial window of the server, no proxy, first table", [SIZE]),
        _means(measurements, "internet-loss", "Internet loss", [SIZE]),
        _means(measurements, "block-errors", "Block errors, 50 kB", [BLOCK_ERRORS]),
        _means(
            measurements,
            "max-dat",
            "MaxDAT (sendings less one), 256 kbit/s, 200 kB, first table",
            [BLOCK_ERRORS, SENDINGS],
        ),
        _means(measurements, "ftp", "A connection a file, asked for at exponential intervals", []),
        _means(measurements, "separate-choices", "One choice at a time, 256 kbit/s", [SIZE]),
        Table(
            "model",
            "Model of a split connection against the simulator",
            model_frame(measurements),
            "Long transfers over lossy lines; goodput in kbit/s; error of the model in percent of what was simulated.",
        ),
    )


def _gains(measurements: Measurements) -> pd.DataFrame:
    published = published_table("hu", "umts_split_gain").set_index(["dch_kbps", "proxy_initial_window_segments"])
    published_gains = published["gain_percent"].to_dict()
    campaigns = (
        ("second", "", Files(measurements["hu-gain"].runs)),
        ("first, no loss", "", Files(measurements["hu-gain-first-table"].runs)),
        ("first, 1 % loss", ", 1 % loss", Files(measurements["hu-gain-first-table"].runs)),
    )
    rows = []
    for name, suffix, files in campaigns:
        for rate in RATES_BIT_S:
            for size in sorted(files.runs[SIZE].unique()):
                where = {"rate": rate, "size": size}
                row = {"table": name, "rate_kbit_s": rate // 1000, "file_kB": size / 1e3}
                row["regular_kbit_s"] = files.mean(variant=f"regular{suffix}", **where).mean / 1e3
                for window in WINDOWS:
                    gain = mean_interval(files.gains(f"split {window}{suffix}", f"regular{suffix}", **where))
                    row[f"gain_{window}_percent"] = gain.mean
                    row[f"gain_{window}_half_width"] = gain.half_width
                    row[f"published_{window}"] = published_gains.get((rate // 1000, window), "")
                rows.append(row)
    return pd.DataFrame(rows)


def _means(measurements: Measurements, name: str, title: str, fields: list[str]) -> Table:
    summary = measurements[f"hu-{name}"].summary
    columns = ["variant", "path[2].down.rate_bit_s", *fields, "runs"]
    measures = ["throughput_bit_s", "download_s", "timeouts"]
    frame = summary[columns + [c for name in measures for c in (name, f"{name}.half_width")]]
    short = {"path[2].down.rate_bit_s": "rate_bit_s", SIZE: "file_bytes", BLOCK_ERRORS: "block_error_rate"}
    return Table(
        name,
        title,
        frame.rename(columns={**short, SENDINGS: "sendings"}),
        "Means over runs of 20 files, half widths of 95 % intervals; empty where a transfer was given up.",
    )
