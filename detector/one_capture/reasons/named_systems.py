"""SYNs of another system than the one that the same client's request or TLS hello names. Shown, not weighed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import numpy as np

from detector.one_capture.columns import VantageColumns
from detector.one_capture.members import Ints
from detector.one_capture.reasons.findings import NamedSystemFinding
from detector.one_capture.reasons.quantities import counted
from detector.one_capture.senders.named_systems import named_system
from detector.one_capture.senders.stacks import systems_of
from detector.one_capture.side_posteriors import SidePosteriors
from pepscope.captures.direction import Direction
from pepscope.captures.exchanges import ExchangeKind
from pepscope.results.verdicts import Evidence, GroupSide

#: How firmly this speaks, at most: programs that disguise themselves may be as frequent as split points.
_WEAK = 0.2

#: Kinds of exchanges that begin with what names a system.
_NAMING = (ExchangeKind.HTTP_REQUEST, ExchangeKind.TLS_HELLO)

#: Connections whose first bytes are read, of each group and of all: enough to tell, and little beside judging.
_MOST_OF_GROUP, _MOST = 32, 2048

#: One connection may be of a program that disguises itself, and of many most must contradict.
_FEWEST, _MOSTLY = 2, 0.5

#: Names for readers.
_TITLES = {"android": "Android", "darwin": "macOS or iOS", "freebsd": "FreeBSD", "linux": "Linux", "windows": "Windows"}

_WHAT_ELSE = (
    "Programs that fetch pages in a browser's name, and browsers that hide their system, name another one on any path.",
    "A virtual machine's connections may be made by its host, and a tunnel's by the machine where it ends.",
)


def contradicted_systems(
    vantage: VantageColumns, posteriors: SidePosteriors, in_capture: Ints
) -> Iterable[tuple[int, Evidence]]:
    """Groups of clients most of whose SYNs are of another system than the same connections name, with what shows it;
    `in_capture` is the number of each connection in its capture."""
    if posteriors.side is not GroupSide.SERVER:
        return
    group = posteriors.places.group
    found: dict[int, list[tuple[str, frozenset[str]]]] = {}
    for connection in _chosen(vantage, group).tolist():
        systems = _of_syn(vantage, connection)
        if not systems:
            continue
        payload = vantage.captures[vantage.capture[connection]].payload(int(in_capture[connection]))
        named = named_system(payload[Direction.UP].opening or b"")
        if named is not None:
            found.setdefault(int(group[connection]), []).append((named, systems))
    for number, named_and_made in found.items():
        other = [each for each in named_and_made if each[0] not in each[1]]
        if len(other) >= _FEWEST and len(other) > _MOSTLY * len(named_and_made):
            yield number, _evidence(len(named_and_made), other)


def _chosen(vantage: VantageColumns, group: Ints) -> Ints:
    """Some connections of each group that begin with what may name a system."""
    exchanges = vantage.exchanges
    names = exchanges.first & (exchanges.asked == Direction.UP) & np.isin(exchanges.kind, _NAMING)
    connections = np.flatnonzero(np.bincount(exchanges.connection[names]))
    order = connections[np.argsort(group[connections], kind="stable")]
    rank = np.arange(len(order)) - np.searchsorted(group[order], group[order])
    return order[np.argsort(rank, kind="stable")][: min(np.count_nonzero(rank < _MOST_OF_GROUP), _MOST)]


def _of_syn(vantage: VantageColumns, connection: int) -> frozenset[str]:
    """The systems that a client's SYN may be of; none where a box in the path made it (its hop limit changes)."""
    senders, row = vantage.senders, 2 * connection + int(Direction.UP)
    if senders.hop_limit[row] not in (-1, senders.syn_hop_limit[row]):
        return frozenset()
    return systems_of(senders.option_kinds[row].tolist(), int(senders.syn_hop_limit[row]))


def _evidence(connections: int, other: list[tuple[str, frozenset[str]]]) -> Evidence:
    named = " and ".join(_TITLES[name] for name, _ in Counter(name for name, _ in other).most_common())
    made = Counter(systems for _, systems in other).most_common(1)[0][0]
    of = " or ".join(_TITLES[name] for name in sorted(made))
    return NamedSystemFinding.SYN_OF_ANOTHER_SYSTEM.evidence(
        "named_systems", _WEAK,
        f"The clients of {len(other):,} of {counted(connections, 'connection')} name {named} as their system "
        f"(User-Agent, TLS hello), but their SYNs are of {of}, as where a split point opens connections for clients.",
        {"connections": connections, "contradicting": len(other)},
        _WHAT_ELSE,
    )  # fmt: skip
