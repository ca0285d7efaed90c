"""A step that is to explain early acknowledgements must have left something in a capture; a queue leaves nothing."""

from __future__ import annotations

import numpy as np
import pytest

from detector.clocks.host_clock import host_clock
from detector.clocks.relating import relate
from detector.clocks.steps import STEPS_IN_SUCCESSION
from detector.method import Observation
from detector.methods import ack_timing, early_fin
from detector.options import DetectOptions
from detector.pairing.captures import pair_captures
from detector.streams.curves import is_clock_set_back, without_backward_steps
from pepscope.captures.packets import Direction
from pepscope.results.verdicts import Outcome
from tests.detector.corpus import Variation, Varied, capture, pairs, vary
from tests.detector.methods.alone import alone
from tests.detector.streams.test_curves import columns, down


def mobile_packets(run_id: str, variation: Variation):
    (pair,) = pairs(run_id)
    return vary(pair.client_side.packets, variation)


@pytest.mark.parametrize("step_s", [-0.3, 0.6, 10.0])
def test_a_capture_that_was_set_jumps_against_its_hosts_timestamps(step_s):
    packets = mobile_packets("reg_dl_cubic_lte", Variation(step_s=step_s))
    clock = host_clock(packets, Direction.UP)
    assert clock is not None
    assert clock.tick_ns == 1e6
    quarter_ns, end_ns = np.quantile(packets.time_ns, [0.75, 1.0])
    before, after = clock.level_from(-np.inf, np.inf), clock.level_from(quarter_ns, end_ns)
    assert (after - before) / 1e9 == pytest.approx(step_s, abs=0.005)


def test_without_timestamps_a_host_shows_no_clock():
    assert host_clock(mobile_packets("reg_dl_cubic_lte", Variation(timestamps=False)), Direction.UP) is None


@pytest.mark.parametrize("timestamps", [True, False])
@pytest.mark.parametrize("run_id", ["prx_ngx_2M_umts", "spl_ha_dl_large_umts"])
def test_a_queue_is_no_clock_that_was_set_again_and_again(run_id, timestamps):
    how = Variation(timestamps=timestamps)
    (pair,) = pairs(run_id, how, how)
    assert not relate(pair).separable


class SetRepeatedly(Varied):
    """A capture whose clock was set several times, evenly over each connection."""

    def __init__(self, source, steps_s) -> None:
        super().__init__(source, Variation(timestamps=False))
        self._steps_s = steps_s

    def packets(self, number: int):
        packets = super().packets(number)
        time = packets.time_ns.copy()
        for place, step_s in enumerate(self._steps_s, 1):
            at = int(np.quantile(packets.time_ns, place / (len(self._steps_s) + 1)))
            time[packets.time_ns > at] += round(step_s * 1e9)
        return packets.replaced(time_ns=time)


@pytest.mark.parametrize("steps_s", [(0.7, 0.9), (1.5, 0.6, 1.1)])
def test_several_steps_are_neither_a_fit_nor_a_proof(steps_s):
    sides = [capture(f"reg_dl_cubic_lte.{end}.pcap.gz") for end in ("mob", "srv")]
    plain = Varied(sides[1], Variation(timestamps=False))
    (pair,) = pair_captures(SetRepeatedly(sides[0], steps_s), plain, DetectOptions())
    clock = relate(pair)
    assert 1 < len(clock.steps_s) <= STEPS_IN_SUCCESSION
    assert clock.unusual_steps == len(clock.steps_s) - 1
    assert alone(ack_timing.METHOD, Observation(pair)).outcome is Outcome.INAPPLICABLE
    assert alone(early_fin.METHOD, Observation(pair)).outcome is Outcome.INAPPLICABLE


def test_a_small_step_back_shows_that_a_clock_was_set_but_not_by_how_much():
    millisecond = 1_000_000

    def taken_at(*times_ms):
        return columns([down(round(ms * millisecond), 1000 * place, 1000) for place, ms in enumerate(times_ms)])

    assert is_clock_set_back(taken_at(0, 8, 3, 4, 5))
    assert without_backward_steps(taken_at(0, 8, 3, 4, 5)).time_ns[2] == 3 * millisecond
    assert not is_clock_set_back(taken_at(0, 8, 7.5, 7.6, 9))  # queues of one card
    assert not is_clock_set_back(taken_at(0, 8, 3, 9, 10))  # one packet that was written late
    assert not is_clock_set_back(taken_at(*range(10), *range(10), *range(10), *range(10), *range(10)))  # a merged file


def test_one_packet_that_stands_late_in_its_file_is_no_clock_that_was_set():
    second = 1_000_000_000
    times = [0, 3, 1, 4, 5]
    packets = columns([down(t * second, 1000 * place, 1000) for place, t in enumerate(times)])
    assert without_backward_steps(packets).time_ns.tolist() == [t * second for t in times]
    fallen = columns([down(t * second, 1000 * place, 1000) for place, t in enumerate([0, 3, 1, 2, 4])])
    assert without_backward_steps(fallen).time_ns.tolist() == [t * second for t in [0, 3, 3, 4, 6]]
