from __future__ import annotations

import pytest
from msgspec.structs import replace

from detector.method import Observation
from detector.methods.single_vantage import METHOD, answer_times
from detector.pair import Pair
from pepscope.captures.packets import Direction
from pepscope.results.verdicts import Evidence, Outcome
from tests.detector.corpus import RUNS, pairs
from tests.detector.methods.alone import alone


def examined(pair: Pair) -> Evidence:
    return alone(METHOD, Observation(pair))


@pytest.mark.parametrize("run_id", RUNS)
def test_one_capture_is_never_split(run_id):
    for pair in pairs(run_id):
        for single in (replace(pair, client_side=None), replace(pair, server_side=None)):
            assert alone(METHOD, Observation(single)).outcome is Outcome.INAPPLICABLE


@pytest.mark.parametrize("run_id", [name for name, run in RUNS.items() if run["class"] == "regular"])
def test_no_hint_at_regular_connections(run_id):
    for pair in pairs(run_id):
        for single in (replace(pair, client_side=None), replace(pair, server_side=None)):
            assert alone(METHOD, Observation(single)).finding == "needs-second-capture"


def test_the_missing_capture_is_named():
    (pair,) = pairs("reg_dl_cubic_lte")
    assert "at the server" in examined(replace(pair, server_side=None)).summary
    assert "at the client" in examined(replace(pair, client_side=None)).summary
    assert alone(METHOD, Observation(pair)).finding == "both-ends-captured"


def test_hints_are_named():
    (pair,) = pairs("spl_ha_dl_small_umts")
    found = examined(replace(pair, client_side=None))
    assert found.finding == "hints-of-split"
    assert "alternates" in found.numbers["hints"]


def test_answers_of_a_chat_are_timed():
    (pair,) = pairs("spl_ha_chat")
    times = answer_times(pair.client_side.packets, Direction.UP)
    assert times.count == 40
    assert times.least_ns > 100e6
