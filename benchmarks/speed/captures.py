"""The captures that the benchmarks read: realistic TCP, generated in seconds, the same on every machine.

- bulk: 8 M packets in 16 connections, seen at the sender and, in a second file, at the receiver;
- web: 4 M packets in 188,000 connections on fewer four-tuples;
- split: 300 split connections, 6,139 packets each in both files together, copies of the example;
- mixed: 300 connections of many kinds, half of them split, from the simulator, with drift, a clock step and losses;
- web pair: 1 M packets in 47,000 such connections, seen at the clients and, in a second file, at the server.

Delayed acknowledgements, timestamps, SACK, losses with fast retransmission, queueing delay, slow start, resets, port
reuse. The two files of a pair come from one transfer, so that `detect` has a true pair to judge.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from benchmarks.speed.bulk_capture import bulk_tables, make_bulk
from benchmarks.speed.mixed_capture import make_mixed
from benchmarks.speed.packet_table import write_pcap
from benchmarks.speed.split_capture import make_split
from benchmarks.speed.web_capture import make_web, make_web_pair

WORK = Path(__file__).parents[1] / "work"


def make_small(directory: Path) -> Path:
    """Ten packets of one connection, for start-up."""
    path = directory / "small.pcap"
    write_pcap(path, bulk_tables(0, 4)[0].take(np.arange(10)))
    return path


def make_missing(directory: Path) -> None:
    """Write those captures that `directory` does not hold yet."""
    if not (directory / "bulk.receiver.pcap").exists():
        make_bulk(directory)
    if not (directory / "web.pcap").exists():
        make_web(directory)
    if not (directory / "split.mobile.pcap").exists():
        make_split(directory)
    if not (directory / "mixed.mobile.pcap").exists():
        make_mixed(directory)
    if not (directory / "web.server.pcap").exists():
        make_web_pair(directory)
    make_small(directory)


def main() -> None:
    """Make the captures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--directory", type=Path, default=WORK)
    directory: Path = parser.parse_args().directory
    directory.mkdir(parents=True, exist_ok=True)
    make_missing(directory)


if __name__ == "__main__":
    main()
