"""Handshakes, stacks and references on captures of one end: end to end, split, and behind a SYN proxy."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from detector.one_capture.members import Floats, Ints, quantiles, seconds
from detector.one_capture.senders.clocks import member_clocks
from detector.one_capture.senders.handshake_clocks import lagging_share
from detector.one_capture.senders.handshakes import answered_share
from detector.one_capture.senders.stacks import GroupStacks, form_codes, group_stacks
from pepscope.captures.capture import Capture, open_capture
from pepscope.captures.direction import Direction
from pepscope.captures.references import ReferenceKind
from pepscope.captures.tables.addresses import address_texts

CAPTURES = Path(__file__).parents[3] / "one_ended"
NETWORKS = ("none", "split", "synproxy")
SERVERS = ("192.0.2.10", "198.18.0.10", "198.51.100.10", "203.0.113.10")
#: Behind the middlebox (s), in the order of `SERVERS`.
WIRED_S = np.asarray([0.002, 0.09, 0.015, 0.04])
#: What the radio varies round trips by (s).
JITTER_S = 0.012


@dataclass(frozen=True)
class Seen:
    """One capture with its four servers as members of one group."""

    capture: Capture
    member: Ints
    handshake_s: Floats
    near_s: Floats
    answered_share: Floats
    stacks: GroupStacks


@cache
def seen(network: str) -> Seen:
    """What a capture shows."""
    capture = open_capture(str(CAPTURES / f"lte-{network}.mobile.pcap.gz"))
    columns, senders, round_trips = capture.connection_columns(), capture.senders(), capture.exchanges().round_trips
    hosts, member = np.unique(address_texts(columns["server_address"]), return_inverse=True)
    assert tuple(hosts) == SERVERS
    handshake_s = seconds(round_trips.handshake_ns[::2])
    near_s = quantiles(seconds(round_trips.least_of_all_ns[::2]), member, 4, 0.0)
    form = form_codes(senders, columns, Direction.DOWN)
    hop_limit = senders.hop_limit[1::2].astype(np.int64)
    return Seen(
        capture,
        member,
        quantiles(handshake_s, member, 4, 0.0),
        near_s,
        answered_share(senders, Direction.DOWN, member, 4),
        group_stacks(form, hop_limit, member, np.zeros(4, np.int64), 1),
    )


def test_only_a_syn_proxy_answers_for_others() -> None:
    assert (seen("synproxy").answered_share == 1).all()
    for network in ("none", "split"):
        assert (seen(network).answered_share == 0).all()


def test_timestamps_lag_behind_a_syn_proxys() -> None:
    """The fourth server has none, and the proxy offers them in its name."""
    for network, expected in (("none", 0), ("split", 0), ("synproxy", 1)):
        found = seen(network)
        share = lagging_share(found.capture.senders(), found.handshake_s, Direction.DOWN, found.member, 4)
        assert (share[~np.isnan(share)] == expected).all()
        assert np.isnan(share).sum() == (network == "none")


def test_data_behind_a_syn_proxy_take_longer_than_its_handshakes() -> None:
    early_s = {network: seen(network).near_s - seen(network).handshake_s for network in NETWORKS}
    assert np.abs(early_s["synproxy"] - WIRED_S).max() < JITTER_S
    for network in ("none", "split"):
        assert early_s[network].max() < JITTER_S


def test_one_box_has_one_stack() -> None:
    split, end = seen("split").stacks, seen("none").stacks
    assert (split.members[0], split.forms[0], split.hop_limits[0], split.pairs[0]) == (4, 1, 1, 1)
    assert split.box_nats[0] > max(split.apart_nats[0], split.beside_nats[0])
    assert (end.members[0], end.pairs[0]) == (4, 4)
    assert end.box_nats[0] < min(end.apart_nats[0], end.beside_nats[0])
    assert seen("synproxy").stacks.members[0] == 0, "its SYN-ACKs are not the hosts'"


@pytest.mark.parametrize("network", NETWORKS)
def test_handshakes_range_as_far_as_what_answers_them_stands_apart(network: str) -> None:
    one = seen(network)
    apart_s = float(np.ptp(WIRED_S))
    expected = {"none": (apart_s, apart_s), "split": (0.0, 0.0), "synproxy": (0.0, apart_s)}[network]
    found = float(np.ptp(one.handshake_s)), float(np.ptp(one.near_s))
    assert np.abs(np.asarray(found) - expected).max() < JITTER_S


@pytest.mark.parametrize("network", NETWORKS)
def test_echoes_cross_the_whole_path(network: str) -> None:
    one = seen(network)
    references = one.capture.references().tied()
    pings = references.of(references.kind == ReferenceKind.ICMP_ECHO)
    host = np.searchsorted(np.asarray(SERVERS), address_texts(pings.host_address).astype(str))
    least_s = quantiles(pings.round_trip_ns / 1e9, host.astype(np.int64), 4, 0.0)
    hidden_s = WIRED_S if network == "split" else np.zeros(4)
    assert np.abs(least_s - one.near_s - hidden_s).max() < JITTER_S


def test_clocks_of_new_kernels_differ_by_connection() -> None:
    one = seen("none")
    clocks = member_clocks(one.capture.senders(), Direction.DOWN, one.member, 4)
    assert np.isnan(clocks.rate_hz[2]), "it sends no timestamps"
    assert (clocks.rate_hz[[0, 1, 3]] == 1000).all()
    assert (clocks.blur_s[[0, 1, 3]] > 60).all()
