"""From runs of the campaigns to gains with their intervals, as rows of a table."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from reference_sim.intervals import mean_interval

if TYPE_CHECKING:
    import pandas as pd

END_TO_END = "end to end"
_SPLIT = "split, "
_ACCESS = "split-gain-"

#: Fields of the campaigns, and the columns that they become.
_OBJECT_FIELDS = {"server.control": "server_control", "traffic[0].bytes": "size_bytes"}
_LINE_FIELDS = {
    "server.control": "server_control",
    "path[2].down.loss.probability": "loss_probability",
    "path[0].down.delay_s": "server_delay_s",
    "path[2].down.queue_packets": "buffer_packets",
}


@dataclass(frozen=True, slots=True)
class Gain:
    """Throughput through a split point over throughput end to end, less 1, with both ends of its 95 % interval."""

    gain: float
    low: float
    high: float
    runs: int


@dataclass(frozen=True, slots=True)
class ObjectRow:
    """One object over one access link: seconds are means over the seeds."""

    access: str
    size_bytes: int
    server_control: str
    #: Control of the split point's leg to the mobile; `, at once` behind it where that connects on the mobile's SYN.
    box: str
    runs: int
    #: From the mobile's SYN to the last byte.
    end_to_end_s: float
    split_s: float
    gain: float
    gain_low: float
    gain_high: float
    first_byte_end_to_end_s: float
    first_byte_split_s: float
    #: Mean one-way delay of segments, both legs together; the wait in the split point's buffer is left out.
    delay_end_to_end_s: float
    delay_split_s: float
    #: 95 % interval of their difference, split less end to end.
    delay_change_low_s: float
    delay_change_high_s: float


@dataclass(frozen=True, slots=True)
class LineRow:
    """A download of 30 s over one line; rates are means over the seeds."""

    server_delay_s: float
    loss_probability: float
    buffer_packets: int
    server_control: str
    box: str
    runs: int
    end_to_end_bit_s: float
    split_bit_s: float
    gain: float
    gain_low: float
    gain_high: float
    delay_end_to_end_s: float
    delay_split_s: float
    delay_change_low_s: float
    delay_change_high_s: float


def gain_of(end_to_end: Sequence[float], split: Sequence[float], *, are_times: bool) -> Gain:
    """The gain from values of equal seeds: Student's interval of the mean logarithm of their quotients.

    A mean of logarithms treats twice as fast and half as fast alike. Raises ValueError for unequal or too few values.
    """
    quotients = [
        math.log(before / after if are_times else after / before)
        for before, after in zip(end_to_end, split, strict=True)
    ]
    interval = mean_interval(quotients)
    if interval.half_width is None:
        raise ValueError("a gain with an interval must have at least two runs, got 1")
    ends = (interval.mean, interval.mean - interval.half_width, interval.mean + interval.half_width)
    gain, low, high = (math.expm1(end) for end in ends)
    return Gain(gain, low, high, interval.count)


def object_rows(runs: pd.DataFrame) -> Iterator[ObjectRow]:
    """One row an access link, object, server and split point."""
    for keys, box, before, after in _pairs(runs, _OBJECT_FIELDS):
        if before["transfer_s"].isna().any() or after["transfer_s"].isna().any():
            raise ValueError(f"every run must finish its object, got one that did not among {keys}")
        gain = gain_of(list(before["transfer_s"]), list(after["transfer_s"]), are_times=True)
        yield ObjectRow(
            access=str(keys["scenario"]).removeprefix(_ACCESS),
            size_bytes=int(keys["size_bytes"]),
            server_control=str(keys["server_control"]),
            box=box,
            runs=gain.runs,
            end_to_end_s=_mean(before["transfer_s"]),
            split_s=_mean(after["transfer_s"]),
            gain=gain.gain,
            gain_low=gain.low,
            gain_high=gain.high,
            first_byte_end_to_end_s=_mean(before["first_byte_s"]),
            first_byte_split_s=_mean(after["first_byte_s"]),
            **_delays(before, after),
        )


def line_rows(runs: pd.DataFrame) -> Iterator[LineRow]:
    """One row a line, server and split point."""
    for keys, box, before, after in _pairs(runs, _LINE_FIELDS):
        gain = gain_of(list(before["goodput_bit_s"]), list(after["goodput_bit_s"]), are_times=False)
        yield LineRow(
            server_delay_s=float(keys["server_delay_s"]),
            loss_probability=float(keys["loss_probability"]),
            buffer_packets=int(keys["buffer_packets"]),
            server_control=str(keys["server_control"]),
            box=box,
            runs=gain.runs,
            end_to_end_bit_s=_mean(before["goodput_bit_s"]),
            split_bit_s=_mean(after["goodput_bit_s"]),
            gain=gain.gain,
            gain_low=gain.low,
            gain_high=gain.high,
            **_delays(before, after),
        )


def _pairs(
    runs: pd.DataFrame, names: Mapping[str, str]
) -> Iterator[tuple[dict[str, Any], str, pd.DataFrame, pd.DataFrame]]:
    """Every cell: its keys, the split point, and the runs end to end and split, in the order of their seeds."""
    named = runs.rename(columns=dict(names)).sort_values("seed", kind="stable")
    columns = ["scenario", *names.values()]
    for values, cell in named.groupby(columns, sort=True):
        keys: dict[str, Any] = dict(zip(columns, values, strict=True))
        by_variant = {str(variant): rows for variant, rows in cell.groupby("variant", sort=False)}
        before = by_variant.pop(END_TO_END)
        for variant in _in_order(by_variant):
            yield keys, variant.removeprefix(_SPLIT), before, by_variant[variant]


def _in_order(variants: Iterable[str]) -> list[str]:
    controls = ("reno", "cubic", "bbr", "bbr3")
    return sorted(variants, key=lambda name: (controls.index(name.removeprefix(_SPLIT).split(",")[0]), name))


def _delays(before: pd.DataFrame, after: pd.DataFrame) -> dict[str, float]:
    change = mean_interval(list(after["down_delay_s"].to_numpy() - before["down_delay_s"].to_numpy()))
    half_width = change.half_width or 0.0
    return {
        "delay_end_to_end_s": _mean(before["down_delay_s"]),
        "delay_split_s": _mean(after["down_delay_s"]),
        "delay_change_low_s": change.mean - half_width,
        "delay_change_high_s": change.mean + half_width,
    }


def _mean(column: pd.Series[float]) -> float:
    return mean_interval([float(value) for value in column]).mean
