"""What clients do: connections one after another or several at once, requests with pauses or without."""

from __future__ import annotations

import math
from random import Random

from benchmarks.one_ended_simulated.scenario import Server, Session
from benchmarks.one_ended_simulated.talks import Request, Secure
from benchmarks.one_ended_simulated.tls import Version

_MOST_BYTES = 400_000
_LAST_START_S = 90.0


def draw_sessions(
    random: Random, servers: tuple[Server, ...], clients: int, ports: tuple[int, ...], activity: float, *, cache: bool
) -> tuple[Session, ...]:
    """Every connection of a site; `activity` scales how many there are."""
    used = random.sample(ports, random.choice((1, 2, 3)))
    if 443 not in used and 80 not in used:
        used.append(443)
    style = random.choice(("script", "script", "browser", "keep-alive", "person"))
    most = activity * math.exp(random.uniform(0.0, 2.7))
    median_bytes = math.exp(random.uniform(math.log(300), math.log(30_000)))
    sessions: list[Session] = []
    for client in range(clients):
        for place, server in enumerate(servers):
            for port in used:
                count = max(1, round(random.uniform(0.3, 1.0) * most))
                starts = _starts(random, count, several=style == "browser")
                sessions += [
                    Session(
                        start_s, client, place, port,
                        _requests(random, style, median_bytes, cache=cache),
                        _secure(random, server, port),
                        random.choice((0.0, 0.0, random.uniform(0.01, 3.0))),
                    )
                    for start_s in starts
                ]  # fmt: skip
    return tuple(sorted(sessions, key=lambda session: session.start_s))


def draw_pings(random: Random, servers: int, clients: int) -> tuple[tuple[float, int, int], ...]:
    """In a third of the sites, clients ping every server a few times, once a second."""
    if random.random() > 1 / 3:
        return ()
    count = random.choice((3, 5, 10, 20))
    return tuple(
        (random.uniform(0.0, 60.0) + number, client, server)
        for client in range(clients)
        for server in range(servers)
        for number in range(count)
    )


def _starts(random: Random, count: int, *, several: bool) -> list[float]:
    starts: list[float] = []
    time_s = random.uniform(0.0, 8.0)
    pause_s = min(_LAST_START_S / count, random.choice((0.3, 1.0, 5.0, 20.0)))
    while len(starts) < count:
        for _ in range(min(count - len(starts), random.choice((1, 2, 4, 6)) if several else 1)):
            starts.append(time_s + random.uniform(0.0, 0.01))
        time_s += random.expovariate(1 / pause_s)
    return [min(start_s, _LAST_START_S) for start_s in starts]


def _requests(random: Random, style: str, median_bytes: float, *, cache: bool) -> tuple[Request, ...]:
    count = {"script": 1, "browser": 3, "keep-alive": 6, "person": 3}[style]
    count = 1 if count == 1 and random.random() < 0.7 else random.randrange(1, 2 * count + 1)
    uploads = random.random() < 0.06
    together = style == "browser" and random.random() < 0.5
    requests = []
    for place in range(count):
        person = style == "person" or (style == "browser" and random.random() < 0.15)
        wait_s = random.uniform(0.3, 8.0) if person and place else 0.0
        if not place and random.random() < 0.08:
            wait_s = random.uniform(1.0, 12.0)  # connected in advance
        size = random.lognormvariate(math.log(median_bytes), 1.0)
        asks = random.lognormvariate(math.log(400), 0.4)
        if uploads:
            asks = random.lognormvariate(math.log(20_000), 0.8)
        requests.append(
            Request(
                max(120, min(int(asks), 150_000)), max(40, min(int(size), _MOST_BYTES)), wait_s,
                is_automatic=wait_s == 0.0,
                is_stored=cache and random.random() < 0.5,
                is_together=together and place > 0 and wait_s == 0.0 and random.random() < 0.6,
            )
        )  # fmt: skip
    return tuple(requests)


def _secure(random: Random, server: Server, port: int) -> Secure | None:
    if port not in server.versions:
        return None
    version = Version.TLS_1_3 if server.versions[port] else Version.TLS_1_2
    return Secure(
        version, f"{server.name}.example", random.random() < 0.4, random.choice((0, 900, 2500, 4000)),
        random.choice((220, 517, 517, 700, 1800)),
    )  # fmt: skip
