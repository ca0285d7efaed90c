"""Regular connections of many set-ups: how often does the detector call one split?

Each of six harmless middleboxes stands before each of twelve access links; all else is drawn as in the campaign
`detector-validation` (transfers, ends, losses, queues, clocks, faults of captures), three quarters of it with hosts
that choose as Linux, Windows or Darwin do.
`python -m benchmarks.validation.regular_setups [--draws 200] [--seed 1] [--write docs/validation/simulated.md]`
"""

from __future__ import annotations

import argparse
import sys
import textwrap
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.validation.marked_sections import write_section
from benchmarks.validation.simulated import CAMPAIGN, Judged, judge_point
from detector.corpora.validation.intervals import wilson
from pepscope.results.verdicts import Verdict
from reference_sim.library import campaign_path
from reference_sim.sweep import Campaign, Variant

SECTION = "regular set-ups"

MIDDLEBOXES: dict[str, dict[str, Any]] = {
    "router": {"routers": 3},
    "firewall": {"shifts_sequence_numbers": True, "shifts_timestamps": True, "routers": 3},
    "regulator": {"maximum_segment_size_bytes": 1300, "window_limit_bytes": 200_000, "zeroes_ip_identification": True},
    "thinner": {"acknowledgement_thinning": {"keep_one_of": 4}},
    "stripper": {"strips_timestamps": True, "strips_sack": True},
    "normaliser": {"shifts_sequence_numbers": True, "strips_timestamps": True, "zeroes_ip_identification": True},
}

ACCESS_LINKS: dict[str, dict[str, Any]] = {
    "line": {"kind": "wired"},
    "satellite": {
        "kind": "wired",
        "down": {"rate_bit_s": 30_000_000, "delay_s": 0.27, "queue_packets": 600},
        "up": {"rate_bit_s": 5_000_000, "delay_s": 0.27, "queue_packets": 300},
    },
    "jitter": {
        "kind": "impairments",
        "down": {"jitter_s": 0.01, "reordered": 0.01, "duplicated": 0.002},
        "up": {"jitter_s": 0.02, "reordered": 0.01, "duplicated": 0.002},
    },
    "CoDel": {
        "kind": "managed",
        "down": {"rate_bit_s": 8_000_000, "delay_s": 0.01, "queue": {"kind": "fq-codel"}},
        "up": {"rate_bit_s": 2_000_000, "delay_s": 0.01, "queue": {"kind": "codel"}},
    },
    "policer": {
        "kind": "policer",
        "down": {"rate_bit_s": 6_000_000, "burst_bytes": 40_000},
        "up": {"rate_bit_s": 2_000_000, "burst_bytes": 20_000},
    },
    "sleep": {"kind": "radio-states", "release_s": 1.0, "long_cycle_s": 0.32},
    "handover": {"kind": "handover", "interval_s": 3.0, "interruption_s": 0.1},
    "LTE": {"kind": "lte"},
    "LTE, fading": {"kind": "lte", "terminals": [{"down": {"fading": {"mean_sinr_db": 8.0}}}]},
    "NR": {
        "kind": "lte",
        "transmission_time_interval_s": 0.0005,
        "terminals": [{"down": {"rate_bit_s": 400_000_000}, "up": {"rate_bit_s": 60_000_000}}],
    },
    "UMTS": {
        "kind": "umts-dch",
        "down": {"rate_bit_s": 384_000, "block_error_rate": 0.1},
        "radio_link_control": {"unreported_is_lost_after_s": 0.08},
    },
    "HSDPA": {"kind": "hsdpa", "terminals": [{"mean_sinr_db": 10.0}]},
}

_HOSTS = {"server.host, mobile.host": {"choice": ["ideal", "linux", "windows", "darwin"]}}


def points(draws: int, seed: int) -> Iterator[tuple[str, str]]:
    """Set-up and scenario (JSON) of every run; each set-up has draws of its own."""
    campaign = Campaign.from_toml(campaign_path(CAMPAIGN))
    number = 0
    for box, changes in MIDDLEBOXES.items():
        for link, settings in ACCESS_LINKS.items():
            path = {
                "path[1]": {"kind": "rewriter", "name": "middlebox", **changes},
                "path[3]": {"name": "access", **settings},
            }
            setup = replace(
                campaign,
                variants=(Variant(f"{box}; {link}", path),),
                distributions={**campaign.distributions, **_HOSTS},
                draws=draws,
                seed=seed * 1_000_000 + number * draws,
            )
            number += 1
            for point in setup.points():
                yield point.variant, point.scenario.to_json()


def section(judged: list[Judged]) -> str:
    """The section of docs/validation/simulated.md."""
    false = sum(one.verdict.is_split for one in judged)
    shown = [one for one in judged if one.expectation.shows == "class"]
    confirmed = sum(one.verdict is Verdict.REGULAR for one in shown)
    low, high = wilson(false, len(judged))
    setups = len({one.variant for one in judged})
    summary = (
        f"{len(judged):,} regular connections of {setups} set-ups: {false} called split ({100 * low:.2g} to "
        f"{100 * high:.2g} %). Where the truth says that it shows, {confirmed:,} of {len(shown):,} are called regular. "
        "By set-up, called regular, and of how many:"
    )
    return f"{textwrap.fill(summary, 120)}\n\n{_table(judged)}"


def _table(judged: list[Judged]) -> str:
    regular = Counter(one.variant for one in judged if one.verdict is Verdict.REGULAR)
    split = Counter(one.variant for one in judged if one.verdict.is_split)
    every = Counter(one.variant for one in judged)
    lines = ["| | " + " | ".join(ACCESS_LINKS) + " |", "|---" + "|---:" * len(ACCESS_LINKS) + "|"]
    for box in MIDDLEBOXES:
        cells = []
        for setup in (f"{box}; {link}" for link in ACCESS_LINKS):
            alarms = f", **{split[setup]} split**" if split[setup] else ""
            cells.append(f"{regular[setup]} / {every[setup]}{alarms}")
        lines.append(f"| {box} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--draws", type=int, default=200, help="connections of each set-up")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--write", type=Path, help="a page with the marked section")
    chosen = parser.parse_args()
    runs = points(chosen.draws, chosen.seed)
    with ProcessPoolExecutor() as pool:
        judged = [one for several in pool.map(judge_point, runs, chunksize=8) for one in several]
    text = section(judged)
    print(text)
    for one in judged:
        if one.verdict not in one.expectation.right:
            print(f"\n{one.variant}, seed {one.seed}: called {one.verdict}: {one.reason}", file=sys.stderr)
    if chosen.write:
        write_section(chosen.write, SECTION, text)
    return int(any(one.verdict.is_split for one in judged))


if __name__ == "__main__":
    raise SystemExit(main())
