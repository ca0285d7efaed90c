"""Proxies that a client asks for, between real kernels: one capture at the client, or at the server behind."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from pepscope import detect
from pepscope.results.verdicts import GroupResult, SplitPlace, Verdict
from tests.end_to_end.delayed_network import MIDDLE, SERVER, captured, delayed_network, started
from tests.end_to_end.network import Network

TOOLS = ("ip", "ss", "tcpdump", "curl", "nginx", "microsocks", "tinyproxy")
pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or not Path("/dev/net/tun").exists() or any(shutil.which(tool) is None for tool in TOOLS),
    reason=f"needs root, TUN devices and {', '.join(TOOLS)}",
)

NEAR_S, FAR_S = 0.005, 0.02  # one way
SOCKS_PORT, HTTP_PROXY_PORT, PORT = 1080, 8888, 8000
CONNECTIONS = 12


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Network]:
    directory = tmp_path_factory.mktemp("declared")
    settings = directory / "tinyproxy.conf"
    settings.write_text(f"Port {HTTP_PROXY_PORT}\nTimeout 600\nMaxClients 50\nConnectPort {PORT}\nLogLevel Error\n")
    serving = directory / "nginx.conf"
    serving.write_text(
        f"daemon off; pid {directory}/nginx.pid; error_log {directory}/nginx.log; events {{}} http {{ access_log off; "
        f"server {{ listen {PORT}; location / {{ return 200 text; }} }} }}"
    )
    with delayed_network(directory, NEAR_S, FAR_S) as made, contextlib.ExitStack() as stack:
        for namespace, command, port in (
            (made.server, ["nginx", "-c", str(serving)], PORT),
            (made.middle, ["microsocks", "-p", str(SOCKS_PORT)], SOCKS_PORT),
            (made.middle, ["tinyproxy", "-d", "-c", str(settings)], HTTP_PROXY_PORT),
        ):
            stack.enter_context(started(made, namespace, *command, port=port))
        yield made


def fetch(names: Network, *ways: str) -> None:
    """Fetch from the server so often; every transfer must succeed."""
    url = f"http://{SERVER}:{PORT}/"
    for _ in range(CONNECTIONS):
        command = names.inside(names.client, "curl", "-sSf", "-o", "/dev/null", *ways, url)
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr


def at_client(names: Network, to: Path, *ways: str) -> GroupResult:
    """What one capture at the client says of transfers that go these ways."""
    with captured(names, names.client, "up0", to):
        fetch(names, *ways)
    result = detect(str(to))
    assert len(result.pairs) == CONNECTIONS
    (group,) = result.groups
    assert set(result.verdicts) <= {group.verdict, Verdict.INCONCLUSIVE}
    return group


@pytest.mark.parametrize(
    ("ways", "named"),
    [
        (["--socks5", f"{MIDDLE}:{SOCKS_PORT}"], "a SOCKS proxy"),
        (["--socks5-hostname", f"{MIDDLE}:{SOCKS_PORT}"], "a SOCKS proxy"),
        (["--proxytunnel", "-x", f"{MIDDLE}:{HTTP_PROXY_PORT}"], "an HTTP proxy (CONNECT)"),
    ],
)
def test_a_proxy_that_the_client_asks_for_splits_by_declaration(
    names: Network, ways: list[str], named: str, tmp_path: Path
) -> None:
    group = at_client(names, tmp_path / "client.pcap", *ways)
    assert (group.verdict, group.where) == (Verdict.SPLIT_TCP, SplitPlace.PROXY), group.reason
    assert f"{CONNECTIONS} connections ask {named}" in group.reason
    assert group.near_round_trip_s == pytest.approx(2 * NEAR_S, abs=0.005)


def test_requests_in_absolute_form_are_never_called_regular(names: Network, tmp_path: Path) -> None:
    """On a busy machine timing may leave it open how long the leg behind the proxy is."""
    group = at_client(names, tmp_path / "client.pcap", "-x", f"{MIDDLE}:{HTTP_PROXY_PORT}")
    assert group.asks_proxy, group.reason
    assert group.verdict in (Verdict.SPLIT_TCP, Verdict.INCONCLUSIVE), group.reason


def test_without_a_proxy_the_same_is_regular(names: Network, tmp_path: Path) -> None:
    group = at_client(names, tmp_path / "client.pcap")
    assert (group.verdict, group.where) == (Verdict.REGULAR, None), group.reason


def test_a_server_that_accepts_absolute_form_is_not_accused(names: Network, tmp_path: Path) -> None:
    """Nor where the request names another port, as after a translation of ports."""
    for target in (f"http://{SERVER}:{PORT}/", "http://example.com/"):
        group = at_client(names, tmp_path / "client.pcap", "--request-target", target)
        assert not group.verdict.is_split, group.reason
