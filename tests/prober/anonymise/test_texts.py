"""Texts and documents with everyone hidden, alike wherever they stand."""

from __future__ import annotations

import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prober.anonymise.crypto_pan import CryptoPan
from prober.anonymise.http_heads import HeadHider
from prober.anonymise.keys import SecretKey
from prober.anonymise.texts import TextHider

KEY = SecretKey(b"s" * 32)
ADDRESSES = CryptoPan(KEY.derived("addresses"))
HIDER = TextHider(KEY, ADDRESSES, HeadHider(KEY), ["phonehost"])


@given(st.ip_addresses())
def test_addresses_in_sentences_become_what_they_became_in_packets(address):
    hidden = HIDER.text(f"the server at {address} did not answer within 120 s")
    assert hidden == f"the server at {ADDRESSES.text(str(address))} did not answer within 120 s"


@pytest.mark.parametrize(
    "secret",
    [
        "02:1a:2b:3c:4d:5e",
        "phonehost",
        "proxy7.operator.example",
        "www.mobile-operator.com",
        "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "a2b3c4d5e6f7a2b3c4d5e6f7ab",
        "s3ssion-Token_0123456789abcd",
        "2001:db8::17",
    ],
)
def test_names_are_hidden_consistently(secret: str):
    one, two = HIDER.text(f"before {secret} after"), HIDER.text(f"elsewhere {secret}")
    assert secret not in one
    assert one.startswith("before ")
    assert one.endswith(" after")
    assert one.removeprefix("before ").removesuffix(" after") == two.removeprefix("elsewhere ")


@pytest.mark.parametrize(
    "text",
    [
        "cubic",
        "ACKs cannot be held back without root",
        "the path went away at 12:34:56 for 3.5 s",
        "6.1.0-18-cloud-amd64",
        "experiments.gain.sizes_bytes holds 0",
        "http-data",
        "image/jpeg",
        "4096\t131072\t6291456",
        "captures/transfers--ftp--down--001.mobile.pcap",
    ],
)
def test_texts_without_names_stay(text: str):
    assert HIDER.text(text) == text


def test_documents_keep_their_shape_and_their_numbers():
    head = b"PEPSCOPE /echo/S HTTP/1.1\r\nhOsT: 192.0.2.7\r\n\r\n"
    document = {
        "rate_bit_s": 1.5,
        "whole": True,
        "none": None,
        "hops": [{"router": "192.0.2.7"}, {"192.0.2.7": 1}],
        "sent": base64.b64encode(head).decode(),
        "arrived": [base64.b64encode(head).decode(), base64.b64encode(head + b"Via: 1.1 cell").decode()],
        "answer_fields": {"via": "1.1 proxy-berlin", "server": "secret"},
        "status_line": "HTTP/1.1 200 Whatever",
        "notes": {"operator": "CDMA-I"},
        "hostname": "laptop-of-anne",
    }
    hidden = HIDER.json(document)
    assert set(hidden) == set(document) - {"notes", "hostname"}
    assert (hidden["rate_bit_s"], hidden["whole"], hidden["none"]) == (1.5, True, None)
    address = ADDRESSES.text("192.0.2.7")
    assert hidden["hops"] == [{"router": address}, {address: 1}]
    # Whoever compares the heads finds the same.
    assert hidden["sent"] == hidden["arrived"][0] != hidden["arrived"][1]
    assert base64.b64decode(hidden["sent"]).startswith(b"PEPSCOPE /")
    text = json.dumps(hidden)
    assert not any(word in text for word in ("berlin", "secret", "CDMA-I", "anne", "Whatever", "192.0.2.7"))


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), lambda inner: st.lists(inner, max_size=3)))
def test_any_document_can_be_hidden_twice_alike(value):
    assert HIDER.json(value) == HIDER.json(value)
    json.dumps(HIDER.json(value))
