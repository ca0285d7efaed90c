"""Whether one machine answers for several hosts of a check: SYN-ACKs, hop limits and timestamp clocks in its capture.

A middlebox that terminates connections answers for all hosts with one stack (form of the SYN-ACK), from one place (hop
limit on arrival), after one time, and its timestamps count one clock (RFC 7323, section 5.4; Kohno et al., IEEE S&P
2005, tell machines by it). Two counters of 32 bits agree within 20 ms by chance with a probability of 1e-8 at 1 kHz, so
hosts that share one are one machine. That may also be a site with many addresses: only hosts whose references lie far
apart count, and the finding decides nothing alone. Linux draws an offset for each pair of addresses or for each
connection, so different clocks say nothing, but different rates do, as do other options and hop limits.

What is compared is each host's quickest connection, since a middlebox may take only some.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from detector.clocks.host_clock import RATE_TOLERANCE, STRETCH_TICKS, TICK_RATES_HZ
from detector.one_capture.senders.stacks import form_codes
from pepscope.captures.capture import open_capture
from pepscope.captures.direction import Direction
from pepscope.captures.senders import Senders
from prober.check.experiments.questions import NAME as QUESTIONS
from prober.check.experiments.questions import Questions
from prober.check.experiments.round_trips import LEAST_ALIKE, LEAST_SPREAD_S, RoundTrips, are_alike, spread_s
from prober.check.experiments.round_trips import NAME as ROUND_TRIPS
from prober.check.finding import CheckFinding, Says, milliseconds
from prober.check.measuring import Observations

#: A host of whose time more than half is hidden may be slow to answer references; two at once rarely are.
_LEAST_HIDDEN = 2
_COUNTER = 1 << 32
#: The moments of zero of one host's packets lie as far apart as delays and wake-ups are long, with an offset for each
#: connection as far as the counter's turn is.
_ONE_COUNTER_S = 1.0
#: Those of one clock agree within this and two ticks: least delays, and 100 ppm between hosts asked minutes apart.
_SAME_ZERO_S = 0.02


@dataclass(frozen=True, slots=True)
class TimestampClock:
    """What one host's timestamps count: a nominal rate, and when the counter was zero (s since the epoch)."""

    rate_hz: float
    zero_s: float

    def is_same(self, other: TimestampClock) -> bool:
        """Whether the two are one counter."""
        if self.rate_hz != other.rate_hz:
            return False
        turn_s = _COUNTER / self.rate_hz
        away_s = (self.zero_s - other.zero_s + turn_s / 2) % turn_s - turn_s / 2
        return abs(away_s) <= _SAME_ZERO_S + 2 / self.rate_hz


@dataclass(frozen=True, slots=True)
class _HostStack:
    """What answered at one address, by its quickest connection; `form` is -1 where the SYN-ACK was another's."""

    host: str
    address: str
    times: RoundTrips
    form: int
    options: bytes
    hop_limit: int
    clock: TimestampClock | None

    def is_same(self, other: _HostStack) -> bool:
        return (
            self.form >= 0
            and (self.form, self.hop_limit) == (other.form, other.hop_limit)
            and self.clock is not None
            and other.clock is not None
            and self.clock.is_same(other.clock)
        )


def timestamp_clock(points: Sequence[tuple[int, int]]) -> TimestampClock | None:
    """The clock behind times of capture (ns) and timestamps (TSval), by regression; None where they do not tell.

    The zero is that of the least delay.
    """
    if len(points) < 3:
        return None
    times_ns, values = np.array(sorted(points), np.int64).T
    seconds = (times_ns - times_ns[0]) / 1e9
    ticks = (values - values[0] + _COUNTER // 2) % _COUNTER - _COUNTER // 2
    if seconds[-1] <= 0 or np.ptp(ticks) < STRETCH_TICKS:
        return None
    centred = seconds - seconds.mean()
    slope = float((centred * ticks).sum() / (centred**2).sum())
    rate_hz = min(TICK_RATES_HZ, key=lambda rate: abs(slope / rate - 1))
    zeros = seconds - ticks / rate_hz
    if abs(slope / rate_hz - 1) > RATE_TOLERANCE or np.ptp(zeros) > _ONE_COUNTER_S:
        return None
    return TimestampClock(rate_hz, float(times_ns[0] / 1e9 + zeros.min() - values[0] / rate_hz))


def stack_findings(path: Path, observations: Observations) -> Iterator[tuple[tuple[int, int], CheckFinding]]:
    """Findings by version of IP and port, of hosts with references. Raises PepscopeError, as opening a capture does."""
    capture = open_capture(str(path), filter="tcp")
    columns, senders = capture.connection_columns(), capture.senders()
    forms = form_codes(senders, columns, Direction.DOWN)
    rows = _rows(columns)
    ports: dict[tuple[int, int], dict[str, _HostStack]] = {}
    for each in observations.places:
        asked, times = each.measured.get(QUESTIONS), each.measured.get(ROUND_TRIPS)
        if not isinstance(asked, Questions) or not isinstance(times, RoundTrips):
            continue
        address = str(ipaddress.ip_address(each.place.address.partition("%")[0]))
        key = each.place.family, each.place.target.port
        known = [
            (answer.acknowledged_after_s, rows[address, key[1], answer.local_port])
            for answer in asked.plain
            if answer.acknowledged_after_s is not None and (address, key[1], answer.local_port) in rows
        ]
        if known:
            far = [2 * row + int(Direction.DOWN) for _, row in known]
            quickest = min(known)[1]
            down = 2 * quickest + int(Direction.DOWN)
            ports.setdefault(key, {})[address] = _HostStack(
                each.host, address, times, int(forms[quickest]), senders.option_kinds[down].tobytes(),
                int(senders.syn_hop_limit[down]), timestamp_clock(_points(senders, far)),
            )  # fmt: skip
    for key, hosts in ports.items():
        for finding in _findings(list(hosts.values())):
            yield key, finding


def _rows(columns: Mapping[str, Any]) -> dict[tuple[str, int, int], int]:
    """Connections by the host's address and port and this host's port; the first where a port was used again."""
    found: dict[tuple[str, int, int], int] = {}
    ends = zip(columns["server_address"], columns["server_port"], columns["client_port"], strict=True)
    for row, (octets, server_port, client_port) in enumerate(ends):
        address = ipaddress.IPv6Address(bytes(octets))
        found.setdefault((str(address.ipv4_mapped or address), int(server_port), int(client_port)), row)
    return found


def _points(senders: Senders, far: Sequence[int]) -> list[tuple[int, int]]:
    """Capture times and timestamps of what a host sent: of SYN-ACKs, and of the first and last packets after them."""
    points = []
    for row in far:
        if senders.syn_tsval[row] >= 0:
            points.append((int(senders.syn_ns[row]), int(senders.syn_tsval[row])))
        if senders.ticked_packets[row]:
            points.append((int(senders.first_tick_ns[row]), int(senders.first_tsval[row])))
            points.append((int(senders.last_tick_ns[row]), int(senders.last_tsval[row])))
    return points


def _findings(hosts: Sequence[_HostStack]) -> Iterator[CheckFinding]:
    alike = max(([each for each in hosts if each.is_same(first)] for first in hosts), key=len)
    if _answers_for_all(alike):
        far_s = [each.times.reference_s for each in alike]
        yield CheckFinding(
            "capture-shows-one-stack", Says.SPLIT_SUPPORT,
            f"{len(alike)} hosts that are {milliseconds(far_s)} away by echo requests or datagrams answer handshakes "
            f"after {milliseconds([each.times.handshake_s for each in alike])} with one stack, one hop "
            "limit and one timestamp clock: one machine answers for them.",
            tuple(sorted({each.host for each in alike})), numbers={"capture_hosts_of_one_clock": len(alike)},
        )  # fmt: skip
    seen = [each for each in hosts if each.hop_limit >= 0]
    ways = [
        word
        for word, values in (
            ("order of options", {each.options for each in seen}),
            ("hop limit", {each.hop_limit for each in seen}),
            ("rate of the timestamp clock", {each.clock.rate_hz for each in seen if each.clock is not None}),
        )
        if len(values) > 1
    ]
    if ways:
        yield CheckFinding(
            "capture-shows-several-stacks", Says.SEVERAL,
            f"The quickest handshakes of {len(seen)} hosts differ in the {' and the '.join(ways)}: more than one "
            "machine answers them.",
            tuple(sorted({each.host for each in seen})),
        )  # fmt: skip


def _answers_for_all(alike: Sequence[_HostStack]) -> bool:
    """Whether hosts of one stack and clock are too far apart for their equal times."""
    return (
        len(alike) >= LEAST_ALIKE
        and spread_s([each.times.reference_s for each in alike]) >= LEAST_SPREAD_S
        and sum(each.times.is_hidden for each in alike) >= _LEAST_HIDDEN
        and are_alike([each.times.handshake_s for each in alike])
        and are_alike([each.times.acknowledged_s for each in alike])
    )
