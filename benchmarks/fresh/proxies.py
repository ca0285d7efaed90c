"""Packaged proxies, each started at the middle with as little configuration as it takes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.fresh import middleboxes, namespaces
from benchmarks.fresh.scenario import CHAT, HTTP, UnavailableError

if TYPE_CHECKING:
    from benchmarks.fresh.middle import MiddlePath
    from benchmarks.fresh.path import NetworkPath

Start = Callable[["NetworkPath"], None]


def _directory(path: MiddlePath, name: str) -> Path:
    made = path.directory / name
    made.mkdir()
    made.chmod(0o777)  # some of them give up root
    return made


def relay(**settings: object) -> Start:
    """Our own transparent proxy (`benchmarks.fresh.relay`) in front of HTTP and chat."""

    def start(path: NetworkPath) -> None:
        chosen = {"port": 8888, "congestion_control": path.plan.congestion_control, **settings}
        path.start_python(path.middle, "relay", str(path.directory / "relay.jsonl"), json.dumps(chosen))
        path.wait_listening(path.middle, 8888)
        middleboxes.intercept(path, [HTTP, CHAT], 8888)

    return start


def socat(path: NetworkPath) -> None:
    """A process a connection, 8 KiB a read."""
    path.start(path.middle, "socat", "TCP-LISTEN:8880,fork,reuseaddr", f"TCP:{path.server_address}:{HTTP}")
    path.wait_listening(path.middle, 8880)
    middleboxes.redirect(path, [HTTP], 8880)


def squid(*, mode: str, cache: bool = False) -> Callable[[MiddlePath], None]:
    """Squid, `explicit`, `intercept` (REDIRECT) or `tproxy` (client's address spoofed)."""

    def start(path: MiddlePath) -> None:
        directory = _directory(path, "squid")
        for part in ("run", "core"):
            (directory / part).mkdir(mode=0o777)
            (directory / part).chmod(0o777)
        configuration = directory / "squid.conf"
        configuration.write_text(
            f"http_port 3128\nhttp_port 3129 intercept\nhttp_port 3130 tproxy\nhttp_access allow all\n"
            f"pid_filename {directory}/run/squid.pid\ncache_log {directory}/run/cache.log\n"
            f"coredump_dir {directory}/core\n"
            f"access_log stdio:{directory}/run/access.log\ncache_store_log none\nnetdb_filename none\n"
            f"pinger_enable off\nserver_persistent_connections off\nshutdown_lifetime 0 seconds\n"
            f"visible_hostname middle\nmax_filedescriptors 1024\ndns_nameservers 127.0.0.1\n"
            f"memory_cache_shared off\nstrip_query_terms off\n{'cache_mem 64 MB' if cache else 'cache deny all'}\n"
            "maximum_object_size_in_memory 8 MB\nhost_verify_strict off\n"
        )
        name = f"fresh{path.middle.rsplit('-', 2)[-2]}"
        path.start(path.middle, "squid", "-N", "-n", name, "-f", str(configuration), log="squid.out")
        path.wait_listening(path.middle, 3128)
        if mode == "intercept":
            middleboxes.redirect(path, [HTTP], 3129)
        elif mode == "tproxy":
            middleboxes.intercept(path, [HTTP], 3130)

    return start


def tinyproxy(path: MiddlePath) -> None:
    """An explicit HTTP proxy."""
    configuration = path.directory / "tinyproxy.conf"
    configuration.write_text("Port 3128\nListen 0.0.0.0\nTimeout 60\nMaxClients 50\nLogLevel Connect\n")
    path.start(path.middle, "tinyproxy", "-d", "-c", str(configuration), log="tinyproxy.out")
    path.wait_listening(path.middle, 3128)


def privoxy(*, filters: bool) -> Start:
    """A filtering HTTP proxy in front of port 80; with `filters` it takes in a text before it sends it on."""

    def start(path: NetworkPath) -> None:
        directory = _directory(path, "privoxy")
        (directory / "own.action").write_text("{+filter{fresh} +force-text-mode}\n/\n" if filters else "{-filter}\n/\n")
        (directory / "own.filter").write_text("FILTER: fresh harmless\ns@nothing-has-this@@g\n")
        configuration = directory / "config"
        configuration.write_text(
            f"confdir {directory}\nlogdir {directory}\ntempldir /etc/privoxy/templates\n"
            "actionsfile own.action\nfilterfile own.filter\nlisten-address 0.0.0.0:3128\n"
            "accept-intercepted-requests 1\nbuffer-limit 16384\nkeep-alive-timeout 5\ndebug 64\n"
        )
        path.start(path.middle, "privoxy", "--no-daemon", str(configuration), log="privoxy.out")
        path.wait_listening(path.middle, 3128)
        middleboxes.redirect(path, [HTTP], 3128)

    return start


def redsocks(path: NetworkPath) -> None:
    """Two relays in a row: redsocks takes the connection and goes through a SOCKS server beside it."""
    path.start(path.middle, "microsocks", "-i", "127.0.0.1", "-p", "1080", log="microsocks.out")
    path.wait_listening(path.middle, 1080)
    configuration = path.directory / "redsocks.conf"
    configuration.write_text(
        "base { log_info = on; daemon = off; redirector = iptables; }\n"
        "redsocks { local_ip = 0.0.0.0; local_port = 12345; ip = 127.0.0.1; port = 1080; type = socks5; }\n"
    )
    path.start(path.middle, "redsocks", "-c", str(configuration), log="redsocks.out")
    path.wait_listening(path.middle, 12345)
    middleboxes.redirect(path, [HTTP, CHAT], 12345)


def microsocks(path: NetworkPath) -> None:
    """A SOCKS server for the mobile."""
    path.start(path.middle, "microsocks", "-p", "1080", log="microsocks.out")
    path.wait_listening(path.middle, 1080)


def nginx_stream(path: NetworkPath) -> None:
    """Layer 4 with the smallest buffer that it takes. Raises UnavailableError where nginx lacks that module."""
    module = Path("/usr/lib/nginx/modules/ngx_stream_module.so")
    if not module.exists():
        raise UnavailableError("the stream module of nginx")
    directory = _directory(path, "nginx")
    configuration = directory / "nginx.conf"
    configuration.write_text(
        f"load_module {module};\ndaemon off;\npid {directory}/pid;\n"
        f"error_log {directory}/error.log;\nuser root;\nworker_processes 1;\nevents {{}}\n"
        f"stream {{ server {{ listen 8880 rcvbuf=8k sndbuf=8k; proxy_buffer_size 1k;"
        f" proxy_pass {path.server_address}:{HTTP}; }} }}\n"
    )
    path.start(path.middle, "nginx", "-c", str(configuration), log="nginx.out")
    path.wait_listening(path.middle, 8880)
    middleboxes.redirect(path, [HTTP], 8880)


def varnish(path: NetworkPath) -> None:
    """A cache that takes an object in at its own pace and streams it to its first client: a relay without bounds."""
    directory = _directory(path, "varnish")
    path.start(
        path.middle, "varnishd", "-F", "-n", str(directory), "-a", ":6081", "-b", f"{path.server_address}:{HTTP}", "-s",
        "malloc,64m", "-j", "none", "-p", "thread_pool_min=10", log="varnish.out",
    )  # fmt: skip
    path.wait_listening(path.middle, 6081)
    middleboxes.redirect(path, [HTTP], 6081)


def stunnel(path: NetworkPath) -> None:
    """TLS to the mobile, plain text to the server."""
    directory = _directory(path, "stunnel")
    key, certificate = directory / "key.pem", directory / "certificate.pem"
    namespaces.command(
        "openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", str(key), "-out", str(certificate),
        "-days", "2", "-subj", "/CN=middle",
    )  # fmt: skip
    configuration = directory / "stunnel.conf"
    configuration.write_text(
        f"foreground = yes\npid =\n[plain]\naccept = 8443\nconnect = {path.server_address}:{HTTP}\n"
        f"cert = {certificate}\nkey = {key}\n"
    )
    path.start(path.middle, "stunnel4", str(configuration), log="stunnel.out")
    path.wait_listening(path.middle, 8443)


def ssh_forward(path: NetworkPath) -> None:
    """The mobile's port 8000 leads through an SSH connection to the middle and from there to the server."""
    directory = _directory(path, "ssh")
    directory.chmod(0o700)
    for name in ("host", "user"):
        namespaces.command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(directory / name))
    Path("/run/sshd").mkdir(exist_ok=True)
    configuration = directory / "sshd_config"
    configuration.write_text(
        f"Port 2022\nHostKey {directory}/host\nPidFile {directory}/pid\nStrictModes no\nUsePAM no\n"
        f"PermitRootLogin prohibit-password\nAuthorizedKeysFile {directory}/user.pub\n"
    )
    path.start(path.middle, "/usr/sbin/sshd", "-D", "-e", "-f", str(configuration), log="sshd.out")
    path.wait_listening(path.middle, 2022)
    path.start(
        path.mobile, "ssh", "-N", "-i", str(directory / "user"), "-p", "2022", "-o", "StrictHostKeyChecking=no", "-o",
        "UserKnownHostsFile=/dev/null", "-L", f"8000:{path.server_address}:{HTTP}", f"root@{path.cell_address}",
        log="ssh.out",
    )  # fmt: skip
    path.wait_listening(path.mobile, 8000)


def haproxy(*, source: str) -> Start:
    """Layer 4, each connection to the server from the client's own address (`clientip`), or port, too (`client`)."""

    def start(path: NetworkPath) -> None:
        _start_haproxy(path, f" source 0.0.0.0 usesrc {source}\n server origin {path.server_address}:{HTTP}\n")
        middleboxes.intercept(path, [HTTP], 8888)

    return start


def haproxy_with_header(path: NetworkPath) -> None:
    """Layer 4 from HAProxy's own address, the client's before the first byte (PROXY protocol, version 1)."""
    _start_haproxy(path, f" server origin {path.server_address}:{HTTP} send-proxy\n")
    middleboxes.redirect(path, [HTTP], 8888)


def _start_haproxy(path: MiddlePath, backend: str) -> None:
    configuration = path.directory / "haproxy.cfg"
    configuration.write_text(
        "global\n maxconn 200\ndefaults\n mode tcp\n timeout connect 10s\n timeout client 60s\n"
        " timeout server 60s\nfrontend near\n bind :8888 transparent\n default_backend far\nbackend far\n" + backend
    )
    path.start(path.middle, "haproxy", "-db", "-f", str(configuration), log="haproxy.out")
    path.wait_listening(path.middle, 8888)


def rinetd(path: NetworkPath) -> None:
    """A relay in one thread."""
    configuration = path.directory / "rinetd.conf"
    configuration.write_text(f"0.0.0.0 8880 {path.server_address} {HTTP}\n")
    path.start(path.middle, "rinetd", "-f", "-c", str(configuration), log="rinetd.out")
    path.wait_listening(path.middle, 8880)
    middleboxes.redirect(path, [HTTP], 8880)


def redir(path: NetworkPath) -> None:
    """A relay with a process for each connection."""
    path.start(path.middle, "redir", "-n", "0.0.0.0:8880", f"{path.server_address}:{HTTP}", log="redir.out")
    path.wait_listening(path.middle, 8880)
    middleboxes.redirect(path, [HTTP], 8880)


def sslh(path: NetworkPath) -> None:
    """A relay that reads the first bytes to choose where to connect."""
    path.start(
        path.middle, "sslh-select", "-f", "-n", "-P", str(path.directory / "sslh.pid"), "-p", "0.0.0.0:8880", "--http",
        f"{path.server_address}:{HTTP}", "--anyprot", f"{path.server_address}:{CHAT}", log="sslh.out",
    )  # fmt: skip
    path.wait_listening(path.middle, 8880)
    middleboxes.redirect(path, [HTTP], 8880)
