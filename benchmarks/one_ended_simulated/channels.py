"""One direction of a link: a queue in front of a transmitter, a delay, and what radio adds to it."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from random import Random

from benchmarks.one_ended_simulated.events import Clock


@dataclass(frozen=True, slots=True)
class Direction:
    """What one direction of a link does to packets. Durations in seconds; a share is of packets."""

    delay_s: float
    rate_bit_s: float = 1e9
    queue_bytes: int = 1_000_000
    jitter_s: float = 0.0  # mean of an exponential distribution
    spike_share: float = 0.0
    spike_s: tuple[float, float] = (0.0, 0.0)
    grant_s: float = 0.0  # period of chances to send; a packet that meets an empty queue waits for the next
    retry_share: float = 0.0  # of transmissions that fail and are tried again after `retry_s`
    retry_s: float = 0.0
    wake_after_s: float = float("inf")  # silence of the link after which the radio sleeps
    wake_s: tuple[float, float] = (0.0, 0.0)
    stalls_per_s: float = 0.0
    stall_s: tuple[float, float] = (0.0, 0.0)
    loss_share: float = 0.0
    bursts_per_s: float = 0.0  # of other traffic of the same clients, which queues here as well
    burst_bytes: tuple[float, float] = (0.0, 0.0)  # uniform in the logarithm


@dataclass(slots=True)
class Activity:
    """When a link last carried a packet, either way."""

    last_s: float = -1e9
    is_awake_at_s: float = 0.0


@dataclass(slots=True)
class Channel:
    """The state of one direction. Packets leave in the order in which they came."""

    clock: Clock
    random: Random
    settings: Direction
    activity: Activity = field(default_factory=Activity)
    free_at_s: float = 0.0
    last_arrival_s: float = 0.0
    next_stall_s: float = -1.0
    next_burst_s: float = -1.0

    def carry(self, size_bytes: int) -> float | None:
        """When a packet that comes now arrives; None if it is lost."""
        settings, random, now_s = self.settings, self.random, self.clock.now_s
        if settings.loss_share and random.random() < settings.loss_share:
            return None
        if settings.bursts_per_s:
            self._queue_bursts(now_s)
        if (self.free_at_s - now_s) * settings.rate_bit_s > 8 * settings.queue_bytes:
            return None
        begin_s = max(self._ready_s(now_s), self.free_at_s)
        self.free_at_s = begin_s + 8 * size_bytes / settings.rate_bit_s
        arrival_s = self.free_at_s + settings.delay_s + self._radio_s()
        self.last_arrival_s = max(arrival_s, self.last_arrival_s + 1e-6)
        self.activity.last_s = self.last_arrival_s
        return self.last_arrival_s

    def _ready_s(self, now_s: float) -> float:
        settings, random, ready_s = self.settings, self.random, now_s
        if now_s - self.activity.last_s > settings.wake_after_s:
            self.activity.is_awake_at_s = now_s + random.uniform(*settings.wake_s)
        ready_s = max(ready_s, self.activity.is_awake_at_s)
        if settings.stalls_per_s:
            ready_s = self._after_stalls_s(ready_s)
        if settings.grant_s and self.free_at_s <= now_s:
            ready_s += random.random() * settings.grant_s
        return ready_s

    def _queue_bursts(self, now_s: float) -> None:
        """Let other traffic that came until now queue: a Poisson process, drawn as far as needed."""
        settings, random = self.settings, self.random
        if self.next_burst_s < 0:
            self.next_burst_s = now_s + random.expovariate(settings.bursts_per_s)
        least, most = settings.burst_bytes
        while self.next_burst_s <= now_s:
            size_bytes = least * (most / least) ** random.random()
            begin_s = max(self.free_at_s, self.next_burst_s)
            room_bytes = settings.queue_bytes - (begin_s - self.next_burst_s) * settings.rate_bit_s / 8
            self.free_at_s = begin_s + 8 * max(0.0, min(size_bytes, room_bytes)) / settings.rate_bit_s
            self.next_burst_s += random.expovariate(settings.bursts_per_s)

    def _after_stalls_s(self, time_s: float) -> float:
        """The end of the stall that holds `time_s`, or `time_s`: a Poisson process, drawn as far as needed."""
        settings, random = self.settings, self.random
        if self.next_stall_s < 0:
            self.next_stall_s = random.expovariate(settings.stalls_per_s)
        while self.next_stall_s <= time_s:
            end_s = self.next_stall_s + random.uniform(*settings.stall_s)
            if end_s > time_s:
                return end_s
            self.next_stall_s = end_s + random.expovariate(settings.stalls_per_s)
        return time_s

    def _radio_s(self) -> float:
        settings, random, extra_s = self.settings, self.random, 0.0
        if settings.jitter_s:
            extra_s = random.expovariate(1 / settings.jitter_s)
        if settings.spike_share and random.random() < settings.spike_share:
            extra_s += random.uniform(*settings.spike_s)
        while settings.retry_share and random.random() < settings.retry_share:
            extra_s += settings.retry_s
        return extra_s


@dataclass(frozen=True, slots=True)
class Link:
    """Both directions of a link: `up` is from the client to the server."""

    up: Direction
    down: Direction

    def channels(self, clock: Clock, random: Random) -> tuple[Channel, Channel]:
        """The state of both, which sleep and wake together."""
        activity = Activity()
        return Channel(clock, random, self.up, activity), Channel(clock, random, self.down, activity)

    @property
    def round_trip_s(self) -> float:
        """The median round trip of small packets over the link while it is awake and empty."""
        return _median_round_trip_s(self)


@lru_cache(maxsize=4096)
def _median_round_trip_s(link: Link) -> float:
    """By drawing 301 round trips."""
    random, times = Random(1), []
    for _ in range(301):
        time_s = 0.0
        for direction in (link.up, link.down):
            channel = Channel(Clock(), random, direction, Activity(last_s=0.0), next_stall_s=float("inf"))
            arrival_s = None
            while arrival_s is None:
                arrival_s = channel.carry(80)
            time_s += arrival_s
        times.append(time_s)
    return sorted(times)[150]


def line(round_trip_s: float, *, jitter_s: float = 5e-5, rate_bit_s: float = 1e9, loss_share: float = 0.0) -> Link:
    """A wire of this round trip, the same both ways."""
    direction = Direction(round_trip_s / 2, rate_bit_s, jitter_s=jitter_s, loss_share=loss_share)
    return Link(direction, direction)
