"""tshark as an oracle: its fields as rows."""

from __future__ import annotations

import re
import subprocess
from typing import TYPE_CHECKING

from tests.oracles.columns import OracleRow

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_FIELDS = (
    "frame.time_epoch",
    "tcp.stream",
    "ip.src",
    "ip.dst",
    "ipv6.src",
    "ipv6.dst",
    "tcp.srcport",
    "tcp.dstport",
    "tcp.seq_raw",
    "tcp.ack_raw",
    "tcp.flags",
    "tcp.window_size",
    "tcp.len",
    "ip.id",
    "ip.ttl",
    "ipv6.hlim",
    "tcp.options.timestamp.tsval",
    "tcp.options.timestamp.tsecr",
    "tcp.options.sack_le",
    "tcp.options.sack_re",
    "tcp.options.mss_val",
    "tcp.options.wscale.shift",
    "tcp.options.sack_perm",
    "tcp.analysis.ack_rtt",
    "tcp.analysis.retransmission",
    "tcp.analysis.fast_retransmission",
    "tcp.analysis.spurious_retransmission",
    "tcp.analysis.out_of_order",
    "tcp.analysis.zero_window_probe",
    "tcp.analysis.keep_alive",
    "frame.protocols",
    "frame.interface_id",
)
_LABELS = tuple(field for field in _FIELDS if field.startswith("tcp.analysis.") and field != "tcp.analysis.ack_rtt")

#: Application dissectors cost time and say nothing of TCP.
_SETTINGS = (
    "tcp.desegment_tcp_streams:FALSE",
    "tcp.try_heuristic_first:FALSE",
    "tcp.relative_sequence_numbers:FALSE",
    # What only a control connection would say of the pseudo-wires in tests.captures.layers.
    "l2tp.cookie_size:4 Byte Cookie",
    "l2tp.l2_specific:None",
)
_DECODE_AS = ("l2tp.pw_type==0,eth", "mpls.label==3000,pwethcw")


def tshark_rows(path: Path) -> list[OracleRow]:
    """Every TCP packet of the innermost headers, in file order."""
    return [row for _, row in _numbered_rows(path)]


def tshark_rows_of_each(paths: Sequence[Path], scratch: Path) -> dict[Path, list[OracleRow]]:
    """`tshark_rows` of captures that have no pair of addresses in common, each of one interface.

    One run reads them all, since tshark takes longer to start than to read one of them. It keeps state by addresses, so
    that it says of each what it says of it alone.
    """
    merged = scratch / "merged.pcapng"
    subprocess.run(["mergecap", "-a", "-I", "none", "-w", str(merged), *map(str, paths)], check=True)
    found: dict[Path, list[OracleRow]] = {path: [] for path in paths}
    for interface, row in _numbered_rows(merged):
        found[paths[interface]].append(row)
    return found


def _numbered_rows(path: Path) -> list[tuple[int, OracleRow]]:
    """Rows, each with the number of the interface that the packet was captured on."""
    command = ["tshark", "-n", "-r", str(path), "-Y", "tcp && !icmp && !icmpv6", "-T", "fields"]
    command += ["-E", "occurrence=a", "-E", "aggregator=;", "-E", "separator=/t"]
    for setting in _SETTINGS:
        command += ["-o", setting]
    for rule in _DECODE_AS:
        command += ["-d", rule]
    for field in _FIELDS:
        command += ["-e", field]
    output = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    rows = [dict(zip(_FIELDS, line.split("\t"), strict=True)) for line in output.splitlines()]
    return [(int(row["frame.interface_id"] or 0), _row(row)) for row in rows]


def tshark_fields(line: str, *fields: str) -> list[tuple[str, ...]]:
    """What tshark prints of the packets that a line for a shell selects: a row a packet."""
    command = " ".join([line, "-T fields", *(f"-e {field}" for field in fields)])
    done = subprocess.run(["bash", "-o", "pipefail", "-c", command], capture_output=True, text=True, check=True)
    return [tuple(row.split("\t")) for row in done.stdout.splitlines()]


def _row(every: dict[str, str]) -> OracleRow:
    # Of headers in one another, the innermost comes last.
    field = {name: values.split(";")[-1] for name, values in every.items()}
    edges = zip(every["tcp.options.sack_le"].split(";"), every["tcp.options.sack_re"].split(";"), strict=True)
    # The innermost IP header is the last of the two that the protocol list names.
    layers = [layer for layer in field["frame.protocols"].split(":") if layer in ("ip", "ipv6")]
    version_6 = layers[-1] == "ipv6"
    stamp = field["tcp.options.timestamp.tsval"]
    return OracleRow(
        _nanoseconds(field["frame.time_epoch"]),
        field["ipv6.src"] if version_6 else field["ip.src"],
        int(field["tcp.srcport"]),
        field["ipv6.dst"] if version_6 else field["ip.dst"],
        int(field["tcp.dstport"]),
        int(field["tcp.seq_raw"]),
        int(field["tcp.ack_raw"]),
        int(field["tcp.flags"], 16) & 0x1FF,
        int(field["tcp.window_size"]),
        int(field["tcp.len"]),
        0 if version_6 else int(field["ip.id"], 16),
        int(field["ipv6.hlim"] if version_6 else field["ip.ttl"]),
        (int(stamp), int(field["tcp.options.timestamp.tsecr"])) if stamp else None,
        tuple(sorted((int(left), int(right)) for left, right in edges if left)),
        _optional(field["tcp.options.mss_val"]),
        _optional(field["tcp.options.wscale.shift"]),
        bool(field["tcp.options.sack_perm"]),
        int(field["tcp.stream"]),
        True,
        _nanoseconds(field["tcp.analysis.ack_rtt"]) if field["tcp.analysis.ack_rtt"] else None,
        frozenset(label.removeprefix("tcp.analysis.") for label in _LABELS if field[label]),
    )


def _optional(text: str) -> int | None:
    return int(text) if text else None


def _nanoseconds(text: str) -> int:
    match = re.fullmatch(r"(\d+)\.(\d{9})", text)
    if match is None:
        raise ValueError(f"not a time of nine decimals: {text}")
    return int(match[1]) * 10**9 + int(match[2])
