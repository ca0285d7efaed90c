"""Results in the shapes that others read: the JSON contract and a pandas frame."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from pepscope.results import DetectionResult, Evidence, GroupResult, Kind, Number, PairResult

if TYPE_CHECKING:
    import pandas as pd

SCHEMA_VERSION = 1
_JUDGED = (Kind.REGULAR, Kind.SPLIT_TCP, Kind.TCP_PROXY)
_GROUP_COLUMNS = (
    "side",
    "network",
    "port",
    "hosts",
    "connections",
    "exchanges",
    "verdict",
    "probability_regular",
    "probability_split_tcp",
    "probability_tcp_proxy",
    "mechanism",
    "where",
    "near_round_trip_s",
    "hidden_round_trip_s",
    "hidden_round_trip_low_s",
    "hidden_round_trip_high_s",
    "reason",
)
_FRAME_COLUMNS = (
    "capture_a",
    "client_a",
    "server_a",
    "transport_a",
    "capture_b",
    "client_b",
    "server_b",
    "transport_b",
    "verdict",
    "mechanism",
    "probability_regular",
    "probability_split_tcp",
    "probability_tcp_proxy",
    "packets",
    "payload_bytes_up",
    "payload_bytes_down",
    "duration_s",
    "reason",
)


def detection_document(result: DetectionResult) -> dict[str, Any]:
    """The JSON contract `detect-1`; numbers that JSON cannot write (infinities, NaN) become null."""
    return {
        "schema": SCHEMA_VERSION,
        "captures": [
            {
                "path": capture.path,
                "packets": capture.packets,
                "connections": capture.connections,
                "warnings": list(capture.warnings),
            }
            for capture in result.captures
        ],
        "pairs": [pair_document(pair) for pair in result.pairs],
        "groups": [group_document(group) for group in result.groups],
    }


def pair_document(pair: PairResult) -> dict[str, Any]:
    """One pair as `detect-1` and `audit-1` write it."""
    return {
        "vantages": [
            {
                "capture": vantage.capture,
                "client": vantage.client,
                "server": vantage.server,
                "transport": vantage.transport,
            }
            for vantage in pair.vantages
        ],
        "verdict": pair.verdict.value,
        "mechanism": None if pair.mechanism is None else pair.mechanism.value,
        "probability": {kind.value: float(pair.probability.get(kind, 0.0)) for kind in _JUDGED},
        "reason": pair.reason,
        "pairing": {"confidence": float(pair.pairing_confidence), "ground": pair.pairing_ground or None},
        "stretch": None if pair.stretch is None else asdict(pair.stretch),
        "packets": int(pair.packets),
        "payload_bytes": {"up": int(pair.payload_bytes_up), "down": int(pair.payload_bytes_down)},
        "duration_s": float(pair.duration_s),
        "evidence": [evidence_document(item) for item in pair.evidence],
    }


def group_document(group: GroupResult) -> dict[str, Any]:
    """One group as `detect-1` writes it."""
    interval = group.hidden_round_trip_interval_s
    return {
        "side": group.side.value,
        "network": group.network,
        "port": int(group.port),
        "hosts": list(group.hosts),
        "connections": len(group.pairs),
        "pairs": [int(place) for place in group.pairs],
        "exchanges": group.exchanges,
        "verdict": group.verdict.value,
        "probability": {kind.value: float(group.probability.get(kind, 0.0)) for kind in _JUDGED},
        "mechanism": None if group.mechanism is None else group.mechanism.value,
        "where": None if group.where is None else group.where.value,
        "near_round_trip_s": group.near_round_trip_s,
        "hidden_round_trip_s": group.hidden_round_trip_s,
        "hidden_round_trip_interval_s": None if interval is None else list(interval),
        "reason": group.reason,
        "evidence": [evidence_document(item) for item in group.evidence],
    }


def evidence_document(item: Evidence) -> dict[str, Any]:
    """One piece of evidence as `detect-1` and `audit-1` write it."""
    return {
        "method": item.method,
        "outcome": item.outcome.value,
        "finding": item.finding,
        "strength": float(item.strength),
        "summary": item.summary,
        "numbers": {name: _plain(number) for name, number in item.numbers.items()},
        "caveats": list(item.caveats),
    }


def _plain(number: Number) -> Number:
    """The number as JSON has it; NumPy's scalars become Python's."""
    value: Number = number.item() if isinstance(number, np.generic) else number
    return None if isinstance(value, float) and not math.isfinite(value) else value


def detection_frame(result: DetectionResult) -> pd.DataFrame:
    """One row a pair; the columns of the second vantage are missing values where only one capture holds it."""
    import pandas as pd

    rows = []
    for pair in result.pairs:
        row: dict[str, Any] = {}
        for which, letter in enumerate("ab"):
            vantage = pair.vantages[which] if which < len(pair.vantages) else None
            row[f"capture_{letter}"] = vantage.capture if vantage else None
            row[f"client_{letter}"] = vantage.client if vantage else None
            row[f"server_{letter}"] = vantage.server if vantage else None
            row[f"transport_{letter}"] = vantage.transport if vantage else None
        row["verdict"] = pair.verdict.value
        row["mechanism"] = None if pair.mechanism is None else pair.mechanism.value
        for kind in _JUDGED:
            row[f"probability_{kind.name.lower()}"] = float(pair.probability.get(kind, 0.0))
        row["packets"] = pair.packets
        row["payload_bytes_up"] = pair.payload_bytes_up
        row["payload_bytes_down"] = pair.payload_bytes_down
        row["duration_s"] = pair.duration_s
        row["reason"] = pair.reason
        rows.append(row)
    return pd.DataFrame(rows, columns=list(_FRAME_COLUMNS)).rename_axis("pair")


def groups_frame(result: DetectionResult) -> pd.DataFrame:
    """One row a group; what is not known is missing. `hosts` are addresses with spaces between."""
    import pandas as pd

    rows = []
    for group in result.groups:
        row = {name: value for name, value in group_document(group).items() if name in _GROUP_COLUMNS}
        row["hosts"] = " ".join(group.hosts)
        for kind in _JUDGED:
            row[f"probability_{kind.name.lower()}"] = float(group.probability.get(kind, 0.0))
        low, high = group.hidden_round_trip_interval_s or (None, None)
        row |= {"hidden_round_trip_low_s": low, "hidden_round_trip_high_s": high}
        rows.append(row)
    frame = pd.DataFrame(rows, columns=list(_GROUP_COLUMNS)).rename_axis("group")
    times = [name for name in _GROUP_COLUMNS if name.endswith("_s")]
    return frame.astype({**dict.fromkeys(times, "float64"), "exchanges": "Int64"})
