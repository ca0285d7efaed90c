"""What least round trips to several hosts say of where the transport ends."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from detector.one_capture.likelihoods.near.near_ends import near_nats
from pepscope.captures.exchanges import ExchangeKind
from tests.detector.one_capture.made_vantages import Talk, judged

UNKNOWN = float("nan")


def for_one_box(
    near_ms: Sequence[float], varies_ms: float, connections: int = 1, *, timed: bool = False, one_prefix: bool = False
) -> float:
    """Nats for one near end of all these hosts."""
    count = len(near_ms)
    end, split = near_nats(
        np.asarray(near_ms) / 1e3, np.full(count, varies_ms / 1e3), np.full(count, connections), None,
        np.zeros(count, np.int64), 1, timed=timed, one_prefix=one_prefix,
    )  # fmt: skip
    return float(split[0] - end[0])


@pytest.mark.parametrize("varies_ms", [0.0, UNKNOWN])
def test_hosts_that_end_here_end_at_one_place_though_nothing_shows_how_the_path_varies(varies_ms: float) -> None:
    assert for_one_box([0.03, 0.05, 0.06, 0.08], varies_ms) > 1.0


def test_a_path_that_may_vary_by_as_much_as_it_takes_tells_less_of_hosts_further_away() -> None:
    apart = [80.0, 84.0, 88.0, 92.0]
    assert for_one_box(apart, UNKNOWN) > for_one_box(apart, 0.1)
    assert for_one_box([each - 79.5 for each in apart], UNKNOWN) == pytest.approx(
        for_one_box([each - 79.5 for each in apart], 0.5)
    )


@given(st.lists(st.floats(0.01, 400), min_size=2, max_size=6), st.floats(0, 50) | st.just(UNKNOWN), st.randoms())
def test_order_does_not_matter_and_sameness_is_weak_evidence(near_ms: list[float], varies_ms: float, random) -> None:
    shuffled = list(near_ms)
    random.shuffle(shuffled)
    assert for_one_box(shuffled, varies_ms) == pytest.approx(for_one_box(near_ms, varies_ms), abs=1e-9)
    assert for_one_box(near_ms, varies_ms) <= np.log(1 / 0.3) + 1e-9
    assert for_one_box([near_ms[0]] * 3, varies_ms) == pytest.approx(0.0)


def test_hosts_of_one_prefix_stand_at_one_place_without_a_box() -> None:
    near_ms = [20.0, 20.05, 20.1, 20.1]
    assert for_one_box(near_ms, 0.1) > 1.0
    assert 0.0 < for_one_box(near_ms, 0.1, one_prefix=True) < 0.11
    assert for_one_box([20.0, 60.0, 90.0], 0.1, one_prefix=True) < -5.0


def test_what_slowed_every_one_of_many_connections_is_seldom_the_path() -> None:
    """A path that varies by 30 ms does not hold twenty handshakes up by 40 ms each; it may hold up one."""
    assert for_one_box([20.0, 60.0], 30.0, connections=1) > -1.0
    assert for_one_box([20.0, 60.0], 30.0, connections=20) < -2.0


def test_a_timer_holds_acknowledgements_up_and_no_handshake() -> None:
    """Linux delays an acknowledgement by 40 ms: hosts at one near end seem 40 ms apart."""
    one_end = [36.1, 36.6, 76.3, 75.8]
    assert for_one_box(one_end, 1.0, 4) < -8
    assert for_one_box(one_end, 1.0, 4, timed=True) > for_one_box(one_end, 1.0, 4) + 5
    assert for_one_box([36.1, 60.0, 90.0], 1.0, 4, timed=True) < -6


def for_a_split(near_ms: Sequence[float], *, begun: bool) -> float:
    """What near ends say for a split of hosts of which all but the first are late, or were met with `begun`."""
    talks = [
        Talk(f"192.0.{place}.1", [(ExchangeKind.COMMAND, 0.5)] * 4, each_ms, begun=begun and place > 0)
        for place, each_ms in enumerate(near_ms)
    ]
    return float(judged(talks, at_client=True).near_nats[0])


def test_hosts_whose_handshakes_were_not_captured_may_be_as_near_as_timers_leave_them() -> None:
    """Of hosts that a capture begins within only acknowledgements are known, which a timer of 40 ms may delay."""
    assert for_a_split([30.0, 71.0, 72.0], begun=False) < -3.0
    assert for_a_split([30.0, 71.0, 72.0], begun=True) > for_a_split([30.0, 71.0, 72.0], begun=False) + 1.5
    assert for_a_split([30.0, 130.0, 250.0], begun=True) < -3.0
