"""Side by side with tcptrace, tshark and a minimal C program, in one run: `make bench`, or with names of benchmarks.

Ratios are what counts: machines are noisy, so the processor time stands beside the wall time.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import sysconfig
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks import captures
from benchmarks.bulk_capture import BULK_CONNECTIONS, BULK_PACKETS
from benchmarks.measure import Median, compare

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

HERE = Path(__file__).parent
RESULTS = HERE / "results" / "latest.json"
TSHARK_PACKETS = 200_000
TSHARK_FIELDS = (
    "frame.time_epoch", "tcp.stream", "ip.src", "ip.dst", "tcp.srcport", "tcp.dstport", "tcp.seq_raw", "tcp.ack_raw",
    "tcp.flags", "tcp.window_size", "tcp.len", "tcp.analysis.ack_rtt", "tcp.analysis.retransmission",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Claim:
    """One line of the table: what was compared, the ratio, and what it has to be."""

    benchmark: str
    what: str
    value: float
    unit: str
    wanted: str
    holds: bool


@dataclass(frozen=True, slots=True)
class Bench:
    """What every benchmark is given."""

    work: Path
    repetitions: int
    core: int

    def compare(self, **commands: Sequence[object]) -> dict[str, Median]:
        """Medians of the commands, run in turn."""
        named = {name: [str(word) for word in command] for name, command in commands.items()}
        return compare(named, self.repetitions, self.core)

    def path(self, name: str) -> Path:
        """A working file."""
        return self.work / name


def pepscope(*arguments: object) -> list[object]:
    """The installed command of the interpreter that runs the benchmarks."""
    return [Path(sysconfig.get_path("scripts")) / "pepscope", *arguments]


Outcome = tuple[dict[str, Median], list[Claim]]


def inspect_bulk(bench: Bench) -> Outcome:
    """8 M packets in 16 connections against tcptrace."""
    return _against_tcptrace(bench, "inspect_bulk", bench.path("bulk.sender.pcap"), 3.0)


def inspect_web(bench: Bench) -> Outcome:
    """4 M packets in 188,000 connections against tcptrace."""
    return _against_tcptrace(bench, "inspect_web", bench.path("web.pcap"), 10.0)


def _against_tcptrace(bench: Bench, name: str, capture: Path, wanted: float) -> Outcome:
    medians = bench.compare(
        pepscope=pepscope("inspect", "--json", capture),
        tcptrace=["tcptrace", "-lr", capture],
    )
    return medians, _ratios(name, "tcptrace", medians, wanted)


def _ratios(name: str, peer: str, medians: dict[str, Median], wanted: float) -> list[Claim]:
    ours, theirs = medians["pepscope"], medians[peer]
    wall = theirs.wall_s / ours.wall_s
    processor = theirs.processor_s / ours.processor_s
    return [
        Claim(name, f"times {peer}, wall", wall, "x", f">= {wanted:g}", wall >= wanted),
        Claim(name, f"times {peer}, processor", processor, "x", f">= {wanted:g}", processor >= wanted),
    ]


def fields(bench: Bench) -> Outcome:
    """Packets a second against `tshark -T fields`, which gets only the first 200,000 packets of the bulk capture."""
    words = [word for field in TSHARK_FIELDS for word in ("-e", field)]
    medians = bench.compare(
        pepscope=pepscope("inspect", "--json", bench.path("bulk.sender.pcap")),
        tshark=["tshark", "-r", bench.path("cut.pcap"), "-T", "fields", *words],
    )
    ours = BULK_PACKETS / medians["pepscope"].wall_s
    theirs = TSHARK_PACKETS / medians["tshark"].wall_s
    return medians, [Claim("fields", "times tshark, packets/s", ours / theirs, "x", ">= 100", ours >= 100 * theirs)]


def detect_pair(bench: Bench) -> Outcome:
    """`detect` on two captures of 8 M packets against tcptrace reading both."""
    both = bench.path("bulk.sender.pcap"), bench.path("bulk.receiver.pcap")
    medians = bench.compare(pepscope=pepscope("detect", "--json", *both), tcptrace=["tcptrace", "-lr", *both])
    return medians, _ratios("detect_pair", "tcptrace", medians, 1.0)


def detect_split(bench: Bench) -> Outcome:
    """`detect` on 300 split connections of 6,139 packets against tcptrace reading both files."""
    both = bench.path("split.server.pcap"), bench.path("split.mobile.pcap")
    medians = bench.compare(pepscope=pepscope("detect", "--json", *both), tcptrace=["tcptrace", "-n", "-lr", *both])
    return medians, _ratios("detect_split", "tcptrace", medians, 1.0)


def detect_mixed(bench: Bench) -> Outcome:
    """`detect` on 300 simulated connections, half of them split, against tcptrace reading both files."""
    both = bench.path("mixed.server.pcap"), bench.path("mixed.mobile.pcap")
    medians = bench.compare(pepscope=pepscope("detect", "--json", *both), tcptrace=["tcptrace", "-n", "-lr", *both])
    return medians, _ratios("detect_mixed", "tcptrace", medians, 1.0)


def detect_web(bench: Bench) -> Outcome:
    """`detect` on 47,000 connections at both ends, to JSON and to Parquet, against tcptrace reading both."""
    both = bench.path("web.client.pcap"), bench.path("web.server.pcap")
    medians = bench.compare(
        pepscope=pepscope("detect", "--json", *both),
        parquet=pepscope("detect", "--parquet", bench.path("web.parquet"), *both),
        tcptrace=["tcptrace", "-n", "-lr", *both],
    )
    return medians, _ratios("detect_web", "tcptrace", medians, 1.0)


def start_up(bench: Bench) -> Outcome:
    """How long until help is there, and until a capture of ten packets is analysed."""
    small = bench.path("small.pcap")
    medians = bench.compare(
        help=pepscope("--help"),
        inspect_ten=pepscope("inspect", "--json", small),
        detect_ten=pepscope("detect", "--json", small),
    )
    limits = {"help": 0.15, "inspect_ten": 0.5, "detect_ten": 0.5}
    return medians, [
        Claim("start_up", name, medians[name].wall_s, "s", f"< {limit}", medians[name].wall_s < limit)
        for name, limit in limits.items()
    ]


#: Everything that one capture has, held in memory at once: summaries, packet columns and payload samples.
_HOLD_COLUMNS = """
import sys
from pepscope.captures.capture import open_capture
capture = open_capture(sys.argv[1], memory_bytes=8 << 30)
held = [capture.packets(connection.id) for connection in capture.connections]
assert sum(map(len, held)) == capture.tcp_packet_count
"""


def memory(bench: Bench) -> Outcome:
    """Peak memory: bytes a packet with all columns in memory, and what a limit of 256 MiB makes of it.

    `inspect` keeps no packet columns, so it says nothing of bytes a packet; the library and `detect` do.
    """
    limit = 256 << 20
    capture, other, web = bench.path("bulk.sender.pcap"), bench.path("bulk.receiver.pcap"), bench.path("web.pcap")
    small = bench.path("small.pcap")
    medians = bench.compare(
        small_columns=[sys.executable, "-c", _HOLD_COLUMNS, small],
        bulk_columns=[sys.executable, "-c", _HOLD_COLUMNS, capture],
        small_detect=pepscope("detect", "--json", small),
        bulk_detect=pepscope("detect", "--json", "--memory", "8GiB", capture, other),
        detect_limited=pepscope("detect", "--json", "--memory", "256MiB", capture, other),
        bulk_limited=pepscope("inspect", "--json", "--memory", "256MiB", capture),
        web_limited=pepscope("inspect", "--json", "--memory", "256MiB", web),
    )
    each = (medians["bulk_columns"].peak_bytes - medians["small_columns"].peak_bytes) / BULK_PACKETS
    both = (medians["bulk_detect"].peak_bytes - medians["small_detect"].peak_bytes) / (2 * BULK_PACKETS)
    claims = [
        Claim("memory", "columns, bytes a packet", each, "B", "<= 100", each <= 100),
        Claim("memory", "detect, bytes a packet", both, "B", "<= 100", both <= 100),
    ]
    judging = 250 * 2 * BULK_PACKETS // BULK_CONNECTIONS
    for name, allowed in (("bulk_limited", limit), ("web_limited", limit), ("detect_limited", limit + judging)):
        peak = medians[name].peak_bytes
        wanted = f"<= {allowed / 2**20:.0f}"
        claims.append(Claim("memory", f"{name} to 256 MiB", peak / 2**20, "MiB", wanted, peak <= allowed))
    return medians, claims


def decode(bench: Bench) -> Outcome:
    """Reading and decoding alone, against a minimal C program that does as much as one core can."""
    comparator = bench.path("c_limit")
    compiler = shutil.which("cc")
    if compiler is None:
        raise SystemExit("A C compiler (cc) is needed for the benchmark 'decode'.")
    subprocess.run([compiler, "-O3", "-march=native", "-o", comparator, HERE / "c_limit.c"], check=True)
    subprocess.run(
        ["cargo", "build", "--quiet", "--release", "--package", "pepscope-wire", "--example", "decode_rate"],
        check=True, cwd=HERE.parent,
    )  # fmt: skip
    ours = HERE.parent / "target" / "release" / "examples" / "decode_rate"
    capture = bench.path("bulk.sender.pcap")
    medians = bench.compare(pepscope=[ours, capture, 1], c_limit=[comparator, capture])
    ratio = medians["pepscope"].wall_s / medians["c_limit"].wall_s
    return medians, [Claim("decode", "time over the C limit", ratio, "x", "<= 2", ratio <= 2)]


BENCHMARKS: dict[str, Callable[[Bench], Outcome]] = {
    "start_up": start_up,
    "inspect_bulk": inspect_bulk,
    "inspect_web": inspect_web,
    "fields": fields,
    "detect_pair": detect_pair,
    "detect_split": detect_split,
    "detect_mixed": detect_mixed,
    "detect_web": detect_web,
    "memory": memory,
    "decode": decode,
}


def prepare(work: Path) -> None:
    """Make the captures that are not there yet."""
    work.mkdir(parents=True, exist_ok=True)
    captures.make_missing(work)
    cut = work / "cut.pcap"
    if not cut.exists():
        subprocess.run(
            ["editcap", "-F", "nsecpcap", "-r", work / "bulk.sender.pcap", cut, f"1-{TSHARK_PACKETS}"], check=True
        )


def main() -> int:
    """Run the named benchmarks (all by default), print the table, keep the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help=f"which of {', '.join(BENCHMARKS)} (default: all)")
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--core", type=int, default=min(os.sched_getaffinity(0)))
    parser.add_argument("--work", type=Path, default=captures.WORK)
    arguments = parser.parse_args()
    if unknown := set(arguments.names) - set(BENCHMARKS):
        parser.error(f"no such benchmark: {', '.join(sorted(unknown))}")
    prepare(arguments.work)
    bench = Bench(arguments.work, arguments.repetitions, arguments.core)
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    everything_holds = True
    for name in arguments.names or BENCHMARKS:
        medians, claims = BENCHMARKS[name](bench)
        _print(name, medians, claims)
        results[name] = {
            "medians": {command: asdict(median) for command, median in medians.items()},
            "claims": [asdict(claim) for claim in claims],
        }
        RESULTS.parent.mkdir(exist_ok=True)
        RESULTS.write_text(json.dumps(results, indent=1) + "\n")
        everything_holds &= all(claim.holds for claim in claims)
    return 0 if everything_holds else 1


def _size(median: Median) -> str:
    """Peak memory; values below the launcher's own size cannot be distinguished."""
    sign = "<" if median.peak_bytes <= median.floor_bytes else " "
    return f"{sign}{median.peak_bytes / 2**20:8.1f} MiB"


def _print(name: str, medians: dict[str, Median], claims: list[Claim]) -> None:
    print(f"\n{name}")
    for command, median in medians.items():
        print(
            f"  {command:14} wall {median.wall_s:8.3f} s   processor {median.processor_s:8.3f} s"
            f"   peak {_size(median)}   of {median.runs} runs"
        )
    for claim in claims:
        mark = "holds" if claim.holds else "FAILS"
        print(f"  {claim.what:28} {claim.value:9.3f} {claim.unit:4} wanted {claim.wanted:9} {mark}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
