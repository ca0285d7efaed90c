from __future__ import annotations

import pytest

from detector.method import Observation
from detector.methods.one_place import METHOD, OneVantagePointFinding
from detector.vantage.one_place import OnePlace
from pepscope.results.verdicts import Outcome
from tests.detector.corpus import pairs
from tests.detector.methods.alone import alone


def test_captures_of_two_places_give_no_evidence():
    (pair,) = pairs("reg_dl_abort")
    assert METHOD.alone(Observation(pair)) is None


@pytest.mark.parametrize(("round_trip_ns", "shown"), [(250.0, "no round trip"), (None, "differ by a constant")])
def test_captures_of_one_place_decide_nothing_and_have_a_reason(round_trip_ns: float | None, shown: str):
    (pair,) = pairs("reg_dl_abort")
    found = alone(METHOD, Observation(pair, place=OnePlace(40, round_trip_ns, 1_000)))
    assert found.finding is OneVantagePointFinding.ONE_VANTAGE_POINT
    assert found.outcome is Outcome.INAPPLICABLE
    assert shown in found.summary
    assert found.numbers["packets_in_common"] == 40
    assert found.numbers["round_trip_between_s"] == (None if round_trip_ns is None else 2.5e-7)
