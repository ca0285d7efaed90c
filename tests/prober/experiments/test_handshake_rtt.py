"""The rule of the shortest handshakes: a test of ranks that is exact, and that chance and jitter do not fool."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from detector.verdict.weighing import judge
from pepscope.results.verdicts import Evidence, Verdict
from prober.errors import ArchiveError
from prober.experiments.handshake_rtt import CHANCE, HandshakeRtt, chance_of_precedence
from tests.prober.experiments.observed import seen


def times(floor_s: float, count: int = 30, jitter_s: float = 0.01, seed: int = 1) -> list[float]:
    """Heavy-tailed waiting above a floor, as queues and schedulers make it."""
    chance = random.Random(f"{floor_s} {seed}")
    return [floor_s + jitter_s * (chance.paretovariate(1.5) - 1) for _ in range(count)]


def examined(**kinds: list[float]) -> tuple[Evidence, ...]:
    values: dict[str, Any] = {"clock_resolution_s": 1e-9, **kinds}
    return HandshakeRtt().examine([seen("handshake-rtt", values, direction=None)])


def findings(**kinds: list[float]) -> list[str]:
    return [item.finding for item in examined(**kinds)]


@given(st.integers(1, 12), st.integers(1, 12), st.data())
def test_the_chance_of_precedence_is_that_of_choosing(first: int, second: int, data: st.DataObject) -> None:
    """Of all ways to place n among n + m, those in which the k shortest are all of the first kind."""
    below = data.draw(st.integers(0, first))
    own = [0.1] * below + [0.9] * (first - below)
    expected = math.comb(first + second - below, second) / math.comb(first + second, second)
    assert chance_of_precedence(own, [0.5] * second) == pytest.approx(expected)


def test_handshakes_shorter_than_the_path_are_answered_nearer_and_do_not_decide() -> None:
    evidence = examined(handshake_s=times(0.06), echo_s=times(0.1, seed=2), free_s=times(0.1, seed=3))
    (found,) = evidence
    assert found.finding == "handshake-shorter-than-path"
    assert found.strength == 1.0
    assert found.numbers["chance"] < CHANCE
    assert judge(evidence).verdict is Verdict.INCONCLUSIVE


def test_the_free_port_and_the_answers_are_weaker_references() -> None:
    (by_free,) = examined(handshake_s=times(0.06), free_s=times(0.1))
    (by_answer,) = examined(handshake_s=times(0.06), answer_s=times(0.14))
    assert 1.0 > by_free.strength > by_answer.strength > 0


def test_handshakes_as_long_as_the_path_are_a_finding() -> None:
    assert findings(handshake_s=times(0.1), echo_s=times(0.1, seed=2)) == ["handshake-as-long-as-path"]


def test_what_the_ends_need_to_answer_is_no_distance() -> None:
    """An echo that a program answers 1.5 ms later than a kernel; a server that thinks for 20 ms."""
    fast = [0.05 + one / 1e6 for one in range(30)]
    assert findings(handshake_s=fast, echo_s=[one + 0.0015 for one in fast]) == ["handshake-as-long-as-path"]
    assert findings(handshake_s=fast, answer_s=[one + 0.02 for one in fast]) == []
    # GPRS: hundreds of bytes more at 40 kbit/s.
    slow = [0.7 + one / 1e6 for one in range(30)]
    assert findings(handshake_s=slow, answer_s=[one + 0.1 for one in slow]) == []


def test_equal_paths_are_hardly_ever_called_different() -> None:
    fooled = 0
    for seed in range(2000):
        made = findings(
            handshake_s=times(0.1, 12, seed=seed),
            echo_s=times(0.1, 12, seed=-seed - 1),
            free_s=times(0.1, 12, seed=-seed - 5000),
        )
        fooled += made == ["handshake-shorter-than-path"]
    # Twice the bound a reference and run, for chance in the test itself.
    assert fooled <= 2 * 2 * CHANCE * 2000


def test_a_sleeping_radio_bearer_changes_nothing() -> None:
    woken = [1.8, 0.9, *times(0.1)]
    assert findings(handshake_s=woken, echo_s=times(0.1, seed=2)) == ["handshake-as-long-as-path"]
    assert findings(handshake_s=times(0.1), echo_s=[2.0, 1.1, *times(0.1, seed=2)]) == ["handshake-as-long-as-path"]


def test_few_times_are_no_finding() -> None:
    assert findings(handshake_s=times(0.06, 9), echo_s=times(0.1)) == []
    assert findings(handshake_s=times(0.06), echo_s=times(0.1, 9)) == []
    assert findings(handshake_s=times(0.06)) == []


@pytest.mark.parametrize(
    "damage", [{"handshake_s": 5}, {"handshake_s": ["0.1"]}, {"echo_s": [-0.1]}, {"clock_resolution_s": "fine"}]
)
def test_measurements_that_are_none_are_refused(damage: dict[str, Any]) -> None:
    with pytest.raises(ArchiveError):
        examined(**{"handshake_s": times(0.1), "echo_s": times(0.1), **damage})


def test_metrics_have_minima_and_medians() -> None:
    values = {"clock_resolution_s": 1e-9, "handshake_s": [0.3, 0.1, 0.2], "echo_s": [0.4]}
    facts = HandshakeRtt().metrics([seen("handshake-rtt", values, direction=None)])
    assert facts["times"]["handshake_s"] == {"min": 0.1, "median": 0.2, "count": 3}
    assert "free_s" not in facts["times"]
