"""Captures that the detector was once wrong about stay right, as recorded, stripped of fields, and asked otherwise."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.validation.askings import AS_RECORDED, ASKINGS
from benchmarks.validation.score import Case, Score, score_case
from benchmarks.validation.variants import VARIANTS

FRESH = Path(__file__).parent
RUNS = {run["id"]: run for run in json.loads((FRESH / "manifest.json").read_text())["runs"]}


def scores_of(run_id: str, variant: str = AS_RECORDED, asking: str = AS_RECORDED) -> list[Score]:
    """At least one: a test that looks at every score would otherwise hold of none."""
    scores = score_case(Case(FRESH, RUNS[run_id], variant, asking))
    assert scores
    return scores


@pytest.mark.parametrize("run_id", RUNS)
def test_captures_as_recorded_have_no_wrong_verdict(run_id):
    for score in scores_of(run_id):
        assert not score.false_alarm, score.reason
        assert not score.called_regular, score.reason
        # A sender that aborts at once gets no acknowledgement that is known to be the receiver's.
        unacknowledged = run_id == "reg-resets" and "same-data" in dict(score.findings)
        assert score.truth != "regular" or score.found or unacknowledged, score.reason


def test_where_some_senders_abort_at_once_the_other_connections_are_regular():
    scores = scores_of("reg-resets")
    assert sum(score.found for score in scores) >= 3, [score.reason for score in scores]


@pytest.mark.parametrize("run_id", ["spl-localack-terminal", "spl-slirp-dialogues"])
def test_splits_of_short_messages_are_found(run_id):
    assert all(score.found for score in scores_of(run_id)), [score.reason for score in scores_of(run_id)]


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("run_id", RUNS)
def test_in_every_variant(run_id, variant):
    for score in scores_of(run_id, variant):
        assert not score.false_alarm, score.reason
        assert not score.called_regular, score.reason


@pytest.mark.parametrize(
    ("run_id", "asking"),
    [
        (run_id, asking)
        for run_id, run in RUNS.items()
        for asking in ASKINGS
        if asking != AS_RECORDED and ASKINGS[asking].fair(run)
    ],
)
def test_asked_in_every_fair_way(run_id, asking):
    for score in scores_of(run_id, asking=asking):
        assert not score.false_alarm, score.reason
        assert not score.called_regular, score.reason


def test_aborts_through_a_relay_are_found_without_timestamps():
    scores = scores_of("spl-relay-resets", "no timestamps")
    assert [score.found for score in scores] == [True] * 5


@pytest.mark.parametrize("run_id", ["spl-store", "spl-squid-cache", "spl-tinyproxy"])
def test_the_kind_is_found_where_the_captures_show_it(run_id):
    scores = scores_of(run_id)
    assert [score.kind_right for score in scores] == [True] * len(scores), [score.reason for score in scores]


@pytest.mark.parametrize("run_id", ["spl-localack-clock", "spl-localack-passed", "spl-localack-upload-passed"])
def test_acknowledgements_in_the_receivers_name_are_a_split_though_the_data_pass_untouched(run_id):
    scores = scores_of(run_id)
    first = scores[0]
    assert (first.verdict, first.mechanism) == ("split-tcp", "local-acknowledgement"), first.reason
    assert "acknowledges before the receiver has the data" in first.reason
    assert not any(score.called_regular for score in scores)


def test_a_connection_that_a_box_takes_over_changes_its_maker():
    run = RUNS["spl-handover"]
    from_byte = next(flow["split_from_byte"] for flow in run["flows"] if flow["class"] == "split")
    scores = score_case(Case(FRESH, run, AS_RECORDED))
    (found,) = [score for score in scores if "maker-changes" in dict(score.findings)]
    assert found.verdict == "split-tcp"
    reported = int(found.reason.partition("Up to byte ")[2].split(" ")[0])
    # The stream is cut at sixteen places.
    assert abs(reported - from_byte) < 2_000_000 / 8
