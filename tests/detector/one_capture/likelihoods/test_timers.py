"""Programs that sleep for round times before they answer, and paths that are longer than any."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from detector.one_capture.likelihoods.timing_tables import HIDDEN_S, LEG_NATS, TIMERS_S, excess_bin
from pepscope.captures.exchanges import ExchangeKind
from tests.detector.one_capture.made_vantages import Talk, judged

HOST = "192.0.2.1"
#: What a group or connection needs for a verdict.
SURE = 0.98
#: How much longer than its timer a program takes, of the timer.
LONGER = st.lists(st.floats(0.0005, 0.012), min_size=3, max_size=20)


def split(gaps_s: list[float], *, at_client: bool = False, in_tls: bool = False) -> float:
    """The probability of a split where one host answers so much later than the transport, each time anew: lines, or TLS
    handshakes and what is said behind them."""
    kinds = (ExchangeKind.TLS_FINISHED, ExchangeKind.TLS_DATA) if in_tls else (ExchangeKind.COMMAND,)
    talks = [Talk(HOST, [(kind, 1e3 * gap_s) for kind in kinds], 0.3) for gap_s in gaps_s]
    return float(judged(talks, at_client=at_client).groups.split[0])


@given(st.sampled_from(TIMERS_S.tolist()), LONGER, st.booleans())
def test_answers_at_a_timers_end_are_no_split(timer_s: float, longer: list[float], at_client: bool) -> None:
    assert split([timer_s * (1 + each) for each in longer], at_client=at_client) < SURE


@pytest.mark.parametrize("timer_s", TIMERS_S[TIMERS_S < 0.3])
def test_what_comes_before_a_timers_end_is_behind_a_leg(timer_s: float) -> None:
    """No timer ends early: a leg that is hardly shorter is found all the same."""
    jitter = np.linspace(0.0, 0.01, 12)
    assert split([timer_s * (0.97 + each) for each in jitter], in_tls=True) > SURE
    assert split([timer_s * (1.002 + each) for each in jitter], in_tls=True) < SURE


@pytest.mark.parametrize("leg_s", [0.047, 0.07, 0.13, 0.16])
def test_legs_that_are_no_timers_are_found(leg_s: float) -> None:
    assert split([leg_s * (1 + each) for each in np.linspace(0.0, 0.02, 12)], in_tls=True) > SURE


def test_a_timer_begins_a_bin() -> None:
    assert np.all(excess_bin(TIMERS_S * 0.9975) < excess_bin(TIMERS_S * 0.9985))


def test_legs_are_as_probable_as_paths_of_their_length_and_their_mean_is_one() -> None:
    assert np.exp(LEG_NATS).mean() == pytest.approx(1.0)
    ground, between, satellite, beyond = (
        set(LEG_NATS[(low_s < HIDDEN_S) & (low_s + more_s > HIDDEN_S)])
        for low_s, more_s in ((0.0, 0.3), (0.3, 0.17), (0.47, 0.33), (0.8, 9.0))
    )
    assert ground == satellite
    assert max(beyond) < min(between) < min(ground)


def test_a_satellites_split_is_found() -> None:
    assert split([0.59 * (1 + each) for each in np.linspace(0.0, 0.03, 12)], in_tls=True) > SURE


def test_a_client_that_sends_by_its_own_clock_each_second_is_no_leg_of_a_second() -> None:
    """Seen of a mail client: it sends a line each 1.003 s, whenever the server answered the one before."""
    assert split([0.951, 1.002, 1.001, 0.982, 1.002, 0.996]) < SURE
