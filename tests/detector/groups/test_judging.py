"""The verdict on a group: one verdict where its connections agree, both parts where they do not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from detector.groups import judge_groups, with_group_verdicts
from detector.groups.membership import GroupKey
from detector.methods import findings as method_findings
from detector.methods.identity import IdentityFinding
from pepscope.results.verdicts import Evidence, GroupSide, SplitPlace, Verdict
from tests.detector.groups.members import KEY, group_of, member

FINDINGS = method_findings()
SPLITTING = sorted(name for name, row in FINDINGS.items() if row.weight.split > 0)


def evidence(finding: str, strength: float = 1.0) -> Evidence:
    return FINDINGS[finding].evidence("method", strength, f"{finding} was found.")


SILENT = IdentityFinding.TOO_ALIKE.undecided("identity", "Too alike.")
findings = st.builds(evidence, st.sampled_from(sorted(FINDINGS)), st.floats(0.0, 1.0))


def group(*members):
    (found,) = judged(members)
    return found


def judged(members):
    every = group_of(members)
    return judge_groups(every.results, every.members, two_captures=True)


def test_one_decided_connection_decides_its_group_and_is_named_to_the_others() -> None:
    members = [member(evidence("other-packets")), *[member(SILENT) for _ in range(9)]]
    found = group(*members)
    assert found.verdict is Verdict.SPLIT_TCP
    assert found.where is SplitPlace.NETWORK
    assert found.reason.startswith("Of 10 connections 1 is split, and 9 cannot be judged alone.")
    assert (found.near_round_trip_s, found.hidden_round_trip_s) == (0.04, 0.015)
    results = with_group_verdicts([item.result for item in members], [found])
    assert [item.verdict for item in results] == [item.result.verdict for item in members]
    assert results[0].reason == members[0].result.reason
    assert results[1].reason == "Too alike. Its group (port 443, clients in 192.0.2.0/24) is split-tcp."


def test_thousands_of_connections_are_counted_as_elsewhere() -> None:
    found = group(*[member(evidence("other-packets"))] * 2, *[member(SILENT)] * 1198)
    assert found.reason.startswith("Of 1,200 connections 2 are split, and 1,198 cannot be judged alone.")
    assert found.evidence[0].summary.startswith("In 2 of 1,200 connections, in the firmest form: other-packets")


def test_repetitions_of_one_error_do_not_add_up() -> None:
    weak = member(evidence("sender-ahead", 0.4))
    assert weak.result.verdict is Verdict.INCONCLUSIVE
    found = group(*[weak] * 50)
    assert found.verdict is Verdict.INCONCLUSIVE
    assert found.probability == pytest.approx(weak.result.probability)


def test_one_connection_alone_keeps_its_verdict() -> None:
    alone = member(evidence("other-packets"), evidence("stored-before-forwarded"))
    found = group(alone)
    assert (found.verdict, found.probability, found.reason, found.evidence) == (
        alone.result.verdict, alone.result.probability, alone.result.reason, alone.result.evidence,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("split", "regular", "apart"),
    [
        ({"host": "203.0.113.2"}, {}, ", the split ones all to 203.0.113.2"),
        ({"client": "192.0.2.9:5"}, {}, ", the split ones all from 192.0.2.9"),
        ({"size": 90_000}, {}, ", all split ones larger than the others"),
        ({}, {"size": 90_000}, ", all split ones smaller than the others"),
        ({"started_ns": 5}, {}, ", all split ones later than the others"),
        ({}, {"started_ns": 5}, ", all split ones earlier than the others"),
        ({}, {}, " split."),
    ],
)
def test_connections_that_disagree_are_named_with_what_sets_them_apart(split, regular, apart) -> None:
    ones = [member(evidence("other-packets"), **split) for _ in range(4)]
    others = [member(evidence("same-packets"), **regular), member(evidence("same-packets"), **regular)]
    found = group(*ones, *others)
    assert found.verdict is Verdict.INCONCLUSIVE
    assert apart in found.reason
    assert found.reason.startswith("The connections disagree: 2 (192.0.2.7:40001, 192.0.2.7:40001) end to end and 4")
    assert "other-packets was found." in found.reason
    assert "same-packets was found." in found.reason
    assert found.probability[Verdict.REGULAR] == pytest.approx(1 / 3, abs=0.01)


def test_the_kind_is_read_off_the_largest_transfers() -> None:
    relayed = member(evidence("other-packets"), evidence("window-alternates"), size=3_000_000)
    swallowed = member(evidence("other-packets"), evidence("stored-before-forwarded"), size=20_000)
    assert swallowed.result.verdict is Verdict.TCP_PROXY
    assert group(relayed, swallowed).verdict is Verdict.SPLIT_TCP


def test_doubtful_pairs_are_counted_and_not_weighed() -> None:
    doubtful = [member(evidence("other-packets"), confidence=0.3) for _ in range(3)]
    assert group(*doubtful).verdict is Verdict.INCONCLUSIVE
    found = group(member(evidence("same-packets")), *doubtful[:1])
    assert len(found.pairs) == 2
    assert all(item.finding != "other-packets" for item in found.evidence)


def test_sides_networks_and_ports_are_groups_of_their_own() -> None:
    keys = [KEY, GroupKey(GroupSide.CLIENT, KEY.network, KEY.port), GroupKey(GroupSide.BOTH, KEY.network, 80), KEY]
    found = judged([member(SILENT, key=key) for key in keys])
    assert [item.pairs for item in found] == [(0, 3), (1,), (2,)]


@given(st.lists(st.lists(findings, max_size=3), min_size=1, max_size=6), st.sampled_from(SPLITTING))
def test_no_verdict_where_connections_disagree(each, finding) -> None:
    members = [member(*items) for items in each]
    found = group(*members, member(evidence(finding)), member(evidence("same-packets")))
    verdicts = {item.result.verdict for item in members} | {member(evidence(finding)).result.verdict}
    if verdicts & {Verdict.SPLIT_TCP, Verdict.TCP_PROXY}:
        assert found.verdict is Verdict.INCONCLUSIVE
        assert "disagree" in found.reason
