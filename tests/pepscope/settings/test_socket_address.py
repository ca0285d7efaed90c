"""Addresses of sockets in text."""

from __future__ import annotations

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pepscope.settings.socket_address import LARGEST_PORT, parse_socket_address


@given(st.ip_addresses(), st.integers(0, LARGEST_PORT))
def test_what_is_written_is_read(address: ipaddress.IPv4Address | ipaddress.IPv6Address, port: int) -> None:
    host = f"[{address}]" if address.version == 6 else str(address)
    assert parse_socket_address(f"{host}:{port}") == (str(address), port)


@pytest.mark.parametrize(
    "text",
    ["", ":", ":80", "80", "127.0.0.1", "127.0.0.1:", "localhost:80", "127.0.0.1:-1", "127.0.0.1:65536",
     "[127.0.0.1:80", "127.0.0.1:80:90", "127.0.0.1:http", "[]:80"],
)  # fmt: skip
def test_anything_else_is_no_address(text: str) -> None:
    assert parse_socket_address(text) is None
