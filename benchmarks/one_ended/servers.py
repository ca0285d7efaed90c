"""Servers and balancers of one network: nginx for HTTP and TLS, `site` for the rest, HAProxy as balancer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.fresh import namespaces
from benchmarks.one_ended.plan import GREETING, HTTP, HTTPS, HTTPS_12, PORTS
from benchmarks.one_ended.site import TEXT

if TYPE_CHECKING:
    from benchmarks.one_ended.plan import Balancer, Server
    from benchmarks.one_ended.topology import Network

#: Sizes of the pages that nginx has on disk, in bytes: `/s/SIZE`.
PAGE_BYTES = (250, 1_500, 9_000, 40_000, 150_000, 500_000)


def start(network: Network) -> None:
    """Start all servers and wait until they listen."""
    directory = network.directory
    pages = directory / "www" / "s"
    pages.mkdir(parents=True)
    for size in PAGE_BYTES:
        (pages / str(size)).write_bytes(TEXT[:size])
    _make_certificates(directory)
    sites: list[dict[str, str | None]] = []
    for server in network.network_plan.servers:
        unix = directory / f"{server.name}.sock"
        host = f"{server.name}b" if server.balancer else server.name
        sites.append({"namespace": network.namespace(host), "unix": str(unix)})
        if server.balancer:
            sites.append({"namespace": network.namespace(server.name), "unix": None})
            _start_balancer(network, server, server.balancer)
        _start_nginx(network, host, server, unix)
    settings, ready = directory / "site.json", directory / "site.ready"
    settings.write_text(json.dumps(sites))
    process = network.start_module(None, "site", str(settings), str(ready), log="site.out")
    network.wait_for(ready, process)
    for site in sites:
        network.wait_listening(str(site["namespace"]), *PORTS)


def _make_certificates(directory: Path) -> None:
    for name, kind in (("rsa", ("rsa:2048",)), ("ec", ("ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"))):
        namespaces.command(
            "openssl", "req", "-x509", "-newkey", *kind, "-nodes", "-keyout", str(directory / f"{name}.key"),
            "-out", str(directory / f"{name}.pem"), "-days", "30", "-subj", "/CN=www.example",
        )  # fmt: skip
        # A chain as servers send it: leaf, intermediate.
        certificate = directory / f"{name}.pem"
        certificate.write_text(certificate.read_text() * 2)


def _start_nginx(network: Network, host: str, server: Server, unix: Path) -> None:
    directory = network.directory / f"nginx-{host}"
    directory.mkdir()
    key = network.directory / ("rsa" if server.rsa else "ec")
    configuration = directory / "nginx.conf"
    configuration.write_text(
        "daemon off; master_process off; user root; worker_processes 1;\n"
        f"pid {directory}/pid; error_log {directory}/error.log;\nevents {{ worker_connections 512; }}\n"
        f"http {{ access_log off; default_type text/plain; tcp_nodelay on; keepalive_requests 1000;\n"
        f" client_body_temp_path {directory}; proxy_temp_path {directory}; fastcgi_temp_path {directory};"
        f" uwsgi_temp_path {directory}; scgi_temp_path {directory}; client_max_body_size 20m;\n"
        f" ssl_certificate {key}.pem; ssl_certificate_key {key}.key; ssl_session_cache off;\n server {{\n"
        f" listen {HTTP}; listen {HTTPS} ssl http2; listen {HTTPS_12} ssl; ssl_protocols TLSv1.2 TLSv1.3;\n"
        f" root {network.directory}/www;\n location /s/ {{ add_header Cache-Control max-age=600; }}\n"
        f" location / {{ proxy_pass http://unix:{unix}:; }}\n }} }}\n"
    )
    network.start(network.namespace(host), "nginx", "-c", str(configuration), log=f"nginx-{host}.out")


def _start_balancer(network: Network, server: Server, balancer: Balancer) -> None:
    backend, certificate = balancer.backend_address, network.directory / f"{server.name}-balancer.pem"
    plain = [(port, "", port, "tcp") for port in PORTS]
    if balancer.ends_tls:
        parts = [(network.directory / f"rsa.{kind}").read_text() for kind in ("pem", "key")]
        certificate.write_text("".join(parts))
        tls = f" ssl crt {certificate} ssl-min-ver TLSv1.2"
        plain = [
            (HTTP, "", HTTP, "http"), (HTTPS, f"{tls} alpn h2,http/1.1", HTTP, "http"), (HTTPS_12, tls, HTTP, "http"),
            (GREETING, "", GREETING, "tcp"),
        ]  # fmt: skip
    configuration = network.directory / f"{server.name}-balancer.cfg"
    sections = [
        f"frontend f{port}\n mode {mode}\n bind :{port}{tls}\n default_backend b{port}\n"
        f"backend b{port}\n mode {mode}\n server one {backend}:{inner}\n"
        for port, tls, inner, mode in plain
    ]
    configuration.write_text(
        "global\n maxconn 400\n tune.ssl.default-dh-param 2048\ndefaults\n timeout connect 20s\n timeout client 60s\n"
        " timeout server 60s\n" + "".join(sections)
    )
    name = f"{server.name}-balancer.out"
    network.start(network.namespace(server.name), "haproxy", "-db", "-f", str(configuration), log=name)
    network.wait_listening(network.namespace(server.name), *PORTS)
