"""All of it over IPv6."""

from __future__ import annotations

import ftplib
import hashlib
import http.client
import io
import socket
from pathlib import Path

import msgspec
import pytest

from pepscope.captures.capture import open_capture
from prober.client.control_client import ControlClient
from prober.protocol.objects import ObjectKind, ObjectName, object_bytes
from prober.protocol.plain_requests import TcpRequest, object_target
from prober.server.service import running
from tests.prober.server.running import TIMEOUT_S, received, settings


def test_everything_is_served_over_ipv6(tmp_path: Path) -> None:
    wanted = msgspec.structs.replace(settings(tmp_path), listen=("::1",))
    with (
        running(wanted) as (key, about, _),
        ControlClient("::1", about.ports.control, key, patience_s=2.0) as control,
    ):
        ports, session = about.ports, control.session
        capture = control.start_capture("v6", 100)
        with socket.create_connection(("::1", ports.tcp[0]), timeout=TIMEOUT_S) as sock:
            sock.sendall(TcpRequest(session, "download", 50_000, 1).to_line())
            assert received(sock) == object_bytes("bin", 50_000, 1)
        connection = http.client.HTTPConnection("::1", ports.http, timeout=TIMEOUT_S)
        connection.request("GET", object_target(session, "bin", 5000, 1))
        assert connection.getresponse().read() == object_bytes("bin", 5000, 1)
        connection.close()
        with ftplib.FTP() as ftp:
            ftp.connect("::1", ports.ftp, timeout=TIMEOUT_S)
            ftp.login(session, "x")
            digest = hashlib.sha256()
            ftp.retrbinary("RETR 70000-1.bin", digest.update)
            assert digest.hexdigest() == ObjectName(ObjectKind.BINARY, 70_000, 1).sha256()
            ftp.storbinary("STOR up.bin", io.BytesIO(b"u" * 1000))
            ftp.set_pasv(False)
            ftp.retrbinary("RETR 100-1.bin", lambda data: None)
        with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as datagrams:
            datagrams.settimeout(TIMEOUT_S)
            datagrams.sendto(session.encode(), ("::1", ports.udp_echo))
            assert datagrams.recv(100) == session.encode()
        with pytest.raises(TimeoutError):
            socket.create_connection(("::1", ports.dead), timeout=0.4)
        summary = control.fetch_capture(capture, tmp_path / "v6.pcap")
        assert open_capture(str(tmp_path / "v6.pcap")).packet_count == summary.packets
        entries = control.served(settle_s=TIMEOUT_S)
        assert {entry.peer.rpartition(":")[0] for entry in entries} == {"[::1]"}
        assert {entry.ending for entry in entries} == {"finished"}
        assert all(entry.syn[0] >> 4 == 6 for entry in entries if entry.syn)


def test_both_families_at_once_have_one_port_each(tmp_path: Path) -> None:
    wanted = msgspec.structs.replace(settings(tmp_path), listen=("127.0.0.1", "::1"))
    with running(wanted) as (key, about, _):
        for address in wanted.listen:
            with ControlClient(address, about.ports.control, key, patience_s=2.0) as control:
                assert control.about() == about
