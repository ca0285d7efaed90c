"""Experiments whose captures are taken elsewhere than at a host's own interface: on the router, on all interfaces."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Any

from benchmarks.fresh import middleboxes, proxies
from benchmarks.fresh.path import NetworkPath
from benchmarks.fresh.scenario import Draw, Edits, Scenario, bulk, cellular, downloads, small_buffers, uploads

_SLL = "LINUX_SLL"
_ANY = {"server": ("server", "any"), "mobile": ("mobile", "any")}


def _regular(middle: Callable[[NetworkPath], None] | None = None, **rest: Any) -> Draw:
    def draw(chance: random.Random) -> Scenario:
        plan = cellular(chance)
        loads = downloads(chance, [bulk(chance, plan, seconds=2), 12_000], spread_s=0.4), uploads(chance, [50_000])
        chosen = {"middle": middle, **rest} if middle else rest
        return Scenario("regular", plan, lambda path: loads[0](path) + loads[1](path), **chosen)

    return draw


def _relayed(*, truth: str = "split", **rest: Any) -> Draw:
    def draw(chance: random.Random) -> Scenario:
        plan = small_buffers(cellular(chance))
        jobs = downloads(chance, [bulk(chance, plan), 12_000], spread_s=0.4)
        return Scenario(
            truth, plan, jobs, middle=proxies.relay(), software="relay of this package", **rest,
        )  # fmt: skip

    return draw


def _at(**places: tuple[str, str]) -> dict[str, Any]:
    return {"capture_at": places}


def _tiny_twice(chance: random.Random) -> Scenario:
    """One request and one answer of one segment each, every packet at two interfaces of the router."""
    sizes = [chance.randrange(1, 1_200) for _ in range(30)]
    return Scenario(
        "regular", cellular(chance), downloads(chance, sizes, spread_s=1.5), **_at(mobile=("middle", "any"))
    )


REGULAR: Mapping[str, Draw] = {
    "midpath-server": _regular(**_at(server=("middle", "wired"))),
    "midpath-mobile": _regular(**_at(mobile=("middle", "cell"))),
    "midpath-mobile-nat": _regular(middleboxes.masquerade, **_at(mobile=("middle", "cell"))),
    "midpath-both": _regular(middleboxes.masquerade, **_at(server=("middle", "wired"), mobile=("middle", "cell"))),
    "midpath-any": _regular(**_at(server=("middle", "any"))),
    "midpath-clock": _regular(**_at(server=("middle", "wired")), edits=Edits(offset_s=1.7, drift_ppm=40.0)),
    "midpath-any-tiny": _tiny_twice,
    "one-leg-of-relay": _relayed(truth="split", same_leg=True, **_at(server=("middle", "cell"))),
    "any-sll2": _regular(capture_at=_ANY),
    "any-sll": _regular(capture_at=_ANY, capture_link_type=_SLL),
    "any-one-end": _regular(capture_at={"mobile": ("mobile", "any")}),
}

SPLIT: Mapping[str, Draw] = {
    "midpath-server-relay": _relayed(**_at(server=("middle", "wired"))),
    "midpath-mobile-relay": _relayed(**_at(mobile=("middle", "cell"))),
    "midpath-both-relay": _relayed(**_at(server=("middle", "wired"), mobile=("middle", "cell"))),
    "any-relay": _relayed(capture_at=_ANY),
}
