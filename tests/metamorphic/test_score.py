"""A wrong verdict is counted, cases can be replayed, and a run that was stopped goes on."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks.metamorphic import case as case_module
from benchmarks.metamorphic.case import draw_case, judge_case, unchanged
from benchmarks.metamorphic.changes import CHANGES, Step, applied
from benchmarks.metamorphic.pairs import Source, sources
from benchmarks.metamorphic.report import failures, section
from benchmarks.metamorphic.run import Scored, score
from benchmarks.metamorphic.score import Answer, Judgement, judged
from detector.corpora.validation.intervals import wilson
from pepscope.results.verdicts import PairResult, VantageName, Verdict

TESTS = Path(__file__).parents[1]
REGULAR = Source(str(TESTS / "fresh"), "reg-same-object")
SPLIT = Source(str(TESTS / "fresh"), "spl-store")
SIDES = {"a.pcap": "server", "b.pcap": "mobile"}


def said(source: Source, verdict: Verdict, *, sides=("server", "mobile"), crosswise=False, kind=0.8) -> list[Judgement]:
    """What the scorer makes of one verdict on every connection of a pair."""
    pair = source.read()
    ends = {side: pair.records[side].ends() for side in SIDES.values()}
    results = []
    for place, flow in enumerate(pair.flows):
        of = {"server": pair.flows[place - 1 if crosswise else place], "mobile": flow}
        vantages = tuple(
            VantageName(path, *ends[side][of[side].connection[side]]) for path, side in SIDES.items() if side in sides
        )
        probability = {Verdict.REGULAR: 0.0, Verdict.SPLIT_TCP: 1 - kind, Verdict.TCP_PROXY: kind}
        results.append(PairResult(vantages, verdict, probability, "a.pcap says so.", (), 1, 1, 1, 1.0))
    judgements = judged(pair, Answer(tuple(results), SIDES))
    assert judgements
    return judgements


@pytest.mark.parametrize("verdict", [Verdict.SPLIT_TCP, Verdict.TCP_PROXY])
@pytest.mark.parametrize("sides", [("server", "mobile"), ("mobile",)])
def test_a_regular_connection_called_split_is_a_false_alarm(verdict, sides):
    assert [one.false_alarm for one in said(REGULAR, verdict, sides=sides)] == [True] * 6


def test_a_split_verdict_on_two_connections_that_are_no_pair_is_a_false_alarm():
    assert all(one.false_alarm for one in said(REGULAR, Verdict.SPLIT_TCP, crosswise=True))


def test_sentences_name_captures_by_side():
    assert {one.reason for one in said(REGULAR, Verdict.SPLIT_TCP)} == {"the server's capture says so."}


def test_a_split_connection_called_regular_is_counted():
    (one,) = said(SPLIT, Verdict.REGULAR)
    assert (one.called_regular, one.false_alarm, one.right) == (True, False, False)


@pytest.mark.parametrize("source", [REGULAR, SPLIT], ids=lambda source: source.run)
def test_inconclusive_is_neither_wrong_nor_right(source):
    for one in said(source, Verdict.INCONCLUSIVE):
        assert not any((one.false_alarm, one.called_regular, one.wrong_kind, one.right, one.crashed))


def test_kinds_are_held_to_what_the_truth_allows():
    assert [one.wrong_kind for one in said(SPLIT, Verdict.SPLIT_TCP)] == [True]
    assert [one.wrong_kind for one in said(SPLIT, Verdict.TCP_PROXY)] == [False]
    undecidable = Source(str(TESTS / "fresh"), "spl-squid-cache")
    for kind, claimed in ((0.95, True), (0.05, True), (0.6, False)):
        assert [one.undecidable_kind_claimed for one in said(undecidable, Verdict.TCP_PROXY, kind=kind)] == [
            claimed
        ] * 2


def test_a_refusal_decides_nothing_and_a_crash_is_wrong():
    pair = REGULAR.read()
    refused = judged(pair, Answer((), SIDES, refusal="no TCP"))
    assert [one.crashed or one.right or one.false_alarm for one in refused] == [False] * len(pair.flows)
    crashed = judged(pair, Answer((), SIDES, crash="ValueError: x"))
    assert [one.crashed for one in crashed] == [True] * len(pair.flows)


def test_a_detector_that_breaks_is_reported(monkeypatch):
    monkeypatch.setattr(case_module, "detect", lambda *_, **__: 1 / 0)
    judgements = judge_case(unchanged(REGULAR))
    assert [one.crashed and "ZeroDivisionError" in one.reason for one in judgements] == [True] * len(
        REGULAR.read().flows
    )


def scored(number, changes, judgements):
    return Scored(number, "s", changes, tuple(judgements))


def test_the_report_counts_what_is_wrong_by_change():
    right = Judgement("f#0", "regular", frozenset({"regular"}), "regular", (0.99, 0.01, 0.0), "", True)
    wrong = replace(right, verdict="split-tcp", probability=(0.0, 0.7, 0.3), reason="alarm")
    missed = replace(right, truth="split", acceptable=frozenset({"split"}), flow="f#1", reason="missed")
    undecided = replace(right, verdict="inconclusive", probability=(0.5, 0.3, 0.2))
    found = replace(missed, verdict="split-tcp", probability=(0.0, 0.9, 0.1), reason="")
    lose = (("lose records", "server"),)
    results = [
        scored(-1, (), [right, found]),
        scored(0, lose, [right, missed]),
        scored(1, lose, [undecided, found]),
        scored(2, (("cut packets", "both"),), [wrong, found]),
    ]
    text = section(results)
    assert "6 judgements of 3 changed pairs" in text
    assert "| regular called split | 1 / 3 " in text
    assert "| split called regular | 1 / 3 " in text
    assert "| lose records | 1 / 4 " in text
    assert "| cut packets |  | 0 / 2 " in text
    listed = failures(results)
    assert "### regular called split: 1" in listed
    assert "case 2, s, f#0 regular: split-tcp (0.00, 0.70, 0.30): alarm" in listed
    assert "case 0, s, f#1 split: regular" in listed


def test_wilson_intervals():
    assert wilson(0, 100_000) == pytest.approx((0.0, 3.84e-5), abs=1e-6)
    assert wilson(50, 100) == pytest.approx((0.4038, 0.5962), abs=1e-4)  # Wilson 1927
    assert wilson(0, 0) == (0.0, 1.0)


def all_sources() -> list[Source]:
    return sources([TESTS / "corpus", TESTS / "fresh"])


def test_a_case_depends_on_seed_and_number_alone(tmp_path):
    cases = [draw_case("1", number, all_sources()) for number in range(300)]
    assert cases == [draw_case("1", number, all_sources()) for number in range(300)]
    assert cases != [draw_case("2", number, all_sources()) for number in range(300)]
    assert {name for one in cases for name, _ in one.changes} == {change.name for change in CHANGES}
    assert {len(one.changes) for one in cases} == {1, 2, 3}
    again = [judge_case(cases[7], tmp_path), judge_case(cases[7])]
    assert again[0] == again[1]
    assert {path.name for path in tmp_path.iterdir()} == {"server.pcap", "mobile.pcap"}


def test_a_stopped_run_goes_on_where_it_was(tmp_path):
    few = [REGULAR, SPLIT]
    whole = score("1", few, 120, 1, tmp_path / "whole.jsonl", "d")
    lines = (tmp_path / "whole.jsonl").read_text().splitlines(keepends=True)
    for stopped in (20, 2):  # among changed pairs, and before all were judged as recorded
        (tmp_path / "stopped.jsonl").write_text("".join(lines[:stopped]))
        resumed = score("1", few, 120, 1, tmp_path / "stopped.jsonl", "d")
        assert [one.line() for one in resumed[: len(whole)]] == [one.line() for one in whole]
    with pytest.raises(ValueError, match="must hold results of these sources"):
        score("2", few, 120, 1, tmp_path / "whole.jsonl", "d")


@pytest.mark.parametrize("shifted", [False, True])
def test_a_box_that_joins_later_splits_only_captures_that_reach_so_far(shifted):
    source = Source(str(TESTS / "fresh"), "spl-handover")
    pair = source.read()
    takeover = pair.flows[0].takeover
    assert takeover is not None
    steps = [Step("shift sequence numbers", "server", {"seed": 1})] if shifted else []
    whole = applied(pair, steps)
    short = applied(whole, [Step("first records", "mobile", {"count": 30})])
    assert whole.flows[0].as_kept(whole.records).truth == "split"
    kept = short.flows[0].as_kept(short.records)
    assert (kept.truth, kept.acceptable) == ("regular", frozenset({"regular"}))
    assert short.flows[0].as_kept({**short.records, "mobile": whole.records["mobile"]}).truth == "split"


def test_a_few_segments_after_a_box_joined_have_no_truth():
    pair = Source(str(TESTS / "fresh"), "spl-handover").read()
    flow = pair.flows[0]
    takeover = flow.takeover
    assert takeover is not None
    records = pair.records["mobile"]
    data = (records.connection == flow.connection["mobile"]) & ~records.is_up & (records.payload_bytes > 0)
    after = (records.sequence - takeover.base["mobile"]) % 2**32 + records.payload_bytes > takeover.from_byte
    rows = np.flatnonzero(data & after)
    truths = {}
    for count in (0, 1, 5, 100):
        ended = records.take(slice(0, int(rows[count])))
        kept = flow.as_kept({**pair.records, "mobile": ended})
        truths[count] = kept and kept.truth
    assert truths == {0: "regular", 1: None, 5: None, 100: "split"}
    # A box that takes part from the first byte on splits a short transfer as well.
    at_once = replace(flow, takeover=replace(takeover, from_byte=0))
    short = {side: pair.records[side].take(slice(0, 30)) for side in SIDES.values()}
    kept = at_once.as_kept(short)
    assert kept is not None
    assert kept.truth == "split"
    few = replace(pair, records={**pair.records, "mobile": records.take(slice(0, int(rows[5])))})
    judged_flows = {one.flow for one in judged(few, Answer((), SIDES))}
    assert judged_flows == {other.name for other in pair.flows} - {flow.name}
