"""Verdicts on single connections of a client's capture, beside the truth of their host."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.one_ended_score.truths import GroupTruth
from pepscope.captures.capture import open_capture
from pepscope.captures.packets import Direction
from pepscope.results.verdicts import DetectionResult, GroupSide, Verdict


@dataclass(frozen=True, slots=True)
class ConnectionJudgement:
    """One connection: `truth` is that of its host; `exchanges` were answered by the server and not sent again."""

    truth: GroupTruth
    verdict: Verdict
    exchanges: int

    @property
    def false_alarm(self) -> bool:
        """Called split, and neither the network nor the server's site splits it."""
        return self.verdict.is_split and not self.truth.is_split


def connection_judgements(
    path: str, truths: Sequence[GroupTruth], result: DetectionResult
) -> tuple[ConnectionJudgement, ...]:
    """Of every connection of the client's side whose host the truth knows."""
    known = {(t.prefix, t.port, t.host): t for t in truths if t.side == "client" and t.host is not None}
    if not known:
        return ()
    counts = _exchanges(path)
    made = []
    for group in result.groups:
        if group.side is not GroupSide.CLIENT:
            continue
        for place in group.pairs:
            pair = result.pairs[place]
            name = pair.vantages[0]
            host = name.server.rsplit(":", 1)[0].strip("[]")
            truth = known.get((group.network, group.port, host))
            if truth is not None:
                made.append(ConnectionJudgement(truth, pair.verdict, counts[name.client, name.server]))
    return tuple(made)


def _exchanges(path: str) -> Counter[tuple[str, str]]:
    """How many questions of the client each connection has answered, by its ends as results write them."""
    capture = open_capture(path)
    found = capture.exchanges()
    asked = found.connection[(found.asked == Direction.UP) & ~found.repeated]
    counts = np.bincount(asked, minlength=len(capture.connections))
    made: Counter[tuple[str, str]] = Counter()
    for connection, count in zip(capture.connections, counts, strict=True):
        made[connection.client, connection.server] += int(count)
    return made
