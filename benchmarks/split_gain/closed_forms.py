"""What the closed forms of `pepscope model` say of the campaigns' cells."""

from __future__ import annotations

import math

from reference_sim.models.split_gain import SplitGain, split_gain
from reference_sim.models.split_throughput import Half, split_rate_segments_s, whole_rate_segments_s

#: The line of the scenario `split-gain-line`.
_LINE_BIT_S = 20e6
_LINE_DELAY_S = 0.025
_SERVER_BIT_S = 1e9
_PACKET_BYTES = 1500
_PAYLOAD_BYTES = 1448
_BUFFER_BYTES = 4 << 20
_LEAST_TIMEOUT_S = 0.2


def line_gain(server_delay_s: float, loss_probability: float) -> float | None:
    """Gain with Reno on either leg (`pepscope model throughput --model split`), None without losses.

    Padhye's model knows no buffer before the line, so the gain is the same for each of them, and no slow start.
    """
    if not loss_probability:
        return None
    window = _BUFFER_BYTES / _PAYLOAD_BYTES
    server, mobile = (
        Half(
            loss_probability=loss,
            round_trip_s=2 * delay_s,
            timeout_s=_LEAST_TIMEOUT_S + 2 * delay_s,
            window_limit_segments=window,
            link_segments_s=rate_bit_s / 8 / _PACKET_BYTES,
        )
        for loss, delay_s, rate_bit_s in (
            (0.0, server_delay_s, _SERVER_BIT_S),
            (loss_probability, _LINE_DELAY_S, _LINE_BIT_S),
        )
    )
    whole = whole_rate_segments_s(server, mobile)
    split = split_rate_segments_s(server, mobile, 2 * window)
    return split / whole - 1.0


def slow_start_gain(rate_bit_s: float, server_round_trip_s: float, mobile_round_trip_s: float) -> SplitGain:
    """Times until the rate is reached from one packet (`pepscope model split-gain`), each leg with its slow start."""
    return split_gain(rate_bit_s, _PACKET_BYTES, server_round_trip_s, mobile_round_trip_s, downstream_slow_start=True)


def saved_from_ten(gain: SplitGain, server_round_trip_s: float) -> float:
    """Seconds saved where the first window has ten packets, as RFC 6928 allows, instead of one.

    Both slow starts are shorter by log2(10) round trips, end to end longer ones.
    """
    return max(0.0, gain.gain_s - server_round_trip_s * math.log2(10.0))
