"""Identity over a group: independent observations add up, one middlebox or stack behaviour counts once."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from detector.groups.pooling import pooled_identity
from detector.methods.identity import DECISIVE_NATS, ClassField, IdentityFinding, class_field_name
from pepscope.results.verdicts import Evidence, Outcome
from tests.detector.groups.members import group_of, member

FIELDS = ("timestamps", "timestamps-present", "ip-id", "push", "acknowledgement", "boundaries", "window")
HABITS = ("push", "acknowledgement", "window", "timestamps")
BOXED = ("ip-id", "timestamps-present", "acknowledgement", "window", "boundaries")
weak = st.floats(-DECISIVE_NATS + 0.1, DECISIVE_NATS - 0.1)
connections = st.lists(st.dictionaries(st.sampled_from(FIELDS), weak, min_size=1), min_size=2, max_size=30)


def undecided(nats: dict[str, float], finding: str = "too-alike") -> Evidence:
    numbers = {class_field_name(ClassField("data", name)): value for name, value in nats.items()}
    findings = {"too-alike": IdentityFinding.TOO_ALIKE, "too-few-segments": IdentityFinding.TOO_FEW_SEGMENTS}
    return findings[finding].undecided("identity", "Too alike.", numbers)


def pooled(each: list[dict[str, float]]) -> Evidence | None:
    return pooled_identity(group_of([member(undecided(nats)) for nats in each]))


def test_weak_voices_of_many_connections_decide() -> None:
    assert pooled([{"push": -0.8}]) is None
    found = pooled([{"push": -0.8}] * 30)
    assert found is not None
    assert (found.finding, found.outcome) == ("other-packets", Outcome.SPLIT)
    assert found.numbers["pooled_connections"] == 30
    assert found.numbers["pooled_nats"] == pytest.approx(-24.0)
    same = pooled([{"ip-id": 2.9}] * 3)
    assert same is not None
    assert (same.finding, same.outcome) == ("same-data", Outcome.INTACT)


def test_acknowledgements_that_arrive_as_they_left_make_more_than_the_data() -> None:
    numbers = {class_field_name(ClassField(of, "ip-id")): 2.9 for of in ("data", "acks")}
    alike = IdentityFinding.TOO_ALIKE.undecided("identity", "Too alike.", numbers)
    found = pooled_identity(group_of([member(alike) for _ in range(3)]))
    assert found is not None
    assert found.finding == "same-packets"


def test_segments_too_few_to_compare_alone_count_too() -> None:
    few = [member(undecided({"ip-id": 2.9}, "too-few-segments")) for _ in range(3)]
    assert pooled_identity(group_of(few)) is not None


@pytest.mark.parametrize("field", BOXED)
def test_what_one_box_does_to_every_connection_never_decides(field: str) -> None:
    assert pooled([{field: -4.0}] * 1000) is None


def test_a_box_that_regulates_explains_windows_and_acknowledgements() -> None:
    assert pooled([{"window": -4.0, "acknowledgement": -4.0}] * 1000) is None


@given(connections)
def test_habits_of_one_kind_of_stack_never_make_a_group_end_to_end(each: list[dict[str, float]]) -> None:
    found = pooled([{name: abs(nats) for name, nats in one.items() if name in HABITS} or {"push": 0.1} for one in each])
    assert found is None


@given(connections, st.randoms())
def test_order_of_connections_does_not_matter(each: list[dict[str, float]], random) -> None:
    before = pooled(each)
    random.shuffle(each)
    after = pooled(each)
    assert (before and before.finding) == (after and after.finding)


@given(connections, st.dictionaries(st.sampled_from(FIELDS), st.floats(-6.0, 0.0), min_size=1))
def test_disagreement_never_makes_a_group_end_to_end(each: list[dict[str, float]], more: dict[str, float]) -> None:
    before, after = pooled(each), pooled([*each, more])
    if before is None or before.outcome is Outcome.SPLIT:
        assert after is None or after.outcome is Outcome.SPLIT


def test_connections_that_would_decide_otherwise_by_halves_stay_undecided() -> None:
    assert pooled([{"push": -5.0}] * 3 + [{"ip-id": 5.0}] * 3) is None


def test_doubtful_pairs_weaken_the_evidence_of_a_split() -> None:
    sure = pooled_identity(group_of([member(undecided({"push": -5.0})) for _ in range(4)]))
    doubtful = pooled_identity(group_of([member(undecided({"push": -5.0}), confidence=0.6) for _ in range(4)]))
    assert sure is not None
    assert doubtful is not None
    assert doubtful.strength == pytest.approx(0.6 * sure.strength)
