"""Acknowledgements of two makers: found wherever a middlebox adds its own, never where one stack made all."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from detector.methods.identity.acknowledger import other_maker_nats
from detector.methods.identity.agreement import ClassComparison, FieldAgreement


def acknowledgements(compared: int, agreeing: int, field: str = "timestamps") -> ClassComparison:
    return ClassComparison(compared, compared, {field: FieldAgreement(compared, agreeing / compared, 0.0)})


@given(st.integers(1, 5000))
def test_a_stack_that_made_all_of_them_is_the_only_maker(compared: int) -> None:
    assert other_maker_nats(acknowledgements(compared, compared), 0.0) <= 0.0


@given(st.integers(8, 2000), st.floats(0.2, 0.8))
def test_a_box_that_adds_its_own_is_found(compared: int, share: float) -> None:
    assert other_maker_nats(acknowledgements(compared, round(share * compared)), 0.0) > 0.0


@given(st.integers(50, 2000), st.floats(0.0, 0.4))
def test_what_a_lossy_capture_confuses_is_no_maker(compared: int, lost: float) -> None:
    confused = round(0.03 * compared * (1 - lost)) + round(lost * compared)
    assert other_maker_nats(acknowledgements(compared, compared - confused), lost) <= 0.5


def test_ip_ids_decide_without_timestamps() -> None:
    assert other_maker_nats(acknowledgements(40, 20, "ip-id"), 0.0) > 0.0


def test_ip_ids_assigned_by_a_middlebox_are_no_evidence() -> None:
    assert other_maker_nats(acknowledgements(40, 0, "ip-id"), 0.0) == 0.0
    assert other_maker_nats(acknowledgements(40, 20, "window"), 0.0) == 0.0


def test_a_box_that_gives_ip_ids_gives_them_to_data_too() -> None:
    data = ClassComparison(40, 40, {"ip-id": FieldAgreement(40, 1.0, 11.0)})
    assert other_maker_nats(acknowledgements(40, 0, "ip-id"), 0.0, data) > 0.0
    renumbered = ClassComparison(40, 40, {"ip-id": FieldAgreement(40, 0.0, -60.0)})
    assert other_maker_nats(acknowledgements(40, 0, "ip-id"), 0.0, renumbered) == 0.0
