"""Segments that a middlebox cuts, each by itself, are no other stack's: every boundary of the sender's is kept."""

from __future__ import annotations

import numpy as np
import pytest

from detector.methods.identity import DECISIVE_NATS
from detector.methods.identity.agreement import BOUNDARIES, PIECES, PIECES_NATS, sum_fields, total_nats
from tests.detector.methods.generated_segments import compared_data
from tests.detector.methods.reference_segments import Segments
from tests.detector.vantage.test_not_captured import segments_of, without_stamps


def bare(run: str) -> tuple[Segments, Segments]:
    """Data of a long transfer as both captures hold them, without what tells packets apart."""
    emitted, arrived = (without_stamps(part, captured=True) for part in segments_of(run))
    return tuple(part.replaced(ip_id=np.zeros(len(part), np.int64)) for part in (emitted, arrived))  # type: ignore[return-value]


def cut(segments: Segments, at: int) -> Segments:
    """Each longer segment as one of `at` bytes and the rest."""
    first = segments.replaced(length=np.minimum(segments.length, at))
    is_longer = segments.length > at
    rest = segments.take(is_longer)
    rest = rest.replaced(start=rest.start + at, length=rest.length - at)
    columns = (*Segments.NUMBERS, *Segments.FLAGS)
    both = {name: np.concatenate([getattr(first, name), getattr(rest, name)]) for name in columns}
    order = np.argsort(both["start"], kind="stable")
    return Segments.of(**{name: column[order] for name, column in both.items()})


def cut_anew(segments: Segments, every: int) -> Segments:
    """The stream from its first byte to its last in segments of `every` bytes, as another stack sends it."""
    start = np.arange(segments.start.min(), segments.end.max(), every)
    like = segments.take(np.minimum(np.arange(len(start)), len(segments) - 1))
    length = np.minimum(every, segments.end.max() - start)
    return like.replaced(start=start, length=length, first_copy=np.ones(len(start), np.bool_))


@pytest.mark.parametrize("at", [600, 900, 1200])
def test_pieces_of_what_left_accuse_no_connection_alone(at: int) -> None:
    emitted, arrived = bare("reg_dl_cdma1x")
    found = compared_data(emitted, cut(arrived, at))
    assert found.fields.keys() & {PIECES, BOUNDARIES} == {PIECES}
    against = -float(total_nats(sum_fields([found, found]), frozenset({PIECES, BOUNDARIES})))
    assert against == pytest.approx(PIECES_NATS)
    assert against < DECISIVE_NATS


def test_pieces_that_arrive_with_timestamps_are_another_stacks() -> None:
    emitted, arrived = bare("reg_dl_cdma1x")
    stamped = arrived.replaced(has_timestamps=np.ones(len(arrived), np.bool_), tsval=1 + np.arange(len(arrived)))
    found = compared_data(emitted, cut(stamped, 900))
    assert found.fields.keys() & {PIECES, BOUNDARIES} == {BOUNDARIES}


@pytest.mark.parametrize("every", [700, 1000, 1348])
def test_a_stream_that_is_cut_anew_is_another_stacks(every: int) -> None:
    emitted, arrived = bare("reg_dl_cdma1x")
    found = compared_data(emitted, cut_anew(arrived, every))
    assert PIECES not in found.fields
    assert float(total_nats(sum_fields([found]), frozenset({PIECES, BOUNDARIES}))) < -DECISIVE_NATS


def test_segments_that_nothing_cut_are_no_pieces() -> None:
    found = compared_data(*bare("reg_dl_cdma1x"))
    assert found.fields[BOUNDARIES].agreeing == 1.0
    assert PIECES not in found.fields
