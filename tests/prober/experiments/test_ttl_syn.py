"""The rule of the TTL-limited handshake: what counts as nearer, and what does not."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from pepscope.results.verdicts import Evidence, Outcome
from prober.errors import ArchiveError, PlanError
from prober.experiments.ttl_syn import ONLY_ECHO, TtlSyn
from prober.protocol.application import Application
from tests.prober.experiments.observed import plan_of, seen, tasks_of

if TYPE_CHECKING:
    from collections.abc import Callable

ROUNDS = 5
ROUTERS = "192.0.2."


def probes(target: str, answers: Callable[[int, int], bool], rounds: int = ROUNDS) -> list[dict[str, Any]]:
    """Rounds of 8 hops; `answers` is asked with round and hops."""
    return [
        {
            "target": target,
            "round": number,
            "hops": hops,
            "answer": "answered" if answered else "router",
            "router": "" if answered else f"{ROUTERS}{hops}",
            "mobile_port": 40_000 + 100 * number + hops,
        }
        for number in range(1, rounds + 1)
        for hops in range(1, 9)
        for answered in (answers(number, hops),)
    ]


def from_hops(least: int) -> Callable[[int, int], bool]:
    return lambda _, hops: hops >= least


def examined(*targets: list[dict[str, Any]]) -> tuple[Evidence, ...]:
    values = {"ports": {}, "probes": [probe for target in targets for probe in target]}
    return TtlSyn().examine([seen("ttl-syn", values, direction=None)])


def findings(*targets: list[dict[str, Any]]) -> list[tuple[Outcome, str]]:
    return [(item.outcome, item.finding) for item in examined(*targets)]


NEARER = [(Outcome.SPLIT, "handshake-answered-nearer")]
AT_THE_END = [(Outcome.INTACT, "handshake-answered-at-the-end")]


def test_a_handshake_that_completes_before_the_server_is_answered_nearer() -> None:
    (evidence,) = examined(
        probes("application", from_hops(4)), probes("free", from_hops(7)), probes("echo", from_hops(7))
    )
    assert evidence.outcome is Outcome.SPLIT
    assert (evidence.numbers["answered_at_hops"], evidence.numbers["server_at_hops"]) == (4, 7)
    assert evidence.numbers["router_before"] == f"{ROUTERS}3"
    assert evidence.numbers["tries"] == ROUNDS
    assert evidence.strength == pytest.approx(1 - 0.5**ROUNDS)


def test_a_free_port_answered_by_the_same_middlebox_leaves_the_echo_as_reference() -> None:
    (evidence,) = examined(
        probes("application", from_hops(4)), probes("free", from_hops(4)), probes("echo", from_hops(7))
    )
    assert evidence.finding == "handshake-answered-nearer"
    assert evidence.strength == pytest.approx(ONLY_ECHO * (1 - 0.5**ROUNDS))


def test_a_handshake_as_far_as_the_server_is_answered_at_the_end() -> None:
    assert findings(probes("application", from_hops(7)), probes("free", from_hops(7))) == AT_THE_END
    # A time to live that is raised on the way, on every port alike.
    every = [probes(target, from_hops(3)) for target in ("application", "free", "echo")]
    assert findings(*every) == AT_THE_END


def test_without_a_reference_there_is_no_finding() -> None:
    silent = probes("echo", lambda *_: False)
    assert findings(probes("application", from_hops(4))) == []
    assert findings(probes("application", from_hops(4)), silent) == []
    assert findings(silent) == []
    assert findings() == []


def test_few_tries_are_no_finding() -> None:
    few = [probes("application", from_hops(4), rounds=3), probes("free", from_hops(7), rounds=3)]
    assert findings(*few) == []


@pytest.mark.parametrize("lost", [1, 3])
def test_one_try_that_contradicts_is_enough_to_doubt(lost: int) -> None:
    """A handshake that completed only sometimes, or a reference that once answered as near."""
    usual = probes("application", lambda number, hops: hops >= 7 or (hops >= 4 and number != lost))
    assert findings(usual, probes("free", from_hops(7))) == AT_THE_END
    free = probes("free", lambda number, hops: hops >= 7 or (hops >= 4 and number == lost))
    assert findings(probes("application", from_hops(4)), free) == []


def test_paths_of_different_lengths_rarely_look_like_a_nearer_answer() -> None:
    """ECMP: each flow takes one of two paths by chance; at so many tries as a rule needs, 2^-8 is the worst of it."""
    chance = random.Random(2005)

    def by_chance(_: int, hops: int) -> bool:
        return hops >= chance.choice((5, 6))

    runs = 2000
    fooled = sum(
        findings(*(probes(target, by_chance) for target in ("application", "free"))) == NEARER for _ in range(runs)
    )
    assert fooled <= runs * 2**-8


@pytest.mark.parametrize(
    "entry",
    [
        {"target": "application"},
        {"target": "application", "hops": "four", "answer": "answered", "router": "", "mobile_port": 1},
        {"target": "application", "hops": 4, "answer": "perhaps", "router": "", "mobile_port": 1},
        {"target": 7, "hops": 4, "answer": "answered", "router": "", "mobile_port": 1},
    ],
)
def test_measurements_that_are_none_are_refused(entry: dict[str, Any]) -> None:
    with pytest.raises(ArchiveError):
        examined([entry])


def test_facts_name_the_routers_of_each_target() -> None:
    values = {"ports": {}, "probes": [*probes("application", from_hops(2)), *probes("echo", from_hops(3))]}
    facts = TtlSyn().metrics([seen("ttl-syn", values, direction=None)])
    assert facts["hops"]["application"] == {"answers_from_hops": 2, "routers": {"1": [f"{ROUTERS}1"]}}
    assert list(facts["hops"]["echo"]["routers"]) == ["1", "2"]


@pytest.mark.parametrize("changes", [{"rounds": 0}, {"most_hops": 0}, {"most_hops": 256}])
def test_settings_that_make_no_sense_are_refused(changes: dict[str, int]) -> None:
    plan = replace(plan_of(TtlSyn(), **changes), applications=(Application.TCP,))
    with pytest.raises(PlanError, match="ttl-syn"):
        list(tasks_of(TtlSyn(), plan))
