"""From observations to verdicts, one for each version of IP and port.

Data that cannot have reached the host and are acknowledged all the same were acknowledged by a middlebox: the
connection is split. Data that are lost wherever they cannot reach the host show that nothing acknowledges them on the
way so far. What also acknowledges in other hosts' names and splits nothing that an operator should be asked about is
named: programs on this host, tunnels, captive portals, and sites with a load balancer before the server.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from prober.check.measuring import DocumentationAddressObservation, Observations, PlaceObservation
from prober.check.questions import http_field, http_status

#: Hosts of different operators that must agree: one site may answer for itself from another place.
LEAST_HOSTS = 2
#: Where data are acknowledged within so many routers of the host, the host's own site may do it (a load balancer).
_SITE_HOPS = 2
#: Round trips of hosts this far apart are "very different distances", s.
_LEAST_SPREAD_S = 0.02
_SAME_TIME_S = 0.003
_SAME_SHARE = 0.15


class CheckVerdict(StrEnum):
    """What this network does to connections to a port; the words of `pepscope detect`, as far as one end can tell."""

    REGULAR = "regular"
    SPLIT_TCP = "split-tcp"
    INCONCLUSIVE = "inconclusive"


class Cause(StrEnum):
    """What acknowledges in other hosts' names, or hides who does, without being a split in the network."""

    THIS_HOST = "this-host"
    TUNNEL = "tunnel"
    CAPTIVE_PORTAL = "captive-portal"
    SYN_PROXY = "syn-proxy"
    SERVER_SITE = "server-site"


@dataclass(frozen=True, slots=True)
class PortVerdict:
    """The verdict on one port over one version of IP."""

    family: int
    port: int
    verdict: CheckVerdict
    reason: str
    #: What else was recognised.
    causes: tuple[Cause, ...]
    hosts: int
    hosts_split: int
    hosts_regular: int
    #: The router count at which data are acknowledged, and the router before that place.
    box_hops: int | None = None
    router_before: str = ""
    numbers: Mapping[str, float | int | None] = field(default_factory=dict)


def judge(observations: Observations, tunnel: str | None = None) -> tuple[PortVerdict, ...]:
    """Verdicts by family and port; `tunnel` is the device of a tunnel that the default route takes, if any."""
    keys = dict.fromkeys((found.place.family, found.place.target.port) for found in observations.places)
    return tuple(
        _judge_port(
            family,
            port,
            [each for each in observations.places if (each.place.family, each.place.target.port) == (family, port)],
            [each for each in observations.documentation_addresses if (each.family, each.port) == (family, port)],
            tunnel,
        )
        for family, port in sorted(keys)
    )


@dataclass(frozen=True, slots=True)
class _Port:
    """Observations of one port, sorted by what they say."""

    reached: Sequence[PlaceObservation]
    split: Sequence[PlaceObservation]
    at_site: Sequence[PlaceObservation]
    regular: Sequence[PlaceObservation]
    documentation: Sequence[DocumentationAddressObservation]


def _judge_port(
    family: int,
    port: int,
    places: Sequence[PlaceObservation],
    documentation: Sequence[DocumentationAddressObservation],
    tunnel: str | None,
) -> PortVerdict:
    grouped = _grouped(places, documentation)
    verdict, reason, causes = _verdict(grouped, tunnel)
    box = _box(grouped.split) if verdict is CheckVerdict.SPLIT_TCP else (None, "")
    return PortVerdict(
        family, port, verdict, reason, causes, len({each.place.target.host for each in places}),
        _hosts(grouped.split), _hosts(grouped.regular), *box,
        {
            "documentation_addresses_asked": len(documentation),
            "documentation_addresses_acknowledged": sum(_is_acknowledged(each) for each in documentation),
            "least_acknowledgement_s": min(_acknowledgements_s(grouped.reached), default=None),
            "least_datagram_round_trip_s": min(
                (each.distance.round_trip_s for each in grouped.reached if each.distance.round_trip_s), default=None
            ),
        },
    )  # fmt: skip


def _grouped(places: Sequence[PlaceObservation], documentation: Sequence[DocumentationAddressObservation]) -> _Port:
    reached = [each for each in places if not each.error]
    nearer = [each for each in reached if each.acknowledged_hops() is not None]
    at_site = [each for each in nearer if _is_at_site(each)]
    regular = [each for each in reached if each not in nearer and each.lost_hops() and _is_answered(each)]
    return _Port(reached, [each for each in nearer if each not in at_site], at_site, regular, documentation)


def _verdict(port: _Port, tunnel: str | None) -> tuple[CheckVerdict, str, tuple[Cause, ...]]:
    if not port.reached:
        return CheckVerdict.INCONCLUSIVE, "No host could be reached on this port.", ()
    benign = _benign_cause(port, tunnel)
    if benign is not None:
        cause, reason = benign
        return CheckVerdict.INCONCLUSIVE, reason, (cause,)
    documentation_acknowledged = sum(_is_acknowledged(each) for each in port.documentation)
    if _hosts(port.split) >= LEAST_HOSTS or (port.split and documentation_acknowledged):
        return CheckVerdict.SPLIT_TCP, _split_reason(port, documentation_acknowledged), _causes(port)
    if documentation_acknowledged and documentation_acknowledged == len(port.documentation):
        reason = (
            f"Connections to {_counted(documentation_acknowledged, 'documentation address', 'es')}, at which no host "
            "can be, were established, and their data acknowledged: a middlebox terminates connections to this port."
        )
        return CheckVerdict.SPLIT_TCP, reason, _causes(port)
    if same := _same_time(port.reached):
        return CheckVerdict.SPLIT_TCP, same, _causes(port)
    if not port.split and _hosts(port.regular) >= min(LEAST_HOSTS, _hosts(port.reached)):
        return CheckVerdict.REGULAR, _regular_reason(port), _causes(port)
    return CheckVerdict.INCONCLUSIVE, _open_reason(port), _causes(port)


def _benign_cause(port: _Port, tunnel: str | None) -> tuple[Cause, str] | None:
    """What must be out of the way before the network itself can be judged."""
    if any(answer.ends_here for each in port.reached for answer in each.plain):
        return (
            Cause.THIS_HOST,
            "A program on this host (a local proxy or antivirus) takes the connections: check again without it.",
        )
    if tunnel is not None and any(each.acknowledged_hops() == 1 for each in port.split):
        return (
            Cause.TUNNEL,
            f"The tunnel on device {tunnel} terminates the connections on this host: check again without it.",
        )
    for each in port.documentation:
        status = http_status(each.answer.head) if each.answer is not None else None
        if status is not None and (status in (200, 511) or 300 <= status < 400):
            place = http_field(each.answer.head, "Location") if each.answer is not None else ""
            return (
                Cause.CAPTIVE_PORTAL,
                f"A documentation address, at which no host can be, answered with HTTP status {status}"
                + (f" and sent the client to {place[:80]}" if place else "")
                + ": a captive portal answers; log in, then check again.",
            )
    return None


def _causes(port: _Port) -> tuple[Cause, ...]:
    found = []
    if any(_is_syn_proxy(each) for each in port.reached) or any(
        each.answer is not None and not _is_acknowledged(each) for each in port.documentation
    ):
        found.append(Cause.SYN_PROXY)
    if port.at_site:
        found.append(Cause.SERVER_SITE)
    return tuple(found)


def _split_reason(port: _Port, documentation_acknowledged: int) -> str:
    hops, router = _box(port.split)
    first = min(port.split, key=lambda each: each.acknowledged_hops() or 0)
    text = (
        f"Data with a hop limit of {hops} are acknowledged, although datagrams with one of "
        f"{first.distance.beyond_hops} do not reach {first.place.target.host}"
        + (f" ({_hosts(port.split)} hosts alike)" if _hosts(port.split) > 1 else "")
        + f": a middlebox {_where(hops or 0, router)} terminates the connections"
    )
    if documentation_acknowledged:
        text += f"; it also acknowledged data to {_counted(documentation_acknowledged, 'documentation address', 'es')}"
    others = _hosts(port.regular)
    if others:
        text += f". {_counted(others, 'other host')} {'is' if others == 1 else 'are'} reached end to end"
    return text + "."


def _regular_reason(port: _Port) -> str:
    shares = [(each.lost_hops() or 0, each) for each in port.regular]
    reached, place = max(shares, key=lambda item: item[0])
    text = (
        "Data are acknowledged only where they can reach the host"
        + (f" ({_hosts(port.regular)} hosts alike)" if _hosts(port.regular) > 1 else "")
        + f": none with a hop limit of {reached} on the way to {place.place.target.host}, where datagrams with one of "
        f"{place.distance.beyond_hops} do not arrive"
    )
    if port.documentation and not any(_is_acknowledged(each) for each in port.documentation):
        text += ", and none at documentation addresses, at which no host can be"
    if any(_is_syn_proxy(each) for each in port.reached):
        text += "; a SYN proxy answers handshakes, and splits nothing"
    return text + "."


def _open_reason(port: _Port) -> str:
    if port.split:
        return (
            f"Data to {port.split[0].place.target.host} are acknowledged before they can have reached it, but no other "
            "host shows the same: that site may answer from another place. More targets would decide."
        )
    if all(not each.distance.beyond_hops for each in port.reached):
        return "No router reports what it drops, so that distances are unknown; a probe server of one's own decides."
    if all(each.distance.beyond_hops <= 1 for each in port.reached):
        return "The hosts are so near that no router between could be told from them; farther targets would decide."
    return "Too few hosts answered in a way that shows how far their data travel: more targets would decide."


def _same_time(places: Sequence[PlaceObservation]) -> str:
    """A sentence where hosts at very different distances acknowledge after the same time; else empty."""
    known = [
        (far_s, min(_acknowledgements_s([each])))
        for each in places
        if (far_s := each.distance.unsplit_round_trip_s) is not None and _acknowledgements_s([each])
    ]
    if len(known) <= LEAST_HOSTS:
        return ""
    far, near = [item[0] for item in known], [item[1] for item in known]
    alike = max(near) - min(near) <= max(_SAME_TIME_S, _SAME_SHARE * min(near))
    if not alike or max(far) - min(far) < _LEAST_SPREAD_S or any(b >= a / 2 for a, b in known):
        return ""
    return (
        f"{len(known)} hosts acknowledge data after {min(near) * 1e3:.0f} to {max(near) * 1e3:.0f} ms, although their "
        f"answers to datagrams and echo requests take {min(far) * 1e3:.0f} to {max(far) * 1e3:.0f} ms: a middlebox "
        "acknowledges for them."
    )


def _is_at_site(each: PlaceObservation) -> bool:
    hops = each.acknowledged_hops()
    return hops is not None and hops > each.distance.beyond_hops - _SITE_HOPS


def _is_syn_proxy(each: PlaceObservation) -> bool:
    """Handshakes are answered where data to the host are still lost, on the way to it."""
    lost = each.lost_hops()
    return each.handshake_hops is not None and lost is not None and each.handshake_hops <= lost


def _is_answered(each: PlaceObservation) -> bool:
    return any(answer.is_acknowledged for answer in each.plain)


def _is_acknowledged(each: DocumentationAddressObservation) -> bool:
    return each.answer is not None and each.answer.is_acknowledged


def _acknowledgements_s(places: Iterable[PlaceObservation]) -> list[float]:
    times = (answer.acknowledged_after_s for each in places for answer in each.plain)
    return [each for each in times if each is not None]


def _hosts(places: Iterable[PlaceObservation]) -> int:
    return len({each.place.target.host for each in places})


def _box(split: Sequence[PlaceObservation]) -> tuple[int | None, str]:
    """The fewest hops with which data are acknowledged, and the router before."""
    known = [(each.acknowledged_hops() or 0, each) for each in split]
    if not known:
        return None, ""
    hops, place = min(known, key=lambda item: item[0])
    return hops, place.distance.routers[hops - 2] if 2 <= hops <= len(place.distance.routers) + 1 else ""


def _where(hops: int, router: str) -> str:
    if hops == 1:
        return "at the first router or before it"
    return f"behind {router}" if router else f"{hops} hops away"


def _counted(count: int, noun: str, ending: str = "s") -> str:
    return f"{count} {noun}{'' if count == 1 else ending}"
