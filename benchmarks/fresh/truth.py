"""Which connection at the mobile is which at the server, from what the applications and our own proxy logged."""

from __future__ import annotations

import json
from collections import defaultdict
from typing import TYPE_CHECKING, Any

from benchmarks.fresh.scenario import APPLICATION_BYTES, RELAY_SHOWS_SHARE, STORE_SHOWS_BYTES

if TYPE_CHECKING:
    from pathlib import Path

    from benchmarks.fresh.client import Job
    from benchmarks.fresh.scenario import Scenario

#: The mechanism of a split, unless the experiment or our own proxy's log gives another one.
MECHANISM_OF_KIND = {"split": "relay", "proxy": "store-and-forward"}
CACHE, REWRITING = "cache", "rewriting"
LOCAL_ACKNOWLEDGEMENT = "local-acknowledgement"

#: What our own proxy and our own middlebox log of a connection: the class that follows.
_KIND_DONE = {
    "relayed": "split",
    "acknowledged locally": "split",
    "taken over": "split",
    "stored, then forwarded": "proxy",
    "answered from the cache": "proxy",
}


def read_log(path: Path) -> list[dict[str, Any]]:
    """The entries of a log, none where there is no file."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def flows(scenario: Scenario, jobs: list[Job], directory: Path, socket_bytes: int) -> list[dict[str, Any]]:
    """The flows of one run, as `tests/corpus/manifest.json` has them.

    `socket_bytes` is what a receive and a send buffer of the middle hold at most.

    Raises RuntimeError where a proxy's own log does not say that it did what the experiment is about.
    """
    if scenario.must_log is not None and scenario.must_log[1] not in (directory / scenario.must_log[0]).read_text():
        raise RuntimeError(f"{scenario.must_log[0]} does not say {scenario.must_log[1]!r}")
    at_server: dict[str, list[str]] = defaultdict(list)
    for entry in read_log(directory / "origin.jsonl"):
        if "token" in entry:
            at_server[entry["token"]].append(f"{entry['peer']} > {entry['local']}")
    handled = read_log(directory / "relay.jsonl") + read_log(directory / "box.jsonl")
    done = {entry["client"]: entry for entry in handled if "client" in entry}
    by_token = {token: job for job in jobs for token in _tokens(job)}
    found: list[dict[str, Any]] = []
    for entry in sorted(read_log(directory / "client.jsonl"), key=lambda item: item["time"]):
        if "local" not in entry:
            continue
        job = by_token[entry["tokens"][0]]
        if scenario.same_leg:
            found.append(_on_one_leg(job, f"{entry['local']} > {entry['peer']}"))
            continue
        # A token that the server did not see (again) was answered by a middlebox.
        far = next((at_server[token].pop(0) for token in entry["tokens"] if at_server[token]), None)
        found.append(
            _flow(scenario, job, f"{entry['local']} > {entry['peer']}", far, done.get(entry["local"]), socket_bytes)
        )
    return found


def _tokens(job: Job) -> list[str]:
    return [request["token"] for request in job.requests] or [job.token]


def _size(job: Job) -> int:
    return sum(int(request["bytes"]) + int(request.get("put", 0)) for request in job.requests) + sum(
        sum(pair) for pair in job.chat
    )


def _kind_shows(scenario: Scenario, job: Job, kind: str, socket_bytes: int) -> bool:
    """Whether this transfer was such that a relay and a store behave differently."""
    aborted = job.abort_after is not None or any("reset=" in r.get("query", "") for r in job.requests)
    if kind == "proxy":
        return scenario.kind_shows and not aborted and _size(job) >= STORE_SHOWS_BYTES
    held = scenario.relays * (socket_bytes + APPLICATION_BYTES)
    return scenario.kind_shows and not aborted and held <= RELAY_SHOWS_SHARE * _size(job)


def _on_one_leg(job: Job, leg: str) -> dict[str, Any]:
    """Both captures hold the same leg: the path between them is end to end, whatever is beyond."""
    return {
        "mobile_capture": leg, "server_capture": leg, "class": "regular", "acceptable_kinds": ["regular"],
        "direction": _direction(job), "bytes": _size(job), "passive_detectable": None, "proxy_log": None,
        "mechanism": None, "acceptable_mechanisms": [None],
    }  # fmt: skip


def _direction(job: Job) -> str:
    return "upload" if any("put" in request for request in job.requests) else "download"


def _mechanism(scenario: Scenario, kind: str, done: dict[str, Any] | None, *, answered_here: bool) -> str | None:
    """How this connection was split; None where it was not."""
    if kind == "regular":
        return None
    if answered_here or (done is not None and done["done"] == "answered from the cache"):
        return CACHE
    return scenario.mechanism or MECHANISM_OF_KIND[kind]


def _flow(
    scenario: Scenario, job: Job, near: str, far: str | None, done: dict[str, Any] | None, socket_bytes: int
) -> dict[str, Any]:
    split = scenario.truth != "regular" and (job.proxy is not None or job.port in scenario.intercepted)
    if split and done is None and scenario.says_itself:
        split = False  # the middlebox did not touch this connection
    kind = scenario.truth if split else "regular"
    if done is not None:
        kind = _KIND_DONE[done["done"]]  # our own proxy logs what it did
    acceptable = [kind]
    mechanism = _mechanism(scenario, kind, done, answered_here=far is None)
    mechanisms = [mechanism]
    if kind != "regular" and mechanism != LOCAL_ACKNOWLEDGEMENT and not _kind_shows(scenario, job, kind, socket_bytes):
        acceptable = ["split", "proxy"]
        mechanisms = list(dict.fromkeys([mechanism, *MECHANISM_OF_KIND.values()]))
    if kind != "regular" and scenario.rewrites_heads:
        mechanisms = list(dict.fromkeys([*mechanisms, REWRITING]))
    if kind != "regular" and scenario.other_content:
        mechanisms = list(dict.fromkeys([*mechanisms, MECHANISM_OF_KIND[kind]]))  # it is a relay, too
    if far is None or (split and scenario.other_content):
        acceptable.append("unpaired")
    flow: dict[str, Any] = {
        "mobile_capture": near, "class": kind, "acceptable_kinds": acceptable, "direction": _direction(job),
        "bytes": _size(job), "passive_detectable": None, "proxy_log": None if done is None else done["done"],
        "mechanism": mechanism, "acceptable_mechanisms": mechanisms,
    }  # fmt: skip
    if done is not None and "from_byte" in done:
        flow["split_from_byte"] = done["from_byte"]
    if far is not None:
        flow["server_capture"] = far
    return flow
