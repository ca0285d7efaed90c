"""Signs that a box in the path answers handshakes for hosts."""

from __future__ import annotations

import numpy as np
import pytest

from detector.one_capture.senders.handshakes import answered_share
from pepscope.captures.direction import Direction
from tests.detector.one_capture.senders.made_senders import senders


@pytest.mark.parametrize("far", [Direction.UP, Direction.DOWN])
def test_a_handshake_is_compared_with_what_follows_on_the_far_side(far: Direction) -> None:
    made = senders(
        6, int(far),
        syn_hop_limit=[64, 57, 57, -1, 57, 57], hop_limit=[57, 57, -1, 57, 57, 57],
        syn_window=[9, 65_160, 0, -1, 0, 65_160],
    )  # fmt: skip
    share = answered_share(made, far, np.asarray([0, 0, 1, 1, 2, 2]), 3)
    assert share[0] == 0.5, "another hop limit"
    assert np.isnan(share[1]), "the SYN, or all that follows it, was not captured"
    assert share[2] == 0.5, "a shut window"
