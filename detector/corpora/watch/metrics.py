"""Metrics of a watch for Prometheus; docs/guide/watch.md has the table of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from detector.corpora.watch.standing import StandingGroup
from pepscope.captures.live.device import PacketCounts
from pepscope.results.attention import group_attention

PREFIX = "pepscope_watch_"

#: Groups that have series of their own, those that deserve attention first: Prometheus keeps all series in memory.
MOST_GROUPS = 2000

_GROUP = ("side", "network", "port")


@dataclass(frozen=True, slots=True)
class Snapshot:
    """How a watch stands, as it is shown and exported. Totals are since its beginning."""

    groups: Sequence[StandingGroup] = ()
    packets: PacketCounts | None = None  # of an interface
    connections: int = 0  # that were judged
    evidence_connections: int = 0  # that verdicts rest on now
    changes: int = 0
    slices: Mapping[str, int] = field(default_factory=dict)  # by outcome: judged, failed, lost
    waiting_slices: int = 0
    judging_s: float = 0.0  # what the latest slice took
    judged_until_ns: int = 0  # by the captures, since the epoch
    alerts: Mapping[str, int] = field(default_factory=dict)  # to the webhook, by outcome: posted, failed


Samples = Iterable[tuple[tuple[str, ...], float]]


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric: its name behind `PREFIX`, what it says, its labels, and its samples in a snapshot."""

    name: str
    text: str
    samples: Callable[[Snapshot], Samples]
    labels: tuple[str, ...] = ()
    is_counter: bool = False

    @property
    def exported_name(self) -> str:
        """As queries name it."""
        return PREFIX + self.name + ("_total" if self.is_counter else "")


def _one(value: Callable[[Snapshot], float]) -> Callable[[Snapshot], Samples]:
    return lambda snapshot: [((), value(snapshot))]


def _labelled(values: Callable[[Snapshot], Mapping[str, int]]) -> Callable[[Snapshot], Samples]:
    return lambda snapshot: [((name,), value) for name, value in values(snapshot).items()]


def _of_groups(value: Callable[[StandingGroup], float | None]) -> Callable[[Snapshot], Samples]:
    def samples(snapshot: Snapshot) -> Samples:
        for group in _shown(snapshot):
            found = value(group)
            if found is not None:
                yield _group_labels(group), found

    return samples


def _shown(snapshot: Snapshot) -> Sequence[StandingGroup]:
    if len(snapshot.groups) <= MOST_GROUPS:
        return snapshot.groups
    return sorted(snapshot.groups, key=lambda each: group_attention(each.result))[:MOST_GROUPS]


def _group_labels(group: StandingGroup) -> tuple[str, ...]:
    return group.result.side.value, group.result.network, group.port


def _verdicts(snapshot: Snapshot) -> Samples:
    return [((*_group_labels(group), group.result.verdict.value), 1.0) for group in _shown(snapshot)]


def _group_counts(snapshot: Snapshot) -> Mapping[str, int]:
    from pepscope.results.verdicts import Verdict

    return {
        verdict.value: sum(group.result.verdict is verdict for group in snapshot.groups) for verdict in Verdict
    }  # fmt: skip


def _packets(snapshot: Snapshot) -> Mapping[str, int]:
    counts = snapshot.packets
    if counts is None:
        return {}
    return {"received": counts.received, "dropped": counts.dropped, "interface-dropped": counts.interface_dropped}


METRICS = (
    Metric("groups", "Networks and ports by verdict", _labelled(_group_counts), ("verdict",)),
    Metric("group_verdict", "1 for the verdict that a network and port has", _verdicts, (*_GROUP, "verdict")),
    Metric(
        "group_split_probability", "Probability that connections are split",
        _of_groups(lambda group: group.split_probability), _GROUP,
    ),
    Metric(
        "group_near_round_trip_seconds", "Least round trip to whatever acknowledges",
        _of_groups(lambda group: group.result.near_round_trip_s), _GROUP,
    ),
    Metric(
        "group_hidden_round_trip_seconds", "Round trip of the leg behind a split",
        _of_groups(lambda group: group.result.hidden_round_trip_s), _GROUP,
    ),
    Metric(
        "group_connections", "Connections that the verdict rests on",
        _of_groups(lambda group: len(group.result.pairs)), _GROUP,
    ),
    Metric(
        "group_exchanges", "Questions and answers that the verdict rests on",
        _of_groups(lambda group: group.result.exchanges), _GROUP,
    ),
    Metric("verdict_changes", "Groups that appeared, changed or ended", _one(lambda of: of.changes), is_counter=True),
    Metric("connections", "Connections judged", _one(lambda of: of.connections), is_counter=True),
    Metric("evidence_connections", "Connections that verdicts rest on", _one(lambda of: of.evidence_connections)),
    Metric(
        "packets", "Packets by what became of them, as libpcap counts", _labelled(_packets), ("outcome",),
        is_counter=True,
    ),
    Metric(
        "slices", "Slices of the capture by what became of them", _labelled(lambda of: of.slices), ("outcome",),
        is_counter=True,
    ),
    Metric("waiting_slices", "Slices that wait for being judged", _one(lambda of: of.waiting_slices)),
    Metric("slice_judging_seconds", "What judging the latest slice took", _one(lambda of: of.judging_s)),
    Metric(
        "judged_until_timestamp_seconds", "When the latest slice that was judged ended",
        _one(lambda of: of.judged_until_ns / 1e9),
    ),
    Metric(
        "alerts", "Alerts to the webhook by what became of them", _labelled(lambda of: of.alerts), ("outcome",),
        is_counter=True,
    ),
)  # fmt: skip


class WatchCollector:
    """Reads a snapshot whenever Prometheus asks."""

    def __init__(self, snapshot: Callable[[], Snapshot]) -> None:
        self._snapshot = snapshot

    def collect(self) -> Iterator[Any]:
        """Metric families of prometheus_client."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        snapshot = self._snapshot()
        for metric in METRICS:
            family = CounterMetricFamily if metric.is_counter else GaugeMetricFamily
            made = family(PREFIX + metric.name, metric.text, labels=list(metric.labels))
            for labels, value in metric.samples(snapshot):
                made.add_metric(list(labels), value)
            yield made
