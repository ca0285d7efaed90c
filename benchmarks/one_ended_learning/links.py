"""Learn the shares of `detector/one_capture/likelihoods/near/near_links.json` from networks whose truth is known.

    python -m benchmarks.one_ended_learning.links DIRECTORY... [--output FILE]

A directory holds networks as `benchmarks.one_ended` and `benchmarks.one_ended_simulated` make them, of seeds that
neither choose nor score. Counted are groups of servers' captures that hold an exchange: split in the network, or not
split at all; splits inside the server's site, whose near legs are the shortest wires, are left out.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.one_ended_score.truths import GroupTruth, read_truths
from detector.one_capture.columns import VantageColumns, vantage_columns
from detector.one_capture.likelihoods.exchange_timing import ExchangeTiming, exchange_timing
from detector.one_capture.likelihoods.near.near_links import BYTES_EDGES, SPREAD_EDGES_S, link_class, spreads_s
from detector.one_capture.likelihoods.timing_tables import Floats
from detector.one_capture.networks import NetworkTable, Places, places
from pepscope.captures.capture import Capture, open_capture
from pepscope.captures.packets import Direction

#: Groups that the shares of all sizes of trains together are worth before any of one size was seen.
PRIOR_GROUPS = 4.0

#: Each class, before any group was seen at all; and how much of a class counts for itself and for those beside it,
#: since densities do not jump from one class to the next.
_ONCE, _BESIDE = 0.5, (0.25, 0.5, 0.25)


@dataclass(frozen=True, slots=True)
class ServersCapture:
    """A capture at servers: its groups, their timing, how much round trips of each vary, and by their numbers the
    truths of those that are split in the network or not at all."""

    vantage: VantageColumns
    where: Places
    timing: ExchangeTiming
    variation_s: Floats
    truths: Mapping[int, GroupTruth]


def servers_captures(directory: Path) -> Iterator[ServersCapture]:
    """The captures of these networks that hold groups of servers' sides whose truth is known."""
    for truth_file in sorted(directory.glob("*/truth.json")):
        for file, truths in read_truths(truth_file.parent).items():
            known = {
                (truth.prefix, truth.port): truth for truth in truths if truth.side == "server" and truth.host is None
            }
            capture = open_capture(str(truth_file.parent / file), tcp_needed=False)
            if known and capture.tcp_packet_count:
                yield _servers_capture(capture, known)


def _servers_capture(capture: Capture, known: Mapping[tuple[str, int], GroupTruth]) -> ServersCapture:
    vantage = vantage_columns([capture])
    where = places(vantage.columns, at_client=False, table=NetworkTable())
    timing = exchange_timing(vantage.exchanges, where, at_client=False)
    names = zip(where.network, where.port.tolist(), strict=True)
    truths = {number: known[name] for number, name in enumerate(names) if name in known}
    return ServersCapture(
        vantage, where, timing, timing.of_groups(timing.variation_s, where.member_group, len(where.network)),
        {number: truth for number, truth in truths.items() if truth.is_split_in_network or not truth.is_split},
    )  # fmt: skip


def counts(directory: Path) -> dict[str, Floats]:
    """Groups by truth (`end`, `split`), steadiness of round trips, bytes of trains and spread."""
    shape = (2, len(BYTES_EDGES) + 1, len(SPREAD_EDGES_S) + 1)
    found = {"end": np.zeros(shape), "split": np.zeros(shape)}
    for capture in servers_captures(directory):
        where, groups = capture.where, len(capture.variation_s)
        answered = np.bincount(where.member_group[capture.timing.member], minlength=groups) > 0
        train_bytes, spread_s = spreads_s(capture.vantage.senders, Direction.UP.value, where.group, groups)
        classes = np.stack(link_class(spread_s, train_bytes, capture.variation_s), axis=1)
        for number, truth in capture.truths.items():
            if answered[number] and train_bytes[number] > 0:
                found["split" if truth.is_split else "end"][tuple(classes[number].tolist())] += 1
    return found


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
    parser.add_argument("--output", type=Path, default=Path("detector/one_capture/likelihoods/near/near_links.json"))
    arguments = parser.parse_args()
    every = [counts(directory) for directory in arguments.directories]
    content = {name: shares(np.sum([each[name] for each in every], axis=0)).round(5).tolist() for name in every[0]}
    arguments.output.write_text(json.dumps(content, separators=(",", ":")) + "\n", "ascii")


if __name__ == "__main__":
    main()
