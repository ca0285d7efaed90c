"""The labels that `pepscope validate` reads are those of the manifests and truths that the project's captures have."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from benchmarks.one_ended_score.judgements import score_network
from benchmarks.one_ended_simulated.__main__ import make_network
from benchmarks.validation.labels import manifest, write_labels
from benchmarks.validation.score import Case, score_case
from detector.corpora.validation.scoring import Score
from detector.corpora.validation.validate import read_corpora, validate

TESTS = Path(__file__).parents[1]
CORPORA = [TESTS / "corpus", TESTS / "fresh"]
NAMES = {"split": "split-tcp", "proxy": "tcp-proxy"}


@pytest.mark.parametrize("corpus", CORPORA, ids=lambda path: path.name)
def test_the_labels_are_those_of_the_manifest(corpus: Path) -> None:
    assert (corpus / "manifest.csv").read_text(encoding="utf-8") == manifest(corpus), (
        "run python -m benchmarks.validation.labels"
    )
    runs = json.loads((corpus / "manifest.json").read_text(encoding="utf-8"))["runs"]
    classes = Counter(flow["class"] for run in runs for flow in run["flows"])
    cases = [case for run in read_corpora([corpus]) for case in run.cases]
    assert Counter(case.truth.value for case in cases) == {NAMES.get(name, name): n for name, n in classes.items()}
    assert len(cases) > 40


def test_both_scores_of_the_same_captures_agree() -> None:
    """`make validate` is another implementation of the same count."""
    corpus = TESTS / "fresh"
    runs = json.loads((corpus / "manifest.json").read_text(encoding="utf-8"))["runs"]
    theirs = [score for run in runs for score in score_case(Case(corpus, run, "as recorded"))]
    (ours,) = validate([corpus], processes=2).detectors
    assert len(theirs) == len(ours.judgements) > 40
    verdicts = Counter(
        (NAMES.get(each.truth, each.truth), each.verdict) for each in theirs if each.verdict != "unpaired"
    )
    counted = Counter({(t, said): n for t, row in ours.confusion.items() for said, n in row.items() if n})
    assert not verdicts - counted
    assert sum(each.false_alarm for each in theirs) == ours.rates["false-alarm"].count
    assert sum(each.called_regular for each in theirs) == ours.rates["reversed"].count


def test_networks_seen_from_one_end_are_scored_as_their_own_score_does(tmp_path: Path) -> None:
    for number in range(3):
        make_network(77, tmp_path, number)
    write_labels(tmp_path)
    (ours,) = validate([tmp_path], processes=2).detectors
    theirs = [
        each
        for folder in sorted(tmp_path.glob("n*"))
        for score in score_network(folder)
        for each in score.judgements
        if each.truth.whole
    ]
    assert len(theirs) > 30
    scores = Counter(judged.score for judged in ours.judgements)
    assert scores[Score.FALSE_ALARM] == sum(each.false_alarm for each in theirs)
    assert scores[Score.REVERSED] == sum(each.cleared_wrongly for each in theirs)
    assert scores[Score.RIGHT] + scores[Score.OTHER_KIND] == sum(
        each.says_split and not each.false_alarm if each.truth.is_split else each.cleared for each in theirs
    )
