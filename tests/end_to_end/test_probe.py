"""Audits from end to end: the matrix is the truth, whoever stands in the middle."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.end_to_end.audited import (
    MIDDLE_ADDRESS,
    PROVIDERS,
    SERVER_ADDRESS,
    Audit,
    audit,
    audit_of_provider,
    redirected,
)

HTTP_PLAN = """
applications = ["http-data", "tcp"]
[experiments.transfers]
sizes_bytes = [800_000]
upload_share = 0.5
repeats = 1
[experiments.cache]
[experiments.odd-requests]
"""

#: Wei et al., UMass TR 2005-59, Table I; CDMA-I's HTTP data was proxied before September 2005. HTTPS was not measured
#: there: nobody here touches it.
TABLE_I = {
    "cdma-i": {"ftp": "split-tcp", "http-data": "tcp-proxy", "http-image": "tcp-proxy", "tcp": "regular"},
    "cdma-ii": {"ftp": "split-tcp", "http-data": "split-tcp", "http-image": "tcp-proxy", "tcp": "regular"},
    "gprs-i": {"ftp": "regular", "http-data": "split-tcp", "http-image": "tcp-proxy", "tcp": "split-tcp"},
}


def is_split(seen: Audit, application: str, direction: str) -> bool:
    return seen.verdict(application, direction) in ("split-tcp", "tcp-proxy")


@pytest.mark.parametrize("provider", TABLE_I)
def test_the_providers_of_table_one_are_told_apart(tmp_path: Path, provider: str) -> None:
    both = provider == "cdma-i"
    plan = tmp_path / "plan.toml"
    written = (PROVIDERS / "plan.toml").read_text()
    plan.write_text(written if both else f'directions = ["down"]\n{written}')
    seen = audit_of_provider(tmp_path / "out", provider, plan)
    published = TABLE_I[provider] | {"https": "regular"}
    assert {name: seen.verdict(name) for name in published} == published
    # Which kind an upload's proxy is, a fast far side hides; whether there is one, nothing does.
    assert not both or {name: is_split(seen, name, "up") for name in published} == {
        name: verdict != "regular" for name, verdict in published.items()
    }


TRANSFERS_PLAN = """
applications = ["http-data", "tcp"]
[capture]
everything = true
[experiments.transfers]
sizes_bytes = [800_000]
upload_share = 0.5
repeats = 1
"""


def test_window_adaptation_is_a_split(tmp_path: Path) -> None:
    """No Node-B reports its queue here, so that the proxy goes on as Split-TCP."""
    settings = "--interception transparent --listen 0.0.0.0:8888 --device pepscope-cell --ports 80"
    for field in ("buffer_bytes", "mobile.send_buffer_bytes", "server.receive_buffer_bytes"):
        settings += f" --set {field}=65536"
    middle = f"""
pepscope proxy window-adaptation {settings} --setup
pepscope proxy window-adaptation {settings} 2>proxy.log &
until grep -q ready proxy.log; do sleep 0.1; done
touch middle-ready
wait
"""
    seen = audit(tmp_path, TRANSFERS_PLAN, middle)
    assert (seen.verdict("http-data"), seen.verdict("tcp")) == ("split-tcp", "regular")
    assert is_split(seen, "http-data", "up")


def test_a_split_that_speaks_udp_to_the_mobile_is_told_by_it(tmp_path: Path) -> None:
    middle = """
pepscope proxy udp-tunnel --set tunnel.listen=0.0.0.0:9004 --allow 203.0.113.0/24 2>proxy.log &
until grep -q ready proxy.log; do sleep 0.1; done
touch middle-ready
wait
"""
    settings = f"--set tunnel.end=client --set tunnel.server={MIDDLE_ADDRESS}:9004 --interception transparent"
    settings += " --listen 0.0.0.0:8888 --ports 80"
    mobile = f"""
pepscope proxy udp-tunnel {settings} --setup
pepscope proxy udp-tunnel {settings} 2>tunnel.log &
until grep -q ready tunnel.log; do sleep 0.1; done
"""
    seen = audit(tmp_path, TRANSFERS_PLAN, middle, mobile)
    for direction in ("down", "up"):
        assert is_split(seen, "http-data", direction)
        assert "TCP at one end, UDP at the other" in seen.reason("http-data", direction)
        assert seen.verdict("tcp", direction) == "regular"


HAPROXY = f"""
global
    nbthread 1
    tune.bufsize 16384
    tune.rcvbuf.server 32768
    tune.sndbuf.client 32768
    tune.rcvbuf.client 32768
    tune.sndbuf.server 32768
defaults
    mode tcp
    timeout connect 5s
    timeout client 30s
    timeout server 30s
listen split
    bind :8080
    server only {SERVER_ADDRESS}:80
"""

NGINX = f"""
user root;
daemon off;
pid nginx.pid;
error_log stderr;
events {{ worker_connections 64; }}
http {{
    access_log off;
    client_body_temp_path body;
    proxy_temp_path proxy;
    fastcgi_temp_path fastcgi;
    uwsgi_temp_path uwsgi;
    scgi_temp_path scgi;
    client_max_body_size 0;
    server {{
        listen 8080;
        location / {{
            proxy_pass http://{SERVER_ADDRESS}:80;
            proxy_request_buffering on;
            proxy_buffering on;
        }}
    }}
}}
"""

SQUID = """
http_port 3128
http_port 8080 intercept
http_access allow all
pid_filename run/squid.pid
cache_log run/cache.log
access_log none
cache_store_log none
netdb_filename none
pinger_enable off
coredump_dir run
shutdown_lifetime 0 seconds
visible_hostname middle
max_filedescriptors 1024
dns_nameservers 127.0.0.1
memory_cache_shared off
strip_query_terms off
cache_mem 64 MB
maximum_object_size_in_memory 8 MB
host_verify_strict off
"""


def test_nobody_in_the_middle_nobody_accused(tmp_path: Path) -> None:
    plan = """
applications = ["http-data", "tcp"]
[experiments.transfers]
sizes_bytes = [800_000]
upload_share = 0.5
repeats = 1
[experiments.cache]
[experiments.odd-requests]
[experiments.recompress]
[experiments.options]
[experiments.handshake-rtt]
rounds = 10
"""
    seen = audit(tmp_path, plan)
    assert set(seen.verdicts.values()) == {"regular"}, seen.verdicts
    assert {"every-request-arrived", "requests-arrived-as-sent", "same-bytes"} <= seen.findings("http-data")


def test_what_changes_packets_without_splitting_them_is_not_accused(tmp_path: Path) -> None:
    """Address translation, clamped MSS, another TTL: carriers do all of these to connections that are end to end."""
    middle = """
set -e
iptables -t nat -A POSTROUTING -o pepscope-wired -j MASQUERADE
iptables -t mangle -A FORWARD -p tcp --tcp-flags SYN,RST SYN -j TCPMSS --set-mss 1300
iptables -t mangle -A POSTROUTING -j TTL --ttl-set 60
touch middle-ready
# `pepscope emulate` waits for somebody who listens.
exec python3 -m http.server --bind 127.0.0.1 9
"""
    seen = audit(tmp_path, HTTP_PLAN, middle)
    assert set(seen.verdicts.values()) == {"regular"}, seen.verdicts
    clients = [{vantage["client"] for vantage in connection["vantages"]} for connection in seen.connections("tcp")]
    assert [len(names) for names in clients] == [2], "the two ends saw different addresses"
    assert {"every-request-arrived", "requests-arrived-as-sent"} <= seen.findings("http-data")


def test_haproxy_is_a_split_that_reads_nothing(tmp_path: Path) -> None:
    (tmp_path / "haproxy.conf").write_text(HAPROXY)
    seen = audit(tmp_path, HTTP_PLAN, redirected("haproxy -db -f haproxy.conf", 8080))
    assert (seen.verdict("http-data"), seen.verdict("tcp")) == ("split-tcp", "regular")
    assert is_split(seen, "http-data", "up")
    assert {"every-request-arrived", "requests-arrived-as-sent"} <= seen.findings("http-data")


def test_nginx_is_a_split_that_reads_http(tmp_path: Path) -> None:
    (tmp_path / "nginx.conf").write_text(NGINX)
    seen = audit(tmp_path, HTTP_PLAN, redirected("nginx -p . -e stderr -c nginx.conf", 8080))
    assert is_split(seen, "http-data", "down")
    assert (seen.verdict("http-data", "up"), seen.verdict("tcp")) == ("tcp-proxy", "regular")
    found = seen.findings("http-data")
    assert "every-request-arrived" in found
    assert found & {"rewritten-headers", "answered-for-the-server"}


def test_squid_is_a_split_that_keeps_copies(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    # It gives up root.
    for directory in (tmp_path, tmp_path / "run"):
        directory.chmod(0o777)
    for parent in tmp_path.parents[:2]:
        parent.chmod(0o755)
    (tmp_path / "squid.conf").write_text(SQUID)
    seen = audit(tmp_path, HTTP_PLAN, redirected("squid -N -n pepscopeprobe -f squid.conf", 8080))
    assert is_split(seen, "http-data", "down")
    assert is_split(seen, "http-data", "up")
    assert seen.verdict("tcp") == "regular"
    assert "served-from-cache" in seen.findings("http-data")
