"""What is remembered of clocks, hosts and devices."""

from __future__ import annotations

import socket
import subprocess
import time
from types import SimpleNamespace
from typing import Any, cast

import pytest

from pepscope.errors import UsageError
from pepscope.filters import compile_filter
from prober import abilities, devices, facts, kernel_clock
from prober.control_client import ControlClient
from prober.experiment import Want
from prober.protocol import Abilities, About, Clock
from prober.task_captures import mobile_filter
from tests.end_to_end.network import CLIENT_ADDRESS, MIDDLE_CLIENT_ADDRESS, network
from tests.prober.namespaces import inside


class SlowClock:
    """A server whose clock is ahead, and whose answers take their time: some both ways alike, one the way back."""

    def __init__(self, ahead_s: float, delays_s: list[tuple[float, float]]) -> None:
        self.ahead_s = ahead_s
        self.delays_s = delays_s

    def clock(self) -> Clock:
        there_s, back_s = self.delays_s.pop(0)
        time.sleep(there_s)
        read = Clock(time.time_ns() + round(self.ahead_s * 1e9), time.monotonic_ns(), True)
        time.sleep(back_s)
        return read


def sampled(ahead_s: float, *delays_s: tuple[float, float]) -> facts.ClockSample:
    return facts.sample_clocks(cast("ControlClient", SlowClock(ahead_s, list(delays_s))), len(delays_s))


@pytest.mark.parametrize("ahead_s", [0.0, 3600.0, -2.5])
def test_the_offset_is_within_its_uncertainty(ahead_s: float) -> None:
    """However unlike the two ways are."""
    for delays_s in ((0.02, 0.0), (0.0, 0.02), (0.01, 0.01)):
        sample = sampled(ahead_s, delays_s)
        assert sample.uncertainty_s >= 0.01
        assert abs(sample.offset_s - ahead_s) <= sample.uncertainty_s + 1e-4


def test_the_fastest_exchange_counts() -> None:
    sample = sampled(10.0, (0.0, 0.1), (0.001, 0.001), (0.1, 0.0))
    assert sample.uncertainty_s < 0.04
    assert abs(sample.offset_s - 10.0) <= sample.uncertainty_s


def test_notes_are_read() -> None:
    assert facts.parse_notes(("operator=CDMA-I", "signal_dbm=-97", "url=a=b")) == {
        "operator": "CDMA-I",
        "signal_dbm": "-97",
        "url": "a=b",
    }
    with pytest.raises(UsageError, match="different keys"):
        facts.parse_notes(("a=1", "a=2"))


def test_host_facts_are_those_of_the_kernel() -> None:
    found = facts.host_facts("lo")
    assert found["kernel"] == subprocess.run(["uname", "-r"], capture_output=True, text=True, check=True).stdout.strip()
    assert (
        found["settings"]["ipv4/tcp_congestion_control"]
        in found["settings"]["ipv4/tcp_available_congestion_control"].split()
    )
    assert found["device"]["mtu_bytes"] == 65_536
    assert socket.gethostname() not in str({name: found[name] for name in found if name != "kernel"})
    assert "device" not in facts.host_facts(None)


def test_the_device_is_the_one_that_leads_there() -> None:
    with network() as names, inside(names.client) as client:
        local = client.call(devices.local_address_towards, MIDDLE_CLIENT_ADDRESS)
        assert local == CLIENT_ADDRESS
        assert client.call(devices.device_of, local) == "up0"
        assert client.call(devices.device_of, "127.0.0.9") == "lo"
        assert client.call(devices.device_of, "192.0.2.77") is None
        subprocess.run(["ip", "-n", names.client, "link", "set", "up0", "mtu", "1280"], check=True)
        subprocess.run(["ip", "-n", names.client, "address", "add", "2001:db8::9/64", "dev", "up0"], check=True)
        assert client.call(devices.device_of, "2001:db8::9") == "up0"
        told = client.call(devices.offloads, "up0")
        assert set(told) >= {"tcp-segmentation-offload", "generic-receive-offload"}
    assert devices.offloads("no-such-device") == {}
    assert devices.mtu_bytes("no-such-device") is None


def test_the_kernels_clock_is_asked() -> None:
    assert kernel_clock.is_synchronised() in (True, False)


def about(**can: str) -> About:
    ports: Any = SimpleNamespace()
    return About(1, "0", ports, Abilities(**can), {}, {})


def test_what_the_server_lacks_is_said_to_be_the_servers() -> None:
    found = abilities.lacking_at_server(about(captures="no libpcap"))
    assert found == {Want.SERVER_CAPTURE: "at the server: no libpcap"}
    assert (
        abilities.unmet({Want.SERVER_CAPTURE, Want.ERROR_QUEUE}, found) == "server-capture: at the server: no libpcap"
    )
    assert abilities.unmet({Want.ERROR_QUEUE}, found) == ""


def test_only_what_is_wanted_is_looked_for() -> None:
    assert abilities.lacking_at_mobile(None, "127.0.0.1", set()) == {}
    lacking = abilities.lacking_at_mobile(None, "127.0.0.1", {Want.MOBILE_CAPTURE})
    assert "no device" in lacking[Want.MOBILE_CAPTURE]
    assert abilities.lacking_at_mobile("lo", "127.0.0.1", {Want.MOBILE_CAPTURE, Want.ERROR_QUEUE}) == {}
    assert abilities.lacking_at_mobile("lo", "::1", {Want.ERROR_QUEUE}) == {}


def test_filters_are_of_the_servers_traffic_without_the_control_channel() -> None:
    for address in ("192.0.2.1", "2001:db8::1"):
        for everything in (False, True):
            assert compile_filter(mobile_filter(address, 8443, everything=everything))
