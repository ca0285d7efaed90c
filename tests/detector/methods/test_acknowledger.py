"""Acknowledgements of two makers: found wherever a middlebox adds its own, never where one stack made all."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from detector.methods.identity.acknowledger import (
    OWN_ACKNOWLEDGEMENT_NATS,
    SEVERAL_ACKNOWLEDGEMENTS,
    Acknowledging,
    other_maker_nats,
    own_acknowledgement_nats,
)
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


def both_ways(up: ClassComparison, down: ClassComparison) -> ClassComparison:
    """Rows are packet directions, as of one connection."""
    fields = {}
    for name in up.fields:
        compared, agreeing, nats = (
            np.array([[getattr(part.fields[name], of)] for part in (up, down)])
            for of in ("compared", "agreeing", "nats")
        )
        fields[name] = FieldAgreement(compared, agreeing, nats, None, np.array([[True], [True]]))
    arrived, candidates = ([[getattr(part, of)] for part in (up, down)] for of in ("arrived", "with_candidate"))
    unknown = np.zeros((2, 1), np.bool_)
    zeros = np.zeros((2, 1))
    return ClassComparison(
        np.array(arrived), np.array(candidates), fields, zeros, zeros, zeros, zeros, zeros, zeros, unknown
    )  # fmt: skip


def compared(arrived: int, of_receiver: int, sent: int | None = None, field: str = "ip-id") -> ClassComparison:
    """Segments by a field: so many arrived, so many have a counterpart, so many of these are the far end's."""
    counterparts = arrived if sent is None else sent
    share = of_receiver / counterparts if counterparts else 0.0
    nats = 11.0 if share > 0.8 and counterparts > 1 else 0.0
    return ClassComparison(arrived, counterparts, {field: FieldAgreement(counterparts, share, nats)})


def own_nats(
    acks: ClassComparison,
    emitted: int,
    of_data: ClassComparison | None = None,
    *,
    renumbered: bool = False,
    of_sender: tuple[int, int] = (0, 0),
    of_others: int = 0,
    ahead: int = 0,
    requests: int = 1,
    unseen: bool = False,
) -> float:
    """Of an answer of two segments to a request of one, with these acknowledgements, and those of data among them.

    `of_sender` are how many of the answer's sender arrived, and how many left; `of_others` arrived beside them. Of
    those of the answer `ahead` cannot be its receiver's by the order of timestamps. Where the answer's direction is
    `unseen`, a capture lacks it, and each acknowledgement has a number of its own.
    """
    (field,) = acks.fields
    nothing, asked, two = (compared(count, count, field=field) for count in (0, requests, 2))
    of_request, left = (compared(of_sender[0] + of_others, of_sender[0], of_sender[0], field), of_sender[1])
    shown = Acknowledging(
        data=both_ways(asked, nothing if unseen else two),
        acknowledgements=both_ways(acks, of_request),
        of_data=both_ways(of_data or nothing, nothing),
        carried_places=np.zeros((2, 1)),
        ahead=np.array([[ahead], [0]]),
        emitted=np.array([[emitted], [left]]),
        shared_places=np.array([[acks.with_candidate], [0]]),
        renumbered=np.array([renumbered]),
        lacks_packets=np.array([[False], [unseen]]),
        lost_shares=np.zeros((2, 1)),
        shows_pure=np.ones((2, 1), np.bool_),
    )
    (nats,) = own_acknowledgement_nats(shown).tolist()
    return float(nats)


def test_all_that_left_arrived_and_nothing_else() -> None:
    several = SEVERAL_ACKNOWLEDGEMENTS
    assert own_nats(compared(several, several), several) >= OWN_ACKNOWLEDGEMENT_NATS
    assert own_nats(compared(10, 10, field="timestamps"), 10) >= OWN_ACKNOWLEDGEMENT_NATS


def test_what_its_host_cannot_have_sent_is_another_makers_however_many_agree() -> None:
    acks = compared(200, 199, field="timestamps")
    assert own_nats(acks, 200, acks) >= OWN_ACKNOWLEDGEMENT_NATS
    assert own_nats(acks, 200, acks, ahead=1) == 0.0


def test_the_senders_acknowledgements_show_as_well_that_no_filter_dropped_any() -> None:
    assert own_nats(compared(2, 2), 2, of_sender=(1, 1)) >= OWN_ACKNOWLEDGEMENT_NATS
    assert own_nats(compared(2, 2), 2, of_sender=(1, 2)) < OWN_ACKNOWLEDGEMENT_NATS
    assert own_nats(compared(0, 0), 0, of_sender=(9, 9)) < OWN_ACKNOWLEDGEMENT_NATS
    assert own_nats(compared(3, 2, 2), 2, of_sender=(9, 9)) < OWN_ACKNOWLEDGEMENT_NATS


def test_another_makers_acknowledgement_of_the_smaller_direction_is_seen_though_few_are_asked_for() -> None:
    assert own_nats(compared(3, 3), 3, of_sender=(2, 2)) >= OWN_ACKNOWLEDGEMENT_NATS
    assert own_nats(compared(3, 3), 3, of_sender=(2, 2), of_others=1) == 0.0


def test_acknowledgements_show_an_answer_that_the_captures_lack() -> None:
    assert own_nats(compared(9, 9), 9, unseen=True) >= OWN_ACKNOWLEDGEMENT_NATS
    assert own_nats(compared(9, 8, 8), 8, unseen=True) < OWN_ACKNOWLEDGEMENT_NATS
    assert own_nats(compared(9, 9), 9, unseen=True, ahead=2) == 0.0


@pytest.mark.parametrize("requests", [3, 8])
def test_acknowledgements_that_the_captures_lack_clear_nobody(requests: int) -> None:
    assert own_nats(compared(9, 9), 9, requests=requests, unseen=True) == 0.0


def test_acknowledgements_of_no_more_than_syn_and_fin_show_no_answer() -> None:
    assert own_nats(compared(2, 2), 2, of_sender=(0, 0), unseen=True) < OWN_ACKNOWLEDGEMENT_NATS


@pytest.mark.parametrize(
    ("acks", "emitted"),
    [
        (compared(2, 2), 2),  # too few: a filter may have spared them
        (compared(3, 3), 4),  # one was dropped, and so may another maker's have been
        (compared(4, 3, 3), 3),  # one that the far end did not send
        (compared(4, 3), 3),  # one with the number of the receiver's own, and another IP ID
        (compared(10, 9, field="timestamps"), 10),  # the same, with another stamp
        (compared(10, 9, 9, field="timestamps"), 10),  # one that the far end did not send, and one was dropped
    ],
)
def test_the_receiver_alone_is_not_proven(acks: ClassComparison, emitted: int) -> None:
    assert own_nats(acks, emitted) < OWN_ACKNOWLEDGEMENT_NATS


def test_few_acknowledgements_of_another_maker_are_found_among_many() -> None:
    """Two of thirty, which places or stamps alone would excuse: IP IDs tell each."""
    own = compared(28, 28)
    assert own_nats(own, 28, own) >= OWN_ACKNOWLEDGEMENT_NATS
    assert own_nats(compared(30, 28, 28), 28, own) == 0.0
    assert own_nats(compared(30, 28), 30, own) == 0.0
    assert own_nats(compared(30, 29, 29), 29, own) >= OWN_ACKNOWLEDGEMENT_NATS


def test_a_syn_proxys_acknowledgement_of_the_handshake_is_no_other_makers() -> None:
    """It acknowledges no data; a SYN that arrived with another number shows the proxy."""
    own = compared(28, 28)
    assert own_nats(compared(30, 28, 28), 28, own, renumbered=True) >= OWN_ACKNOWLEDGEMENT_NATS
    assert own_nats(compared(30, 27, 27), 27, own, renumbered=True) == 0.0
