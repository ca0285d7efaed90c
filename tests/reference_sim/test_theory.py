"""The simulator against theory: clean links, loss by the models of Mathis and of Padhye, shares of a bottleneck.

Elsewhere: queues against M/D/1 and Erlang's B (crates/path/tests/wired.rs), delays of the dedicated channel against
their closed form (crates/path/tests/umts.rs), windows under periodic loss (crates/tcp/src/control/periodic_loss.rs).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from reference_sim.models import mathis, padhye
from reference_sim.run import Run
from reference_sim.scenario import Scenario
from reference_sim.simulation import simulate

SEGMENT_BYTES = 1460
HEADER_BYTES = 40
ROUND_TRIP_S = 0.1
TIMEOUT_S = 1.0


def run(path: Sequence[Mapping[str, Any]], traffic: Sequence[Mapping[str, Any]], duration_s: float, **ends: Any) -> Run:
    described = {"name": "theory", "duration_s": duration_s, "stop_after_finish_s": 0, "path": path, "traffic": traffic}
    return simulate(Scenario.from_mapping(described | ends))


def host(recovery: str, **settings: Any) -> dict[str, Any]:
    """A sender of the literature: additive increase, no timestamps, SACK only where it is used."""
    return {"control": "reno", "recovery": recovery, "sack": recovery == "sack", "timestamps": False, **settings}


def distant(**down: Any) -> list[Mapping[str, Any]]:
    """A link that takes no time to send, half a round trip away."""
    return [{"kind": "wired", "down": {"delay_s": ROUND_TRIP_S / 2, **down}, "up": {"delay_s": ROUND_TRIP_S / 2}}]


def download(duration_s: float) -> list[Mapping[str, Any]]:
    return [{"kind": "download", "duration_s": duration_s}]


@pytest.mark.parametrize("recovery", ["reno", "new-reno", "sack"])
@pytest.mark.parametrize("segment_bytes", [536, 1460])
def test_a_clean_link_is_full(recovery: str, segment_bytes: int) -> None:
    """With a buffer above rate times round trip (33 full packets) the sawtooth never empties it."""
    rate_bit_s, duration_s = 10_000_000, 60.0
    down = {"rate_bit_s": rate_bit_s, "delay_s": 0.02, "queue_bytes": 90_000}
    end = host(recovery, maximum_segment_size_bytes=segment_bytes)
    path = [{"kind": "wired", "down": down, "up": {"delay_s": 0.02}}]
    summary = run(path, download(duration_s), duration_s, server=end, mobile=end).summary()
    most_bit_s = rate_bit_s * segment_bytes / (segment_bytes + HEADER_BYTES)
    assert 0.97 * most_bit_s < summary["goodput_bit_s"] <= most_bit_s
    assert 0.98 < summary["hops"][0]["down"]["utilisation"] <= 1


@pytest.mark.parametrize("window_segments", [6, 20, 44])
def test_a_window_a_round_trip(window_segments: int) -> None:
    """What the receiver allows, once a round trip; handshake and slow start take less than four of those."""
    duration_s = 60.0
    mobile = host("sack", receive_buffer_bytes=window_segments * SEGMENT_BYTES, window_scale=-1)
    summary = run(distant(), download(duration_s), duration_s, server=host("sack"), mobile=mobile).summary()
    rounds = duration_s / ROUND_TRIP_S
    assert summary["delivered_bytes"] == pytest.approx(window_segments * SEGMENT_BYTES * rounds, rel=4 / rounds)


@pytest.mark.parametrize(
    ("segments", "initial_window", "rounds"),
    [(1, 3, 1), (3, 3, 1), (4, 3, 2), (9, 3, 2), (10, 3, 3), (500, 3, 8), (30, 10, 2), (31, 10, 3)],
)
def test_slow_start_doubles_each_round(segments: int, initial_window: int, rounds: int) -> None:
    """IW (2^n - 1) segments in n rounds; the first arrives two round trips after the SYN, the handshake being one."""
    end = host("sack", initial_window_segments=initial_window, delayed_acknowledgement_segments=1)
    traffic = [{"kind": "download", "bytes": segments * SEGMENT_BYTES}]
    flow = run(distant(), traffic, 60.0, server=end, mobile=end).truth["flows"][0]
    assert rounds == math.ceil(math.log2(segments / initial_window + 1))
    assert flow["mobile"]["last_read_s"] == pytest.approx((1 + rounds) * ROUND_TRIP_S)


def lossy(recovery: str, loss: Mapping[str, Any], delayed: int, duration_s: float, seed: int, **mobile: Any) -> Run:
    """A download whose packets are lost on the way; slow start ends at 40 segments."""
    end = host(
        recovery,
        initial_slow_start_threshold_bytes=40 * SEGMENT_BYTES,
        delayed_acknowledgement_segments=delayed,
        delayed_acknowledgement_timeout_s=0.1,
        quick_acknowledgements=0,
        retransmission_timeout_minimum_s=TIMEOUT_S,
    )
    return run(distant(loss=loss), download(duration_s), duration_s, server=end, mobile=end | mobile, seed=seed)


@pytest.mark.parametrize("recovery", ["reno", "new-reno", "sack"])
@pytest.mark.parametrize("delayed", [1, 2])
@pytest.mark.parametrize("loss_probability", [0.0003, 0.001, 0.003])
def test_periodic_loss_gives_the_rate_of_mathis(recovery: str, delayed: int, loss_probability: float) -> None:
    """A segment lost every 1/p: never a timeout, so the model's sawtooth, but in whole segments and with one round trip
    of recovery without growth. Both together cost two and a half segments of the mean window.
    """
    duration_s = 600.0
    every = round(1 / loss_probability)
    packets = [every * number for number in range(1, 1 + int(2e6) // every)]
    loss = {"kind": "listed", "packets": packets}
    done = lossy(recovery, loss, delayed, duration_s, seed=1)
    assert done.truth["flows"][0]["server"]["tcp"]["timeouts"] == 0
    theory = mathis.rate_segments_s(loss_probability, ROUND_TRIP_S, segments_an_acknowledgement=delayed)
    ratio = done.summary()["delivered_bytes"] / SEGMENT_BYTES / duration_s / theory
    assert 1 - 2.5 / (theory * ROUND_TRIP_S) < ratio < 1.01


@pytest.mark.parametrize("recovery", ["reno", "new-reno", "sack"])
@pytest.mark.parametrize("delayed", [1, 2])
@pytest.mark.parametrize(("loss_probability", "tolerance"), [(0.0003, 0.05), (0.001, 0.06), (0.003, 0.1)])
def test_independent_loss_gives_the_rate_of_mathis(
    recovery: str, delayed: int, loss_probability: float, tolerance: float
) -> None:
    """The constant for independent losses; the tolerance grows with the timeouts that the model leaves out. A mean over
    n losses has a relative deviation of about 1 / (2 sqrt n): 1 % here.
    """
    duration_s, seeds = 1500.0, (1, 2, 3)
    loss = {"kind": "independent", "probability": loss_probability}
    runs = [lossy(recovery, loss, delayed, duration_s, seed).summary() for seed in seeds]
    rate = sum(done["delivered_bytes"] for done in runs) / SEGMENT_BYTES / duration_s / len(seeds)
    theory = mathis.rate_segments_s(
        loss_probability,
        ROUND_TRIP_S,
        pattern=mathis.LossPattern.INDEPENDENT,
        segments_an_acknowledgement=delayed,
    )
    assert 1 - tolerance < rate / theory < 1.03


def measured_indications(done: Run) -> float:
    """Loss indications a segment sent, as the paper counts them: a sequence of timeouts is one, so of the timeouts only
    1 - p begin one.
    """
    tcp = done.truth["flows"][0]["server"]["tcp"]
    lost = done.truth["hops"][0]["down"]["lost_packets"] / tcp["data_segments_sent"]
    return float((tcp["fast_retransmits"] + (1 - lost) * tcp["timeouts"]) / tcp["data_segments_sent"])


@pytest.mark.parametrize("recovery", ["reno", "new-reno"])
@pytest.mark.parametrize("delayed", [1, 2])
@pytest.mark.parametrize("loss_probability", [0.003, 0.01, 0.03, 0.05])
def test_timeouts_bring_the_rate_down_to_padhyes(recovery: str, delayed: int, loss_probability: float) -> None:
    """Sent segments against the full model and the short form, given the loss indications of the run and T0 = 1 s. In
    the paper's own traces the mean error is some 10 to 20 %.
    """
    duration_s = 3000.0
    loss = {"kind": "independent", "probability": loss_probability}
    done = lossy(recovery, loss, delayed, duration_s, seed=4)
    rate = done.summary()["data_packets"] / duration_s
    for model in (padhye.send_rate_segments_s, padhye.approximate_send_rate_segments_s):
        theory = model(measured_indications(done), ROUND_TRIP_S, TIMEOUT_S, segments_an_acknowledgement=delayed)
        assert 0.9 < rate / theory < 1.25
    if loss_probability >= 0.03:  # where timeouts decide, the square root alone is far off
        without_timeouts = math.sqrt(1.5 / (delayed * loss_probability)) / ROUND_TRIP_S
        assert rate < 0.8 * without_timeouts


@pytest.mark.parametrize("window_segments", [8, 16])
@pytest.mark.parametrize("loss_probability", [0.001, 0.003, 0.01])
def test_loss_under_a_small_window_gives_the_rate_of_padhye(window_segments: int, loss_probability: float) -> None:
    duration_s = 3000.0
    loss = {"kind": "independent", "probability": loss_probability}
    window = {"receive_buffer_bytes": window_segments * SEGMENT_BYTES, "window_scale": -1}
    done = lossy("reno", loss, 1, duration_s, 5, **window)
    theory = padhye.send_rate_segments_s(
        measured_indications(done),
        ROUND_TRIP_S,
        TIMEOUT_S,
        window_limit_segments=window_segments,
        segments_an_acknowledgement=1,
    )
    assert 0.95 < done.summary()["data_packets"] / duration_s / theory < 1.2


SENDERS = {
    "new-reno": {"control": "reno", "recovery": "new-reno"},
    "sack": {"control": "reno", "recovery": "sack"},
    "cubic": {"control": "cubic", "recovery": "sack"},
    "bbr": {"control": "bbr", "recovery": "sack"},
}
PRODUCT_PACKETS = 67  # 20 Mbit/s times 40 ms


def share_of_second(first: str, second: str, queue_packets: int, start_s: float) -> tuple[float, float]:
    """What the later of two downloads gets of a bottleneck, and how full both keep it. A proxy beside the server gives
    the second flow a sender of its own.
    """
    duration_s = 120.0
    proxy = {"kind": "split-proxy", "mobile_leg": SENDERS[second], "buffer_bytes": 1 << 22, "server_ports": [5002]}
    down = {"rate_bit_s": 20_000_000, "delay_s": 0.02, "queue_packets": queue_packets}
    bottleneck = {"kind": "wired", "down": down, "up": {"delay_s": 0.02}}
    flows = [
        {"kind": "download", "duration_s": duration_s, "server_port": 5001},
        {"kind": "download", "duration_s": duration_s, "server_port": 5002, "start_s": start_s},
    ]
    done = run([proxy, bottleneck], flows, duration_s, server=SENDERS[first])
    read = [flow["mobile"]["read_bytes"] for flow in done.truth["flows"]]
    return read[1] / sum(read), done.summary()["hops"][1]["down"]["utilisation"]


@pytest.mark.parametrize(
    ("first", "second", "products", "least", "most"),
    [
        ("new-reno", "new-reno", 1, 0.45, 0.55),
        ("new-reno", "sack", 1, 0.42, 0.58),
        ("sack", "sack", 1, 0.42, 0.58),
        ("cubic", "cubic", 1, 0.42, 0.58),
        # RFC 9438, section 4.3: as Reno at least, and more once it grows by its own curve.
        ("new-reno", "cubic", 1, 0.5, 0.7),
        ("sack", "cubic", 1, 0.5, 0.7),
        # BBR (version 1) keeps two products in flight and heeds no loss: a buffer of one product is all its own.
        ("sack", "bbr", 1, 0.85, 0.99),
        ("cubic", "bbr", 1, 0.85, 0.99),
        ("cubic", "bbr", 4, 0.3, 0.7),
        ("bbr", "bbr", 4, 0.42, 0.58),
    ],
)
def test_shares_of_a_bottleneck(first: str, second: str, products: int, least: float, most: float) -> None:
    """Mean over starts that shift the phase of the two; the bounds are on either side of what the controls promise."""
    outcomes = [share_of_second(first, second, products * PRODUCT_PACKETS, start_s) for start_s in (0.01, 0.37, 0.81)]
    assert least < sum(share for share, _ in outcomes) / len(outcomes) < most
    assert all(0.96 < utilisation <= 1 for _, utilisation in outcomes)


@pytest.mark.parametrize("period_s", [0.02, 0.2, 2.0])
def test_a_variable_link_carries_no_more_than_its_rate_offers(period_s: float) -> None:
    """Its capacity is the integral of its rate, whose mean is known."""
    duration_s, low_bit_s, high_bit_s = 200.0, 91_000, 638_000
    rates = {"kind": "random", "period_s": period_s, "low_bit_s": low_bit_s, "high_bit_s": high_bit_s}
    path = [{"kind": "variable-rate", "down": {"rates": rates, "queue_packets": 40}, "up": {"delay_s": 0.02}}]
    end = host("sack", maximum_segment_size_bytes=536)
    done = run(path, download(duration_s), duration_s, server=end, mobile=end)
    capacity_bits = done.truth["hops"][0]["down"]["capacity_bits"]
    mean_bits = (low_bit_s + high_bit_s) / 2 * duration_s
    deviation_bits = (high_bit_s - low_bit_s) / math.sqrt(12) * math.sqrt(duration_s * period_s)
    assert abs(capacity_bits - mean_bits) < 4 * deviation_bits
    assert 0.97 < done.summary()["hops"][0]["down"]["utilisation"] <= 1
