"""Signs that somebody else answers handshakes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from detector.one_capture.senders.handshakes import handshake_signs, member_handshakes, ranges
from pepscope.captures.direction import Direction
from pepscope.captures.exchanges import RoundTripColumns
from tests.detector.one_capture.senders.made_senders import senders


def round_trips(handshake_ns: list[int], least_ns: list[int], asked: int) -> RoundTripColumns:
    """Of the data of one direction; nothing is known of the other one."""
    rows = 2 * len(handshake_ns)
    columns: dict[str, Any] = {name: np.full(rows, -1, np.int64) for name in RoundTripColumns.__struct_fields__}
    columns["handshake_ns"][asked::2], columns["least_of_all_ns"][asked::2] = handshake_ns, least_ns
    return RoundTripColumns(**columns)


@pytest.mark.parametrize("far", [Direction.UP, Direction.DOWN])
def test_a_handshake_is_compared_with_what_follows_on_the_far_side(far: Direction) -> None:
    made = senders(
        4, int(far), syn_hop_limit=[64, 57, 57, -1], hop_limit=[57, 57, -1, 57], syn_window=[0, 65_160, 0, -1]
    )
    times = round_trips([40, 80, -1, 80], [130, 82, 90, -1], 1 - int(far))
    signs = handshake_signs(made, times, far)
    assert signs.hop_limit_step.tolist()[:2] == [-7, 0]
    assert np.isnan(signs.hop_limit_step[2:]).all()
    assert signs.is_shut.tolist() == [True, False, False, False]
    assert signs.is_seen.tolist() == [True, True, False, False]
    assert signs.early_s[:2] == pytest.approx([90e-9, 2e-9])
    assert np.isnan(signs.early_s[2:]).all()
    found = member_handshakes(signs, np.asarray([0.04, 0.08, np.nan, 0.08]), np.asarray([0.08, 0.09]),
                              np.asarray([0, 0, 1, 1]), 2)  # fmt: skip
    assert found.answered_share[0] == 0.5
    assert np.isnan(found.answered_share[1])
    assert found.early_s == pytest.approx([0.04, 0.01])


def test_ranges_need_two_members_of_which_both_are_known() -> None:
    handshake_s = np.asarray([0.04, 0.041, np.nan, 0.05, 0.06])
    other_s = np.asarray([0.05, 0.13, 0.9, 0.1, np.nan])
    found = ranges(handshake_s, other_s, np.asarray([0, 0, 0, 1, 1]), 2)
    assert found.members.tolist() == [2, 1]
    assert (found.handshake_s[0], found.other_s[0]) == pytest.approx((0.001, 0.08))
    assert np.isnan([found.handshake_s[1], found.other_s[1]]).all()
