"""Which stretch two captures cover, from hop limits and round trips of the near ends."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec.structs import replace

from detector.options import DetectOptions
from detector.pair import Pair, Vantage
from detector.vantage.stretch import stretches_of
from detector.verdict.judging import judge_pair
from pepscope.captures.packets import Direction
from pepscope.results.pairs.stretch import coverage
from pepscope.results.verdicts import Stretch, Verdict
from tests.detector.corpus import RUNS, pairs


def routers_away(vantage: Vantage, direction: Direction, hops: int) -> Vantage:
    """The vantage as if taken `hops` routers farther from the sender of `direction`."""
    ttl = vantage.packets.ttl - np.where(vantage.packets.direction == direction, hops, 0).astype(np.uint8)
    return replace(vantage, packets=vantage.packets.replaced(ttl=ttl))


def stretch_of(pair: Pair) -> Stretch | None:
    return stretches_of([pair], [None]).at(0)


def a_pair(run_id: str) -> Pair:
    return pairs(run_id)[0]


@pytest.mark.parametrize(
    "run_id", ["reg_dl_cubic_lte", "reg_dl_nat", "reg_dl_v6", "spl_ha_dl_srcip", "prx_ngx_2M_umts"]
)
def test_captures_at_both_hosts_cover_everything(run_id: str) -> None:
    stretch = stretch_of(a_pair(run_id))
    assert stretch is not None
    assert (stretch.client_hops_beyond, stretch.server_hops_beyond) == (0, 0)
    assert coverage(stretch) == ""


def test_the_path_between_is_measured_where_both_show_the_same_handshake() -> None:
    regular, split = (stretch_of(a_pair(name)) for name in ("reg_dl_cubic_lte", "spl_ha_dl_srcip"))
    assert regular is not None
    assert split is not None
    assert regular.hops_between == 1
    assert regular.round_trip_between_s == pytest.approx(0.12, abs=0.01)  # what its links take
    assert (split.hops_between, split.round_trip_between_s) == (None, None)


def test_the_verdict_of_a_capture_in_mid_path_names_the_uncovered_stretch() -> None:
    pair = a_pair("reg_dl_cubic_lte")
    assert pair.server_side is not None
    midway = replace(pair, server_side=routers_away(pair.server_side, Direction.DOWN, 3))
    result = judge_pair(midway)
    assert result.verdict is Verdict.REGULAR
    assert result.reason.endswith(
        "Covers the stretch between the two captures; not covered: 3 hops beyond the server-side capture."
    )
    assert result.stretch is not None
    assert result.stretch.server_hops_beyond == 3
    assert "Covers the stretch" not in judge_pair(pair).reason


def test_both_sides_and_the_round_trip_are_named() -> None:
    pair = a_pair("reg_dl_cubic_lte")
    assert pair.client_side is not None
    assert pair.server_side is not None
    connection = pair.server_side.connection
    far = connection._replace(
        handshake_syn_ack_ns=25_000_000, up=connection.up._replace(round_trip_time_min_ns=24_000_000)
    )
    midway = replace(
        pair,
        client_side=routers_away(pair.client_side, Direction.UP, 1),
        server_side=replace(routers_away(pair.server_side, Direction.DOWN, 2), connection=far),
    )
    reported = coverage(stretch_of(midway))
    assert (
        "1 hop beyond the client-side capture, and 2 hops with a round trip of 24 ms beyond the server-side" in reported
    )
    same_segment = replace(pair, server_side=replace(pair.server_side, connection=far))
    assert "answer only after 24 ms (a path, or a host that is slow to answer)" in coverage(stretch_of(same_segment))
    held = replace(same_segment, options=DetectOptions(ack_delay_s=3.0))
    assert coverage(stretch_of(held)) == ""


def test_an_inconclusive_verdict_covers_nothing() -> None:
    pair = a_pair("spl_ha_dl_srcip")
    assert pair.server_side is not None
    doubtful = replace(pair, server_side=routers_away(pair.server_side, Direction.DOWN, 3), pairing_confidence=0.1)
    result = judge_pair(doubtful)
    assert result.verdict is Verdict.INCONCLUSIVE
    assert "Covers" not in result.reason


def test_one_capture_has_no_stretch() -> None:
    assert stretch_of(replace(a_pair("reg_dl_nat"), server_side=None)) is None


def test_no_run_of_the_corpus_is_in_mid_path() -> None:
    reported = {
        run_id: sentence
        for run_id, run in RUNS.items()
        if run["variant"] is None and not run["active"]
        for pair in pairs(run_id)
        if (sentence := coverage(stretch_of(pair)))
    }
    assert reported == {}
