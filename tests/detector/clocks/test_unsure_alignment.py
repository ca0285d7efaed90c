"""Streams that only a part of repeated content lays over each other have no times to compare."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from detector.clocks.clouds import clouds_of
from detector.pair import StreamAlignment
from pepscope.captures.packets import Direction
from tests.detector.corpus import pairs


@pytest.mark.parametrize(
    ("began", "matched", "compared", "is_timed"),
    [
        (False, 0.6, 56, False),
        (False, 0.95, 56, True),
        (True, 0.6, 56, True),
        (True, 0.3, 56, False),
        (True, 0, 2, True),
    ],
)
def test_payload_alone_has_to_agree_nearly_everywhere(began, matched, compared, is_timed):
    (pair,) = pairs("reg_dl_cubic_lte")
    if not began:
        server = pair.server_side
        down = server.connection.down._replace(initial_sequence_number=None)
        pair = replace(pair, server_side=replace(server, connection=server.connection._replace(down=down)))
    alignment = {**pair.alignment, Direction.DOWN: StreamAlignment(0, compared, matched)}
    (found,) = clouds_of([replace(pair, alignment=alignment)])
    assert (Direction.DOWN in found) == is_timed
