"""The analytical model of a split connection, held against the simulator."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from papers.experiment import Effort, Experiment, Measurements, sweep
from papers.hu.measuring import measure_bulk
from papers.hu.settings import BASE, split
from reference_sim.models.split_throughput import Half, split_rate_segments_s, whole_rate_segments_s

NAME = "hu-model"

#: A full segment with its headers, and what of it is content.
PACKET_BYTES, SEGMENT_BYTES = 1500, 1460
#: Radio link without errors of its own: the model has segments and their losses, not PDUs.
RADIO_ONE_WAY_S = 0.06
INTERNET_ONE_WAY_S = 0.07
TIMEOUT_S = 1.0
ADVERTISED_BYTES = 32_768
PROXY_WINDOW_BYTES = 65_535

RATES_BIT_S = (64_000, 128_000, 256_000, 384_000, 2_000_000)
INTERNET_LOSSES = (0.002, 0.01, 0.03)
RADIO_LOSSES = (0.0, 0.01, 0.03)
BUFFERS_BYTES = (8_192, 65_536)


@dataclass(frozen=True, slots=True)
class _Point:
    rate_bit_s: int
    internet_loss: float
    radio_loss: float
    #: None without a proxy.
    buffer_bytes: int | None

    @property
    def name(self) -> str:
        buffer = "whole" if self.buffer_bytes is None else f"{self.buffer_bytes} B"
        return f"{self.rate_bit_s} bit/s, {self.internet_loss:g}, {self.radio_loss:g}, {buffer}"

    def values(self) -> dict[str, Any]:
        radio = {"delay_s": RADIO_ONE_WAY_S, "rate_bit_s": self.rate_bit_s, "queue_packets": 1000}
        lossy = {**radio, "loss": {"kind": "independent", "probability": self.radio_loss}}
        proxy = {} if self.buffer_bytes is None else split(3, buffer_bytes=self.buffer_bytes)
        return {
            **proxy,
            "path[0].down.loss.probability": self.internet_loss,
            "path[2]": {"kind": "wired", "name": "bearer", "down": lossy, "up": radio},
        }

    def rate_segments_s(self) -> float:
        """The model's result."""
        upstream = Half(
            self.internet_loss,
            2.0 * INTERNET_ONE_WAY_S,
            TIMEOUT_S,
            window_limit_segments=PROXY_WINDOW_BYTES / SEGMENT_BYTES,
            segments_an_acknowledgement=1.0,
        )
        advertised = ADVERTISED_BYTES if self.buffer_bytes is None else min(ADVERTISED_BYTES, self.buffer_bytes)
        downstream = Half(
            self.radio_loss,
            2.0 * RADIO_ONE_WAY_S + (PACKET_BYTES + 40) * 8.0 / self.rate_bit_s,
            TIMEOUT_S,
            window_limit_segments=advertised / SEGMENT_BYTES,
            link_segments_s=self.rate_bit_s / 8.0 / PACKET_BYTES,
            segments_an_acknowledgement=1.0,
        )
        if self.buffer_bytes is None:
            return whole_rate_segments_s(upstream, downstream)
        held_bytes = PROXY_WINDOW_BYTES + self.buffer_bytes
        return split_rate_segments_s(upstream, downstream, held_bytes / SEGMENT_BYTES)


def _points(effort: Effort) -> Iterator[_Point]:
    rates = (256_000,) if effort is Effort.REDUCED else RATES_BIT_S
    for values in itertools.product(rates, INTERNET_LOSSES, RADIO_LOSSES, (None, *BUFFERS_BYTES)):
        yield _Point(*values)


def model_experiments(effort: Effort) -> tuple[Experiment, ...]:
    """Transfers that go on for the whole duration, over every combination of rate, losses and buffer."""
    duration_s = float(effort.of(300, 600, 3000))
    base = {
        "duration_s": duration_s,
        "traffic": [{"kind": "download", "duration_s": duration_s}],
        "record.series_interval_s": duration_s / 100.0,
    }
    variants = {point.name: {**base, **point.values()} for point in _points(effort)}
    return (Experiment(sweep(NAME, [BASE], variants=variants, repeats=effort.of(2, 3, 8)), measure_bulk),)


def model_frame(measurements: Measurements) -> pd.DataFrame:
    """Simulated and modelled goodput of each point, in kbit/s, and the relative error of the model in percent."""
    summary = measurements[NAME].summary.set_index("variant").to_dict("index")
    rows: list[Mapping[str, Any]] = []
    for point in _points(measurements.effort):
        found = summary[point.name]
        modelled_bit_s = point.rate_segments_s() * SEGMENT_BYTES * 8.0
        simulated_bit_s = float(found["goodput_bit_s"])
        rows.append(
            {
                "connection": "whole" if point.buffer_bytes is None else "split",
                "rate_kbit_s": point.rate_bit_s / 1e3,
                "internet_loss_percent": 100.0 * point.internet_loss,
                "radio_loss_percent": 100.0 * point.radio_loss,
                "buffer_kB": None if point.buffer_bytes is None else point.buffer_bytes / 1e3,
                "simulated_kbit_s": simulated_bit_s / 1e3,
                "half_width_kbit_s": float(found["goodput_bit_s.half_width"]) / 1e3,
                "model_kbit_s": modelled_bit_s / 1e3,
                "error_percent": 100.0 * (modelled_bit_s / simulated_bit_s - 1.0),
            }
        )
    return pd.DataFrame(rows)
