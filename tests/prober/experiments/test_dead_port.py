"""The rule of the dead port: who answers is one question, who takes payload another."""

from __future__ import annotations

from typing import Any

import pytest

from detector.verdict.weighing import judge
from pepscope.results.verdicts import Evidence, Outcome, Verdict
from prober.errors import ArchiveError, MeasurementError
from prober.experiments.dead_port import FIRST_SEGMENT_BYTES, DeadPort, note_arrivals
from prober.protocol.application import Application
from prober.protocol.control_messages import Served
from tests.prober.experiments.observed import plan_of, seen, tasks_of


def attempt(outcome: str, acked: float = 0) -> dict[str, Any]:
    return {"outcome": outcome, "acked_bytes": acked, "sent_bytes": 65_536, "answer_head": "", "ending": "open"}


def examined(*attempts: dict[str, Any]) -> tuple[Evidence, ...]:
    values = {"target": "silenced", "port": 80, "attempts": list(attempts)}
    return DeadPort().examine([seen("dead-port", values, direction=None)])


def findings(*attempts: dict[str, Any]) -> list[tuple[Outcome, str]]:
    return [(item.outcome, item.finding) for item in examined(*attempts)]


def test_payload_acknowledged_while_the_server_is_silent_is_a_split() -> None:
    evidence = examined(attempt("answered", 65_536), attempt("silent"))
    assert [item.finding for item in evidence] == ["dead-port-took-data"]
    assert judge(evidence).verdict is Verdict.SPLIT_TCP


@pytest.mark.parametrize("acked", [1, 1448, FIRST_SEGMENT_BYTES])
def test_a_firewall_that_reads_the_first_request_does_not_decide(acked: int) -> None:
    evidence = examined(attempt("answered", acked), attempt("answered", acked))
    assert [item.finding for item in evidence] == ["dead-port-took-data"]
    assert evidence[0].caveats
    assert judge(evidence).verdict is Verdict.INCONCLUSIVE


def test_a_firewall_that_only_answers_handshakes_does_not_decide() -> None:
    evidence = examined(*[attempt("answered") for _ in range(20)])
    assert [item.finding for item in evidence] == ["dead-port-answered"]
    assert judge(evidence).verdict is Verdict.INCONCLUSIVE


def test_silence_is_weak_evidence_for_end_to_end() -> None:
    evidence = examined(attempt("silent"), attempt("silent"))
    assert [(item.outcome, item.finding) for item in evidence] == [(Outcome.INTACT, "dead-port-silent")]
    assert judge(evidence).verdict is Verdict.INCONCLUSIVE


def test_a_request_on_an_older_connection_is_proof_whatever_else_was_met() -> None:
    evidence = examined({**attempt("answered", 20_000), "older_by_s": 3.5}, attempt("answered", 20_000))
    assert [item.finding for item in evidence] == ["request-on-older-connection", "dead-port-took-data"]
    assert judge(evidence[:1]).verdict is Verdict.SPLIT_TCP
    assert "1 of 2 new connections" in evidence[0].summary


def arrived(nonce: int, accepted_ns: int) -> Served:
    head = f"PUT /uploads/S/dead-port-{nonce} HTTP/1.1\r\n\r\n".encode()
    return Served(
        1, Application.HTTP_DATA, "192.0.2.1:4", 80, "PUT", "x", 0, 0, 0, "", head, 5, 6, "finished", {},
        connection_accepted_ns=accepted_ns, connection_requests=1,
    )  # fmt: skip


def test_the_request_is_found_by_its_nonce_and_its_connection_by_its_age() -> None:
    attempts = [{"nonce": 11}, {"nonce": 12}]
    note_arrivals(attempts, [arrived(12, 4_000_000_000)], 5_000_000_000)
    assert attempts == [{}, {"older_by_s": 1.0}]


@pytest.mark.parametrize(("nonce", "accepted_ns"), [(12, 5_000_000_001), (12, 5_000_000_000), (13, 4), (12, 0)])
def test_any_other_request_that_arrives_means_that_the_server_was_not_silent(nonce: int, accepted_ns: int) -> None:
    with pytest.raises(MeasurementError, match="not silent"):
        note_arrivals([{"nonce": 11}, {"nonce": 12}], [arrived(nonce, accepted_ns)], 5_000_000_000)


@pytest.mark.parametrize("attempts", [(), ("refused",), ("refused", "silent")])
def test_a_refusal_is_no_finding(attempts: tuple[str, ...]) -> None:
    assert findings(*map(attempt, attempts)) == []


@pytest.mark.parametrize("damage", [{"outcome": 5}, {"acked_bytes": "much", "outcome": "answered"}, {"outcome": None}])
def test_measurements_that_are_none_are_refused(damage: dict[str, Any]) -> None:
    with pytest.raises(ArchiveError):
        examined({**attempt("silent"), **damage})


def test_raw_tcp_has_the_dead_port_beside_its_own() -> None:
    plan = plan_of(DeadPort())
    targets = [(task.application, task.parameters["target"]) for task in tasks_of(DeadPort(), plan)]
    assert targets.count((Application.TCP, "dead")) == 1
    assert {application for application, target in targets if target == "silenced"} == set(Application)
    assert len({task.key for task in tasks_of(DeadPort(), plan)}) == len(targets)
