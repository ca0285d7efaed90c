"""Names of verdicts and methods, and the sentence that explains a verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING

from pepscope.captures.packets import Direction
from pepscope.results.verdicts import (
    CaptureSummary,
    GroupResult,
    GroupSide,
    HostResult,
    Mechanism,
    PairResult,
    SplitPlace,
    Verdict,
)
from reports.quantities import format_count, format_seconds

if TYPE_CHECKING:
    from pepscope.results.audits import AuditCell

VERDICT_NAMES = {
    Verdict.REGULAR: "regular",
    Verdict.SPLIT_TCP: "split-tcp",
    Verdict.TCP_PROXY: "tcp-proxy",
    Verdict.INCONCLUSIVE: "inconclusive",
}

VERDICT_SENTENCES = {
    Verdict.REGULAR: "This connection is end to end: client and server exchange segments with each other, and no "
    "middlebox acknowledges or answers for them.",
    Verdict.SPLIT_TCP: "This connection is split: a middlebox terminates it and relays the data over a second "
    "connection at the same time (Split-TCP).",
    Verdict.TCP_PROXY: "This connection is served by a TCP proxy: a middlebox receives the data first and forwards "
    "them afterwards (store and forward), or answers from its cache.",
    Verdict.INCONCLUSIVE: "These captures do not show whether this connection is end to end or split.",
}

#: How a split works, as a sentence to follow the verdict's own.
MECHANISM_SENTENCES = {
    Mechanism.RELAY: "Mechanism: relay (two TCP connections at the same time).",
    Mechanism.STORE_AND_FORWARD: "Mechanism: store and forward.",
    Mechanism.CACHE: "Mechanism: a cache answers.",
    Mechanism.REWRITING: "Mechanism: a proxy rewrites or recompresses the content.",
    Mechanism.TLS_INTERCEPTION: "Mechanism: a middlebox terminates TLS.",
    Mechanism.LOCAL_ACKNOWLEDGEMENT: "Mechanism: local acknowledgement (RFC 3135): a middlebox acknowledges before "
    "the receiver has the data, and forwards the data segments unchanged.",
    Mechanism.TUNNEL: "Mechanism: a tunnel; one leg uses another transport protocol.",
    Mechanism.UNDECIDED: "Mechanism: undecided.",
}

APPLICATION_NAMES = {
    "ftp": "FTP",
    "http-data": "HTTP data",
    "http-image": "HTTP image",
    "https": "HTTPS",
    "tcp": "TCP, free port",
}

DIRECTION_NAMES = {Direction.DOWN: "download", Direction.UP: "upload"}

#: The same in the words of a cell: one application in one direction.
CELL_SENTENCES = {
    Verdict.REGULAR: "Connections are end to end.",
    Verdict.SPLIT_TCP: "Connections are split: a middlebox terminates them and relays the data over connections of its "
    "own (Split-TCP).",
    Verdict.TCP_PROXY: "Connections are served by a TCP proxy: a middlebox receives the data first and forwards them "
    "afterwards, or answers from its cache.",
    Verdict.INCONCLUSIVE: "The measurements do not show whether connections are end to end or split.",
}


def verdict_sentence(pair: PairResult) -> str:
    """What the verdict on a connection means, and how a split works."""
    meaning = VERDICT_SENTENCES[pair.verdict]
    return meaning if pair.mechanism is None else f"{meaning} {MECHANISM_SENTENCES[pair.mechanism]}"


def cell_sentence(cell: AuditCell) -> str:
    """What the verdict on a cell means, and how the split works."""
    if cell.mechanism is Mechanism.LOCAL_ACKNOWLEDGEMENT:
        return (
            "Connections are split: a middlebox acknowledges before the receiver has the data, and forwards the data "
            "segments unchanged, so that the sender's control loop ends there (local acknowledgement, RFC 3135)."
        )
    meaning = CELL_SENTENCES[cell.verdict]
    return meaning if cell.mechanism is None else f"{meaning} {MECHANISM_SENTENCES[cell.mechanism]}"


def mechanism_name(mechanism: Mechanism) -> str:
    """A mechanism in prose."""
    return mechanism.value.replace("-", " ")


def application_name(application: str | None) -> str:
    """What a row of the matrix is called."""
    return "the path" if application is None else APPLICATION_NAMES.get(application, application)


def cell_name(application: str | None, direction: Direction | None) -> str:
    """What a cell of the matrix is called."""
    name = application_name(application)
    return name if direction is None else f"{name}, {DIRECTION_NAMES[direction]}"


def experiment_name(experiment: str, titles: Mapping[str, str]) -> str:
    """What an experiment is called in prose; `titles` are those of the run."""
    return titles.get(experiment, experiment.replace("-", " "))


def method_name(method: str, titles: Mapping[str, str] = MappingProxyType({})) -> str:
    """The name of a method in prose, or of one of the experiments in `titles`; without either its own, in words."""
    return _method_titles().get(method) or titles.get(method) or method.replace("_", " ").replace("-", " ")


@cache
def _method_titles() -> dict[str, str]:
    # Loaded when the first evidence is written: what shows none needs no method.
    from detector.methods import methods

    return {method.name: method.title for method in methods()}


#: The same in the words of a group: connections of one network of clients to one port.
GROUP_SENTENCES = {
    **CELL_SENTENCES,
    Verdict.INCONCLUSIVE: "The captures do not show one verdict for these connections.",
}

_PLACES = {
    SplitPlace.NETWORK: "in the network",
    SplitPlace.SERVER: "with the server",
    SplitPlace.PROXY: "at a proxy that the client asks for",
}

#: Splits of one vantage point, by where they stand: one end does not show how they work.
_ONE_ENDED = {
    SplitPlace.NETWORK: "Connections are split on their way: a middlebox before the other end's site terminates them "
    "and talks to the other end over connections of its own.",
    SplitPlace.SERVER: "Connections end at the server's own site, at a load balancer or web front end that talks to "
    "the server behind it over connections of its own. The network does not split them.",
    SplitPlace.PROXY: "Connections end at a proxy that the client itself asks for, which talks to the servers over "
    "connections of its own. The network does not split them.",
    None: "Connections are split: a middlebox in the network or at the server's own site terminates them and talks to "
    "the other end over connections of its own.",
}


def group_name(group: GroupResult) -> str:
    """The side, the network and the port of a group."""
    side = "both sides" if group.side is GroupSide.BOTH else f"{group.side.value} side"
    return f"{side}: {group.network}, port {group.port}"


def group_sentence(group: GroupResult) -> str:
    """What the verdict on a group means."""
    if group.by_host and group.verdict.is_split:
        return _ONE_ENDED[group.where]
    if group.by_host and group.verdict is Verdict.INCONCLUSIVE:
        return "This capture does not show whether these connections are end to end or split."
    return GROUP_SENTENCES[group.verdict]


#: Which stretch of the path the groups of one vantage point are judged on, by side.
STRETCHES = {
    GroupSide.CLIENT: "Between this capture and the servers",
    GroupSide.SERVER: "Between this capture and the clients",
    GroupSide.BOTH: "Between both captures",
}


def place_name(judged: GroupResult | HostResult) -> str:
    """Where the split point stands, in one word; `-` without a split, `?` where its place is not known."""
    if judged.where is not None:
        return judged.where.value
    return "?" if judged.verdict.is_split else "-"


def hidden_leg(judged: GroupResult | HostResult, *, interval: bool = True) -> str:
    """The round trip of the hidden leg, with the interval in which it lies with 90 % where `interval` asks for it."""
    if judged.hidden_round_trip_s is None:
        return "-"
    leg = format_seconds(judged.hidden_round_trip_s)
    bounds = judged.hidden_round_trip_interval_s
    if not interval or bounds is None:
        return leg
    low, high = (format_seconds(bound) for bound in bounds)
    return f"{leg} ({low.split()[0]}-{high})" if low.split()[1] == high.split()[1] else f"{leg} ({low}-{high})"


def captured_at(group: GroupResult, captures: Sequence[CaptureSummary]) -> list[str]:
    """Which side's capture alone holds a group, where there are two."""
    if group.side is GroupSide.BOTH or len(captures) < 2:
        return []
    return [f"seen in the {group.side.value}s' capture only"]


def group_details(group: GroupResult) -> list[str]:
    """Servers, how and where the connections are split, and the round trips of the legs: what is known of them."""
    hosts = f"to {group.hosts[0]}" if len(group.hosts) == 1 else f"to {format_count(len(group.hosts))} servers"
    details = [hosts]
    if group.mechanism not in (None, Mechanism.UNDECIDED):
        details.append(f"mechanism: {group.mechanism.value.replace('-', ' ')}")
    if group.where is not None:
        details.append(f"split {_PLACES[group.where]}")
    if group.near_round_trip_s is not None:
        name = "near leg" if group.by_host else "handshake"
        details.append(f"{name} {format_seconds(group.near_round_trip_s)}")
    if group.hidden_round_trip_s is not None:
        details.append(f"{'hidden' if group.by_host else 'other'} leg {hidden_leg(group)}")
    return details
