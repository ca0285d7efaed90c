"""What the kernel makes of the settings of a leg."""

from __future__ import annotations

import socket
import struct
import threading

import pytest

from reference_proxy.sockets import LegSettings, listen, prepare_leg

SEGMENT_BYTES = 1460
PIECE = bytes(10_000)
_SEND_WINDOW_OFFSET = 228  # tcpi_snd_wnd of linux/tcp.h, Linux 5.4


def peer_window_bytes(sock: socket.socket) -> int:
    """The window that the peer advertised last."""
    (window,) = struct.unpack_from(
        "=I", sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1024), _SEND_WINDOW_OFFSET
    )
    return int(window)


def largest_window(settings: LegSettings, *, dials: bool) -> int:
    """The largest window that a leg advertises to a sender that fills it, the leg's side dialling or listening."""
    with listen(("127.0.0.1", 0), LegSettings() if dials else settings, transparent=False, backlog=1) as listener:
        listener.setblocking(True)
        dialled = socket.socket()
        if dials:
            prepare_leg(dialled, settings)
        # As on a wire: loopback's segments are longer than small windows.
        dialled.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, SEGMENT_BYTES)
        dialled.connect(listener.getsockname())
        accepted, _ = listener.accept()
    accepted.setblocking(True)
    reader, writer = (dialled, accepted) if dials else (accepted, dialled)
    windows = [peer_window_bytes(writer)]

    def write() -> None:
        for _ in range(100):
            writer.sendall(PIECE)
            windows.append(peer_window_bytes(writer))
        writer.shutdown(socket.SHUT_WR)

    with reader, writer:
        writing = threading.Thread(target=write)
        writing.start()
        received = 0
        while taken := len(reader.recv(5000)):
            received += taken
        writing.join()
    assert received == 100 * len(PIECE)
    return max(windows)


@pytest.mark.parametrize("dials", [True, False])
@pytest.mark.parametrize("clamp_bytes", [8_000, 20_000, 60_000])
def test_no_window_is_larger_than_its_clamp(clamp_bytes: int, dials: bool) -> None:
    largest = largest_window(LegSettings(window_clamp_bytes=clamp_bytes), dials=dials)
    assert clamp_bytes / 3 <= largest <= clamp_bytes


def test_without_a_clamp_windows_grow() -> None:
    assert largest_window(LegSettings(), dials=True) > 60_000


def test_the_smaller_of_buffer_and_clamp_counts() -> None:
    assert largest_window(LegSettings(receive_buffer_bytes=4_000, window_clamp_bytes=60_000), dials=True) <= 8_000
