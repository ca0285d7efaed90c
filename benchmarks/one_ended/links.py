"""What access links and wires do to packets, and how they are drawn.

Figures of the radio models: LTE's scheduling requests, grants and HARQ round trip of 8 ms (3GPP TS 36.321, 36.213),
NR's shorter slots (TS 38.214), UMTS's RLC retransmissions delivered in order (TS 25.322), discontinuous reception
(TS 36.321, 5.7), a geostationary hop of 240 to 280 ms each way (ITU-R S.1711).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random


@dataclass(frozen=True, slots=True)
class Direction:
    """One direction of a link; packets keep their order.

    `delay_s` is the least; `jitter_s` the mean of an exponential delay that every packet adds; a packet is
    retransmitted by the link itself with probability `repeat_share`, which takes `repeat_s` and holds those behind it;
    `grant_s`: a packet that finds the link idle waits for the next multiple of it (scheduling grants); after
    `sleep_after_s` without a packet the link is asleep and wakes at multiples of `wake_cycle_s` (0: never sleeps).
    `rate_bit_s` and `queue_bytes` are a drop-tail queue; `loss` the share of packets lost; `hops` how many routers
    lower the TTL.
    """

    delay_s: float
    rate_bit_s: float = 50e6
    queue_bytes: int = 200_000
    jitter_s: float = 0.0
    repeat_share: float = 0.0
    repeat_s: float = 0.0
    grant_s: float = 0.0
    sleep_after_s: float = 0.0
    wake_cycle_s: float = 0.0
    loss: float = 0.0
    hops: int = 0

    @property
    def typical_s(self) -> float:
        """What a small packet takes on an idle, awake link, on average."""
        return self.delay_s + self.jitter_s + self.grant_s / 2 + self.repeat_share * self.repeat_s


@dataclass(frozen=True, slots=True)
class Link:
    """Both directions: `down` from the middle to a client; a wire's two are alike."""

    down: Direction
    up: Direction

    def longer(self, one_way_s: float) -> Link:
        """The same link with so much more delay each way."""
        return Link(*(replace(one, delay_s=one.delay_s + one_way_s) for one in (self.down, self.up)))

    @property
    def round_trip_s(self) -> float:
        """What a small packet and its answer take on an idle, awake link, on average."""
        return self.down.typical_s + self.up.typical_s


@dataclass(frozen=True, slots=True)
class _Kind:
    """Ranges that an access link is drawn from, times in ms, rates in Mbit/s."""

    round_trip_ms: tuple[float, float]
    down_mbit_s: tuple[float, float]
    up_mbit_s: tuple[float, float]
    queue_kb: tuple[int, int]
    jitter_ms: tuple[float, float] = (0.0, 0.0)
    grant_ms: tuple[float, ...] = (0.0,)
    repeat_share: tuple[float, float] = (0.0, 0.0)
    repeat_ms: tuple[float, float] = (0.0, 0.0)
    sleep_after_ms: tuple[float, float] = (0.0, 0.0)
    wake_cycle_ms: tuple[float, ...] = (0.0,)


_KINDS = {
    "fibre": _Kind((2, 10), (40, 60), (20, 60), (60, 250), (0.0, 0.1)),
    "wlan": _Kind((2, 9), (15, 40), (10, 40), (80, 300), (0.3, 2.0), (0.0,), (0.0, 0.08), (1, 6)),
    "nr": _Kind((8, 20), (20, 50), (8, 20), (100, 400), (0.2, 0.8), (0.5, 2.5, 5.0), (0.02, 0.1), (2, 5)),
    "lte": _Kind((22, 55), (8, 30), (3, 10), (80, 400), (0.4, 1.5), (5.0, 10.0), (0.03, 0.12), (8, 8)),
    "umts": _Kind((70, 150), (1.5, 5), (0.4, 1.5), (60, 250), (1.0, 4.0), (10.0,), (0.03, 0.12), (20, 50)),
    "satellite": _Kind((500, 590), (5, 20), (1, 4), (200, 500), (0.5, 4.0), (10.0, 25.0), (0.0, 0.02), (5, 20)),
    "drx": _Kind(
        (22, 55), (8, 30), (3, 10), (80, 400), (0.4, 1.5), (5.0, 10.0), (0.03, 0.12), (8, 8), (40, 200), (40, 80, 160)
    ),
}  # fmt: skip

#: Kinds of access links, in the order of a deck: each is drawn once before one comes again.
ACCESS = (*_KINDS, "lte-lossy", "wlan-busy")


def draw_access(kind: str, chance: random.Random) -> Link:
    """An access link of a kind of `ACCESS`."""
    base, _, flaw = kind.partition("-")
    ranges = _KINDS[base]
    round_trip = chance.uniform(*ranges.round_trip_ms) / 1e3
    jitter = chance.uniform(*ranges.jitter_ms) / 1e3
    repeats, repeat = chance.uniform(*ranges.repeat_share), chance.uniform(*ranges.repeat_ms) / 1e3
    queue = chance.randrange(*ranges.queue_kb) * 1000
    loss = chance.choice((0.0, 0.0, 0.0, 0.0005, 0.002))
    if flaw == "lossy":
        loss = chance.uniform(0.003, 0.02)
    if flaw == "busy":
        jitter = chance.uniform(2.0, 6.0) / 1e3
    after, cycle = chance.uniform(*ranges.sleep_after_ms) / 1e3, chance.choice(ranges.wake_cycle_ms) / 1e3
    grant = chance.choice(ranges.grant_ms) / 1e3
    hops = chance.randrange(0, 4)
    down, up = (
        Direction(
            delay_s=round_trip / 2, rate_bit_s=chance.uniform(*rates) * 1e6, queue_bytes=queue, jitter_s=jitter,
            repeat_share=repeats, repeat_s=repeat, grant_s=grants, loss=loss, hops=hops,
            sleep_after_s=after, wake_cycle_s=cycle if sleeps else 0.0,
        )
        for rates, grants, sleeps in ((ranges.down_mbit_s, 0.0, True), (ranges.up_mbit_s, grant, False))
    )  # fmt: skip
    return Link(down, up)


def draw_wire(round_trip_s: float, chance: random.Random, *, rate_bit_s: float = 60e6) -> Link:
    """A wired path with a little jitter, some routers and rarely a loss."""
    jitter, hops = chance.uniform(0, 0.0002), 1 + int(chance.uniform(0.5, 1.5) * (round_trip_s * 100) ** 0.5 * 3)
    loss = chance.choice((0.0, 0.0, 0.0, 0.0, 0.0002))
    one = Direction(round_trip_s / 2, rate_bit_s, 400_000, jitter_s=jitter, loss=loss, hops=min(hops, 20))
    return Link(one, one)
