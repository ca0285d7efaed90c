"""Directories of tables as an audit of captures leaves them, with known content and without captures."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pandas as pd

from detector.corpora.judged_units import DIGESTS
from detector.corpora.tables import IDENTITY, IDENTITY_FILE

#: A Monday.
FIRST_WEEK = datetime(2026, 1, 5, 12, tzinfo=UTC)

PROBABILITY = {"regular": 0.98, "split-tcp": 0.01, "tcp-proxy": 0.01, "inconclusive": 0.5}


def connection(number: int = 0, *, week: int = 0, **values: Any) -> dict[str, Any]:
    """A row of the table of connections; `values` replace what is usual."""
    started = FIRST_WEEK + timedelta(weeks=week, seconds=number % 80_000)
    verdict = values.get("verdict", "regular")
    client = f"192.0.2.{number % 250 + 1}:{number % 60_000 + 1024}"
    server = f"203.0.113.{number % 40 + 1}:{values.get('port', 443)}"
    split = verdict in ("split-tcp", "tcp-proxy")
    return {
        "capture_a": "a.pcap", "client_a": client, "server_a": server, "transport_a": "tcp",
        "capture_b": None, "client_b": None, "server_b": None, "transport_b": None,
        "verdict": verdict, "mechanism": "relay" if split else None, "probability_regular": PROBABILITY[verdict],
        "probability_split_tcp": 0.97 if split else 0.01, "probability_tcp_proxy": 0.01, "packets": 40,
        "payload_bytes_up": 500, "payload_bytes_down": 1000 + number, "duration_s": 0.5,
        "reason": f"{number % 7 + 2} exchanges: what the server answered came {number % 90} ms later.",
        "started": pd.Timestamp(started), "started_ns": int(started.timestamp() * 1e9), "unit": "0" * 24,
        "port": 443, "methods_split": "", "methods_intact": "", "client_network": "192.0.2.0/24",
        "group_verdict": verdict, "group_where": None, "group_near_round_trip_s": 0.01,
        "group_hidden_round_trip_s": None, "network": "unnamed", **values,
    }  # fmt: skip


def write_tables(
    directory: Path, rows: Sequence[dict[str, Any]], errors: Sequence[tuple[str, str]] = (), *, copies: int = 1
) -> Path:
    """Write tables of these connections, each so many times."""
    directory.mkdir(parents=True)
    (directory / IDENTITY_FILE).write_text(json.dumps(IDENTITY))
    frame = pd.concat([pd.DataFrame(rows)] * copies, ignore_index=True)
    if len(frame):
        frame["started"] = frame["started"].astype("datetime64[us, UTC]")
        frame["group_hidden_round_trip_s"] = frame["group_hidden_round_trip_s"].astype("float64")
        frame["day"] = frame["started"].dt.strftime("%Y-%m-%d")
        for (day, network), part in frame.groupby(["day", "network"]):
            folder = directory / "connections" / f"day={day}" / f"network={network}"
            folder.mkdir(parents=True)
            part.drop(columns=["day", "network"]).to_parquet(folder / "0.parquet", index=False)
    pd.DataFrame([{"capture": "a.pcap", "digest": "d"}]).to_parquet(directory / "captures.parquet")
    pd.DataFrame(list(errors), columns=["name", "reason"], dtype="object").to_parquet(directory / "errors.parquet")
    (directory / "units").mkdir()
    marker = {DIGESTS: ["d"], "parts": [1], "least_probability": 0.95, "networks": None, "memory_bytes": None}
    (directory / "units" / f"{'0' * 24}.json").write_text(json.dumps(marker))
    return directory


def many_connections(count: int) -> list[dict[str, Any]]:
    """Half of the connections in one network, the rest in three hundred, over six weeks."""
    draw = random.Random(3)
    verdicts = draw.choices(("regular", "split-tcp", "inconclusive"), (6, 2, 2), k=count)
    return [
        connection(
            number, week=number % 6, verdict=verdict, port=draw.choice((443, 443, 80, 8443, 20_000 + number % 400)),
            client_network="192.0.2.0/24" if number % 2 else f"10.{number % 300}.0.0/24",
            methods_split="ack_timing" if number % 900 == 0 else "",
            methods_intact="identity" if number % 900 == 0 else "",
            group_hidden_round_trip_s=0.05 if verdict == "split-tcp" else None,
        )
        for number, verdict in enumerate(verdicts)
    ]  # fmt: skip
