"""The speed of `audit-captures` on many small captures beside one of the same packets, and of two processes beside one.

    python -m benchmarks.speed.corpora [--captures 200] [--packets 20000] [--work DIR]

Each small capture lies in a directory of its own, so that it is no part of a series. Wall time counts; the machine must
be otherwise idle. A part of the captures is damaged (`--broken`), and a second run of the same corpus must find
everything there.
"""

from __future__ import annotations

import argparse
import json
import shutil
import struct
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.speed.captures import WORK
from benchmarks.speed.web_capture import WEB_CONNECTIONS, WEB_PACKETS, make_web

_HEADER, _RECORD = 24, struct.Struct("<IIII")


def split(capture: Path, packets: int, directory: Path) -> int:
    """Cut a pcap file into files of so many packets; gives their number."""
    content = capture.read_bytes()
    at, start, seen, number = _HEADER, _HEADER, 0, 0
    while at < len(content):
        at += _RECORD.size + _RECORD.unpack_from(content, at)[2]
        seen += 1
        if seen == packets or at >= len(content):
            folder = directory / f"{number:05d}"
            folder.mkdir(parents=True)
            (folder / "part.pcap").write_bytes(content[:_HEADER] + content[start:at])
            start, seen, number = at, 0, number + 1
    return number


def audited(source: Path, output: Path, jobs: int) -> tuple[float, dict[str, Any]]:
    """Wall time of one audit, and its summary."""
    started = time.monotonic()
    command: list[str | Path] = [sys.executable, "-m", "pepscope", "audit-captures", source, "-o", output]
    command += ["--jobs", str(jobs), "--json"]
    done = subprocess.run(command, capture_output=True, check=True)
    return time.monotonic() - started, json.loads(done.stdout)


def main() -> int:
    """Make, measure, compare. The status is 1 where tables differ."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--captures", type=int, default=200)
    parser.add_argument("--packets", type=int, default=20_000)
    parser.add_argument("--broken", type=float, default=0.05, help="share of captures that are cut in a packet")
    parser.add_argument("--work", type=Path, default=WORK / "corpora")
    options = parser.parse_args()
    shutil.rmtree(options.work, ignore_errors=True)
    options.work.mkdir(parents=True)
    total = options.captures * options.packets
    whole = make_web(options.work, total, total * WEB_CONNECTIONS // WEB_PACKETS)
    big = options.work / "big"
    big.mkdir()
    whole = whole.rename(big / "whole.pcap")
    many = options.work / "many"
    count = split(whole, options.packets, many)
    for number in range(round(options.broken * count)):
        path = many / f"{number * count // round(options.broken * count):05d}" / "part.pcap"
        path.write_bytes(path.read_bytes()[:-9])
    times = {}
    for name, source, jobs in (("one capture", big, 1), ("many", many, 1), ("many, two processes", many, 2)):
        times[name], summary = audited(source, options.work / f"out-{name}", jobs)
        print(f"{name:22} {times[name]:7.1f} s  {summary['connections']:,} connections, {summary['verdicts']}")
    again, resumed = audited(many, options.work / "out-many", 1)
    print(f"{'again':22} {again:7.1f} s  {resumed['resumed']:,} of {resumed['units']:,} there")
    print(f"many beside one: {times['one capture'] / times['many']:.2f} of its speed")
    print(f"two processes beside one: {times['many'] / times['many, two processes']:.2f}")
    return int(resumed["resumed"] != resumed["units"] or summary["verdicts"] != resumed["verdicts"])


if __name__ == "__main__":
    raise SystemExit(main())
