"""Traces of carriers' links: rates over time, between formats, and from captures of links that were kept full."""

from __future__ import annotations

from reference_sim.traces.formats import CsvForm, read_csv, read_mahimahi, read_two_columns, write_csv, write_mahimahi
from reference_sim.traces.rates import RateTrace, trace_of_deliveries

__all__ = [
    "CsvForm",
    "RateTrace",
    "read_csv",
    "read_mahimahi",
    "read_two_columns",
    "trace_of_deliveries",
    "write_csv",
    "write_mahimahi",
]
