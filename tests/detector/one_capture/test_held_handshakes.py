"""Handshakes that something holds up, whichever server is asked, while it looks up each flow."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from detector.one_capture import side_posteriors
from detector.one_capture.classes import LEAST_SPLIT
from detector.one_capture.likelihoods.priors import PRIORS
from pepscope.captures.exchanges import ExchangeKind
from pepscope.results.verdicts import GroupSide
from tests.detector.one_capture.made_vantages import Talk, judged

#: What answers of one host take, of what they usually take, and of which host by how much (ms).
VARYING, OWN_MS = (0.6, 1.9, 0.9, 1.4, 1.1, 0.7), (30.0, 55.0, 90.0)

SERVERS = ("192.0.2.1", "198.51.100.1", "203.0.113.1")


def servers(held_ms: float, times: Sequence[float], *, legs: bool = False) -> list[Talk]:
    """Servers beside each other, whose handshakes are so much later than data, or by what answers take at least."""
    return [
        Talk(
            host, [(ExchangeKind.HTTP_REQUEST, own * each) for each in times], round_trip_ms=20.0 + 0.1 * place,
            handshake_ms=20.0 + 0.1 * place + (own if legs else held_ms) + 0.1 * number,
        )
        for place, (host, own) in enumerate(zip(SERVERS, OWN_MS, strict=True))
        for number in range(6)
    ]  # fmt: skip


def split(talks: Sequence[Talk]) -> float:
    return float(judged(talks, at_client=True).groups.split[0])


@pytest.mark.parametrize("held_ms", [8.0, 20.0, 60.0])
def test_syns_that_something_looks_up_are_no_legs_of_relays_that_connect_first(
    held_ms: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are all later by one time, whichever server is asked."""
    assert split(servers(held_ms, VARYING)) < LEAST_SPLIT[GroupSide.CLIENT]
    priors = PRIORS | {GroupSide.CLIENT: replace(PRIORS[GroupSide.CLIENT], first_packets_held=0.0)}
    monkeypatch.setattr(side_posteriors, "PRIORS", priors)
    assert split(servers(held_ms, VARYING)) > 0.9


def test_handshakes_that_wait_for_legs_that_answers_cross_are_a_relays() -> None:
    assert split(servers(0.0, (1.01, 1.03, 1.02, 1.04), legs=True)) > LEAST_SPLIT[GroupSide.CLIENT]
