"""What `make bench` compares: reading and judging beside tcptrace, tshark and a minimal C program."""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.speed.bulk_capture import BULK_CONNECTIONS, BULK_PACKETS
from benchmarks.speed.measure import Median, compare

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

HERE = Path(__file__).parent
TOP = HERE.parents[1]
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
        check=True, cwd=TOP,
    )  # fmt: skip
    ours = TOP / "target" / "release" / "examples" / "decode_rate"
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
