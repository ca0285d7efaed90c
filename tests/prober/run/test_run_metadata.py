"""What is remembered of clocks, hosts and network_devices."""

from __future__ import annotations

import socket
import subprocess
from types import SimpleNamespace
from typing import Any, cast

import pytest

from pepscope.captures.opening.filters import compile_filter
from pepscope.errors import UsageError
from prober.client import capabilities
from prober.client.capabilities import Capability
from prober.client.control_client import ControlClient
from prober.client.task_captures import mobile_filter
from prober.host import host_description, kernel_clock, network_devices
from prober.protocol.control_messages import About, Clock, ServerCapabilities
from prober.run import run_metadata
from tests.end_to_end.network import CLIENT_ADDRESS, MIDDLE_CLIENT_ADDRESS, network
from tests.prober.namespaces import inside


class VirtualTime:
    """The mobile's clocks, which only the server below moves."""

    def __init__(self) -> None:
        self.passed_ns = 0

    def monotonic_ns(self) -> int:
        return self.passed_ns

    def time_ns(self) -> int:
        return 1_700_000_000_000_000_000 + self.passed_ns

    def sleep(self, duration_s: float) -> None:
        self.passed_ns += round(duration_s * 1e9)


class SlowClock:
    """A server whose clock is ahead, and whose answers take their time: some both ways alike, one the way back."""

    def __init__(self, time: VirtualTime, ahead_s: float, delays_s: list[tuple[float, float]]) -> None:
        self.time = time
        self.ahead_s = ahead_s
        self.delays_s = delays_s

    def clock(self) -> Clock:
        there_s, back_s = self.delays_s.pop(0)
        self.time.sleep(there_s)
        read = Clock(self.time.time_ns() + round(self.ahead_s * 1e9), self.time.monotonic_ns(), True)
        self.time.sleep(back_s)
        return read


def sampled(ahead_s: float, *delays_s: tuple[float, float]) -> run_metadata.ClockSample:
    virtual = VirtualTime()
    server = cast("ControlClient", SlowClock(virtual, ahead_s, list(delays_s)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run_metadata, "time", virtual)
        return run_metadata.sample_clocks(server, len(delays_s))


@pytest.mark.parametrize("ahead_s", [0.0, 3600.0, -2.5])
def test_the_offset_is_within_its_uncertainty(ahead_s: float) -> None:
    """However unlike the two ways are."""
    for delays_s in ((0.02, 0.0), (0.0, 0.02), (0.01, 0.01)):
        sample = sampled(ahead_s, delays_s)
        assert sample.uncertainty_s == 0.01
        assert abs(sample.offset_s - ahead_s) <= sample.uncertainty_s + 1e-9


def test_the_fastest_exchange_counts() -> None:
    sample = sampled(10.0, (0.0, 0.1), (0.001, 0.001), (0.1, 0.0))
    assert sample.uncertainty_s == 0.001
    assert sample.offset_s == pytest.approx(10.0)


def test_notes_are_read() -> None:
    assert run_metadata.parse_notes(("operator=CDMA-I", "signal_dbm=-97", "url=a=b")) == {
        "operator": "CDMA-I",
        "signal_dbm": "-97",
        "url": "a=b",
    }
    with pytest.raises(UsageError, match="different keys"):
        run_metadata.parse_notes(("a=1", "a=2"))


def test_host_facts_are_those_of_the_kernel() -> None:
    found = host_description.describe_host("lo")
    assert found["kernel"] == subprocess.run(["uname", "-r"], capture_output=True, text=True, check=True).stdout.strip()
    assert (
        found["settings"]["ipv4/tcp_congestion_control"]
        in found["settings"]["ipv4/tcp_available_congestion_control"].split()
    )
    assert found["device"]["mtu_bytes"] == 65_536
    assert socket.gethostname() not in str({name: found[name] for name in found if name != "kernel"})
    assert "device" not in host_description.describe_host(None)


def test_the_device_is_the_one_that_leads_there() -> None:
    with network() as names, inside(names.client) as client:
        local = client.call(network_devices.local_address_towards, MIDDLE_CLIENT_ADDRESS)
        assert local == CLIENT_ADDRESS
        assert client.call(network_devices.device_of, local) == "up0"
        assert client.call(network_devices.device_of, "127.0.0.9") == "lo"
        assert client.call(network_devices.device_of, "192.0.2.77") is None
        subprocess.run(["ip", "-n", names.client, "link", "set", "up0", "mtu", "1280"], check=True)
        subprocess.run(["ip", "-n", names.client, "address", "add", "2001:db8::9/64", "dev", "up0"], check=True)
        assert client.call(network_devices.device_of, "2001:db8::9") == "up0"
        reported = client.call(network_devices.offloads, "up0")
        assert set(reported) >= {"tcp-segmentation-offload", "generic-receive-offload"}
    assert network_devices.offloads("no-such-device") == {}
    assert network_devices.mtu_bytes("no-such-device") is None


def test_the_kernels_clock_is_asked() -> None:
    assert kernel_clock.is_synchronised() in (True, False)


def about(**can: str) -> About:
    ports: Any = SimpleNamespace()
    return About(1, "0", ports, ServerCapabilities(**can), {}, {})


def test_a_missing_capability_of_the_server_is_attributed_to_it() -> None:
    found = capabilities.lacking_at_server(about(captures="no libpcap"))
    assert found == {Capability.SERVER_CAPTURE: "at the server: no libpcap"}
    assert (
        capabilities.unmet({Capability.SERVER_CAPTURE, Capability.ERROR_QUEUE}, found)
        == "server-capture: at the server: no libpcap"
    )
    assert capabilities.unmet({Capability.ERROR_QUEUE}, found) == ""


def test_only_what_is_wanted_is_looked_for() -> None:
    assert capabilities.lacking_at_mobile(None, "127.0.0.1", set()) == {}
    lacking = capabilities.lacking_at_mobile(None, "127.0.0.1", {Capability.MOBILE_CAPTURE})
    assert "no device" in lacking[Capability.MOBILE_CAPTURE]
    assert capabilities.lacking_at_mobile("lo", "127.0.0.1", {Capability.MOBILE_CAPTURE, Capability.ERROR_QUEUE}) == {}
    assert capabilities.lacking_at_mobile("lo", "::1", {Capability.ERROR_QUEUE}) == {}


def test_filters_are_of_the_servers_traffic_without_the_control_channel() -> None:
    for address in ("192.0.2.1", "2001:db8::1"):
        for everything in (False, True):
            assert compile_filter(mobile_filter(address, 8443, everything=everything))
