"""Acknowledgements that run ahead of the receiver by its own timestamps: another's, whatever clocks and IP IDs say."""

from __future__ import annotations

import re

import numpy as np
import pytest

import pepscope
from detector.method import Observation
from detector.methods.identity import METHOD, wording
from detector.methods.identity.acknowledger import FEWEST_AHEAD, acknowledgements_ahead
from detector.methods.identity.agreement import ClassComparison, FieldAgreement
from detector.methods.identity.findings import IdentityFinding
from detector.pair import Pair
from detector.pairing.captures import pair_captures
from pepscope.captures.capture import open_capture
from pepscope.captures.packets import PacketColumns
from pepscope.results.verdicts import Evidence, Outcome
from tests.detector.corpus import pairs
from tests.detector.methods.alone import alone
from tests.detector.rewriting import (
    Change,
    changed,
    in_sequence,
    losing,
    modulated_timestamps,
    thinned_acknowledgements,
    without_ip_id,
    without_timestamps,
)
from tests.fresh.test_fresh_captures import FRESH

#: Local acknowledgement that drops the receiver's own, or lets them pass; each with a long connection.
SPLIT = ("spl-localack-clock", "spl-localack-passed", "spl-localack-upload-passed")
REGULAR = ("reg_dl_cubic_lte", "reg_dl_reno_loss1", "reg_bidir", "reg_dl_v6")


def longest(run: str) -> Pair:
    """The pair with most packets of a run."""
    mobile, server = (open_capture(str(FRESH / f"{run}.{end}.pcap.gz")) for end in ("mobile", "server"))
    found = list(pair_captures(mobile, server))
    assert len(found) > 0
    return max(found, key=lambda pair: 0 if pair.client_side is None else len(pair.client_side.packets))


def found_in(pair: Pair) -> Evidence:
    return alone(METHOD, Observation(pair))


def at_times_of_a_wild_clock(packets: PacketColumns) -> PacketColumns:
    """The first half is timed an hour later."""
    late = np.arange(len(packets)) < len(packets) // 2
    return packets.replaced(time_ns=packets.time_ns + np.where(late, 3_600_000_000_000, 0))


def without_ip_id_of_acknowledgements(packets: PacketColumns) -> PacketColumns:
    return packets.replaced(ip_id=np.where(packets.payload_bytes > 0, packets.ip_id, 0).astype(np.uint16))


@pytest.mark.parametrize("run", SPLIT)
@pytest.mark.parametrize("change", [None, without_ip_id_of_acknowledgements, at_times_of_a_wild_clock])
def test_local_acknowledgement_is_found_by_the_receivers_own_timestamps(run: str, change: Change | None) -> None:
    found = found_in(changed(longest(run), change, change))
    assert found.finding is IdentityFinding.ACKS_AHEAD
    assert found.outcome is Outcome.SPLIT
    assert found.numbers["acks_ahead"] >= FEWEST_AHEAD


@pytest.mark.parametrize("run", SPLIT)
def test_without_timestamps_nothing_is_ahead(run: str) -> None:
    found = found_in(changed(longest(run), without_timestamps, without_timestamps))
    assert found.finding is not IdentityFinding.ACKS_AHEAD


@pytest.mark.parametrize("run_id", REGULAR)
@pytest.mark.parametrize("change", [None, modulated_timestamps, thinned_acknowledgements, without_ip_id])
def test_a_receivers_own_acknowledgements_are_never_ahead_of_it(run_id: str, change: Change | None) -> None:
    for pair in pairs(run_id):
        assert "acks_ahead" not in found_in(changed(pair, None, change)).numbers


def without_ip_ids_and_some_packets(seed: int, change: Change) -> Change:
    return in_sequence(change, without_ip_id, losing(0.03, seed))


def with_a_clock_set_back(packets: PacketColumns) -> PacketColumns:
    """By a second, in the middle of what each host stamps."""
    tsval = packets.tsval.astype(np.int64)
    for way in (0, 1):
        own = (packets.direction == way) & (tsval > 0)
        low, high = np.percentile(tsval[own], (1, 99))
        tsval[own] -= np.where(tsval[own] > (low + high) / 2, 1000, 0)
    return packets.replaced(tsval=tsval.astype(np.uint32))


def with_a_fast_clock(packets: PacketColumns) -> PacketColumns:
    """Timestamps go round within the connection."""
    return packets.replaced(tsval=(packets.tsval.astype(np.int64) * 1_000_000).astype(np.uint32))


def with_drawn_timestamps(packets: PacketColumns) -> PacketColumns:
    drawn = packets.tsval.astype(np.int64) * 2_654_435_761 + packets.acknowledgement_offset * 40_503
    return packets.replaced(tsval=drawn.astype(np.uint32))


@pytest.mark.parametrize("clock", [with_a_clock_set_back, with_a_fast_clock, with_drawn_timestamps])
@pytest.mark.parametrize("run_id", ["reg_dl_cubic_lte", "reg_dl_v6"])
def test_a_host_whose_clock_contradicts_itself_shows_nothing(run_id: str, clock: Change) -> None:
    changes = [without_ip_ids_and_some_packets(seed, clock) for seed in (1, 2)]
    for pair in pairs(run_id):
        found = found_in(changed(pair, *changes))
        assert found.numbers["up_acks_segments"] > 0
        assert "acks_ahead" not in found.numbers


def stamped_anew_at_first(packets: PacketColumns) -> PacketColumns:
    """A firewall shifts what the client stamps by a second, until it forgets the connection."""
    early, is_up = np.arange(len(packets)) < len(packets) // 10, packets.direction == 0
    return packets.replaced(
        tsval=(packets.tsval.astype(np.int64) - np.where(early & is_up, 1000, 0)).astype(np.uint32),
        tsecr=(packets.tsecr.astype(np.int64) - np.where(early & ~is_up, 1000, 0)).astype(np.uint32),
    )


@pytest.mark.parametrize("run_id", ["reg_dl_cubic_lte", "reg_dl_reno_loss1"])
def test_what_a_firewall_stamps_for_a_while_is_not_ahead(run_id: str) -> None:
    for pair in pairs(run_id):
        assert found_in(changed(pair, None, stamped_anew_at_first)).finding is not IdentityFinding.ACKS_AHEAD


def compared(agreeing: float, shift: int = 0) -> ClassComparison:
    """Segments of one connection up, and none down, with timestamps that agree so far."""
    rows = np.array([[10], [0]])
    shares, is_compared = np.array([[agreeing], [0.0]]), np.array([[True], [False]])
    stamps = FieldAgreement(rows, shares, np.zeros((2, 1)), None, is_compared)
    shifts = np.array([[shift], [0]])
    return ClassComparison(rows, rows, {"timestamps": stamps}, shifts, shifts * 0, shift_unknown=np.zeros((2, 1), bool))


def test_the_clock_must_be_the_hosts_own_at_both_ends() -> None:
    ahead = np.array([[3], [2]])
    assert acknowledgements_ahead(compared(0.0), compared(0.1), ahead).tolist() == [[3], [0]]
    assert acknowledgements_ahead(compared(1.0), compared(0.0), ahead).tolist() == [[3], [0]]
    assert acknowledgements_ahead(compared(0.0), compared(0.0), ahead).tolist() == [[0], [0]]
    assert acknowledgements_ahead(compared(1.0, 7), compared(1.0, 7), ahead).tolist() == [[0], [0]]


@pytest.mark.parametrize(
    ("of_client", "names", "itself", "own"),
    [
        (1_234, "the client's name", "the client itself", "its own"),
        (0, "the server's name", "the server itself", "its own"),
        (1_000, "both hosts' names", "these", "their own"),
    ],
)
def test_the_sentence_says_which_host_had_not_acknowledged(of_client: int, names: str, itself: str, own: str) -> None:
    assert wording.acks_ahead({"acks_ahead": 1_234, "ahead_of_client": of_client}).summary == (
        f"A middlebox acknowledges in {names}: 1,234 acknowledgements arrived for bytes that {itself} had not "
        f"acknowledged yet, as later timestamps of {own} show."
    )


@pytest.mark.parametrize("run", SPLIT)
def test_the_host_that_is_named_receives_the_data(run: str) -> None:
    receiver = "server" if "upload" in run else "client"
    assert f"in the {receiver}'s name" in found_in(longest(run)).summary


@pytest.mark.parametrize("run", SPLIT)
def test_the_packets_show_less_acknowledged_with_a_later_timestamp(run: str) -> None:
    result = pepscope.detect(*(str(FRESH / f"{run}.{end}.pcap.gz") for end in ("mobile", "server")), packets=3)
    every = [item for pair in result.pairs for item in pair.evidence if item.finding == IdentityFinding.ACKS_AHEAD]
    assert len(every) > 0
    for item in every:
        came, own = (item.packets or ())[:2]
        assert came.capture != own.capture
        (bytes_came, tsval_came), (bytes_own, tsval_own) = (_numbers(each.shows) for each in (came, own))
        assert bytes_came > bytes_own
        assert 0 < (tsval_own - tsval_came) % 2**32 < 2**31


def _numbers(shows: str) -> tuple[int, int]:
    """The bytes that a packet acknowledges, and its TSval, as its words say."""
    found = re.fullmatch(r".*acknowledges ([\d,]+) bytes? with TSval (\d+)", shows)
    assert found is not None, shows
    return int(found[1].replace(",", "")), int(found[2])
