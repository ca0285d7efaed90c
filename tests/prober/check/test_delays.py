"""A slice of `benchmarks.check_campaign`: hosts at different distances, radios that sleep, servers that think."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from benchmarks.check_campaign.__main__ import one_run
from benchmarks.check_campaign.kinds import KINDS
from benchmarks.check_campaign.world import World, world

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
