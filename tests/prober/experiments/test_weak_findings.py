"""What a page of an experiment calls weak has a low strength, wherever it is made."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from detector.verdict.weighing import judge
from pepscope.results.verdicts import Evidence, Outcome, Verdict
from prober.experiments.registry import experiment as named
from prober.experiments.registry import experiments
from prober.measurement.experiment import ObservedTask
from tests.prober.experiments.observed import seen

PAGES = Path(__file__).parents[3] / "docs" / "experiments"
#: Above it reports call a strength moderate (`reports.detection.prose`).
WEAK_BELOW = 0.3
#: A finding, and not far behind it in the same sentence or row that it is weak.
CALLED_WEAK = re.compile(r"`([a-z-]+)`[^.`]{0,40}\bweak\b")

TTL = [
    {"target": target, "round": number, "hops": 4, "answer": "answered", "router": "", "mobile_port": 40_000}
    for target in ("application", "echo")
    for number in range(5)
]
#: For each finding that is called weak a measurement that is as good as can be.
MEASURED: dict[str, ObservedTask] = {
    "dead-port-silent": seen(
        "dead-port", {"target": "silenced", "attempts": [{"outcome": "silent", "acked_bytes": 0}] * 20}
    ),
    "handshake-answered-at-the-end": seen("ttl-syn", {"probes": TTL}),
    "handshake-as-long-as-path": seen(
        "handshake-rtt", {"handshake_s": [0.1] * 40, "echo_s": [0.09] * 40, "clock_resolution_s": 1e-9}
    ),
    "abort-end-to-end": seen(
        "abort",
        {
            "taken_bytes": 500_000,
            "server_acked_bytes": 500_000,
            "server_last_ack_s": 0.1,
            "server_lived_s": 0.1,
            "receive_buffer_bytes": 65_536,
            "server_ending": "aborted-by-peer",
        },
    ),
    "no-more-taken-than-receiver-holds": seen(
        "slow-reader",
        {"acked_bytes": 40_000, "receiver_bytes": 40_000, "room_bytes": 0, "offered_bytes": 10**9, "stalled": True},
    ),
}


def test_every_finding_that_is_called_weak_is_tried_here() -> None:
    called = {name for page in PAGES.glob("*.md") for name in CALLED_WEAK.findall(page.read_text(encoding="utf-8"))}
    assert called == set(MEASURED)


@pytest.mark.parametrize("finding", sorted(MEASURED))
def test_a_finding_that_is_called_weak_is(finding: str) -> None:
    measured = MEASURED[finding]
    experiment = named(measured.observation.task.experiment)
    assert experiment in experiments()
    (evidence,) = experiment.examine([measured])
    assert (evidence.finding, evidence.outcome) == (finding, Outcome.INTACT)
    assert 0 < evidence.strength < WEAK_BELOW


def test_all_that_is_weak_together_gives_no_verdict() -> None:
    everything: list[Evidence] = []
    for measured in MEASURED.values():
        experiment = named(measured.observation.task.experiment)
        assert experiment is not None
        everything += experiment.examine([measured])
    assert judge(everything).verdict is Verdict.INCONCLUSIVE
