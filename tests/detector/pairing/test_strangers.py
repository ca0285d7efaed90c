"""Two captures that hold, beside common connections, others between other hosts which say the same."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from detector.pairing.candidates import have_an_address_in_common
from pepscope import detect
from pepscope.results.verdicts import Verdict

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
