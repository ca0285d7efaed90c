"""Crypto-PAn against the addresses that its authors and others published, and the property that names it."""

from __future__ import annotations

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prober.anonymise.crypto_pan import CryptoPan
from prober.anonymise.keys import SecretKey

#: Key and addresses of the sample trace of the reference implementation (Xu et al., 2002).
KEY = bytes.fromhex("1522178d33a4cf80130a5b1649907d10d8988f8379796527 62574c2d2a842202")
PUBLISHED = {
    "128.11.68.132": "135.242.180.132",
    "129.118.74.4": "134.136.186.123",
    "130.132.252.244": "133.68.164.234",
    "141.223.7.43": "141.167.8.160",
    "141.233.145.108": "141.129.237.235",
    "152.163.225.39": "151.140.114.167",
    "156.29.3.236": "147.225.12.42",
    "165.247.96.84": "162.9.99.234",
    "166.107.77.190": "160.132.178.185",
    "192.102.249.13": "252.138.62.131",
    "192.215.32.125": "252.43.47.189",
    "192.233.80.103": "252.25.108.8",
    "192.41.57.43": "252.222.221.184",
    "193.150.244.223": "253.169.52.216",
    "195.205.63.100": "255.186.223.5",
    "198.200.171.101": "249.199.68.213",
    "202.49.198.20": "245.206.7.234",
    "203.12.160.252": "244.248.163.4",
    # IPv6, as several implementations agree on it
    "::1": "78ff:f001:9fc0:20df:8380:b1f1:704:ed",
    "::2": "78ff:f001:9fc0:20df:8380:b1f1:704:ef",
    "2001:db8::1": "4401:2bc:603f:d91d:27f:ff8e:e6f1:dc1e",
    "2001:db8::2": "4401:2bc:603f:d91d:27f:ff8e:e6f1:dc1c",
}

PACKED = st.one_of(st.binary(min_size=4, max_size=4), st.binary(min_size=16, max_size=16))


@pytest.mark.parametrize(("address", "hidden"), PUBLISHED.items())
def test_published_addresses_become_the_published_ones(address: str, hidden: str):
    assert CryptoPan(KEY).text(address) == hidden


def common_bits(one: bytes, two: bytes) -> int:
    difference = int.from_bytes(one, "big") ^ int.from_bytes(two, "big")
    return 8 * len(one) - difference.bit_length()


@given(PACKED, st.integers(0, 127), st.binary(min_size=32, max_size=32))
def test_prefixes_stay_as_long_as_they_were(address: bytes, bit: int, key: bytes):
    other = (int.from_bytes(address, "big") ^ 1 << bit % (8 * len(address))).to_bytes(len(address), "big")
    pan = CryptoPan(key)
    assert common_bits(pan.packed(address), pan.packed(other)) == common_bits(address, other)


def test_keys_differ_by_purpose_and_by_secret():
    key = SecretKey(b"s" * 32)
    assert key.derived("a") != key.derived("b")
    assert key.derived("a") != SecretKey(b"t" * 32).derived("a")
    assert key.hashed("a", b"x", 100)[:50] == key.hashed("a", b"x", 50)
    assert SecretKey().derived("a") != SecretKey().derived("a")
    for wrong in (b"", b"s" * 31):
        with pytest.raises(ValueError, match="32"):
            SecretKey(wrong)
        with pytest.raises(ValueError, match="32"):
            CryptoPan(wrong)
    assert ipaddress.ip_address(CryptoPan(KEY).text("::")).version == 6
