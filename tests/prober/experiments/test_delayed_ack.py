"""Method 3's rules: how T grows, what the sender's kernel says, and what of the captures counts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from detector.verdict.weighing import judge
from pepscope.captures.packets import Direction
from pepscope.results.verdicts import Evidence, Outcome, PairResult, VantageName, Verdict
from prober.client.capabilities import Capability
from prober.client.transfer import Flow
from prober.client.upload_watch import RoundTrip
from prober.errors import ArchiveError, PlanError
from prober.experiments.delayed_ack import DelayedAck, largest_round_trip_s, next_delay_s
from prober.measurement.experiment import ObservedTask
from prober.measurement.held_round import HeldRound as Round
from prober.measurement.task import Measurement, Observation, Status, Task
from prober.protocol.application import Application
from tests.prober.experiments.observed import plan_of, tasks_of

T = 0.8
IDLE = [0.12, 0.1, 0.11]
MOBILE_PORT = 40_001


def held(**changes: Any) -> dict[str, Any]:
    return {
        "delay_s": T,
        "round_trip_s": T + 0.1,
        "smoothed_s": None,
        "answered_segments": 0,
        "held": 50,
        "largest_error_s": 0.001,
        "moved_bytes": 100_000,
        "total_s": 4.0,
        **changes,
    }


def pair(*findings: str, mobile_port: int = MOBILE_PORT) -> PairResult:
    evidence = tuple(
        Evidence(
            "delayed_ack" if finding.endswith("from-receiver") else "identity",
            Outcome.SPLIT if finding == "acks-not-from-receiver" else Outcome.INTACT,
            finding,
            0.95,
            "A sentence.",
        )
        for finding in findings
    )
    vantage = VantageName("mobile.pcap", f"10.0.0.2:{mobile_port}", "203.0.113.10:80")
    return PairResult((vantage,), Verdict.INCONCLUSIVE, {}, "", evidence, 100, 1000, 100_000, 4.0)


def measured(*pairs: PairResult, idle: Any = IDLE, rounds: Any = None, **changes: Any) -> ObservedTask:
    task = Task("delayed-ack", 1, Application.HTTP_DATA, Direction.UP)
    values = {"idle_round_trips_s": idle, "rounds": [held(**changes)] if rounds is None else rounds}
    measurement = Measurement(values, (Flow(MOBILE_PORT, 80, "held"),), ack_delay_s=T)
    return ObservedTask(Observation(task, Status.DONE, "", 0, 1.0, measurement), pairs)


def findings(*seen: ObservedTask) -> list[str]:
    return [item.finding for item in DelayedAck().examine(seen)]


def test_acknowledgements_well_before_t_are_a_middleboxs() -> None:
    assert findings(measured(round_trip_s=0.06)) == ["acks-not-from-receiver"]


def test_no_acknowledgement_before_t_is_evidence_for_end_to_end() -> None:
    (sure,) = DelayedAck().examine([measured()])
    assert (sure.finding, sure.strength) == ("acks-only-from-receiver", 0.9)
    (unsure,) = DelayedAck().examine([measured(idle=[0.7])])
    assert unsure.strength < sure.strength


@pytest.mark.parametrize("round_trip_s", [None, 0.5 * T, 0.6 * T, 0.94 * T])
def test_values_between_are_no_finding(round_trip_s: float | None) -> None:
    assert findings(measured(round_trip_s=round_trip_s)) == []


def test_a_hold_without_acks_is_no_finding() -> None:
    assert findings(measured(round_trip_s=0.06, held=0)) == []


def test_a_firewall_that_answered_only_the_handshake_is_no_split() -> None:
    """Down, the server's least round trip is the handshake's; what follows is smoothed, and long."""
    assert findings(measured(round_trip_s=0.04, smoothed_s=0.9 * T, answered_segments=50)) == []
    assert findings(measured(round_trip_s=0.04, smoothed_s=0.3 * T, answered_segments=50)) == []
    assert findings(measured(round_trip_s=0.04, smoothed_s=0.05, answered_segments=5)) == []
    assert findings(measured(round_trip_s=0.04, smoothed_s=0.05, answered_segments=50)) == ["acks-not-from-receiver"]


def test_captures_count_where_there_are_any() -> None:
    (evidence,) = DelayedAck().examine([measured(pair("acks-only-from-receiver"))])
    assert evidence.method == "delayed_ack"


def test_connections_of_other_rounds_do_not_count() -> None:
    """T is true of the last round only: an earlier one, held for less, would look like a middlebox's ACKs."""
    earlier = pair("acks-not-from-receiver", mobile_port=MOBILE_PORT + 1)
    assert findings(measured(pair("acks-only-from-receiver"), earlier)) == ["acks-only-from-receiver"]


def test_acknowledgements_of_a_middlebox_without_a_split_are_distinguished() -> None:
    """Radio networks that acknowledge themselves: the payload segments are still the far end's."""
    seen = measured(pair("acks-not-from-receiver", "same-packets"), round_trip_s=0.06)
    assert findings(seen) == []
    assert DelayedAck().metrics([seen])["acknowledged_on_the_way_without_split"] == 1


def test_repeats_that_disagree_are_both_reported() -> None:
    assert sorted(findings(measured(), measured(round_trip_s=0.06))) == [
        "acks-not-from-receiver",
        "acks-only-from-receiver",
    ]


@pytest.mark.parametrize(
    ("round_trip_s", "largest_idle_s", "expected_s"),
    [
        (0.06, 0.1, None),  # clearly short
        (0.9, 0.1, None),  # clearly long, and T well above the path's
        (0.6, 0.1, 2.4),  # neither: a larger T will tell
        (1.5, 0.1, 2.8),  # long, but the queue makes the path nearly as long as T
        (0.9, 0.6, 2.4),
        (None, 0.1, None),
    ],
)
def test_t_grows_until_the_answer_is_clear(
    round_trip_s: float | None, largest_idle_s: float, expected_s: float | None
) -> None:
    made = next_delay_s(Round(T, round_trip_s), largest_idle_s, 6.0)
    assert made == (None if expected_s is None else pytest.approx(expected_s))


def test_t_does_not_grow_beyond_its_bound_or_for_a_firewalls_sake() -> None:
    assert next_delay_s(Round(3.0, 2.0), 0.1, 6.0) == 6.0
    assert next_delay_s(Round(6.0, 4.0), 0.1, 6.0) is None
    assert next_delay_s(Round(T, 0.04, smoothed_s=0.9 * T), 0.1, 6.0) is None


def test_a_lost_syn_is_no_round_trip() -> None:
    assert largest_round_trip_s([0.1, 0.12, 1.11, 3.1, 0.11]) == 0.12
    # A path that is slow, always or at first, is one.
    assert largest_round_trip_s([1.9, 1.2, 1.3]) == 1.9
    assert largest_round_trip_s([0.7]) == 0.7


@pytest.mark.parametrize(
    "seen",
    [
        measured(idle=[]),
        measured(idle="0.1"),
        measured(idle=[float("nan")]),
        measured(rounds=[{}]),
        measured(rounds="none"),
        measured(held="many"),
    ],
)
def test_measurements_that_are_none_are_refused(seen: ObservedTask) -> None:
    with pytest.raises(ArchiveError):
        DelayedAck().examine([seen])


def test_each_direction_needs_a_hold_at_its_receiver() -> None:
    tasks = list(tasks_of(DelayedAck(), plan_of(DelayedAck())))
    assert {(task.direction, task.requires) for task in tasks} == {
        (Direction.DOWN, frozenset({Capability.MOBILE_HOLD})),
        (Direction.UP, frozenset({Capability.SERVER_HOLD})),
    }


@pytest.mark.parametrize("changes", [{"least_delay_s": 0.0}, {"most_delay_s": 30.0}, {"least_delay_s": 7.0}])
def test_delays_that_make_no_sense_are_refused(changes: dict[str, float]) -> None:
    plan = plan_of(DelayedAck(), **changes)
    with pytest.raises(PlanError, match="delayed-ack"):
        list(tasks_of(DelayedAck(), plan))


def trips(*seconds: float) -> list[RoundTrip]:
    return [RoundTrip(14_600 * place, one) for place, one in enumerate(seconds, 1)]


def test_a_box_that_begins_late_is_seen_where_it_begins() -> None:
    made = Round(T)
    made.note(trips(T, T, T, 0.06, 0.05, 0.06))
    assert (made.round_trip_s, made.late_round_trip_s, made.short_from_bytes) == (T, 0.06, 3 * 14_600)
    assert made.is_clearly_short
    assert not made.is_clearly_long
    (evidence,) = DelayedAck().examine([measured(late_round_trip_s=0.06, short_from_bytes=3 * 14_600)])
    assert (evidence.finding, evidence.numbers["from_bytes"]) == ("acks-not-from-receiver", 3 * 14_600)
    assert "after 43800 bytes" in evidence.summary


def test_a_few_short_round_trips_late_in_a_connection_are_none() -> None:
    made = Round(T)
    made.note(trips(T, T, 0.06, T, 0.06, T))
    assert made.late_round_trip_s is None
    made.note(())
    assert made.round_trip_s == T


ECHOES = [0.1, 0.11, 0.12]


def with_echoes(item: ObservedTask, echoes: Any = ECHOES) -> ObservedTask:
    measurement = item.observation.measurement
    values = {**measurement.values, "echo_round_trips_s": echoes}
    return replace(item, observation=replace(item.observation, measurement=replace(measurement, values=values)))


def test_acknowledgements_that_come_sooner_than_an_echo_were_made_before_the_bytes_arrived() -> None:
    assert findings(with_echoes(measured(round_trip_s=0.06))) == ["acks-not-from-receiver", "acks-sooner-than-path"]
    down = measured(round_trip_s=0.04, smoothed_s=0.05, answered_segments=50)
    assert "acks-sooner-than-path" in findings(with_echoes(down))


@pytest.mark.parametrize("round_trip_s", [0.085, 0.1, 0.2])
def test_acknowledgements_that_are_not_early_may_be_a_radio_networks_and_do_not_decide(round_trip_s: float) -> None:
    (evidence,) = DelayedAck().examine([with_echoes(measured(round_trip_s=round_trip_s))])
    assert evidence.finding == "acks-not-from-receiver"
    assert judge([evidence]).verdict is Verdict.INCONCLUSIVE


@pytest.mark.parametrize("same", ["same-packets", "same-data", "acks-nobody-sent"])
def test_a_box_that_leaves_the_data_as_they_are_counts_where_its_acknowledgements_are_early(same: str) -> None:
    seen = measured(pair("acks-not-from-receiver", same), round_trip_s=0.06)
    assert findings(seen) == []
    assert DelayedAck().metrics([seen])["acknowledged_on_the_way_without_split"] == 1
    assert findings(with_echoes(seen)) == ["acks-not-from-receiver", "acks-sooner-than-path"]
    assert DelayedAck().metrics([with_echoes(seen)])["acknowledged_on_the_way_without_split"] == 0
    late = with_echoes(measured(pair("acks-not-from-receiver", same), round_trip_s=0.1))
    assert findings(late) == []


@pytest.mark.parametrize("echoes", ["many", [None], [[0.1]], ["0.1"] * 3])
def test_echoes_that_are_none_are_refused(echoes: Any) -> None:
    with pytest.raises(ArchiveError):
        DelayedAck().examine([with_echoes(measured(round_trip_s=0.06), echoes)])


def test_the_plan_moves_enough_to_see_a_box_that_begins_late() -> None:
    plan = plan_of(DelayedAck())
    tasks = list(tasks_of(DelayedAck(), plan))
    assert {task.parameters["size_bytes"] for task in tasks} == {1_000_000}
    small = plan_of(DelayedAck(), size_bytes=10_000)
    fewer = tasks_of(DelayedAck(), small)
    assert all(large.expected_s > little.expected_s + 3 for large, little in zip(tasks, fewer, strict=True))


@pytest.mark.parametrize(("captured_s", "kernel_s", "is_early"), [(0.04, 0.04, True), (0.04, 0.09, False)])
def test_a_queue_at_the_sender_hides_nothing_that_a_capture_and_the_kernel_show(
    captured_s: float, kernel_s: float, is_early: bool
) -> None:
    """The smoothed time is the queue's; the least one of the kernel may be of a handshake, that of a capture is not."""
    one = pair("acks-not-from-receiver", "same-data")
    found = tuple(replace(item, numbers={"round_trip_min_s": captured_s}) for item in one.evidence)
    seen = measured(replace(one, evidence=found), round_trip_s=kernel_s, smoothed_s=0.3, answered_segments=50)
    assert ("acks-sooner-than-path" in findings(with_echoes(seen))) == is_early
    assert findings(seen) == []
