"""What one capture shows of groups and connections: findings, their weights, their sentences' method."""

from __future__ import annotations

from pepscope.results.finding import Finding, Weight, inapplicable, intact, split, unweighed
from pepscope.results.verdicts import Outcome

NAME = "exchange_timing"


class ExchangeFinding(Finding):
    """Answers of far applications against the round trips of their transport."""

    LEG_BEHIND_ANSWERS = split(
        "leg-behind-answers",
        Weight(
            "exchanges", -8.0, 0.0, 0.0, 0.0,
            "Every answer crosses a leg that acknowledgements do not; hosts that always think are rare.",
        ),
    )  # fmt: skip
    ANSWERS_AT_TRANSPORT_SPEED = intact(
        "answers-at-transport-speed",
        Weight(
            "exchanges", 0.0, -8.0, -8.0, -8.0,
            "An application answered as fast as the transport acknowledges: there is no leg in between.",
        ),
    )  # fmt: skip
    LEG_INSIDE_THE_SITE = inapplicable("leg-inside-the-site")
    LATE_OR_SPLIT = inapplicable("late-or-split", is_missing=True)
    TOO_FEW_EXCHANGES = inapplicable("too-few-exchanges", is_missing=True)
    NO_EXCHANGES = inapplicable("no-exchanges", is_missing=True)


class DeclaredProxyFinding(Finding):
    """Proxies that clients ask for, and hosts that declare to be some."""

    PROXY_ASKED_FOR = split(
        "proxy-asked-for",
        Weight(
            "declaration", -8.0, 0.0, 0.0, -8.0,
            "The client asks for a proxy, which answers: it has a connection of its own to where that leads.",
        ),
    )  # fmt: skip
    ASKED_AS_PROXY = inapplicable("asked-as-proxy", is_missing=True)
    SERVES_AS_PROXY = inapplicable("serves-as-proxy")
    COMES_FROM_PROXY = inapplicable("comes-from-proxy")


class NearEndFinding(Finding):
    """Where the transport of several hosts ends."""

    ONE_NEAR_END = split(
        "one-near-end",
        Weight(
            "near-ends", -2.0, 0.0, 0.0, 0.0,
            "Hosts at several distances acknowledge from one: a box, or hosts in one place.",
        ),
    )  # fmt: skip
    OWN_NEAR_ENDS = intact(
        "own-near-ends",
        Weight(
            "near-ends", 0.0, -8.0, -8.0, -8.0, "Each host acknowledges from a distance of its own.",
        ),
    )  # fmt: skip


class ClientStackFinding(Finding):
    """Whose stacks made the SYNs that a server sees."""

    CLIENTS_OWN_STACKS = intact(
        "clients-own-stacks",
        Weight(
            "client-stacks", 0.0, -3.0, -3.0, -3.0,
            "SYNs of several stacks, or of systems that no middlebox runs, are clients' own; few boxes copy them.",
        ),
    )  # fmt: skip


class ReferenceFinding(Finding):
    """Round trips that no TCP split shortens."""

    REFERENCE_IS_LONGER = split(
        "reference-is-longer",
        Weight(
            "reference", -6.0, 0.0, 0.0, 0.0,
            "ICMP or UDP takes longer to the same hosts: late answers to echo are the other explanation.",
        ),
    )  # fmt: skip
    REFERENCE_AGREES = intact(
        "reference-agrees",
        Weight(
            "reference", 0.0, -8.0, -8.0, -8.0, "ICMP or UDP to the same hosts takes no longer than the transport.",
        ),
    )  # fmt: skip


class PortFinding(Finding):
    """Round trips to the same hosts on another port of theirs."""

    OTHER_PORT_IS_LONGER = split(
        "other-port-is-longer",
        Weight(
            "reference", -6.0, 0.0, 0.0, 0.0,
            "Another port takes longer to the same hosts: it may lead elsewhere, or something answers handshakes here.",
        ),
    )  # fmt: skip


class AnsweredHandshakeFinding(Finding):
    """Handshakes that something answers for others."""

    HANDSHAKES_ANSWERED = inapplicable("handshakes-answered")


class FirstFlightFinding(Finding):
    """First flights that something nearer than the server acknowledges."""

    FIRST_FLIGHTS_READ = inapplicable("first-flights-read")


class SharedClockFinding(Finding):
    """Timestamps of hosts whose addresses lie in different networks."""

    ONE_CLOCK = unweighed("one-clock", Outcome.SPLIT)


class LoadFinding(Finding):
    """How round trips and windows respond to the bytes in flight of long transfers."""

    PATH_QUEUES = unweighed("path-queues", Outcome.INTACT)
    WINDOW_SHUTS = unweighed("window-shuts", Outcome.SPLIT)


class NamedSystemFinding(Finding):
    """Which systems clients name, and whose SYNs open their connections."""

    SYN_OF_ANOTHER_SYSTEM = unweighed("syn-of-another-system", Outcome.SPLIT)
