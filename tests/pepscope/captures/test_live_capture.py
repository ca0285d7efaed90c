"""A capture that ends has what the kernel handed over until then, whenever its thread had a processor last."""

from __future__ import annotations

import socket
import threading
import time
from pathlib import Path

import pytest

from pepscope.captures.capture import open_capture
from pepscope.captures.live.device import CaptureOutput, Device
from pepscope.captures.live.one_file import LiveCapture
from pepscope.captures.live.slices import SlicedCapture

CONNECTIONS = 20


@pytest.fixture(autouse=True)
def starved(monkeypatch: pytest.MonkeyPatch) -> None:
    """The thread that reads a device gets no processor until the capture is to end."""
    broken_off = threading.Event()
    copy_to, break_off = Device.copy_to, Device.break_off

    def late(self: Device, output: CaptureOutput) -> bool:
        assert broken_off.wait(60)
        return copy_to(self, output)

    def told(self: Device) -> None:
        break_off(self)
        broken_off.set()

    monkeypatch.setattr(Device, "copy_to", late)
    monkeypatch.setattr(Device, "break_off", told)


@pytest.fixture
def server() -> socket.socket:
    return socket.create_server(("127.0.0.1", 0))


def connect(server: socket.socket) -> None:
    """Connections that the kernel has handed over to the capture."""
    for _ in range(CONNECTIONS):
        with socket.create_connection(server.getsockname(), 60), server.accept()[0]:
            pass
    server.close()
    time.sleep(0.3)


def test_one_file_has_what_was_not_read_yet(server: socket.socket, tmp_path: Path) -> None:
    path = tmp_path / "lo.pcap"
    capture = LiveCapture("lo", path, 128, f"tcp port {server.getsockname()[1]}")
    connect(server)
    assert capture.finish()["missed_packets"] == 0
    assert len(open_capture(str(path)).connections) == CONNECTIONS


def test_the_last_slice_has_what_was_not_read_yet(server: socket.socket, tmp_path: Path) -> None:
    expression = f"tcp port {server.getsockname()[1]}"
    capture = SlicedCapture("lo", tmp_path, 128, expression, slice_s=60, slice_bytes=1 << 30, waiting_bytes=1 << 30)
    connect(server)
    capture.finish()
    taken = capture.take(0)
    assert taken is not None
    assert capture.failure is None
    assert len(open_capture(str(taken.path)).connections) == CONNECTIONS


def test_the_rest_is_no_more_than_the_kernel_can_hold(
    server: socket.socket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "lo.pcap"
    device = Device("lo", 128, f"tcp port {server.getsockname()[1]}")
    monkeypatch.setattr(device, "_most_waiting_packets", 5)
    output = device.file(path)
    connect(server)
    device.break_off()
    assert device.copy_to(output)
    assert device.copy_rest_to(output)
    output.close()
    device.close()
    assert open_capture(str(path)).packet_count == 5
