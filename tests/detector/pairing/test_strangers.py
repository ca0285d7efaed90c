"""Two captures that hold, beside common connections, others between other hosts which say the same."""

from __future__ import annotations

import gzip
import struct
from collections import Counter
from pathlib import Path

import pytest

from detector.options import ClockMode
from detector.pairing.candidates import have_an_address_in_common
from detector.pairing.confidence import STRANGERS
from detector.pairing.match import Ground
from pepscope import detect
from pepscope.results.verdicts import Verdict
from tests.captures.containers import read_capture, write_pcap
from tests.captures.merging import merged, renamed
from tests.detector.corpus import CORPUS, capture

#: Where IP begins in packets of Ethernet and in raw ones, by link type.
_IP_BEGINS = {1: 14, 101: 0}

FOLDER = Path(__file__).parents[2] / "captures" / "strangers"


def test_connections_of_other_clients_and_servers_are_neither_split_nor_answered_by_a_cache() -> None:
    """All partners that one may have look split, since none is its own."""
    result = detect(*(str(FOLDER / f"{whose}.pcap.gz") for whose in ("one-client", "one-server")))
    found = Counter(pair.verdict for pair in result.pairs)
    assert found[Verdict.REGULAR] == 8
    assert set(found) == {Verdict.REGULAR, Verdict.INCONCLUSIVE}


def test_connections_of_one_nat_to_two_servers_are_not_one_transfer() -> None:
    """An address in common, and the same answers within a second of each other: but under no clock relation."""
    result = detect(*(str(FOLDER / f"behind-nat-{whose}-server.pcap.gz") for whose in ("one", "other")))
    assert {pair.verdict for pair in result.pairs} == {Verdict.INCONCLUSIVE}
    assert not any(group.verdict.is_split for group in result.groups)


def test_transfers_through_a_proxy_of_two_addresses_are_told_from_others_of_the_same() -> None:
    """No address in common, and other clients say the same: one clock relation shows whose connections are whose."""
    result = detect(*(str(FOLDER / f"{where}.pcap.gz") for where in ("one-client-of-proxy", "behind-proxy")))
    found = Counter((pair.verdict.is_split, len(pair.vantages)) for pair in result.pairs)
    assert found == {(True, 2): 3, (False, 1): 6}


def test_a_lone_pair_contradicts_clocks_that_are_said_to_be_synchronised(tmp_path: Path) -> None:
    """Two connections alone, a second apart: where nothing relates the clocks they may be one transfer."""
    whole = [FOLDER / f"{where}.pcap.gz" for where in ("one-client-of-proxy", "behind-proxy")]
    split = next(pair for pair in detect(*map(str, whole)).pairs if pair.verdict.is_split)
    paths = []
    for path, vantage, later_s in zip(whole, split.vantages, (0, 1), strict=True):
        paths.append(tmp_path / path.stem)
        port = int(vantage.client.rpartition(":")[2])
        paths[-1].write_bytes(_one_connection(gzip.decompress(path.read_bytes()), port, later_s))
    for clocks, is_split in ((ClockMode.GENERAL, True), (ClockMode.SYNCHRONISED, False)):
        assert detect(*map(str, paths), clocks=clocks).pairs[0].verdict.is_split is is_split


@pytest.mark.parametrize(
    "places",
    [
        ("leader-to-one-follower", "leader-to-other-follower"),
        ("at-once/leader-to-one-follower", "at-once/leader-to-other-follower"),
        ("asked-at-once-one-host", "asked-at-once-other-host"),
    ],
)
def test_what_one_client_says_to_two_hosts_at_once_is_not_one_transfer(places: tuple[str, str]) -> None:
    """One client, one content and one moment, but either host may be the slower one to answer."""
    for paths in (places, places[::-1]):
        result = detect(*(str(FOLDER / f"{place}.pcap.gz") for place in paths))
        assert {pair.verdict for pair in result.pairs} == {Verdict.INCONCLUSIVE}
        assert max(pair.pairing_confidence for pair in result.pairs) < 0.1
        assert not any(group.verdict.is_split for group in result.groups)


def test_what_two_clients_poll_of_two_machines_behind_one_address_is_neither_split_nor_cached() -> None:
    """Of the client's connections those to the captured machine arrive whole; another client polls it, too, at the same
    seconds, when the first one asks the other machine."""
    result = detect(*(str(FOLDER / f"{whose}.pcap.gz") for whose in ("polling-client", "one-of-two-machines")))
    assert Counter(pair.verdict for pair in result.pairs) == {Verdict.REGULAR: 13, Verdict.INCONCLUSIVE: 10}
    doubtful = [pair.pairing_confidence for pair in result.pairs if pair.pairing_ground == Ground.PAYLOAD]
    assert len(doubtful) == 3
    assert max(doubtful) <= STRANGERS
    assert not any(group.verdict.is_split for group in result.groups)


def test_equal_dialogues_that_are_paired_crosswise_are_no_strangers() -> None:
    """Halves of two of them contradict each other, as strangers do, but not all that may be halves of one."""
    places = "at-once/leader-to-proxy", "at-once/proxy-to-follower"
    for paths in (places, places[::-1]):
        pairs = detect(*(str(FOLDER / f"{place}.pcap.gz") for place in paths)).pairs
        assert len(pairs) == 4
        assert min(pair.pairing_confidence for pair in pairs) > 0.3
        assert any(pair.verdict.is_split for pair in pairs)


@pytest.mark.parametrize("set_every", [1_000, 20])
def test_what_a_proxy_forwards_is_one_transfer_even_if_a_clock_is_set_again_and_again(
    tmp_path: Path, set_every: int
) -> None:
    """A clock that is set by 50 ms after so many packets, to and fro, changes the turns in which it is set alone."""
    paths = [FOLDER / "leader-to-proxy.pcap.gz", tmp_path / "set.pcap"]
    behind_proxy = gzip.decompress((FOLDER / "proxy-to-follower.pcap.gz").read_bytes())
    paths[1].write_bytes(_with_clock_set(behind_proxy, set_every))
    (pair,) = detect(*map(str, paths)).pairs
    assert pair.pairing_confidence == pytest.approx(0.95)
    assert pair.verdict.is_split


def _with_clock_set(pcap: bytes, every: int) -> bytes:
    """The same packets by a clock that is 50 ms ahead of every other `every` packets."""
    made, place, number = bytearray(pcap), 24, 0
    while place < len(pcap):
        seconds, micros, captured = struct.unpack_from("<III", pcap, place)
        ahead = micros + number // every % 2 * 50_000
        struct.pack_into("<II", made, place, seconds + ahead // 1_000_000, ahead % 1_000_000)
        place, number = place + 16 + captured, number + 1
    return bytes(made)


def _one_connection(pcap: bytes, port: int, later_s: int) -> bytes:
    """The packets (IPv4 without options) of a pcap file (little-endian) from or to a TCP port, at a later time."""
    made, place = bytearray(pcap[:24]), 24
    ports_at = 20 + _IP_BEGINS[struct.unpack_from("<I", pcap, 20)[0]]
    while place < len(pcap):
        seconds, fraction, captured, length = struct.unpack_from("<IIII", pcap, place)
        packet = pcap[place + 16 : place + 16 + captured]
        if port in struct.unpack_from(">HH", packet, ports_at):
            made += struct.pack("<IIII", seconds + later_s, fraction, captured, length) + packet
        place += 16 + captured
    return bytes(made)


@pytest.mark.parametrize(
    ("ends", "others", "wanted"),
    [
        (("10.1.0.2:5000", "192.0.2.1:80"), ("10.1.0.2:5000", "192.0.2.1:80"), True),
        (("10.1.0.2:5000", "192.0.2.1:80"), ("198.51.100.1:999", "192.0.2.1:80"), True),  # NAT, a transparent proxy
        (("10.1.0.2:5000", "192.0.2.1:80"), ("10.1.0.2:5000", "10.9.0.1:8080"), True),  # a balancer
        (("10.1.0.2:5000", "198.51.100.1:3128"), ("198.51.100.1:999", "192.0.2.1:80"), True),  # a proxy, either order
        (("198.51.100.1:999", "192.0.2.1:80"), ("10.1.0.2:5000", "198.51.100.1:3128"), True),
        (("10.1.0.2:5000", "192.0.2.1:80"), ("10.1.0.3:5000", "192.0.2.2:80"), False),
        (("[2001:db8::1]:5000", "[2001:db8::2]:80"), ("[2001:db8::1]:7", "[2001:db8::3]:80"), True),
        (("[2001:db8::1]:5000", "[2001:db8::2]:80"), ("[2001:db8::4]:5000", "[2001:db8::3]:80"), False),
    ],
)
def test_addresses_that_two_connections_have_in_common(
    ends: tuple[str, str], others: tuple[str, str], wanted: bool
) -> None:
    assert have_an_address_in_common(*ends, *others) is wanted


def test_a_middlebox_that_keeps_addresses_and_passes_a_connection_splits_the_other(tmp_path: Path) -> None:
    """A server's side that names the same client and server is no other client's."""
    paths = []
    for end in ("mob", "srv"):
        split, whole = (f"{run}.{end}.pcap.gz" for run in ("spl_ha_dl_srcip", "reg_dl_quickack"))
        passed, ended = (capture(name).connections[0] for name in (whole, split))
        addresses = {passed.client_address: ended.client_address, passed.server_address: ended.server_address}
        files = [read_capture(CORPUS / split), renamed(read_capture(CORPUS / whole), addresses, {})]
        paths.append(tmp_path / f"{end}.pcap")
        paths[-1].write_bytes(write_pcap(merged(files).frames, files[0].link_type))
    found = {pair.pairing_ground: pair.verdict for pair in detect(*map(str, paths)).pairs}
    assert found == {Ground.SEQUENCE_NUMBERS: Verdict.REGULAR, Ground.PAYLOAD: Verdict.SPLIT_TCP}
