"""Experiments with middleboxes that rewrite headers or answer handshakes, and end no connection."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace

from benchmarks.fresh import middleboxes
from benchmarks.fresh.client import Job
from benchmarks.fresh.packets import Option
from benchmarks.fresh.path import NetworkPath
from benchmarks.fresh.scenario import (
    CHAT,
    HTTP,
    Draw,
    Scenario,
    bulk,
    cellular,
    chats,
    downloads,
    everywhere,
    uploads,
)


def _mixed_load(chance: random.Random, plan_seconds: float = 2.0, **settings: str) -> Scenario:
    """A bulk download, a short one, an upload and a dialogue, end to end."""
    plan = cellular(chance)
    plan = replace(plan, settings=everywhere(**settings)) if settings else plan
    loads = (
        downloads(chance, [bulk(chance, plan, seconds=plan_seconds), 9_000], spread_s=0.4),
        uploads(chance, [40_000]),
        chats(chance, 25),
    )
    return Scenario("regular", plan, lambda path: [job for load in loads for job in load(path)])


def _normalised(**box: object) -> Draw:
    def draw(chance: random.Random) -> Scenario:
        return replace(
            _mixed_load(chance), software="normaliser of this package",
            middle=lambda path: middleboxes.packet_box(path, "normaliser", **box),
        )  # fmt: skip

    return draw


def _normalised_drawn(chance: random.Random) -> Scenario:
    """What one administrator or another switches on."""
    box = {
        "isn": chance.choice((["client", "server"], ["client"], ["server"])),
        "identification": chance.random() < 0.7, "timestamps": chance.choice(("keep", "shift", "strip")),
        "strip": chance.sample((int(Option.SACK_PERMITTED), int(Option.SCALE), 30, 34), chance.randrange(3)),
        "most_segment": chance.choice((65_535, 1440, 1300)), "fragment": chance.random() < 0.7,
        "least_hops": chance.choice((0, 64, 255)), "most_window": chance.choice((65_535, 32_768)),
    }  # fmt: skip
    return _normalised(**box)(chance)


def _syn_proxy(*offered: str) -> Draw:
    def draw(chance: random.Random) -> Scenario:
        return replace(
            _mixed_load(chance), needs=("iptables",), software="SYNPROXY of netfilter",
            middle=lambda path: middleboxes.syn_proxy(path, (HTTP, CHAT), *offered),
        )  # fmt: skip

    return draw


def _syn_proxy_beside_captures(chance: random.Random) -> Scenario:
    """Captures right before the proxy and at the server: neither handshake crosses the path between them."""
    scenario = _syn_proxy("--sack-perm", "--timestamp", "--wscale", "7")(chance)
    return replace(scenario, capture_at={"mobile": ("middle", "cell")})


def _denied_stamps(chance: random.Random) -> Scenario:
    """The server believes that timestamps were agreed on, the mobile does not, and nothing splits the connection."""
    return replace(
        _mixed_load(chance), needs=("iptables",), software="TCPOPTSTRIP of netfilter",
        middle=lambda path: middleboxes.strip_from_answers(path, "timestamp"),
    )  # fmt: skip


def _translated(chance: random.Random) -> Scenario:
    """IPv6 at the mobile, IPv4 at the server."""
    plan = cellular(chance)
    load = downloads(chance, [bulk(chance, plan, seconds=2), 9_000, 40_000], spread_s=0.4)
    address = "2001:db8:64::{}"

    def jobs(path: NetworkPath) -> list[Job]:
        return [replace(job, host=address.format(path.server_address)) for job in load(path)]

    return Scenario(
        "regular", plan, jobs, needs=("tayga",), software="tayga",
        middle=lambda path: middleboxes.translate(path, address),
    )  # fmt: skip


_ALL = {"identification": True, "fragment": True, "least_hops": 64}
_NOTHING = {"isn": (), "identification": False, "fragment": False, "timestamps": "keep"}

REGULAR: Mapping[str, Draw] = {
    "scrub": _normalised(**_ALL, timestamps="shift", most_segment=1440),
    "scrub-nots": _normalised(**_ALL, timestamps="strip"),
    "scrub-stripped": _normalised(
        **_ALL, timestamps="strip", strip=(int(Option.SACK_PERMITTED), int(Option.SCALE)), most_segment=1300
    ),
    "scrub-window": _normalised(**_ALL, timestamps="keep", most_window=24_000),
    "scrub-drawn": _normalised_drawn,
    "regulated-window": _normalised(**_NOTHING, most_window=400, window_period_s=0.6),
    "resegmented": _normalised(**_NOTHING, most_payload=900),
    "syn-proxy": _syn_proxy("--sack-perm", "--timestamp", "--wscale", "7"),
    "syn-proxy-bare": _syn_proxy(),
    "syn-proxy-midpath": _syn_proxy_beside_captures,
    "denied-stamps": _denied_stamps,
    "nat64": _translated,
}
