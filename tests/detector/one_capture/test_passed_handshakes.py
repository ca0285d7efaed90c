"""Boxes at the server's side that let handshakes pass and acknowledge data: what tells them from a lucky round trip."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec.structs import replace

from detector.one_capture import side_posteriors
from detector.one_capture.hypotheses.passing.path_variation import PathVariation
from detector.one_capture.likelihoods.priors import PRIORS
from detector.one_capture.side_posteriors import SidePosteriors
from pepscope.captures.exchanges import ExchangeKind
from pepscope.results.verdicts import GroupSide
from tests.detector.one_capture.made_vantages import Talk, judged, of_library_and_program

#: What clients' answers take behind a leg of 50 ms, and at the transport's speed (ms).
BEHIND_MS, AT_ONCE_MS = (50.3, 51.0, 52.5, 50.8, 53.1, 51.6), (0.3, 1.0, 2.5, 0.8, 3.1, 1.6)


def test_the_least_of_some_round_trips_is_later_than_the_least_of_others_by_something() -> None:
    later_s = np.linspace(-20.0, 20.0, 4_000_001)[None]
    path = PathVariation.measured(np.array([0.01]), np.array([20.0]))
    density = path.density(later_s, np.array([20.0]), np.array([3.0]))
    assert np.sum(density) * (later_s[0, 1] - later_s[0, 0]) == pytest.approx(1.0, abs=1e-3)


def test_few_equal_round_trips_do_not_say_that_a_path_varies_by_nothing() -> None:
    later_s, one = np.full(3, 0.01), np.ones(3)
    path = PathVariation.measured(np.array([np.nan, 0.0, 0.0]), np.array([0.0, 4.0, 100.0]))
    unknown, few, many = path.density(later_s, one, one).tolist()
    assert unknown > 1.5 * few
    assert few > 100 * many


def test_many_round_trips_of_a_path_that_varies_are_taken_at_their_word() -> None:
    later_s, one = np.full(2, 0.03), np.ones(2)
    path = PathVariation.measured(np.array([0.0, 0.03]), np.array([100.0, 100.0]))
    steady, varying = path.density(later_s, one, one).tolist()
    assert varying == pytest.approx(np.exp(-1.0) / 0.06, rel=0.1)
    assert steady < 1e-3 * varying


def test_a_box_that_lets_handshakes_pass_is_found_where_data_are_acknowledged_sooner_by_what_answers_take() -> None:
    passed, own = (
        _split(_talks(BEHIND_MS, handshake_ms=each, kind=ExchangeKind.TLS_FINISHED)) for each in (70.0, 20.0)
    )
    assert passed > 0.99
    assert own > 0.99


def test_handshakes_that_something_held_up_accuse_no_client_that_answers_at_once() -> None:
    held_up, plain = (_split(_talks(AT_ONCE_MS, handshake_ms=each)) for each in (70.0, 20.0))
    assert held_up < 0.05
    assert plain < 0.05


def test_a_handshake_that_is_sooner_than_data_is_none_that_passed(monkeypatch: pytest.MonkeyPatch) -> None:
    sooner = _split(_talks(BEHIND_MS, handshake_ms=11.0, kind=ExchangeKind.TLS_FINISHED))
    priors = PRIORS | {GroupSide.SERVER: replace(PRIORS[GroupSide.SERVER], connects_first=0.0)}
    monkeypatch.setattr(side_posteriors, "PRIORS", priors)
    assert 1 - sooner > 0.9 * (1 - _split(_talks(BEHIND_MS, handshake_ms=11.0, kind=ExchangeKind.TLS_FINISHED)))


def test_clients_that_are_late_in_all_answers_show_a_leg_by_their_closes() -> None:
    late_ms = (71.0, 93.0, 118.0, 83.0, 104.0, 76.0)
    behind, at_once = (
        _split(_talks(late_ms, kind=None, closes_ms=closes_ms))
        for closes_ms in ((20.3, 21.0, 22.5, 20.8, 21.6, 20.6), (0.3, 1.0, 0.5, 0.8, 0.2, 0.6))
    )
    assert behind > 0.95
    assert at_once < 0.4


def _split(posteriors: SidePosteriors) -> float:
    return float(posteriors.groups.split[0])


def _talks(
    excess_ms: tuple[float, ...],
    *,
    handshake_ms: float = 20.0,
    kind: ExchangeKind | None = ExchangeKind.HTTP_NEXT_REQUEST,
    closes_ms: tuple[float, ...] = (),
) -> SidePosteriors:
    """One client's connections, each of which answers twice and closes: by this kind, or in a TLS handshake and then
    behind it."""
    closes = closes_ms or excess_ms
    talks = [
        Talk(
            excess_ms=[
                (each if kind is None else kind, took_ms)
                for each, took_ms in of_library_and_program((late, late + 0.4))
            ],
            handshake_ms=handshake_ms,
            close_ms=close,
        )
        for late, close in zip(excess_ms, closes, strict=True)
    ]
    return judged(talks, at_client=False)
