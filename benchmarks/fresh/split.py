"""Experiments in which a proxy takes the connections, by software that `tests/corpus` does not have."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import replace

from benchmarks.fresh import proxies
from benchmarks.fresh.client import Job
from benchmarks.fresh.path import NetworkPath, PathPlan
from benchmarks.fresh.scenario import (
    CHAT,
    HTTP,
    OTHER,
    Edits,
    Scenario,
    bulk,
    cellular,
    chats,
    downloads,
    everywhere,
    small_buffers,
    uploads,
    with_links,
)

Draw = Callable[[random.Random], Scenario]
_OWN = "relay of this package"
_FILTERED = ("privoxy.out", "filtering")


def _relayed(chance: random.Random, plan: PathPlan | None = None, **rest: object) -> Scenario:
    """A bulk download through our own relay, both addresses and ports spoofed, bounded buffers."""
    plan = plan or cellular(chance)
    plan = small_buffers(plan) if chance.random() < 0.7 else plan
    settings: dict[str, object] = {
        "middle": proxies.relay(), "software": _OWN,
        "jobs": downloads(chance, [bulk(chance, plan)]),
    }  # fmt: skip
    return Scenario("split", plan, **{**settings, **rest})  # type: ignore[arg-type]


def _relay_without(name: str) -> Draw:
    def draw(chance: random.Random) -> Scenario:
        return _relayed(chance, replace(cellular(chance), settings=everywhere(**{name: "0"})))

    return draw


def _relay_bare(chance: random.Random) -> Scenario:
    off = everywhere(tcp_timestamps="0", tcp_sack="0", tcp_window_scaling="0")
    return _relayed(chance, replace(cellular(chance), settings=off))


def _relay_queueless(chance: random.Random) -> Scenario:
    """The cell is faster than the wire: nothing waits in the relay."""
    return _relayed(chance, cellular(chance, slow_cell=False), kind_shows=False)


def _relay_queueless_without_timestamps(chance: random.Random) -> Scenario:
    plan = replace(cellular(chance, slow_cell=False), settings=everywhere(tcp_timestamps="0"))
    return _relayed(chance, plan, kind_shows=False)


def _relay_at_mobile(chance: random.Random) -> Scenario:
    """The relay sits in the mobile's own network."""
    near = {"delay_ms": 0.2, "rate_bit_s": 20e6}
    plan = with_links(cellular(chance, slow_cell=False), cell_down=near, cell_up=near)
    return _relayed(chance, plan, kind_shows=False)


def _relay_at_server(chance: random.Random) -> Scenario:
    """The relay sits beside the server, as a load balancer does."""
    near = {"delay_ms": 0.2, "rate_bit_s": 40e6}
    return _relayed(chance, with_links(cellular(chance), wired_down=near, wired_up=near))


def _relay_on_one_lan(chance: random.Random) -> Scenario:
    """All on one LAN: a relay's program takes longer to wake up than the transfer takes."""
    return _relayed(chance, PathPlan(local=True), jobs=downloads(chance, [3_000_000, 9_000]), kind_shows=False)


def _relay_short(chance: random.Random) -> Scenario:
    sizes = [chance.randrange(1_500, 12_000) for _ in range(8)]
    return _relayed(chance, jobs=downloads(chance, sizes, spread_s=1.2))


def _relay_short_without_timestamps(chance: random.Random) -> Scenario:
    drawn = _relay_short(chance)
    return replace(drawn, plan=replace(drawn.plan, settings=everywhere(tcp_timestamps="0")))


def _relay_upload(chance: random.Random) -> Scenario:
    plan = cellular(chance, slow_cell=False)
    size = int(plan.wired_down.rate_bit_s / 8 * 2.5)
    return _relayed(chance, plan, jobs=uploads(chance, [size]))


def _relay_upload_queueless(chance: random.Random) -> Scenario:
    plan = cellular(chance)
    size = int(plan.cell_up.rate_bit_s / 8 * 2.5)
    return _relayed(chance, plan, jobs=uploads(chance, [size]), kind_shows=False)


def _relay_terminal(chance: random.Random) -> Scenario:
    return _relayed(chance, jobs=chats(chance, 60, count=2))


def _relay_terminal_without_timestamps(chance: random.Random) -> Scenario:
    drawn = _relay_terminal(chance)
    return replace(drawn, plan=replace(drawn.plan, settings=everywhere(tcp_timestamps="0")))


def _relay_keep_alive(chance: random.Random) -> Scenario:
    mark = chance.randrange(10**6)
    sizes = [chance.randrange(500, 90_000) for _ in range(8)]
    requests = [{"name": f"k{n}", "token": f"t{mark}-{n}", "bytes": size} for n, size in enumerate(sizes)]
    jobs = lambda path: [Job(path.server_address, HTTP, requests=requests, gap_s=0.15)]  # noqa: E731
    return _relayed(chance, jobs=jobs, kind_shows=False)


def _relay_lossy(chance: random.Random) -> Scenario:
    return _relayed(chance, with_links(cellular(chance), cell_down={"loss": 0.02}, cell_up={"loss": 0.01}))


def _relay_slow_reader(chance: random.Random) -> Scenario:
    plan = cellular(chance)
    rate = plan.cell_down.rate_bit_s / 8 * 0.4
    jobs = downloads(chance, [int(rate * 4)], read_bytes_s=rate, receive_buffer=30_000)
    return _relayed(chance, plan, jobs=jobs, kind_shows=False)


def _relay_small_mtu(chance: random.Random) -> Scenario:
    return _relayed(chance, replace(cellular(chance), cell_mtu=1340))


def _relay_paced(chance: random.Random) -> Scenario:
    """The server writes little at a time: the relay's pieces are the server's."""
    jobs = downloads(chance, [150_000], query="&pace=60000&delay=0.5")
    return _relayed(chance, jobs=jobs, kind_shows=False)


def _relay_offloads(chance: random.Random) -> Scenario:
    return _relayed(chance, replace(cellular(chance), ethernet=True))


def _relay_version_6(chance: random.Random) -> Scenario:
    plan = cellular(chance)
    size = bulk(chance, plan, seconds=2)

    def jobs(path: NetworkPath) -> list[Job]:
        return [replace(job, host=path.server_address_6) for job in downloads(chance, [size, 9_000])(path)]

    return _relayed(chance, plan, jobs=jobs)


def _relay_cut(chance: random.Random) -> Scenario:
    edits = Edits(offset_s=chance.uniform(-3, 3), begin={"server": 0.3, "mobile": 0.25}, end={"mobile": 0.2})
    return _relayed(chance, edits=edits, kind_shows=False)


def _relay_dropped(chance: random.Random) -> Scenario:
    return _relayed(chance, edits=Edits(dropped={"server": 0.06, "mobile": 0.1}, drift_ppm=chance.uniform(-80, 80)))


def _relay_wild_clock(chance: random.Random) -> Scenario:
    edits = Edits(
        offset_s=chance.uniform(-900, 900), drift_ppm=chance.uniform(-300, 300), steps=((0.3, -0.4), (0.7, 1.1))
    )
    return _relayed(chance, edits=edits)


def _relay_resets(chance: random.Random) -> Scenario:
    def jobs(path: NetworkPath) -> list[Job]:
        aborted = downloads(chance, [400_000] * 3, spread_s=0.6, abort_after=chance.randrange(1, 60_000))(path)
        return aborted + downloads(chance, [100_000] * 2, query="&reset=30000")(path)

    return _relayed(chance, jobs=jobs, kind_shows=False)


def _relay_mixed(chance: random.Random) -> Scenario:
    """Port 80 is relayed, port 8080 is not."""
    plan = cellular(chance)
    size = bulk(chance, plan, seconds=1.2)

    def jobs(path: NetworkPath) -> list[Job]:
        return downloads(chance, [size, 30_000])(path) + downloads(chance, [size, 30_000], port=OTHER)(path)

    return _relayed(chance, plan, jobs=jobs)


def _relay_address_only(chance: random.Random) -> Scenario:
    """The relay spoofs the address but not the port, many at once."""
    sizes = [chance.randrange(20_000, 200_000) for _ in range(8)]
    return _relayed(chance, middle=proxies.relay(spoof="address"), jobs=downloads(chance, sizes))


def _store(chance: random.Random) -> Scenario:
    return _relayed(chance, middle=proxies.relay(mode="store"))


def _store_without_timestamps(chance: random.Random) -> Scenario:
    plan = replace(cellular(chance), settings=everywhere(tcp_timestamps="0"))
    return _relayed(chance, plan, middle=proxies.relay(mode="store", spoof="none"))


def _store_upload(chance: random.Random) -> Scenario:
    plan = cellular(chance)
    size = int(plan.cell_up.rate_bit_s / 8 * 2)
    return _relayed(chance, plan, middle=proxies.relay(mode="store", spoof="address"), jobs=uploads(chance, [size]))


def _store_short(chance: random.Random) -> Scenario:
    sizes = [chance.randrange(1_500, 30_000) for _ in range(6)]
    return _relayed(chance, middle=proxies.relay(mode="store"), jobs=downloads(chance, sizes, spread_s=1.0))


def _recompressed(chance: random.Random) -> Scenario:
    return _relayed(chance, middle=proxies.relay(mode="recompress"), kind_shows=False, mechanism="rewriting")


def _own_cache(chance: random.Random) -> Scenario:
    plan = cellular(chance)
    size = bulk(chance, plan, seconds=1)

    def jobs(path: NetworkPath) -> list[Job]:
        made = downloads(chance, [size, size], spread_s=9.0)(path)
        return [replace(job, requests=[{**job.requests[0], "name": "same"}]) for job in made]

    return _relayed(chance, plan, middle=proxies.relay(mode="cache"), jobs=jobs)


def _packaged(
    start: proxies.Start,
    program: str,
    *,
    truth: str = "split",
    kind_shows: bool = True,
    sizes: int = 3,
    **rest: object,
) -> Draw:
    """A bulk download and two shorter ones through a packaged transparent proxy."""

    def draw(chance: random.Random) -> Scenario:
        plan = cellular(chance)
        plan = small_buffers(plan) if chance.random() < 0.7 else plan
        jobs = downloads(chance, [bulk(chance, plan), 60_000, 6_000][:sizes], spread_s=0.3)
        return Scenario(
            truth, plan, jobs, middle=start, intercepted=(HTTP,), kind_shows=kind_shows, needs=(program,),
            software=program, **rest,  # type: ignore[arg-type]
        )  # fmt: skip

    return draw


def _nginx_on_one_lan(chance: random.Random) -> Scenario:
    drawn = _packaged(proxies.nginx_stream, "nginx", kind_shows=False)(chance)
    return replace(drawn, plan=PathPlan(local=True), jobs=downloads(chance, [3_000_000, 4_000]))


def _explicit(start: proxies.Start, program: str, kind: str, port: int, **rest: object) -> Draw:
    """The same through a proxy that the mobile addresses itself."""

    def draw(chance: random.Random) -> Scenario:
        drawn = _packaged(start, program, **rest)(chance)  # type: ignore[arg-type]
        transparent = drawn.jobs

        def jobs(path: NetworkPath) -> list[Job]:
            return [replace(job, proxy=(kind, path.cell_address, port)) for job in transparent(path)]

        return replace(drawn, jobs=jobs)

    return draw


def _redsocks_chat(chance: random.Random) -> Scenario:
    drawn = _packaged(proxies.redsocks, "redsocks")(chance)
    return replace(drawn, jobs=chats(chance, 50, count=2), intercepted=(HTTP, CHAT), needs=("redsocks", "microsocks"))


def _ssh(chance: random.Random) -> Scenario:
    drawn = _packaged(proxies.ssh_forward, "sshd", kind_shows=False, sizes=1, other_content=True, mechanism="tunnel")(
        chance
    )
    jobs = drawn.jobs
    return replace(drawn, jobs=lambda path: [replace(job, proxy=("forward", "127.0.0.1", 8000)) for job in jobs(path)])


def _squid_cache(chance: random.Random) -> Scenario:
    plan = cellular(chance)

    def jobs(path: NetworkPath) -> list[Job]:
        made = downloads(chance, [200_000, 200_000], spread_s=8.0, query="&cacheable=1")(path)
        first = made[0].requests[0]
        return [replace(job, requests=[first]) for job in made]

    return Scenario(
        "split", plan, jobs, middle=proxies.squid(mode="intercept", cache=True), intercepted=(HTTP,), kind_shows=False,
        needs=("squid",), software="squid with a cache", rewrites_heads=True,
    )  # fmt: skip


SPLIT: Mapping[str, Draw] = {
    "relay": _relayed,
    "relay-nots": _relay_without("tcp_timestamps"),
    "relay-nosack": _relay_without("tcp_sack"),
    "relay-bare": _relay_bare,
    "relay-queueless": _relay_queueless,
    "relay-queueless-nots": _relay_queueless_without_timestamps,
    "relay-at-mobile": _relay_at_mobile,
    "relay-at-server": _relay_at_server,
    "relay-local": _relay_on_one_lan,
    "relay-short": _relay_short,
    "relay-short-nots": _relay_short_without_timestamps,
    "relay-upload": _relay_upload,
    "relay-upload-queueless": _relay_upload_queueless,
    "relay-terminal": _relay_terminal,
    "relay-terminal-nots": _relay_terminal_without_timestamps,
    "relay-keep-alive": _relay_keep_alive,
    "relay-lossy": _relay_lossy,
    "relay-slow-reader": _relay_slow_reader,
    "relay-small-mtu": _relay_small_mtu,
    "relay-paced": _relay_paced,
    "relay-offloads": _relay_offloads,
    "relay-ipv6": _relay_version_6,
    "relay-cut": _relay_cut,
    "relay-dropped": _relay_dropped,
    "relay-wild-clock": _relay_wild_clock,
    "relay-resets": _relay_resets,
    "relay-mixed": _relay_mixed,
    "relay-address-only": _relay_address_only,
    "store": _store,
    "store-nots": _store_without_timestamps,
    "store-upload": _store_upload,
    "store-short": _store_short,
    "recompressed": _recompressed,
    "cache": _own_cache,
    "socat": _packaged(proxies.socat, "socat"),
    "squid-explicit": _explicit(proxies.squid(mode="explicit"), "squid", "http", 3128, rewrites_heads=True),
    "squid-intercept": _packaged(proxies.squid(mode="intercept"), "squid", rewrites_heads=True),
    "squid-tproxy": _packaged(proxies.squid(mode="tproxy"), "squid", rewrites_heads=True),
    "squid-cache": _squid_cache,
    "tinyproxy": _explicit(proxies.tinyproxy, "tinyproxy", "http", 3128, rewrites_heads=True),
    "privoxy": _packaged(proxies.privoxy(filters=False), "privoxy", rewrites_heads=True),
    "privoxy-filter": _packaged(
        proxies.privoxy(filters=True), "privoxy", rewrites_heads=True, truth="proxy", must_log=_FILTERED
    ),
    "redsocks": _packaged(proxies.redsocks, "redsocks", relays=2),
    "redsocks-terminal": _redsocks_chat,
    "microsocks": _explicit(proxies.microsocks, "microsocks", "socks5", 1080),
    "nginx-stream": _packaged(proxies.nginx_stream, "nginx"),
    "nginx-stream-local": _nginx_on_one_lan,
    "haproxy-usesrc": _packaged(proxies.haproxy(source="clientip"), "haproxy"),
    "haproxy-usesrc-port": _packaged(proxies.haproxy(source="client"), "haproxy"),
    "haproxy-header": _packaged(proxies.haproxy_with_header, "haproxy", rewrites_heads=True),
    "rinetd": _packaged(proxies.rinetd, "rinetd"),
    "redir": _packaged(proxies.redir, "redir"),
    "sslh": _packaged(proxies.sslh, "sslh-select"),
    "varnish": _packaged(proxies.varnish, "varnishd", rewrites_heads=True, kind_shows=False),
    "stunnel": _explicit(
        proxies.stunnel, "stunnel4", "tls", 8443, other_content=True, kind_shows=False, mechanism="tls-interception"
    ),
    "ssh-forward": _ssh,
}
