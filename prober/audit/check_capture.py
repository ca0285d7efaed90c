"""What a capture taken during a check shows by the methods for one capture (`detector.one_capture`).

The check itself needs no right and no capture. Where this user may capture, its ordinary connections and the references
beside them (echo requests, DNS, QUIC) are judged as any capture at a client is: connections whose data were given a hop
limit are left out, since their losses are the check's own doing. The result supports what the check found and decides
nothing alone, because a client's few exchanges with hosts that think look much like a hidden leg
(docs/guide/one-capture.md).
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from detector.detection import detect_vantage
from pepscope.captures.live.one_file import LiveCapture
from pepscope.errors import PepscopeError
from pepscope.results.verdicts import GroupResult, SplitPlace, Verdict
from prober.audit.check_stacks import stack_findings
from prober.check.experiment import PlaceObservation
from prober.check.experiments.questions import NAME as QUESTIONS
from prober.check.experiments.questions import Questions
from prober.check.finding import CheckFinding, Says
from prober.check.judging import Further
from prober.check.measuring import Observations
from prober.check.targets import Place
from prober.host.network_devices import device_of, local_address_towards

_AT_CLIENT = "client"
_UNSPLIT = "icmp or icmp6 or udp"


@dataclass(slots=True)
class CheckCapture:
    """A capture of the device that leads to the hosts, while a check runs."""

    live: LiveCapture
    is_done: bool = False

    @classmethod
    def begin(cls, places: Sequence[Place], path: Path) -> CheckCapture:
        """Start capturing what goes to the hosts and comes from them. Raises PepscopeError, OSError."""
        device = device_of(local_address_towards(places[0].address))
        if device is None:
            raise PepscopeError("no device of this host has the address that leads to the hosts")
        hosts = dict.fromkeys(place.address.partition("%")[0] for place in places)
        return cls(LiveCapture(device, path, 0, " or ".join(f"host {address}" for address in hosts)))

    def finish(self, observations: Observations) -> Further:
        """End it; findings by version of IP and port. Raises PepscopeError."""
        self.is_done = True
        self.live.finish()
        ports = _own_ports(observations.places)
        if not ports:
            return {}
        own = " or ".join(f"port {port}" for port in ports)
        result = detect_vantage([self.live.path], taken_at=_AT_CLIENT, filter=f"{_UNSPLIT} or (tcp and ({own}))")
        names = {str(ipaddress.ip_address(each.place.address.partition("%")[0])): each.host
                 for each in observations.places}  # fmt: skip
        found: dict[tuple[int, int], list[CheckFinding]] = {}
        for group in result.groups:
            for finding in _findings(group, names):
                family = ipaddress.ip_address(group.hosts[0]).version
                found.setdefault((family, group.port), []).append(finding)
        for key, finding in stack_findings(self.live.path, observations):
            found.setdefault(key, []).append(finding)
        return found

    def abandon(self) -> None:
        """End it, where nothing finished it."""
        if not self.is_done:
            self.live.finish()


def _own_ports(places: Iterable[PlaceObservation]) -> list[int]:
    """This host's ports of connections without a hop limit."""
    asked = (each.measured.get(QUESTIONS) for each in places)
    return [answer.local_port for each in asked if isinstance(each, Questions) for answer in each.plain]


def _findings(group: GroupResult, names: Mapping[str, str]) -> Iterator[CheckFinding]:
    hosts = tuple(sorted({names[host] for host in group.hosts if host in names}))
    if not hosts:
        return
    numbers = {
        "capture_exchanges": group.exchanges,
        "capture_near_round_trip_s": group.near_round_trip_s,
        "capture_hidden_round_trip_s": group.hidden_round_trip_s,
    }
    if group.verdict.is_split and group.where not in (SplitPlace.SERVER, SplitPlace.PROXY):
        yield CheckFinding(
            "capture-shows-hidden-leg", Says.SPLIT_SUPPORT, f"By the capture alone: {group.reason}", hosts,
            numbers=numbers,
        )  # fmt: skip
    else:
        word = "end to end" if group.verdict is Verdict.REGULAR else group.verdict.value
        yield CheckFinding(
            "capture-judged", Says.NAMED, f"By the capture alone ({word}): {group.reason}", hosts, numbers=numbers
        )
