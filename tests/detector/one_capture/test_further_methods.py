"""Other methods heard of one capture: delayed acknowledgements, and plug-ins."""

from __future__ import annotations

import pytest

from detector.detection import detect, detect_vantage
from detector.method import Context, Findings, Method
from detector.methods import METHODS
from detector.one_capture import further_methods
from detector.one_capture.further_methods import ConnectionsAlone, further_evidence
from detector.options import METHOD_PLUG_INS, DetectOptions
from pepscope.captures.capture import open_capture
from pepscope.results.finding import Finding, Weight, split
from tests.detector.one_capture.real_networks import named

SPLIT, WHOLE = str(named("lte-relay.server").path), str(named("umts-nat.server").path)


class Seen(Finding):
    """What the plug-in finds."""

    SEEN = split("plug-in-saw-it", Weight("plug-in", -9.0, 0.0, 0.0, 0.0, "The plug-in is certain."))


def found(context: Context) -> Findings:
    return Findings([Seen.SEEN.evidence("plug_in", 1.0, "The plug-in saw it.", {}) for _ in context.observations])


PLUG_IN = Method("plug_in", "Plug-in", (Seen,), found, lambda _: True)


def test_nobody_is_asked_without_a_reason() -> None:
    options = DetectOptions()
    assert list(further_methods.further_methods(options)) == []
    assert further_evidence([open_capture(WHOLE)], options, ()) is None


def test_the_delay_of_acknowledgements_is_asked_for_where_it_is_given() -> None:
    for result in (detect(WHOLE, ack_delay_s=0.5), detect_vantage([WHOLE, SPLIT], ack_delay_s=0.5)):
        assert all("delayed_ack" in {item.method for item in pair.evidence} for pair in result.pairs)
    assert all("delayed_ack" not in {item.method for item in pair.evidence} for pair in detect(WHOLE).pairs)


def test_connections_are_counted_through_all_captures() -> None:
    captures = [open_capture(WHOLE), open_capture(SPLIT)]
    alone = ConnectionsAlone(captures, DetectOptions())
    counts = [len(capture.connections) for capture in captures]
    names = [alone.pair(number).names[0].capture for number in range(sum(counts))]
    assert names == [WHOLE] * counts[0] + [SPLIT] * counts[1]
    with pytest.raises(IndexError):
        alone.pair(sum(counts))


def test_a_plug_in_is_heard_of_every_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("detector.methods.methods", lambda: (*METHODS, PLUG_IN))
    monkeypatch.setattr(further_methods, "is_offered", lambda group: group == METHOD_PLUG_INS)
    result = detect(WHOLE)
    assert all("plug_in" in {item.method for item in pair.evidence} for pair in result.pairs)


def test_a_connection_that_evidence_leaves_open_is_told_of_its_group_once() -> None:
    result = detect(SPLIT, ack_delay_s=0.4)
    told = [pair.reason.lower().count("its group") for pair in result.pairs]
    assert set(told) <= {0, 1}
    assert 1 in told
