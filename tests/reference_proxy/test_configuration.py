from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from pepscope.settings import read_toml
from reference_proxy.cli import proxy
from reference_proxy.configuration import Aborts, Interception, Mode
from reference_proxy.consistency import read_configuration, relay_limit
from reference_proxy.errors import ConfigurationError
from reference_proxy.interception.allow_list import AllowList


def test_toml_becomes_a_configuration(tmp_path: Path) -> None:
    file = tmp_path / "proxy.toml"
    file.write_text(
        'mode = "split"\naborts = "after-delay"\nabort_delay_s = 40\nallow = ["10.0.0.0/8:80"]\n'
        '[limits]\nconnections = 5\n[mobile]\ncongestion_control = "reno"\n'
    )
    configuration = read_configuration(read_toml(file, ConfigurationError))
    assert configuration.mode is Mode.SPLIT
    assert configuration.interception is Interception.EXPLICIT
    assert configuration.aborts is Aborts.AFTER_DELAY
    assert configuration.abort_delay_s == 40.0
    assert configuration.limits.connections == 5
    assert configuration.mobile.congestion_control == "reno"
    assert all(listen.startswith("127.") for listen in configuration.listen)


@pytest.mark.parametrize(
    ("document", "sentence"),
    [
        ({}, "mode is missing"),
        ({"mode": "spilt"}, "mode must be one of split, store-and-forward"),
        ({"mode": "split", "bufer_bytes": 1}, "bufer_bytes is not a field; fields are abort_delay_s, aborts"),
        (
            {"mode": "split", "buffer_bytes": 1},
            "buffer_bytes must be a whole number between 1024 and 1073741824",
        ),
        ({"mode": "split", "buffer_bytes": True}, "buffer_bytes must be a whole number"),
        ({"mode": "split", "buffer_bytes": 1.5}, "buffer_bytes must be a whole number"),
        ({"mode": "split", "limits": 5}, "limits must be a table"),
        ({"mode": "split", "limits": {"idle_s": -1}}, "limits.idle_s must be a number between 0.05 and 864000, got -1"),
        ({"mode": "split", "listen": ["localhost:1"]}, "listen must be ADDRESS:PORT"),
        ({"mode": "split", "listen": ["127.0.0.1:99999"]}, "listen must be ADDRESS:PORT"),
        ({"mode": "split", "interception": "fixed"}, "target must be given exactly where interception is fixed"),
        (
            {"mode": "split", "limits": {"memory_bytes": 1 << 20}, "buffer_bytes": 1 << 20},
            "must be at least two buffers",
        ),
        ({"mode": "split", "allow": ["example.org:x"]}, "must have ports between"),
        ({"mode": "udp-tunnel", "tunnel": {"end": "client"}}, "tunnel.server must be ADDRESS:PORT"),
        ({"mode": "window-adaptation", "adaptation": {"approach_per_s": 50}}, "approach_per_s x step_s"),
        ({"mode": "store-and-forward", "store": {"object_bytes": 2048}}, "must be at least buffer_bytes"),
        (
            {"mode": "split", "rules": {"ports": [0]}},
            "rules.ports[0] must be a whole number between 1 and 65535",
        ),
    ],
)
def test_an_error_is_one_sentence(document: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConfigurationError) as refusal:
        read_configuration(document)
    assert sentence in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_memory_bounds_connections() -> None:
    configuration = read_configuration({"mode": "split", "buffer_bytes": 1 << 20, "limits": {"memory_bytes": 10 << 20}})
    assert relay_limit(configuration) == 5


@pytest.mark.parametrize(
    ("entry", "host", "port", "allowed"),
    [
        ("10.0.0.0/8", "10.1.2.3", 80, True),
        ("10.0.0.0/8", "11.1.2.3", 80, False),
        ("10.0.0.0/8:80,443", "10.1.2.3", 443, True),
        ("10.0.0.0/8:80,443", "10.1.2.3", 22, False),
        ("10.0.0.0/8", "::ffff:10.1.2.3", 80, True),
        ("[2001:db8::/32]:443", "2001:db8::1", 443, True),
        ("[2001:db8::/32]:443", "2001:db8::1", 80, False),
        ("2001:db8::1", "2001:db8::1", 80, True),
        ("example.org", "EXAMPLE.org.", 80, True),
        ("example.org", "www.example.org", 80, False),
        ("*.example.org", "www.example.org", 80, True),
        ("*.example.org", "example.org", 80, False),
        ("*", "anything", 80, True),
        ("*:443", "anything", 80, False),
    ],
)
def test_the_allow_list(entry: str, host: str, port: int, allowed: bool) -> None:
    assert AllowList([entry]).allows_name(host, port) == allowed


def run(*arguments: str) -> str:
    finished = CliRunner().invoke(proxy, arguments)
    assert finished.exit_code == 0, finished.output + str(finished.exception)
    return finished.output


OPTIONS = ("split", "--interception", "transparent", "--listen", "0.0.0.0:8888", "--device", "eth7", "--ports", "80,21")


def test_dry_run_prints_rules_for_the_chosen_ports_and_changes_nothing() -> None:
    printed = run(*OPTIONS, "--setup", "--dry-run")
    assert 'iifname "eth7"' in printed
    assert "tcp dport { 21, 80 }" in printed
    assert "tproxy ip to :8888" in printed
    assert "tproxy ip6" not in printed
    assert "ip -4 rule add fwmark 0x7065 lookup 28773" in printed


def test_ports_may_be_ranges_with_and_without_nftables(monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = (*OPTIONS[:-1], "26900-26931,21", "--setup", "--dry-run")
    assert "tcp dport { 21, 26900-26931 }" in run(*wanted)
    monkeypatch.setattr("reference_proxy.interception.rules.shutil.which", lambda _: None)
    printed = run(*wanted)
    assert "--dport 21 " in printed
    assert "--dport 26900:26931 " in printed


@pytest.mark.parametrize("ports", ["a", "1-", "5-b", "70000", "1,,2"])
def test_ports_that_are_none_are_refused(ports: str) -> None:
    finished = CliRunner().invoke(proxy, (*OPTIONS[:-1], ports, "--setup", "--dry-run"))
    assert finished.exit_code != 0


def test_proxies_with_routing_tables_of_their_own_have_rules_beside_each_other() -> None:
    printed = run(*OPTIONS, "--set", "rules.table=4711", "--set", "rules.mark=4711", "--setup", "--dry-run")
    assert "table inet pepscope_proxy_4711 {" in printed
    assert "pepscope_proxy {" not in printed
    assert "lookup 4711" in printed


def test_teardown_names_everything_that_setup_made() -> None:
    printed = run(*OPTIONS, "--teardown", "--dry-run")
    for removed in ("nft delete table inet pepscope_proxy", "rule del fwmark 0x7065", "route flush table 28773"):
        assert removed in printed
    assert all(line.endswith("|| true") for line in printed.splitlines())


def test_iptables_serves_where_nftables_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reference_proxy.interception.rules.shutil.which", lambda _: None)
    printed = run(*OPTIONS, "--listen", "[::]:8889", "--setup", "--dry-run")
    assert "iptables -w -t mangle -A PEPSCOPE-PROXY -p tcp -i eth7" in printed
    assert "ip6tables -w -t mangle -A PEPSCOPE-PROXY" in printed
    assert "--on-port 8888" in printed
    assert "--on-port 8889" in printed


def test_connections_of_own_programs_come_round_by_the_loopback() -> None:
    printed = run(
        "split", "--interception", "destination-transparent", "--listen", "0.0.0.0:8888", "--setup", "--dry-run"
    )
    assert "type route hook output" in printed
    assert 'iifname "lo"' in printed


def test_every_second_connection_is_diverted_with_and_without_nftables(monkeypatch: pytest.MonkeyPatch) -> None:
    every = (*OPTIONS, "--set", "rules.every=2", "--setup", "--dry-run")
    assert "tcp flags & (fin | syn | rst | ack) == syn numgen inc mod 2 == 0 tproxy" in run(*every)
    assert "numgen" not in run(*OPTIONS, "--setup", "--dry-run")
    monkeypatch.setattr("reference_proxy.interception.rules.shutil.which", lambda _: None)
    assert "--syn -m statistic --mode nth --every 2 --packet 0 -j TPROXY" in run(*every)


def test_programs_of_this_machine_have_no_turns() -> None:
    own = ("split", "--interception", "transparent", "--listen", "0.0.0.0:8888", "--set", "rules.every=2", "--setup")
    finished = CliRunner().invoke(proxy, own)
    assert "rules.every must be 1 without rules.device" in str(finished.exception)
