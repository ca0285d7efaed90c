"""Hashes of payload depend on the content, not on segments, captures or offsets."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from prober.anonymise.http_heads import HeadHider, find_head
from prober.anonymise.keys import SecretKey
from prober.anonymise.stream_bytes import WINDOW_BYTES, Stream, hash_all, with_following

KEY = SecretKey(b"s" * 32)
CONTENT = st.binary(min_size=1, max_size=400)


def as_captured(content: bytes, chance: random.Random, *, snap: int, lost: float, shift: int = 0) -> dict[int, int]:
    """What a capture of these bytes shows afterwards: stream offset to byte. Segments, losses and repeats by chance."""
    stream, segments, offset = Stream(has_beginning=True), [], 0
    while offset < len(content):
        length = chance.randint(1, 60)
        segments.append((offset, content[offset : offset + length][:snap], min(length, len(content) - offset)))
        # Some segments are sent again, cut otherwise.
        offset += length if chance.random() < 0.8 else chance.randint(0, length)
    chance.shuffle(segments[: len(segments) // 4])
    held = [segment for segment in segments if chance.random() >= lost]
    for begin, captured, sent in held:
        stream.add(begin + shift, captured, sent)
    stream.end = max(stream.end, len(content) + shift)
    hashed = hash_all(KEY, [with_following(stream, begin + shift, captured) for begin, captured, _ in held])
    shown: dict[int, int] = {}
    for (begin, captured, _), made in zip(held, hashed, strict=True):
        assert len(made) <= len(captured)
        for place, byte in enumerate(made):
            assert shown.setdefault(begin + place, byte) == byte
    return shown


@given(CONTENT, st.integers(8, 60), st.integers(8, 60), st.floats(0, 0.3), st.randoms(use_true_random=False))
def test_two_captures_agree_wherever_both_show_a_byte(content, snap, other_snap, lost, chance):
    one = as_captured(content, chance, snap=snap, lost=lost)
    two = as_captured(content, chance, snap=other_snap, lost=0.0, shift=1000)
    assert all(one[offset] == two[offset] for offset in one.keys() & two.keys())


@given(CONTENT, st.randoms(use_true_random=False))
def test_what_was_captured_whole_stays_whole(content, chance):
    shown = as_captured(content, chance, snap=1000, lost=0.0)
    assert shown.keys() == set(range(len(content)))


@given(st.binary(min_size=40, max_size=80), st.integers(0, 30), st.randoms(use_true_random=False))
def test_a_changed_byte_changes_what_stands_before_it_and_nothing_else(content, at, chance):
    changed = bytearray(content)
    changed[at] ^= 0x5A
    one = as_captured(content, chance, snap=1000, lost=0.0)
    two = as_captured(bytes(changed), chance, snap=1000, lost=0.0)
    differing = {offset for offset in one if one[offset] != two[offset]}
    assert differing <= set(range(max(0, at - WINDOW_BYTES + 1), at + 1))
    assert differing


def test_bytes_before_a_gap_are_given_up():
    stream = Stream(has_beginning=True)
    stream.add(0, b"a" * 20, 100)
    stream.add(100, b"b" * 5, 5)
    cut, end = hash_all(KEY, [with_following(stream, 0, b"a" * 20), with_following(stream, 100, b"b" * 5)])
    assert len(cut) == 20 - (WINDOW_BYTES - 1)
    assert len(end) == 5


def test_large_batches_are_as_small_ones():
    stream = Stream(has_beginning=True)
    content = random.Random(1).randbytes(600_000)
    stream.add(0, content, len(content))
    (whole,) = hash_all(KEY, [with_following(stream, 0, content)])
    parts = hash_all(KEY, [with_following(stream, at, content[at : at + 7000]) for at in range(0, len(content), 7000)])
    assert whole == b"".join(parts)
    # A keyed hash of 600 kB of random bytes uses all bytes about equally.
    assert all(1500 < whole.count(value) < 3500 for value in range(256))


HEAD = (
    b"GET /objects/abcdef0123/2000.bin?cache=7 HTTP/1.1\r\nHost: probe.example:80\r\nX-Secret-Name: me and you\r\n\r\n"
)


def hidden_head(data: bytes) -> bytes:
    made = HeadHider(KEY).hidden(data)
    assert made is not None
    assert made[1]
    return made[0]


def test_a_head_keeps_its_shape_and_the_words_of_the_protocol():
    hidden = hidden_head(HEAD + b"body")
    assert len(hidden) == len(HEAD)
    lines = hidden.split(b"\r\n")
    assert lines[0].startswith(b"GET /")
    assert lines[0].endswith(b" HTTP/1.1")
    assert lines[1].startswith(b"Host: ")
    assert lines[1].endswith(b":80")
    assert not any(word in hidden for word in (b"objects", b"abcdef", b"2000", b"probe", b"Secret", b"you"))


@given(st.integers(0, len(HEAD)))
def test_a_head_that_was_cut_is_a_beginning_of_the_whole_one(length):
    made = HeadHider(KEY).hidden(HEAD[:length])
    whole = hidden_head(HEAD)
    if length < 4:
        assert made is None
        return
    assert made is not None
    assert whole.startswith(made[0])
    assert len(made[0]) <= length
    assert made[1] == (length == len(HEAD))


@given(st.sampled_from([b"Via: 1.1 cell-proxy\r\n", b"X-Odd: a\r\n", b"host: other.example\r\n"]))
def test_a_head_written_anew_stays_different(field):
    hidden = hidden_head(HEAD[:-2] + field + b"\r\n")
    whole = hidden_head(HEAD)
    assert hidden.startswith(whole[:-2])
    if field.startswith(b"Via"):
        assert b"\r\nVia: " in hidden
        assert b"cell-proxy" not in hidden


def test_the_same_target_in_either_form_stays_the_same():
    relative = hidden_head(b"GET /a/b HTTP/1.1\r\nHost: one.example\r\n\r\n")
    absolute = hidden_head(b"GET http://one.example:80/a/b HTTP/1.1\r\n\r\n")
    host = relative.split(b"Host: ")[1].split(b"\r\n")[0]
    assert absolute.startswith(b"GET http://" + host + b":80" + relative[4:].split(b" ")[0] + b" ")


def test_heads_are_found_behind_a_header_and_in_nothing_else():
    assert find_head(b"\x01\x02\x03HTTP/1.1 200 OK\r\n") == 3
    assert find_head(b"GET /x HTTP/1.1\r\n") == 0
    assert find_head(b"\0" * 300 + b"GET /x") is None
    assert HeadHider(KEY).hidden(b"GETTING / HTTP/1.1\r\n\r\n") is None
    assert HeadHider(KEY).hidden(b"HELO there\r\n") is None
