"""What the clients of a network do, drawn from the seed: jobs of `client`."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

from benchmarks.one_ended.plan import GREETING, HTTP, HTTPS, HTTPS_12

if TYPE_CHECKING:
    from benchmarks.one_ended.plan import Client, Plan, Server

_THINK_S = (0.03, 0.06)
_SLOW_S = (0.05, 0.3)
#: Share of networks with a browser: it takes more of the processor than all else.
BROWSING_SHARE = 0.06
_PAGES = (250, 250, 1_500, 9_000, 9_000, 40_000)


def draw_jobs(plan: Plan, client: Client) -> list[dict[str, Any]]:
    """All jobs of one client, from all of its addresses to all servers."""
    chance = random.Random(f"{plan.seed}/{plan.index}/{client.name}")
    busy = chance.choice((0.5, 1.0, 2.0, 3.5)) / len(plan.clients) ** 0.5
    jobs: list[dict[str, Any]] = []
    if len(plan.clients) > 3:
        busy *= 2
    for server in plan.servers:
        for port in (HTTP, HTTPS, HTTPS_12):
            count = max(1, round(chance.uniform(2, 6) * busy))
            jobs += [_connection(client, server, port, chance) for _ in range(count)]
        jobs += [
            {"kind": "greeting", "port": GREETING, "host": server.address, "name": server.name}
            for _ in range(max(1, round(chance.uniform(1, 3) * busy)))
        ]
        jobs += _references(plan, server, chance)
    slow_link = min(client.link.down.rate_bit_s, client.link.up.rate_bit_s) < 4e6
    jobs += _transfers(plan, chance, small=slow_link)
    if client is plan.clients[0]:
        jobs += _browsing(plan)
    for job in jobs:
        job.setdefault("start_s", chance.uniform(0, plan.duration_s))
        job.setdefault("source", chance.choice(client.addresses))
        if client.thinks:
            job["think"] = _THINK_S
        if job["kind"] == "curl":
            job["arguments"] = ["--interface", job["source"], *job["arguments"]]
    return jobs


def _browsing(plan: Plan) -> list[dict[str, Any]]:
    """In a few networks the first client opens pages in Chromium, with pictures from all servers."""
    chance = random.Random(f"{plan.seed}/{plan.index}/browser")
    if chance.random() >= BROWSING_SHARE or plan.clients[0].thinks:
        return []
    jobs = []
    names = {_name(server): server.address for server in plan.servers}
    for number in range(2):
        origins = [f"https://{name}:{port}" for name in names for port in (HTTPS, HTTPS_12)]
        chosen = [f"{chance.choice(origins)}/s/{chance.choice(_PAGES)}?p={n}" for n in range(chance.randrange(6, 16))]
        url = f"https://{_name(chance.choice(plan.servers))}/dyn?pictures={','.join(chosen)}"
        jobs.append({"kind": "browser", "url": url, "names": names, "start_s": 1.0 + number * 0.5 * plan.duration_s})
    return jobs


def _name(server: Server) -> str:
    return f"{server.name}.example"


def _path(server: Server, size: int, chance: random.Random) -> str:
    if server.slow:
        return f"/dyn?bytes={size}&delay={chance.uniform(*_SLOW_S):.3f}"
    return f"/dyn?bytes={size}" if chance.random() < 0.3 else f"/s/{size}"


def _connection(client: Client, server: Server, port: int, chance: random.Random) -> dict[str, Any]:
    kinds = ("talk",) if client.thinks else ("talk", "talk", "curl", "parallel", "idle")
    kind = chance.choice(kinds)
    paths = [_path(server, chance.choice(_PAGES), chance) for _ in range(chance.randrange(1, 6))]
    if kind in ("curl", "parallel"):
        return {
            "kind": "curl",
            "port": port,
            "host": server.address,
            "arguments": _curl(kind, server, port, paths, chance),
        }
    automatic = chance.random() < 0.7
    requests = [{"path": path, "gap_s": 0.0 if automatic else chance.expovariate(2.5)} for path in paths]
    version = {HTTP: None, HTTPS: "1.3", HTTPS_12: "1.2"}[port]
    name = server.address if port == HTTP else _name(server)
    job: dict[str, Any] = {
        "kind": "talk", "port": port, "host": server.address, "tls": version, "name": name, "requests": requests
    }  # fmt: skip
    if kind == "idle":
        job["idle_s"] = chance.uniform(0.3, 2.0)
    return job


def _curl(kind: str, server: Server, port: int, paths: list[str], chance: random.Random) -> list[str]:
    if port == HTTP:
        return [*_parallel(kind), *_urls(f"http://{server.address}", paths)]
    version = ["--tls-max", "1.2"] if port == HTTPS_12 else ["--tlsv1.3"]
    version.append("--http2" if port == HTTPS and chance.random() < 0.5 else "--http1.1")
    origin = f"https://{_name(server)}:{port}"
    resolved = ["--resolve", f"{_name(server)}:{port}:{server.address}"]
    return [*version, *resolved, *_parallel(kind), *_urls(origin, paths)]


def _parallel(kind: str) -> list[str]:
    return ["-Z", "--parallel-immediate"] if kind == "parallel" else []


def _urls(origin: str, paths: list[str]) -> list[str]:
    first, *rest = (f"{origin}{path}" for path in paths)
    return [first, *(part for url in rest for part in ("-o", "/dev/null", url))]


def _references(plan: Plan, server: Server, chance: random.Random) -> list[dict[str, Any]]:
    """Datagrams to the same host, for most hosts."""
    jobs: list[dict[str, Any]] = []
    pace_s = plan.duration_s / 12
    if chance.random() < 0.6:
        wait = pace_s * chance.uniform(0.3, 1.0)
        jobs.append({"kind": "ping", "host": server.address, "count": 10, "interval_s": wait})
    if chance.random() < 0.4:
        port = chance.choice((7, 53, 123))
        count, wait = chance.randrange(3, 12), pace_s * chance.uniform(0.1, 1.0)
        jobs.append({"kind": "udp", "host": server.address, "port": port, "count": count, "interval_s": wait})
    if chance.random() < 0.4:
        jobs += [{"kind": "quic", "host": server.address, "count": 3} for _ in range(chance.randrange(1, 3))]
    return jobs


def _transfers(plan: Plan, chance: random.Random, *, small: bool) -> list[dict[str, Any]]:
    """A few longer downloads and uploads."""
    jobs: list[dict[str, Any]] = []
    for _ in range(chance.randrange(0, 4)):
        server = chance.choice(plan.servers)
        size = chance.choice((40_000, 150_000)) if small else chance.choice((150_000, 500_000, 500_000))
        upload = chance.random() < 0.4
        request = {"path": "/dyn", "put": min(size, 150_000)} if upload else {"path": f"/s/{size}"}
        jobs.append(
            {
                "kind": "talk", "port": HTTP, "host": server.address, "tls": None, "name": server.address,
                "requests": [request], "read_bytes_s": 0 if upload else chance.choice((0, 0, 0, 60_000)),
            }
        )  # fmt: skip
    return jobs
