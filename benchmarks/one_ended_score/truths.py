"""What `truth.json` of a one-ended network says of the groups in its captures."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

#: A stretch is named by whom it leads to: a capture at the client judges the stretch towards the server.
_SIDE_OF_STRETCH = {"server": "client", "client": "server"}
#: A host is distant where its hidden leg's round trip is as long.
DISTANT_S = 0.04


@dataclass(frozen=True, slots=True)
class GroupTruth:
    """One group of one capture. Round trips in seconds; `hidden_s` is their range over the group's hosts."""

    network: str  # folder of the simulated or real network
    capture: str
    access: str
    middle: str
    side: str
    prefix: str
    port: int
    host: str | None
    kind: str  # regular, split, syn-proxy
    where: str | None
    hidden_s: tuple[float, float] | None
    near_s: float | None
    cache: bool
    thinks: bool
    whole: bool  # whether all of its hosts are alike
    exchanges: int | None
    mechanism: str | None
    cut: bool  # whether the capture lacks the beginning
    distant_hosts: int = 0  # how many of its hosts stand behind hidden legs of DISTANT_S and more, in the network

    @property
    def answers_itself(self) -> bool:
        """The box answers a part of what is asked of the far side: stored pages, TLS of its own."""
        return self.cache or self.mechanism in ("cache", "tls-interception", "web")

    @property
    def holds_acknowledgements(self) -> bool:
        """The box holds its acknowledgements back, so as to look as far away as the hosts behind it."""
        return self.mechanism == "relay-holding-acknowledgements"

    @property
    def is_split(self) -> bool:
        """Split, here or at the server's site."""
        return self.kind == "split"

    @property
    def is_split_in_network(self) -> bool:
        """What an accusation of the network is right for."""
        return self.is_split and self.where == "network"


def read_truths(folder: Path) -> dict[str, list[GroupTruth]]:
    """The groups of each capture file of one network, by file name, those of all hosts first."""
    document = json.loads((folder / "truth.json").read_text(encoding="utf-8"))
    truths = {}
    for capture in document["captures"]:
        if not capture["groups"]:  # it holds pings alone
            continue
        groups = [_group(folder.name, document, capture, group) for group in capture["groups"]]
        told = _with_distant_hosts(list(_with_whole(groups)))
        truths[capture["file"]] = sorted(told, key=lambda group: group.host is not None)
    return truths


def _group(
    folder: str, document: Mapping[str, Any], capture: Mapping[str, Any], group: Mapping[str, Any]
) -> GroupTruth:
    side = _SIDE_OF_STRETCH.get(group.get("stretch", ""), capture["side"])
    hidden = group["hidden_round_trip_s"]
    span = group.get("hidden_round_trip_range_s")
    if isinstance(hidden, dict):
        span = (min(hidden.values()), max(hidden.values()))
    elif hidden is not None and span is None:
        span = (hidden, hidden)
    near = group["near_round_trip_s"]
    return GroupTruth(
        folder, capture["file"], document["access"], document["middle"], side, group["network"], group["port"],
        group["host"], group["class"], group["where"], None if span is None else (span[0], span[1]),
        min(near.values()) if isinstance(near, dict) else near, group["cache"], group["thinks"],
        group.get("whole", True), group.get("exchanges"), group.get("mechanism"), capture["begins_late"],
    )  # fmt: skip


def _with_whole(groups: list[GroupTruth]) -> Iterator[GroupTruth]:
    """The groups, and for those that are told by host only, one of all hosts."""
    keys = {(group.side, group.prefix, group.port) for group in groups}
    told = {(group.side, group.prefix, group.port) for group in groups if group.host is None}
    for group in groups:
        kin = [each for each in groups if _same_rule(each, group) and each.host is not None]
        alike = len({(each.kind, each.where) for each in kin}) < 2
        yield replace(group, whole=group.whole and (alike or group.host is not None))
    for key in sorted(keys - told):
        yield _joined([group for group in groups if (group.side, group.prefix, group.port) == key])


def _with_distant_hosts(groups: list[GroupTruth]) -> Iterator[GroupTruth]:
    for group in groups:
        distant = [
            each
            for each in groups
            if _same_rule(each, group)
            and each.host is not None
            and each.is_split_in_network
            and each.hidden_s is not None
            and each.hidden_s[1] >= DISTANT_S
        ]
        yield replace(group, distant_hosts=len(distant)) if group.host is None else group


def _same_rule(one: GroupTruth, other: GroupTruth) -> bool:
    return (one.side, one.prefix, one.port) == (other.side, other.prefix, other.port)


def _joined(hosts: list[GroupTruth]) -> GroupTruth:
    split = [group for group in hosts if group.is_split_in_network] or [group for group in hosts if group.is_split]
    telling = split or hosts
    spans = [group.hidden_s for group in split if group.hidden_s is not None]
    counts = [group.exchanges for group in hosts if group.exchanges is not None]
    return replace(
        telling[0],
        host=None,
        hidden_s=(min(low for low, _ in spans), max(high for _, high in spans)) if spans else None,
        near_s=min((group.near_s for group in telling if group.near_s is not None), default=None),
        cache=any(group.cache for group in hosts),
        thinks=any(group.thinks for group in hosts),
        whole=len({(group.kind, group.where) for group in hosts}) == 1,
        exchanges=sum(counts) if counts else None,
    )
