"""Experiments whose connections are end to end, with everything on the way that could look like a split."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import replace

from benchmarks.fresh import middleboxes
from benchmarks.fresh.client import Job
from benchmarks.fresh.path import NetworkPath, PathPlan
from benchmarks.fresh.scenario import (
    HTTP,
    OTHER,
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

Draw = Callable[[random.Random], Scenario]


def _download(chance: random.Random, plan: PathPlan | None = None, **rest: object) -> Scenario:
    """A bulk download over a plan (a drawn one where none is given)."""
    plan = plan or cellular(chance)
    return Scenario("regular", plan, downloads(chance, [bulk(chance, plan)]), **rest)  # type: ignore[arg-type]


def _plain(chance: random.Random) -> Scenario:
    return _download(chance)


def _bbr(chance: random.Random) -> Scenario:
    return _download(chance, replace(cellular(chance), congestion_control="bbr"), origin_congestion_control="bbr")


def _masquerade(chance: random.Random) -> Scenario:
    plan = cellular(chance)
    return Scenario(
        "regular", plan, downloads(chance, [bulk(chance, plan) // 3, 30_000, 9_000]), middle=middleboxes.masquerade
    )


def _forwarded_port(chance: random.Random) -> Scenario:
    plan = cellular(chance)
    size = bulk(chance, plan, seconds=1.5)

    def jobs(path: NetworkPath) -> list[Job]:
        made = downloads(chance, [size, 20_000], port=9000)(path)
        return [replace(job, host=path.cell_address) for job in made]

    return Scenario("regular", plan, jobs, middle=lambda path: middleboxes.forward_port(path, 9000, HTTP))


def _clamped(chance: random.Random) -> Scenario:
    return _download(chance, middle=lambda path: middleboxes.clamp_segments(path, 1130))


def _rewritten_headers(chance: random.Random) -> Scenario:
    fields = {"rewrite": ("ip-id", "ttl", "dscp")}
    return _download(chance, with_links(cellular(chance), wired_down=fields, cell_up=fields))


def _rewritten_ids_without_timestamps(chance: random.Random) -> Scenario:
    plan = with_links(cellular(chance), wired_down={"rewrite": ("ip-id",)}, cell_up={"rewrite": ("ip-id",)})
    return _download(chance, replace(plan, settings=everywhere(tcp_timestamps="0")))


def _slow_reader(chance: random.Random) -> Scenario:
    plan = cellular(chance)
    rate = plan.cell_down.rate_bit_s / 8 * 0.4
    return Scenario(
        "regular",
        plan,
        downloads(chance, [int(rate * 4)], read_bytes_s=rate, receive_buffer=chance.choice((0, 40_000))),
    )


def _slow_server_reader(chance: random.Random) -> Scenario:
    plan = cellular(chance)
    rate = plan.cell_up.rate_bit_s / 8 * 0.4
    return Scenario("regular", plan, uploads(chance, [int(rate * 4)], query=f"&read={rate:.0f}"))


def _deep_buffer(chance: random.Random) -> Scenario:
    plan = with_links(cellular(chance), cell_down={"queue_bytes": 3_000_000, "rate_bit_s": chance.uniform(1e6, 2e6)})
    return _download(chance, plan)


def _swinging_rate(chance: random.Random) -> Scenario:
    swing = {"rate_swing": 0.85, "jitter_ms": 12.0, "queue_bytes": 400_000}
    return _download(chance, with_links(cellular(chance), cell_down=swing, cell_up={"jitter_ms": 9.0}))


def _lossy(chance: random.Random) -> Scenario:
    return _download(chance, with_links(cellular(chance), cell_down={"loss": 0.02}, wired_up={"loss": 0.01}))


def _reordered(chance: random.Random) -> Scenario:
    disorder = {"reordered": 0.03, "duplicated": 0.01}
    return _download(chance, with_links(cellular(chance), wired_down=disorder, cell_up=disorder))


def _thinned(chance: random.Random) -> Scenario:
    return _download(chance, with_links(cellular(chance), cell_up={"acknowledgements_lost": 0.5}))


def _short(chance: random.Random) -> Scenario:
    sizes = [chance.randrange(1_500, 12_000) for _ in range(10)]
    return Scenario("regular", cellular(chance), downloads(chance, sizes, spread_s=1.5))


def _short_without_timestamps(chance: random.Random) -> Scenario:
    plan = replace(cellular(chance), settings=everywhere(tcp_timestamps="0"))
    sizes = [chance.randrange(1_500, 12_000) for _ in range(8)]
    return Scenario("regular", plan, downloads(chance, sizes, spread_s=1.0))


def _same_object(chance: random.Random) -> Scenario:
    """Several connections that fetch the same bytes: only the token in the request distinguishes them."""
    plan = cellular(chance)

    def jobs(path: NetworkPath) -> list[Job]:
        made = downloads(chance, [40_000] * 6, spread_s=0.5)(path)
        return [replace(job, requests=[{**job.requests[0], "name": "same"}]) for job in made]

    return Scenario("regular", plan, jobs, middle=middleboxes.masquerade)


def _uploads(chance: random.Random) -> Scenario:
    plan = cellular(chance)
    size = int(plan.cell_up.rate_bit_s / 8 * 2)
    return Scenario("regular", plan, uploads(chance, [size, size // 4, 6_000]))


def _terminal(chance: random.Random) -> Scenario:
    return Scenario("regular", cellular(chance), chats(chance, 60, count=2))


def _terminal_without_timestamps(chance: random.Random) -> Scenario:
    plan = replace(cellular(chance), settings=everywhere(tcp_timestamps="0"))
    return Scenario("regular", plan, chats(chance, 60, count=2))


def _keep_alive(chance: random.Random) -> Scenario:
    mark = chance.randrange(10**6)
    sizes = [chance.randrange(500, 90_000) for _ in range(8)]
    requests = [{"name": f"k{n}", "token": f"t{mark}-{n}", "bytes": size} for n, size in enumerate(sizes)]
    return Scenario(
        "regular", cellular(chance), lambda path: [Job(path.server_address, HTTP, requests=requests, gap_s=0.15)]
    )


def _long_idle(chance: random.Random) -> Scenario:
    mark = chance.randrange(10**6)
    requests = [{"name": f"k{n}", "token": f"t{mark}-{n}", "bytes": 60_000} for n in range(3)]
    return Scenario(
        "regular", cellular(chance), lambda path: [Job(path.server_address, HTTP, requests=requests, gap_s=4.0)]
    )


def _tiny(chance: random.Random, plan: PathPlan | None = None) -> Scenario:
    """One request and one answer of one segment each."""
    sizes = [chance.randrange(1, 1_200) for _ in range(40)]
    return Scenario("regular", plan or cellular(chance), downloads(chance, sizes, spread_s=1.5))


def _tiny_without_timestamps(chance: random.Random) -> Scenario:
    return _tiny(chance, replace(cellular(chance), settings=everywhere(tcp_timestamps="0")))


def _tiny_on_one_lan(chance: random.Random) -> Scenario:
    return _tiny(chance, PathPlan(local=True))


def _on_one_lan(chance: random.Random) -> Scenario:
    """First packets wait for addresses to be resolved, longer than any packet after them takes."""
    loads = downloads(chance, [2_000_000, 9_000, 200]), uploads(chance, [800_000]), chats(chance, 40, gap_s=0.01)
    return Scenario("regular", PathPlan(local=True), lambda path: [job for load in loads for job in load(path)])


def _parallel(chance: random.Random) -> Scenario:
    sizes = [chance.randrange(3_000, 80_000) for _ in range(24)]
    return Scenario("regular", cellular(chance), downloads(chance, sizes))


def _paced_server(chance: random.Random) -> Scenario:
    """The server itself sends slowly, in small writes: the application is the limit."""
    return Scenario("regular", cellular(chance), downloads(chance, [150_000], query="&pace=60000&delay=0.7"))


def _without(name: str) -> Draw:
    def draw(chance: random.Random) -> Scenario:
        return _download(chance, replace(cellular(chance), settings=everywhere(**{name: "0"})))

    return draw


def _bare(chance: random.Random) -> Scenario:
    """No TCP option but the MSS."""
    off = everywhere(tcp_timestamps="0", tcp_sack="0", tcp_window_scaling="0")
    return _download(chance, replace(with_links(cellular(chance), cell_down={"loss": 0.01}), settings=off))


def _offloads(chance: random.Random) -> Scenario:
    plan = replace(cellular(chance), ethernet=True)
    return Scenario("regular", plan, downloads(chance, [bulk(chance, plan), 15_000]))


def _offloads_without_timestamps(chance: random.Random) -> Scenario:
    plan = replace(cellular(chance), ethernet=True, settings=everywhere(tcp_timestamps="0"))
    return Scenario("regular", plan, downloads(chance, [bulk(chance, plan)]))


def _small_mtu(chance: random.Random) -> Scenario:
    return _download(chance, replace(cellular(chance), cell_mtu=1340))


def _cut(chance: random.Random) -> Scenario:
    edits = Edits(offset_s=chance.uniform(-3, 3), begin={"server": 0.3, "mobile": 0.25}, end={"mobile": 0.2})
    return _download(chance, edits=edits)


def _cut_without_timestamps(chance: random.Random) -> Scenario:
    plan = replace(cellular(chance), settings=everywhere(tcp_timestamps="0"))
    return _download(chance, plan, edits=Edits(begin={"server": 0.3, "mobile": 0.25}, end={"server": 0.2}))


def _snapped(length: int) -> Draw:
    return lambda chance: _download(chance, snap_length=length)


def _dropped(chance: random.Random) -> Scenario:
    return _download(chance, edits=Edits(dropped={"server": 0.06, "mobile": 0.1}, drift_ppm=chance.uniform(-80, 80)))


def _dropped_and_lossy(chance: random.Random) -> Scenario:
    plan = with_links(cellular(chance), cell_down={"loss": 0.02})
    plan = replace(plan, settings=everywhere(tcp_timestamps="0"))
    return _download(chance, plan, edits=Edits(dropped={"server": 0.05, "mobile": 0.05}))


def _wild_clock(chance: random.Random) -> Scenario:
    edits = Edits(
        offset_s=chance.uniform(-900, 900), drift_ppm=chance.uniform(-300, 300), steps=((0.3, -0.4), (0.7, 1.1))
    )
    return _download(chance, edits=edits)


def _wild_clock_both_ways(chance: random.Random) -> Scenario:
    edits = Edits(offset_s=chance.uniform(-9, 9), drift_ppm=chance.uniform(-200, 200), steps=((0.5, -0.25),))
    return Scenario("regular", cellular(chance), chats(chance, 70, count=1), edits=edits)


def _version_6(chance: random.Random) -> Scenario:
    plan = cellular(chance)
    size = bulk(chance, plan, seconds=1.5)

    def jobs(path: NetworkPath) -> list[Job]:
        return [replace(job, host=path.server_address_6) for job in downloads(chance, [size, 9_000])(path)]

    return Scenario("regular", plan, jobs)


def _version_6_without_timestamps(chance: random.Random) -> Scenario:
    """No IP ID, no timestamps: hardly anything identifies a packet."""
    drawn = _version_6(chance)
    return replace(drawn, plan=replace(drawn.plan, settings=everywhere(tcp_timestamps="0")))


def _resets(chance: random.Random) -> Scenario:
    def jobs(path: NetworkPath) -> list[Job]:
        aborted = downloads(chance, [400_000] * 3, spread_s=0.6, abort_after=chance.randrange(1, 60_000))(path)
        cut = downloads(chance, [100_000] * 2, query="&reset=30000")(path)
        refused = downloads(chance, [1_000], port=81)(path)
        return aborted + cut + refused

    return Scenario("regular", cellular(chance), jobs)


def _fast_path(chance: random.Random) -> Scenario:
    """Both links fast and short: timing is weak evidence."""
    plan = cellular(chance, slow_cell=False)
    near = {"delay_ms": 0.4, "rate_bit_s": 20e6}
    plan = with_links(plan, wired_down=near, wired_up=near, cell_down=near, cell_up=near)
    return Scenario("regular", plan, downloads(chance, [2_000_000, 8_000]))


def _port_reuse(chance: random.Random) -> Scenario:
    """One connection after another from the same port."""
    port = chance.randrange(20_000, 30_000)

    def jobs(path: NetworkPath) -> list[Job]:
        made = downloads(chance, [25_000, 45_000], spread_s=5.0, port=OTHER)(path)
        return [replace(job, source_port=port) for job in made]

    return Scenario("regular", cellular(chance), jobs, edits=Edits(offset_s=chance.uniform(-40, 40)))


REGULAR: Mapping[str, Draw] = {
    "plain": _plain,
    "bbr": _bbr,
    "masquerade": _masquerade,
    "forwarded-port": _forwarded_port,
    "clamped": _clamped,
    "rewritten-headers": _rewritten_headers,
    "rewritten-ids-nots": _rewritten_ids_without_timestamps,
    "slow-reader": _slow_reader,
    "slow-server-reader": _slow_server_reader,
    "deep-buffer": _deep_buffer,
    "swinging-rate": _swinging_rate,
    "lossy": _lossy,
    "reordered": _reordered,
    "thinned": _thinned,
    "short": _short,
    "short-nots": _short_without_timestamps,
    "tiny": _tiny,
    "tiny-nots": _tiny_without_timestamps,
    "tiny-local": _tiny_on_one_lan,
    "local": _on_one_lan,
    "same-object": _same_object,
    "uploads": _uploads,
    "terminal": _terminal,
    "terminal-nots": _terminal_without_timestamps,
    "keep-alive": _keep_alive,
    "long-idle": _long_idle,
    "parallel": _parallel,
    "paced-server": _paced_server,
    "no-timestamps": _without("tcp_timestamps"),
    "no-sack": _without("tcp_sack"),
    "no-window-scaling": _without("tcp_window_scaling"),
    "bare": _bare,
    "offloads": _offloads,
    "offloads-nots": _offloads_without_timestamps,
    "small-mtu": _small_mtu,
    "cut": _cut,
    "cut-nots": _cut_without_timestamps,
    "snap68": _snapped(68),
    "snap96": _snapped(96),
    "dropped": _dropped,
    "dropped-lossy-nots": _dropped_and_lossy,
    "wild-clock": _wild_clock,
    "wild-clock-terminal": _wild_clock_both_ways,
    "ipv6": _version_6,
    "ipv6-nots": _version_6_without_timestamps,
    "resets": _resets,
    "fast-path": _fast_path,
    "port-reuse": _port_reuse,
}
