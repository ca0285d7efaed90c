"""What verdicts and methods are called, and the sentence that says what a verdict means."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pepscope.packets import Direction
from pepscope.results import CaptureSummary, GroupResult, GroupSide, Kind, Mechanism, PairResult, SplitPlace
from reports.quantities import format_count, format_seconds

if TYPE_CHECKING:
    from pepscope.audit_results import AuditCell

KIND_NAMES = {
    Kind.REGULAR: "regular",
    Kind.SPLIT_TCP: "split-tcp",
    Kind.TCP_PROXY: "tcp-proxy",
    Kind.INCONCLUSIVE: "inconclusive",
}

KIND_SENTENCES = {
    Kind.REGULAR: "This connection is end to end: the two ends speak to each other, and nothing between them answers "
    "in their name.",
    Kind.SPLIT_TCP: "This connection is split: something in the network ends it and passes the data on over a second "
    "connection while the first goes on (Split-TCP).",
    Kind.TCP_PROXY: "This connection is served by a TCP proxy: something in the network takes the data first and hands "
    "it on afterwards (store and forward), or answers from its own store.",
    Kind.INCONCLUSIVE: "These captures do not tell whether this connection is end to end or split.",
}

#: How a split works, as a sentence to follow the verdict's own.
MECHANISM_SENTENCES = {
    Mechanism.RELAY: "Mechanism: relay (two TCP connections at the same time).",
    Mechanism.STORE_AND_FORWARD: "Mechanism: store and forward.",
    Mechanism.CACHE: "Mechanism: a cache answers.",
    Mechanism.REWRITING: "Mechanism: the content is rewritten or recompressed.",
    Mechanism.TLS_INTERCEPTION: "Mechanism: TLS is ended and begun anew.",
    Mechanism.LOCAL_ACKNOWLEDGEMENT: "Mechanism: local acknowledgement (RFC 3135): a box acknowledges in the "
    "receiver's name and passes the data segments on untouched.",
    Mechanism.TUNNEL: "Mechanism: a tunnel; one leg uses another transport protocol.",
    Mechanism.UNDECIDED: "Mechanism: undecided.",
}

METHOD_NAMES = {
    "ack_timing": "acknowledgement timing",
    "delayed_ack": "delayed acknowledgements",
    "identity": "packet identity",
    "handshake": "handshake",
    "receive_window": "receive window",
    "progress": "transfer progress",
    "content": "content",
    "teardown": "teardown",
    "early_fin": "end of stream",
    "single_vantage": "single capture",
}

#: What experiments of the prober are called; others by their own names.
EXPERIMENT_NAMES = {
    "transfers": "transfers",
    "delayed-ack": "held back acknowledgements",
    "slow-reader": "slow reader",
    "ttl-syn": "handshake with a short TTL",
    "dead-port": "port where nobody answers",
    "handshake-rtt": "handshake time",
    "options": "handshakes and segments at both ends",
    "odd-requests": "odd requests",
    "cache": "repeated downloads",
    "recompress": "recompressed images",
    "abort": "aborted downloads",
    "gain": "gain of a split",
    "uplink-buffer": "upload to a server that reads nothing",
    "window": "download into a small buffer",
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
    Kind.REGULAR: "Connections are end to end.",
    Kind.SPLIT_TCP: "Connections are split: something in the network ends them and relays the data over connections of "
    "its own (Split-TCP).",
    Kind.TCP_PROXY: "Connections are served by a TCP proxy: something in the network takes the data first and hands it "
    "on afterwards, or answers from its own store.",
    Kind.INCONCLUSIVE: "What was measured does not tell whether connections are end to end or split.",
}


def verdict_sentence(pair: PairResult) -> str:
    """What the verdict on a connection means, and how a split works."""
    meaning = KIND_SENTENCES[pair.verdict]
    return meaning if pair.mechanism is None else f"{meaning} {MECHANISM_SENTENCES[pair.mechanism]}"


def cell_sentence(cell: AuditCell) -> str:
    """What the verdict on a cell means, and how the split works."""
    if cell.mechanism is Mechanism.LOCAL_ACKNOWLEDGEMENT:
        return (
            "Connections are split: a box in the network acknowledges in the receiver's name and passes the data "
            "segments on untouched, so that the sender's control loop ends there (local acknowledgement, RFC 3135)."
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


def experiment_name(experiment: str) -> str:
    """What an experiment is called in prose."""
    return EXPERIMENT_NAMES.get(experiment, experiment.replace("-", " "))


def method_name(method: str) -> str:
    """The name of a method in prose; one that is not known here keeps its own, without underscores."""
    return METHOD_NAMES.get(method) or EXPERIMENT_NAMES.get(method) or method.replace("_", " ").replace("-", " ")


#: The same in the words of a group: connections of one network of clients to one port.
GROUP_SENTENCES = {
    **CELL_SENTENCES,
    Kind.INCONCLUSIVE: "What was captured gives no one answer for these connections.",
}

_PLACES = {SplitPlace.NETWORK: "in the network", SplitPlace.SERVER: "with the server"}


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
        details.append(f"handshake {format_seconds(group.near_round_trip_s)}")
    if group.hidden_round_trip_s is not None:
        details.append(f"other leg {format_seconds(group.hidden_round_trip_s)}")
    return details
