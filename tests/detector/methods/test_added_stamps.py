"""Timestamps that arrive and did not leave: another stack's, unless a tool took them out of the emitter's capture."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec.structs import replace

from detector.method import Observation
from detector.methods.identity import METHOD, wording
from detector.methods.identity.agreement import ADDED_NATS, ADDED_STAMPS, REWRITABLE_NATS, sum_fields, total_nats
from detector.pair import Pair
from pepscope.captures.packets import Direction, PacketColumns
from pepscope.results.verdicts import Evidence, Outcome
from tests.detector.corpus import pairs
from tests.detector.methods.alone import alone
from tests.detector.methods.generated_segments import compared_data
from tests.detector.rewriting import Change, changed, scrambled_ip_id, without_timestamps
from tests.detector.vantage.test_not_captured import segments_of, without_stamps

SHORT = "spl_ha_dl_short10k"
REGULAR = ("reg_dl_short10k", "reg_dl_cubic_lte", "reg_dl_reno_loss1", "reg_ul_slowreader_srv__midone")


def found_in(pair: Pair) -> Evidence:
    return alone(METHOD, Observation(pair))


def stripped(direction: Direction) -> Change:
    """Takes timestamps out of what arrives in a direction, and gives it other IP IDs."""

    def change(packets: PacketColumns) -> PacketColumns:
        arrives = packets.direction == direction
        bare = scrambled_ip_id(without_timestamps(packets))
        names = ("marks", "tsval", "tsecr", "ip_id")
        return packets.replaced(
            **{name: np.where(arrives, getattr(bare, name), getattr(packets, name)) for name in names}
        )

    return change


def blanked(pair: Pair) -> Pair:
    """The client's capture as a tool leaves it that takes the option out of SYNs, too."""
    bare = changed(pair, without_timestamps, scrambled_ip_id)
    client = bare.client_side
    assert client is not None
    flows = {way: getattr(client.connection, way)._replace(timestamps=False) for way in ("up", "down")}
    return replace(bare, client_side=replace(client, connection=client.connection._replace(**flows)))


@pytest.mark.parametrize("run_id", REGULAR)
def test_timestamps_and_ip_ids_that_a_middlebox_takes_away_are_no_split(run_id: str) -> None:
    for pair in pairs(run_id):
        found = found_in(changed(pair, stripped(Direction.DOWN), stripped(Direction.UP)))
        assert found.outcome is not Outcome.SPLIT, found.summary


@pytest.mark.parametrize("run_id", REGULAR)
def test_a_capture_without_any_timestamp_tells_nothing_of_added_ones(run_id: str) -> None:
    for pair in pairs(run_id):
        found = found_in(blanked(pair))
        assert found.outcome is not Outcome.SPLIT, found.summary
        assert f"up_data_{ADDED_STAMPS.replace('-', '_')}_agreement" not in found.numbers


@pytest.mark.parametrize("run_id", REGULAR)
def test_equal_ip_ids_outweigh_added_timestamps(run_id: str) -> None:
    for pair in pairs(run_id):
        assert found_in(changed(pair, without_timestamps, None)).outcome is not Outcome.SPLIT


def test_timestamps_are_added_once_however_many_segments_have_them() -> None:
    emitted, arrived = segments_of("reg_dl_cdma1x")
    bare = without_stamps(emitted, captured=True)
    added, removed = (compared_data(bare, arrived, may_add=may_add) for may_add in (True, False))
    sums = [sum_fields([part, part]) for part in (added, removed)]
    fields = frozenset({ADDED_STAMPS, "timestamps-present"})
    assert [float(total_nats(each, fields)) for each in sums] == [-ADDED_NATS, -REWRITABLE_NATS]


def test_the_sentence_says_what_segments_with_other_options_do() -> None:
    figures: dict[str, object] = {"same_bytes": True, "pairing_confidence": 1.0, "up_data_segments": 12}
    figures |= {"leading_field_0": ADDED_STAMPS, "leading_share_0": 0.0}
    figures |= {"leading_field_1": "ip-id", "leading_share_1": 0.25, "leading_field_2": "", "leading_share_2": 0.0}
    summary = wording.other_segments(figures).summary
    assert summary.endswith(
        "of 12 segments, ip id (25 % equal) differ, and 100 % arrive with timestamps that they left without."
    )
