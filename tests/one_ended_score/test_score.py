from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.one_ended_score import tables
from benchmarks.one_ended_score.connections import ConnectionJudgement
from benchmarks.one_ended_score.judgements import CaptureScore, Judgement, score_network
from benchmarks.one_ended_score.truths import GroupTruth, read_truths
from benchmarks.one_ended_simulated.__main__ import make_network
from benchmarks.one_ended_simulated.draws import draw_scenario
from pepscope.results.verdicts import SplitPlace, Verdict

REPOSITORY = Path(__file__).parents[2]
REGULAR = GroupTruth(
    "n1", "s1.pcap", "lte", "nothing", "server", "10.45.0.0/24", 443, None, "regular", None, None, 0.05, False, False,
    True, 20, None, False,
)  # fmt: skip
SPLIT = replace(REGULAR, kind="split", where="network", hidden_s=(0.04, 0.04), mechanism="relay")
BALANCED = replace(SPLIT, where="server", hidden_s=(0.01, 0.01))


def judged(truth, verdict, where=None, hidden_s=None, exchanges=20, split=0.5):
    return Judgement(truth, verdict, split, where, 0.01, hidden_s, None, exchanges, 5, 1, "because")


def group(**changes):
    base = {
        "network": "10.1.0.0/24", "port": 443, "host": None, "class": "regular", "where": None, "cache": False,
        "hidden_round_trip_s": None, "near_round_trip_s": 0.02, "thinks": False,
    }  # fmt: skip
    return base | changes


def written(folder, side, groups):
    capture = {"file": "a.pcap", "side": side, "snap_length": 96, "begins_late": True, "groups": groups}
    document = {"schema": 1, "seed": 1, "id": "x", "access": "lte", "middle": "nothing", "captures": [capture]}
    folder.mkdir(exist_ok=True)
    (folder / "truth.json").write_text(json.dumps(document), encoding="utf-8")
    return read_truths(folder)["a.pcap"]


def test_groups_told_by_host_are_joined(tmp_path):
    hosts = [
        group(host="192.0.2.1", **{"class": "split"}, where="network", hidden_round_trip_s=0.01),
        group(host="192.0.2.2", **{"class": "split"}, where="network", hidden_round_trip_s=0.09),
    ]
    whole, *rest = written(tmp_path, "client", hosts)
    assert (whole.host, whole.hidden_s, whole.whole) == (None, (0.01, 0.09), True)
    assert [each.host for each in rest] == ["192.0.2.1", "192.0.2.2"]


def test_a_group_with_hosts_of_two_kinds_is_not_whole(tmp_path):
    hosts = [
        group(),
        group(host="192.0.2.1"),
        group(host="192.0.2.2", **{"class": "split"}, where="server", hidden_round_trip_s=0.09),
    ]
    assert [each.whole for each in written(tmp_path, "client", hosts)] == [False, True, True]


def test_distant_hosts_are_those_behind_long_hidden_legs_of_the_network(tmp_path):
    split = {"class": "split"}
    hosts = [
        group(host="192.0.2.1", **split, where="network", hidden_round_trip_s=0.04),
        group(host="192.0.2.2", **split, where="network", hidden_round_trip_s=0.039),
        group(host="192.0.2.3", **split, where="server", hidden_round_trip_s=0.09),
        group(host="192.0.2.4", **split, where="network", hidden_round_trip_s=0.2),
        group(host="192.0.2.5"),
        group(host="192.0.2.6", **split, where="network", hidden_round_trip_s=0.1, port=80),
    ]
    told = written(tmp_path, "client", hosts)
    assert [(each.port, each.distant_hosts) for each in told if each.host is None] == [(80, 1), (443, 2)]


def test_splits_with_distant_hosts_with_a_reference_and_without_held_acknowledgements_are_counted_apart():
    distant = replace(SPLIT, side="client", distant_hosts=3)
    judgements = [
        judged(distant, Verdict.SPLIT_TCP, SplitPlace.NETWORK),
        replace(judged(distant, Verdict.INCONCLUSIVE), has_reference=True),
        replace(judged(replace(distant, distant_hosts=2), Verdict.INCONCLUSIVE), has_reference=True),
        judged(replace(distant, cache=True), Verdict.INCONCLUSIVE),
        judged(replace(SPLIT, side="client", mechanism="relay-holding-acknowledgements"), Verdict.INCONCLUSIVE),
    ]
    counts = tables.goals(judgements, by_host=False)[-1].split(" | ")[-3:]
    assert [count.split(":")[0] for count in counts] == ["1 of 2", "0 of 2", "1 of 3"]


def test_a_capture_without_connections_is_not_judged(tmp_path):
    with pytest.raises(KeyError):
        written(tmp_path, "server", [])


def test_captures_between_judge_two_stretches(tmp_path):
    groups = [group(stretch="server"), group(stretch="client", hidden_round_trip_s={"h": 0.1, "i": 0.2})]
    towards_server, towards_client = written(tmp_path, "between", groups)
    assert (towards_server.side, towards_client.side) == ("client", "server")
    assert towards_client.hidden_s == (0.1, 0.2)


@pytest.mark.parametrize(
    ("truth", "verdict", "where", "alarm", "wrongly"),
    [
        (REGULAR, Verdict.SPLIT_TCP, SplitPlace.SERVER, True, False),
        (REGULAR, Verdict.REGULAR, None, False, False),
        (SPLIT, Verdict.REGULAR, None, False, True),
        (SPLIT, Verdict.TCP_PROXY, SplitPlace.NETWORK, False, False),
        (BALANCED, Verdict.SPLIT_TCP, SplitPlace.NETWORK, True, False),
        (BALANCED, Verdict.SPLIT_TCP, SplitPlace.SERVER, False, False),
        (BALANCED, Verdict.REGULAR, None, False, True),
        (replace(BALANCED, whole=False), Verdict.REGULAR, None, False, False),
        (SPLIT, Verdict.INCONCLUSIVE, None, False, False),
        (SPLIT, None, None, False, False),
    ],
)
def test_what_counts_as_an_error(truth, verdict, where, alarm, wrongly):
    judgement = judged(truth, verdict, where)
    assert (judgement.false_alarm, judgement.cleared_wrongly) == (alarm, wrongly)


@pytest.mark.parametrize(
    ("hidden_s", "error_s", "right"),
    [(0.045, 0.005, True), (0.049, 0.009, False), (0.033, 0.007, True), (None, None, None)],
)
def test_a_location_is_right_within_6_ms_or_a_fifth(hidden_s, error_s, right):
    truth = replace(SPLIT, hidden_s=(0.04, 0.04))
    judgement = judged(truth, Verdict.SPLIT_TCP, SplitPlace.NETWORK, hidden_s)
    assert judgement.location_error_s == (None if error_s is None else pytest.approx(error_s))
    assert judgement.location_right is (None if right is None else error_s <= 0.008)


def test_rows_count_by_side_size_and_hidden_leg():
    judgements = [
        judged(REGULAR, Verdict.SPLIT_TCP),
        judged(REGULAR, Verdict.REGULAR, exchanges=5),
        judged(SPLIT, Verdict.SPLIT_TCP, SplitPlace.NETWORK, 0.041, split=0.99),
        judged(SPLIT, Verdict.INCONCLUSIVE),
        judged(replace(SPLIT, cache=True), Verdict.INCONCLUSIVE),
    ]
    found = {(row.exchanges, row.groups, row.what): (row.share.count, row.share.of) for row in tables.rows(judgements)}
    assert found["16 and more", "not split", "false alarm"] == (1, 1)
    assert found["4-15", "not split", "cleared"] == (1, 1)
    assert found["16 and more", "split, 40 ms and more", "found"] == (1, 2)
    assert found["16 and more", "split, box answers itself, 40 ms and more", "found"] == (0, 1)
    assert found["16 and more", "split, 40 ms and more", "located"] == (1, 1)
    assert not tables.rows(judgements, by_host=True)
    assert tables.claims(judgements, "server").brier == pytest.approx((4 * 0.25 + 0.0001) / 5)
    assert [name for name, _ in tables.worst(judgements, 1)] == ["false alarm", "not found"]
    assert "| server | 16 and more | 1 of 1" in tables.text(
        [CaptureScore(tuple(judgements), 0, 0, None)], 3, details=True
    )


def test_every_group_of_a_simulated_network_is_judged(tmp_path):
    make_network(11, tmp_path, 1)
    scores = score_network(tmp_path / "n00001")
    judgements = [each for score in scores for each in score.judgements if each.truth.host is None]
    assert judgements
    assert all(score.failure is None for score in scores)
    assert sum(each.verdict is not None for each in judgements) > 0.8 * len(judgements)


def test_the_command_prints_tables_and_writes_json(tmp_path):
    make_network(11, tmp_path, 1)
    out = tmp_path / "score.json"
    command = [sys.executable, "-m", "benchmarks.one_ended_score", str(tmp_path), "--jobs", "1", "--json", str(out)]
    answer = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert answer.returncode in (0, 1), answer.stderr
    assert "| side | exchanges | false alarms |" in answer.stdout
    document = json.loads(out.read_text(encoding="utf-8"))
    assert document["schema"] == "one-ended-score-1"
    assert len(document["judgements"]) == document["groups"] > 0


def test_single_connections_are_counted_by_their_host(tmp_path):
    number = next(each for each in range(40) if "client" in draw_scenario(11, each).recordings)
    make_network(11, tmp_path, number)
    scores = score_network(tmp_path / f"n{number:05d}")
    connections = [each for score in scores for each in score.connections]
    assert len(connections) > 3
    assert max(each.exchanges for each in connections) > 1
    split = replace(SPLIT, hidden_s=(0.1, 0.1))
    made = [
        ConnectionJudgement(REGULAR, Verdict.SPLIT_TCP, 4),
        ConnectionJudgement(split, Verdict.SPLIT_TCP, 5),
        ConnectionJudgement(split, Verdict.REGULAR, 3),
    ]
    rows = {(row.exchanges, row.groups, row.what): str(row.share)[:6] for row in
            tables.single([CaptureScore((), 0, 0, None, tuple(made))])}  # fmt: skip
    assert rows["4 and more", "not split", "false alarm"] == "1 of 1"
    assert rows["4 and more", "split, 90 ms and more", "found"] == "1 of 1"
    assert rows["under 4", "split, 90 ms and more", "called regular"] == "1 of 1"


def test_a_folder_without_truth_is_refused(tmp_path):
    command = [sys.executable, "-m", "benchmarks.one_ended_score", str(tmp_path)]
    answer = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert answer.returncode == 2
    assert "no truth.json" in answer.stderr


def test_a_broken_capture_is_a_failure_and_no_crash(tmp_path):
    written(tmp_path / "x", "client", [group()])
    (tmp_path / "x" / "a.pcap").write_bytes(b"not a capture")
    (score,) = score_network(tmp_path / "x")
    assert "a.pcap" in score.failure
    assert score.judgements[0].verdict is None
