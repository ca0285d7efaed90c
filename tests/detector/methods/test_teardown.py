from __future__ import annotations

import pytest
from msgspec.structs import replace

from detector.method import Observation
from detector.methods.teardown import METHOD, find_abort
from detector.pair import Pair
from pepscope.captures.packets import Direction
from pepscope.results.verdicts import Evidence, Outcome
from tests.detector.corpus import RUNS, pairs
from tests.detector.methods.alone import alone


def examined(pair: Pair) -> Evidence:
    return alone(METHOD, Observation(pair))


def test_a_split_point_acknowledges_beyond_the_abort():
    (pair,) = pairs("spl_ha_dl_abort")
    found = alone(METHOD, Observation(pair))
    assert found.finding == "acknowledged-beyond-abort"
    assert found.numbers["acknowledged_beyond_bytes"] > 1_000_000


def test_an_abort_end_to_end():
    (pair,) = pairs("reg_dl_abort")
    found = alone(METHOD, Observation(pair))
    assert found.finding == "abort-end-to-end"
    assert found.numbers["acknowledged_beyond_bytes"] <= 0


@pytest.mark.parametrize("run_id", [name for name in RUNS if "abort" not in name])
def test_no_finding_without_abort(run_id):
    for pair in pairs(run_id):
        assert alone(METHOD, Observation(pair)).outcome is Outcome.INAPPLICABLE


def test_the_sender_of_the_stream_does_not_abort_it_by_resetting():
    (pair,) = pairs("reg_dl_abort")
    assert find_abort(pair.client_side.packets, Direction.DOWN) is not None
    assert find_abort(pair.client_side.packets, Direction.UP) is None
    assert examined(replace(pair, client_side=None)).finding == "needs-second-capture"
