"""Access links by technology, each a draw. Ranges are those that measurement studies and operators report.

LTE and NR: scheduling requests every 5-10 ms and HARQ after 8 ms (3GPP TS 36.321, 36.213), DRX cycles of 20-320 ms
(TS 36.331); UMTS: RLC retransmissions and promotion from idle in 0.3-0.8 s (TS 25.322, 25.331); DOCSIS: a request and
grant in 2-6 ms; geostationary satellites: 240-280 ms up and down once, with demand assignment (ETSI EN 301 545-2).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from random import Random

from benchmarks.one_ended_simulated.channels import Direction, Link


def _halves(round_trip_s: float, random: Random) -> tuple[float, float]:
    share = random.uniform(0.4, 0.6)
    return round_trip_s * share, round_trip_s * (1 - share)


def fibre(random: Random) -> Link:
    """2 to 12 ms, hardly any jitter."""
    up_s, down_s = _halves(random.uniform(0.002, 0.012), random)
    jitter_s, rate_bit_s = random.uniform(2e-5, 3e-4), random.uniform(5e7, 1e9)
    up = Direction(up_s, rate_bit_s, 500_000, jitter_s=jitter_s)
    return Link(up, replace(up, delay_s=down_s))


def cable(random: Random) -> Link:
    """8 to 25 ms with grants upwards."""
    up_s, down_s = _halves(random.uniform(0.008, 0.025), random)
    up = Direction(up_s, random.uniform(2e6, 5e7), 128_000, jitter_s=3e-4, grant_s=random.uniform(0.002, 0.006))
    return Link(up, Direction(down_s, random.uniform(2e7, 3e8), 512_000, jitter_s=2e-4))


def wlan(random: Random) -> Link:
    """WLAN before a line of 3 to 30 ms: contention, spikes, few losses."""
    up_s, down_s = _halves(random.uniform(0.003, 0.03), random)
    up = Direction(
        up_s, random.uniform(1e7, 2e8), 256_000, jitter_s=random.uniform(3e-4, 3e-3),
        spike_share=random.uniform(0, 0.03), spike_s=(0.005, random.uniform(0.01, 0.06)),
        loss_share=random.choice((0.0, 0.0, random.uniform(0, 0.004))),
    )  # fmt: skip
    return Link(up, replace(up, delay_s=down_s))


def nr(random: Random) -> Link:
    """10 to 28 ms with short grants."""
    up_s, down_s = _halves(random.uniform(0.008, 0.024), random)
    after_s, wake_s = random.uniform(0.05, 10.0), (0.002, random.uniform(0.01, 0.08))
    up = Direction(
        up_s, random.uniform(1e7, 1e8), 512_000, jitter_s=5e-4, grant_s=random.uniform(0.001, 0.005),
        retry_share=random.uniform(0.02, 0.12), retry_s=0.004,
        wake_after_s=after_s, wake_s=wake_s,
    )  # fmt: skip
    return Link(up, replace(up, delay_s=down_s, rate_bit_s=random.uniform(5e7, 5e8), grant_s=0.0005))


def lte(random: Random) -> Link:
    """25 to 70 ms: grants, HARQ, sleep."""
    up_s, down_s = _halves(random.uniform(0.022, 0.06), random)
    after_s, wake_s = random.uniform(0.1, 12.0), (0.005, random.uniform(0.03, 0.2))
    stalls = random.choice((0.0, 0.0, random.uniform(0.05, 2.0)))
    up = Direction(
        up_s, random.uniform(2e6, 4e7), 512_000, jitter_s=1e-3, grant_s=random.uniform(0.002, 0.01),
        retry_share=random.uniform(0.03, 0.15), retry_s=0.008, stalls_per_s=stalls, stall_s=(0.02, 0.12),
        wake_after_s=after_s, wake_s=wake_s,
    )  # fmt: skip
    down_rate_bit_s = random.uniform(5e6, 1e8)
    return Link(up, replace(up, delay_s=down_s, rate_bit_s=down_rate_bit_s, queue_bytes=1_000_000, grant_s=0.001))


def umts(random: Random) -> Link:
    """60 to 160 ms, slow, with deep queues and repeated radio blocks."""
    up_s, down_s = _halves(random.uniform(0.06, 0.15), random)
    after_s, wake_s = random.uniform(3.0, 8.0), (0.2, random.uniform(0.3, 0.8))
    up = Direction(
        up_s, random.uniform(1.5e5, 1.5e6), 128_000, jitter_s=3e-3, grant_s=0.01,
        retry_share=random.uniform(0.03, 0.15), retry_s=random.uniform(0.02, 0.06),
        wake_after_s=after_s, wake_s=wake_s,
    )  # fmt: skip
    down_rate_bit_s = random.uniform(4e5, 6e6)
    queue_bytes = random.choice((64_000, 300_000))
    return Link(up, replace(up, delay_s=down_s, rate_bit_s=down_rate_bit_s, queue_bytes=queue_bytes))


def geostationary(random: Random) -> Link:
    """520 to 650 ms."""
    up_s, down_s = _halves(random.uniform(0.5, 0.62), random)
    up = Direction(
        up_s, random.uniform(1e6, 6e6), 256_000, jitter_s=2e-3, grant_s=random.uniform(0.01, 0.06),
        loss_share=random.choice((0.0, 0.003)),
    )  # fmt: skip
    return Link(up, replace(up, delay_s=down_s, rate_bit_s=random.uniform(5e6, 4e7), grant_s=0.002))


def low_orbit(random: Random) -> Link:
    """22 to 55 ms with frames and handovers."""
    up_s, down_s = _halves(random.uniform(0.02, 0.05), random)
    up = Direction(
        up_s, random.uniform(5e6, 2e7), 512_000, jitter_s=random.uniform(1e-3, 4e-3), grant_s=0.004,
        stalls_per_s=1 / 15, stall_s=(0.02, 0.15), loss_share=random.uniform(0, 0.003),
    )  # fmt: skip
    return Link(up, replace(up, delay_s=down_s, rate_bit_s=random.uniform(5e7, 2e8), grant_s=0.0013))


#: Name, how to draw it, weight.
ACCESSES: tuple[tuple[str, Callable[[Random], Link], float], ...] = (
    ("fibre", fibre, 2.0),
    ("cable", cable, 1.0),
    ("wlan", wlan, 2.0),
    ("nr", nr, 1.5),
    ("lte", lte, 3.0),
    ("umts", umts, 1.5),
    ("geo", geostationary, 0.7),
    ("leo", low_orbit, 0.7),
)


#: Of a slow direction of a link, what other traffic takes at most: more would leave queues standing.
_MOST_LOAD = 0.5


def with_other_traffic(link: Link, random: Random) -> Link:
    """The link with downloads of its clients from elsewhere, in bursts as large as a window of TCP grows."""
    load, burst_bytes = random.uniform(0.05, _MOST_LOAD), (8_000.0, random.uniform(2e4, 2e5))
    mean_bytes = (burst_bytes[1] - burst_bytes[0]) / math.log(burst_bytes[1] / burst_bytes[0])
    per_s = min(load * link.down.rate_bit_s / 8 / mean_bytes, 3.0)
    return Link(link.up, replace(link.down, bursts_per_s=per_s, burst_bytes=burst_bytes))


def draw_access(random: Random) -> tuple[str, Link]:
    """A technology and one of its links."""
    name, make, _ = random.choices(ACCESSES, [weight for _, _, weight in ACCESSES])[0]
    return name, make(random)
