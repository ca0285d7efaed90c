"""What a check says: its plan before it starts, a table with a sentence for each port, or JSON."""

from __future__ import annotations

import dataclasses
import json
import textwrap
from collections.abc import Iterator, Sequence

import pepscope
from prober.check.judging import CheckVerdict, PortVerdict
from prober.check.measuring import TRIES, Observations, PlaceObservation
from prober.check.targets import DOCUMENTATION_ADDRESSES, Place

SCHEMA = "pepscope-check-1"
#: Upper bounds of one place: plain questions, limited ones with a search over 30 hops, handshakes, datagrams, echoes.
_CONNECTIONS = 2 + TRIES * 6
_PROBES = 30 * TRIES
_DATAGRAMS = 2 * 2 * 30 + 4
_CONNECTION_BYTES = 2_000
_PROBE_BYTES = 60


def plan_lines(places: Sequence[Place], deadline_s: float) -> Iterator[str]:
    """What will be contacted, how much is sent at most, and how long it takes."""
    hosts = list(dict.fromkeys(place.target.host for place in places))
    ports = sorted({place.target.port for place in places})
    families = sorted({place.family for place in places})
    documentation = sum(len(DOCUMENTATION_ADDRESSES[family]) for family in families)
    datagrams = len({place.address for place in places}) * _DATAGRAMS
    sent_bytes = len(places) * (_CONNECTIONS * _CONNECTION_BYTES + _PROBES * _PROBE_BYTES) + datagrams * _PROBE_BYTES
    named = ", ".join(hosts[:6]) + (f" and {len(hosts) - 6} more" if len(hosts) > 6 else "")
    yield f"contacts: {named}; {_ports(ports)}; {' and '.join(f'IPv{family}' for family in families)}"
    yield f"contacts: {documentation} documentation addresses (RFC 5737, RFC 3849: no host is there), on the same ports"
    yield (
        f"sends at most {_CONNECTIONS} connections a port of each host, and {sent_bytes / 1e3:,.0f} kB in all; begins "
        f"nothing new after {deadline_s:.0f} s"
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
    failed = [(f"{each.place.target.host} port {each.place.target.port}", each.error) for each in observations.places]
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
        "places": [_place(each) for each in observations.places],
        "documentation_addresses": [
            {"address": each.address, "port": each.port, "connected": each.answer is not None,
             "acknowledged": each.answer is not None and each.answer.is_acknowledged}
            for each in observations.documentation_addresses
        ],
        "unresolved": observations.unresolved,
        "closing": _closing(verdicts),
    }  # fmt: skip


def json_text(contents: dict[str, object]) -> str:
    """A `document` as JSON."""
    return json.dumps(contents, indent=2)


def _place(found: PlaceObservation) -> dict[str, object]:
    return {
        "host": found.place.target.host, "port": found.place.target.port, "tls": found.place.target.tls,
        "address": found.place.address, "error": found.error,
        "beyond_hops": found.distance.beyond_hops, "answered_hops": found.distance.answered_hops,
        "datagram_round_trip_s": found.distance.round_trip_s,
        "echo_round_trip_s": found.distance.echo_round_trip_s, "routers": list(found.distance.routers),
        "handshake_hops": found.handshake_hops, "handshake_beyond_hops": found.handshake_beyond_hops,
        "acknowledged_hops": found.acknowledged_hops(), "lost_hops": found.lost_hops(),
        "questions": [
            {"hops": each.hops, "handshake_s": each.handshake_s, "acknowledged_after_s": each.acknowledged_after_s,
             "answered_after_s": each.answered_after_s, "least_round_trip_s": each.least_round_trip_s}
            for each in (*found.plain, *found.limited)
        ],
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
