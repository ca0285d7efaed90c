"""HTTP in both directions with checksums: a server, and a client that knows every way to a proxy. Run as a script."""

from __future__ import annotations

import hashlib
import http.client
import http.server
import json
import random
import socket
import socketserver
import struct
import sys
import threading

CHUNK = 65_536


def content(direction: str, length: int) -> bytes:
    """Bytes without repetition, the same at both ends; no two transfers of a test have the same."""
    return random.Random(f"{direction} {length}").randbytes(length)


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """`/LENGTH`: so many bytes."""
        self._answer(content("down", int(self.path.strip("/"))))

    def do_POST(self) -> None:
        """The checksum of what came."""
        digest = hashlib.sha256()
        left = int(self.headers["content-length"])
        while left:
            piece = self.rfile.read(min(left, CHUNK))
            digest.update(piece)
            left -= len(piece)
        self._answer(digest.hexdigest().encode())

    def _answer(self, body: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/octet-stream")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments: object) -> None:
        """Nothing."""


class _Server(socketserver.ThreadingTCPServer):
    # Not http.server's own, which asks the name service for its name.
    allow_reuse_address = True
    daemon_threads = True

    def __init__(self, address: str, port: int) -> None:
        self.address_family = socket.AF_INET6 if ":" in address else socket.AF_INET
        super().__init__((address, port), _Handler)


def serve(address: str, *ports: str) -> None:
    """Answer until ended."""
    for port in ports:
        threading.Thread(target=_Server(address, int(port)).serve_forever, daemon=True).start()
    sys.stderr.write("ready\n")
    threading.Event().wait()


def _connect(way: str, proxy: tuple[str, int], server: tuple[str, int]) -> http.client.HTTPConnection:
    timeout_s = 300
    if way == "absolute":
        return http.client.HTTPConnection(*proxy, timeout=timeout_s)
    if way == "direct":
        return http.client.HTTPConnection(*server, timeout=timeout_s)
    connection = http.client.HTTPConnection(*proxy, timeout=timeout_s)
    if way == "connect":
        connection.set_tunnel(*server)
    elif way == "socks":
        sock = socket.create_connection(proxy, timeout=timeout_s)
        sock.sendall(b"\x05\x01\x00")
        assert sock.recv(2, socket.MSG_WAITALL) == b"\x05\x00"
        sock.sendall(b"\x05\x01\x00\x01" + socket.inet_aton(server[0]) + struct.pack("!H", server[1]))
        assert sock.recv(10, socket.MSG_WAITALL)[1] == 0
        connection.sock = sock
    return connection


def fetch(way: str, proxy: str, proxy_port: str, server: str, port: str, length: str, ways: str) -> None:
    """A download and an upload, as `ways` says, each on its own connection; what comes must be what was sent."""
    prefix = f"http://{server}:{port}" if way == "absolute" else ""
    for direction in ways.split(","):
        connection = _connect(way, (proxy, int(proxy_port)), (server, int(port)))
        if direction == "down":
            connection.request("GET", f"{prefix}/{length}")
            body = connection.getresponse().read()
            intact = body == content(direction, int(length))
        else:
            body = content(direction, int(length))
            connection.request("POST", f"{prefix}/", body=body)
            intact = connection.getresponse().read().decode() == hashlib.sha256(body).hexdigest()
        sock = connection.sock
        source = sock.getsockname()[1] if sock is not None else None
        connection.close()
        sys.stdout.write(json.dumps({"direction": direction, "intact": intact, "source_port": source}) + "\n")
        if not intact:
            raise SystemExit(f"the {direction} transfer of {length} bytes was changed on its way")


if __name__ == "__main__":
    {"serve": serve, "fetch": fetch}[sys.argv[1]](*sys.argv[2:])
