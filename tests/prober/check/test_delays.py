"""A slice of `benchmarks.check_campaign`: hosts at different distances, radios that sleep, servers that think."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from benchmarks.check_campaign.__main__ import one_run
from benchmarks.check_campaign.hosts import PLAIN
from benchmarks.check_campaign.kinds import KINDS, let_users_echo
from benchmarks.check_campaign.world import HOSTS, World, world

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def path() -> Iterator[World]:
    with world() as made:
        yield made


def said_of(path: World, kind: str) -> dict[str, Any]:
    return one_run(path, list(KINDS).index(kind), seed=7)


def test_thinking_servers_behind_a_radio_that_sleeps_are_no_split(path):
    found = said_of(path, "slow servers and wake-ups")
    assert "split-tcp" not in found["said"].values(), found["reasons"]
    assert any("slow-server" in causes for causes in found["causes"].values())


def test_a_split_is_found_by_distances_where_routers_are_silent(path):
    found = said_of(path, "a split and silent routers")
    assert set(found["said"].values()) == {"split-tcp"}, found["reasons"]
    assert all("a middlebox" in reason for reason in found["reasons"].values())


def test_a_balancer_before_some_hosts_is_not_the_networks_split(path):
    found = said_of(path, "balancers before some hosts")
    assert "split-tcp" not in found["said"].values(), found["reasons"]


def test_a_capture_shows_that_one_box_answers_for_far_hosts(path, tmp_path):
    hosts = HOSTS[:3]
    targets = tmp_path / "targets.txt"
    targets.write_text("".join(f"{host} {PLAIN} plain\n" for host in hosts))
    command = [sys.executable, "-m", "pepscope", "check", "--targets", str(targets), "--json", "--capture"]
    with path.stack:
        path.line("access", delay_s=0.002)
        for number in range(len(hosts)):
            path.line(f"host{number}", delay_s=0.005 + 0.02 * number)
        let_users_echo(path)
        # One timestamp clock for all connections, as boxes have that draw no offsets (ip-sysctl.rst of Linux).
        name = "net.ipv4.tcp_timestamps"
        path.until_done(2, ["sysctl", "-q", "-w", f"{name}=2"], ["sysctl", "-q", "-w", f"{name}=1"])
        path.box(2, "split", (PLAIN,))
        done = subprocess.run(path.inside(0, *command), capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stderr
    (port,) = json.loads(done.stdout)["ports"]
    (one,) = [each for each in port["findings"] if each["name"] == "capture-shows-one-stack"]
    assert (port["verdict"], one["says"], one["hosts"]) == ("split-tcp", "split-support", sorted(hosts))
    assert one["sentence"] in port["reason"]
