"""Quantities that Hu's statements (`statements.toml`) compare, measured in the runs.

Rates in names are in kbit/s, sizes in kB; gains are those of throughput in percent, differences of gains in points.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

from papers.experiment import Measurements
from papers.hu.model_check import model_frame
from papers.hu.reading import Files
from papers.hu.settings import BLOCK_ERRORS, SENDINGS
from papers.results import StatementOutcome
from papers.statements.comparing import combined, compare_value, written
from reference_sim.intervals import Interval, mean_interval

_KB = 1000
_DELAY_S = 0.5
#: Throughput within so much of the best counts as the best.
_LEVEL = 0.98
#: Of the slides, goal 2: what a larger initial window gains at a high and at a low rate, in percent.
_HIGH_RATE_GAIN, _LOW_RATE_GAIN = 32.0, 19.0


def quantities(measurements: Measurements) -> dict[str, Any]:
    """All of them, by the names that the table of statements uses."""
    gain = Files(measurements["hu-gain"].runs)
    first = Files(measurements["hu-gain-first-table"].runs)
    losses = Files(measurements["hu-internet-loss"].runs)
    return {
        **{f"bandwidth_delay_{rate}_kb": rate * 1e3 * _DELAY_S / 8.0 / _KB for rate in (64, 384)},
        **_headline(gain, first),
        **_far_radio(Files(measurements["hu-far-radio"].runs)),
        **windows(gain),
        **by_rate(gain),
        **by_size(Files(measurements["hu-file-size"].runs), first, gain),
        **phases(losses),
        **file_size(Files(measurements["hu-file-size-first-table"].runs)),
        **pipe_use(Files(measurements["hu-file-size-first-table"].runs)),
        **block_errors(Files(measurements["hu-block-errors"].runs)),
        **initial_window(Files(measurements["hu-initial-window"].runs)),
        **internet_loss(losses),
        **max_dat(Files(measurements["hu-max-dat"].runs)),
        **recovery(Files(measurements["hu-max-dat"].runs)),
        **_model(measurements),
    }


def _headline(gain: Files, first: Files) -> dict[str, Any]:
    """Gains at 256 kbit/s by window and file."""
    found: dict[str, Any] = {}
    for window in (3, 10):
        name = f"split {window}"
        for size in (50, 100, 200):
            found[f"gain_{window}_{size}"] = mean_interval(gain.gains(name, rate=256_000, size=size * _KB))
        for size in (50, 200):
            lossy = first.gains(f"{name}, 1 % loss", "regular, 1 % loss", rate=256_000, size=size * _KB)
            found[f"first_table_lossy_gain_{window}_{size}"] = mean_interval(lossy)
        found[f"first_table_gain_{window}"] = mean_interval(first.gains(name, rate=256_000, size=50 * _KB))
    return found


def _far_radio(files: Files) -> dict[str, Any]:
    """Gains where the radio link's round trip is 0.4 s, a connection for each file of 50 kB."""
    return {f"far_gain_{window}": mean_interval(files.gains(f"split {window}")) for window in (3, 10)}


def windows(gain: Files) -> dict[str, Any]:
    """Steps of the proxy's window at 256 kbit/s, files of 50 kB where the name has no size."""
    three, five, ten = (gain.gains(f"split {window}", rate=256_000, size=50 * _KB) for window in (3, 5, 10))
    return {
        "window_5_over_3": _points(five, three),
        "window_10_over_5": _points(ten, five),
        **{f"window_10_over_3_{size}": _window_10_over_3(gain, 256_000, size * _KB) for size in (50, 100, 200)},
    }


def block_errors(files: Files) -> dict[str, Any]:
    """Gain of the proxy at 256 kbit/s by block error rate."""
    errors = sorted(float(value) for value in files.runs[BLOCK_ERRORS].unique())
    gains = {rate: mean_interval(files.only(BLOCK_ERRORS, rate).gains("split 3", rate=256_000)) for rate in errors}
    return {
        "block_error_gains": list(gains.values()),
        "gains_by_block_errors": ", ".join(f"{written(gain, '%', 2)} at {rate:.0%}" for rate, gain in gains.items()),
    }


def pipe_use(files: Files) -> dict[str, Any]:
    """Share of the channel that files of 50 kB use, in percent, at the smallest and the largest rate."""
    low, high = (
        [100.0 * value / (rate * 1e3) for value in files.values(rate=rate * 1000, size=50 * _KB)] for rate in (64, 384)
    )
    return {"used_64": mean_interval(low), "used_384": mean_interval(high), "used_64_over_384": _points(low, high)}


def recovery(files: Files) -> dict[str, Any]:
    """Throughput in kbit/s that ten retransmissions by RLC add to what one has."""
    group = files.only(BLOCK_ERRORS, 0.1)
    much, little = (
        [0.0 if math.isnan(value) else value / 1e3 for value in group.only(SENDINGS, number).values()]
        for number in (11, 2)
    )
    return {"rlc_over_tcp": _points(much, little)}


def _window_10_over_3(gain: Files, rate: int, size: int) -> Interval:
    return _points(gain.gains("split 10", rate=rate, size=size), gain.gains("split 3", rate=rate, size=size))


def _points(larger: list[float], smaller: list[float]) -> Interval:
    """Interval of the mean difference, run by run."""
    return mean_interval([one - other for one, other in zip(larger, smaller, strict=True)])


def by_rate(gain: Files) -> dict[str, Any]:
    """Gains with a window of 3 and files of 50 kB."""
    gains = {rate: gain.gains("split 3", rate=rate * 1000, size=50 * _KB) for rate in (64, 128, 256, 384)}
    return {
        **{f"gain_at_{rate}": mean_interval(values) for rate, values in gains.items()},
        **{
            f"half_the_gain_at_256_over_{rate}": _points([big / 2.0 for big in gains[256]], gains[rate])
            for rate in (64, 128)
        },
        **{f"window_10_over_3_at_{rate}": _window_10_over_3(gain, rate * 1000, 50 * _KB) for rate in (64, 128)},
        "gain_steps_by_rate": [_points(higher, lower) for lower, higher in itertools.pairwise(gains.values())],
    }


def by_size(files: Files, first: Files | None, gain: Files) -> dict[str, Any]:
    """Gains by file at 256 kbit/s; `first` has the first table's, with and without loss."""
    found: dict[str, Any] = {}
    where: dict[str, Any] = {"rate": 256_000}
    sizes = sorted(files.runs["traffic[0].page_bytes"].unique())
    by_size = {size: files.gains("split 3", **where, size=size) for size in sizes}
    if sizes[0] < 50_000:
        found["smallest_file_gain"] = mean_interval(by_size[sizes[0]])
        found["gain_50_over_smallest_file"] = _points(by_size[50_000], by_size[sizes[0]])
    found["gains_by_size"] = ", ".join(
        f"{written(mean_interval(values), '%', 2)} ({size / _KB:g} kB)" for size, values in by_size.items()
    )
    found["gain_200_over_50"] = _points(
        gain.gains("split 3", **where, size=200_000), gain.gains("split 3", **where, size=50_000)
    )
    if first is None:
        return {**found, "grows_where_lossy": found["gain_200_over_50"].mean > 0.0}
    lossy = _points(
        *(first.gains("split 3, 1 % loss", "regular, 1 % loss", rate=384_000, size=size) for size in (200_000, 50_000))
    )
    return {**found, "lossy_gain_200_over_50": lossy, "grows_where_lossy": lossy.mean > 0}


def phases(losses: Files) -> dict[str, Any]:
    """Gain without Internet loss, which slow start makes, and what 1 % of loss adds."""
    found: dict[str, Any] = {}
    for rate in (64, 128, 256):
        where = {"rate": rate * 1000, "size": 50 * _KB}
        clean, lossy = losses.gains("0, split 3", "0", **where), losses.gains("0.01, split 3", "0.01", **where)
        found[f"slow_start_gain_{rate}"] = mean_interval(clean)
        found[f"recovery_gain_{rate}"] = _points(lossy, clean)
        found[f"slow_start_over_recovery_{rate}"] = _points([2.0 * gain for gain in clean], lossy)
    return found


def file_size(files: Files) -> dict[str, Any]:
    """Throughput of 200 kB over that of 50 kB."""
    ratios = {}
    for rate in (64, 256, 384):
        large, small = (files.values(rate=rate * 1000, size=size) for size in (200_000, 50_000))
        ratios[rate] = mean_interval([one / other for one, other in zip(large, small, strict=True)])
    low, high = ratios[64], ratios[256]
    return {
        **{f"throughput_ratio_{rate}": ratio for rate, ratio in ratios.items()},
        "throughput_gain_256": Interval(100.0 * (high.mean - 1.0), 100.0 * (high.half_width or 0.0), 1),
        "throughput_ratio_256_over_64": Interval(
            high.mean - low.mean, (high.half_width or 0.0) + (low.half_width or 0.0), 1
        ),
    }


def initial_window(files: Files) -> dict[str, Any]:
    """Gains of the server's initial window over one of 1."""

    def gain(window: int, rate: int) -> Interval:
        return mean_interval(files.gains(f"window {window}", "window 1", rate=rate * 1000, size=50 * _KB))

    table = {(window, rate): gain(window, rate) for window in (3, 5, 10) for rate in (64, 128, 256)}

    def outcome(window: int) -> StatementOutcome:
        outcomes = (
            compare_value(_HIGH_RATE_GAIN, table[window, 256]),
            compare_value(_LOW_RATE_GAIN, table[window, 64]),
        )
        return combined(outcomes)

    by_window = [outcome(window) for window in (3, 5, 10)]
    is_open = StatementOutcome.UNDECIDED in by_window
    return {
        "initial_window_gains": "; ".join(
            f"1 to {window}: "
            + ", ".join(f"{written(table[window, rate], '%', 2)} ({rate})" for rate in (64, 128, 256))
            for window in (3, 5, 10)
        ),
        "some_initial_window_gains_32_and_19": StatementOutcome.REPRODUCED in by_window or (None if is_open else False),
        "initial_windows_gain_more_at_256": all(table[w, 256].mean > table[w, 64].mean for w in (3, 5, 10)),
    }


def internet_loss(losses: Files) -> dict[str, Any]:
    """Throughput that 1 % of loss costs, in percent."""

    def costs(rate: int) -> list[float]:
        lossy, clean = (losses.values(variant=variant, rate=rate, size=50 * _KB) for variant in ("0.01", "0"))
        return [100.0 * (1.0 - one / other) for one, other in zip(lossy, clean, strict=True)]

    low, high = costs(64_000), costs(384_000)
    return {
        "loss_cost_64": mean_interval(low),
        "loss_cost_384": mean_interval(high),
        "loss_cost_384_over_twice_64": _points(high, [2.0 * small for small in low]),
    }


def max_dat(files: Files) -> dict[str, Any]:
    """Where throughput levels off by MaxDAT (sendings of a PDU less one), and what more of it costs."""
    least: list[str] = []
    is_level: list[bool] = []
    later: list[tuple[float, float, float]] = []
    for errors in sorted(float(value) for value in files.runs[BLOCK_ERRORS].unique()):
        group = files.only(BLOCK_ERRORS, errors)
        sendings = sorted(int(value) for value in group.runs[SENDINGS].unique())
        means = {number: _mean(group.only(SENDINGS, number).values()) for number in sendings}
        best = max(means.values())
        enough = min(number for number in sendings if means[number] >= _LEVEL * best)
        is_level.append(all(means[number] >= _LEVEL * best for number in sendings if number >= enough))
        least.append(f"{enough - 1} at {errors:.0%}")
        waits = {number: _mean(group.only(SENDINGS, number).values("timeouts")) for number in (enough, sendings[-1])}
        later.append((errors, waits[sendings[-1]] - waits[enough], means[sendings[-1]] / means[enough]))
    return {
        "throughput_levels_off": all(is_level),
        "least_sufficient_max_dat": ", ".join(least),
        "too_large_max_dat_costs": any(more > 0.5 and ratio < 1.0 for _, more, ratio in later),
        "change_up_to_30": ", ".join(f"{ratio - 1.0:+.1%} at {errors:.0%}" for errors, _, ratio in later),
    }


def _mean(values: list[float]) -> float:
    """0 where a transfer of every run was given up."""
    known = [value for value in values if not math.isnan(value)]
    return sum(known) / len(known) if known else 0.0


def _model(measurements: Measurements) -> dict[str, Any]:
    frame = model_frame(measurements)
    is_split = frame["connection"] == "split"
    split, whole = (frame[chosen]["error_percent"].abs().mean() for chosen in (is_split, ~is_split))
    return {
        "model_points": len(frame),
        "model_errors": "; ".join(
            f"{name}: mean error {part['error_percent'].mean():+.1f} %, mean absolute error "
            f"{part['error_percent'].abs().mean():.1f} %, largest {part['error_percent'].abs().max():.0f} %"
            for name, part in frame.groupby("connection")
        ),
        "split_model_errs_no_more_than_padhye": bool(split <= whole),
    }
