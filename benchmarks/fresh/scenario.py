"""One experiment: path, middle, transfers, how it is captured, and what is therefore true."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from benchmarks.fresh.client import Job
from benchmarks.fresh.links import Link
from benchmarks.fresh.path import NetworkPath, PathPlan

#: Ports of the origin: HTTP, HTTP that is never intercepted, chat.
HTTP, OTHER, CHAT = 80, 8080, 2222


class UnavailableError(Exception):
    """This machine lacks what an experiment needs; the message names it."""


#: A store shows itself in transfers of more than two unscaled receive windows.
STORE_SHOWS_BYTES = 150_000

#: A relay shows itself where its buffers hold less than half of the transfer.
RELAY_SHOWS_SHARE = 0.5

#: What a relay's application holds beside its sockets, at most: tinyproxy's buffer is the largest of those used here.
APPLICATION_BYTES = 96 * 1024


@dataclass(frozen=True, slots=True)
class Edits:
    """What clocks and capture tools do to the captures afterwards.

    `offset_s`, `drift_ppm` and `steps` (place in the capture from 0 to 1, seconds) belong to the mobile's clock;
    `begin` and `end` cut a capture (by place: share of its duration left out), `dropped` loses bursts of packets
    (share).
    """

    offset_s: float = 0.0
    drift_ppm: float = 0.0
    steps: tuple[tuple[float, float], ...] = ()
    begin: dict[str, float] = field(default_factory=dict)
    end: dict[str, float] = field(default_factory=dict)
    dropped: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Scenario:
    """`truth` is the class of intercepted connections (`regular`, `split`, `proxy`); `kind_shows` whether a split of
    large transfers can be told from a store-and-forward proxy; `relays` how many stand in a row; `other_content` that
    the two legs carry different bytes, so that no method can pair them; `needs` are programs without which it cannot
    run; `must_log` is a file and what a proxy must have written into it for the truth to hold; `mechanism` how the
    split is made, where that does not follow from its kind (see `truth.MECHANISM_OF_KIND`); `rewrites_heads` that the
    proxy writes HTTP heads anew (RFC 9110, 7.6), so that "rewriting" names it, too; `says_itself` that the middlebox
    logs each connection that it split, and that all others are end to end; `capture_at` is where a capture is taken
    other than at its host, as the path's place and a device; `same_leg` that both are taken on the mobile's leg of a
    split; `protocol` the server's protocol, `tcp` or `mptcp`."""

    truth: str
    plan: PathPlan
    jobs: Callable[[NetworkPath], list[Job]]
    middle: Callable[[NetworkPath], None] = lambda _: None
    intercepted: tuple[int, ...] = (HTTP, CHAT)
    kind_shows: bool = True
    relays: int = 1
    must_log: tuple[str, str] | None = None
    other_content: bool = False
    mechanism: str | None = None
    says_itself: bool = False
    rewrites_heads: bool = False
    capture_at: dict[str, tuple[str, str]] = field(default_factory=dict)
    capture_link_type: str | None = None
    same_leg: bool = False
    protocol: str = "tcp"
    needs: tuple[str, ...] = ()
    software: str | None = None
    snap_length: int = 128
    edits: Edits = field(default_factory=Edits)
    origin_congestion_control: str = "cubic"

    @property
    def programs(self) -> tuple[str, ...]:
        """The programs that this experiment runs: what it names itself, and what sets offloads on Ethernet."""
        return (*self.needs, "ethtool") if self.plan.ethernet or self.plan.local else self.needs


#: An experiment as it is drawn from chance.
Draw = Callable[[random.Random], Scenario]


def cellular(chance: random.Random, *, slow_cell: bool = True) -> PathPlan:
    """A wired and a cellular link with drawn delays, rates and queues; `slow_cell` puts the bottleneck at the cell."""
    wired_delay, cell_delay = chance.uniform(5, 40), chance.uniform(12, 60)
    wired_rate = chance.uniform(20e6, 40e6) if slow_cell else chance.uniform(1.5e6, 4e6)
    cell_rate = chance.uniform(1.5e6, 5e6) if slow_cell else chance.uniform(15e6, 30e6)
    up_rate = chance.uniform(1e6, 3e6) if slow_cell else chance.uniform(8e6, 16e6)
    queue = int(chance.uniform(40_000, 200_000))
    return PathPlan(
        wired_down=Link(wired_delay, wired_rate, 150_000), wired_up=Link(wired_delay, wired_rate, 150_000),
        cell_down=Link(cell_delay, cell_rate, queue), cell_up=Link(cell_delay, up_rate, queue),
        congestion_control=chance.choice(("cubic", "cubic", "reno", "bbr")),
    )  # fmt: skip


def small_buffers(plan: PathPlan) -> PathPlan:
    """The plan with at most 64 KiB in each of the middle's sockets, so that a relay must hold the sender back."""
    limits = {"net.ipv4.tcp_rmem": "4096 32768 65536", "net.ipv4.tcp_wmem": "4096 32768 65536"}
    return replace(plan, settings={**plan.settings, "middle": {**plan.settings.get("middle", {}), **limits}})


def with_links(plan: PathPlan, **changes: Mapping[str, object]) -> PathPlan:
    """The plan with some links changed, e.g. `cell_down={"loss": 0.01}`."""
    for name, change in changes.items():
        plan = replace(plan, **{name: replace(getattr(plan, name), **change)})
    return plan


def everywhere(**settings: str) -> dict[str, dict[str, str]]:
    """One kernel parameter of TCP at all places, by its short name."""
    full = {f"net.ipv4.{key}": value for key, value in settings.items()}
    return dict.fromkeys(("server", "middle", "mobile"), full)


def downloads(
    chance: random.Random, sizes: list[int], *, spread_s: float = 0.0, port: int = HTTP, query: str = "", **job: object
) -> Callable[[NetworkPath], list[Job]]:
    """One connection a size, started over `spread_s`."""
    mark = chance.randrange(10**6)
    starts = [spread_s * number / max(1, len(sizes)) for number in range(len(sizes))]

    def make(path: NetworkPath) -> list[Job]:
        return [
            Job(
                path.server_address, port, start_s=start, congestion_control=path.plan.congestion_control,
                requests=[{"name": f"d{mark}-{number}", "token": f"t{mark}-{number}", "bytes": size, "query": query}],
                **job,  # type: ignore[arg-type]
            )
            for number, (size, start) in enumerate(zip(sizes, starts, strict=True))
        ]  # fmt: skip

    return make


def uploads(
    chance: random.Random, sizes: list[int], *, query: str = "", **job: object
) -> Callable[[NetworkPath], list[Job]]:
    """One upload a size, all at once."""
    mark = chance.randrange(10**6)

    def make(path: NetworkPath) -> list[Job]:
        return [
            Job(
                path.server_address, HTTP, congestion_control=path.plan.congestion_control,
                requests=[
                    {"name": f"u{mark}", "token": f"t{mark}-{number}", "bytes": 200, "put": size, "query": query}
                ],
                **job,  # type: ignore[arg-type]
            )
            for number, size in enumerate(sizes)
        ]  # fmt: skip

    return make


def chats(
    chance: random.Random, lines: int, *, gap_s: float = 0.05, count: int = 1
) -> Callable[[NetworkPath], list[Job]]:
    """Request and answer in small pieces over one connection, as a terminal session does."""
    mark = chance.randrange(10**6)
    talks = [[(chance.randrange(1, 80), chance.randrange(1, 900)) for _ in range(lines)] for _ in range(count)]

    def make(path: NetworkPath) -> list[Job]:
        return [
            Job(path.server_address, CHAT, chat=talk, token=f"t{mark}-{number}", gap_s=gap_s)
            for number, talk in enumerate(talks)
        ]

    return make


def bulk(chance: random.Random, plan: PathPlan, *, seconds: float = 2.5) -> int:
    """Bytes that take about this long on the slowest link down."""
    rate = min(plan.wired_down.rate_bit_s, plan.cell_down.rate_bit_s)
    return int(rate / 8 * seconds * chance.uniform(0.8, 1.2))
