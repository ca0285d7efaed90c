"""How far handshakes and data must travel before they are answered, against the way to the host.

Data that cannot have reached the host and are acknowledged all the same were acknowledged by a middlebox: the
connection is split. Data that are lost wherever they cannot reach the host show that nothing acknowledges them on the
way so far. Where data are acknowledged within two routers of the host, its own site may do it (a load balancer).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from prober.check.experiment import Asked, CheckExperiment, Cost, PlaceObservation, PortMaterial
from prober.check.experiments.questions import NAME as QUESTIONS
from prober.check.experiments.questions import Questions
from prober.check.finding import Cause, CheckFinding, Says, counted
from prober.check.probes.data_probe import DataAnswer, ask
from prober.check.probes.distances import MOST_HOPS, handshake_hops
from prober.check.questions import question

NAME = "hop-limits"
#: Connections with one hop limit that must agree: packets of one connection in a thousand may be lost or take another
#: way; that all of so many do is not to be expected.
TRIES = 3
#: Where tries disagree, so many more are made three routers nearer, which no other way to the host is shorter by; so
#: many must be acknowledged before a middlebox is said to take some connections.
_MANY_TRIES = 2 * TRIES
_LEAST_OF_SOME = 2
_NEARER_HOPS = 3
#: Hosts of different operators that must agree: one site may answer for itself from another place.
LEAST_HOSTS = 2
#: A path for TCP may be a router shorter than the one for datagrams (ECMP): data that crossed so many routers less than
#: the host lies away did not reach it.
_MARGIN_HOPS = 1
_SITE_HOPS = 2
_PROBE_S = 1.0
_PATIENCE_S = 5.0
_LEAST_LOW_S = 0.7
#: Round trips that an acknowledgement may take while the limit is low.
_LOW_ROUND_TRIPS = 3.0
_CONNECTION_BYTES = 2_000
_PROBE_BYTES = 60
#: Numbers of hops that a search over `MOST_HOPS` by halves tries, and the first.
_HALVES = 6


@dataclass(frozen=True, slots=True)
class HopLimits:
    """What one port of one host showed; hops are counted from 1, the first router."""

    #: The fewest hops with which handshakes complete, and the most after which a router dropped one.
    handshake_hops: int | None
    handshake_beyond_hops: int
    #: Questions with a hop limit, in order.
    limited: tuple[DataAnswer, ...]

    def acknowledged_hops(self) -> int | None:
        """The fewest hops with which every try was acknowledged; None where no number was."""
        return min((hops for hops, tries in self._tries().items() if all(tries)), default=None)

    def lost_hops(self) -> int | None:
        """The most hops with which no try was acknowledged."""
        return max((hops for hops, tries in self._tries().items() if not any(tries)), default=None)

    def some_acknowledged(self) -> tuple[int, int, int] | None:
        """A number of hops with which some of many tries were acknowledged, how many, and of how many; else None."""
        for hops, tries in sorted(self._tries().items()):
            if len(tries) >= _MANY_TRIES and sum(tries) >= _LEAST_OF_SOME:
                return hops, sum(tries), len(tries)
        return None

    @property
    def is_syn_proxy(self) -> bool:
        """Handshakes are answered where data to the host are still lost, on the way to it."""
        lost = self.lost_hops()
        return self.handshake_hops is not None and lost is not None and self.handshake_hops <= lost

    def _tries(self) -> dict[int, list[bool]]:
        tries: dict[int, list[bool]] = {}
        for answer in self.limited:
            if answer.hops is not None:
                tries.setdefault(answer.hops, []).append(answer.is_acknowledged)
        return {hops: found for hops, found in tries.items() if len(found) >= TRIES}


class HopLimitExperiment(CheckExperiment[HopLimits]):
    """Limits the hops of SYNs, and of the first data of connections."""

    name = NAME
    title = "hop limits"
    summary = "Limit how many routers SYNs and first data may cross, and see what is answered all the same."
    measured = HopLimits

    def cost(self) -> Cost:
        """A search over all hops, and SYNs with each of them."""
        return Cost(TRIES * (_HALVES + MOST_HOPS), 0, TRIES * (_HALVES * _CONNECTION_BYTES + MOST_HOPS * _PROBE_BYTES))

    def measure(self, asked: Asked) -> HopLimits:
        """Handshakes first, then data. Raises OSError."""
        place, distance = asked.place, asked.distance
        before = asked.measured_by(QUESTIONS, Questions)
        idle_s = min((each.handshake_s for each in before.plain), default=0.0) if before else 0.0
        most = min(MOST_HOPS, max(distance.beyond_hops, distance.answered_hops or 0) or MOST_HOPS)
        answered, beyond = handshake_hops(place.address, place.target.port, most, TRIES, _PROBE_S)
        farthest = distance.beyond_hops - _MARGIN_HOPS
        limited = _limited(asked, max(_LEAST_LOW_S, _LOW_ROUND_TRIPS * idle_s), farthest) if farthest >= 1 else []
        return HopLimits(answered, beyond, tuple(limited))

    def examine(self, port: PortMaterial) -> Iterable[CheckFinding]:
        """Hosts whose data are acknowledged too near, at their site, or nowhere before them."""
        found = list(self.observed(port))
        questions = {id(each): asked for each, asked in port.of(QUESTIONS, Questions)}
        nearer = [(each, hops) for each, hops in found if hops.acknowledged_hops() is not None]
        at_site = [item for item in nearer if _is_at_site(*item)]
        split = [item for item in nearer if item not in at_site]
        answered = {key for key, asked in questions.items() if asked.acknowledged_s is not None}
        regular = [
            (each, hops)
            for each, hops in found
            if hops.lost_hops() and id(each) in answered and not any(it.is_acknowledged for it in hops.limited)
        ]
        yield from _tunnel(port, split)
        if split:
            yield _split_finding(split, regular)
        some = [(each, hops) for each, hops in found if hops.acknowledged_hops() is None and hops.some_acknowledged()]
        if some:
            yield _share_finding(some, len(_hosts(split)))
        if at_site:
            yield CheckFinding(
                "acknowledged-at-the-site", Says.NAMED,
                "Data are acknowledged within two routers of the host: its own site may do it (a load balancer).",
                _hosts(at_site), Cause.SERVER_SITE,
            )  # fmt: skip
        if any(hops.is_syn_proxy for _, hops in found):
            yield CheckFinding(
                "handshakes-answered-too-near", Says.NAMED, "A SYN proxy answers handshakes, and splits nothing.",
                _hosts([item for item in found if item[1].is_syn_proxy]), Cause.SYN_PROXY,
            )  # fmt: skip
        if regular:
            yield _regular_finding(regular)

    def document(self, measured: HopLimits) -> Mapping[str, Any]:
        """Numbers of hops."""
        return {
            "handshake_hops": measured.handshake_hops, "handshake_beyond_hops": measured.handshake_beyond_hops,
            "acknowledged_hops": measured.acknowledged_hops(), "lost_hops": measured.lost_hops(),
        }  # fmt: skip


def _limited(asked: Asked, low_s: float, farthest: int) -> list[DataAnswer]:
    """Ask with the most hops that cannot reach the host; where that is acknowledged, find by halves where it begins."""
    place, text = asked.place, question(asked.place.target)

    def tries(hops: int, count: int = TRIES) -> Iterator[DataAnswer]:
        for _ in range(count):
            # The answer says nothing here: a connection that was acknowledged too near may never have one.
            yield ask(place.address, place.target.port, text, hops, low_s, _PATIENCE_S, answer_s=low_s)

    answers = list(tries(farthest))
    if not all(each.is_acknowledged for each in answers):
        nearer = asked.distance.beyond_hops - _NEARER_HOPS
        is_mixed = any(each.is_acknowledged for each in answers)
        return [*answers, *tries(nearer, _MANY_TRIES)] if is_mixed and nearer >= 1 else answers
    lost, acknowledged = 0, farthest
    while acknowledged - lost > 1:
        middle = (lost + acknowledged) // 2
        for each in tries(middle):
            answers.append(each)
            if not each.is_acknowledged:
                lost = middle
                break
        else:
            acknowledged = middle
    return answers


def _tunnel(port: PortMaterial, split: Sequence[tuple[PlaceObservation, HopLimits]]) -> Iterator[CheckFinding]:
    if port.tunnel is not None and any(hops.acknowledged_hops() == 1 for _, hops in split):
        yield CheckFinding(
            "ends-in-the-tunnel", Says.FIRST,
            f"The tunnel on device {port.tunnel} terminates the connections on this host: check again without it.",
            _hosts(split), Cause.TUNNEL,
        )  # fmt: skip


def _split_finding(
    split: Sequence[tuple[PlaceObservation, HopLimits]], regular: Sequence[tuple[PlaceObservation, HopLimits]]
) -> CheckFinding:
    first, hops = min(split, key=lambda item: item[1].acknowledged_hops() or 0)
    box, routers = hops.acknowledged_hops() or 0, first.distance.routers
    router = routers[box - 2] if 2 <= box <= len(routers) + 1 else ""
    hosts = _hosts(split)
    text = (
        f"Data with a hop limit of {box} are acknowledged, although datagrams with one of {first.distance.beyond_hops} "
        f"do not reach {first.host}" + (f" ({len(hosts)} hosts alike)" if len(hosts) > 1 else "")
        + f": a middlebox {_where(box, router)} terminates the connections."
    )  # fmt: skip
    if others := len(_hosts(regular)):
        text += f" {counted(others, 'other host')} {'is' if others == 1 else 'are'} reached end to end."
    says = Says.SPLIT if len(hosts) >= LEAST_HOSTS else Says.SPLIT_SUPPORT
    return CheckFinding("acknowledged-too-near", says, text, hosts, None, box, router)


def _share_finding(some: Sequence[tuple[PlaceObservation, HopLimits]], others_split: int) -> CheckFinding:
    counts = [hops.some_acknowledged() or (0, 0, 0) for _, hops in some]
    acknowledged, tries = sum(each[1] for each in counts), sum(each[2] for each in counts)
    hosts = _hosts(some)
    return CheckFinding(
        "some-acknowledged-too-near", Says.SPLIT if len(hosts) + others_split >= LEAST_HOSTS else Says.SPLIT_SUPPORT,
        f"Of {tries} connections to {counted(len(hosts), 'host')}, whose data could cross at least {_NEARER_HOPS - 1} "
        f"routers too few, {acknowledged} were acknowledged: a middlebox terminates some of the connections.",
        hosts, numbers={"acknowledged_share": acknowledged / tries},
    )  # fmt: skip


def _regular_finding(regular: Sequence[tuple[PlaceObservation, HopLimits]]) -> CheckFinding:
    each, hops = max(regular, key=lambda item: item[1].lost_hops() or 0)
    hosts = _hosts(regular)
    return CheckFinding(
        "lost-before-the-host", Says.REGULAR,
        "Data are acknowledged only where they can reach the host"
        + (f" ({len(hosts)} hosts alike)" if len(hosts) > 1 else "")
        + f": none with a hop limit of {hops.lost_hops()} on the way to {each.host}, where datagrams with one of "
        f"{each.distance.beyond_hops} do not arrive.",
        hosts,
    )  # fmt: skip


def _is_at_site(each: PlaceObservation, found: HopLimits) -> bool:
    hops = found.acknowledged_hops()
    return hops is not None and hops > each.distance.beyond_hops - _SITE_HOPS


def _hosts(items: Iterable[tuple[PlaceObservation, HopLimits]]) -> tuple[str, ...]:
    return tuple(sorted({each.host for each, _ in items}))


def _where(hops: int, router: str) -> str:
    if hops == 1:
        return "at the first router or before it"
    return f"behind {router}" if router else f"{hops} hops away"
