"""How the networks and ports stand: the latest verdict on each, since when it holds, and what changed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from pepscope.results.verdicts import GroupResult, GroupSide, Verdict

Key = tuple[GroupSide, str, int, bool]


class ChangeKind(StrEnum):
    """What happened to a group."""

    APPEARED = "appeared"
    CHANGED = "changed"
    ENDED = "ended"  # nothing of it is left in the window


@dataclass(frozen=True, slots=True)
class StandingGroup:
    """A group with its verdict; `since_ns` (since the epoch, by the captures) is when the verdict came."""

    result: GroupResult
    since_ns: int

    @property
    def key(self) -> Key:
        """What tells it from others."""
        return self.result.side, self.result.network, self.result.port, self.result.asks_proxy

    @property
    def port(self) -> str:
        """The port, and whether it is asked as a proxy, which tells it from the same port that is not."""
        return f"{self.result.port} (proxy)" if self.result.asks_proxy else str(self.result.port)

    @property
    def split_probability(self) -> float:
        """Of a split of either kind."""
        return sum(share for kind, share in self.result.probability.items() if kind.is_split)

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        result = self.result
        interval = result.hidden_round_trip_interval_s
        return {
            "side": result.side.value,
            "network": result.network,
            "port": result.port,
            "asks_proxy": result.asks_proxy,
            "verdict": result.verdict.value,
            "split_probability": round(self.split_probability, 6),
            "where": None if result.where is None else result.where.value,
            "since": time_text(self.since_ns),
            "connections": len(result.pairs),
            "exchanges": result.exchanges,
            "hosts": len(result.by_host),
            "near_round_trip_s": result.near_round_trip_s,
            "hidden_round_trip_s": result.hidden_round_trip_s,
            "hidden_round_trip_interval_s": None if interval is None else list(interval),
            "reason": result.reason,
        }


@dataclass(frozen=True, slots=True)
class Change:
    """A change of a group at a time of the captures; `before` is the verdict that it had."""

    kind: ChangeKind
    time_ns: int
    group: StandingGroup
    before: Verdict | None

    @property
    def after(self) -> Verdict | None:
        """The verdict that it has now."""
        return None if self.kind is ChangeKind.ENDED else self.group.result.verdict

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        before = None if self.before is None else self.before.value
        described = {"time": time_text(self.time_ns), "event": self.kind.value, "before": before}
        return {**described, **self.group.to_dict()}

    def sentence(self) -> str:
        """What happened, for people."""
        result = self.group.result
        name = f"{'proxies on ' if result.asks_proxy else ''}port {result.port} of {result.network}"
        if self.kind is ChangeKind.ENDED:
            return f"{name}: no connection any more in the window (it was {result.verdict.value})."
        changed = "" if self.before is None else f" (it was {self.before.value})"
        return f"{name}: {result.verdict.value}{changed}. {result.reason}"


class Standing:
    """The groups as they stand."""

    def __init__(self) -> None:
        self._groups: dict[Key, StandingGroup] = {}

    @property
    def groups(self) -> Sequence[StandingGroup]:
        """By side, port and network."""
        return sorted(self._groups.values(), key=lambda each: (each.key[0].value, each.key[2], each.key[1]))

    def update(self, results: Iterable[GroupResult], now_ns: int) -> list[Change]:
        """Take the latest verdicts; gives what changed."""
        before, self._groups = self._groups, {}
        changes = []
        for result in results:
            group = StandingGroup(result, now_ns)
            known = before.pop(group.key, None)
            if known is not None and known.result.verdict is result.verdict:
                group = StandingGroup(result, known.since_ns)
            else:
                kind = ChangeKind.APPEARED if known is None else ChangeKind.CHANGED
                changes.append(Change(kind, now_ns, group, None if known is None else known.result.verdict))
            self._groups[group.key] = group
        gone = [Change(ChangeKind.ENDED, now_ns, group, group.result.verdict) for group in before.values()]
        return [*changes, *gone]


def time_text(time_ns: int) -> str:
    """A time since the epoch in UTC, to the millisecond."""
    return datetime.fromtimestamp(time_ns / 1e9, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
