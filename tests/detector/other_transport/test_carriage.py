"""How much of a datagram is header: learnt from where its bytes become the stream's."""

from __future__ import annotations

import random

import numpy as np
import pytest

from detector.other_transport.stream_in_datagrams import carried
from pepscope.captures.datagrams import DatagramSample
from pepscope.captures.packets import PayloadSample

HEADER_BYTES = 36


def reply(chance_equal_at: int) -> tuple[PayloadSample, DatagramSample]:
    """A short reply in two datagrams, one header byte of which equals the stream's at that place by chance."""
    source = random.Random(chance_equal_at)
    text = bytes(source.choice(b"abcdefghijklmnopqrstuvwxyz0123456789") for _ in range(216))
    pieces = [text[:152], text[152:]]
    header = bytearray(HEADER_BYTES)
    header[chance_equal_at] = text[152 - HEADER_BYTES + chance_equal_at]
    held = [bytes(header) + piece for piece in pieces]
    datagrams = DatagramSample(
        rank=np.array([0, 1], np.int64),
        time_ns=np.array([1, 2], np.int64),
        payload_bytes=np.array([len(piece) for piece in held], np.int64),
        pieces=tuple(held),
    )
    return PayloadSample(np.array([0, 152], np.int64), tuple(pieces)), datagrams


@pytest.mark.parametrize("chance_equal_at", [0, 10, 20, 34])
def test_a_header_byte_equal_by_chance_does_not_shift_the_stream(chance_equal_at: int) -> None:
    stream, datagrams = reply(chance_equal_at)
    found = carried(stream, datagrams, None)
    assert found is not None
    assert found.offset_in_datagram == HEADER_BYTES
    assert found.coverage == 1.0
