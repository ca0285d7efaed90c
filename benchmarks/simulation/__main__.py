"""The simulator side by side with ns-2 and ns-3 (Debian's `ns2`, `libns3-dev`, `g++`), in one run.

`python -m benchmarks.simulation [--repetitions N]`: one bulk flow with ideal and with Linux hosts, then twenty flows of
different round trips beside cross traffic. Whole processes on one core, in turn, medians; the time of a run of one
simulated millisecond (start-up) is taken off each. Captures are written into an empty directory each time, and compared
once more with all cores, where a thread of its own writes them. Machines are noisy: ratios of one run count, not
seconds.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.speed.measure import Median, compare

if TYPE_CHECKING:
    from collections.abc import Sequence

HERE = Path(__file__).parent
SIMULATED_S = "100"
#: Of the twenty flows, of which ns-3 computes a second in about a second.
MIX_S = "20"
START_UP_S = "0.001"
NS3_LIBRARIES = ("applications", "internet", "point-to-point", "traffic-control", "network", "core")


@dataclass(frozen=True, slots=True)
class Contender:
    """A simulator: its command up to the simulated seconds, and what follows them."""

    name: str
    command: tuple[str, ...]
    rest: tuple[str, ...] = ()
    simulated_s: str = SIMULATED_S

    def line(self, seconds: str) -> list[str]:
        return [*self.command, seconds, *self.rest]

    def packets(self) -> int:
        """Data packets that arrive; the last word it prints."""
        done = subprocess.run(self.line(self.simulated_s), check=True, capture_output=True, text=True)
        return int(done.stdout.split()[-1])


@dataclass(frozen=True, slots=True)
class Speed:
    """What a contender did, start-up left out."""

    packets: int
    wall_s: float
    processor_s: float
    peak_bytes: int

    @property
    def packets_s(self) -> float:
        return self.packets / self.wall_s


def captured_or_not(captures: Path) -> list[Contender]:
    ours = (sys.executable, str(HERE / "simulate_bulk.py"))
    return [
        Contender("pepscope, SACK", (*ours, "sack")),
        Contender("pepscope, SACK, captures", (*ours, "sack"), (str(captures),)),
    ]


def contenders(work: Path, captures: Path) -> list[Contender]:
    ours = (sys.executable, str(HERE / "simulate_bulk.py"))
    script = str(HERE / "peers" / "bulk.tcl")
    return [
        Contender("pepscope, NewReno", (*ours, "new-reno")),
        *captured_or_not(captures),
        Contender("pepscope, Linux hosts", (*ours, "linux")),
        Contender("pepscope, twenty flows", (sys.executable, str(HERE / "simulate_mix.py")), simulated_s=MIX_S),
        Contender("ns-2, NewReno", ("ns", script, "Newreno", "TCPSink/DelAck")),
        Contender("ns-2, SACK", ("ns", script, "Sack1", "TCPSink/Sack1/DelAck")),
        Contender("ns-3, NewReno + SACK", (str(_built("bulk", work)),)),
        Contender("ns-3, twenty flows", (str(_built("mix", work)),), simulated_s=MIX_S),
    ]


def _built(name: str, work: Path) -> Path:
    """A program of ns-3, compiled."""
    program = work / f"{name}-ns3"
    libraries = [f"-lns3-{library}" for library in NS3_LIBRARIES]
    subprocess.run(["g++", "-O2", "-o", str(program), str(HERE / "peers" / f"{name}.cc"), *libraries], check=True)
    return program


def speeds(all_of_them: Sequence[Contender], captures: Path, repetitions: int, cores: str) -> dict[str, Speed]:
    def emptied() -> None:
        for file in captures.iterdir():
            file.unlink()

    runs = {contender.name: contender.line(contender.simulated_s) for contender in all_of_them}
    starts = {f"{contender.name}: start": contender.line(START_UP_S) for contender in all_of_them}
    medians: dict[str, Median] = compare(runs | starts, repetitions, cores, emptied)
    measured = {}
    for contender in all_of_them:
        whole, start = medians[contender.name], medians[f"{contender.name}: start"]
        measured[contender.name] = Speed(
            contender.packets(),
            whole.wall_s - start.wall_s,
            whole.processor_s - start.processor_s,
            whole.peak_bytes,
        )
    return measured


def table(measured: dict[str, Speed]) -> str:
    lines = ["| simulator | packets | wall s | processor s | packets/s | peak MiB |", "|---|---|---|---|---|---|"]
    lines += [
        f"| {name} | {speed.packets:,} | {speed.wall_s:.3f} | {speed.processor_s:.3f} "
        f"| {speed.packets_s:,.0f} | {speed.peak_bytes / 2**20:.0f} |"
        for name, speed in measured.items()
    ]
    lines += ["", "| | against | by wall time | by processor time | goal |", "|---|---|---|---|---|"]
    for ours, other, goal in (
        ("pepscope, NewReno", "ns-2, NewReno", ">= 4"),
        ("pepscope, SACK", "ns-2, SACK", ">= 4"),
        ("pepscope, Linux hosts", "ns-2, SACK", ">= 2.5"),
        ("pepscope, SACK", "ns-3, NewReno + SACK", ">= 100"),
        ("pepscope, twenty flows", "ns-3, twenty flows", ">= 100"),
        ("pepscope, SACK", "pepscope, SACK, captures", "<= 2"),
    ):
        lines.append(ratios(measured[ours], measured[other], f"{ours} | {other}", goal))
    return "\n".join(lines)


def ratios(quick: Speed, slow: Speed, names: str, goal: str) -> str:
    """How many times longer the slow one takes for as many packets."""
    share = slow.packets / quick.packets
    wall, processor = slow.wall_s / quick.wall_s / share, slow.processor_s / quick.processor_s / share
    return f"| {names} | {wall:.2f} | {processor:.2f} | {goal} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--core", default="0")
    chosen = parser.parse_args()
    every = ",".join(str(core) for core in sorted(os.sched_getaffinity(0)))
    with tempfile.TemporaryDirectory() as work, tempfile.TemporaryDirectory() as directory:
        captures = Path(directory)
        print(table(speeds(contenders(Path(work), captures), captures, chosen.repetitions, chosen.core)))
        without, captured = speeds(captured_or_not(captures), captures, chosen.repetitions, every).values()
        print(ratios(without, captured, f"pepscope, SACK | pepscope, SACK, captures; cores {every}", "<= 2"))


if __name__ == "__main__":
    main()
