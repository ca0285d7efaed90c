"""Servers on loopback that captures are fetched from: rclone's S3, nginx, and one without ranges."""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

KEY, SECRET = "key", "secret"

_NGINX = """
daemon off; master_process off; pid {work}/pid; error_log {work}/error.log;
events {{}}
http {{
    log_format ranges '$request $status $http_range'; access_log {work}/access.log ranges; root {root};
    client_body_temp_path {work}/a; proxy_temp_path {work}/b; fastcgi_temp_path {work}/c; uwsgi_temp_path {work}/d;
    scgi_temp_path {work}/e;
    server {{ listen 127.0.0.1:{port}; autoindex on; }}
}}
"""


@contextmanager
def s3_server(root: Path) -> Iterator[int]:
    """The directories below `root` as buckets; gives the port."""
    rclone = Path(sys.executable).with_name("rclone")
    with _running(lambda port: [
        str(rclone if rclone.exists() else shutil.which("rclone")), "serve", "s3", "--config", "/dev/null",
        "--addr", f"127.0.0.1:{port}", "--auth-key", f"{KEY},{SECRET}", "--dir-cache-time", "0s", str(root),
    ]) as port:  # fmt: skip
        yield port


@contextmanager
def range_server(root: Path, work: Path) -> Iterator[int]:
    """nginx, which answers ranges; its log is `work`/access.log."""

    def command(port: int) -> list[str]:
        (work / "nginx.conf").write_text(f"user root;{_NGINX.format(root=root, work=work, port=port)}")
        return ["nginx", "-p", str(work), "-c", str(work / "nginx.conf")]

    with _running(command) as port:
        yield port


@contextmanager
def plain_server(root: Path, *, cut_at_bytes: int | None = None) -> Iterator[int]:
    """Python's, which always answers with the whole file; or cuts the connection after so many bytes of it."""

    class Handler(SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

        def copyfile(self, source: object, outputfile: object) -> None:
            content = source.read(cut_at_bytes if cut_at_bytes is not None else -1)  # type: ignore[attr-defined]
            outputfile.write(content)  # type: ignore[attr-defined]
            self.close_connection = True

    server = ThreadingHTTPServer(("127.0.0.1", 0), lambda *given: Handler(*given, directory=str(root)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()


@contextmanager
def cutting_relay(port: int, after_bytes: int) -> Iterator[int]:
    """Another port for a server, whose every connection is cut after so many bytes of answers."""
    relay = socket.create_server(("127.0.0.1", 0))

    def forward(source: socket.socket, target: socket.socket, most: int | None) -> None:
        sent = 0
        with suppress(OSError):
            while (content := source.recv(1 << 16)) and (most is None or sent < most):
                target.sendall(content)
                sent += len(content)
        for each in (source, target):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def accept() -> None:
        while True:
            try:
                client = relay.accept()[0]
            except OSError:
                return
            server = socket.create_connection(("127.0.0.1", port))
            for given in ((client, server, None), (server, client, after_bytes)):
                threading.Thread(target=forward, args=given, daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield relay.getsockname()[1]
    finally:
        relay.shutdown(socket.SHUT_RDWR)
        relay.close()


@contextmanager
def _running(command: object) -> Iterator[int]:
    assert callable(command)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
    process = subprocess.Popen(command(port), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 120
        while True:
            with socket.socket() as client:
                if client.connect_ex(("127.0.0.1", port)) == 0:
                    break
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.05)
        yield port
    finally:
        process.kill()
        process.wait()
