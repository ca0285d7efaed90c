"""Whose stack made the SYNs that a server sees."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from detector.one_capture import pools
from detector.one_capture.judging import judged_groups
from detector.one_capture.likelihoods.client_stacks import COPIES, client_stack_nats
from detector.one_capture.networks import NetworkTable
from detector.one_capture.reasons.evidence import group_evidence
from detector.one_capture.reasons.findings import ClientStackFinding
from detector.one_capture.senders.stacks import known_stacks
from detector.one_capture.side_posteriors import weigh_side
from pepscope.captures.exchanges import ExchangeKind
from pepscope.captures.packets import Direction
from pepscope.results.verdicts import GroupSide
from tests.detector.one_capture.made_vantages import Talk, vantage
from tests.detector.one_capture.senders.made_senders import senders

LINUX, WINDOWS, APPLE = (2, 4, 8, 1, 3), (2, 1, 3, 1, 1, 4), (2, 1, 3, 1, 1, 8, 4)


def nats(kinds: Sequence[Sequence[int]], hop_limits: Sequence[int], forms: Sequence[int]) -> float:
    made = senders(len(kinds), Direction.UP.value, option_kinds=kinds, syn_hop_limit=hop_limits)
    group = np.zeros(len(kinds), np.int64)
    return float(client_stack_nats(made, np.asarray(forms, np.int64), group, 1)[0])


def test_several_forms_are_clients_own_unless_the_split_point_copies() -> None:
    assert nats([LINUX] * 4, [60] * 4, [0, 0, 1, 1]) == pytest.approx(math.log(COPIES))


def test_one_form_among_many_is_no_sign() -> None:
    assert nats([LINUX] * 20, [60] * 20, [0] * 19 + [1]) == nats([LINUX], [60], [0])


def test_systems_of_clients_speak_against_a_split_and_those_of_boxes_for_it() -> None:
    windows, apple, linux = nats([WINDOWS], [120], [0]), nats([APPLE], [60], [0]), nats([LINUX], [60], [0])
    assert math.log(COPIES) < windows < -1.0
    assert math.log(COPIES) < apple < -1.0
    assert 0.0 < linux < 1.0


def test_a_hop_limit_that_the_system_does_not_start_from_leaves_its_options() -> None:
    assert nats([LINUX], [240], [0]) == nats([LINUX], [60], [0])


def test_what_is_not_known_says_nothing() -> None:
    assert nats([LINUX], [60], [-1]) == 0.0
    assert nats([(2, 8, 8, 8)], [60], [0]) == 0.0


@given(
    st.lists(
        st.tuples(st.sampled_from(known_stacks()), st.integers(1, 255), st.integers(-1, 2), st.integers(0, 3)),
        min_size=1, max_size=12,
    )
)  # fmt: skip
def test_stacks_say_a_few_nats_at_most_whatever_their_order(made: list[tuple]) -> None:  # type: ignore[type-arg]
    def ratios(rows: list[tuple]) -> list[float]:  # type: ignore[type-arg]
        found = senders(
            len(rows), Direction.UP.value, option_kinds=[row[0].option_kinds for row in rows],
            syn_hop_limit=[row[1] for row in rows],
        )  # fmt: skip
        form = np.asarray([-1 if row[2] < 0 else 10 * known_stacks().index(row[0]) + row[2] for row in rows])
        group = np.asarray([row[3] for row in rows])
        return [float(each) for each in client_stack_nats(found, form, group, 4)]

    found = ratios(made)
    assert all(math.log(COPIES) - 1e-9 <= each < 1.5 for each in found)
    # Of several forms that are equally frequent any may stand for the network.
    several = [each for each in ratios(made[::-1]) if each == pytest.approx(math.log(COPIES))]
    assert len(several) == sum(each == pytest.approx(math.log(COPIES)) for each in found)


def test_clients_own_stacks_are_evidence_of_their_network() -> None:
    talks = [Talk(excess_ms=((ExchangeKind.COMMAND, 0.5),) * 4, host=host) for host in ("192.0.2.1", "192.0.2.2")]
    made = vantage(talks, at_client=False)
    for kinds, shown in (((LINUX, WINDOWS), True), ((LINUX, LINUX), False)):
        sent = senders(
            2, Direction.UP.value, option_kinds=kinds, syn_hop_limit=[60, 60], hop_limit=[60, 60], syn_window=[1, 1]
        )
        columns = {**made.columns, "up_options_captured": np.ones(2, np.bool_)}
        found = weigh_side(replace(made, senders=sent, columns=columns), GroupSide.SERVER, NetworkTable())
        groups = judged_groups(found, pools.of_members(found), 0.0)
        evidence = group_evidence(found, 0, groups.figures(0, 2), groups.explanation(0))
        assert (ClientStackFinding.CLIENTS_OWN_STACKS in [each.finding for each in evidence]) is shown
