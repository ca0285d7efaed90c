"""Learn the shares of `detector/one_capture/likelihoods/near_links.json` from networks whose truth is known.

    python -m benchmarks.one_ended_links DIRECTORY... [--output FILE]

A directory holds networks as `benchmarks.one_ended` and `benchmarks.one_ended_simulated` make them, of seeds that
neither choose nor score. Counted are groups of servers' captures that hold an exchange: split in the network, or not
split at all; splits inside the server's site, whose near legs are the shortest wires, are left out.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.one_ended_score.truths import GroupTruth, read_truths
from detector.one_capture.likelihoods.exchange_timing import exchange_timing
from detector.one_capture.likelihoods.near_links import BYTES_EDGES, SPREAD_EDGES_S, link_class, spreads_s
from detector.one_capture.likelihoods.timing_tables import Floats
from detector.one_capture.networks import NetworkTable, places
from pepscope.captures.capture import open_capture
from pepscope.captures.packets import Direction

#: Groups that the shares of all sizes of trains together are worth before any of one size was seen.
PRIOR_GROUPS = 4.0

#: Each class, before any group was seen at all; and how much of a class counts for itself and for those beside it,
#: since densities do not jump from one class to the next.
_ONCE, _BESIDE = 0.5, (0.25, 0.5, 0.25)


def counts(directory: Path) -> dict[str, Floats]:
    """Groups by truth (`end`, `split`), steadiness of round trips, bytes of trains and spread."""
    shape = (2, len(BYTES_EDGES) + 1, len(SPREAD_EDGES_S) + 1)
    found = {"end": np.zeros(shape), "split": np.zeros(shape)}
    for truth_file in sorted(directory.glob("*/truth.json")):
        for file, truths in read_truths(truth_file.parent).items():
            for name, place in _of_capture(truth_file.parent / file, truths):
                found[name][place] += 1
    return found


def _of_capture(path: Path, truths: list[GroupTruth]) -> Iterator[tuple[str, tuple[int, int, int]]]:
    known = {(truth.prefix, truth.port): truth for truth in truths if truth.side == "server" and truth.host is None}
    capture = open_capture(str(path), tcp_needed=False)
    if not known or not capture.tcp_packet_count:
        return
    where = places(capture.connection_columns(), at_client=False, table=NetworkTable())
    groups = len(where.network)
    timing = exchange_timing(capture.exchanges(), where, at_client=False)
    variation_s = timing.of_groups(timing.variation_s, where.member_group, groups)
    answered = np.bincount(where.member_group[timing.member], minlength=groups) > 0
    of_connection = where.member_group[where.member]
    train_bytes, spread_s = spreads_s(capture.senders(), Direction.UP.value, of_connection, groups)
    classes = np.stack(link_class(spread_s, train_bytes, variation_s), axis=1)
    for number in np.flatnonzero(answered & (train_bytes > 0)).tolist():
        truth = known.get((where.network[number], int(where.port[number])))
        if truth is not None and (truth.is_split_in_network or not truth.is_split):
            steady, size, spread = classes[number].tolist()
            yield ("split" if truth.is_split else "end"), (steady, size, spread)


def shares(of: Floats) -> Floats:
    """Of the last axis: as seen, with `PRIOR_GROUPS` of what all sizes of trains show."""
    padded = np.concatenate([of[..., :1], of, of[..., -1:]], axis=-1)
    spread = np.zeros_like(of)
    for place, share in enumerate(_BESIDE):
        spread += share * padded[..., place : place + of.shape[-1]]
    every = spread.sum(axis=1, keepdims=True) + _ONCE
    seen = spread + PRIOR_GROUPS * every / every.sum(axis=-1, keepdims=True)
    found: Floats = seen / seen.sum(axis=-1, keepdims=True)
    return found


def main() -> None:
    """Learn and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directories", nargs="+", type=Path)
    parser.add_argument("--output", type=Path, default=Path("detector/one_capture/likelihoods/near_links.json"))
    arguments = parser.parse_args()
    every = [counts(directory) for directory in arguments.directories]
    content = {name: shares(np.sum([each[name] for each in every], axis=0)).round(5).tolist() for name in every[0]}
    arguments.output.write_text(json.dumps(content, separators=(",", ":")) + "\n", "ascii")


if __name__ == "__main__":
    main()
