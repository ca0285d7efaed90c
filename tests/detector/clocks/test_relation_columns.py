"""Clock relations as columns are those of their objects."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec.structs import replace

from detector.clocks.clock_relation import TIMESTAMP_ERROR_S
from detector.clocks.relating import relate, relate_all
from detector.clocks.relation_columns import ClockRelations
from detector.method import Context, Observation
from detector.options import ClockMode, DetectOptions
from detector.pair import Pair
from detector.pairing.captures import pair_captures
from pepscope.captures.capture import open_capture
from tests.detector.corpus import CORPUS

_RUNS = ["reg_dl_par20", "prx_ngx_par6", "reg_bidir", "reg_dl_abort", "reg_dl_cdma1x"]


def pairs_of(name: str, clocks: ClockMode) -> list[Pair]:
    captures = [open_capture(CORPUS / f"{name}.{place}.pcap.gz") for place in ("srv", "mob")]
    paired = pair_captures(captures[0], captures[1], DetectOptions(clocks=clocks))
    pairs = paired.pairs(paired.matches)
    return [*pairs, replace(pairs[0], server_side=None), replace(pairs[0], alignment={})]


def check(columns: ClockRelations, wanted: ClockRelations) -> None:
    for name, column in wanted.numbers.items():
        np.testing.assert_array_equal(columns.numbers[name], column, name)
    assert (columns.modes, columns.bases) == (wanted.modes, wanted.bases)
    rows = range(len(wanted.lines))
    assert [columns.lines[row] for row in rows] == [wanted.lines[row] for row in rows]
    assert len(columns.lines) == len(wanted.lines)
    assert columns.larger_way.tolist() == wanted.larger_way.tolist()
    for one, other in zip(columns.flows.times, wanted.flows.times, strict=True):
        assert one is other


@pytest.mark.parametrize("mode", list(ClockMode))
@pytest.mark.parametrize("name", _RUNS)
def test_columns_are_those_of_the_objects(name: str, mode: ClockMode) -> None:
    related = relate_all(pairs_of(name, mode))
    check(related, ClockRelations.of(list(related)))
    some = np.arange(len(related))[::2]
    check(related.at(some), ClockRelations.of([related[row] for row in some]))
    assert [each.separable for each in related] == related.are_separable.tolist()
    rooms_s = [each.data_high_s - each.data_low_s for each in related]
    assert [room_s >= -TIMESTAMP_ERROR_S for room_s in rooms_s] == related.fit_data.tolist()


def test_connections_are_related_together_as_one_by_one() -> None:
    pairs = pairs_of("reg_dl_par20", ClockMode.GENERAL)
    for clock, pair in zip(relate_all(pairs), pairs, strict=True):
        alone = relate(pair)
        assert replace(clock, clouds={}) == replace(alone, clouds={})


def test_a_context_takes_what_is_known_of_its_observations() -> None:
    observations = [Observation(pair) for pair in pairs_of("prx_ngx_par6", ClockMode.GENERAL)]
    first = Context(observations[:2]).clocks
    both = Context(observations).clocks
    assert both[0] is first[0] is observations[0].clock
    assert len(both) == len(observations)
    check(both, ClockRelations.of([observation.clock for observation in observations]))
