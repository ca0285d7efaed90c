"""Experiments with other hosts: Fast Open, Multipath TCP, TCP stacks in user space, hand-over in mid-connection."""

from __future__ import annotations

import random
import socket
from collections.abc import Callable, Mapping
from dataclasses import replace

from benchmarks.fresh import middleboxes, proxies
from benchmarks.fresh.client import Job
from benchmarks.fresh.origin import PROTOCOLS
from benchmarks.fresh.path import NetworkPath
from benchmarks.fresh.scenario import (
    HTTP,
    Draw,
    Scenario,
    UnavailableError,
    bulk,
    cellular,
    chats,
    downloads,
    everywhere,
    small_buffers,
    uploads,
)

_OWN = "relay of this package"
_FAST_OPEN = everywhere(tcp_fastopen="3")


def _opened_fast(chance: random.Random) -> Scenario:
    """The first connection fetches the cookie, the others send their request in the SYN."""
    plan = replace(cellular(chance), settings=_FAST_OPEN)
    sizes = [9_000, bulk(chance, plan, seconds=2), 25_000, 4_000]
    return Scenario("regular", plan, downloads(chance, sizes, spread_s=4.0, fast_open=True))


def _opened_fast_through_relay(chance: random.Random) -> Scenario:
    plan = small_buffers(cellular(chance))
    settings = {place: {**plan.settings.get(place, {}), **_FAST_OPEN[place]} for place in _FAST_OPEN}
    sizes = [9_000, bulk(chance, plan, seconds=2), 25_000]
    jobs = downloads(chance, sizes, spread_s=4.0, fast_open=True)
    return Scenario(
        "split", replace(plan, settings=settings), jobs, middle=proxies.relay(fast_open=True), software=_OWN
    )


def _multipath(*, subflows: int = 1, relayed: bool = False) -> Draw:
    """Multipath TCP; a relay without support answers with plain TCP."""

    def middle(path: NetworkPath) -> None:
        _require_multipath()
        if subflows > 1:
            middleboxes.two_paths(path)
        if relayed:
            proxies.relay()(path)

    def draw(chance: random.Random) -> Scenario:
        plan = cellular(chance)
        jobs = downloads(chance, [bulk(chance, plan), 20_000], spread_s=0.5, protocol="mptcp")
        truth = "split" if relayed else "regular"
        return Scenario(
            truth, small_buffers(plan) if relayed else plan, jobs, middle=middle, protocol="mptcp", needs=("ip",),
            software=_OWN if relayed else None,
        )  # fmt: skip

    return draw


def _dialogues_in_user_space(chance: random.Random) -> Scenario:
    """Little data of many kinds: what a virtual machine's applications say to their servers."""
    drawn = _in_user_space(middleboxes.slirp, "slirp4netns")(chance)
    loads = chats(chance, 12, count=2), downloads(chance, [600, 9_000, 300], spread_s=1.0), uploads(chance, [2_000])
    return replace(drawn, jobs=lambda path: [job for load in loads for job in load(path)])


def _require_multipath() -> None:
    try:
        socket.socket(socket.AF_INET, socket.SOCK_STREAM, PROTOCOLS["mptcp"]).close()
    except OSError as error:
        raise UnavailableError(f"Multipath TCP in the kernel ({error})") from error


def _in_user_space(
    attach: Callable[[NetworkPath], None], program: str, *, upload: bool = False, ethernet: bool = False
) -> Draw:
    """The client's own machine ends its connections in a process and opens others from its kernel.

    slirp4netns has a whole TCP stack (libslirp) between the client and the sockets. pasta answers the client with
    segments of its own (other ISN, no timestamps) made from what the socket's receive queue holds, and acknowledges
    what the far end has acknowledged to the socket; towards the server it is an ordinary socket. Both split."""

    def draw(chance: random.Random) -> Scenario:
        plan = replace(cellular(chance), ethernet=ethernet)
        load = downloads(chance, [bulk(chance, plan), 30_000, 5_000], spread_s=0.5)
        if upload:
            load = uploads(chance, [int(plan.cell_up.rate_bit_s / 8 * 2), 30_000])
        return Scenario(
            "split", plan, load, middle=attach, kind_shows=False, needs=(program,), software=program,
        )  # fmt: skip

    return draw


def _handed_over(chance: random.Random) -> Scenario:
    """Handshake and first part end to end, the rest through the middle's sockets."""
    plan = small_buffers(cellular(chance))
    size = bulk(chance, plan, seconds=3)
    after = int(size * chance.uniform(0.15, 0.4))
    jobs = downloads(chance, [size, int(after * 0.5)], spread_s=0.5)
    return Scenario(
        "split", plan, jobs, middle=lambda path: middleboxes.take_over(path, HTTP, after), says_itself=True,
        software="hand-over of this package", kind_shows=False,
    )  # fmt: skip


def _handed_over_early(chance: random.Random) -> Scenario:
    """The middle takes over as soon as the server has answered at all."""
    plan = small_buffers(cellular(chance))
    jobs: Callable[[NetworkPath], list[Job]] = downloads(chance, [bulk(chance, plan), 60_000], spread_s=0.5)
    return Scenario(
        "split", plan, jobs, middle=lambda path: middleboxes.take_over(path, HTTP, 1), says_itself=True,
        software="hand-over of this package", kind_shows=False,
    )  # fmt: skip


REGULAR: Mapping[str, Draw] = {
    "fast-open": _opened_fast,
    "mptcp": _multipath(),
    "mptcp-two-subflows": _multipath(subflows=2),
}

SPLIT: Mapping[str, Draw] = {
    "relay-fast-open": _opened_fast_through_relay,
    "relay-mptcp": _multipath(relayed=True),
    "slirp": _in_user_space(middleboxes.slirp, "slirp4netns"),
    "slirp-dialogues": _dialogues_in_user_space,
    "slirp-upload": _in_user_space(middleboxes.slirp, "slirp4netns", upload=True),
    "pasta": _in_user_space(middleboxes.pasta, "pasta", ethernet=True),
    "pasta-upload": _in_user_space(middleboxes.pasta, "pasta", upload=True, ethernet=True),
    "handover": _handed_over,
    "handover-early": _handed_over_early,
}
