"""What a check says: its plan before it starts, a table with a sentence for each port, or JSON."""

from __future__ import annotations

import dataclasses
import json
import textwrap
from collections.abc import Collection, Iterator, Sequence

import pepscope
from prober.check.experiment import PlaceObservation
from prober.check.experiments.documentation_addresses import NAME as DOCUMENTATION
from prober.check.experiments.documentation_addresses import DocumentationAnswer
from prober.check.experiments.hop_limits import LEAST_HOSTS, HopLimits
from prober.check.experiments.hop_limits import NAME as HOP_LIMITS
from prober.check.experiments.questions import NAME as QUESTIONS
from prober.check.experiments.questions import Questions
from prober.check.finding import Says
from prober.check.given import Given
from prober.check.judging import CheckVerdict, PortVerdict
from prober.check.measuring import Observations
from prober.check.probes.distances import ECHOES, MOST_HOPS
from prober.check.registry import check_experiments
from prober.check.targets import Place, is_documentation_address

SCHEMA = "pepscope-check-1"
#: Of one address: datagrams to two ports and echo requests in two rounds, then references.
_DATAGRAMS = 3 * 2 * MOST_HOPS + 3 * ECHOES
_DATAGRAM_BYTES = 60
_QUIC_BYTES = ECHOES * 1_200


def plan_lines(
    places: Sequence[Place], deadline_s: float, given: Given | None = None, unresolved: Collection[str] = ()
) -> Iterator[str]:
    """What will be contacted and what cannot be, how much is sent at most, and how long it takes."""
    given = given or Given()
    hosts = list(dict.fromkeys(place.target.host for place in places))
    ports = sorted({place.target.port for place in places})
    families = sorted({place.family for place in places})
    named = ", ".join(hosts[:6]) + (f" and {len(hosts) - 6} more" if len(hosts) > 6 else "")
    yield f"contacts: {named}; {_ports(ports)}; {' and '.join(f'IPv{family}' for family in families)}"
    if unresolved:
        yield f"has no address for: {', '.join(unresolved)}"
    if len(hosts) < LEAST_HOSTS:
        yield "has a single host, which seldom decides, since two must show a split: --targets FILE names others"
    addresses = len({place.address for place in places})
    sent_bytes = addresses * (_DATAGRAMS * _DATAGRAM_BYTES + _QUIC_BYTES)
    connections: dict[Place, int] = {}
    for experiment in check_experiments():
        for subject in experiment.subjects(places, given):
            connections[subject] = connections.get(subject, 0) + experiment.cost().connections
            sent_bytes += experiment.cost().sent_bytes
    documentation = len({each.address for each in connections if is_documentation_address(each.address)})
    yield f"contacts: {documentation} documentation addresses (RFC 5737, RFC 3849: no host is there), on the same ports"
    others = dict.fromkeys(
        f"{each.target.host} port {each.target.port}"
        for each in connections
        if each not in places and not is_documentation_address(each.address)
    )
    if others:
        yield f"contacts: {', '.join(others)}, as you gave them"
    yield (
        f"sends at most {max(connections.values(), default=0)} SYNs to a port of each host, and "
        f"{sent_bytes / 1e3:,.0f} kB in all; begins nothing new after {deadline_s:.0f} s"
    )


def text_lines(verdicts: Sequence[PortVerdict], observations: Observations, width: int) -> Iterator[str]:
    """The table, `width` columns wide, a sentence under each row."""
    yield f"{'FAMILY':<7}{'PORT':>5}  {'VERDICT':<13}{'SPLIT':>6}{'REGULAR':>9}{'HOSTS':>7}  ALSO SEEN"
    for each in verdicts:
        yield (
            f"{f'IPv{each.family}':<7}{each.port:>5}  {each.verdict.value:<13}{each.hosts_split:>6}"
            f"{each.hosts_regular:>9}{each.hosts:>7}  {', '.join(cause.value for cause in each.causes)}"
        ).rstrip()
        yield from textwrap.wrap(each.reason, width, initial_indent="  ", subsequent_indent="  ")
        for found in each.findings:
            if found.says is Says.NAMED and found.cause in each.causes and found.sentence not in each.reason:
                text = f"Also seen: {found.sentence}"
                yield from textwrap.wrap(text, width, initial_indent="  ", subsequent_indent="  ")
    failed = [(f"{each.host} port {each.place.target.port}", each.error) for each in _targets(observations)]
    for name, error in [*observations.unresolved.items(), *failed]:
        if error:
            yield from textwrap.wrap(f"not reached: {name}: {error}", width, subsequent_indent="  ")
    yield ""
    yield from textwrap.wrap(_closing(verdicts), width)


def document(verdicts: Sequence[PortVerdict], observations: Observations) -> dict[str, object]:
    """The contract `pepscope-check-1`: what `pepscope/schemas/check-1.json` describes."""
    return {
        "schema": SCHEMA,
        "pepscope": pepscope.__version__,
        "ports": [dataclasses.asdict(each) for each in verdicts],
        "places": [_place(each) for each in _targets(observations)],
        "documentation_addresses": [
            {"address": each.place.address, "port": each.place.target.port, "connected": found.answer is not None,
             "acknowledged": found.is_acknowledged}
            for each in observations.places
            if isinstance(found := each.measured.get(DOCUMENTATION), DocumentationAnswer)
        ],
        "unresolved": observations.unresolved,
        "closing": _closing(verdicts),
    }  # fmt: skip


def json_text(contents: dict[str, object]) -> str:
    """A `document` as JSON."""
    return json.dumps(contents, indent=2)


def _targets(observations: Observations) -> list[PlaceObservation]:
    return [each for each in observations.places if not is_documentation_address(each.place.address)]


def _place(found: PlaceObservation) -> dict[str, object]:
    limits = found.measured.get(HOP_LIMITS)
    limits = limits if isinstance(limits, HopLimits) else HopLimits(None, 0, ())
    asked = found.measured.get(QUESTIONS)
    plain = asked.plain if isinstance(asked, Questions) else ()
    return {
        "host": found.host, "port": found.place.target.port, "tls": found.place.target.tls,
        "address": found.place.address, "error": found.error,
        "beyond_hops": found.distance.beyond_hops, "answered_hops": found.distance.answered_hops,
        "datagram_round_trip_s": found.distance.round_trip_s,
        "echo_round_trip_s": found.distance.echo_round_trip_s,
        "dns_round_trip_s": found.distance.dns_round_trip_s,
        "quic_round_trip_s": found.distance.quic_round_trip_s, "routers": list(found.distance.routers),
        "handshake_hops": limits.handshake_hops, "handshake_beyond_hops": limits.handshake_beyond_hops,
        "acknowledged_hops": limits.acknowledged_hops(), "lost_hops": limits.lost_hops(),
        "questions": [
            {"hops": each.hops, "handshake_s": each.handshake_s, "acknowledged_after_s": each.acknowledged_after_s,
             "answered_after_s": each.answered_after_s, "least_round_trip_s": each.least_round_trip_s}
            for each in (*plain, *limits.limited)
        ],
        "experiments": {
            experiment.name: experiment.document(found.measured[experiment.name])
            for experiment in check_experiments()
            if experiment.name in found.measured
        },
        "failed": dict(found.failed),
    }  # fmt: skip


def _closing(verdicts: Sequence[PortVerdict]) -> str:
    """What a measurement with two ends would add."""
    if any(each.verdict is CheckVerdict.INCONCLUSIVE for each in verdicts):
        return (
            "One end shows only who acknowledges what this host sends. A server of your own (`pepscope probe serve` on "
            "a host beyond this network, then `pepscope audit`) decides what is open here, and shows both directions."
        )
    return (
        "One end shows who acknowledges what this host sends; a middlebox that acknowledges downloads alone, or begins "
        "after more bytes, is shown by a server of your own (`pepscope probe serve`, then `pepscope audit`)."
    )


def _ports(ports: Sequence[int]) -> str:
    return f"port{'' if len(ports) == 1 else 's'} {', '.join(map(str, ports))}"
