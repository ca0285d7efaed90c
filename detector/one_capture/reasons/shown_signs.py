"""Signs of groups that are shown beside their verdicts and not weighed: one clock of many hosts, the response to load,
systems that clients name, first flights that are read on the way.

None can carry weight: see docs/methods/shown_signs.md.
"""

from __future__ import annotations

import ipaddress
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import chain

import numpy as np

from detector.one_capture.classes import SPLITS, Explanation
from detector.one_capture.columns import VantageColumns
from detector.one_capture.members import Ints
from detector.one_capture.reasons.declared_proxies import declared_roles
from detector.one_capture.reasons.findings import LoadFinding, SharedClockFinding
from detector.one_capture.reasons.first_flights import read_first_flights
from detector.one_capture.reasons.named_systems import contradicted_systems
from detector.one_capture.reasons.quantities import counted, duration
from detector.one_capture.senders.clocks import MemberClocks, chance, member_clocks, shared_clocks
from detector.one_capture.senders.handshake_clocks import lagging_share
from detector.one_capture.senders.load import MemberLoad, member_load
from detector.one_capture.side_posteriors import SidePosteriors
from detector.options import PREFIX_IPV4, PREFIX_IPV6
from pepscope.captures.direction import Direction
from pepscope.captures.senders import LoadResponses
from pepscope.results.verdicts import Evidence, GroupResult, GroupSide

#: How firmly these findings speak, at most: each has harmless explanations that are about as likely.
_WEAK = 0.2

#: Zeros of one clock lie within this (s): what delays to hosts differ by.
TOLERANCE_S = 0.1

#: Share of a server's handshakes that timestamps lag behind where a SYN proxy answers them.
_MOSTLY = 0.5

#: Sets of equal clocks are shown that chance makes less often.
_RARE = 1e-3

#: Transfers with fewer bytes towards the far host have too few round trips to tell; of longer ones in a group so many
#: are enough, the longest.
_LEAST_BYTES, _MOST_TRANSFERS = 100_000, 8

#: Their packets are decoded once more: a part of the capture's at most, which takes a few hundredths of the time that
#: judging does, or so many.
_READ_PART, _READ_ANYWAY = 16, 1 << 17

#: Elasticity from which round trips grow with the flight, and up to which they stay.
_GROWS, _STAYS = 0.5, 0.2

#: Rank correlation that goes with growth, and what growth is more than a delayed acknowledgement's scatter (s).
_CORRELATES, _LEAST_GROWTH_S = 0.5, 0.01

#: A window that shuts once or twice is a reader's pause.
_FEWEST_SHUT = 3

_SHARED_MACHINES = (
    "One machine may truly have addresses in several networks, as hosters' and CDNs' have.",
    "A SYN proxy shifts the timestamps of the hosts behind it to its own clock.",
)
_SPLIT_MAY_QUEUE = (
    "A split point queues alike where its near leg is the slowest link, or its buffer so deep that it does not fill.",
)
_END_TO_END_MAY_SHUT = (
    "A reader that is slow shuts windows on any path.",
    "Links without a queue, and congestion control that leaves it empty (BBR, Vegas), keep round trips as they are.",
)


def with_shown_signs(
    groups: Sequence[GroupResult],
    vantage: VantageColumns,
    posteriors: SidePosteriors,
    explanations: Ints,
    in_capture: Ints,
) -> list[GroupResult]:
    """The groups of a side, which `explanations` explain, with what their clocks, long transfers, names of
    systems and first flights show; `in_capture` is the number of each connection in its capture."""
    shown: dict[int, list[Evidence]] = {}
    signs = (
        _one_clock(vantage, posteriors, explanations),
        _load(vantage, posteriors, in_capture),
        contradicted_systems(vantage, posteriors, in_capture),
        declared_roles(vantage, posteriors),
        read_first_flights(vantage, posteriors, np.isin(explanations, SPLITS)),
    )
    for number, item in chain(*signs):
        shown.setdefault(number, []).append(item)
    return [
        replace(group, evidence=(*group.evidence, *shown[number])) if number in shown else group
        for number, group in enumerate(groups)
    ]


def _one_clock(
    vantage: VantageColumns, posteriors: SidePosteriors, explanations: Ints
) -> Iterable[tuple[int, Evidence]]:
    """Groups of servers that share one clock, without those whose handshakes something answers for others: a SYN proxy
    shows its own clock, too."""
    places, timing = posteriors.places, posteriors.timing
    members = np.bincount(places.member_group, minlength=len(places.network))
    if posteriors.side is not GroupSide.CLIENT or members.max(initial=0) < 2:
        return
    clocks = member_clocks(vantage.senders, Direction.DOWN, places.member, len(places.member_group))
    shared = shared_clocks(clocks, places.member_group, len(places.network), TOLERANCE_S)
    found = np.flatnonzero(shared.sharing > 1).tolist()
    if not found:
        return
    lags = lagging_share(vantage.senders, timing.handshake_s, Direction.DOWN, places.member, len(places.member_group))
    answered = np.bincount(places.member_group, weights=lags > _MOSTLY, minlength=len(places.network)) > 0
    for group in found:
        if answered[group] or explanations[group] == Explanation.HANDSHAKES_ANSWERED:
            continue
        sharing = np.flatnonzero(shared.shares & (places.member_group == group))
        addresses = [places.member_address[each] for each in sharing.tolist()]
        item = _clock_evidence(addresses, sharing, clocks, int(shared.known[group]))
        if item is not None:
            yield group, item


def _clock_evidence(addresses: Sequence[str], sharing: Ints, clocks: MemberClocks, known: int) -> Evidence | None:
    """What hosts with one clock show, if they are of several networks, in one IP version: a host may have both."""
    networks: dict[int, Counter[int]] = {4: Counter(), 6: Counter()}
    for text in addresses:
        address = ipaddress.ip_address(text)
        prefix = PREFIX_IPV4 if address.version == 4 else PREFIX_IPV6
        networks[address.version][int(address) >> (address.max_prefixlen - prefix)] += 1
    of_version = max(networks.values(), key=len)
    rate_hz = float(clocks.rate_hz[sharing[0]])
    # Hosts of one network may be one machine, and are no independent coincidence.
    probability = chance(known, len(of_version), rate_hz, TOLERANCE_S)
    if len(of_version) < 2 or probability > _RARE:
        return None
    spread_s = float(np.ptp(clocks.zero_s[sharing]))
    hosts = of_version.total()
    return SharedClockFinding.ONE_CLOCK.evidence(
        "one_clock", _WEAK,
        f"The timestamps of {counted(hosts, 'server')} in {counted(len(of_version), 'network')} run on one clock of "
        f"{rate_hz:,.0f} Hz, whose zeros agree within {duration(max(spread_s, 1e-3))}: independent clocks do so with a "
        f"probability of {probability:.1g} at most.",
        {
            "hosts": hosts, "networks": len(of_version), "hosts_with_clock": known, "rate_hz": rate_hz,
            "spread_s": spread_s, "chance": probability,
        },
        _SHARED_MACHINES,
    )  # fmt: skip


def _load(vantage: VantageColumns, posteriors: SidePosteriors, in_capture: Ints) -> Iterable[tuple[int, Evidence]]:
    """Groups whose long transfers towards the far host queue on the path, or shut a window."""
    places = posteriors.places
    near = Direction.UP if posteriors.side is GroupSide.CLIENT else Direction.DOWN
    sent_bytes = vantage.columns[f"{near.name.lower()}_stream_bytes"].astype(np.int64)
    chosen = longest(sent_bytes, places.group, vantage.columns["packets"].astype(np.int64))
    if not len(chosen):
        return
    load = _load_responses(vantage, chosen, in_capture[chosen])
    told, group = np.unique(places.group[chosen], return_inverse=True)
    found = member_load(load, near, group, len(told))
    for place, number in enumerate(told.tolist()):
        item = _load_evidence(found, place, posteriors.side)
        if item is not None:
            yield number, item


def longest(sent_bytes: Ints, group: Ints, packets: Ints) -> Ints:
    """The longest transfers of each group, as connections in ascending order; first the longest of every group, until
    they have the packets that may be read again."""
    long = np.flatnonzero(sent_bytes >= _LEAST_BYTES)
    order = long[np.lexsort((-sent_bytes[long], group[long]))]
    rank = np.arange(len(order)) - np.searchsorted(group[order], group[order])
    order = order[np.argsort(rank, kind="stable")][: np.count_nonzero(rank < _MOST_TRANSFERS)]
    before = np.cumsum(packets[order]) - packets[order]
    return np.sort(order[before < max(_READ_ANYWAY, packets.sum() // _READ_PART)])


def _load_responses(vantage: VantageColumns, chosen: Ints, number: Ints) -> LoadResponses:
    """Load responses of these connections, which have these numbers in their captures."""
    of_capture = vantage.capture[chosen]
    parts = [
        capture.load_responses(number[of_capture == place].tolist())
        for place, capture in enumerate(vantage.captures)
        if (of_capture == place).any()
    ]
    names = LoadResponses.__struct_fields__
    return LoadResponses(**{name: np.concatenate([getattr(part, name) for part in parts]) for name in names})


def _load_evidence(load: MemberLoad, place: int, side: GroupSide) -> Evidence | None:
    """What the long transfers of one group show. At the client's side the near leg is the access link, which queues
    before a split point as well as end to end."""
    transfers, shut = int(load.transfers[place]), int(load.times_shut[place])
    if not transfers:
        return None
    growth_s, elasticity = float(load.growth_s[place]), float(load.elasticity[place])
    numbers = {
        "transfers": transfers, "growth_s": growth_s, "flight_ratio": float(load.flight_ratio[place]),
        "elasticity": elasticity, "rank_correlation": float(load.rank_correlation[place]),
        "times_shut": shut, "shut_s": float(load.shut_s[place]),
    }  # fmt: skip
    long = counted(transfers, "long transfer")
    grows = elasticity >= _GROWS and growth_s >= _LEAST_GROWTH_S and numbers["rank_correlation"] >= _CORRELATES
    if grows and shut < _FEWEST_SHUT and side is GroupSide.SERVER:
        text = (
            f"Round trips of {long} grew by {duration(growth_s)} while the bytes in flight became "
            f"{numbers['flight_ratio']:.1f} times as many, as where the path's slowest link queues."
        )
        return LoadFinding.PATH_QUEUES.evidence("load_response", _WEAK, text, numbers, _SPLIT_MAY_QUEUE)
    if shut >= _FEWEST_SHUT and elasticity <= _STAYS:
        text = (
            f"The receiver's window of {long} shut {shut:,} times, for {duration(numbers['shut_s'])}, while round "
            "trips stayed as the bytes in flight grew, as where a split point's buffer fills."
        )
        return LoadFinding.WINDOW_SHUTS.evidence("load_response", _WEAK, text, numbers, _END_TO_END_MAY_SHUT)
    return None
