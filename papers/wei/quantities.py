"""Quantities that Wei et al.'s statements (`statements.toml`) compare, from models and runs."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from papers.experiment import Measurements
from papers.published import published_table, recorded_table
from papers.statements.comparing import differences
from papers.wei.characteristics import (
    Characteristics,
    cached_downloads_kb,
    delayed_uplink_round_trips_s,
    uplink_violating_share,
)
from papers.wei.experiments import COASTS, SIZES
from papers.wei.reading import SLOW_START, CampaignRuns, table_runs
from reference_sim.intervals import Interval, mean_interval
from reference_sim.models.split_gain import slow_start_bytes, split_gain

_RATE_BIT_S, _PACKET_BYTES = 128_000.0, 1500.0
_R1_S, _R2_S = 0.03, 0.8
#: r1 across the country, for what grows with it.
_FAR_R1_S = 0.1
#: A share of the time from which a state of the sender or of its window is a phase and no accident.
_PHASE = 0.25
#: Of its largest value: a window that is full.
_FULL = 0.9


def quantities(measurements: Measurements, drawn: Mapping[str, Characteristics]) -> dict[str, Any]:
    """All of them, by the names that the table of statements uses."""
    campaign = table_runs(measurements)
    return {
        **_detection(drawn),
        **_sender(drawn["Split-TCP"], drawn["regular"]),
        **_window(drawn["Split-TCP"]),
        **_proxy(drawn["TCP proxy"]),
        **_delays(drawn["Split-TCP"], drawn["regular"]),
        **_aborts(measurements),
        "table_1": _table_1(),
        "table_2": table_2(campaign),
        **shapes(campaign),
        **_analysis(),
        **object_times(measurements["wei-object"].runs),
    }


def _detection(drawn: Mapping[str, Characteristics]) -> dict[str, Any]:
    split, regular = drawn["Split-TCP"].violating_share, drawn["regular"].violating_share
    split_s, regular_s = (delayed_uplink_round_trips_s(kind) for kind in ("Split-TCP", "regular"))
    return {
        "split_violating_share": split,
        "regular_violating_share": regular,
        "uplink_violating_share": uplink_violating_share(),
        **dict(zip(("server_sent_first_kb", "server_sent_second_kb"), cached_downloads_kb(), strict=True)),
        "only_split_violates": split > 0.6 and regular == 0.0,
        "longest_split_round_trip_s": split_s[1],
        "shortest_regular_round_trip_s": regular_s[0],
        "held_acks_show_the_split": split_s[1] < 10.0 <= regular_s[0],
    }


def _sender(split: Characteristics, regular: Characteristics) -> dict[str, Any]:
    is_bursty = split.variation > regular.variation
    return {
        "split_variation": split.variation,
        "regular_variation": regular.variation,
        "split_most_mbit_s": split.sender_bit_s.max() / 1e6,
        "regular_most_mbit_s": regular.sender_bit_s.max() / 1e6,
        "split_idle_share": split.idle_share,
        "split_is_bursty": is_bursty,
        "split_is_bursty_and_on_off": is_bursty and split.idle_share > _PHASE,
    }


def _window(split: Characteristics) -> dict[str, Any]:
    shut, full = float((split.window_bytes == 0.0).mean()), float(split.window_bytes.max())
    full_share = float((split.window_bytes >= _FULL * full).mean())
    return {
        "window_shut_share": shut,
        "window_full_share": full_share,
        "window_full_kb": full / 1e3,
        "window_shuts": shut > 0.0,
        "window_alternates": shut > 0.0 and full_share > _PHASE,
    }


def _proxy(proxy: Characteristics) -> dict[str, Any]:
    least, most = float(proxy.window_bytes.min()), float(proxy.window_bytes.max())
    longest_s = float(proxy.delay_s.max())
    is_rising = float(proxy.delay_s[-1]) > 0.99 * longest_s and float(proxy.delay_s[0]) < 5.0
    return {
        "proxy_least_window_kb": least / 1e3,
        "proxy_most_window_kb": most / 1e3,
        "proxy_window_is_constant": least >= _FULL * most,
        "proxy_rate_mbit_s": 8.0 * proxy.bytes_sent / max(proxy.sending_s, 1e-9) / 1e6,
        "proxy_sending_s": proxy.sending_s,
        "proxy_most_mbit_s": proxy.sender_bit_s.max() / 1e6,
        "proxy_sender_is_quick": proxy.sending_s < 2.0,
        "proxy_first_delay_s": proxy.delay_s[0],
        "proxy_longest_delay_s": longest_s,
        "proxy_delay_rises": is_rising,
        "proxy_delay_rises_above_200_s": is_rising and longest_s > 200.0,
    }


def _delays(split: Characteristics, regular: Characteristics) -> dict[str, Any]:
    above = float((split.delay_s > 10.0).mean())
    regular_s = float(regular.delay_s.max())
    return {
        "split_share_above_10_s": above,
        "split_longest_delay_s": float(split.delay_s.max()),
        "split_median_delay_s": float(np.median(split.delay_s)),
        "regular_longest_delay_s": regular_s,
        "split_delays_are_long": above > 0.5 and regular_s < 5.0,
    }


def _aborts(measurements: Measurements) -> dict[str, Any]:
    """How long the server's connection goes on after the mobile's abort."""
    runs = measurements["wei-aborts"].runs

    lives = {
        variant: runs[runs["variant"] == variant]["server_lives_on_s"].tolist()
        for variant in ("at once", "after 40 s", "never")
    }
    at_once, delayed = mean_interval(lives["at once"]), mean_interval(lives["after 40 s"])
    return {
        "mobile_ends_s": mean_interval([float(value) for value in runs["mobile_lives_on_s"]]),
        "server_ends_s": at_once,
        "server_ends_at_once": at_once.mean < 1.0,
        "server_ends_later_s": delayed,
        "server_ends_after_40_s": 40.0 <= delayed.mean < 41.0,
        "server_stays_min": mean_interval([value / 60.0 for value in lives["never"]]),
        "window_probes": mean_interval(runs[runs["variant"] == "never"]["window_probes"].tolist()),
    }


def _table_1() -> list[dict[str, Any]]:
    """Providers and applications of table I with the published scheme, and what an audit of the rebuilt network finds.

    Where the table has two schemes, one after the other or for some subscribers, the rebuilt network has one of them.
    """
    rows = published_table("wei", "table1_deployment").to_dict("records")
    audited = {
        (str(row["provider"]), str(row["application"])): row
        for row in recorded_table("wei", "audited", "table1").to_dict("records")
    }
    cases = []
    for row in rows:
        for provider in (str(name) for name in row if name != "application"):
            scheme, found = str(row[provider]), audited[provider, str(row["application"])]
            cases.append(
                {
                    "provider": provider,
                    "application": str(row["application"]),
                    "scheme": scheme,
                    "audited": str(found["verdict"]),
                    "audited_percent": math.floor(100.0 * float(found["probability"])),
                    "audit_finds_the_scheme": scheme.startswith(str(found["verdict"])),
                }
            )
    return cases


def table_2(campaign: CampaignRuns) -> list[dict[str, Any]]:
    """Cells of table II beside what was found for them."""
    published = published_table("wei", "table2_split_gain").set_index("file_kbytes").to_dict("index")
    return [
        {
            "coast": coast,
            "size_kb": size // 1000,
            "gain": campaign.gain(coast, size),
            "published_gain": float(published[size // 1000][f"{coast}_gain_percent"]),
            "throughput": campaign.throughput("wei-split", coast, size),
            "published_throughput": float(published[size // 1000][f"{coast}_split_kbps"]),
        }
        for coast in COASTS
        for size in SIZES
    ]


def shapes(campaign: CampaignRuns) -> dict[str, Any]:
    """How gains and throughput depend on the file and on the coast."""
    smallest = {coast: campaign.gain(coast, 1_000) for coast in COASTS}
    larger = [campaign.gain(coast, size) for coast in COASTS for size in SIZES[1:]]
    steps = [
        differences(campaign.values(scenario, coast, large), campaign.values(scenario, coast, small))
        for coast in COASTS
        for scenario in ("wei-regular", "wei-split")
        for small, large in itertools.pairwise(SIZES)
    ]
    peaks = {coast: _peak(campaign.gains(coast)) for coast in COASTS}
    has_slow_start = bool((campaign.runs["scenario"] == SLOW_START).any())
    slow_start_peaks = {coast: _peak(campaign.gains(coast, SLOW_START)) for coast in COASTS if has_slow_start}
    return {
        **{f"smallest_gain_{coast}": gain for coast, gain in smallest.items()},
        "smallest_losses": [Interval(-gain.mean, gain.half_width, gain.count) for gain in smallest.values()],
        "larger_gains": larger,
        "least_larger_gain": min(gain.mean for gain in larger),
        "most_larger_gain": max(gain.mean for gain in larger),
        **{f"peak_{coast}_kb": size // 1000 for coast, size in peaks.items()},
        **{f"slow_start_peak_{coast}_kb": size // 1000 for coast, size in slow_start_peaks.items()},
        "gains_rise_and_fall": all(
            _rises_and_falls([gain.mean for gain in campaign.gains(coast).values()]) for coast in COASTS
        ),
        "peak_at_50_kb": 50_000 in peaks.values(),
        "slow_start_peak_above_5_kb": any(size > 5_000 for size in slow_start_peaks.values()),
        "throughput_steps": steps,
        "least_throughput_step_kbit_s": min(step.mean for step in steps) / 1e3,
        **{f"east_over_west_{size}": _east_over_west(campaign, size * 1000) for size in (50, 100, 500)},
    }


def _east_over_west(campaign: CampaignRuns, size: int) -> Interval:
    east, west = campaign.gain("east", size), campaign.gain("west", size)
    return Interval(east.mean - west.mean, (east.half_width or 0.0) + (west.half_width or 0.0), 1)


def _peak(gains: Mapping[int, Interval]) -> int:
    """The size with the largest gain."""
    return max((gain.mean, size) for size, gain in gains.items())[1]


def _rises_and_falls(values: list[float]) -> bool:
    peak = values.index(max(values))
    return 0 < peak < len(values) - 1 and values[peak:] == sorted(values[peak:], reverse=True)


def _analysis() -> dict[str, Any]:
    """The closed forms of section IV-A."""
    found: dict[str, Any] = {}
    for case, slow_start in (("filled", False), ("slow_start", True)):
        gain = split_gain(_RATE_BIT_S, _PACKET_BYTES, _R1_S, _R2_S, downstream_slow_start=slow_start)
        found |= {f"{case}_short_form_s": gain.approximate_gain_s, f"{case}_gain_s": gain.gain_s}
    plain = slow_start_bytes(_RATE_BIT_S, _PACKET_BYTES, _R1_S + _R2_S)
    delayed = slow_start_bytes(_RATE_BIT_S, _PACKET_BYTES, _R1_S + _R2_S, segments_an_acknowledgement=2.0)
    far = split_gain(_RATE_BIT_S, _PACKET_BYTES, _FAR_R1_S, _R2_S, downstream_slow_start=True)
    return {
        **found,
        "gain_growth": far.gain_s / found["slow_start_gain_s"],
        "upstream_growth": _FAR_R1_S / _R1_S,
        "slow_start_kb": plain / 1e3,
        "slow_start_bytes": plain,
        "delayed_slow_start_kb": delayed / 1e3,
        "delayed_slow_start_bytes": delayed,
        "delayed_slow_start_is_longer": delayed > plain,
    }


def object_times(runs: pd.DataFrame) -> dict[str, Any]:
    """Times of the object of 1.5 MB, and what the published times say of that day's rate."""

    def times_s(scenario: str) -> list[float]:
        return [float(value) for value in runs[runs["scenario"] == scenario]["whole_s"]]

    small, large = times_s("wei-recompression"), times_s("wei-split")
    ratio = mean_interval([big / little for big, little in zip(large, small, strict=True)])
    found: dict[str, Any] = {"recompressed_s": mean_interval(small), "uncompressed_s": mean_interval(large)}
    for name, published_s in (("recompressed", 14.0), ("uncompressed", 109.0)):
        found[f"{name}_published_longer_percent"] = 100.0 * (published_s / found[f"{name}_s"].mean - 1.0)
    return {
        **found,
        "published_content_kbit_s": 1.5e6 * 8 / 109 / 1e3,
        "recompression_ratio": ratio,
        "published_ratio": 109.0 / 14.0,
    }
