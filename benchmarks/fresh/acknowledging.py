"""Experiments with a middlebox that acknowledges: before the receiver has the data (split), or only after."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import replace

from benchmarks.fresh import middleboxes
from benchmarks.fresh.path import PathPlan
from benchmarks.fresh.scenario import (
    Edits,
    Scenario,
    bulk,
    cellular,
    chats,
    downloads,
    everywhere,
    uploads,
    with_links,
)
from benchmarks.fresh.truth import LOCAL_ACKNOWLEDGEMENT

Draw = Callable[[random.Random], Scenario]
_OWN = "local acknowledgement of this package"


def _local(
    chance: random.Random, plan: PathPlan | None = None, box: Mapping[str, object] | None = None, **rest: object
) -> Scenario:
    """A bulk download and a short one over a slow cell, acknowledged in the middle."""
    plan = plan or cellular(chance)
    chosen = {
        "identification": chance.choice(("counter", "zero")),
        "buffer_bytes": chance.randrange(150_000, 800_000), **(box or {}),
    }  # fmt: skip
    settings: dict[str, object] = {
        "middle": lambda path: middleboxes.acknowledge_locally(path, **chosen), "software": _OWN,
        "mechanism": LOCAL_ACKNOWLEDGEMENT, "says_itself": True,
        "jobs": downloads(chance, [bulk(chance, plan), 30_000], spread_s=0.5),
    }  # fmt: skip
    return Scenario("split", plan, **{**settings, **rest})  # type: ignore[arg-type]


def _with_box(**box: object) -> Draw:
    return lambda chance: _local(chance, box=box)


def _late(chance: random.Random) -> Scenario:
    """End to end for the first part of the transfer."""
    plan = cellular(chance)
    size = bulk(chance, plan)
    box = {"after_bytes": int(size * chance.uniform(0.2, 0.5))}
    return _local(chance, plan, box, jobs=downloads(chance, [size, 30_000], spread_s=0.5))


def _satellite(chance: random.Random) -> Scenario:
    """One geostationary hop: 250 ms each way."""
    hop = {"delay_ms": chance.uniform(245, 275), "queue_bytes": 400_000}
    plan = with_links(cellular(chance), cell_down=hop, cell_up=hop)
    return _local(chance, plan, {"buffer_bytes": 1_000_000})


def _lossy(chance: random.Random) -> Scenario:
    return _local(chance, with_links(cellular(chance), cell_down={"loss": 0.01}))


def _without_timestamps(chance: random.Random) -> Scenario:
    return _local(chance, replace(cellular(chance), settings=everywhere(tcp_timestamps="0")))


def _upload(chance: random.Random) -> Scenario:
    """The wire behind the middlebox is the bottleneck: bytes are acknowledged long before the server has them."""
    plan = cellular(chance, slow_cell=False)
    size = int(plan.wired_up.rate_bit_s / 8 * 2.5)
    return _local(chance, plan, {"directions": ("up",)}, jobs=uploads(chance, [size, 20_000]))


def _upload_passed(chance: random.Random) -> Scenario:
    plan = cellular(chance, slow_cell=False)
    size = int(plan.wired_up.rate_bit_s / 8 * 2.5)
    box = {"directions": ("up",), "receivers_acknowledgements": "passed"}
    return _local(chance, plan, box, jobs=uploads(chance, [size]))


def _both(chance: random.Random) -> Scenario:
    plan = cellular(chance)
    up, down = int(plan.cell_up.rate_bit_s / 8 * 1.5), bulk(chance, plan, seconds=1.5)
    both = uploads(chance, [up]), downloads(chance, [down])
    return _local(chance, plan, {"directions": ("up", "down")}, jobs=lambda path: both[0](path) + both[1](path))


def _terminal(chance: random.Random) -> Scenario:
    return _local(chance, box={"directions": ("up", "down")}, jobs=chats(chance, 60, count=2))


def _short(chance: random.Random) -> Scenario:
    sizes = [chance.randrange(1_500, 12_000) for _ in range(8)]
    return _local(chance, jobs=downloads(chance, sizes, spread_s=1.2))


def _short_passed(chance: random.Random) -> Scenario:
    """The receiver's own acknowledgements pass as well: few of a middlebox's among them."""
    sizes = [chance.randrange(1_500, 30_000) for _ in range(10)]
    plan = replace(cellular(chance), settings=everywhere(tcp_timestamps="0"))
    return _local(chance, plan, {"receivers_acknowledgements": "passed"}, jobs=downloads(chance, sizes, spread_s=1.0))


def _on_one_lan(chance: random.Random) -> Scenario:
    """Stamps of receiver and middlebox fall into one tick."""
    plan = PathPlan(local=True)
    return _local(
        chance, plan, {"receivers_acknowledgements": "passed"}, jobs=downloads(chance, [300_000, *[3_000] * 5])
    )


def _mixed(chance: random.Random) -> Scenario:
    """Port 80 is acknowledged in the middle, port 8080 is not."""
    plan = cellular(chance)
    size = bulk(chance, plan, seconds=1.2)
    made = downloads(chance, [size, 30_000]), downloads(chance, [size, 30_000], port=8080)
    return _local(chance, plan, jobs=lambda path: made[0](path) + made[1](path))


def _wild_clock(chance: random.Random) -> Scenario:
    edits = Edits(
        offset_s=chance.uniform(-900, 900), drift_ppm=chance.uniform(-300, 300), steps=((0.3, -0.4), (0.7, 1.1))
    )
    return _local(chance, edits=edits)


def _offset_clock(chance: random.Random) -> Scenario:
    return _local(chance, edits=Edits(offset_s=chance.uniform(-5, 5), drift_ppm=chance.uniform(-60, 60)))


def _offloads(chance: random.Random) -> Scenario:
    return _local(chance, replace(cellular(chance), ethernet=True))


def _regenerated(mode: str, **rest: object) -> Draw:
    """ACKs thinned, issued anew or multiplied in the middle, none before the receiver's own."""

    def draw(chance: random.Random) -> Scenario:
        plan = cellular(chance)
        box = {
            "mode": mode, "one_in": chance.randrange(2, 7), "hold_s": chance.uniform(0.005, 0.03),
            "step_bytes": chance.choice((1000, 1448)), **rest,
        }  # fmt: skip
        made = downloads(chance, [bulk(chance, plan), 30_000], spread_s=0.5), uploads(chance, [60_000])
        return Scenario(
            "regular", plan, lambda path: made[0](path) + made[1](path),
            middle=lambda path: middleboxes.packet_box(path, "acknowledgement-regeneration", **box),
            software="ACK regeneration of this package",
        )  # fmt: skip

    return draw


def _at_router(place: str, device: str) -> Draw:
    """One of the captures is taken at the middle, before or behind the middlebox."""
    return lambda chance: _local(chance, capture_at={place: ("middle", device)})


REGULAR: Mapping[str, Draw] = {
    "ack-thinned": _regenerated("thin"),
    "ack-reissued": _regenerated("reissue", one_in=1),
    "ack-reissued-thinned": _regenerated("reissue"),
    "ack-reconstructed": _regenerated("reconstruct"),
}

SPLIT: Mapping[str, Draw] = {
    "localack": _local,
    "localack-passed": _with_box(receivers_acknowledgements="passed"),
    "localack-receiver-window": _with_box(window="receiver"),
    "localack-late": _late,
    "localack-satellite": _satellite,
    "localack-lossy": _lossy,
    "localack-nots": _without_timestamps,
    "localack-upload": _upload,
    "localack-upload-passed": _upload_passed,
    "localack-both": _both,
    "localack-terminal": _terminal,
    "localack-short": _short,
    "localack-short-passed-nots": _short_passed,
    "localack-local": _on_one_lan,
    "localack-mixed": _mixed,
    "localack-clock": _offset_clock,
    "localack-wild-clock": _wild_clock,
    "localack-offloads": _offloads,
    "localack-midpath-mobile": _at_router("mobile", "cell"),
    "localack-midpath-server": _at_router("server", "wired"),
}
