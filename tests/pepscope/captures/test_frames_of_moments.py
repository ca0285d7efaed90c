"""Frames of many connections at once are those of one connection after the other."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pepscope.captures.capture import NO_FRAME, Capture, open_capture

CORPUS = Path(__file__).parents[2] / "corpus"
MANY = str(CORPUS / "reg_dl_par20.srv.pcap.gz")


@pytest.fixture(scope="module", params=[None, 1], ids=["in memory", "by parts"])
def capture(request: pytest.FixtureRequest) -> Capture:
    return open_capture(MANY, memory_bytes=request.param)


def test_spans_are_first_and_last_frames(capture: Capture) -> None:
    numbers = [*reversed(range(len(capture.connections)))]
    frames = [capture.frame_numbers(number) for number in numbers]
    assert capture.frame_spans(numbers).tolist() == [[each[0], each[-1]] for each in frames]


def test_frames_are_found_by_time_and_direction(capture: Capture) -> None:
    rng = np.random.default_rng(7)
    asked, expected = [], []
    for number in rng.permutation(len(capture.connections)).tolist():
        packets, frames = capture.packets(number), capture.frame_numbers(number)
        for row in rng.integers(0, len(packets.time_ns), 9).tolist():
            time_ns, direction, carries = packets.time_ns[row], packets.direction[row], bool(rng.integers(2))
            fit = (packets.time_ns == time_ns) & (packets.direction == direction)
            fit &= (packets.payload_bytes > 0) | (not carries)
            asked.append((number, direction, time_ns, carries))
            expected.append(frames[fit.argmax()] if fit.any() else NO_FRAME)
    assert NO_FRAME in expected
    numbers, directions, times_ns, carrying = zip(*asked, strict=True)
    order = rng.permutation(len(asked))
    found = capture.frames_at(
        np.asarray(numbers, np.int64)[order], np.asarray(directions, np.uint8)[order],
        np.asarray(times_ns, np.int64)[order], np.asarray(carrying, np.bool_)[order],
    )  # fmt: skip
    assert found.tolist() == np.asarray(expected)[order].tolist()


def test_columns_of_one_length_are_needed(capture: Capture) -> None:
    one, none = np.zeros(1, np.int64), np.zeros(0, np.uint8)
    with pytest.raises(ValueError, match="differ in length"):
        capture.frames_at(one, none, one, np.zeros(1, np.bool_))
    with pytest.raises(ValueError, match="count from 0"):
        capture.frames_at(one - 1, np.zeros(1, np.uint8), one, np.zeros(1, np.bool_))


def test_both_tables_are_those_made_one_by_one(capture: Capture) -> None:
    exchanges, senders = open_capture(MANY, memory_bytes=1).exchanges_and_senders()
    for name in ("connection", "question_ns", "answered_ns", "kind", "round_trip_ns"):
        assert (getattr(exchanges, name) == getattr(capture.exchanges(), name)).all()
    assert (exchanges.round_trips.least_ns == capture.exchanges().round_trips.least_ns).all()
    for name in ("connection", "syn_ns", "option_kinds", "train_bytes"):
        assert (getattr(senders, name) == getattr(capture.senders(), name)).all()
