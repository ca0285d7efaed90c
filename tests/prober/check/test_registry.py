"""Experiments of a check: our own and other packages', each documented, costed and used."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

import pytest

from pepscope.errors import UsageError
from prober.check import registry
from prober.check.experiment import Asked, CheckExperiment, Cost, PortMaterial
from prober.check.experiments.questions import NAME as QUESTIONS
from prober.check.finding import CheckFinding, Says
from prober.check.judging import judge
from prober.check.measuring import Observations, measure
from prober.check.registry import BUILT_IN, check_experiments
from prober.check.report import document, plan_lines
from prober.check.targets import Place, Target
from tests.prober.check.experiments.answering import answering

PLACE = Place(Target("host.example", 80, False), "203.0.113.1")


class AlwaysSplit(CheckExperiment[int]):
    """One more experiment."""

    name: ClassVar[str] = "always"
    title = "always"
    summary = "Says that everything is split."
    measured = int

    def cost(self) -> Cost:
        return Cost(connections=1000)

    def measure(self, asked: Asked) -> int:
        return asked.place.target.port

    def examine(self, port: PortMaterial) -> Iterable[CheckFinding]:
        for each, found in self.observed(port):
            yield CheckFinding("always", Says.SPLIT, f"Port {found} is split.", (each.host,))

    def document(self, measured: int) -> Mapping[str, Any]:
        return {"port": measured}


@pytest.fixture
def plugged(monkeypatch):
    """What other packages offer, in this test."""

    def plug(*kinds):
        monkeypatch.setattr(registry, "loaded", lambda group, kind: kinds)
        check_experiments.cache_clear()

    yield plug
    check_experiments.cache_clear()


def test_names_are_their_own_and_costs_are_said():
    assert len({each.name for each in BUILT_IN}) == len(BUILT_IN)
    assert all(each.title and each.summary.endswith(".") for each in BUILT_IN)
    before, after = (list(plan_lines(places, 60))[-1] for places in ([PLACE], [PLACE, Place(PLACE.target, "::1")]))
    assert before != after


def test_the_plan_says_which_hosts_are_missing_and_that_one_seldom_decides():
    other = Place(Target("other.example", 80, False), "127.0.0.2")
    alone, two = (list(plan_lines(places, 60, unresolved=["gone.example"])) for places in ([PLACE], [PLACE, other]))
    assert "has no address for: gone.example" in two
    assert [line for line in alone if "a single host" in line]
    assert not [line for line in two if "a single host" in line]


def test_an_experiment_of_another_package_measures_counts_and_is_reported(plugged):
    plugged(AlwaysSplit)
    assert "sends at most 1" in list(plan_lines([PLACE], 60))[-1]
    with answering(lambda request: b"HTTP/1.1 200 OK\r\n\r\n") as port:
        place = Place(Target("host.example", port, False), "127.0.0.1")
        observations = measure([place], 600)
    found = observations.places[0]
    assert found.measured["always"] == port
    # The server is on this host, which comes first; apart from that the new finding counts.
    assert "always" in {each.name for verdict in judge(observations) for each in verdict.findings}
    written = document(judge(observations), observations)
    assert written["places"][0]["experiments"]["always"] == {"port": port}  # type: ignore[index]
    lonely = Observations((type(found)(place, found.distance, {QUESTIONS: found.measured[QUESTIONS], "always": 9}),))
    assert any(each.sentence == "Port 9 is split." for verdict in judge(lonely) for each in verdict.findings)


@pytest.mark.parametrize("kind", [int, type("Taken", (AlwaysSplit,), {"name": QUESTIONS})])
def test_what_is_no_experiment_is_refused_in_one_sentence(plugged, kind):
    plugged(kind)
    with pytest.raises(UsageError, match="must be subclasses of CheckExperiment with a name of their own, got "):
        check_experiments()
