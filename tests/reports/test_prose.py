from __future__ import annotations

import copy
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from pepscope.captures.files.named_packets import EvidencePacket
from pepscope.results.verdicts import Evidence, Outcome, PairResult, Verdict
from reports.detection.contract import read_document
from reports.detection.prose import explain
from reports.errors import ReportError
from tests.reports.results_made_by_hand import make_pair, make_result


def document(*pairs: PairResult) -> dict[str, Any]:
    parsed: dict[str, Any] = json.loads(make_result(*pairs).to_json())
    return parsed


def test_a_split_is_explained_with_numbers_and_units() -> None:
    text = explain(document(make_pair(Verdict.SPLIT_TCP)), width=80)
    flat = " ".join(text.split())
    assert "Verdict: split-tcp." in flat
    assert "Probability: 96 %." in flat
    assert "Evidence for it: - Packet identity (very firm, strength 0.97)" in flat
    assert "Evidence against it: Nothing." in flat
    assert "slack: -512 ms" in flat
    assert "rate: 2.5 Mbit/s" in flat
    assert "- Both captures come from one host. (packet identity)" in flat
    assert max(len(line) for line in text.splitlines()) <= 80


def test_a_regular_connection_counts_intact_evidence_for_it() -> None:
    flat = " ".join(explain(make_result(make_pair(Verdict.REGULAR)), width=100).split())
    assert "Evidence for it: - Packet identity" in flat
    assert "What to do next" not in flat


def test_one_capture_and_a_short_transfer_lead_to_advice() -> None:
    flat = " ".join(
        explain(make_result(make_pair(Verdict.INCONCLUSIVE, captures=("a.pcap",), payload_bytes=900))).split()
    )
    assert "Seen in a.pcap only." in flat
    assert "Capture the same transfer at the other end too" in flat
    assert "Repeat with a longer transfer: 1.02 kB" in flat
    assert "--ack-delay T" in flat


def test_methods_that_disagree_are_named_as_such() -> None:
    evidence = (
        Evidence("identity", Outcome.SPLIT, "a", 0.4, "One."),
        Evidence("ack_timing", Outcome.INTACT, "b", 0.4, "Two."),
    )
    assert "The methods disagree" in explain(make_result(make_pair(Verdict.INCONCLUSIVE, evidence=evidence)))


def test_many_connections_are_counted_not_listed() -> None:
    text = explain(make_result(*[make_pair(Verdict.REGULAR)] * 30), width=80)
    assert text.count("Verdict:") == 20
    assert "10 more connections are not shown here" in " ".join(text.split())


def test_the_document_reads_back_to_the_same_result() -> None:
    result = make_result(make_pair(Verdict.TCP_PROXY), make_pair(Verdict.INCONCLUSIVE), warnings=("Cut.",))
    again = read_document(json.loads(result.to_json()))
    assert again.to_dict() == result.to_dict()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda d: [], "the document must be an object, got a list"),
        (lambda d: d | {"schema": 3}, "schema 3"),
        (lambda d: {k: v for k, v in d.items() if k != "schema"}, "no 'schema' number"),
        (lambda d: {"schema": 1, "packets": 3, "connections": []}, "pepscope inspect"),
        (lambda d: d | {"pairs": {}}, "pairs must be a list, got a table"),
        (lambda d: d["pairs"][0].update(verdict="maybe") or d, "pairs[0].verdict must be one of regular"),
        (lambda d: d["pairs"][0].update(vantages=[]) or d, "pairs[0].vantages must be a list of 1 to 2 entries"),
        (
            lambda d: d["pairs"][0]["probability"].update(regular=1.5) or d,
            "probability.regular must be a number between 0 and 1, got 1.5",
        ),
        (lambda d: d["pairs"][0]["evidence"][0].pop("summary") and d, "pairs[0].evidence[0].summary is missing"),
        (
            lambda d: d["pairs"][0]["evidence"][0].update(numbers={"x": [1]}) or d,
            "evidence[0].numbers.x must be a number",
        ),
    ],
)
def test_a_wrong_file_gets_one_sentence(change: Callable[[dict[str, Any]], Any], said: str) -> None:
    changed = change(copy.deepcopy(document(make_pair(Verdict.SPLIT_TCP))))
    with pytest.raises(ReportError) as caught:
        explain(changed)
    message = str(caught.value)
    assert said in message
    assert "\n" not in message
    assert message.endswith(".")


def test_packets_stand_below_their_finding_with_lines_to_paste() -> None:
    made = make_pair(Verdict.SPLIT_TCP)
    first = made.vantages[0].capture
    shown = tuple(
        EvidencePacket(first, number, 1_700_000_000_000_000_000, "acknowledges much") for number in range(1, 9)
    )
    pair = replace(made, evidence=(replace(made.evidence[0], packets=shown), *made.evidence[1:]))
    text = explain(document(pair), width=100)
    assert f"- frame 1 of {first}, 2023-11-14T22:13:20.000000000Z: acknowledges" in text
    assert "frame 7 of" not in text
    assert "2 more in the JSON" in text
    assert f"    tshark -r {first} -Y 'frame.number in {{1, 2, 3, 4, 5, 6, 7, 8}}'" in text.splitlines()
    assert "frame" not in explain(document(made), width=100)


def test_a_verdict_of_the_first_version_is_explained() -> None:
    old = document(make_pair(Verdict.SPLIT_TCP)) | {"schema": 1}
    del old["tool"]
    for pair in old["pairs"]:
        for item in pair["evidence"]:
            del item["packets"], item["find"]
    assert "Verdict: split-tcp" in explain(old)
