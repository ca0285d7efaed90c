"""Columns of summaries, and pairs that are loaded together: they say what the objects of each connection say."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from detector.pair import LoadedVantage, Pair
from detector.pairing.captures import PairedCaptures, pair_captures
from detector.pairing.match import Match
from detector.streams.known import UNKNOWN
from detector.streams.sides import Sides
from detector.streams.summaries import Summaries
from detector.vantage.capture_sides import client_nearness, first_are_client_sides, first_is_client_side, is_timed
from detector.vantage.not_captured import cut_options, have_cut_options, lack_packets, missing_packets
from detector.vantage.one_place import may_be_one_place, one_place
from pepscope.captures.capture import open_capture
from pepscope.captures.connections import MISSING_PACKETS, Connection, FlowSummary
from pepscope.captures.direction import DIRECTIONS
from tests.detector.corpus import CORPUS, RUNS

CHOSEN = ["reg_dl_par20", "reg_bidir", "prx_ngx_par6", "spl_ha_dl_mid_lte_bbr__off", "reg_dl_bloat_1M__mid"]
TRUTHS = {"sack_permitted", "timestamps", "options_captured", "side_guessed"}
LEFT_OUT = {"round_trip_time_mean_ns", "syn_options", "missing_packets"}


def paired(run: str) -> PairedCaptures:
    first, second = (open_capture(str(CORPUS / RUNS[run]["files"][end]["name"])) for end in ("mobile", "server"))
    return pair_captures(first, second)


def both(run: str) -> tuple[list[Pair], Sequence[Pair]]:
    """Pairs loaded one by one, and the same together."""
    made = paired(run)
    matches = [match for match in made.matches if match.first is not None and match.second is not None]
    return [made.pair(match) for match in matches], made.pairs(matches)


@pytest.mark.parametrize("run", CHOSEN)
def test_pairs_loaded_together_are_those_loaded_one_by_one(run: str) -> None:
    single, together = both(run)
    assert together
    for one, two in zip(single, together, strict=True):
        assert one.alignment == two.alignment
        assert (one.pairing_confidence, one.pairing_ground) == (two.pairing_confidence, two.pairing_ground)
        for mine, theirs in zip(one.vantages, two.vantages, strict=True):
            assert (mine.capture, mine.connection, mine.clock_set_back) == (
                theirs.capture, theirs.connection, theirs.clock_set_back,
            )  # fmt: skip
            assert mine.packets.time_ns.tolist() == theirs.packets.time_ns.tolist()
            for direction in DIRECTIONS:
                assert mine.payload[direction].pieces == theirs.payload[direction].pieces


@pytest.mark.parametrize("run", CHOSEN)
def test_columns_hold_what_objects_hold(run: str) -> None:
    single, together = both(run)
    for pairs in (single, together, [*single[:1], *together]):
        vantages = [vantage for pair in pairs for vantage in pair.vantages]
        summaries, connections = Summaries(vantages), [vantage.connection for vantage in vantages]
        for name in {"first_time_ns", "packets", "handshake_ack_ns", "server_port", "ip_version"}:
            expected = [getattr(each, name) for each in connections]
            assert known(summaries.numbers(name).tolist()) == expected
        assert summaries.are("side_guessed").tolist() == [each.side_guessed for each in connections]
        clients, servers = summaries.end_points()
        assert ([*clients], [*servers]) == ([e.client for e in connections], [e.server for e in connections])
        for direction in DIRECTIONS:
            flows = [flow_of(each, direction) for each in connections]
            assert summaries.syn_options(direction) == [flow.syn_options for flow in flows]
            missing = [MISSING_PACKETS[code] for code in summaries.of_flow(direction, "missing_packets").tolist()]
            assert missing == [flow.missing_packets for flow in flows]
            for name in sorted(set(FlowSummary._fields) - LEFT_OUT):
                column = summaries.are_of_flow if name in TRUTHS else summaries.of_flow
                assert known(column(direction, name).tolist()) == [getattr(flow, name) for flow in flows], name


def test_a_copy_with_another_summary_is_no_row_of_its_table() -> None:
    _, pairs = both("reg_dl_par20")
    vantage = pairs[0].vantages[0]
    assert isinstance(vantage, LoadedVantage)
    changed = replace(vantage, connection=vantage.connection._replace(packets=7))
    assert changed.connection.packets == 7
    assert Summaries([vantage, changed, vantage]).numbers("packets").tolist()[1] == 7
    assert Summaries([changed]).numbers("packets").tolist() == [7]


@pytest.mark.parametrize("run", CHOSEN)
def test_sides_and_what_is_missing_are_those_of_single_pairs(run: str) -> None:
    _, pairs = both(run)
    sides = Sides.of(pairs)
    connections = [(one.connection, two.connection) for one, two in zip(sides.clients, sides.servers, strict=True)]
    own, timed = first_are_client_sides(sides.client, sides.server, connections.__getitem__)
    assert own.tolist() == pytest.approx([first_is_client_side(*each) for each in connections])
    assert timed.tolist() == [is_timed(one) and is_timed(two) for one, two in connections]
    assert all(0 <= client_nearness(one)[0] <= 1 for one, _ in connections)
    vantages = sides.client, sides.server
    assert lack_packets(vantages).tolist() == [bool(missing_packets(pair)) for pair in pairs]
    assert have_cut_options(vantages).tolist() == [bool(cut_options(pair)) for pair in pairs]
    for pair, may_be in zip(pairs, may_be_one_place(sides).tolist(), strict=True):
        assert may_be or one_place(pair) is None


def test_matches_that_cannot_be_loaded_together_are_loaded_in_their_places() -> None:
    made = paired("reg_dl_par20")
    alone = Match(made.matches[0].first, None, made.matches[0].ground)
    swapped = replace(made.matches[1], sides_swapped=True)
    pairs = made.pairs([*made.matches[:3], alone, swapped])
    assert [len(pair.vantages) for pair in pairs] == [2, 2, 2, 1, 2]
    assert made.packet_counts([alone]).tolist() == [pairs[3].vantages[0].connection.packets]
    expected = [vantage.connection.client for vantage in made.pair(swapped).vantages]
    assert [vantage.connection.client for vantage in pairs[4].vantages] == expected


def flow_of(connection: Connection, direction: int) -> FlowSummary:
    return connection.down if direction else connection.up


def known(values: list[object]) -> list[object]:
    return [None if value == UNKNOWN and value is not False else value for value in values]
