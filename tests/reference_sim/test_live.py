"""What of a scenario a live path takes, and what it makes of it; none of this needs root."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from pepscope.errors import LivePathError, ScenarioError
from reference_sim.live_path import LiveEmulation, LiveSettings, emulate
from reference_sim.live_path.comparison import Comparison, Measures, as_kernels_do
from reference_sim.live_path.kernel_settings import kernel_settings, quick_acknowledgements, window_share
from reference_sim.live_path.network import split_path, terminals
from reference_sim.live_path.path_loop import processors_awake
from reference_sim.scenario import Scenario
from reports.simulation.comparison import page_text

WIRED = {"kind": "wired"}
PROXY = {"kind": "split-proxy"}


def scenario(*path: dict[str, Any], **rest: Any) -> Scenario:
    return Scenario.from_mapping({"name": "live", "duration_s": 1, "path": path, **rest})


def test_the_middle_stands_where_the_proxy_does() -> None:
    assert split_path(scenario(WIRED, WIRED), None) == ((0, 2),)
    assert split_path(scenario(WIRED, WIRED), 1) == ((0, 1), (1, 2))
    assert split_path(scenario(WIRED, WIRED, PROXY, WIRED), None) == ((0, 2), (3, 4))
    assert split_path(scenario(PROXY), None) == ((0, 0), (1, 1))


@pytest.mark.parametrize(
    ("path", "middle", "words"),
    [
        ((PROXY, WIRED, PROXY), None, "must have at most one proxy"),
        ((PROXY,), 0, "at the place of its proxy"),
        ((WIRED,), 2, "one of the 1 hops"),
    ],
)
def test_other_middles_are_refused(path: tuple[dict[str, Any], ...], middle: int | None, words: str) -> None:
    with pytest.raises(ScenarioError, match=words):
        split_path(scenario(*path), middle)


def test_an_endpoint_becomes_kernel_settings() -> None:
    endpoint = {
        "control": "reno",
        "sack": False,
        "timestamps": False,
        "window_scale": -1,
        "receive_buffer_bytes": 50_000,
        "initial_window_segments": 3,
        "maximum_segment_size_bytes": 1200,
        "retransmission_timeout_minimum_s": 1.0,
        "ecn": "standard",
        "time_to_live": 32,
    }
    settings = kernel_settings("server", scenario(server=endpoint).server)
    parameters = settings.parameters
    assert [parameters[f"net.ipv4.tcp_{name}"] for name in ("sack", "timestamps", "window_scaling", "ecn")] == list(
        "0001"
    )
    rmem = [int(words) for words in parameters["net.ipv4.tcp_rmem"].split()]
    assert rmem[1] == rmem[2]
    assert rmem[2] * window_share(1200) == pytest.approx(50_000, abs=1)
    assert parameters["net.ipv4.ip_default_ttl"] == "32"
    assert settings.route_options[4] == "congctl reno initcwnd 3 rto_min 1000ms advmss 1200"
    assert settings.route_options[6].endswith("advmss 1180")


def test_a_linux_host_leaves_a_kernel_as_it_comes() -> None:
    linux = {"host": "linux"}
    parameters = kernel_settings("server", scenario(server=linux).server).parameters
    assert parameters["net.ipv4.tcp_rmem"] == "4096 131072 6291456"
    assert parameters["net.ipv4.tcp_wmem"] == "4096 16384 4194304"
    assert as_kernels_do(scenario(server=linux, mobile=linux)) == scenario(server=linux, mobile=linux)


@pytest.mark.parametrize(
    ("release", "payload_bytes", "share"),
    [
        ("6.18.2", 1448, 160 / 256),
        ("6.18.2-1-amd64", 1188, 132 / 256),
        ("6.18.2", 536, 0.5),
        ("6.1.0-18-amd64", 1448, 0.5),
    ],
)
def test_a_window_is_the_share_of_a_buffer_that_payload_takes(
    monkeypatch: pytest.MonkeyPatch, release: str, payload_bytes: int, share: float
) -> None:
    monkeypatch.setattr(os, "uname", lambda: SimpleNamespace(release=release))
    assert window_share(payload_bytes) == share


def test_kernels_acknowledge_one_by_one_while_their_window_grows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "uname", lambda: SimpleNamespace(release="6.18.2"))
    small, large = ({"receive_buffer_bytes": size} for size in (50_000, 6_291_456))
    assert quick_acknowledgements(scenario(mobile=small).mobile) == 16
    # A fifth of the window is still to come, 2920 bytes a segment.
    assert quick_acknowledgements(scenario(mobile=large).mobile) == pytest.approx(0.2 * 6_291_456 / 2920, abs=1)
    seen = as_kernels_do(scenario(mobile=large, server={"recovery": "new-reno", "quick_acknowledgements": 3}))
    assert seen.mobile["quick_acknowledgements"] == pytest.approx(431, abs=1)
    assert (seen.mobile["recovery"], seen.server["recovery"]) == ("rack", "new-reno")
    assert seen.server["quick_acknowledgements"] == 3


@pytest.mark.parametrize(
    ("endpoint", "words"),
    [
        ({"control": "jersey"}, "mobile.control must be .*cubic.* on a live path with this kernel, got jersey"),
        ({"control": "cubic-without-hystart"}, "mobile.control must be .*, got cubic-without-hystart"),
        ({"control": "cubic-hystart-plus-plus"}, "mobile.control must be .*, got cubic-hystart-plus-plus"),
        ({"recovery": "tahoe"}, "mobile.recovery must be .*, got tahoe"),
        ({"ecn": "every-packet"}, "mobile.ecn must be off or standard .*, got every-packet"),
        ({"host": "windows"}, "mobile.host must be ideal or linux on a live path, got windows"),
        ({"host": "darwin", "control": "cubic"}, "mobile.host must be ideal or linux .*, got darwin"),
    ],
)
def test_what_no_kernel_does_is_refused(endpoint: dict[str, Any], words: str) -> None:
    with pytest.raises(ScenarioError, match=words):
        kernel_settings("mobile", scenario(mobile=endpoint).mobile)


def test_every_mobile_of_the_traffic_has_an_address() -> None:
    download = {"kind": "download", "bytes": 1}
    assert terminals(scenario()) == 1
    assert terminals(scenario(traffic=[{**download, "user": 3}])) == 4
    assert terminals(scenario(traffic=[{**download, "user": 1, "count": 5, "one_user_each": True}])) == 6


def test_missing_root_rights_are_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(LivePathError, match="needs root"):
        emulate(scenario(WIRED), ["true"])


def test_a_proxy_needs_a_place() -> None:
    with pytest.raises(LivePathError, match="give --middle"):
        LiveEmulation(scenario(WIRED), None, LiveSettings(middle_command=("true",)))


def test_processors_are_kept_awake_only_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = tmp_path / "latency"
    asked.touch()
    monkeypatch.setattr("reference_sim.live_path.path_loop._WAKE_UP_LATENCY", str(asked))
    with processors_awake():
        held = [str(link.readlink()) for link in Path("/proc/self/fd").iterdir() if link.exists()]
        assert str(asked) in held
        assert asked.read_bytes() == bytes(4)
    held = [str(link.readlink()) for link in Path("/proc/self/fd").iterdir() if link.exists()]
    assert str(asked) not in held
    monkeypatch.setattr("reference_sim.live_path.path_loop._WAKE_UP_LATENCY", str(tmp_path / "missing"))
    with processors_awake():
        pass


def measures(goodput_bit_s: float, round_trip_s: float, lost_share: float) -> Measures:
    return Measures(goodput_bit_s, np.full(100, round_trip_s), lost_share, 10_000, lost_share)


@pytest.mark.parametrize(
    ("live", "outside"),
    [
        (measures(9.2e6, 0.11, 0.004), []),
        (measures(8.9e6, 0.1, 0.002), ["goodput"]),
        (measures(1e7, 0.12, 0.002), ["round trip, 50% quantile", "round trip, 95% quantile"]),
        (measures(1e7, 0.1, 0.02), ["packets lost"]),
    ],
)
def test_a_comparison_reports_values_outside_its_bounds(live: Measures, outside: list[str]) -> None:
    comparison = Comparison("s", "<b>", "cubic", measures(1e7, 0.1, 0.002), live, 1e-5)
    assert [row.name for row in comparison.rows() if not row.is_within] == outside
    assert comparison.is_within_bounds == (not outside)
    assert comparison.table().count("OUTSIDE") == len(outside)
    assert comparison.to_dict()["is_within_bounds"] == (not outside)
    page = page_text([comparison])
    assert "&lt;b&gt;" in page
    assert page.count('class="outside"') == len(outside)
    assert page.count("<path") == 2


def test_nothing_received_is_outside_and_drawn_as_such() -> None:
    silent = Measures(0.0, np.empty(0), 0.0, 0, 0.0)
    comparison = Comparison("s", "", "cubic", measures(1e7, 0.1, 0.0), silent, 0.0)
    assert not comparison.is_within_bounds
    assert "no round trips to draw" in page_text([comparison])
