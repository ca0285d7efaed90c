"""FTP moves objects and nothing else: no other host is connected to, no other port is opened, no file is touched."""

from __future__ import annotations

import contextlib
import ftplib
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from prober.protocol.objects import object_bytes
from tests.prober.server.running import TIMEOUT_S, Here, received, serving_here


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Here]:
    with serving_here(tmp_path_factory.mktemp("state"), object_bytes=1_000_000) as here:
        yield here


@contextlib.contextmanager
def logged_in(here: Here) -> Iterator[ftplib.FTP]:
    with ftplib.FTP() as ftp:
        ftp.connect("127.0.0.1", here.ports.ftp, timeout=TIMEOUT_S)
        ftp.login(here.session, "x")
        yield ftp


@pytest.mark.parametrize("user", ["anonymous", "a" * 26, "root", "../../x", "x" * 1000])
def test_only_sessions_log_in(here: Here, user: str) -> None:
    with ftplib.FTP() as ftp:
        ftp.connect("127.0.0.1", here.ports.ftp, timeout=TIMEOUT_S)
        with pytest.raises(ftplib.error_perm, match="530"):
            ftp.login(user, "x")


@pytest.mark.parametrize(
    "command", ["PORT 127,0,0,2,200,10", "PORT 192,0,2,1,200,10", "EPRT |1|127.0.0.2|51210|", "EPRT |2|::1|51210|"]
)
def test_ftp_never_connects_to_another_host(here: Here, command: str) -> None:
    with socket.create_server(("127.0.0.2", 0)) as other, logged_in(here) as ftp:
        port = other.getsockname()[1]
        command = command.replace("200,10", f"{port >> 8},{port & 255}").replace("51210", str(port))
        with pytest.raises(ftplib.Error, match=r"^5"):
            ftp.sendcmd(command)
        with contextlib.suppress(ftplib.Error):
            ftp.sendcmd("RETR 1000-1.bin")
        other.settimeout(0.3)
        with pytest.raises(TimeoutError):
            other.accept()


def test_it_never_connects_to_a_privileged_port(here: Here) -> None:
    with logged_in(here) as ftp, pytest.raises(ftplib.error_perm, match="501"):
        ftp.sendcmd("PORT 127,0,0,1,0,22")


def test_it_connects_to_the_client_that_asks(here: Here) -> None:
    with logged_in(here) as ftp:
        ftp.set_pasv(False)
        data = bytearray()
        ftp.retrbinary("RETR 100000-3.bin", data.extend)
    assert bytes(data) == object_bytes("bin", 100_000, 3)


def test_data_ports_are_the_declared_ones_or_none(here: Here) -> None:
    """As many clients as there are ports each wait for their data connection; the next one is told to come again."""
    first, last = here.ports.ftp_data
    with contextlib.ExitStack() as clients:
        taken = set()
        for _ in range(last - first + 1):
            ftp = clients.enter_context(logged_in(here))
            taken.add(ftp.makepasv()[1])
        assert taken == set(range(first, last + 1))
        late = clients.enter_context(logged_in(here))
        for command in ("PASV", "EPSV"):
            with pytest.raises(ftplib.error_temp, match="425"):
                late.sendcmd(command)
        assert late.sendcmd("NOOP").startswith("200")
    with logged_in(here) as ftp:
        ftp.makepasv()


@pytest.mark.parametrize(
    "command",
    ["LIST", "NLST", "MLSD", "MLST", "STAT /", "DELE 10-1.bin", "MKD x", "RMD /", "RNFR 10-1.bin", "SITE CHMOD 777 x",
     "STOU", "APPE x", "MDTM 10-1.bin", "MFMT 20200101000000 10-1.bin", "AUTH TLS", "HELP", "XCWD /", "\xff\xf4ABOR x"],
)  # fmt: skip
def test_other_commands_are_not_understood(here: Here, command: str) -> None:
    with logged_in(here) as ftp:
        ftp.encoding = "latin-1"
        with pytest.raises(ftplib.error_perm, match=r"^50[0-9]"):
            ftp.sendcmd(command)


@pytest.mark.parametrize(
    "command",
    ["RETR /etc/passwd", "RETR ../../etc/passwd", "RETR 9999999-1.bin", "RETR 10-1.jpg", "RETR", "CWD /etc", "CWD ..x",
     "SIZE /etc/passwd", "RETR " + "x" * 1500],
)  # fmt: skip
def test_there_is_nothing_but_objects(here: Here, command: str) -> None:
    with logged_in(here) as ftp:
        ftp.sendcmd("TYPE I")
        with pytest.raises(ftplib.error_perm, match=r"^5"):
            ftp.sendcmd(command)


def test_uploads_leave_nothing_behind_and_have_a_limit(here: Here) -> None:
    with logged_in(here) as ftp:
        _, port = ftp.makepasv()
        ftp.sendcmd("TYPE I")
        with here.connect(port) as data:
            ftp.sendcmd("STOR /../../tmp/pepscope-must-not-be-there")
            with contextlib.suppress(ConnectionError):
                data.sendall(b"x" * 1_500_000)
        with pytest.raises(ftplib.error_temp, match="426"):
            ftp.voidresp()
    assert not Path("/tmp/pepscope-must-not-be-there").exists()


def test_foreign_clients_are_refused(tmp_path_factory: pytest.TempPathFactory) -> None:
    with serving_here(tmp_path_factory.mktemp("state"), head_s=0.3) as here, here.connect(here.ports.ftp) as sock:
        assert b"421" in received(sock)


@pytest.mark.parametrize(
    "garbage", [b"\0" * 5000, b"\xff" * 100_000, b"USER\r\nPASS\r\n" * 100, b"\r\n" * 2000, b"PORT 1,2\r\n"]
)
def test_garbage_is_refused_without_an_error(here: Here, garbage: bytes) -> None:
    with here.connect(here.ports.ftp) as sock, contextlib.suppress(OSError):
        sock.sendall(garbage)
        sock.shutdown(socket.SHUT_WR)
        sock.recv(1000)
    with logged_in(here) as ftp:
        assert ftp.sendcmd("NOOP").startswith("200")
