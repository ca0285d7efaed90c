"""Findings of a capture that was taken during a check."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from pepscope.errors import PepscopeError
from pepscope.results.verdicts import GroupResult, GroupSide, SplitPlace, Verdict
from prober.audit import check_capture
from prober.audit.check_capture import CheckCapture
from prober.check.experiment import PlaceObservation
from prober.check.experiments.questions import NAME, Questions
from prober.check.finding import CheckFinding, Says
from prober.check.judging import CheckVerdict, judge
from prober.check.measuring import Observations
from prober.check.probes.data_probe import DataAnswer
from prober.check.probes.distances import Distance
from prober.check.targets import Place, Target

PLACE = Place(Target("host.example", 80, False), "203.0.113.7")
ANSWER = DataAnswer(None, 0.02, 0.02, 0.03, b"", False, 0.02, local_port=40_001)
OBSERVED = Observations((PlaceObservation(PLACE, Distance.unknown(), {NAME: Questions((ANSWER,))}),))


class Recorded:
    """A capture that was ended, and how often."""

    def __init__(self) -> None:
        self.path = Path("check.pcap")
        self.ended = 0

    def finish(self) -> None:
        self.ended += 1


def group(verdict: Verdict, where: SplitPlace | None = None, host: str = PLACE.address) -> GroupResult:
    return GroupResult(
        GroupSide.CLIENT, "192.0.2.0/24", 80, (host,), (0,), 9, verdict, {}, None, where, 0.02, 0.05, None,
        "Answers come late.", (),
    )  # fmt: skip


def found(
    monkeypatch: pytest.MonkeyPatch,
    *groups: GroupResult,
    stacks: Sequence[tuple[tuple[int, int], CheckFinding]] = (),
) -> tuple[Any, dict[str, Any]]:
    asked: dict[str, Any] = {}

    def detect(files: Any, **options: Any) -> Any:
        asked.update(options)
        return type("Result", (), {"groups": groups})

    monkeypatch.setattr(check_capture, "detect_vantage", detect)
    monkeypatch.setattr(check_capture, "stack_findings", lambda path, observations: stacks)
    live = Recorded()
    capture = CheckCapture(live)  # type: ignore[arg-type]
    further = capture.finish(OBSERVED)
    capture.abandon()
    assert live.ended == 1
    return further, asked


def test_only_ordinary_connections_and_references_are_judged(monkeypatch):
    _, asked = found(monkeypatch)
    assert asked == {"taken_at": "client", "filter": "icmp or icmp6 or udp or (tcp and (port 40001))"}


def test_a_hidden_leg_supports_and_decides_nothing_alone(monkeypatch):
    further, _ = found(monkeypatch, group(Verdict.SPLIT_TCP, SplitPlace.NETWORK))
    ((key, (finding,)),) = further.items()
    assert (key, finding.says, finding.hosts) == ((4, 80), Says.SPLIT_SUPPORT, ("host.example",))
    assert finding.numbers["capture_hidden_round_trip_s"] == pytest.approx(0.05)


def test_one_stack_and_a_hidden_leg_of_one_capture_decide_nothing(monkeypatch):
    one = CheckFinding("capture-shows-one-stack", Says.SPLIT_SUPPORT, "One machine answers.", ("host.example",))
    further, _ = found(monkeypatch, group(Verdict.SPLIT_TCP, SplitPlace.NETWORK), stacks=[((4, 80), one)])
    assert [each.says for each in further[4, 80]] == [Says.SPLIT_SUPPORT] * 2
    assert judge(OBSERVED, further=further)[0].verdict is CheckVerdict.INCONCLUSIVE


@pytest.mark.parametrize(
    ("verdict", "where"),
    [(Verdict.SPLIT_TCP, SplitPlace.SERVER), (Verdict.REGULAR, None), (Verdict.INCONCLUSIVE, None)],
)
def test_everything_else_is_named(monkeypatch, verdict, where):
    further, _ = found(monkeypatch, group(verdict, where))
    assert [each.says for each in further[4, 80]] == [Says.NAMED]


def test_other_hosts_in_the_capture_are_left_out(monkeypatch):
    assert found(monkeypatch, group(Verdict.SPLIT_TCP, host="203.0.113.8"))[0] == {}


def test_a_capture_where_no_device_leads_is_refused(monkeypatch, tmp_path):
    monkeypatch.setattr(check_capture, "device_of", lambda address: None)
    with pytest.raises(PepscopeError, match="no device of this host"):
        CheckCapture.begin([Place(PLACE.target, "127.0.0.1")], tmp_path / "check.pcap")
