"""Changes of captures of one end: what is counted as wrong, that cases can be replayed, and what changes leave."""

from __future__ import annotations

import json
import random
from pathlib import Path

import numpy as np
import pytest

from benchmarks.metamorphic_single.captures import ConnectionTruth, LabelledCapture, Source, sources
from benchmarks.metamorphic_single.case import applied, draw_case, judge_case, unchanged
from benchmarks.metamorphic_single.changes import BY_NAME, CHANGES
from benchmarks.metamorphic_single.report import failures, section, with_recorded
from benchmarks.metamorphic_single.run import Scored, score
from benchmarks.metamorphic_single.score import Judgement, judged

FOLDER = Path(__file__).parents[1] / "captures" / "one_ended"
SPLIT = Source(str(FOLDER), "lte-relay.server.pcap.gz")
REGULAR = Source(str(FOLDER), "lte-regular.server.pcap.gz")
BOTH = [SPLIT, REGULAR]

ANSWERING = ConnectionTruth(is_split=True, is_split_in_network=True, shows=False)


def said(truth: str, verdict: str, *, where: str | None = None, in_network: bool = False) -> Judgement:
    return Judgement(True, "server", truth, in_network, (0, 1), verdict, where, 0.5, 9, "It is so.")


@pytest.mark.parametrize(
    ("one", "wrong"),
    [
        (said("regular", "split-tcp"), (True, False)),
        (said("regular", "tcp-proxy"), (True, False)),
        (said("regular", "inconclusive"), (False, False)),
        (said("regular", "regular"), (False, False)),
        (said("split", "regular", in_network=True), (False, True)),
        (said("split", "split-tcp", where="network", in_network=True), (False, False)),
        (said("split", "split-tcp", where="network"), (True, False)),
        (said("split", "split-tcp", where="server"), (False, False)),
        (said("mixed", "regular", in_network=True), (False, False)),
        (said("mixed", "split-tcp", where="network"), (True, False)),
    ],
)
def test_what_is_wrong(one, wrong):
    assert (one.false_alarm, one.called_regular) == wrong
    assert Judgement.from_row(one.row()).verdict == one.verdict


def test_captures_of_the_tests_have_truths():
    found = sources([FOLDER])
    assert {SPLIT, REGULAR} <= set(found)
    assert len(found) == len(list(FOLDER.glob("*.pcap.gz")))
    capture = SPLIT.read()
    assert capture.place == "server"
    assert capture.truths
    assert {truth.is_split_in_network for truth in capture.truths.values()} == {True}


def test_groups_and_connections_as_recorded_are_judged_right():
    for source, truth in ((SPLIT, "split"), (REGULAR, "regular")):
        judgements = judge_case(unchanged(source))
        assert {one.truth for one in judgements} == {truth}
        assert any(one.is_group and one.right for one in judgements)
        assert not any(one.false_alarm or one.called_regular or one.crashed for one in judgements)


def test_a_short_leg_or_a_box_that_answers_is_not_called_regular_wrongly():
    capture = SPLIT.read()
    hidden = LabelledCapture(capture.files, dict.fromkeys(capture.truths, ANSWERING))
    from detector.detection import detect

    judgements = judged(hidden, detect(str(FOLDER / SPLIT.file)), "")
    assert {one.truth for one in judgements} == {"mixed"}


@pytest.mark.parametrize("change", [change.name for change in CHANGES])
def test_every_change_leaves_a_capture_that_is_read(change, tmp_path):
    parameters = BY_NAME[change].draw(random.Random(change), BOTH)
    steps = ((change, parameters),)
    capture = applied(SPLIT.read(), steps)
    assert capture.truths.items() >= SPLIT.read().truths.items()
    again = applied(SPLIT.read(), steps)
    for one, other in zip(capture.files, again.files, strict=True):
        assert np.array_equal(one.data, other.data)
        assert np.array_equal(one.time_ns, other.time_ns)
    case = unchanged(SPLIT)
    judgements = judge_case(type(case)(0, SPLIT, steps), tmp_path)
    assert not any(one.crashed for one in judgements)
    assert len(list(tmp_path.glob("*.pcap"))) == len(capture.files)


def test_files_of_a_series_hold_what_the_capture_held():
    whole = SPLIT.read()
    for change in ("a series of files", "a file for each queue"):
        capture = applied(whole, ((change, {"parts": 3}),))
        assert len(capture.files) == 3
        assert sum(map(len, capture.files)) == len(whole.files[0])


def test_an_unrelated_capture_brings_its_truths():
    parameters = {"folder": REGULAR.folder, "file": REGULAR.file, "key": 5, "later": 0.2}
    capture = applied(SPLIT.read(), (("merge an unrelated capture", parameters),))
    assert len(capture.truths) == len(SPLIT.read().truths) + len(REGULAR.read().truths)
    assert len(capture.files[0]) == len(SPLIT.read().files[0]) + len(REGULAR.read().files[0])


def test_a_case_depends_on_seed_number_and_sources_alone():
    assert draw_case("7", 3, BOTH) == draw_case("7", 3, BOTH)
    assert len({draw_case("7", number, BOTH).steps[0][0] for number in range(40)}) > 10
    assert draw_case("7", 3, BOTH) != draw_case("8", 3, BOTH)


def test_results_are_counted_beside_the_capture_as_recorded(tmp_path):
    scored = score("1", BOTH, 20, 1, tmp_path / "results.jsonl", "d")
    _, *lines = (tmp_path / "results.jsonl").read_text().splitlines()
    assert [Scored.from_line(line).changes for line in lines] == [one.changes for one in scored]
    assert {one.source for one in scored if one.number < 0} == {source.name for source in BOTH}
    assert f"{len(with_recorded(scored))} judgements" in section(scored)
    again = score("1", BOTH, 20, 1, tmp_path / "results.jsonl", "d")
    assert [one.line() for one in again] == lines


def test_captures_of_which_nothing_is_judged_are_not_changed(tmp_path):
    named = {"file": "a.pcap", "groups": []}
    (tmp_path / "manifest.json").write_text(json.dumps({"captures": [named]}))
    (tmp_path / "a.pcap").write_bytes((FOLDER / REGULAR.file).read_bytes())
    (one,) = score("1", sources([tmp_path]), 20, 1, tmp_path / "results.jsonl", "d")
    assert (one.number, one.judgements) == (-1, ())


def test_what_was_wrong_before_any_change_is_told_apart():
    recorded = Scored(-1, "a", (), (said("regular", "split-tcp"), said("split", "split-tcp")))
    changed = Scored(0, "a", ("cut packets",), (said("regular", "split-tcp"),))
    fresh = Scored(0, "b", ("cut packets",), (said("regular", "split-tcp"),))
    (old,), (new,) = with_recorded([recorded, changed]), with_recorded([Scored(-1, "b", (), ()), fresh])
    assert (old.new_false_alarm, new.new_false_alarm) == (False, True)
    assert "as recorded, too" in failures([recorded, changed])
    assert "as recorded, too" not in failures([fresh])
