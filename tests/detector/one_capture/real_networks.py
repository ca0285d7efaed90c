"""Small captures of one end of real networks, and what is true of them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pepscope.results.verdicts import DetectionResult, GroupResult, SplitPlace, Verdict

FOLDER = Path(__file__).parents[2] / "captures" / "one_ended"

#: From so many exchanges, and from legs of so many seconds on, a split is to be found.
ENOUGH_EXCHANGES, LONG_S = 8, 0.015

#: An estimate is right within this time or this share, whichever is more.
RIGHT_WITHIN_S, RIGHT_WITHIN_SHARE = 0.006, 0.2


@dataclass(frozen=True, slots=True)
class Truth:
    """What is true of the connections of one network to one port."""

    side: str
    network: str
    port: int
    kind: str  # regular, split, syn-proxy
    where: str | None
    hidden_s: tuple[float, float] | None
    thinks: bool

    @property
    def is_split(self) -> bool:
        """Whether something splits them, in the network or at the server's site."""
        return self.kind == "split"

    def contradicts(self, verdict: Verdict) -> bool:
        """Whether the verdict says the opposite."""
        return verdict is Verdict.REGULAR if self.is_split else verdict.is_split

    def places_rightly(self, group: GroupResult) -> bool:
        """Whether a split's place is right, or left open."""
        return group.where is None or (self.is_split and group.where is SplitPlace(self.where or ""))

    def locates(self, hidden_s: float) -> bool:
        """Whether an estimate of the hidden round trip is near enough."""
        low_s, high_s = self.hidden_s or (0.0, 0.0)
        room_s = max(RIGHT_WITHIN_S, RIGHT_WITHIN_SHARE * high_s)
        return low_s - room_s <= hidden_s <= high_s + room_s


@dataclass(frozen=True, slots=True)
class Captured:
    """One capture and its truths."""

    path: Path
    truths: tuple[Truth, ...]

    @property
    def name(self) -> str:
        """Without endings."""
        return self.path.name.removesuffix(".pcap.gz")

    @property
    def at_client(self) -> bool:
        """Whether it was taken at the client."""
        return self.truths[0].side == "client"

    def of_port(self, port: int) -> Truth:
        """The truth of a port, which all networks of these captures share: also where addresses were rewritten."""
        return next(truth for truth in self.truths if truth.port == port)

    def of_group(self, group: GroupResult) -> Truth:
        """The truth of a group."""
        key = (group.side.value, group.network, group.port)
        return next(truth for truth in self.truths if (truth.side, truth.network, truth.port) == key)


def _captures() -> list[Captured]:
    manifest = json.loads((FOLDER / "manifest.json").read_text(encoding="utf-8"))
    found = []
    for row in manifest["captures"]:
        truths = []
        for group in row["groups"]:
            hidden = group["hidden_round_trip_range_s"]
            truths.append(
                Truth(
                    group["side"], group["network"], group["port"], group["class"], group["where"],
                    None if hidden is None else (hidden[0], hidden[1]), group["thinks"],
                )
            )  # fmt: skip
        found.append(Captured(FOLDER / row["file"], tuple(truths)))
    return found


CAPTURES: Sequence[Captured] = _captures()


def named(name: str) -> Captured:
    """The capture of this name."""
    return next(captured for captured in CAPTURES if captured.name == name)


def contradicted(captured: Captured, result: DetectionResult) -> list[tuple[str, int, str]]:
    """Groups and hosts whose verdict is the opposite of what is true of their port."""
    wrong = []
    for group in result.groups:
        truth = captured.of_port(group.port)
        for name, verdict in [(group.network, group.verdict), *((host.host, host.verdict) for host in group.by_host)]:
            if truth.contradicts(verdict):
                wrong.append((name, group.port, verdict.value))
    return wrong
