from __future__ import annotations

from dataclasses import replace

import pytest

from detector.clock import relate
from detector.methods.single_vantage import answer_times_ns, examine
from detector.pair import Pair
from pepscope.packets import Direction
from pepscope.results import Evidence, Outcome
from tests.detector.corpus import RUNS, pairs


def examined(pair: Pair) -> Evidence:
    return examine(pair, relate(pair))


@pytest.mark.parametrize("run_id", RUNS)
def test_one_capture_never_accuses(run_id):
    for pair in pairs(run_id):
        for alone in (replace(pair, client_side=None), replace(pair, server_side=None)):
            assert examine(alone, relate(alone)).outcome is Outcome.INAPPLICABLE


@pytest.mark.parametrize("run_id", [name for name, run in RUNS.items() if run["class"] == "regular"])
def test_no_hint_at_regular_connections(run_id):
    for pair in pairs(run_id):
        for alone in (replace(pair, client_side=None), replace(pair, server_side=None)):
            assert examine(alone, relate(alone)).finding == "needs-second-capture"


def test_says_which_capture_is_missing():
    (pair,) = pairs("reg_dl_cubic_lte")
    assert "at the server" in examined(replace(pair, server_side=None)).summary
    assert "at the client" in examined(replace(pair, client_side=None)).summary
    assert examine(pair, relate(pair)).finding == "both-ends-captured"


def test_hints_are_named():
    (pair,) = pairs("spl_ha_dl_small_umts")
    found = examined(replace(pair, client_side=None))
    assert found.finding == "hints-of-split"
    assert "alternates" in found.numbers["hints"]


def test_answers_of_a_chat_are_timed():
    (pair,) = pairs("spl_ha_chat")
    times = answer_times_ns(pair.client_side.packets, Direction.UP)
    assert len(times) == 40
    assert times.min() > 100e6
