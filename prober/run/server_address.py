"""The plan's server: the command line's settings, its address, and the control channel to it."""

from __future__ import annotations

import socket
import time
from dataclasses import replace

import msgspec

from prober.client.control_client import ControlClient
from prober.errors import PlanError, UnreachableError
from prober.plan import Plan
from prober.protocol.control_messages import Key

#: Between two tries to resolve a name.
_RESOLVE_PAUSE_S = 2.0


def with_server(plan: Plan, host: str | None, key: str | None) -> Plan:
    """The plan with the command line's settings of the server. Raises PlanError."""
    server = plan.server
    if host:
        name, port = _host_and_port(host, server.control_port)
        server = msgspec.structs.replace(server, host=name, control_port=port)
    if key:
        server = msgspec.structs.replace(server, key=key)
    return replace(plan, server=server)


def _host_and_port(text: str, port: int) -> tuple[str, int]:
    """`HOST`, `HOST:PORT`, `2001:db8::1`, `[2001:db8::1]:PORT`."""
    name, rest = text, ""
    if text.startswith("["):
        name, closing, rest = text[1:].partition("]")
        if not closing or (rest and not rest.startswith(":")):
            raise PlanError(f"a server must be HOST, HOST:PORT or [ADDRESS]:PORT, got {text!r}")
        rest = rest[1:]
    elif text.count(":") == 1:
        name, _, rest = text.partition(":")
    if rest and not (rest.isascii() and rest.isdigit() and 1 <= int(rest) <= 65_535):
        raise PlanError(f"the port of a server must be between 1 and 65535, got {text!r}")
    return name, int(rest) if rest else port


def resolve(host: str, patience_s: float) -> str:
    """The first address of a name, for all of a run. Raises UnreachableError where there is none for so long."""
    if not host:
        raise PlanError("no server is named: give --server HOST, or server.host in the plan")
    deadline_s = time.monotonic() + patience_s
    while True:
        try:
            return str(socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)[0][4][0])
        except socket.gaierror as error:
            if error.errno != socket.EAI_AGAIN or time.monotonic() + _RESOLVE_PAUSE_S > deadline_s:
                raise UnreachableError(f"the server's name {host!r} has no address: {error.strerror}") from None
        except (UnicodeError, ValueError):
            raise PlanError(f"a host must be a name or an address, got {host!r}") from None
        time.sleep(_RESOLVE_PAUSE_S)


def connect(plan: Plan, address: str, patience_s: float | None = None) -> ControlClient:
    """The control channel to the plan's server. Raises PlanError where there is no key, ControlError."""
    if not plan.server.key:
        raise PlanError("no key is given: --key, PEPSCOPE_PROBE_KEY or server.key in the plan; the server prints it")
    patience_s = plan.limits.patience_s if patience_s is None else patience_s
    return ControlClient(address, plan.server.control_port, Key.parse(plan.server.key), patience_s=patience_s)
