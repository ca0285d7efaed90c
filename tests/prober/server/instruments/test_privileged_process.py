"""The helper behind its pipe: what it does, what it refuses to a server that was taken over, and how it ends."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pepscope.captures.capture import open_capture
from pepscope.errors import CaptureError, PepscopeError
from prober.errors import ImpossibleError, MeasurementError
from prober.server.instruments.means import MeansSettings
from prober.server.instruments.privileged.pipe import HelperMeans
from prober.server.sockets.listening import Port, listen
from tests.prober.commands.test_serve import started
from tests.prober.server.running import is_answered


@pytest.fixture
def port() -> Iterator[Port]:
    port = listen("test", ["127.0.0.1"], 0)
    yield port
    port.close()


@pytest.fixture
def helper(tmp_path: Path, port: Port) -> Iterator[HelperMeans]:
    settings = MeansSettings(
        tmp_path, f"tcp port {port.number}", ((port.number, port.number),), port.number, captures=2, holds=2,
        hold_delay_s=5.0,
    )  # fmt: skip
    means = HelperMeans(settings, tmp_path)
    yield means
    means.close()


def until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def is_running(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def test_it_captures_holds_and_silences(helper: HelperMeans, port: Port, tmp_path: Path) -> None:
    assert (helper.lacking_captures("lo"), helper.lacking_holds()) == ("", "")
    capture = helper.capture("lo", 100)
    assert capture.path.parent == tmp_path
    hold = helper.hold(((port.number, port.number),), 0.05)
    assert is_answered(port.number)
    report = hold.close()
    assert hold.close() == report, "once"
    assert report.held >= report.released >= 0
    port.set_silence = helper.set_silence
    port.silence()
    assert not is_answered(port.number)
    port.end_silence()
    assert is_answered(port.number)
    assert capture.finish() == 0
    assert len(open_capture(str(capture.path)).connections) >= 1
    with pytest.raises(CaptureError, match=r"^the helper has no capture of this name$"):
        capture.finish()


@pytest.mark.parametrize("device", ["usbmon0", "dbus-system", "nflog", "any", "../../x", "nosuch0"])
def test_it_captures_from_network_interfaces_only(helper: HelperMeans, device: str, tmp_path: Path) -> None:
    with pytest.raises(CaptureError, match=f"^there is no network interface '{device}'$"):
        helper.capture(device, 100)
    assert "there is no network interface" in helper.lacking_captures(device)
    assert list(tmp_path.iterdir()) == []


def test_it_does_no_more_than_it_may(helper: HelperMeans, port: Port) -> None:
    for ports in (((22, 22),), ((1, 65_535),), ((port.number, port.number + 1),)):
        with pytest.raises(ImpossibleError, match=r"^ACKs are held back on the server's own ports only, got "):
            helper.hold(ports, 0.05)
    with pytest.raises(ImpossibleError, match=r"^ACKs are held back by at most 5 s$"):
        helper.hold(((port.number, port.number),), 5.1)
    with contextlib.ExitStack() as captures:
        for _ in range(2):
            captures.callback(helper.capture("lo", 100).finish)
        with pytest.raises(MeasurementError, match=r"^the helper must have at most 2 captures at once$"):
            helper.capture("lo", 100)
    captures.close()
    helper.capture("lo", 100).finish()


def test_it_silences_no_port_but_the_servers(helper: HelperMeans, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError

    # This kernel may allow everybody to attach a filter: then the server would not ask.
    monkeypatch.setattr("prober.server.instruments.privileged.pipe.listening.set_silence", refuse)
    with socket.create_server(("127.0.0.1", 0)) as other:
        with pytest.raises(PermissionError, match="only the server's own ports are silenced"):
            helper.set_silence(other, True)
        assert is_answered(other.getsockname()[1])


@pytest.mark.parametrize(
    "message",
    [b"x", b"{}", b'{"type":"hold","number":1,"ports":[[0,0]],"delay_s":1}', b'{"type":"run","number":1}', b"[" * 5000],
)
def test_what_makes_no_sense_ends_it(helper: HelperMeans, message: bytes, port: Port) -> None:
    hold = helper.hold(((port.number, port.number),), 0.05)
    helper._pipe.send(message)
    until(lambda: not is_running(helper._process.pid))
    for ask in (lambda: helper.capture("lo", 100), hold.close, lambda: helper.hold(((port.number, port.number),), 1.0)):
        with pytest.raises(MeasurementError, match=r"^the helper process for captures and ACK holds is gone; restart "):
            ask()
    assert is_answered(port.number, 60.0), "the hold is over"


def test_requests_are_answered_while_others_take_long(helper: HelperMeans, port: Port) -> None:
    """Letting ACKs go takes as long as they are held; nobody else waits for it."""
    hold = helper.hold(((port.number, port.number),), 3.0)
    with socket.create_connection(("127.0.0.1", port.number), timeout=60) as sock:
        sock.sendall(b"x")
        ending = threading.Thread(target=hold.close)
        ending.start()
        began = time.monotonic()
        assert helper.lacking_captures("lo") == ""
        took = time.monotonic() - began
        assert ending.is_alive() or took > 2.5
        ending.join(60)


@pytest.mark.parametrize("victim", ["server", "helper"])
def test_whoever_is_killed_nothing_is_held_any_more(tmp_path: Path, victim: str) -> None:
    with started(tmp_path) as server, server.control() as mobile:
        http = server.ready["ports"]["http"]
        (helper,) = (
            int(number)
            for task in Path(f"/proc/{server.process.pid}/task").iterdir()
            for number in (task / "children").read_text().split()
        )
        mobile.start_capture("x", 100)
        holding = mobile.hold_acks(http, 5.0, 600)
        holding.__enter__()
        assert remains(http)
        os.kill(server.process.pid if victim == "server" else helper, signal.SIGKILL)
        until(lambda: not is_running(helper))
        if victim == "helper":
            with pytest.raises(PepscopeError, match="the helper process for captures and ACK holds is gone"):
                mobile.start_capture("y", 100)
            assert is_answered(http, 60.0), "all else goes on"
        until(lambda: not remains(http))


def remains(port: int) -> bool:
    """Whether any rule is still about a port."""
    listed = ""
    for words in (["iptables-save"], ["nft", "list", "ruleset"]):
        if shutil.which(words[0]):
            listed += subprocess.run(words, capture_output=True, text=True, check=False).stdout
    return re.search(rf"\b{port}\b", listed) is not None
