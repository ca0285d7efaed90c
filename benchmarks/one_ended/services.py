"""Middles that need a service of their own for each server: nginx, stunnel, hitch, varnish, tinyproxy.

Connections are handed over by destination address and port (REDIRECT), so the servers see the middle's address.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.fresh import middleboxes, namespaces, proxies
from benchmarks.one_ended.plan import HTTP

if TYPE_CHECKING:
    from benchmarks.one_ended.topology import Network

_FIRST_PORT = 20_001


def _redirect_each(network: Network) -> list[tuple[str, int, int]]:
    """A listening port for each server and port that the middle takes: address, port, listening port."""
    plan = network.network_plan
    wanted = [(server.address, port) for server in plan.servers for port in plan.split_ports]
    found = [(address, port, _FIRST_PORT + number) for number, (address, port) in enumerate(wanted)]
    for address, port, listening in found:
        namespaces.inside(
            network.middle, "iptables", "-t", "nat", "-A", "PREROUTING", "-i", "cell", "-p", "tcp", "-d", address,
            "--dport", str(port), "-j", "REDIRECT", "--to-ports", str(listening),
        )  # fmt: skip
    return found


def nginx_stream(network: Network) -> None:
    """Layer 4 by nginx."""
    directory = network.directory / "middle-nginx"
    directory.mkdir()
    parts = "".join(
        f" server {{ listen {listening}; proxy_pass {address}:{port}; }}\n"
        for address, port, listening in _redirect_each(network)
    )
    configuration = directory / "nginx.conf"
    configuration.write_text(
        "load_module /usr/lib/nginx/modules/ngx_stream_module.so;\ndaemon off; user root; worker_processes 1;\n"
        f"pid {directory}/pid; error_log {directory}/error.log;\nevents {{}}\nstream {{\n{parts}}}\n"
    )
    network.start(network.middle, "nginx", "-c", str(configuration), log="middle.out")
    network.wait_listening(network.middle, _FIRST_PORT)


def stunnel(network: Network) -> None:
    """TLS towards the clients, plain HTTP towards the servers."""
    parts = "".join(
        f"[s{listening}]\naccept = {listening}\nconnect = {address}:{HTTP}\n"
        f"cert = {network.directory}/rsa.pem\nkey = {network.directory}/rsa.key\n"
        for address, _, listening in _redirect_each(network)
    )
    configuration = network.directory / "stunnel.conf"
    configuration.write_text(f"foreground = yes\npid =\nsslVersionMin = TLSv1.2\n{parts}")
    network.start(network.middle, "stunnel4", str(configuration), log="middle.out")
    network.wait_listening(network.middle, _FIRST_PORT)


def hitch(network: Network) -> None:
    """The same, event-driven; a process for each server."""
    pem = network.directory / "hitch.pem"
    pem.write_text((network.directory / "ec.key").read_text() + (network.directory / "ec.pem").read_text())
    by_server: dict[str, list[int]] = {}
    for address, _, listening in _redirect_each(network):
        by_server.setdefault(address, []).append(listening)
    for number, (address, listenings) in enumerate(by_server.items()):
        configuration = network.directory / f"hitch{number}.conf"
        frontends = "".join(f'frontend = "[*]:{listening}"\n' for listening in listenings)
        configuration.write_text(
            f'{frontends}backend = "[{address}]:{HTTP}"\npem-file = "{pem}"\nworkers = 1\ndaemon = off\n'
            'ocsp-dir = ""\nuser = "nobody"\ntls-protos = TLSv1.2 TLSv1.3\n'
        )
        network.start(network.middle, "hitch", f"--config={configuration}", log=f"hitch{number}.out")
        network.wait_listening(network.middle, listenings[0])


def tinyproxy(network: Network) -> None:
    """An HTTP proxy that takes connections without being asked."""
    proxies.tinyproxy(network)
    middleboxes.redirect(network, [HTTP], 3128)


def varnish(network: Network) -> None:
    """A cache; the Host header says which server is meant."""
    directory = network.directory / "varnish"
    directory.mkdir()
    addresses = [server.address for server in network.network_plan.servers]
    backends = "".join(f'backend b{n} {{ .host = "{a}"; .port = "{HTTP}"; }}\n' for n, a in enumerate(addresses))
    choices = "".join(
        f' if (req.http.host == "{a}") {{ set req.backend_hint = b{n}; }}\n' for n, a in enumerate(addresses)
    )
    configuration = directory / "middle.vcl"
    configuration.write_text(f"vcl 4.1;\n{backends}sub vcl_recv {{\n{choices}}}\n")
    network.start(
        network.middle, "varnishd", "-F", "-n", str(directory), "-a", ":6081", "-f", str(configuration), "-s",
        "malloc,64m", "-j", "none", "-p", "thread_pool_min=10", log="middle.out",
    )  # fmt: skip
    network.wait_listening(network.middle, 6081)
    middleboxes.redirect(network, [HTTP], 6081)
