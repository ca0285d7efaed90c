"""Audits through the proxies of other projects: HAProxy, nginx, Squid."""

from __future__ import annotations

from pathlib import Path

from tests.end_to_end.audits.audited import HTTP_PLAN, SERVER_ADDRESS, audit, redirected

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


def test_haproxy_is_a_split_that_reads_nothing(tmp_path: Path) -> None:
    (tmp_path / "haproxy.conf").write_text(HAPROXY)
    seen = audit(tmp_path, HTTP_PLAN, redirected("haproxy -db -f haproxy.conf", 8080))
    assert (seen.verdict("http-data"), seen.verdict("tcp")) == ("split-tcp", "regular")
    assert seen.is_split("http-data", "up")
    assert {"every-request-arrived", "requests-arrived-as-sent"} <= seen.findings("http-data")


def test_nginx_is_a_split_that_reads_http(tmp_path: Path) -> None:
    (tmp_path / "nginx.conf").write_text(NGINX)
    seen = audit(tmp_path, HTTP_PLAN, redirected("nginx -p . -e stderr -c nginx.conf", 8080))
    assert seen.is_split("http-data", "down")
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
    assert seen.is_split("http-data", "down")
    assert seen.is_split("http-data", "up")
    assert seen.verdict("tcp") == "regular"
    assert "served-from-cache" in seen.findings("http-data")
