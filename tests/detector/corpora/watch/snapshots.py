"""What a watch knows after it judged a capture with split connections."""

from __future__ import annotations

import socket

from detector.corpora.watch.metrics import Snapshot
from detector.corpora.watch.standing import Standing
from detector.detection import detect
from pepscope.captures.live.device import PacketCounts
from tests.detector.corpora.watch.cut_captures import SPLIT


def snapshot_of_split() -> Snapshot:
    standing = Standing()
    standing.update(detect(str(SPLIT)).groups, 1_700_000_000_000_000_000)
    return Snapshot(
        groups=standing.groups, packets=PacketCounts(1000, 5, 0), connections=20, evidence_connections=20, changes=2,
        slices={"judged": 1, "failed": 0, "lost": 0}, judging_s=0.5, judged_until_ns=1_700_000_000_000_000_000,
        alerts={"posted": 1, "failed": 0},
    )  # fmt: skip


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])
