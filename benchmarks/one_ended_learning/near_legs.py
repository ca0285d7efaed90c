"""Learn what near legs are like from networks whose truth is known: `first_words.json` and `near_variation.json` of
`detector/one_capture/senders`.

    python -m benchmarks.one_ended_learning.near_legs DIRECTORY... [--output FOLDER]

A directory holds networks as `benchmarks.one_ended` and `benchmarks.one_ended_simulated` make them, of seeds that
neither choose nor score. Counted are groups of servers' captures: split in the network, or not split at all, and then
those of which even fast answers are late. Splits inside the server's site are left out.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np

from benchmarks.one_ended_learning.links import ServersCapture, servers_captures, shares
from detector.one_capture.members import quantiles
from detector.one_capture.senders.first_words import COUNT_EDGES, SHARE_EDGES, first_words_s, words_class
from detector.one_capture.senders.near_variation import VARIATION_EDGES_S, variation_class

#: Answers end to end are late where the 20 % quantile of a group's takes so long beyond the transport (s).
_LATE_S, _FAST = 0.01, 0.2


class _Counts:
    """Groups by truth (`end`, `split`): by steadiness of round trips, how many first words, and how many at once; and
    by how much round trips vary."""

    def __init__(self) -> None:
        words = (2, len(COUNT_EDGES) + 1, len(SHARE_EDGES) + 1)
        variations = len(VARIATION_EDGES_S) + 1
        self.words = {name: np.zeros(words) for name in ("end", "split")}
        # In three axes, as `shares` has them.
        self.variation = {name: np.zeros((1, 1, variations)) for name in ("end", "split")}


def count(counts: _Counts, capture: ServersCapture) -> None:
    """Count the groups of a capture."""
    vantage, where, variation_s = capture.vantage, capture.where, capture.variation_s
    groups, timing = len(variation_s), capture.timing
    fast_s = quantiles(timing.excess_s, where.member_group[timing.member], groups, _FAST)
    words_s = first_words_s(vantage.exchanges, vantage.columns)
    speaks = np.bincount(where.group[~np.isnan(words_s)], minlength=groups) > 0
    words, varies = np.stack(words_class(words_s, where.group, variation_s), axis=1), variation_class(variation_s)
    for number, truth in capture.truths.items():
        if np.isnan(fast_s[number]) or not (truth.is_split or fast_s[number] > _LATE_S):
            continue
        name = "split" if truth.is_split else "end"
        if speaks[number]:
            counts.words[name][tuple(words[number].tolist())] += 1
        if not np.isnan(variation_s[number]):
            counts.variation[name][0, 0, varies[number]] += 1


def main() -> None:
    """Learn and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directories", nargs="+", type=Path)
    parser.add_argument("--output", type=Path, default=Path("detector/one_capture/senders"))
    arguments = parser.parse_args()
    counts = _Counts()
    for directory in arguments.directories:
        for capture in servers_captures(directory):
            count(counts, capture)
    words = {name: shares(of).round(5).tolist() for name, of in counts.words.items()}
    variation = {name: shares(of)[0, 0].round(5).tolist() for name, of in counts.variation.items()}
    for name, content in (("first_words", words), ("near_variation", variation)):
        (arguments.output / f"{name}.json").write_text(json.dumps(content, separators=(",", ":")) + "\n", "ascii")


if __name__ == "__main__":
    main()
