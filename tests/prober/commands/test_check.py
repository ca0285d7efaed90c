"""The command `check`: its plan, a host next door, its errors."""

from __future__ import annotations

import json
import socket
import threading

import pytest
from click.testing import CliRunner

from pepscope.errors import UsageError
from prober.commands.check import check


def test_the_plan_is_said_before_anything_is_sent(tmp_path):
    targets = tmp_path / "targets.txt"
    targets.write_text("127.0.0.1 9 plain\n")
    done = CliRunner().invoke(check, ["--targets", str(targets), "--dry-run"])
    assert (done.exit_code, done.stdout) == (0, "")
    assert "sends at most" in done.stderr


def test_a_server_on_this_host_is_no_network(tmp_path):
    page = tmp_path / "page.html"
    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=_answer, args=(server,), daemon=True).start()
        targets = tmp_path / "targets.txt"
        targets.write_text(f"127.0.0.1 {server.getsockname()[1]} plain\n")
        done = CliRunner().invoke(
            check, ["--targets", str(targets), "--json", "--html", str(page), "--fail-on", "inconclusive"]
        )
    assert done.exit_code == 1
    (port,) = json.loads(done.stdout)["ports"]
    assert (port["verdict"], port["causes"]) == ("inconclusive", ["this-host"])
    assert "this-host" in page.read_text(encoding="utf-8")
    assert f"wrote {page}" in done.stderr


def _answer(server: socket.socket) -> None:
    while True:
        try:
            link, _ = server.accept()
        except OSError:
            return
        with link:
            try:
                link.recv(4096)
                link.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
            except OSError:
                continue


def test_a_file_that_is_not_there_is_one_sentence(tmp_path):
    done = CliRunner().invoke(check, ["--targets", str(tmp_path / "none.txt")])
    assert "cannot be read: No such file or directory" in str(done.exception)


@pytest.mark.parametrize("option", ["--json", "--html=page.html", "--write=check.pcap", "--fail-on=split"])
def test_a_plan_has_no_results(option, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(check, ["--dry-run", option])
    assert isinstance(done.exception, UsageError)
    assert str(done.exception) == f"--dry-run measures nothing: give it without {option.partition('=')[0]}"
    assert list(tmp_path.iterdir()) == []
