"""A clock that captures show to have been set explains contradictions that no admitted steps fit; a queue does not."""

from __future__ import annotations

import numpy as np
import pytest

from detector.clocks.relating import relate
from detector.clocks.steps import STEPS_IN_SUCCESSION
from detector.method import Observation
from detector.methods import ack_timing, early_fin, progress
from detector.options import DetectOptions
from detector.pairing.captures import pair_captures
from pepscope.results.verdicts import Outcome
from tests.detector.corpus import Variation, Varied, capture, pairs
from tests.detector.methods.alone import alone

#: More steps than are admitted, of 0.3 s: many times a round trip.
TOO_MANY = 3 * STEPS_IN_SUCCESSION


class SetAgainAndAgain(Varied):
    """A capture whose clock was set forward several times, evenly over each connection, and perhaps back once."""

    def __init__(self, source, variation: Variation, steps: int, *, back: bool = False) -> None:
        super().__init__(source, variation)
        self._steps, self._back = steps, back

    def packets(self, number: int):
        packets = super().packets(number)
        time_ns = packets.time_ns.copy()
        for place in range(1, self._steps + 1):
            time_ns[packets.time_ns > np.quantile(packets.time_ns, place / (self._steps + 1))] += 300_000_000
        if self._back:
            time_ns[packets.time_ns > np.median(packets.time_ns)] -= 700_000_000
        return packets.replaced(time_ns=time_ns)


def set_pair(run_id: str, *, timestamps: bool, back: bool = False):
    how = Variation(timestamps=timestamps)
    mobile, server = (capture(f"{run_id}.{end}.pcap.gz") for end in ("mob", "srv"))
    (pair,) = pair_captures(SetAgainAndAgain(mobile, how, TOO_MANY, back=back), Varied(server, how), DetectOptions())
    return pair


@pytest.mark.parametrize(("timestamps", "back"), [(True, False), (False, True)])
def test_more_steps_than_are_admitted_accuse_nobody(timestamps, back):
    pair = set_pair("reg_dl_cubic_lte", timestamps=timestamps, back=back)
    clock = relate(pair)
    assert not clock.separable
    assert clock.was_set
    for method in (ack_timing, early_fin, progress):
        assert alone(method.METHOD, Observation(pair)).outcome is Outcome.INAPPLICABLE


@pytest.mark.parametrize("timestamps", [True, False])
@pytest.mark.parametrize("run_id", ["prx_ngx_2M_umts", "spl_ha_dl_large_umts", "spl_ha_dl_mid_lte_bbr"])
def test_a_queue_sets_no_clock(run_id, timestamps):
    how = Variation(timestamps=timestamps, drift_ppm=300.0)
    (pair,) = pairs(run_id, how, Variation(timestamps=timestamps))
    clock = relate(pair)
    assert not clock.separable
    assert not clock.was_set
    assert alone(ack_timing.METHOD, Observation(pair)).outcome is Outcome.SPLIT
