"""What judging terabytes of captures like these takes: measured on a sample, by processor time, and multiplied.

    python -m benchmarks.speed.corpora_scale DIRECTORY [--terabytes 1 10 100] [--work DIR]

Without a directory, samples of two kinds are made: web traffic of which 128 bytes of each packet were kept, and large
transfers with whole packets. docs/guide/scale.md has the formula.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import multiprocessing
import os
import resource
import shutil
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.speed.bulk_capture import make_bulk
from benchmarks.speed.captures import WORK
from benchmarks.speed.corpora import split
from benchmarks.speed.web_capture import make_web

_BECOME_SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER, prctl(2)
_HEADER, _RECORD = 24, 16
_TERABYTE = 10**12


@dataclass(frozen=True, slots=True)
class Cost:
    """What a sample took; processor time and the peak are those of all processes, the peak of the largest."""

    captures: int
    packets: int
    connections: int
    source_bytes: int
    result_bytes: int
    processor_s: float
    peak_bytes: int

    def line(self, name: str) -> str:
        """A row of the guide's table of rates."""
        return (
            f"| {name} | {self.source_bytes / self.captures / 1e6:,.1f} MB, "
            f"{self.packets / self.captures:,.0f} packets, {self.connections / self.captures:,.0f} connections | "
            f"{self.source_bytes / self.processor_s / 1e6:,.0f} MB/s | "
            f"{self.packets / self.processor_s / 1e3:,.0f} k/s | "
            f"{self.peak_bytes / 2**20:,.0f} MiB | {self.result_bytes / self.source_bytes:.2%} |"
        )

    def terabytes(self, name: str, number: float) -> str:
        """A row of the guide's table of sizes: hours of one core, of 32, and the disk of the results."""
        hours = number * _TERABYTE / self.source_bytes * self.processor_s / 3600
        disk = number * _TERABYTE * self.result_bytes / self.source_bytes
        return f"| {name} | {number:g} TB | {hours:,.1f} | {hours / 32:,.1f} | {disk / 1e9:,.1f} GB |"


def measured(source: Path, output: Path) -> Cost:
    """Judge a directory with one process."""
    shutil.rmtree(output, ignore_errors=True)
    command = [
        sys.executable,
        "-m",
        "pepscope",
        "audit-captures",
        str(source),
        "-o",
        str(output),
        "--jobs",
        "1",
        "--json",
    ]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    # Workers outlive the fork server that started them for a moment: all are waited for here.
    ctypes.CDLL(None).prctl(_BECOME_SUBREAPER, 1, 0, 0, 0)
    summary = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
    with suppress(ChildProcessError):
        while True:
            os.wait()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    import pyarrow.parquet as pq

    packets = pq.read_table(output / "captures.parquet", columns=["packets"])["packets"].to_pylist()
    return Cost(
        summary["captures"], sum(packets), summary["connections"], _size(source), _size(output),
        after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, after.ru_maxrss * 1024,
    )  # fmt: skip


def _size(directory: Path) -> int:
    return sum(path.stat().st_size for path in directory.rglob("*") if path.is_file())


def _whole_packets(capture: Path, target: Path) -> Path:
    """The capture with as many bytes of each packet as its length says, zeros behind those that were kept."""
    content = capture.read_bytes()
    at = _HEADER
    with target.open("wb") as stream:
        stream.write(content[:16] + np.uint32(65535).tobytes() + content[20:_HEADER])
        while at < len(content):
            kept, length = np.frombuffer(content, np.uint32, 2, at + 8)
            data = content[at + _RECORD : at + _RECORD + int(kept)]
            stream.write(content[at : at + 8] + length.tobytes() * 2 + data.ljust(int(length), b"\0"))
            at += _RECORD + int(kept)
    return target


def _samples(work: Path) -> dict[str, Path]:
    """Directories with some captures of each kind."""
    headers, whole = work / "headers", work / "whole"
    for directory in (headers, whole):
        directory.mkdir(parents=True)
    web = make_web(work, 2_000_000, 94_000)
    split(web, 100_000, headers)
    web.unlink()
    ends = make_bulk(work, 800_000)
    full = _whole_packets(ends[0], work / "full.pcap")
    for path in ends:
        path.unlink()
    split(full, 100_000, whole)
    full.unlink()
    return {"web, 128 bytes a packet": headers, "large transfers, whole packets": whole}


def main() -> int:
    """Measure and print both tables of the guide."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", nargs="?", type=Path, help="captures of yours; some gigabytes will do")
    parser.add_argument("--terabytes", type=float, nargs="+", default=[1, 10, 100])
    parser.add_argument("--work", type=Path, default=WORK / "corpora_scale")
    options = parser.parse_args()
    shutil.rmtree(options.work, ignore_errors=True)
    options.work.mkdir(parents=True)
    # In processes of their own: the peak of a process counts what the one that started it held.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context, max_tasks_per_child=1) as pool:
        given = options.directory
        samples = {"yours": given} if given else pool.submit(_samples, options.work).result()
        costs = {
            name: pool.submit(measured, source, options.work / "result").result() for name, source in samples.items()
        }
    print("| captures | each | bytes | packets | memory of a worker | results |\n|---|---|---:|---:|---:|---:|")
    for name, cost in costs.items():
        print(cost.line(name))
    print("\n| captures | | core hours | hours on 32 cores | disk |\n|---|---|---:|---:|---:|")
    for name, cost in costs.items():
        for number in options.terabytes:
            print(cost.terabytes(name, number))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
