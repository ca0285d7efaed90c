"""What really happened to each connection: the label that end-to-end tests hold verdicts to. One JSON line each."""

from __future__ import annotations

import json
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from reference_proxy.errors import ProxyError
from reference_proxy.sockets import show

if TYPE_CHECKING:
    from reference_proxy.configuration import Interception, Mode
    from reference_proxy.sockets import Address

SCHEMA = 1


@dataclass(slots=True)
class LegTruth:
    """One leg: `local` is the proxy's end, which has a foreign address where it is spoofed."""

    protocol: str = "tcp"
    local: Address | None = None
    remote: Address | None = None
    taken_bytes: int = 0
    given_bytes: int = 0

    def as_json(self) -> dict[str, Any]:
        """Plain values."""
        ends = {"protocol": self.protocol, "local": show(self.local), "remote": show(self.remote)}
        return {**ends, "taken_bytes": self.taken_bytes, "given_bytes": self.given_bytes}


@dataclass(slots=True)
class Truth:
    """One connection of a client."""

    number: int
    mode: Mode
    interception: Interception
    #: "relayed" both ways at once, or "stored" first.
    manner: str = "relayed"
    #: Address and port that the client asked for.
    requested: str = "-"
    mobile: LegTruth = field(default_factory=LegTruth)
    server: LegTruth = field(default_factory=LegTruth)
    opened_ns: int = field(default_factory=time.time_ns)
    server_connected_ns: int | None = None
    #: finished, mobile-aborted, server-aborted, idle, stopped, unreachable, or why it was refused.
    ending: str = ""
    abort_propagated_after_s: float | None = None
    most_held_bytes: int = 0
    requests: int = 0
    cache_hits: int = 0
    revalidated: int = 0
    recompressed: int = 0
    recompression_saved_bytes: int = 0

    @property
    def label(self) -> str | None:
        """The verdict that is right where the captures can show it; None for a connection that was not served."""
        if self.server_connected_ns is None and not self.cache_hits:
            return None
        return "tcp-proxy" if self.manner == "stored" else "split-tcp"

    def as_json(self, closed_ns: int) -> dict[str, Any]:
        """Plain values, in the order in which people read."""
        return {
            "schema": SCHEMA,
            "number": self.number,
            "mode": self.mode.value,
            "interception": self.interception.value,
            "manner": self.manner,
            "class": self.label,
            "requested": self.requested,
            "mobile_leg": self.mobile.as_json(),
            "server_leg": self.server.as_json(),
            "opened_ns": self.opened_ns,
            "server_connected_ns": self.server_connected_ns,
            "closed_ns": closed_ns,
            "ending": self.ending,
            "abort_propagated_after_s": self.abort_propagated_after_s,
            "most_held_bytes": self.most_held_bytes,
            "requests": self.requests,
            "cache_hits": self.cache_hits,
            "revalidated": self.revalidated,
            "recompressed": self.recompressed,
            "recompression_saved_bytes": self.recompression_saved_bytes,
        }


class TruthWriter:
    """Appends lines to a file, or to standard output for `-`; writes nothing without a name."""

    def __init__(self, name: str) -> None:
        self._file: TextIO | None = None
        if name == "-":
            self._file = sys.stdout
        elif name:
            try:
                # Line by line, so that the file names every ended connection even if the proxy is killed.
                self._file = Path(name).open("a", buffering=1, encoding="utf-8")  # noqa: SIM115 - closed by close()
            except OSError as error:
                raise ProxyError(f"the truth cannot be written to {name}: {error.strerror}") from None

    def write(self, truth: Truth) -> None:
        """Write the line of a connection."""
        if self._file is not None:
            self._file.write(json.dumps(truth.as_json(time.time_ns())) + "\n")
            if self._file is sys.stdout:
                self._file.flush()

    def close(self) -> None:
        """Close the file."""
        if self._file is not None and self._file is not sys.stdout:
            self._file.close()
