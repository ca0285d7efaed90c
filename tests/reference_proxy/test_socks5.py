from __future__ import annotations

import ipaddress
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reference_proxy.errors import MalformedError, RefusedError
from reference_proxy.interception.socks5 import Handshake, Reply, Request, encode_reply


def fed(handshake: Handshake, data: bytes, cuts: list[int]) -> tuple[bytes, Request | None]:
    """The data in pieces."""
    answers, request = b"", None
    places = sorted({min(cut, len(data)) for cut in cuts} | {0, len(data)})
    for start, stop in pairwise(places):
        answer, request = handshake.feed(data[start:stop])
        answers += answer
    return answers, request


addresses = st.one_of(
    st.ip_addresses(v=4).map(lambda ip: (str(ip), b"\x01" + ip.packed)),
    st.ip_addresses(v=6).map(lambda ip: (str(ip), b"\x04" + ip.packed)),
    st.from_regex(r"[a-z][a-z0-9-]{0,60}(\.[a-z]{2,10}){0,3}", fullmatch=True).map(
        lambda name: (name, b"\x03" + bytes([len(name)]) + name.encode())
    ),
)


@settings(deadline=None)
@given(addresses, st.integers(0, 65535), st.binary(max_size=50), st.lists(st.integers(0, 120)))
def test_requests_are_understood_however_they_are_cut(
    address: tuple[str, bytes], port: int, rest: bytes, cuts: list[int]
) -> None:
    head = b"\x05\x02\x02\x00\x05\x01\x00" + address[1] + port.to_bytes(2, "big")
    answers, request = fed(Handshake(), head, cuts)
    assert answers == b"\x05\x00"
    assert request == Request(address[0], port, b"")
    assert Handshake().feed(head + rest)[1] == Request(address[0], port, rest)


@settings(deadline=None)
@given(st.binary(max_size=600))
def test_garbage_ends_in_a_refusal_or_waits(data: bytes) -> None:
    handshake = Handshake()
    try:
        _, request = handshake.feed(data)
    except RefusedError as error:
        assert handshake.answer_to(error)[0] == 5  # noqa: PT017 - most garbage only waits for more
        return
    if request is not None:
        assert len(request.host) <= 255
        assert data.endswith(request.rest)
    else:
        assert len(data) < 2 + 255 + 4 + 256 + 2


@pytest.mark.parametrize(
    ("data", "reason", "reply"),
    [
        (b"\x05\x01\x02", "socks-method", b"\x05\xff"),
        (b"\x04\x01\x00", "malformed", b"\x05\xff"),
        (b"\x05\x01\x00\x05\x02\x00\x01\x7f\x00\x00\x01\x00\x50", "socks-command", encode_reply(Reply(7))),
        (b"\x05\x01\x00\x05\x01\x00\x02\x7f\x00\x00\x01\x00\x50", "socks-address-type", encode_reply(Reply(8))),
        (b"\x05\x01\x00\x05\x01\x00\x03\x04a b!\x00\x50", "malformed", encode_reply(Reply(1))),
    ],
)
def test_unsupported_commands_are_refused_by_rfc_1928(data: bytes, reason: str, reply: bytes) -> None:
    handshake = Handshake()
    with pytest.raises(RefusedError) as refusal:
        handshake.feed(data)
    assert refusal.value.reason == reason
    assert handshake.answer_to(refusal.value) == reply
    assert isinstance(refusal.value, MalformedError) == (reason == "malformed")


def test_the_answer_is_as_long_as_clients_read() -> None:
    assert len(encode_reply(Reply.SUCCEEDED)) == 4 + ipaddress.IPV4LENGTH // 8 + 2
