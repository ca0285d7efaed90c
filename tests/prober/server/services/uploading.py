"""Archives to upload, what is stored of them, and requests about them, written by hand."""

from __future__ import annotations

import contextlib
import hashlib
import http.client
import json
import random
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from prober.client.control_client import ControlClient
from prober.protocol.control_messages import Key
from prober.server.archives.stored_archive import stored_archives
from prober.server.service import running
from prober.server.settings import ServerSettings
from tests.prober.server.running import FREE, TIMEOUT_S, Here


def archive(path: Path, size_bytes: int, seed: int = 1) -> Path:
    """What looks like an archive, and compresses as little."""
    path.write_bytes(b"PK\x03\x04" + random.Random(seed).randbytes(size_bytes - 4))
    return path


def stored(state: Path) -> dict[tuple[str, str], bytes]:
    """What is stored of each client, by the name that the client gave."""
    root = state / "archives"
    return {
        (each.client, each.name): (root / each.client / f"{each.sha256}.zip").read_bytes()
        for each in stored_archives(root)
    }


def left_over(state: Path) -> list[str]:
    return [path.name for path in (state / "archives").rglob("*") if path.suffix not in ("", ".json", ".zip")]


class Raw:
    """Requests about archives, written by hand."""

    def __init__(self, port: int, key: Key) -> None:
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
        self.connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=TIMEOUT_S, context=tls)
        self._headers = {"Authorization": f"Bearer {key.token}"}

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, dict[str, Any]]:
        data = json.dumps(body).encode() if isinstance(body, dict) else body
        self.connection.request(method, path, data, {**self._headers, **headers})
        response = self.connection.getresponse()
        return response.status, json.loads(response.read())

    def offer(self, content: bytes, name: str = "run.pepscope.zip", **other: Any) -> tuple[int, dict[str, Any]]:
        digest = hashlib.sha256(content).hexdigest()
        return self.ask("POST", "/v1/archives", {"sha256": digest, "size_bytes": len(content), "name": name, **other})

    def part(self, content: bytes, offset: int, part: bytes) -> tuple[int, dict[str, Any]]:
        return self.ask("PUT", f"/v1/archives/{hashlib.sha256(content).hexdigest()}?offset={offset}", part)


@contextlib.contextmanager
def raw(here: Here, key: Key | None = None) -> Iterator[Raw]:
    made = Raw(here.ports.control, key or here.key)
    with contextlib.closing(made.connection):
        yield made


@contextlib.contextmanager
def serving_with(state: Path, tables: dict[str, Any]) -> Iterator[tuple[Here, Any]]:
    """A server that is swept when the test says so; the rules are due at once then."""
    document = {"listen": ["127.0.0.1"], "state": str(state), "ports": FREE, **tables}
    with running(ServerSettings.from_mapping(document)) as (key, about, sweep):

        def sweep_archives() -> None:
            sweep.__self__._archives._applied_s -= 3600  # type: ignore[attr-defined]
            sweep()

        with ControlClient("127.0.0.1", about.ports.control, key, patience_s=2.0) as control:
            yield Here(key, about, control), sweep_archives
