"""Forms of SYNs, what they say of the number of boxes, and which systems make them."""

from __future__ import annotations

import numpy as np
import pytest

from detector.one_capture.senders.stacks import (
    asked_alike,
    form_codes,
    group_stacks,
    known_stacks,
    systems_of,
)
from pepscope.captures.direction import Direction
from tests.detector.one_capture.senders.made_senders import senders

LINUX, WINDOWS, DARWIN = (2, 4, 8, 1, 3), (2, 1, 3, 1, 1, 4), (2, 1, 3, 1, 1, 8, 4)


def test_forms_are_equal_where_all_that_a_stack_chooses_is() -> None:
    made = senders(
        6, 1,
        syn_hop_limit=[60, 50, 60, 60, 64, 60], hop_limit=[60, 50, 60, 60, 57, -1],
        syn_window=[65_160, 65_160, 64_240, 65_160, 65_160, 65_160],
        option_kinds=[LINUX, LINUX, LINUX, WINDOWS, LINUX, LINUX],
    )  # fmt: skip
    columns = {
        "down_options_captured": np.asarray([True, True, True, True, True, False]),
        "down_maximum_segment_size": np.full(6, 1460),
        "down_window_scale": np.full(6, 7),
    }
    codes = form_codes(made, columns, Direction.DOWN)
    assert codes[0] == codes[1]
    assert len({codes[0], codes[2], codes[3]}) == 3
    assert codes[4:].tolist() == [-1, -1], "made by somebody else; not captured whole"


def test_members_are_compared_with_the_first_known_one_of_their_group() -> None:
    form = np.asarray([3, 3, 3, 5, -1, 4])
    hop_limit = np.asarray([57, 57, 57, 50, 57, 61])
    member = np.asarray([0, 0, 1, 2, 3, 4])
    found = group_stacks(form, hop_limit, member, np.asarray([0, 0, 0, 1, 2]), 3)
    assert found.members.tolist() == [3, 0, 1]
    assert (found.forms.tolist(), found.hop_limits.tolist()) == ([2, 0, 1], [2, 0, 1])
    assert found.pairs.tolist() == [2, 0, 1]
    assert found.box_nats[1:].tolist() == [0.0, 0.0], "one member says nothing"
    assert found.box_nats[0] < found.apart_nats[0], "one of two others differs"


def test_answers_to_two_clients_are_no_sign_of_two_boxes() -> None:
    """One box answers the clients 8 and 9 by the forms 3 and 5: only SYN-ACKs of one SYN are compared."""
    form = np.asarray([3, 5, 3, 5, 5, 3, 4])
    asked = np.asarray([8, 9, 8, 9, 9, -1, 8])
    member = np.asarray([0, 0, 1, 1, 2, 2, 3])
    alike = asked_alike(form, asked, member, np.asarray([0, 0, 0, 1]))
    assert alike.tolist() == [-1, 5, -1, 5, 5, -1, 4], "most members of the first group answer 9, and the second's 8"


@pytest.mark.parametrize("hosts", [2, 3, 10])
def test_more_equal_hosts_say_more_for_one_box_and_different_ones_against(hosts: int) -> None:
    member = np.arange(hosts)
    alike = group_stacks(np.zeros(hosts, int), np.full(hosts, 60), member, np.zeros(hosts, int), 1)
    apart = group_stacks(member, 60 - member, member, np.zeros(hosts, int), 1)
    for_box = [float(found.box_nats[0] - found.apart_nats[0]) for found in (alike, apart)]
    assert for_box[0] > 2 * (hosts - 1)
    assert for_box[1] < -2 * (hosts - 1)
    assert alike.beside_nats[0] > alike.apart_nats[0], "hosts of one site look alike too"


def test_systems_are_told_by_options_and_initial_hop_limit() -> None:
    assert systems_of(LINUX, 52) == {"linux", "android"}
    assert systems_of(WINDOWS, 113) == {"windows"}
    assert systems_of((*DARWIN, 0, 0), 64) == {"darwin"}
    assert systems_of((2, 1, 3, 4, 8), 60) == {"freebsd"}
    assert systems_of((2, 1, 3, 4, 8), 120) == {"windows"}
    for kinds, hop_limit in ((LINUX, 120), ((2,), 60), (LINUX, -1)):
        assert systems_of(kinds, hop_limit) == frozenset()


def test_the_table_has_no_two_entries_of_one_form() -> None:
    forms = [(stack.initial_hop_limit, stack.option_kinds) for stack in known_stacks()]
    assert len(forms) == len(set(forms))
